//! The task of a post that was deleted.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::graph::lists::drop_lists;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Matter, Run, RunOutcome};
use crate::post::PostRef;
use crate::tenant::Tenant;

/// A post is gone; its lists may not be yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnlistTask {
    pub(crate) post: PostRef,
}

impl Job for UnlistTask {
    type Service = Tenant;

    const LETTER: u8 = b'U';
    const LABEL: &'static str = "unlist";

    fn arguments(&self) -> Arguments {
        Arguments::default().post_ref(self.post)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { post: arguments.post_ref()? })
    }

    fn actor(&self) -> AccountId {
        self.post.author
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![self.post.id.bucket(buckets)]
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::ListsOf(self.post.id)]
    }

    fn describe(&self) -> String {
        format!("drop the lists of post {} of {}, if it is gone", self.post.id, self.post.author)
    }

    async fn run(self, tenant: &Arc<Tenant>, run: &mut Run<'_>) -> Result<RunOutcome> {
        drop_lists(tenant, &[self.post.id], &mut run.touched).await?;
        Ok(RunOutcome::Done)
    }
}
