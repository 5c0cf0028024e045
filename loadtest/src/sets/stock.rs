//! Filling the sets before the run, and reading them back after it.

use std::collections::HashMap;

use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tideline::AccountId;
use tideline::sharded::{Checkpoint, Layout, SortedSet};

use super::compare::Differences;
use super::perform::Performer;
use crate::members::{member_id, member_number, stamp_at_start};

/// Sets worked on at a time.
const SETS_AT_A_TIME: usize = 16;
/// Members added in one call.
const CALL_LENGTH: u64 = 1_000;
/// Pages of one walk; more means that it does not end.
const PAGES_MAX: usize = 1_000_000;

/// Gives each account its first followers and records them.
pub(crate) async fn fill(performer: &Performer, start: &[u64]) -> anyhow::Result<()> {
    let fills = start.iter().enumerate().map(|(account, size)| fill_one(performer, account, *size));
    stream::iter(fills).buffer_unordered(SETS_AT_A_TIME).try_collect::<()>().await.context("filling the sets")
}

async fn fill_one(performer: &Performer, account: usize, size: u64) -> tideline::Result<()> {
    let mut first = 0;
    while first < size {
        let members = first..size.min(first + CALL_LENGTH);
        let pair = |member| Ok((member_id(member)?, stamp_at_start(member)));
        let pairs = members.clone().map(pair).collect::<tideline::Result<Vec<_>>>()?;
        performer.sets[account].add_greater(&pairs).await?;
        for member in members {
            performer.record.acknowledge(account, member, Some(stamp_at_start(member)));
        }
        first += CALL_LENGTH;
    }
    Ok(())
}

/// How many of the sets are spread.
pub(crate) async fn count_spread(performer: &Performer) -> anyhow::Result<u64> {
    let layouts = performer.sets.iter().map(SortedSet::layout);
    let layouts: Vec<Layout> = stream::iter(layouts).buffer_unordered(SETS_AT_A_TIME).try_collect().await?;
    Ok(layouts.into_iter().filter(|layout| *layout == Layout::Spread).count() as u64)
}

/// Reads every set and compares it with what was acknowledged. Nothing may change them meanwhile.
pub(crate) async fn compare(performer: &Performer) -> anyhow::Result<Differences> {
    let sets = performer.sets.iter().enumerate();
    let mut read = stream::iter(sets.map(async |(account, set)| anyhow::Ok((account, members(set).await?))))
        .buffer_unordered(SETS_AT_A_TIME);
    let mut differences = Differences::default();
    while let Some((account, found)) = read.try_next().await.context("comparing the sets")? {
        differences.add(account, &performer.record.of_account(account), &found);
    }
    Ok(differences)
}

async fn members(set: &SortedSet<AccountId>) -> anyhow::Result<HashMap<u64, f64>> {
    let mut found = HashMap::new();
    let mut from = Checkpoint::START;
    for _ in 0..PAGES_MAX {
        let walk = set.walk(from).await?;
        for (member, score) in walk.entries {
            let number =
                member_number(member).with_context(|| format!("nobody ever added member {member}"))?;
            found.insert(number, score);
        }
        match walk.next {
            Some(next) => from = next,
            None => return Ok(found),
        }
    }
    anyhow::bail!("a walk did not end after {PAGES_MAX} pages")
}
