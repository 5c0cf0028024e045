//! The task of a post that the index has to be brought in line with.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Journal, Matter, Pool, Run, RunOutcome};
use crate::post::PostRef;

/// The index may say something else of a post than that does, or may find it though it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexTask {
    pub(crate) post: PostRef,
}

/// The parts that the tasks run on.
#[derive(Debug)]
pub(crate) struct IndexTasks {
    pub(crate) journal: Arc<Journal>,
    indexer: super::Indexer,
}

impl IndexTasks {
    pub(crate) fn new(journal: &Arc<Journal>) -> Arc<Self> {
        Arc::new(Self { journal: journal.clone(), indexer: super::Indexer::default() })
    }
}

impl Job for IndexTask {
    type Service = IndexTasks;

    const LETTER: u8 = b'I';
    const LABEL: &'static str = "index";
    const NEEDS_ARCHIVE: bool = true;
    const IS_QUICK: bool = false;

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
        vec![Matter::Search(self.post)]
    }

    fn describe(&self) -> String {
        let PostRef { id: post, author } = self.post;
        format!("have post {post} of {author} found by its words, or no more")
    }

    fn pool(&self, _: &IndexTasks) -> Result<Pool> {
        Ok(Pool::Archive)
    }

    async fn run(self, tasks: &Arc<IndexTasks>, _: &mut Run<'_>) -> Result<RunOutcome> {
        tasks.indexer.settle(&tasks.journal.tenant, self.post).await?;
        Ok(RunOutcome::Done)
    }
}
