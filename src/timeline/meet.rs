//! Accounts as one reader meets them: each with whether it blocks the reader, or hides from it.

use super::Timelines;
use crate::account::Account;
use crate::cluster::{Answer, Batch};
use crate::error::Result;
use crate::ids::AccountId;
use crate::sharded::SortedSet;
use crate::tenant::Answers;

/// An account, if there is one, and whether the reader mustn't meet it.
pub(super) type MetAccount = (Option<Account>, bool);

/// Looks at accounts: one batch, two more for those with long lists.
///
/// A deletion takes what restricts readers away, while others may still remember the account and its posts. So its
/// record is read after that: what is not deleted then had it. Who is deleted restricts everybody.
pub(super) async fn meet(
    timelines: &Timelines,
    accounts: &[AccountId],
    reader: AccountId,
) -> Result<Vec<MetAccount>> {
    let mut batch = Batch::with_capacity(3 * accounts.len());
    for id in accounts {
        let lists = restricting(timelines, *id)?.map(|set| set.small_score(&reader));
        batch.push_ordered(lists.into_iter().chain(timelines.tenant.shown_requests(*id)));
    }
    let mut answers = Answers::of(&timelines.tenant, batch).await?;
    let (mut met, mut long) = (Vec::with_capacity(accounts.len()), Vec::new());
    for (n, id) in accounts.iter().enumerate() {
        let lists = [holds_member(answers.answer()?)?, holds_member(answers.answer()?)?];
        if lists.contains(&None) {
            long.push(n);
        }
        met.push(restricted(
            timelines.graph.readers.read_shown(*id, &mut answers)?,
            lists.contains(&Some(true)),
        ));
    }
    if !long.is_empty() {
        let of: Vec<AccountId> = long.iter().map(|n| accounts[*n]).collect();
        // Boxed, for it is rare, and all pages would carry its size with them.
        let again = Box::pin(meet_long(timelines, &of, reader)).await?;
        long.into_iter().zip(again).for_each(|(n, again)| met[n] = again);
    }
    Ok(met)
}

async fn meet_long(
    timelines: &Timelines,
    accounts: &[AccountId],
    reader: AccountId,
) -> Result<Vec<MetAccount>> {
    let tenant = &timelines.tenant;
    let mut asked = Vec::with_capacity(2 * accounts.len());
    for id in accounts {
        asked.extend(restricting(timelines, *id)?.map(|set| (set, reader)));
    }
    let scores = tenant.sets().scores_in(&asked).await?;
    let requests = accounts.iter().flat_map(|id| tenant.shown_requests(*id)).collect();
    let mut answers = Answers::of(tenant, requests).await?;
    let both = accounts.iter().zip(scores.chunks_exact(2));
    let met = both.map(|(id, scores)| {
        Ok(restricted(
            timelines.graph.readers.read_shown(*id, &mut answers)?,
            scores.iter().any(Option::is_some),
        ))
    });
    met.collect()
}

/// The sets of those whom an account doesn't want as readers.
fn restricting(timelines: &Timelines, account: AccountId) -> Result<[SortedSet<AccountId>; 2]> {
    Ok([timelines.tenant.blocks(account)?, timelines.tenant.hides(account)?])
}

/// Whether a set has the member whose [`small_score`](SortedSet::small_score) was asked; `None`: it is several sorted
/// sets.
fn holds_member(score: Answer) -> Result<Option<bool>> {
    match score.reply.error() {
        Some(("WRONGTYPE", _)) => Ok(None),
        _ => Ok(Some(!score.ok()?.is_nil())),
    }
}

/// An account whose lists of whom it doesn't want were read, and then itself.
fn restricted(account: Option<Account>, is_listed: bool) -> MetAccount {
    let is_there = account.as_ref().is_some_and(Account::is_there);
    (account, is_listed || !is_there)
}
