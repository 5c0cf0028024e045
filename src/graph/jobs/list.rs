//! The task of a post that names lists.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::error::Result;
use crate::graph::deletion::delete_written;
use crate::graph::named::settle_lists;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Journal, Matter, Run, RunOutcome};
use crate::post::{NamedList, PostRef};

/// A post may not be on the lists of mentions and hashtags yet that it names, or of these that the entry names; or it
/// may still be on those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListTask {
    pub(crate) post: PostRef,
}

impl Job for ListTask {
    type Service = Journal;

    const LETTER: u8 = b'L';
    const LABEL: &'static str = "list";
    // Of a post that was deleted: the lists that it may still be on; of an edit those that are new. A post that was
    // written names them itself.
    const HAS_PAYLOAD: bool = true;

    fn arguments(&self) -> Arguments {
        Arguments::default().post_ref(self.post)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { post: arguments.post_ref()? })
    }

    fn is_payload(bytes: &[u8]) -> bool {
        NamedList::all_from_bytes(bytes).is_ok()
    }

    fn actor(&self) -> AccountId {
        self.post.author
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![self.post.id.bucket(buckets)]
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::NamedLists(self.post)]
    }

    fn describe(&self) -> String {
        let PostRef { id: post, author } = self.post;
        format!("bring post {post} of {author} onto the lists of its mentions and hashtags, or take it off")
    }

    async fn run(self, journal: &Arc<Journal>, run: &mut Run<'_>) -> Result<RunOutcome> {
        let lists = NamedList::all_from_bytes(&run.entry.payload)?;
        let settled = settle_lists(&journal.tenant, self.post, &lists, &mut run.touched).await?;
        if let Some(writer) = settled.gone_writer {
            // H246: nobody finds it by the list of what that has written.
            delete_written(journal, self.post, writer, &mut run.touched).await?;
        }
        Ok(settled.outcome)
    }
}
