//! Timelines: a page is merged from sources, each with a bound: the reader's home, outboxes of whom it pulls, and past
//! the home's end the outboxes of all it follows.
//!
//! Pure parts: what homes and outboxes hold (`home`, `outbox`), merging (`merge`), where pages go on (`cursor`), who
//! may see what (`filter`). Around them: the reader's state under its stamps (`state`), what it has done with posts (`ties`), reading (`read`; without
//! a home `plain`, lists `list`), loading posts and accounts (`load`), filling a home that was dropped (`fill`), dropping it (`sweep`).
//!
//! Invariants kept here: stamps are fetched before the home that is read under them; an entry shows only if every
//! source is complete down to it; what a cache gives is at most `visible_within` old, and never one's own.

mod around;
mod caches;
mod cursor;
mod fill;
mod filter;
mod flights;
mod home;
mod home_page;
mod list;
mod load;
mod meet;
mod merge;
mod outbox;
mod page;
mod plain;
mod pulls;
mod read;
mod sources;
mod state;
mod stored;
mod sweep;
mod ties;
mod unmark;
mod view;

pub use caches::{AccountCache, Aged, ObjectCache, PostCache};
pub(crate) use caches::{Caches, OwnCaches};
pub use cursor::{Cursor, Range};
pub(crate) use fill::{Fills, fill};
pub use filter::{FilterFacts, HiddenBecause, PostFilter};
pub use home::HomeStatus;
pub(crate) use home::{Record, parse as parse_home, stored_posts};
pub(crate) use merge::Direction;
pub(crate) use outbox::{has_published, newest_requests, page_request, read_newest, read_page};
pub use page::{AROUND_MAX, Marks, Page, PagePost, PassedOn, Query, Timeline};
pub(crate) use read::{Judged, explain, read};
pub(crate) use state::{ReaderState, load_state, stamps};
pub(crate) use stored::stored;
pub use stored::{HomeRecord, OutboxPost, StoredHome, StoredOutbox};
pub(crate) use sweep::{dormant, keep_sweeping, sweep};
pub(crate) use ties::{Ties, marks_of};
pub(crate) use view::View;
