//! What a client asks of an instance: plain data, so that an instance may be another process.

use serde::{Deserialize, Serialize};

use super::group_call::GroupCall;
use super::told::Reply;

/// How far a post goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reach {
    #[default]
    Public,
    Unlisted,
    Followers,
    Direct,
}

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    Active,
    Limited,
    Suspended,
    /// For good.
    Deleted,
}

/// What one account switches on and off about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Switch {
    Mute,
    Block,
    Hide,
    /// A private note.
    Note,
    /// Its reposts are left out at home.
    Reposts,
    /// All that it posts is left out at home.
    LeftOut,
}

/// What an account has done with a post, for itself or for all to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Tie {
    Like,
    Bookmark,
}

/// How an account's posts reach its followers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Way {
    Push,
    Pull,
}

/// When a post is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ack {
    Replicated,
    First,
    Delivered,
}

/// A post to publish; references are ids with their authors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PostSpec {
    pub(crate) text: String,
    /// `None`: what the author's lock says.
    pub(crate) reach: Option<Reach>,
    pub(crate) only_to: Vec<u64>,
    pub(crate) not_to: Vec<u64>,
    pub(crate) original: Option<(u64, u64)>,
    pub(crate) parent: Option<(u64, u64)>,
    pub(crate) mentions: Vec<u64>,
    pub(crate) tags: Vec<u8>,
    pub(crate) token: Option<String>,
    /// `None`: what the settings say.
    pub(crate) ack: Option<Ack>,
}

/// Somebody who wants an account with names and a password.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SignUpSpec {
    /// `None`: the engine finds an id.
    pub(crate) account: Option<u64>,
    pub(crate) is_locked: bool,
    pub(crate) is_pulled: bool,
    pub(crate) login: String,
    pub(crate) email: Option<String>,
    pub(crate) password: String,
    pub(crate) token: String,
}

/// A report to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportSpec {
    pub(crate) reporter: u64,
    pub(crate) target: u64,
    pub(crate) posts: Vec<u64>,
    pub(crate) comment: String,
}

/// Which timeline a page is of: replies are to the post with that id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Which {
    #[default]
    Home,
    Profile {
        account: u64,
        replies: bool,
        reposts: bool,
    },
    Mentions,
    Tag(u8),
    Replies(u64),
    /// Posts by anybody.
    Public,
}

impl Which {
    /// Whether posts come onto it some time after they are published.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::Mentions | Self::Tag(_) | Self::Replies(_))
    }
}

/// Which page is asked for.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) reader: u64,
    pub(crate) which: Which,
    pub(crate) max: Option<u64>,
    pub(crate) since: Option<u64>,
    pub(crate) min: Option<u64>,
    pub(crate) cursor: Option<u64>,
    pub(crate) limit: usize,
    pub(crate) hydrate: bool,
    /// With the newest likers of each post and the newest replies to it, which nothing may be changing.
    pub(crate) around: bool,
}

/// Likers and replies that come along with each post of a page, if they are asked for.
pub(crate) const WITH_EACH: usize = 6;

impl Asked {
    /// The newest page of a home.
    pub(crate) fn home(reader: u64, limit: usize) -> Self {
        Self { reader, limit, ..Self::default() }
    }
}

