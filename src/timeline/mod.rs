//! Timelines: a page is merged from sources, each with a bound: the reader's home, outboxes of whom it pulls, and past
//! the home's end the outboxes of all it follows.
//!
//! What differs between timelines is a `feed`. Pure parts: what homes and outboxes hold (`home`, `outbox`), merging
//! (`merge`), where pages go on (`cursor`), who may see what (`filter`), what shows so far (`draft`). Around them:
//! reading (`read`, `home_page`; what all buckets have that is public: `public`), loading posts and accounts (`load`),
//! filling a home that was dropped (`fill`), dropping it (`sweep`).
//!
//! Invariants kept here: stamps are fetched before the home that is read under them; an entry shows only if every
//! source is complete down to it; what a cache gives is at most `visible_within` old, and never one's own.

mod around;
mod caches;
mod chosen;
mod cursor;
mod draft;
pub(crate) mod feed;
mod fill;
pub(crate) mod filter;
mod flights;
mod home;
mod home_page;
mod list;
mod load;
mod looks;
mod meet;
mod merge;
mod outbox;
mod page;
mod public;
mod pulls;
mod ranked;
pub(crate) mod read;
mod sources;
mod stored;
mod sweep;
mod tagged;
mod unmark;
mod view;
mod viewpoint;

use std::sync::Arc;

use caches::Caches;
pub(crate) use caches::OwnCaches;
pub use caches::{AccountCache, AgedValue, ObjectCache, PostCache};
pub use chosen::{CHOSEN_MAX, ChosenAuthors, ChosenReplies};
pub use cursor::{Cursor, Range};
pub(crate) use draft::JudgedPost;
use fill::Fills;
pub(crate) use fill::fill;
pub use filter::{FilterFacts, HiddenBecause, PostFilter};
pub use home::HomeStatus;
pub(crate) use home::{HomeEntry, parse as parse_home, stored_posts};
pub(crate) use load::{UntoldPosts, named};
pub(crate) use merge::{Direction, Merge};
pub(crate) use outbox::{has_published, newest_requests, page_request, read_newest, read_page};
pub use page::{AROUND_MAX, AROUND_PAGE_MAX, Page, PagePost, PassedOn, Query, Timeline};
pub use ranked::{
    Importance, PostScorer, RANKED_CURSOR_LEN_MAX, RankedCursor, RankedFeed, RankedPage, RankedQuery,
    SCORE_TERMS_MAX, Score, ScoreFacts, ScoredPost,
};
pub(crate) use ranked::{explain_ranked, read_ranked};
pub(crate) use read::{explain, read, read_chosen, read_tagged};
pub(crate) use stored::stored;
pub use stored::{OutboxPost, StoredHome, StoredHomeEntry, StoredOutbox};
pub(crate) use sweep::{HomeSweeps, dormant, sweep};
pub use tagged::{FURTHER_TAGS_MAX, FurtherTags};
pub(crate) use view::View;
pub(crate) use viewpoint::Viewpoint;

use crate::graph::Graph;
use crate::modes::Traffic;
use crate::tenant::Tenant;

/// The parts that reading touches: what is remembered of posts and accounts, fills under way, what the policy is to
/// know of reads; and the graph, where a read finds something to be done.
#[derive(Debug)]
pub(crate) struct Timelines {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) graph: Arc<Graph>,
    caches: Caches,
    public_looks: public::PublicLooks,
    fills: Fills,
    traffic: Arc<Traffic>,
}

impl Timelines {
    pub(crate) fn new(graph: Arc<Graph>, traffic: Arc<Traffic>, own: OwnCaches) -> Arc<Self> {
        let tenant = graph.tenant.clone();
        let caches = Caches::new(&tenant.settings, own);
        let (public_looks, fills) = (public::PublicLooks::default(), Fills::default());
        Arc::new(Self { tenant, graph, caches, public_looks, fills, traffic })
    }
}
