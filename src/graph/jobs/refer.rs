//! The task of a post that refers to another one.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::graph::Graph;
use crate::graph::reference::settle_reference;
use crate::ids::{AccountId, PostId};
use crate::journal::{ArgumentReader, Arguments, Ended, Job, Matter, Run};
use crate::post::{PostRef, Reference};

/// A post may not be on the list of what it refers to yet, or still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReferTask {
    pub(crate) post: PostId,
    pub(crate) author: AccountId,
    pub(crate) to: Reference,
}

impl Job for ReferTask {
    type Service = Graph;

    const LETTER: u8 = b'R';
    const LABEL: &'static str = "refer";

    fn arguments(&self) -> Arguments {
        Arguments::default().post(self.post).account(self.author).bytes(&self.to.stored())
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        let (post, author) = (arguments.post()?, arguments.account()?);
        let kind = arguments.byte()?;
        let to = Reference { kind, post: arguments.post()?, author: arguments.account()? };
        Some(Self { post, author, to })
    }

    fn actor(&self) -> AccountId {
        self.author
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![self.post.bucket(buckets), self.to.post.bucket(buckets)]
    }

    fn matters(&self) -> Vec<Matter> {
        let post = PostRef { id: self.post, author: self.author };
        vec![Matter::Reference { post, to: PostRef { id: self.to.post, author: self.to.author } }]
    }

    fn describe(&self) -> String {
        let Self { post, author, to } = self;
        format!("list post {post} of {author} at post {} of {}, or take it off", to.post, to.author)
    }

    async fn run(self, graph: &Arc<Graph>, run: &mut Run<'_>) -> Result<Ended> {
        settle_reference(graph, self.post, self.author, self.to, &mut run.touched).await
    }
}