/// What a client asks of an instance. `SetWay` with no way: the policy decides again. `Delivered` waits until a post
/// that this instance has published is delivered. `Edit` without mentions keeps those that the post has; `Hide` is what
/// a moderator says; `Unrepost` takes one's own repost of a post back. `Find` tells who has these logins and addresses,
/// `Names` an account with its names. `Resolve` by nobody opens a report again. `Reports` and lists come page by page.
/// `MoveDue` has what is due leave memory; `ReachArchive` asks whether the archive is there; `Archived` tells an
/// account's posts that are there, or how many there are. `Fsck` looks through all that is stored. `Common`: whom both
/// follow, or who follows both. `Notices` is all that an account is told of what others did.
/// `Conversation` tells the ids of all posts around one; a `List` is as a reader gets it; `Relations` is how an account
/// stands to others; `Ranked` is a page of a home by importance, behind another's cursor.
// Variants without comments of their own stand on one line each.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Call {
    Create { account: u64, is_locked: bool, is_pulled: bool },
    SetLock { account: u64, is_locked: bool },
    SetState { account: u64, state: State },
    SetWay { account: u64, way: Option<Way> },
    DeleteAccount { account: u64 },
    Follow { reader: u64, author: u64 },
    Unfollow { reader: u64, author: u64 },
    Switch { account: u64, other: u64, what: Switch, on: bool },
    Approve { account: u64, requester: u64 },
    Reject { account: u64, requester: u64 },
    Publish { author: u64, post: PostSpec },
    Delivered { post: u64 },
    Edit { author: u64, post: u64, text: String, tags: Vec<u8>, mentions: Option<Vec<u64>> },
    Delete { author: u64, post: u64 },
    Hide { post: u64, on: bool },
    Unrepost { account: u64, post: u64 },
    Tie { account: u64, post: u64, what: Tie, on: bool },
    SignUp(SignUpSpec),
    SetLogin { account: u64, login: String },
    SetEmail { account: u64, email: Option<String> },
    SetPassword { account: u64, password: String },
    Find { names: Vec<String> },
    Names { account: u64 },
    LogIn { name: String, password: String },
    Report(ReportSpec),
    Resolve { report: u64, by: Option<u64> },
    Reports { resolved: bool, target: Option<u64>, limit: usize },
    Say { by: u64, members: Vec<u64>, text: String },
    Leave { by: u64, chat: u64 },
    Messages { reader: u64, chat: u64 },
    Notices { reader: u64, limit: usize },
    Chats { reader: u64 },
    Group(GroupCall),
    Read(Asked),
    Sweep,
    Warm { account: u64 },
    Spread { account: u64 },
    Drained { within_ms: u64 },
    MoveDue,
    ReachArchive,
    Archived { account: Option<u64> },
    Fsck { repairs: bool },
    Post { post: u64 },
    IsFollowing { reader: u64, author: u64 },
    IsMutual { one: u64, other: u64 },
    Common { one: u64, other: u64, followers: bool },
    Following { account: u64, descending: bool, limit: usize },
    Followers { account: u64, descending: bool, limit: usize },
    Counts { account: u64 },
    Requests { account: u64 },
    Conversation { reader: u64, post: u64 },
    ByIds { reader: u64, posts: Vec<u64> },
    List { reader: u64, of: List, limit: usize },
    Ranked { reader: u64, after: Option<String>, limit: usize },
    Relations { account: u64, others: Vec<u64> },
}

/// A list of people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum People {
    Followers(u64),
    Following(u64),
    /// Whom the reader itself mutes, blocks or hides from.
    Own(Switch),
    /// Who waits for the reader's answer.
    Requests,
    /// Whose answer the reader waits for.
    Requested,
}

/// A list that comes page by page, as a reader may see it. Posts are named by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum List {
    People(People),
    /// Who likes a post.
    Likers(u64),
    /// Who reposts it without a comment.
    Reposters(u64),
    /// What quotes it.
    Quotes(u64),
    /// What the reader likes, or has bookmarked.
    Tied(Tie),
    /// All of the reader's home, by importance: in whatever order.
    Ranked,
}

impl List {
    /// Whether posts are on it; else accounts are.
    pub(crate) fn is_of_posts(self) -> bool {
        matches!(self, Self::Quotes(_) | Self::Tied(_) | Self::Ranked)
    }
}

