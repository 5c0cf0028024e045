//! Fan-out: bringing a post into the homes of its author's followers.
//!
//! Followers in one slot are read, and their homes pushed to in pipelines, node by node. Once the set is spread, a
//! follower's edge lies beside its home, and one call for each piece does it all inside the server.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt as _;
use futures::stream;

use super::entry::{Entry, Recipients};
use super::progress::Reporter;
use crate::bucket::Bucket;
use crate::cluster::{Batch, Command, Request, Touched};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::functions::{self, Delivered};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::Post;
use crate::rules;
use crate::sharded::{Checkpoint, PieceAt, SortedSet};
use crate::timeline::record_of;

/// Homes tidied in one batch.
const TIDIES_AT_ONCE: usize = 256;
/// Chunks of one large fan-out under way at once: while one is answered, the next is on its way.
const CHUNKS_AT_ONCE: usize = 3;
/// Rounds in which a bucket's pieces are followed through splits.
const ROUNDS_MAX: usize = 64;
/// The length of a home is measured at one of so many deliveries.
const HOMES_PER_SAMPLE: usize = 64;
/// A checkpoint costs a fence: one for about so many buckets.
const BUCKETS_PER_CHECKPOINT: usize = 256;

/// Gives all homes a watermark that are due for one; a lost one does no harm.
pub(super) async fn tidy_all(context: &Context) {
    loop {
        let homes = context.tasks.tidies.take(TIDIES_AT_ONCE);
        if homes.is_empty() {
            return;
        }
        context.router().run(homes.into_iter().map(|home| tidy(context, home)).collect()).await;
    }
}

fn tidy(context: &Context, reader: AccountId) -> Request {
    Request::write(context.slot(reader), functions::home_tidy(context.keys().home(reader), context.fit()))
}

/// A post on its way to homes.
struct Parcel<'a> {
    context: &'a Context,
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
        Recipients::Followers => parcel.to_followers(entry, author, touched).await?,
    }
    let progress = reporter.progress();
    meters::fanout(started.elapsed(), id.unix_ms(), progress.delivered, progress.skipped);
    Ok(counts)
}

