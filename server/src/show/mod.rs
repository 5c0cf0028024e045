//! Posts and accounts as clients get them, with texts of users as HTML; how long a text counts. Pure: who is mentioned
//! is told, nobody asked.
//!
//! Not here: what stands in which field (`entity`), and where texts come from.
//!
//! Invariants: every sign of a user's text is escaped, and every tag that is written is closed; mentions and hashtags
//! are where the engine finds them ([`TextNames`](tideline::post::TextNames)), so that what is shown as one is one.

pub mod account;
mod count;
mod html;
mod links;
pub mod notification;
pub mod relationship;
pub mod site;
pub mod status;
mod text;

pub use count::{URL_LETTERS, letters};
pub use html::{MentionLink, field_html, html};
pub use text::StatusTexts;