impl Call {
    /// For counting.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::SetLock { .. } => "lock",
            Self::SetState { .. } => "state",
            Self::SetWay { .. } => "way",
            Self::DeleteAccount { .. } => "delete account",
            Self::Follow { .. } => "follow",
            Self::Unfollow { .. } => "unfollow",
            Self::Switch { what: Switch::Mute, .. } => "mute",
            Self::Switch { what: Switch::Block, .. } => "block",
            Self::Switch { what: Switch::Hide, .. } => "hide",
            Self::Switch { what: Switch::Note, .. } => "note",
            Self::Switch { what: Switch::Reposts, .. } => "reposts",
            Self::Switch { what: Switch::LeftOut, .. } => "left_out",
            Self::Approve { .. } => "approve",
            Self::Reject { .. } => "reject",
            Self::Publish { .. } => "publish",
            Self::Delivered { .. } => "delivered",
            Self::Edit { .. } => "edit",
            Self::Delete { .. } => "delete",
            Self::Hide { .. } => "hide post",
            Self::Unrepost { .. } => "unrepost",
            Self::Tie { what: Tie::Like, .. } => "like",
            Self::Tie { what: Tie::Bookmark, .. } => "bookmark",
            Self::SignUp(_) => "sign up",
            Self::SetLogin { .. } => "login",
            Self::SetEmail { .. } => "email",
            Self::SetPassword { .. } => "password",
            Self::Find { .. } | Self::Names { .. } => "find",
            Self::LogIn { .. } => "log in",
            Self::Report(_) => "report",
            Self::Resolve { .. } => "resolve",
            Self::Say { .. } => "say",
            Self::Leave { .. } => "leave",
            Self::Group(call) => call.name(),
            Self::Read(_) => "read",
            Self::Sweep => "sweep",
            Self::Warm { .. } => "warm",
            Self::Spread { .. } => "spread",
            Self::Drained { .. } => "drained",
            Self::MoveDue => "move",
            _ => "look",
        }
    }

    /// Whose data it certainly needs; `None` where nobody knows, or that is several people's.
    pub(crate) fn whose(&self) -> Option<u64> {
        match self {
            Self::Create { account, .. }
            | Self::SetLock { account, .. }
            | Self::SetState { account, .. }
            | Self::SetWay { account, .. }
            | Self::DeleteAccount { account }
            | Self::Switch { account, .. }
            | Self::Approve { account, .. }
            | Self::Reject { account, .. }
            | Self::Unrepost { account, .. }
            | Self::Tie { account, .. }
            | Self::SetLogin { account, .. }
            | Self::SetEmail { account, .. }
            | Self::SetPassword { account, .. }
            | Self::Warm { account }
            | Self::Spread { account } => Some(*account),
            Self::Follow { reader, .. } | Self::Unfollow { reader, .. } => Some(*reader),
            Self::Publish { author, .. } | Self::Edit { author, .. } | Self::Delete { author, .. } => {
                Some(*author)
            }
            Self::Read(asked) => Some(asked.reader),
            Self::Ranked { reader, .. } => Some(*reader),
            _ => None,
        }
    }

    /// Whether it changes what the model knows of.
    pub(crate) fn changes(&self) -> bool {
        !matches!(
            self,
            Self::Read(_) | Self::Ranked { .. } | Self::Delivered { .. } | Self::Warm { .. } | Self::Sweep
        )
    }

    /// Whether [`Sabotage::Hasty`](super::args::Sabotage::Hasty) says that it is done before it is, and what it says.
    pub(crate) fn hasty_reply(&self) -> Option<Reply> {
        match self {
            Self::Follow { .. } => Some(Reply::Flag(true)),
            Self::Unfollow { .. } | Self::Switch { .. } | Self::Edit { .. } | Self::Delete { .. } => {
                Some(Reply::Done)
            }
            Self::Tie { .. } | Self::SetLock { .. } | Self::Hide { .. } => Some(Reply::Done),
            _ => None,
        }
    }

    /// Whether a conflict is its answer; of all others it is the word of somebody who was faster, and they are made
    /// again.
    pub(crate) fn may_conflict(&self) -> bool {
        matches!(self, Self::SignUp(_) | Self::SetLogin { .. } | Self::SetEmail { .. } | Self::Report(_))
    }
}
