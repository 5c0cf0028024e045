//! The task of a like.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::graph::tie::settle_tie;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Matter, Run, RunOutcome};
use crate::post::PostRef;
use crate::tenant::Tenant;

/// Whether an account likes a post may not show in the post's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TieTask {
    pub(crate) account: AccountId,
    pub(crate) post: PostRef,
}

impl Job for TieTask {
    type Service = Tenant;

    const LETTER: u8 = b'T';
    const LABEL: &'static str = "tie";

    fn arguments(&self) -> Arguments {
        Arguments::default().account(self.account).post_ref(self.post)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { account: arguments.account()?, post: arguments.post_ref()? })
    }

    fn actor(&self) -> AccountId {
        self.account
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![buckets.of_account(self.account.get()), self.post.id.bucket(buckets)]
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::Tie { account: self.account, post: self.post }]
    }

    fn describe(&self) -> String {
        format!("bring the list of who likes post {} in line with what {} likes", self.post.id, self.account)
    }

    async fn run(self, tenant: &Arc<Tenant>, run: &mut Run<'_>) -> Result<RunOutcome> {
        settle_tie(tenant, self.account, self.post, &mut run.touched).await
    }
}
