//! Walking through a whole set, resumable: pieces in ascending order, and bucket after bucket once it is spread.
//!
//! A member that stays throughout is met at least once, whatever is split or spread meanwhile: members only move
//! to higher pieces, and a piece counts as read only if it was a leaf of the tree still after it was read.

use std::fmt;
use std::str::FromStr;

use super::local::{LocalKey, Probe, Spot, Trees};
use super::set::read_scored;
use super::tree::hash;
use super::{Layout, Member, SortedSet};
use crate::cluster::{Command, Reply, TouchedServers};
use crate::error::{Error, Result};

/// Pieces in one page of a walk.
const PIECES_PER_PAGE: usize = 64;
/// Pages in a row whose first piece was split before it could be read.
const TRIES_MAX: usize = 64;

/// The place where a walk goes on: the first piece that is not read yet. Can be stored as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checkpoint(WalkPosition);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum WalkPosition {
    Local { piece: u32 },
    Spread { bucket: u16, piece: u32 },
}

impl WalkPosition {
    /// The place where the walk through the parts begins.
    const SPREAD: Self = Self::Spread { bucket: 0, piece: 0 };
}

impl Checkpoint {
    /// The place where every walk begins.
    pub const START: Self = Self(WalkPosition::Local { piece: 0 });

    /// The bucket where it goes on, if the set was spread.
    pub(crate) fn spread_bucket(self) -> Option<u16> {
        match self.0 {
            WalkPosition::Local { .. } => None,
            WalkPosition::Spread { bucket, .. } => Some(bucket),
        }
    }
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self::START
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WalkPosition::Local { piece } => write!(f, "local.{piece}"),
            WalkPosition::Spread { bucket, piece } => write!(f, "spread.{bucket}.{piece}"),
        }
    }
}

impl FromStr for Checkpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split('.').collect();
        let place = match parts.as_slice() {
            ["local", piece] => piece.parse().ok().map(|piece| WalkPosition::Local { piece }),
            ["spread", bucket, piece] => match (bucket.parse(), piece.parse()) {
                (Ok(bucket), Ok(piece)) => Some(WalkPosition::Spread { bucket, piece }),
                _ => None,
            },
            _ => None,
        };
        place.map(Self).ok_or_else(|| {
            Error::invalid(format!("`{}` is not a checkpoint of a walk", text.escape_default()))
        })
    }
}

/// One page of a walk.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkPage<M> {
    /// Members with their scores, in no order. A member may come again on a later page.
    pub entries: Vec<(M, f64)>,
    /// Hand it to the next call; `None`: the walk is over.
    pub next: Option<Checkpoint>,
}

impl<M: Member> SortedSet<M> {
    /// The next page of a walk, a few thousand members at most.
    pub async fn walk(&self, from: Checkpoint) -> Result<WalkPage<M>> {
        self.walk_said(from, &mut TouchedServers::new()).await
    }

    /// Reads the next page of a walk, and notes which servers have said so.
    pub(crate) async fn walk_said(&self, from: Checkpoint, said: &mut TouchedServers) -> Result<WalkPage<M>> {
        let (pieces, next) = self.walk_pieces(from, walk_command, said).await?;
        let entries = pieces.into_iter().map(|(spot, reply)| read_piece(spot, reply));
        Ok(WalkPage { entries: entries.collect::<Result<Vec<_>>>()?.concat(), next })
    }

    /// Reads the next page of a walk without scores, whose digits cost a server more than all the rest.
    pub(crate) async fn walk_members(&self, from: Checkpoint) -> Result<(Vec<M>, Option<Checkpoint>)> {
        self.walk_members_said(from, &mut TouchedServers::new()).await
    }

    /// Reads the next page of a walk without scores, and notes which servers have said so.
    pub(crate) async fn walk_members_said(
        &self,
        from: Checkpoint,
        said: &mut TouchedServers,
    ) -> Result<(Vec<M>, Option<Checkpoint>)> {
        let (pieces, next) = self.walk_pieces(from, range_command, said).await?;
        let members = pieces.into_iter().map(|(spot, reply)| read_members(spot, reply));
        Ok((members.collect::<Result<Vec<_>>>()?.concat(), next))
    }

    /// The next pieces, as `command` answers for each.
    async fn walk_pieces(
        &self,
        from: Checkpoint,
        command: impl Fn(&[u8]) -> Command,
        said: &mut TouchedServers,
    ) -> Result<(Vec<(Spot, Reply)>, Option<Checkpoint>)> {
        let buckets = self.sets.keys().buckets();
        if let WalkPosition::Spread { bucket, .. } = from.0
            && buckets.get(bucket).is_none()
        {
            return Err(Error::invalid(format!(
                "checkpoint {from} names a bucket that isn't there: this tenant has {}",
                buckets.count()
            )));
        }
        let mut place = match (from.0, self.layout_known()) {
            (WalkPosition::Local { .. }, Layout::Spread) => WalkPosition::SPREAD,
            (place, _) => place,
        };
        let (mut sets, mut trees) = self.sets_from(place);
        for _ in 0..TRIES_MAX {
            let probes = plan(&trees, place);
            let command = |key: &[u8], _| command(key);
            let read = self.sets.probe(&sets, &mut trees, &probes, command, Some(said)).await?;
            // Only once all that was local is read may the record say that there is nothing else.
            let is_spread = trees[0].as_ref().is_some_and(|tree| tree.is_spread());
            if is_spread && matches!(place, WalkPosition::Local { .. }) {
                place = WalkPosition::SPREAD;
                (sets, trees) = self.sets_from(place);
                continue;
            }
            let done = read.iter().take_while(|reply| reply.is_some()).count();
            if done == 0 && !probes.is_empty() {
                continue;
            }
            let next = match probes.get(done) {
                Some(probe) => Some(place_of(&sets[probe.set], probe.spot.leaf().piece)),
                None => self.place_after(place, &sets, &trees, probes.last()),
            };
            let read = probes.iter().zip(read).map_while(|(probe, reply)| Some((probe.spot, reply?)));
            return Ok((read.collect(), next.map(Checkpoint)));
        }
        Err(super::local::overtaken())
    }

