//! What an instance answers: plain data, as what it is asked.

use serde::{Deserialize, Serialize};
use tideline::{FsckReport, NotificationKind};

use super::call::{Reach, ReportSpec};

/// What a reader has done with a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ties {
    pub(crate) likes: bool,
    pub(crate) has_bookmarked: bool,
    pub(crate) has_reposted: bool,
}

/// A post on a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) id: u64,
    pub(crate) author: u64,
    /// On a hydrated page: what it says, and what it says that it passes on.
    pub(crate) text: Option<String>,
    pub(crate) passes_on: Option<u64>,
    /// The account that came along as its author, and how many are said to follow that.
    pub(crate) account: Option<(u64, u64)>,
    /// What it passes on, and by whom that is, if it came along.
    pub(crate) original: Option<(u64, u64)>,
    /// On a hydrated page.
    pub(crate) ties: Option<Ties>,
    /// On a page with what is around.
    pub(crate) likers: Vec<u64>,
    pub(crate) replies: Vec<Shown>,
}

/// A page as it came.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Page {
    pub(crate) posts: Vec<Shown>,
    pub(crate) next: Option<u64>,
    pub(crate) newer: Option<u64>,
    /// It ends where only an archive could go on that is away, or lacks some of what comes along.
    #[serde(default)]
    pub(crate) lacks_archive: bool,
}

/// How an account stands to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Relation {
    pub(crate) follows: bool,
    pub(crate) is_followed: bool,
    pub(crate) is_requested: bool,
    pub(crate) mutes: bool,
    pub(crate) blocks: bool,
    pub(crate) is_blocked: bool,
    pub(crate) hides: bool,
    /// Whether it has a note on the other one, and that is what it has noted.
    #[serde(default)]
    pub(crate) notes: Option<bool>,
    /// Whether it leaves reposts of the other one out, if it follows it or asks to.
    #[serde(default)]
    pub(crate) hides_reposts: Option<bool>,
    /// Whether it leaves the other one out of its home; an older build doesn't tell.
    #[serde(default)]
    pub(crate) leaves_out: Option<bool>,
}

/// A post as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) author: u64,
    pub(crate) reach: Reach,
    pub(crate) text: String,
    /// What it passes on; an older build doesn't tell.
    #[serde(default)]
    pub(crate) original: Option<u64>,
    pub(crate) likes: u64,
    pub(crate) replies: u64,
    pub(crate) reposts: u64,
    pub(crate) quotes: u64,
}

/// What an account's record and its sets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) posts: u64,
    pub(crate) following: u64,
    pub(crate) followers: u64,
    /// How many follow it as the record says.
    pub(crate) followers_told: u64,
    pub(crate) blocks: u64,
    pub(crate) hides: u64,
}

impl Counts {
    pub(crate) fn each(self) -> [u64; 6] {
        let Self { posts, following, followers, followers_told, blocks, hides } = self;
        [posts, following, followers, followers_told, blocks, hides]
    }
}

/// An account with its names. Its address only where an account is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Card {
    pub(crate) id: u64,
    pub(crate) login: Option<String>,
    pub(crate) email: Option<String>,
}

/// A report on a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) id: u64,
    pub(crate) report: ReportSpec,
}

/// What an account is told of what another one did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) id: u64,
    pub(crate) told: Told,
}

/// What was done, by whom, and with which post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) kind: NotificationKind,
    pub(crate) by: u64,
    pub(crate) post: Option<u64>,
}

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) text: String,
}

/// What fsck has found of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FsckFindings {
    /// The kind's name in reports.
    pub(crate) kind: String,
    pub(crate) found: u64,
    /// Those that it has not put right.
    pub(crate) left: u64,
    pub(crate) is_harmless: bool,
    pub(crate) examples: Vec<String>,
}

/// What fsck has found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FsckTold {
    pub(crate) keys: u64,
    /// Posts of the archive that it has met.
    pub(crate) archived: u64,
    pub(crate) in_flight: u64,
    pub(crate) untold: u64,
    pub(crate) findings: Vec<FsckFindings>,
}

impl From<FsckReport> for FsckTold {
    fn from(report: FsckReport) -> Self {
        let findings = report.findings.into_iter().map(|(kind, of)| FsckFindings {
            kind: kind.label().to_owned(),
            found: of.found,
            left: of.left(),
            is_harmless: of.is_harmless,
            examples: of.examples,
        });
        Self {
            keys: report.keys,
            archived: report.archived.map_or(0, |archived| archived.posts),
            in_flight: report.in_flight,
            untold: report.untold,
            findings: findings.collect(),
        }
    }
}

/// What an instance answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done,
    Flag(bool),
    Published {
        id: u64,
        is_repeat: bool,
        /// It was said to be in all homes, as was asked for. An older build doesn't say so.
        #[serde(default)]
        is_delivered: bool,
        /// It was said to be on replicas.
        #[serde(default)]
        is_replicated: bool,
    },
    Page(Page),
    /// What there is of a post.
    Post(Option<Stored>),
    /// With the cursor of the page behind it.
    Ranked(Page, Option<String>),
    Ids(Vec<u64>),
    Relations(Vec<Option<Relation>>),
    Counts(Counts),
    Registered {
        id: u64,
        is_repeat: bool,
    },
    Cards(Vec<Option<Card>>),
    Reported(u64),
    Reports(Vec<Listed>),
    Said {
        id: u64,
        chat: u64,
    },
    /// It was done as often as it may be.
    TooOften,
    Messages(Vec<Message>),
    /// The newest first.
    Notices(Vec<Notice>),
    /// Chats with their newest messages.
    Chats(Vec<(u64, u64)>),
    /// Posts that have left memory, and that stayed for a while.
    Moved {
        left: u64,
        warm: u64,
    },
    Fsck(FsckTold),
    Failed {
        kind: String,
        message: String,
        may_retry: bool,
        /// Only an archive could tell what is needed, and it doesn't.
        #[serde(default)]
        is_archive_away: bool,
    },
}

impl Reply {
    /// Whether it says that an archive is away.
    pub(crate) fn lacks_archive(&self) -> bool {
        match self {
            Self::Page(page) => page.lacks_archive,
            Self::Failed { is_archive_away, .. } => *is_archive_away,
            Self::Ranked(page, _) => page.lacks_archive,
            _ => false,
        }
    }

    /// Whether it says that an archive has lost what it once had.
    pub(crate) fn tells_loss(&self) -> bool {
        matches!(self, Self::Failed { is_archive_away: true, message, .. } if message.contains("that it once had"))
    }
}
