//! Things that moderators look at.

use serde::Serialize;

use super::{Account, Id};
use crate::http::Timestamp;

/// A report, as its reporter gets it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FiledReport {
    /// Its id.
    pub id: Id,
    /// Whether moderators have resolved it: not when it comes.
    pub action_taken: bool,
    /// When they have.
    pub action_taken_at: Option<Timestamp>,
    /// What it is about: spam, legal, violation, other.
    pub category: String,
    /// What the reporter says.
    pub comment: String,
    /// Whether another site was told: there is none.
    pub forwarded: bool,
    /// When it came.
    pub created_at: Timestamp,
    /// The statuses that it names, of those that the reporter sees.
    pub status_ids: Vec<Id>,
    /// The rules that were broken.
    pub rule_ids: Vec<Id>,
    /// Whom it is about.
    pub target_account: Account,
}

/// A report, or a status that was held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Its id.
    pub id: Id,
    /// What it is about: spam, legal, violation, other; held: a status that was held back; or limit: the account has
    /// reached a limit of what it may do.
    pub category: String,
    /// What the reporter says; of a status that was held back, why; of a limit, which.
    pub comment: String,
    /// When it came.
    pub created_at: Timestamp,
    /// Who has reported; `None`: nobody, it was noted by itself.
    pub account_id: Option<Id>,
    /// Whom it is about.
    pub target_account_id: Id,
    /// The statuses that it names.
    pub statuses: Vec<ReportedStatus>,
    /// Who has resolved it.
    pub resolved_by: Option<Id>,
}

/// A status that a report names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportedStatus {
    /// Its id.
    pub id: Id,
    /// What it says, as it was written; `None`: it is not there any more, or can't be read now.
    pub text: Option<String>,
    /// The warning above it.
    pub spoiler_text: Option<String>,
    /// How what it said began when it was reported, its warning first: its author may have changed or deleted it since.
    /// `None`: the report kept nothing of it.
    pub reported_as: Option<String>,
    /// Whether nobody but its author sees it.
    pub hidden: bool,
}

/// Reports, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportPage {
    /// The reports.
    pub reports: Vec<Report>,
    /// Older ones follow with this `max_id`; `None`: that was all.
    pub older: Option<Id>,
    /// Whether a server was away: reports are missing about accounts that lie there.
    pub lacks_some: bool,
}

/// Limits on how often an account may do what others have to put up with, and how many it may follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountLimits {
    /// What holds for this account alone; `None`: it has the usual ones.
    pub own: LimitsOf<u32>,
    /// What holds for everybody: so often within a span, and how often new accounts may; `None`: as often as one likes.
    pub usual: LimitsOf<String>,
}

/// A limit of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitsOf<T> {
    /// Posts of all kinds.
    pub posts: Option<T>,
    /// Direct posts.
    pub direct_posts: Option<T>,
    /// Posts into groups.
    pub group_posts: Option<T>,
    /// Accounts that its posts mention and that don't follow it.
    pub mentions_of_strangers: Option<T>,
    /// Follows, and requests to follow.
    pub follows: Option<T>,
    /// Reports of others.
    pub reports: Option<T>,
    /// Accounts that it follows.
    pub followed_accounts: Option<T>,
}
