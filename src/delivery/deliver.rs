//! Fan-out: bringing a post into the homes of its author's followers, in a [`Round`].

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::ledger::Ledger;
use super::recipients::Recipients;
use super::round::{Round, Visit};
use crate::cluster::{Answer, Batch, Command, Request, TouchedServers};
use crate::error::Result;
use crate::functions::{self, HomeFit};
use crate::ids::AccountId;
use crate::journal::{
    self, DeliveryProgress, Hint, Journal, JournalEntry, Reporter, RoundPart, told_in_time,
};
use crate::meters;
use crate::post::PostRef;
use crate::sharded::PiecePlace;
use crate::stored::home_entry;
use crate::tenant::Tenant;

/// The length of a home is measured at one of so many deliveries.
const HOMES_PER_SAMPLE: usize = 64;

/// A post on its way to homes.
pub(super) struct Parcel<'a> {
    pub(super) journal: &'a Arc<Journal>,
    pub(super) home_entry: [u8; 16],
    posted_ms: u64,
    reporter: &'a Reporter,
}

/// Delivers a post to all who are to have it, or to those whom `entry.checkpoint` leaves; what can't be delivered the
/// ledger has. Tells whether these were all followers, so that they are counted now.
pub(super) async fn run(
    journal: &Arc<Journal>,
    entry: &mut JournalEntry,
    post: PostRef,
    reporter: &Reporter,
    ledger: &mut Ledger,
) -> Result<bool> {
    let tenant = &journal.tenant;
    let started = Instant::now();
    let from_start = entry.checkpoint.is_empty();
    let part = RoundPart::of(&entry.checkpoint);
    // All are delivered, and only nobody knew whether that lasts.
    if matches!(&part, RoundPart::Left(left) if left.is_empty()) {
        return Ok(false);
    }
    let before = reporter.progress();
    let PostRef { id, author } = post;
    let parcel =
        Parcel { journal, home_entry: home_entry(id.get(), author.get()), posted_ms: id.unix_ms(), reporter };
    let recipients = recipients(tenant, entry, post).await?;
    let counts = from_start && recipients == Recipients::Followers;
    match recipients {
        Recipients::Nobody => return Ok(false),
        Recipients::Named(mut named) => {
            named.retain(|reader| part.has(tenant.bucket(*reader)));
            parcel.to_named(author, &named, ledger).await;
        }
        Recipients::Followers => Round { tenant, author, visit: &parcel }.run(entry, ledger).await?,
    }
    let DeliveryProgress { delivered, skipped, .. } = reporter.progress();
    let (delivered, skipped) = (delivered - before.delivered, skipped - before.skipped);
    meters::fanout(started.elapsed(), tenant.age(id.unix_ms()), delivered, skipped);
    Ok(counts)
}

async fn recipients(
    tenant: &Tenant,
    entry: &JournalEntry,
    PostRef { id, author }: PostRef,
) -> Result<Recipients> {
    if let Some(recipients) = entry.hint.as_ref().and_then(Hint::says::<Recipients>) {
        return Ok(recipients.clone());
    }
    let mut said = TouchedServers::new();
    let stored = tenant.posts().get_touching(PostRef { id, author }, &mut said).await?;
    // H120: one that was replaced knows no post, and its entry would be struck.
    told_in_time(tenant, entry, &said).await?;
    let Some(post) = stored.readable()? else { return Ok(Recipients::Nobody) };
    // H43: of another author: the id was given twice, and the post that we were to deliver is lost.
    Ok(if post.header().author == author { Recipients::of(&post) } else { Recipients::Nobody })
}

impl Parcel<'_> {
    pub(super) fn report(&self, delivered: u64, skipped: u64) {
        if delivered > 0 && self.reporter.progress().delivered == 0 {
            meters::first_delivery(self.journal.tenant.age(self.posted_ms));
        }
        self.reporter.add(delivered, skipped);
    }

    /// Delivers to these homes, wherever they are.
    pub(super) async fn to_homes(&self, readers: &[AccountId], ledger: &mut Ledger) {
        let (journal, tenant) = (self.journal, &self.journal.tenant);
        for chunk in readers.chunks(tenant.settings.fanout_chunk) {
            let slots = chunk.iter().map(|reader| tenant.slot(*reader));
            // What waits for these nodes goes along, without a trip of its own.
            let riders = journal.tasks.riders.take_along(tenant, slots);
            let mut batch = Batch::with_capacity(chunk.len() + riders.len());
            for reader in chunk {
                // H1: only where there is a home: one that a delivery made would look complete.
                let command = Command::new("RPUSHX").arg(&tenant.keys().home(*reader)).arg(&self.home_entry);
                batch.push(Request::write(tenant.slot(*reader), command));
            }
            for rider in &riders {
                batch.push(rider.request(tenant));
            }
            let mut answers = tenant.router().run(batch).await.into_iter();
            let ours: Vec<_> = answers.by_ref().take(chunk.len()).collect();
            journal::arrived(journal, riders, answers);
            self.read(chunk, ours, ledger);
        }
    }

    fn read(&self, readers: &[AccountId], answers: Vec<Result<Answer>>, ledger: &mut Ledger) {
        let journal = self.journal;
        let mut due = Vec::new();
        let (mut delivered, mut skipped) = (0, 0);
        for (n, (reader, answer)) in readers.iter().zip(answers).enumerate() {
            let bucket = journal.tenant.bucket(*reader);
            let length = answer.and_then(|answer| {
                let epoch = answer.epoch.clone();
                Ok((answer.ok()?.count()?, epoch))
            });
            let length = match length {
                Ok((length, epoch)) => {
                    ledger.visited(bucket, &epoch);
                    length
                }
                // Also where a server has refused: of that nothing has to last.
                Err(e) => {
                    ledger.left(bucket, e);
                    continue;
                }
            };
            if length == 0 {
                skipped += 1;
                continue;
            }
            delivered += 1;
            if n % HOMES_PER_SAMPLE == 0 {
                meters::home_length(length);
            }
            if HomeFit::is_due(length) {
                due.push(*reader);
            }
        }
        journal.tasks.riders.tidy(&journal.tenant, &due);
        self.report(delivered, skipped);
    }
}

impl Visit for Parcel<'_> {
    fn piece(&self, [set, members]: [Vec<u8>; 2], piece: &PiecePlace) -> Request {
        let keys = self.journal.tenant.keys();
        let head = keys.home_head(piece.bucket());
        let command = functions::home_deliver(
            set,
            members,
            piece.leaf(),
            &head,
            &self.home_entry,
            self.journal.tenant.fit(),
        );
        // H34: never with ASKING: at the target of a moving slot a home that has not come yet looks like a dormant
        // reader.
        Request::write(keys.buckets().slot(piece.bucket()), command).unless_moving()
    }

    fn accounts<'s>(&'s self, accounts: &'s [AccountId], ledger: &'s mut Ledger) -> BoxFuture<'s, ()> {
        self.to_homes(accounts, ledger).boxed()
    }

    fn reached(&self, homes: u64, of: u64) {
        self.report(homes, of - homes);
    }
}
