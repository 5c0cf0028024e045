//! A round through all followers of an account: to deliver a post, or to tell them that they must pull.
//!
//! While the set is local its members are read, and visited in pipelines, node by node. Once it is spread, a follower's
//! edge lies beside everything else of it, and one call for each piece does it all inside the server.

use std::collections::BTreeMap;

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
/// Pieces in a chunk for each primary. A piece keeps a server busy for a third of a millisecond, and all that others
/// want of it waits for those that came before: docs/decisions/0033.
const PIECES_PER_PRIMARY: usize = 2;
/// Times that a bucket's pieces are followed through splits.
const SPLITS_MAX: usize = 64;
/// A checkpoint costs a fence: one for about so many buckets.
const BUCKETS_PER_CHECKPOINT: usize = 256;
/// How the checkpoint of a round begins; behind it stands how many buckets are done, in the order of
/// [`Buckets::strewn`](crate::bucket::Buckets::strewn).
const CHECKPOINT: &str = "round.";

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
        let done = buckets_done(&entry.checkpoint);
        let mut next = Some(Checkpoint::START);
        while let Some(from) = next {
            // Under another layout than the checkpoint's it starts over: `walk` begins with the first bucket.
            if followers.is_known_spread() || done.is_some() {
                return self.spread(entry, &followers, done.unwrap_or(0), touched).await;
            }
            let (members, then) = followers.walk_members(from).await?;
            self.visit.accounts(&members, touched).await?;
            next = then;
        }
        Ok(())
    }

    /// Where edges and followers lie together: a call for each piece, a chunk of pieces at a time.
    async fn spread(
        &self,
        entry: &mut Entry,
        followers: &SortedSet<AccountId>,
        done: u16,
        touched: &mut Touched,
    ) -> Result<()> {
        let (router, buckets) = (self.context.router(), self.context.keys().buckets());
        let primary = |bucket| router.node_number(buckets.slot(bucket));
        let mut done = usize::from(done);
        let open: Vec<Bucket> = buckets.strewn().skip(done).collect();
        for part in open.chunks(rules::size(BUCKETS_PER_CHECKPOINT, 1)) {
            let pieces = by_turns(part.iter().map(|b| (primary(*b), followers.part_pieces(*b))));
            let chunk = router.primaries().len().max(1) * PIECES_PER_PRIMARY;
            let chunks = pieces.chunks(chunk).map(<[PieceAt]>::to_vec);
            let mut under_way = stream::iter(chunks.map(|pieces| self.pieces(followers, pieces)))
                .buffer_unordered(CHUNKS_AT_ONCE);
            while let Some(visited) = under_way.next().await {
                touched.extend(&visited?);
            }
            drop(under_way);
            done += part.len();
            if done < usize::from(buckets.count()) {
                move_checkpoint(self.context, entry, format!("{CHECKPOINT}{done}"), touched).await?;
            }
        }
        Ok(())
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

/// The first piece of each primary, then the second of each, and so on; the pieces of a bucket stay together, for its
/// homes lie together in the server's memory.
fn by_turns<T>(buckets: impl Iterator<Item = (u16, Vec<T>)>) -> Vec<T> {
    let mut primaries: BTreeMap<u16, Vec<T>> = BTreeMap::new();
    for (primary, pieces) in buckets {
        primaries.entry(primary).or_default().extend(pieces);
    }
    let mut ranked: Vec<(usize, T)> =
        primaries.into_values().flat_map(|p| p.into_iter().enumerate()).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, piece)| piece).collect()
}

/// Through how many buckets a round has gone that left this checkpoint. `None`: it had not begun with them, or this is
/// not the checkpoint of a round. It starts over then, which is right, too.
pub(crate) fn buckets_done(checkpoint: &str) -> Option<u16> {
    checkpoint.strip_prefix(CHECKPOINT)?.parse().ok()
}

/// What was done so far is on replicas; whoever goes on begins behind it.
pub(crate) async fn move_checkpoint(
    context: &Context,
    entry: &mut Entry,
    to: String,
    touched: &Touched,
) -> Result<()> {
    if rules::holds("fence_checkpoint") {
        context.router().fence(touched).await?;
    }
    let journal = context.keys().journal(entry.bucket);
    let command = functions::journal_mark(journal, &entry.id, &entry.owner, entry.task.stored_len(), &to);
    let slot = context.keys().buckets().slot(entry.bucket);
    // Struck or claimed by somebody else meanwhile: then our going on does no harm either.
    context.router().call(Request::write(slot, command)).await?;
    entry.checkpoint = to;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Buckets;

    #[test]
    fn chunks_are_for_all_primaries_alike_however_many_pieces_buckets_have() {
        let buckets = Buckets::default();
        let order: Vec<Bucket> = buckets.strewn().collect();
        for primaries in [3, 5, 9] {
            let slots = 16_384_u16.div_ceil(primaries);
            for (part, pieces) in order.chunks(BUCKETS_PER_CHECKPOINT).zip([1, 3, 7, 12]) {
                let of_primary = |bucket| buckets.slot(bucket) / slots;
                let turns = by_turns(part.iter().map(|b| (of_primary(*b), vec![of_primary(*b); pieces])));
                assert_eq!(turns.len(), BUCKETS_PER_CHECKPOINT * pieces);
                let chunks = turns.chunks(usize::from(primaries) * PIECES_PER_PRIMARY);
                // In the end only those are left that have a bucket more than others.
                let most = chunks.len() * 9 / 10;
                for chunk in chunks.take(most) {
                    let of = |primary| chunk.iter().filter(|one| **one == primary).count();
                    assert!((0..primaries).all(|primary| of(primary) == PIECES_PER_PRIMARY), "{chunk:?}");
                }
            }
        }
    }

    #[test]
    fn only_the_checkpoint_of_a_round_says_how_far_it_came() {
        assert_eq!(buckets_done("round.256"), Some(256));
        for other in ["", "round.", "round.-1", "round.65536", "local.0", "spread.256.0"] {
            assert_eq!(buckets_done(other), None, "{other}");
        }
    }
}
