//! A pull mark that stays although its author is pushed again: a reader that meets it has it looked at.

use std::sync::Arc;

use super::Timelines;
use super::home::{self, HomeStatus};
use crate::cluster::{Command, Request};
use crate::error::Result;
use crate::graph::PairTask;
use crate::ids::AccountId;
use crate::journal;

/// Journals that a mark may go, if the home's floor has passed the last post that was not pushed: only then need the
/// home not be dropped for it.
pub(super) async fn ask_to_unmark(
    timelines: &Arc<Timelines>,
    reader: AccountId,
    author: AccountId,
    pushed_since: u64,
) -> Result<()> {
    let tenant = &timelines.tenant;
    let first = Command::new("LRANGE").arg(&tenant.keys().home(reader)).arg("0").arg("0");
    let first = tenant.router().call(Request::read(tenant.slot(reader), first)).await?;
    match home::status(&home::parse(first)?) {
        HomeStatus::Whole { floor } if floor >= pushed_since => {
            let task = PairTask { reader, author, may_drop: true };
            journal::add(&timelines.graph.journal, tenant.bucket(reader), task).await.map(drop)
        }
        _ => Ok(()),
    }
}
