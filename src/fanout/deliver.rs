//! Fan-out: bringing a post into the homes of its author's followers, in a [`Round`].

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::entry::{Entry, Recipients};
use super::progress::Reporter;
use super::riders;
use super::round::{Round, Visit};
use crate::cluster::{Batch, Command, Request, Touched};
use crate::context::Context;
use crate::error::Result;
use crate::functions::{self, HomeFit};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::Post;
use crate::rules;
use crate::sharded::PieceAt;
use crate::timeline::record_of;

/// The length of a home is measured at one of so many deliveries.
const HOMES_PER_SAMPLE: usize = 64;

/// A post on its way to homes.
struct Parcel<'a> {
    context: &'a Arc<Context>,
    record: [u8; 16],
    posted_ms: u64,
    reporter: &'a Reporter,
}

/// Delivers a post to all who are to have it; `entry.checkpoint` says where to begin, and moves. Tells whether these
/// were all followers, so that they are counted now.
pub(super) async fn run(
    context: &Arc<Context>,
    entry: &mut Entry,
    id: PostId,
    author: AccountId,
    reporter: &Reporter,
    touched: &mut Touched,
) -> Result<bool> {
    let started = Instant::now();
    let from_start = entry.checkpoint.is_empty();
    let parcel =
        Parcel { context, record: record_of(id.get(), author.get()), posted_ms: id.unix_ms(), reporter };
    let recipients = recipients(context, entry, id, author).await?;
    let counts = from_start && recipients == Recipients::Followers;
    match recipients {
        Recipients::Nobody => return Ok(false),
        // By id, nobody's edge looked up: the read filter decides.
        Recipients::Named(named) => parcel.to_homes(&named, touched).await?,
        Recipients::Followers => Round { context, author, visit: &parcel }.run(entry, touched).await?,
    }
    let progress = reporter.progress();
    meters::fanout(started.elapsed(), id.unix_ms(), progress.delivered, progress.skipped);
    Ok(counts)
}

async fn recipients(context: &Context, entry: &Entry, id: PostId, author: AccountId) -> Result<Recipients> {
    if let Some(recipients) = &entry.recipients {
        return Ok(recipients.clone());
    }
    let stored = context.router().call(context.post_request(id)).await?;
    if stored.is_nil() {
        return Ok(Recipients::Nobody);
    }
    let post = Post::parse(stored.bytes()?)?;
    // Of another author: the id was given twice, and the post that we were to deliver is lost.
    Ok(if post.header().author == author || !rules::holds("author_delivered") {
        Recipients::of(&post)
    } else {
        Recipients::Nobody
    })
}

impl Parcel<'_> {
    fn report(&self, delivered: u64, skipped: u64) {
        if delivered > 0 && self.reporter.progress().delivered == 0 {
            meters::first_delivery(self.posted_ms);
        }
        self.reporter.add(delivered, skipped);
    }

    /// Delivers to these homes, wherever they are.
    async fn to_homes(&self, readers: &[AccountId], touched: &mut Touched) -> Result<()> {
        let context = self.context;
        for chunk in readers.chunks(context.settings.fanout_chunk) {
            let slots = chunk.iter().map(|reader| context.slot(*reader));
            let riders = context.tasks.riders.take_along(context, slots);
            let mut batch = Batch::with_capacity(chunk.len() + riders.len());
            for reader in chunk {
                let command = Command::new("RPUSHX").arg(&context.keys().home(*reader)).arg(&self.record);
                batch.push(Request::write(context.slot(*reader), command));
            }
            for rider in &riders {
                batch.push(rider.request(context));
            }
            let mut answers = context.router().run(batch).await.into_iter();
            let ours: Vec<_> = answers.by_ref().take(chunk.len()).collect();
            riders::arrived(context, riders, answers);
            let mut due = Vec::new();
            let mut delivered = 0;
            for (n, (reader, answer)) in chunk.iter().zip(ours).enumerate() {
                let answer = answer?;
                touched.add(&answer);
                let length = answer.ok()?.count()?;
                delivered += u64::from(length > 0);
                if length > 0 && n % HOMES_PER_SAMPLE == 0 {
                    meters::home_length(length);
                }
                if HomeFit::is_due(length) {
                    due.push(*reader);
                }
            }
            context.tasks.riders.tidy(context, &due);
            self.report(delivered, chunk.len() as u64 - delivered);
        }
        Ok(())
    }
}

impl Visit for Parcel<'_> {
    fn piece(&self, [set, members]: [Vec<u8>; 2], piece: &PieceAt) -> Request {
        let keys = self.context.keys();
        let head = keys.home_head(piece.bucket());
        let command =
            functions::home_deliver(set, members, piece.leaf(), &head, &self.record, self.context.fit());
        Request::write(keys.buckets().slot(piece.bucket()), command).unless_moving()
    }

    fn accounts<'s>(
        &'s self,
        accounts: &'s [AccountId],
        touched: &'s mut Touched,
    ) -> BoxFuture<'s, Result<()>> {
        self.to_homes(accounts, touched).boxed()
    }

    fn reached(&self, homes: u64, of: u64) {
        self.report(homes, of - homes);
    }
}