async fn recipients(context: &Context, entry: &Entry, id: PostId, author: AccountId) -> Result<Recipients> {
    if let Some(recipients) = &entry.recipients {
        return Ok(recipients.clone());
    }
    let command = Command::new("GET").arg(&context.keys().post(id));
    let buckets = context.keys().buckets();
    let stored = context.router().call(Request::read(buckets.slot(id.bucket(buckets)), command)).await?;
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

    async fn to_followers(&self, entry: &mut Entry, author: AccountId, touched: &mut Touched) -> Result<()> {
        let followers = self.context.followers(author)?;
        let mut next = match entry.checkpoint.as_str() {
            "" => Some(Checkpoint::START),
            text => Some(text.parse()?),
        };
        while let Some(from) = next {
            // Under another layout than the checkpoint's it starts over: `walk` begins with the first bucket.
            if followers.is_known_spread() || from.spread_bucket().is_some() {
                let first = from.spread_bucket().unwrap_or(0);
                return self.to_spread(entry, &followers, first, touched).await;
            }
            let (members, then) = followers.walk_members(from).await?;
            self.to_homes(&members, touched).await?;
            next = then;
        }
        Ok(())
    }

    /// Delivers to these homes, wherever they are.
    async fn to_homes(&self, readers: &[AccountId], touched: &mut Touched) -> Result<()> {
        let context = self.context;
        for chunk in readers.chunks(context.settings.fanout_chunk) {
            let mut batch = Batch::with_capacity(chunk.len() + TIDIES_AT_ONCE);
            for reader in chunk {
                let command = Command::new("RPUSHX").arg(&context.keys().home(*reader)).arg(&self.record);
                batch.push(Request::write(context.slot(*reader), command));
            }
            // What other fan-outs have left to tidy goes along: alone it would cost each node a system call.
            for home in context.tasks.tidies.take(TIDIES_AT_ONCE) {
                batch.push(tidy(context, home));
            }
            let fit = context.fit();
            let mut due = Vec::new();
            let mut delivered = 0;
            for (n, (reader, answer)) in chunk.iter().zip(context.router().run(batch).await).enumerate() {
                let answer = answer?;
                touched.add(&answer);
                let length = answer.ok()?.count()?;
                delivered += u64::from(length > 0);
                if length > 0 && n % HOMES_PER_SAMPLE == 0 {
                    meters::home_length(length);
                }
                if length > 0 && fit.is_due(length) {
                    due.push(*reader);
                }
            }
            context.tasks.tidies.add(due);
            self.report(delivered, chunk.len() as u64 - delivered);
        }
        Ok(())
    }

    /// Delivers where edges and homes lie together: a call for each piece, a chunk of buckets at a time.
    async fn to_spread(
        &self,
        entry: &mut Entry,
        followers: &SortedSet<AccountId>,
        first: u16,
        touched: &mut Touched,
    ) -> Result<()> {
        let buckets: Vec<Bucket> = self.context.keys().buckets().all().skip(usize::from(first)).collect();
        for part in buckets.chunks(rules::size(BUCKETS_PER_CHECKPOINT, 1)) {
            let chunks: Vec<Vec<PieceAt>> = self.chunks(followers, part);
            let mut under_way =
                stream::iter(chunks.into_iter().map(|pieces| self.to_pieces(followers, pieces)))
                    .buffer_unordered(CHUNKS_AT_ONCE);
            while let Some(done) = under_way.next().await {
                touched.extend(&done?);
            }
            drop(under_way);
            if let Some(next) = part.last().map(|b| b.index() + 1)
                && next < self.context.keys().buckets().count()
            {
                self.move_checkpoint(entry, Checkpoint::at_bucket(next), touched).await?;
            }
        }
        Ok(())
    }

    /// The pieces of these buckets, in chunks of about so many followers.
    fn chunks(&self, followers: &SortedSet<AccountId>, buckets: &[Bucket]) -> Vec<Vec<PieceAt>> {
        let per_chunk = (self.context.settings.fanout_chunk / 96).max(1);
        let pieces: Vec<PieceAt> = buckets.iter().flat_map(|b| followers.part_pieces(*b)).collect();
        pieces.chunks(per_chunk).map(<[PieceAt]>::to_vec).collect()
    }

    /// What was delivered so far is on replicas; whoever goes on begins behind it.
    async fn move_checkpoint(&self, entry: &mut Entry, to: Checkpoint, touched: &Touched) -> Result<()> {
        let context = self.context;
        if rules::holds("fence_checkpoint") {
            context.router().fence(touched).await?;
        }
        let to = to.to_string();
        let journal = context.keys().journal(entry.bucket);
        let command = functions::journal_mark(journal, &entry.id, &entry.owner, entry.task.stored_len(), &to);
        let slot = context.keys().buckets().slot(entry.bucket);
        // Struck or claimed by somebody else meanwhile: then our going on does no harm either.
        context.router().call(Request::write(slot, command)).await?;
        entry.checkpoint = to;
        Ok(())
    }

    /// Delivers to all members of these pieces, and of what becomes of them.
    async fn to_pieces(&self, followers: &SortedSet<AccountId>, pieces: Vec<PieceAt>) -> Result<Touched> {
        let context = self.context;
        let mut touched = Touched::new();
        let mut open = pieces;
        for _ in 0..ROUNDS_MAX {
            let answers = context.run_all(open.iter().map(|piece| self.request(piece)).collect()).await?;
            let mut again = Vec::new();
            let mut plainly = Vec::new();
            for (piece, answer) in open.into_iter().zip(answers) {
                touched.add(&answer);
                if answer.is_moving() {
                    plainly.push(piece.bucket());
                    continue;
                }
                match Delivered::parse(answer.ok()?)? {
                    Delivered::Done { delivered, members } => {
                        self.report(delivered, members - delivered);
                    }
                    Delivered::Tree(tree) => match context.sets().piece_heirs(&piece, &tree)? {
                        Some(heirs) => again.extend(heirs),
                        None => again.extend(followers.part_pieces(piece.bucket())),
                    },
                }
            }
            plainly.sort_unstable();
            plainly.dedup();
            for bucket in plainly {
                let members = followers.part_members(bucket).await?;
                self.to_homes(&members, &mut touched).await?;
            }
            if again.is_empty() {
                return Ok(touched);
            }
            open = again;
        }
        Err(Error::unavailable(
            "the author's followers were split again and again while they were gone through",
        ))
    }

    fn request(&self, piece: &PieceAt) -> Request {
        let context = self.context;
        let [set, members] = context.sets().piece_keys(piece);
        let head = context.keys().home_head(piece.bucket());
        let command = functions::home_deliver(set, members, piece.leaf(), &head, &self.record, context.fit());
        Request::write(context.keys().buckets().slot(piece.bucket()), command).unless_moving()
    }
}
