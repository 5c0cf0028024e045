//! Delivery by name: a post that only some accounts may read goes to the homes of those among them that follow its
//! author.
//!
//! To nobody else: a home shows nothing of whom its reader doesn't follow, and what nobody sees there takes the place
//! of what its reader wants (H60). Whoever follows later needs no delivery: the post was in the outbox before that, and
//! a completion, or the next fill, reads it there.

use std::collections::BTreeMap;

use super::deliver::Parcel;
use super::ledger::Ledger;
use crate::bucket::Bucket;
use crate::cluster::{Answer, Batch, Request, TouchedServers};
use crate::error::Result;
use crate::functions::{self, VisitAnswer};
use crate::ids::AccountId;

/// Accounts in one call, as a piece has: a server looks at an edge and a home for each.
const ACCOUNTS_AT_ONCE: usize = 128;

impl Parcel<'_> {
    /// Delivers to those of these accounts that follow the author; its own home has the post from its publishing.
    pub(super) async fn to_named(&self, author: AccountId, named: &[AccountId], ledger: &mut Ledger) {
        let journal = self.journal;
        let mut buckets: BTreeMap<Bucket, Vec<AccountId>> = BTreeMap::new();
        for reader in named.iter().filter(|reader| **reader != author) {
            buckets.entry(journal.tenant.bucket(*reader)).or_default().push(*reader);
        }
        let calls: Vec<(Bucket, &[AccountId])> = buckets
            .iter()
            .flat_map(|(bucket, readers)| readers.chunks(ACCOUNTS_AT_ONCE).map(|readers| (*bucket, readers)))
            .collect();
        let requests = calls.iter().map(|(bucket, readers)| self.call(author, *bucket, readers));
        let answers = journal.tenant.router().run(requests.collect::<Batch>()).await;
        for ((bucket, readers), answer) in calls.into_iter().zip(answers) {
            let done = match answer {
                // Also of who doesn't follow: a server says so that must not be one of the past.
                Ok(answer) => {
                    ledger.visited(bucket, &answer.epoch);
                    self.read_named(author, bucket, readers, answer, ledger).await
                }
                Err(e) => Err(e),
            };
            if let Err(e) = done {
                ledger.left(bucket, e);
            }
        }
    }

    fn call(&self, author: AccountId, bucket: Bucket, readers: &[AccountId]) -> Request {
        let (tenant, keys) = (&self.journal.tenant, self.journal.tenant.keys());
        let home = readers.first().map(|reader| keys.home(*reader)).unwrap_or_default();
        let head = keys.key_prefix(bucket);
        let command = functions::home_deliver_to(home, head, author, &self.home_entry, tenant.fit(), readers);
        Request::write(keys.buckets().slot(bucket), command).unless_moving()
    }

    async fn read_named(
        &self,
        author: AccountId,
        bucket: Bucket,
        readers: &[AccountId],
        answer: Answer,
        ledger: &mut Ledger,
    ) -> Result<()> {
        if answer.is_moving() {
            return self.deliver_key_by_key(author, bucket, readers, ledger).await;
        }
        if let VisitAnswer::Done { reached, members } = VisitAnswer::parse(answer.ok()?)? {
            self.report(reached, members - reached);
        }
        Ok(())
    }

    /// Delivers while the slot moves, one key at a time: who follows is read, and then delivered to like anybody. A
    /// follow that ends between makes a stray entry, one that begins has its own completion.
    async fn deliver_key_by_key(
        &self,
        author: AccountId,
        bucket: Bucket,
        readers: &[AccountId],
        ledger: &mut Ledger,
    ) -> Result<()> {
        let asked = readers.iter().map(|reader| Ok((self.journal.tenant.following(*reader)?, author)));
        let (asked, mut said) = (asked.collect::<Result<Vec<_>>>()?, TouchedServers::new());
        let since = self.journal.tenant.sets().scores_said(&asked, &mut said).await?;
        ledger.told(bucket, &said);
        let follows = readers.iter().zip(&since).filter(|(_, since)| since.is_some());
        let followers: Vec<AccountId> = follows.map(|(reader, _)| *reader).collect();
        self.to_homes(&followers, ledger).await;
        self.report(0, (readers.len() - followers.len()) as u64);
        Ok(())
    }
}
