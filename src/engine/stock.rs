//! For load tests: homes as they are after long use, made at once; and what they hold.

use super::Engine;
use crate::cluster::{Batch, Command, Request};
use crate::error::CallFuture;
use crate::functions;
use crate::ids::AccountId;
use crate::stored::home_entry;
use crate::timeline::stored_posts;

/// Any nonce: nobody else fills these homes.
const NONCE: [u8; 8] = [0x80, 0, 0, 0, 0, 0, 0, 1];

impl Engine {
    /// Makes homes that hold these posts (id and author, ascending), whoever they are of. For load tests only: no list
    /// of days names them, so no sweep finds them, nor does an import.
    #[doc(hidden)]
    pub fn stock_homes<'a>(&'a self, homes: &'a [(AccountId, Vec<(u64, u64)>)]) -> CallFuture<'a, ()> {
        Box::pin(async move {
            let tenant = &self.tenant;
            let mut batch = Batch::with_capacity(2 * homes.len());
            for (reader, posts) in homes {
                let (home, slot) = (tenant.keys().home(*reader), tenant.slot(*reader));
                let head = home_entry(0, u64::from_be_bytes(NONCE));
                let begin = Command::new("RPUSH").arg(&home).arg(&head);
                let entries = posts.iter().map(|(id, author)| home_entry(*id, *author));
                let finish = functions::home_finish(home, &NONCE, 0, tenant.fit(), entries);
                batch.push_ordered([Request::write(slot, begin), Request::write(slot, finish)]);
            }
            for answer in tenant.run_all(batch).await? {
                answer.ok()?;
            }
            Ok(())
        })
    }

    /// Gives a reader pull marks for these authors. For load tests only.
    #[doc(hidden)]
    pub fn stock_marks<'a>(&'a self, reader: AccountId, authors: &'a [AccountId]) -> CallFuture<'a, ()> {
        Box::pin(async move {
            if authors.is_empty() {
                return Ok(());
            }
            let tenant = &self.tenant;
            let set = Command::new("HSET").arg(&tenant.keys().marks(reader));
            let set = authors.iter().fold(set, |set, author| set.arg(&author.to_bytes()).arg(&NONCE));
            tenant.router().call(Request::write(tenant.slot(reader), set)).await.map(drop)
        })
    }

    /// The posts that a home holds, as stored, in order of arrival. For load tests only.
    #[doc(hidden)]
    pub fn stored_home(&self, reader: AccountId) -> CallFuture<'_, Vec<(u64, u64)>> {
        Box::pin(async move { stored_posts(&self.tenant, reader).await })
    }

    /// Fan-outs and other journal entries that wait or are under way in this instance. For load tests only:
    /// [`health`](Self::health) tells that and more.
    #[doc(hidden)]
    pub fn tasks(&self) -> usize {
        self.graph.journal.tasks.len()
    }
}
