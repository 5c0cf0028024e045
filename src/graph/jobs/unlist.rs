//! The task of a post that was deleted.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::graph::Graph;
use crate::graph::lists::drop_lists;
use crate::ids::{AccountId, PostId};
use crate::journal::{ArgumentReader, Arguments, Ended, Job, Matter, Run};

/// A post is gone; its lists may not be yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnlistTask {
    pub(crate) post: PostId,
    pub(crate) author: AccountId,
}

impl Job for UnlistTask {
    type Service = Graph;

    const LETTER: u8 = b'U';
    const LABEL: &'static str = "unlist";

    fn arguments(&self) -> Arguments {
        Arguments::default().post(self.post).account(self.author)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { post: arguments.post()?, author: arguments.account()? })
    }

    fn actor(&self) -> AccountId {
        self.author
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![self.post.bucket(buckets)]
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::ListsOf(self.post)]
    }

    fn describe(&self) -> String {
        format!("drop the lists of post {} of {}, if it is gone", self.post, self.author)
    }

    async fn run(self, graph: &Arc<Graph>, run: &mut Run<'_>) -> Result<Ended> {
        drop_lists(graph, &[self.post], &mut run.touched).await?;
        Ok(Ended::Done)
    }
}
