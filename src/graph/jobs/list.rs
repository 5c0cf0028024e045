//! The task of a post that names lists.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::graph::Graph;
use crate::graph::named::settle_lists;
use crate::ids::{AccountId, PostId};
use crate::journal::{ArgumentReader, Arguments, Ended, Job, Matter, Run};
use crate::post::{PostList, PostRef};

/// A post may not be on the lists of mentions and hashtags yet that it names, or still on those that the entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListTask {
    pub(crate) post: PostId,
    pub(crate) author: AccountId,
}

impl Job for ListTask {
    type Service = Graph;

    const LETTER: u8 = b'L';
    const LABEL: &'static str = "list";
    // Of a post that was deleted: the lists that it may still be on. One that is there names them itself.
    const HAS_PAYLOAD: bool = true;

    fn arguments(&self) -> Arguments {
        Arguments::default().post(self.post).account(self.author)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { post: arguments.post()?, author: arguments.account()? })
    }

    fn is_payload(bytes: &[u8]) -> bool {
        PostList::all_from_bytes(bytes).is_ok()
    }

    fn actor(&self) -> AccountId {
        self.author
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![self.post.bucket(buckets)]
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::NamedLists(PostRef { id: self.post, author: self.author })]
    }

    fn describe(&self) -> String {
        let Self { post, author } = self;
        format!("bring post {post} of {author} onto the lists of its mentions and hashtags, or take it off")
    }

    async fn run(self, graph: &Arc<Graph>, run: &mut Run<'_>) -> Result<Ended> {
        let lists = PostList::all_from_bytes(&run.entry.payload)?;
        settle_lists(graph, self.post, self.author, &lists, &mut run.touched).await
    }
}
