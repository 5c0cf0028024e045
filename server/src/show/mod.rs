//! Texts of users, as clients show them: HTML, and how long a text counts. Pure: who is mentioned is told.
//!
//! Not here: what stands in which field (`entity`), and where texts come from.
//!
//! Invariants: every sign of a user's text is escaped, and every tag that is written is closed; mentions and hashtags
//! are where the engine finds them ([`Parsed`](tideline::post::Parsed)), so that what is shown as one is one.

mod count;
mod html;
mod links;

pub use count::{URL_LETTERS, letters};
pub use html::{MentionLink, html, inline_html};
