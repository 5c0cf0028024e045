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
    let first = Command::new("LRANGE").arg(&timelines.keys().home(reader)).arg("0").arg("0");
    let first = timelines.router().call(Request::read(timelines.slot(reader), first)).await?;
    match home::status(&home::parse(first)?) {
        HomeStatus::Whole { floor } if floor >= pushed_since => {
            let task = PairTask { reader, author, may_drop: true };
            journal::add(&timelines.journal, timelines.bucket(reader), task).await.map(drop)
        }
        _ => Ok(()),
    }
}
