//! Locked accounts: requests to follow them, and their answers.
//!
//! The follower's bucket holds what it has requested, the locked account's whom it has approved, both with the same
//! random bytes: an approval counts for the very request that it was given for. The list of those who wait is derived.

mod decide;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use self::decide::{ApprovalFacts, ApprovalStep};
use super::change::{apply, graph_stamp};
use super::group::invitation;
use super::jobs::PairTask;
use super::pair::settle_pair;
use super::toggles::{nothing_left, requested, unfollow_intent};
use crate::account::Account;
use crate::change::{BucketChange, Tries};
use crate::cluster::{Command, Epoch, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{BucketWrite, ExpectedValue, LeastState, maybe_nonce};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::{RunOutcome, reserve};
use crate::keys::OwnKey;
use crate::nonce::Nonce;
use crate::tenant::{Scan, Tenant};

/// Requests that an unlocked account has looked at: in one page, and at once.
const UNLOCKED_AT_ONCE: u32 = 128;
const UNLOCKED_SIDE_BY_SIDE: usize = 16;
/// Requests listed in one call: more would hold the server up.
const LISTED_AT_ONCE: u32 = 1_000;
/// The accounts that wait for `account`'s answer.
pub(crate) async fn waiting(tenant: &Tenant, account: AccountId) -> Result<BTreeSet<AccountId>> {
    listed(tenant, &tenant.keys().waiting(account)).await
}

/// The accounts whose answer `account` waits for.
pub(crate) async fn requests_made(tenant: &Tenant, account: AccountId) -> Result<BTreeSet<AccountId>> {
    listed(tenant, &tenant.keys().requested(account)).await
}

/// All that a hash of requests holds: one trip for a thousand.
async fn listed(tenant: &Tenant, key: &[u8]) -> Result<BTreeSet<AccountId>> {
    let (mut all, mut scan) = (BTreeSet::new(), scan(tenant, key, LISTED_AT_ONCE));
    while let Some(page) = scan.next(tenant).await? {
        all.extend(members(&page)?);
    }
    Ok(all)
}

/// A scan of a hash of requests, which takes fewer steps than these.
fn scan<'k>(tenant: &Tenant, key: &'k [u8], count: u32) -> Scan<'k> {
    Scan::new("HSCAN", key).bounded(count, 2 * tenant.settings.requests_max + 1)
}

fn members(page: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<AccountId>> {
    page.iter().map(|(member, _)| AccountId::from_bytes(member)).collect()
}

/// By whom a request is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovedBy {
    /// The account that was asked, or its staff.
    Staff,
    /// An invitation into a group, which is used up.
    Invitation,
}

/// Approves the request that `requester` has made.
pub(crate) async fn approve(
    graph: &Arc<Graph>,
    account: AccountId,
    requester: AccountId,
    by: ApprovedBy,
) -> Result<Epoch> {
    let tenant = &graph.tenant;
    let task = PairTask { reader: requester, author: account, may_drop: true };
    let hash = tenant.keys().approved(account);
    let mut is_renewed = false;
    let tries = &mut Tries::of(account);
    loop {
        let once = async {
            let _place = reserve(&graph.journal, 1)?;
            let mut facts = ApprovalFacts { is_renewed, ..ApprovalFacts::default() };
            loop {
                match facts.step() {
                    ApprovalStep::Renew => {
                        apply(graph, requester, || Box::pin(async { Ok(nothing_left()) })).await?;
                        (is_renewed, facts.is_renewed) = (true, true);
                    }
                    ApprovalStep::AskRequest => {
                        facts.request = Some(requested(tenant, requester, account).await?);
                    }
                    ApprovalStep::LookIfItFollows => {
                        let (_, epoch) = graph_stamp(tenant, requester).await?;
                        let follows = tenant.following(requester)?.score(&account).await?.is_some();
                        if follows {
                            return Ok(Some(epoch));
                        }
                        // H153: who approves looks once more.
                        (facts.follows_not, facts.request) = (true, None);
                    }
                    ApprovalStep::Refuse => return Err(no_request(account, requester)),
                    ApprovalStep::AskBefore => {
                        facts.before =
                            Some(approved(tenant, account, requester, &mut TouchedServers::new()).await?);
                    }
                    ApprovalStep::Approve { before, request } => {
                        let write =
                            BucketWrite::new("approve", &tenant.keys().account(account), LeastState::There);
                        // H22: compared with what stood there, or an approval that was given meanwhile, for another
                        // request, is gone.
                        let field = requester.to_bytes();
                        let approval = (ExpectedValue::Exactly(before), Some(&request[..]));
                        let mut change = BucketChange::new(&graph.journal, account, write, "approve")
                            .task(task)
                            .cell(&hash, &field, approval, None);
                        if by == ApprovedBy::Invitation {
                            // H264: the one that stands there as this is written, or none lets it in.
                            let invited = invitation(tenant, account, requester).await?;
                            let invited = invited.ok_or_else(|| no_request(account, requester))?;
                            let used_up = (ExpectedValue::Exactly(Some(invited)), None);
                            change = change.cell(
                                &tenant.keys().own(OwnKey::Invited, account),
                                &field,
                                used_up,
                                None,
                            );
                        }
                        return Ok(change.write(tries).await?.map(|made| made.epoch));
                    }
                }
            }
        };
        let once = once.await;
        if let Some(epoch) = tries.ended(once)? {
            return Ok(epoch);
        }
    }
}

