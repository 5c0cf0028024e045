//! The number of an account's followers, as its record says: exactly, while they lie in one place. Those of a spread
//! set lie in every bucket: they are summed up within a minute of a change, by whoever made the change; and should that
//! instance be gone, by whoever looks at the account.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use crate::account::Account;
use crate::cluster::{Command, Request, TouchedServers, impatiently};
use crate::error::Result;
use crate::fields::RecordField;
use crate::functions;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::Recurring;
use crate::pending::PendingAccounts;
use crate::tenant::Tenant;

/// The interval at which followers that have come or gone are summed up: twice within the minute that is promised.
const COUNT_EVERY: Duration = Duration::from_secs(25);
/// A sum that is so old although somebody has come or gone was left behind.
const COUNT_AGE_MAX_MS: u64 = 55_000;
/// Accounts whose followers are summed up at once: each asks all buckets.
const AT_ONCE: usize = 4;

/// Accounts whose followers are to be summed up.
#[derive(Debug, Default)]
pub(crate) struct UncountedAccounts(PendingAccounts);

impl UncountedAccounts {
    /// An account was looked at: if its followers were to be summed up by somebody who hasn't, we do.
    pub(crate) fn met(&self, account: &Account, now_ms: u64) {
        if is_left(account, now_ms) {
            self.0.add(account.id);
        }
    }
}

/// Whether the number of an account's followers is older than it may be.
pub(crate) fn is_left(account: &Account, now_ms: u64) -> bool {
    account.uncounted_since.is_some_and(|since| now_ms.abs_diff(since) > COUNT_AGE_MAX_MS)
}

/// Somebody may have come or gone. Before what caused that is struck: then it is never forgotten.
pub(crate) async fn note(graph: &Graph, account: AccountId, touched: &mut TouchedServers) -> Result<()> {
    let tenant = &graph.tenant;
    let (record, now_ms) = (tenant.keys().account(account), tenant.router().now_ms());
    let command = functions::followers_note(record, tenant.followers(account)?.root_key(), now_ms);
    let answer = tenant.router().ask(Request::write(tenant.slot(account), command)).await?;
    touched.add(&answer);
    if answer.ok()?.int()? == 1 {
        graph.uncounted.0.add(account);
    }
    Ok(())
}

/// Sums the followers of a spread set up, if that is still to be done.
pub(crate) async fn count(tenant: &Tenant, account: AccountId) -> Result<()> {
    let (record, slot) = (tenant.keys().account(account), tenant.slot(account));
    let seen = Command::new("HGET").arg(&record).arg(RecordField::UNCOUNTED_SINCE);
    let seen = tenant.router().call(Request::read(slot, seen)).await?;
    if seen.is_nil() {
        return Ok(());
    }
    // After the note that stands there: whoever comes or goes meanwhile writes another one, which the sum doesn't
    // end.
    let sum = tenant.followers(account)?.len().await?;
    let command = functions::followers_counted(record, seen.bytes()?, sum, tenant.router().now_ms());
    tenant.router().call(Request::write(slot, command)).await.map(drop)
}

/// Sums of followers that are to be brought up to date.
#[derive(Debug)]
pub(crate) struct FollowerSums;

impl Recurring for FollowerSums {
    type Owner = Graph;

    fn pause(&mut self, _: &Graph) -> Duration {
        COUNT_EVERY
    }

    async fn round(&mut self, graph: &Arc<Graph>) {
        // Those whose servers are away wait for the next time, and keep none of the others waiting.
        impatiently(count_all(graph)).await;
    }
}

/// Sums up all that wait for it here.
pub(crate) async fn count_all(graph: &Arc<Graph>) {
    stream::iter(graph.uncounted.0.take())
        .for_each_concurrent(AT_ONCE, |account| async move {
            if let Err(e) = count(&graph.tenant, account).await {
                tracing::debug!("the followers of account {account} could not be summed up: {e}");
                graph.uncounted.0.add(account);
            }
        })
        .await;
}
