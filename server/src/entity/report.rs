//! What moderators look at.

use serde::Serialize;

use super::Id;
use crate::http::Timestamp;

/// A report, or a status that was held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Its id.
    pub id: Id,
    /// What it is about: spam, legal, violation, other, or held: a status that was held back.
    pub category: String,
    /// What the reporter says; of a status that was held back, why.
    pub comment: String,
    /// When it came.
    pub created_at: Timestamp,
    /// Who has reported; `None`: it was held back.
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
    /// What it says, as it was written; `None`: it is not there any more.
    pub text: Option<String>,
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
}
