//! Walking through a whole set, resumable: pieces in ascending order, and bucket after bucket once it is spread.
//!
//! A member that stays throughout is met at least once, whatever is split or spread meanwhile: members only move
//! to higher pieces, and each page names the next piece by the tree as it was after the page was read.

use std::fmt;
use std::str::FromStr;

use super::local::{LocalKey, Probe, Spot};
use super::set::read_scored;
use super::tree::hash;
use super::{Layout, Member, SortedSet};
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};

/// Pieces in one page of a walk.
const PIECES_MAX: usize = 64;
/// Pages in a row whose first piece was split before it could be read.
const TRIES_MAX: usize = 64;

/// Where a walk goes on: the first piece that is not read yet. Can be stored as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checkpoint(Place);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Local { piece: u32 },
    Spread { bucket: u16, piece: u32 },
}

impl Checkpoint {
    /// Where every walk begins.
    pub const START: Self = Self(Place::Local { piece: 0 });
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self::START
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Place::Local { piece } => write!(f, "local.{piece}"),
            Place::Spread { bucket, piece } => write!(f, "spread.{bucket}.{piece}"),
        }
    }
}

impl FromStr for Checkpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split('.').collect();
        let place = match parts.as_slice() {
            ["local", piece] => piece.parse().ok().map(|piece| Place::Local { piece }),
            ["spread", bucket, piece] => match (bucket.parse(), piece.parse()) {
                (Ok(bucket), Ok(piece)) => Some(Place::Spread { bucket, piece }),
                _ => None,
            },
            _ => None,
        };
        place.map(Self).ok_or_else(|| Error::invalid(format!("`{}` is no checkpoint of a walk", text.escape_default())))
    }
}

/// One page of a walk.
#[derive(Debug, Clone, PartialEq)]
pub struct Walk<M> {
    /// Members with their scores, in no order. A member may come again on a later page.
    pub entries: Vec<(M, f64)>,
    /// Hand it to the next call; `None`: the walk is over.
    pub next: Option<Checkpoint>,
}

impl<M: Member> SortedSet<M> {
    /// The next page of a walk, a few thousand members at most.
    pub async fn walk(&self, from: Checkpoint) -> Result<Walk<M>> {
        let mut place = from.0;
        for _ in 0..TRIES_MAX {
            if let (Place::Local { .. }, Layout::Spread) = (place, self.layout_known()) {
                place = Place::Spread { bucket: 0, piece: 0 };
            }
            let (sets, probes) = self.plan(place);
            let read = self.sets.probe(&sets, &probes, |key, _| walk_command(key)).await?;
            // Only once all that was local is read may the record say that there is nothing else.
            if let (Place::Local { .. }, Layout::Spread) = (place, self.layout_known()) {
                continue;
            }
            let done = read.iter().take_while(|reply| reply.is_some()).count();
            if done == 0 && !probes.is_empty() {
                continue;
            }
            let next = match probes.get(done) {
                Some(probe) => Some(self.place_of(&sets[probe.set], probe.spot.leaf().piece)),
                None => self.place_after(place, &sets, probes.last()),
            };
            let entries = probes.iter().zip(read).take(done).map(|(probe, reply)| read_piece(probe.spot, reply));
            let entries = entries.collect::<Result<Vec<_>>>()?.concat();
            return Ok(Walk { entries, next: next.map(Checkpoint) });
        }
        Err(super::local::overtaken())
    }

    /// The next pieces to read.
    fn plan(&self, place: Place) -> (Vec<LocalKey>, Vec<Probe>) {
        let (sets, piece): (Vec<LocalKey>, u32) = match place {
            Place::Local { piece } => (vec![self.home.clone()], piece),
            Place::Spread { bucket, piece } => {
                let buckets = self.sets.keys().buckets().all().skip(usize::from(bucket));
                (buckets.take(PIECES_MAX).map(|b| self.part(b)).collect(), piece)
            }
        };
        let mut probes = Vec::new();
        for (set, key) in sets.iter().enumerate() {
            let spots = self.sets.spots_from(key, if set == 0 { piece } else { 0 });
            probes.extend(spots.into_iter().map(|spot| Probe { set, spot, of: 0 }));
            if probes.len() >= PIECES_MAX {
                probes.truncate(PIECES_MAX);
                break;
            }
        }
        (sets, probes)
    }

    fn place_of(&self, set: &LocalKey, piece: u32) -> Place {
        match set.place {
            crate::keys::Place::Whole => Place::Local { piece },
            crate::keys::Place::Part => Place::Spread { bucket: set.bucket.index(), piece },
        }
    }

    /// What follows when everything planned was read, by the trees as they are now.
    fn place_after(&self, place: Place, sets: &[LocalKey], last: Option<&Probe>) -> Option<Place> {
        // No probe at all: the checkpoint lay behind the last piece of its set.
        let (set, piece) = last.map_or((&sets[0], u32::MAX), |p| (&sets[p.set], p.spot.leaf().piece));
        let behind = piece.checked_add(1).and_then(|piece| self.sets.tree(set)?.leaf_from(piece));
        match (behind, place) {
            (Some(leaf), _) => Some(self.place_of(set, leaf.piece)),
            (None, Place::Local { .. }) => None,
            (None, Place::Spread { .. }) => {
                let bucket = set.bucket.index() + 1;
                (bucket < self.sets.keys().buckets().count()).then_some(Place::Spread { bucket, piece: 0 })
            }
        }
    }
}

fn walk_command(key: &[u8]) -> Command {
    Command::new("ZRANGE").arg(key).arg("0").arg("-1").arg("WITHSCORES")
}

fn read_piece<M: Member>(spot: Spot, reply: Option<Reply>) -> Result<Vec<(M, f64)>> {
    let Some(reply) = reply else { return Ok(Vec::new()) };
    let entries = read_scored(reply)?.into_iter().filter(|e| spot.leaf().holds(hash(&e.member)));
    entries.map(|e| Ok((M::from_bytes(&e.member)?, e.score))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_survives_as_text() {
        for place in [Place::Local { piece: 7 }, Place::Spread { bucket: 1023, piece: 0 }] {
            assert_eq!(Checkpoint(place).to_string().parse::<Checkpoint>().unwrap(), Checkpoint(place));
        }
        for text in ["", "local", "local.x", "spread.1", "spread.70000.1", "spread.1.2.3"] {
            assert_eq!(text.parse::<Checkpoint>().unwrap_err().kind(), crate::ErrorKind::Invalid);
        }
    }
}
