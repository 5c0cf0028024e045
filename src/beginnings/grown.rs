//! Accounts that more follow than when they were listed: they are listed anew, with what they are kept by now.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::job::rank_anew;
use crate::bucket::mix64;
use crate::cluster::impatiently;
use crate::ids::AccountId;
use crate::journal::Recurring;
use crate::pending::PendingAccounts;
use crate::tenant::Tenant;

/// Interval at which accounts whose followers have grown are ranked.
const RANK_EVERY: Duration = Duration::from_secs(30);
/// Of so many followers that come one has the account ranked: their number has to double before that matters.
const NOTICED_OF: u64 = 16;
/// Accounts ranked at once.
const AT_ONCE: usize = 4;

/// Accounts that somebody has begun to follow.
#[derive(Debug, Default)]
pub(crate) struct GrownAccounts(PendingAccounts);

impl GrownAccounts {
    /// Somebody follows an account, or no more: of some the account is ranked.
    pub(crate) fn met(&self, reader: AccountId, author: AccountId) {
        if mix64(reader.get()).is_multiple_of(NOTICED_OF) {
            self.0.add(author);
        }
    }
}

/// Ranking of accounts whose followers have grown.
#[derive(Debug)]
pub(crate) struct NameRanks(pub(crate) Arc<GrownAccounts>);

impl Recurring for NameRanks {
    type Owner = Tenant;

    fn pause(&mut self, _: &Tenant) -> Duration {
        RANK_EVERY
    }

    async fn round(&mut self, tenant: &Arc<Tenant>) {
        impatiently(rank_all(tenant, &self.0)).await;
    }
}

/// Ranks all that wait for it here. One that can't be reached waits for its next followers.
pub(crate) async fn rank_all(tenant: &Tenant, grown: &GrownAccounts) {
    stream::iter(grown.0.take())
        .for_each_concurrent(AT_ONCE, |account| async move {
            if let Err(e) = rank_anew(tenant, account).await {
                tracing::debug!("account {account} is not listed anew among others of its names: {e}");
            }
        })
        .await;
}
