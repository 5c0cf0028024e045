//! Steps of a plan: who does what.

use super::call::{Ack, PostSpec, Reach, State, Switch, Tie, Way, Which};
use super::chats::Members;
use super::content::{Extent, text_of};
use super::facts::{Fact, OPEN, Time};
use super::groups::GroupNo;
use super::names::{Name, NewcomerNo};
use super::reports::ReportNo;
use super::world::{PostFact, PostNo, Said};
use super::written::WrittenNo;

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
#[derive(Debug, Clone, Default)]
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
    /// Else the author's lock decides how far it goes.
    pub(crate) says_reach: bool,
    pub(crate) has_token: bool,
    /// What is said beside its text.
    pub(crate) extent: Extent,
    pub(crate) ack: Option<Ack>,
}

impl PostPlan {
    /// One that says something, and refers to nothing.
    pub(crate) fn new(no: PostNo, reach: Reach) -> Self {
        Self { no, reach, has_text: true, says_reach: true, has_token: true, ..Self::default() }
    }

    /// What will be known of it once it is begun to be published.
    pub(crate) fn fact(self, author: u64, start: Time) -> PostFact {
        let text = match self.has_text {
            true => text_of(self.no, 0, self.extent, &self.tags),
            false => String::new(),
        };
        PostFact {
            author,
            reach: self.reach,
            only_to: self.only_to,
            not_to: self.not_to,
            original: self.original,
            has_text: self.has_text,
            parent: self.parent,
            start,
            acknowledged: OPEN,
            delivered: OPEN,
            listed: OPEN,
            id: None,
            deleted: None,
            hidden: Fact::new(false),
            edits: Vec::new(),
            said: Said { text, tags: self.tags, mentions: self.mentions },
            says_reach: self.says_reach,
            has_token: self.has_token,
            is_replicated: false,
            is_unsure: false,
            is_awaited: false,
        }
    }
}

impl PostFact {
    /// What is sent to publish it, whose original and parent have these ids and authors.
    pub(crate) fn spec(&self, no: PostNo, [original, parent]: [Option<(u64, u64)>; 2]) -> PostSpec {
        PostSpec {
            text: self.said.text.clone(),
            reach: self.says_reach.then_some(self.reach),
            only_to: self.only_to.clone(),
            not_to: self.not_to.clone(),
            original,
            parent,
            mentions: self.said.mentions.clone(),
            tags: self.said.tags.clone(),
            token: self.has_token.then(|| format!("token-{no}")),
            ack: None,
        }
    }
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

/// What is done about names. Who is meant: the actor, or somebody who has signed up.
#[derive(Debug, Clone)]
pub(crate) enum Naming {
    /// Newcomers sign up at the same moment, at different instances, all with one of these names.
    Race(Vec<(NewcomerNo, Vec<Name>)>),
    /// Another login or e-mail address; `None`: no address any more.
    Take(Option<NewcomerNo>, Option<Name>),
    Password(Option<NewcomerNo>),
    /// Those who have signed up are gone, unless they were refused.
    Leave(Vec<NewcomerNo>),
    /// Names are looked up; some as somebody else types them.
    Find(Vec<(Name, bool)>),
    /// With the password of somebody who has that name, or with the one before.
    LogIn(Name, bool),
}

/// What is done in groups.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Gathering {
    /// Founds all groups, with those who join them.
    Found,
    /// Joins; a private one by an invitation.
    Enter(GroupNo),
    /// Asks to join a private one, and is let in by the owner.
    Ask(GroupNo),
    Exit(GroupNo),
    /// The actor is turned out by the owner.
    TurnedOut(GroupNo),
    /// The actor is banned by the owner, or may come again.
    Ban(GroupNo, bool),
    /// The owner makes the actor a moderator, if it is a member, or takes that back.
    Promote(GroupNo, bool),
    Post(GroupNo, WrittenNo),
    /// Takes a post away from its group: its own, or what the actor, who is on the staff, may.
    Remove(WrittenNo),
    /// Releases a post that was held back, as a moderator.
    Release(WrittenNo),
    /// Likes a post, or takes that back.
    Like(WrittenNo, bool),
    /// Looks at the group's page.
    Look(GroupNo),
    /// The actor, who is new, posts more at once than it may, each time at another instance.
    Rush(Rush),
}

/// Where somebody posts more than it may.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rush {
    /// Into the public group, these and those that follow.
    Group(WrittenNo),
    /// Where nobody follows it.
    Alone,
}

/// What a step does; the actor does it.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Publish(PostPlan),
    /// With the token of a post that is there already.
    Republish(PostNo),
    /// It says something else, with these hashtags and mentions; `None`: it mentions whom it did.
    Edit(PostNo, Vec<u8>, Option<Vec<u64>>),
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
    /// A new account: the actor itself. It signs up if it is to have names.
    Create {
        is_locked: bool,
        is_pulled: bool,
        names: Vec<Name>,
    },
    Name(Naming),
    /// Reports an account, perhaps with a post of its own.
    Report(ReportNo, u64, Option<PostNo>),
    /// Resolves a report of the actor's own, as a moderator, or opens it again.
    Resolve(ReportNo, bool),
    /// Writes a message to a chat of these members, of whom it is one.
    Say(WrittenNo, Members),
    /// Takes a message of its own back.
    Unsay(WrittenNo),
    /// Leaves the chat of these members.
    Leave(Members),
    Gather(Gathering),
    /// The actor is gone.
    Bury,
    /// The newest page of its home.
    Read {
        limit: usize,
        hydrate: bool,
    },
    /// The whole home by importance, page by page of so many posts.
    Scroll {
        limit: usize,
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
            | Self::Report(_, other, _)
            | Self::Walk { which: Walked::Which(Which::Profile { account: other, .. }), .. } => Some(*other),
            _ => None,
        }
    }
}
