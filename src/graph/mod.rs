//! The social graph: who follows, mutes, blocks, hides from whom, and what follows from that in other buckets.
//!
//! Truth lies with the account that acts: what it follows, mutes, blocks, hides, has requested, has approved. Its
//! followers' lists, and whether it must pull somebody, are derived: `pair` brings them in line.
//!
//! Invariants kept here: a follow counts for what a locked author says to its followers only once that author was asked
//! after it; an edge is noted by what writes it, and looked at once more; a change compares the graph stamp that its
//! decision was based on; an edge is removed only below a tick of the follower's own bucket; a pull mark goes only
//! when the home holds all that it stood for.

mod archived;
mod bury;
mod change;
mod chat;
mod complete;
mod cut;
mod deletion;
mod fair;
mod followers;
mod group;
pub(crate) mod jobs;
mod lists;
mod membership;
mod named;
mod new_mark;
mod noted;
mod pair;
mod reference;
mod relations;
mod request;
mod succession;
mod tie;
mod toggles;
mod told;
mod unwanted;

use std::sync::Arc;

pub(crate) use archived::{ArchiveMoves, move_due};
pub(crate) use change::graph_stamp;
pub use chat::CHAT_MEMBERS_MAX;
pub(crate) use chat::{
    Chat, ChatPlaces, all_there, chat_id, come_back, leave as leave_chat, may_be_chat, may_meet, may_write,
    member_fields, named_chat_id, note_place,
};
pub(crate) use complete::{CompletionOutcome, Follow, complete, look_at};
pub(crate) use cut::{ListStanding, cut, newest_first, standing, standings, was_cut};
pub(crate) use deletion::{DeletedPost, Erasure, delete_found, delete_once, deletion_keys};
pub(crate) use fair::newest_of_each;
pub(crate) use followers::{
    FollowerSums, UncountedAccounts, count as count_followers, count_all as count_all_followers,
    is_left as is_uncounted, note as note_followers,
};
pub use group::{GROUP_INVITATIONS_MAX, GROUP_STAFF_MAX, GroupRole};
pub(crate) use group::{
    GroupStaff, answer, ban, invite, join, leave, let_in_at_once, may_post, only_owner, only_staff, set_role,
    turn_out,
};
pub(crate) use jobs::{
    BuryTask, ListTask, PairTask, ReferTask, TieTask, UnlistTask, UnlockTask, tasks_about,
};
pub(crate) use lists::{LIKES, LISTS, drop_lists, likers, list, recount};
pub(crate) use membership::are_members;
pub(crate) use named::{ListItem, ListNumber, list_score, most_on, post_list, take_off_list, written};
pub(crate) use noted::NotedEdgeLooks;
pub(crate) use pair::{FillsSeen, settle_pair};
pub(crate) use reference::{list_references, unlist};
pub use relations::Relationship;
pub(crate) use relations::{follows_or_asks, noted, relationships, strangers_among};
pub(crate) use request::{ApprovedBy, approve, reject, requests_made, waiting};
pub(crate) use tie::{kept_of, renew_ties, set_tie, ties_stamp, untie_gone, untie_if_gone};
pub use toggles::FollowOutcome;
pub(crate) use toggles::{Toggle, follow, following_bound, toggle, unfollow};
pub(crate) use told::{StandingActs, clear as clear_notifications, dismiss as dismiss_notification, inbox};

use crate::beginnings::GrownAccounts;
use crate::journal::Journal;
use crate::reader::Readers;
use crate::tenant::Tenant;

/// The graph, and what a change of it touches: the journal, what is remembered of readers, followers that are still to
/// be counted, and who may be followed by many more than before.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) readers: Readers,
    pub(crate) uncounted: UncountedAccounts,
    pub(crate) grown: Arc<GrownAccounts>,
    fills_seen: FillsSeen,
}

impl Graph {
    pub(crate) fn new(tenant: &Arc<Tenant>) -> Arc<Self> {
        Arc::new(Self {
            tenant: tenant.clone(),
            journal: Journal::new(tenant.clone()),
            readers: Readers::new(tenant.clone()),
            uncounted: UncountedAccounts::default(),
            grown: Arc::default(),
            fills_seen: FillsSeen::new(),
        })
    }
}