/// Leaves a task for each request that waits for an account's answer, unless that is locked: each finds that no answer
/// is needed any more. Whoever asks from now on finds that too.
pub(crate) async fn look_at_waiting(
    graph: &Arc<Graph>,
    account: AccountId,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let tenant = &graph.tenant;
    let answer = tenant.router().ask(tenant.account_request(account)).await?;
    touched.add(&answer);
    let card = Account::parse(account, answer.ok()?)?;
    // The lock before the list: who asks meanwhile is listed before it looks at the lock, so one of the two sees the
    // other.
    if !card.is_some_and(|card| card.needs_no_requests()) {
        return Ok(RunOutcome::Done);
    }
    let (key, mut ended) = (tenant.keys().waiting(account), RunOutcome::Done);
    let mut scan = scan(tenant, &key, UNLOCKED_AT_ONCE);
    while let Some(page) = scan.next(tenant).await? {
        let mut looks = stream::iter(members(&page)?)
            .map(|requester| async move {
                // Each leaves a task: users' own must find room beside them.
                graph.journal.tasks.room().await;
                let mut touched = TouchedServers::new();
                let ended = settle_pair(graph, requester, account, true, &mut touched).await?;
                Ok::<_, Error>((ended, touched))
            })
            .buffer_unordered(UNLOCKED_SIDE_BY_SIDE);
        while let Some(look) = looks.next().await {
            let (one, said) = look?;
            touched.extend(&said);
            if matches!(one, RunOutcome::Later) {
                ended = RunOutcome::Later;
            }
        }
    }
    Ok(ended)
}

/// Turns the request that `requester` has made down.
pub(crate) async fn reject(graph: &Arc<Graph>, account: AccountId, requester: AccountId) -> Result<Epoch> {
    let _place = reserve(&graph.journal, 1)?;
    apply(graph, requester, || {
        Box::pin(async {
            if requested(&graph.tenant, requester, account).await?.is_none() {
                return Ok(None);
            }
            unfollow_intent(&graph.tenant, requester, account).map(Some)
        })
    })
    .await
}

fn no_request(account: AccountId, requester: AccountId) -> Error {
    let text =
        format!("account {requester} has not asked to follow account {account}, or has taken that back");
    Error::new(ErrorKind::NotFound, text)
}

/// The request of `requester` that `account` has approved. `said`: whose word that is.
pub(super) async fn approved(
    tenant: &Tenant,
    account: AccountId,
    requester: AccountId,
    said: &mut TouchedServers,
) -> Result<Option<Nonce>> {
    let command = Command::new("HGET").arg(&tenant.keys().approved(account)).arg(&requester.to_bytes());
    let answer = tenant.router().ask(Request::read(tenant.slot(account), command)).await?;
    said.add(&answer);
    maybe_nonce(&answer.ok()?)
}