    /// The sets that a page from `place` on may need, and what is known of their trees.
    fn sets_from(&self, place: WalkPosition) -> (Vec<LocalKey>, Trees) {
        let sets: Vec<LocalKey> = match place {
            WalkPosition::Local { .. } => vec![self.home.clone()],
            WalkPosition::Spread { bucket, .. } => {
                let buckets = self.sets.keys().buckets().all().skip(usize::from(bucket));
                buckets.take(PIECES_PER_PAGE).map(|b| self.part(b)).collect()
            }
        };
        let trees = self.sets.trees_of(&sets);
        (sets, trees)
    }

    /// The place that follows when everything planned was read, by the trees as they were when it was planned: what has
    /// been split since is told by the next page.
    fn place_after(
        &self,
        place: WalkPosition,
        sets: &[LocalKey],
        trees: &Trees,
        last: Option<&Probe>,
    ) -> Option<WalkPosition> {
        // No probe at all: the checkpoint lay behind the last piece of its set.
        let (set, piece) = last.map_or((0, u32::MAX), |p| (p.set, p.spot.leaf().piece));
        let behind = piece.checked_add(1).and_then(|piece| trees[set].as_ref()?.leaf_from(piece));
        match (behind, place) {
            (Some(leaf), _) => Some(place_of(&sets[set], leaf.piece)),
            (None, WalkPosition::Local { .. }) => None,
            (None, WalkPosition::Spread { .. }) => {
                let bucket = sets[set].bucket.index() + 1;
                (bucket < self.sets.keys().buckets().count())
                    .then_some(WalkPosition::Spread { bucket, piece: 0 })
            }
        }
    }
}

/// The next pieces to read.
fn plan(trees: &Trees, place: WalkPosition) -> Vec<Probe> {
    let (WalkPosition::Local { piece } | WalkPosition::Spread { piece, .. }) = place;
    let mut probes = Vec::new();
    // From its beginning where the tree is not known (it then turns out not to be small), and where a failover that
    // lost a split has brought members back into lower pieces.
    let from = match trees[0].as_deref() {
        Some(tree) if tree.has_piece(piece) => piece,
        _ => 0,
    };
    for (set, tree) in trees.iter().enumerate() {
        let spots = Spot::all_from(tree.as_deref(), if set == 0 { from } else { 0 });
        probes.extend(spots.into_iter().map(|spot| Probe { set, spot, of: 0 }));
        if probes.len() >= PIECES_PER_PAGE {
            break;
        }
    }
    probes.truncate(PIECES_PER_PAGE);
    probes
}

fn place_of(set: &LocalKey, piece: u32) -> WalkPosition {
    match set.place {
        crate::keys::Place::Whole => WalkPosition::Local { piece },
        crate::keys::Place::Part => WalkPosition::Spread { bucket: set.bucket.index(), piece },
    }
}

fn range_command(key: &[u8]) -> Command {
    Command::new("ZRANGE").arg(key).arg("0").arg("-1")
}

fn walk_command(key: &[u8]) -> Command {
    range_command(key).arg("WITHSCORES")
}

fn read_piece<M: Member>(spot: Spot, reply: Reply) -> Result<Vec<(M, f64)>> {
    let entries = read_scored(reply)?.into_iter().filter(|e| spot.leaf().holds(hash(&e.member)));
    entries.map(|e| Ok((M::from_bytes(&e.member)?, e.score))).collect()
}

/// Members of a piece, without those that a split which broke off has left there.
pub(super) fn read_members<M: Member>(spot: Spot, reply: Reply) -> Result<Vec<M>> {
    let mut members = Vec::new();
    for member in reply.into_array()? {
        let member = member.bytes()?;
        if spot.leaf().holds(hash(member)) {
            members.push(M::from_bytes(member)?);
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_survives_as_text() {
        for place in [WalkPosition::Local { piece: 7 }, WalkPosition::Spread { bucket: 1023, piece: 0 }] {
            assert_eq!(Checkpoint(place).to_string().parse::<Checkpoint>().unwrap(), Checkpoint(place));
        }
        for text in ["", "local", "local.x", "spread.1", "spread.70000.1", "spread.1.2.3"] {
            assert_eq!(text.parse::<Checkpoint>().unwrap_err().kind(), crate::ErrorKind::Invalid);
        }
    }
}
