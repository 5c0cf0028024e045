//! A round through all followers of an account: to deliver a post, or to tell them that they must pull.
//!
//! While the set is local its members are read, and visited in pipelines, node by node. Once it is spread, a follower's
//! edge lies beside everything else of it, and one call for each piece does it all inside the server.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::future::{BoxFuture, join_all};
use futures::stream;

use super::ledger::Ledger;
use crate::cluster::{Batch, Reply, Request, TouchedServers};
use crate::error::{Error, Result};
use crate::functions::VisitAnswer;
use crate::ids::AccountId;
use crate::journal::{JournalEntry, RoundPart, told_in_time, write_checkpoint};
use crate::sharded::{Checkpoint, PiecePlace, SortedSet};
use crate::tenant::Tenant;

/// Chunks under way at each primary at once: while one is answered, the next is on its way.
const CHUNKS_AT_ONCE: usize = 3;
/// Pieces in a chunk. A piece keeps a server busy for a third of a millisecond, and all that others want of it waits
/// for those that came before: docs/decisions/0033.
const PIECES_AT_ONCE: usize = 2;
/// Times that a bucket's pieces are followed through splits.
const SPLITS_MAX: usize = 64;
/// A checkpoint costs a fence: one for about so many buckets.
const BUCKETS_PER_CHECKPOINT: usize = 256;

/// A visit: what is done for each follower.
pub(crate) trait Visit: Sync {
    /// For all members of a piece, inside its server; answered as [`VisitAnswer`]. `keys`: of its set, and its own.
    fn piece(&self, keys: [Vec<u8>; 2], piece: &PiecePlace) -> Request;
    /// For these accounts, wherever they are. The ledger says who was visited, and who was not.
    fn accounts<'s>(&'s self, accounts: &'s [AccountId], ledger: &'s mut Ledger) -> BoxFuture<'s, ()>;
    /// A piece was visited: so many of its members were reached.
    fn reached(&self, reached: u64, of: u64);
}

/// A round for a journal entry, whose checkpoint says where it begins, and moves.
pub(crate) struct Round<'a, V> {
    pub(crate) tenant: &'a Tenant,
    pub(crate) author: AccountId,
    pub(crate) visit: &'a V,
}

