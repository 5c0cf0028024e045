//! The task of a post that refers to another one.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::graph::reference::settle_reference;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Matter, Run, RunOutcome};
use crate::post::{PostRef, Reference};
use crate::tenant::Tenant;

/// A post may not be on the list of what it refers to yet, or still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReferTask {
    pub(crate) post: PostRef,
    pub(crate) to: Reference,
}

impl Job for ReferTask {
    type Service = Tenant;

    const LETTER: u8 = b'R';
    const LABEL: &'static str = "refer";

    fn arguments(&self) -> Arguments {
        Arguments::default().post_ref(self.post).bytes(&self.to.stored())
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        let (post, kind, to) = (arguments.post_ref()?, arguments.byte()?, arguments.post_ref()?);
        Some(Self { post, to: Reference { kind, to } })
    }

    fn actor(&self) -> AccountId {
        self.post.author
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![self.post.id.bucket(buckets), self.to.to.id.bucket(buckets)]
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::Reference { post: self.post, to: self.to.to }]
    }

    fn describe(&self) -> String {
        let Self { post: PostRef { id: post, author }, to: Reference { to, .. } } = self;
        format!("list post {post} of {author} at post {} of {}, or take it off", to.id, to.author)
    }

    async fn run(self, tenant: &Arc<Tenant>, run: &mut Run<'_>) -> Result<RunOutcome> {
        settle_reference(tenant, self.post, self.to, &mut run.touched).await
    }
}
