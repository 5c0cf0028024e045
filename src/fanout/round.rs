//! A round through all followers of an account: to deliver a post, or to tell them that they must pull.
//!
//! While the set is local its members are read, and visited in pipelines, node by node. Once it is spread, a follower's
//! edge lies beside everything else of it, and one call for each piece does it all inside the server.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;

use super::entry::Entry;
use crate::bucket::Bucket;
use crate::cluster::{Request, Touched};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::functions::{self, Visited};
use crate::ids::AccountId;
use crate::rules;
use crate::sharded::{Checkpoint, PieceAt, SortedSet};

/// Chunks of one round under way at once: while one is answered, the next is on its way.
const CHUNKS_AT_ONCE: usize = 3;
/// Times that a bucket's pieces are followed through splits.
const SPLITS_MAX: usize = 64;
/// A checkpoint costs a fence: one for about so many buckets.
const BUCKETS_PER_CHECKPOINT: usize = 256;

/// What is done for each follower.
pub(crate) trait Visit: Sync {
    /// For all members of a piece, inside its server; answered as [`Visited`]. `keys`: of its set, and its own.
    fn piece(&self, keys: [Vec<u8>; 2], piece: &PieceAt) -> Request;
    /// For these accounts, wherever they are.
    fn accounts<'s>(
        &'s self,
        accounts: &'s [AccountId],
        touched: &'s mut Touched,
    ) -> BoxFuture<'s, Result<()>>;
    /// A piece was visited: so many of its members were reached.
    fn reached(&self, reached: u64, of: u64);
}

/// A round for a journal entry, whose checkpoint says where it begins, and moves.
pub(crate) struct Round<'a, V> {
    pub(crate) context: &'a Context,
    pub(crate) author: AccountId,
    pub(crate) visit: &'a V,
}

impl<V: Visit> Round<'_, V> {
    pub(crate) async fn run(&self, entry: &mut Entry, touched: &mut Touched) -> Result<()> {
        let followers = self.context.followers(self.author)?;
        let mut next = match entry.checkpoint.as_str() {
            "" => Some(Checkpoint::START),
            text => Some(text.parse()?),
        };
        while let Some(from) = next {
            // Under another layout than the checkpoint's it starts over: `walk` begins with the first bucket.
            if followers.is_known_spread() || from.spread_bucket().is_some() {
                let first = from.spread_bucket().unwrap_or(0);
                return self.spread(entry, &followers, first, touched).await;
            }
            let (members, then) = followers.walk_members(from).await?;
            self.visit.accounts(&members, touched).await?;
            next = then;
        }
        Ok(())
    }

    /// Where edges and followers lie together: a call for each piece, a chunk of buckets at a time.
    async fn spread(
        &self,
        entry: &mut Entry,
        followers: &SortedSet<AccountId>,
        first: u16,
        touched: &mut Touched,
    ) -> Result<()> {
        let buckets: Vec<Bucket> = self.context.keys().buckets().all().skip(usize::from(first)).collect();
        for part in buckets.chunks(rules::size(BUCKETS_PER_CHECKPOINT, 1)) {
            let chunks: Vec<Vec<PieceAt>> = self.chunks(followers, part);
            let mut under_way = stream::iter(chunks.into_iter().map(|pieces| self.pieces(followers, pieces)))
                .buffer_unordered(CHUNKS_AT_ONCE);
            while let Some(done) = under_way.next().await {
                touched.extend(&done?);
            }
            drop(under_way);
            if let Some(next) = part.last().map(|b| b.index() + 1)
                && next < self.context.keys().buckets().count()
            {
                move_checkpoint(self.context, entry, Checkpoint::at_bucket(next), touched).await?;
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

    /// Visits all members of these pieces, and of what becomes of them.
    async fn pieces(&self, followers: &SortedSet<AccountId>, pieces: Vec<PieceAt>) -> Result<Touched> {
        let context = self.context;
        let mut touched = Touched::new();
        let mut open = pieces;
        for _ in 0..SPLITS_MAX {
            let answers = context
                .run_all(
                    open.iter()
                        .map(|piece| self.visit.piece(context.sets().piece_keys(piece), piece))
                        .collect(),
                )
                .await?;
            let mut again = Vec::new();
            let mut plainly = Vec::new();
            for (piece, answer) in open.into_iter().zip(answers) {
                touched.add(&answer);
                if answer.is_moving() {
                    plainly.push(piece.bucket());
                    continue;
                }
                match Visited::parse(answer.ok()?)? {
                    Visited::Done { reached, members } => self.visit.reached(reached, members),
                    Visited::Tree(tree) => match context.sets().piece_heirs(&piece, &tree)? {
                        Some(heirs) => again.extend(heirs),
                        None => again.extend(followers.part_pieces(piece.bucket())),
                    },
                }
            }
            plainly.sort_unstable();
            plainly.dedup();
            for bucket in plainly {
                let members = followers.part_members(bucket).await?;
                self.visit.accounts(&members, &mut touched).await?;
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
}

/// What was done so far is on replicas; whoever goes on begins behind it.
pub(crate) async fn move_checkpoint(
    context: &Context,
    entry: &mut Entry,
    to: Checkpoint,
    touched: &Touched,
) -> Result<()> {
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