impl<V: Visit> Round<'_, V> {
    /// Visits all that the entry's checkpoint leaves. What can't be visited the ledger has; an error: nothing was done.
    pub(crate) async fn run(&self, entry: &mut JournalEntry, ledger: &mut Ledger) -> Result<()> {
        let followers = self.tenant.followers(self.author)?;
        let part = RoundPart::of(&entry.checkpoint);
        let mut next = Some(Checkpoint::START);
        while let Some(from) = next {
            // Under another layout than the checkpoint's it starts over: `walk` begins with the first bucket.
            if followers.is_known_spread() || matches!(part, RoundPart::Behind(_)) {
                self.spread(entry, &followers, &part, ledger).await;
                return Ok(());
            }
            let mut said = TouchedServers::new();
            let (mut members, then) = followers.walk_members_said(from, &mut said).await?;
            // H120: one that was replaced doesn't know who has followed since.
            told_in_time(self.tenant, entry, &said).await?;
            // What is left goes by the bucket of each follower, so that it holds in both layouts.
            members.retain(|reader| part.has(self.tenant.bucket(*reader)));
            self.visit.accounts(&members, ledger).await;
            next = then;
        }
        Ok(())
    }

    /// Visits followers where edges and followers lie together: a call for each piece. Each primary has a lane of its
    /// own, so that one that is away holds up nobody; in the order of the buckets all have work at any time.
    async fn spread(
        &self,
        entry: &mut JournalEntry,
        followers: &SortedSet<AccountId>,
        part: &RoundPart,
        ledger: &mut Ledger,
    ) {
        let (router, buckets) = (self.tenant.router(), self.tenant.keys().buckets());
        let mut done = part.done(buckets);
        for some in part.buckets(buckets).chunks(BUCKETS_PER_CHECKPOINT) {
            let mut lanes: BTreeMap<u16, Vec<PiecePlace>> = BTreeMap::new();
            for bucket in some {
                let primary = router.node_number(buckets.slot(*bucket));
                lanes.entry(primary).or_default().extend(followers.part_pieces(*bucket));
            }
            let lanes = lanes.into_values().map(|pieces| self.lane(followers, pieces));
            join_all(lanes).await.into_iter().for_each(|lane| ledger.absorb(lane));
            done += u16::try_from(some.len()).unwrap_or_default();
            // Of what was left before there is no finer checkpoint; nor once something is left: all is written at the
            // end.
            if done < buckets.count() && !matches!(part, RoundPart::Left(_)) {
                self.note(entry, done, ledger).await;
            }
        }
    }

    /// Notes in the journal how far it came, if all of that lasts.
    async fn note(&self, entry: &mut JournalEntry, done: u16, ledger: &mut Ledger) {
        // H32: what lies behind a checkpoint nobody visits again.
        ledger.fence(self.tenant).await;
        if !ledger.is_settled() {
            return;
        }
        // Without it whoever goes on begins earlier.
        if let Err(e) = write_checkpoint(self.tenant, entry, &RoundPart::Behind(done).to_string()).await {
            tracing::debug!("a checkpoint could not be moved: {e}");
        }
    }

    /// Visits pieces of one primary, a few at a time; those of a bucket lie together, for so do its homes in the
    /// server's memory.
    async fn lane(&self, followers: &SortedSet<AccountId>, pieces: Vec<PiecePlace>) -> Ledger {
        let chunks = pieces.chunks(PIECES_AT_ONCE).map(<[PiecePlace]>::to_vec);
        let visits = chunks.map(|pieces| self.pieces(followers, pieces));
        stream::iter(visits)
            .buffer_unordered(CHUNKS_AT_ONCE)
            .fold(Ledger::default(), async |mut ledger, visited| {
                ledger.absorb(visited);
                ledger
            })
            .await
    }

    /// Visits all members of these pieces, and of what becomes of them.
    async fn pieces(&self, followers: &SortedSet<AccountId>, pieces: Vec<PiecePlace>) -> Ledger {
        let tenant = self.tenant;
        let mut ledger = Ledger::default();
        let mut open = pieces;
        for _ in 0..SPLITS_MAX {
            let visit = |piece: &PiecePlace| self.visit.piece(tenant.sets().piece_keys(piece), piece);
            let answers = tenant.router().run(open.iter().map(visit).collect::<Batch>()).await;
            let mut again = Vec::new();
            let mut plainly = Vec::new();
            for (piece, answer) in open.into_iter().zip(answers) {
                let bucket = piece.bucket();
                match answer {
                    Err(e) => ledger.left(bucket, e),
                    Ok(answer) if answer.is_moving() => plainly.push(bucket),
                    Ok(answer) => {
                        let epoch = answer.epoch.clone();
                        match self.read(followers, &piece, answer.ok()) {
                            Ok(heirs) => {
                                ledger.visited(bucket, &epoch);
                                again.extend(heirs);
                            }
                            Err(e) => ledger.left(bucket, e),
                        }
                    }
                }
            }
            plainly.sort_unstable();
            plainly.dedup();
            // H35: what the function had done before it met a key that has moved is done twice, which does no harm.
            for bucket in plainly {
                let mut said = TouchedServers::new();
                match followers.part_members(bucket, &mut said).await {
                    Ok(members) => {
                        // Also where nobody follows: one that was replaced may say so.
                        ledger.told(bucket, &said);
                        self.visit.accounts(&members, &mut ledger).await;
                    }
                    Err(e) => ledger.left(bucket, e),
                }
            }
            if again.is_empty() {
                return ledger;
            }
            open = again;
        }
        let why = "the author's followers were split at each of several looks; try again";
        open.iter().for_each(|piece| ledger.left(piece.bucket(), Error::unavailable(why)));
        ledger
    }

    /// Reads what a piece has answered: what it has become, if it is a piece no more.
    fn read(
        &self,
        followers: &SortedSet<AccountId>,
        piece: &PiecePlace,
        reply: Result<Reply>,
    ) -> Result<Vec<PiecePlace>> {
        match VisitAnswer::parse(reply?)? {
            VisitAnswer::Done { reached, members } => {
                self.visit.reached(reached, members);
                Ok(Vec::new())
            }
            VisitAnswer::Tree(tree) => {
                let heirs = self.tenant.sets().piece_heirs(piece, &tree)?;
                Ok(heirs.unwrap_or_else(|| followers.part_pieces(piece.bucket())))
            }
        }
    }
}
