//! Steps of a plan: who does what.

use super::call::{Reach, State, Switch, Tie, Way, Which};
use super::world::PostNo;

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) actor: u64,
    pub(crate) client: usize,
    /// A number that becomes an instance.
    pub(crate) instance: usize,
    pub(crate) action: Action,
}

/// A post to be.
#[derive(Debug, Clone)]
pub(crate) struct PostPlan {
    pub(crate) no: PostNo,
    pub(crate) reach: Reach,
    pub(crate) only_to: Vec<u64>,
    pub(crate) not_to: Vec<u64>,
    pub(crate) original: Option<PostNo>,
    pub(crate) has_text: bool,
    pub(crate) parent: Option<PostNo>,
    pub(crate) mentions: Vec<u64>,
    pub(crate) tags: Vec<u8>,
}

/// So far from a post's id: -1, 0 or 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) post: PostNo,
    pub(crate) offset: i64,
}

/// A timeline, as the plan knows it: ids of posts are not known yet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Walked {
    Which(Which),
    Replies(PostNo),
}

/// What a step does; the actor does it.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Publish(PostPlan),
    /// With the token of a post that is there already.
    Republish(PostNo),
    /// It says something else, with these hashtags.
    Edit(PostNo, Vec<u8>),
    Delete(PostNo),
    /// A moderator hides it from all but its author, or shows it again.
    Hide(PostNo, bool),
    /// Takes back a repost of the actor's own, by what was reposted.
    Unrepost(PostNo),
    /// Likes a post, or bookmarks it, or takes that back.
    Tie(Tie, PostNo, bool),
    Follow(u64),
    Unfollow(u64),
    Switch(Switch, u64, bool),
    Approve(u64),
    Reject(u64),
    Lock(bool),
    State(State),
    /// The actor is pushed, or pulled, or left to the policy.
    Cross(Option<Way>),
    /// A new account: the actor itself.
    Create {
        is_locked: bool,
        is_pulled: bool,
    },
    /// The actor is gone.
    Bury,
    /// The newest page of its home.
    Read {
        limit: usize,
        hydrate: bool,
    },
    /// Pages of a timeline, one behind the other, downwards or upwards from a post's place.
    Walk {
        which: Walked,
        /// Of each page.
        limits: Vec<usize>,
        up: bool,
        around: Option<PostNo>,
    },
    /// One page of its home between places: at a post, or beside it.
    Range {
        limit: usize,
        max: Option<Place>,
        since: Option<Place>,
        min: Option<Place>,
    },
    Sweep,
    Warm,
    Spread,
}

impl Action {
    /// Whom it is about besides the actor.
    pub(crate) fn other(&self) -> Option<u64> {
        match self {
            Self::Follow(other)
            | Self::Unfollow(other)
            | Self::Switch(_, other, _)
            | Self::Approve(other)
            | Self::Reject(other)
            | Self::Walk { which: Walked::Which(Which::Profile { account: other, .. }), .. } => Some(*other),
            _ => None,
        }
    }
}
