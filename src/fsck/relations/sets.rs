//! Sharded sets: members where nobody looks for them, trees that count wrong, spreading that has come to a halt, and
//! what splits and spreadings have left.

use std::fmt;
use std::sync::Arc;

use super::counts::AccountCounts;
use super::follows::FollowPair;
use super::outboxes::PostAt;
use super::ownerless::OwnerlessKey;
use crate::cluster::{Request, TouchedServers};
use crate::error::{Error, Result};
use crate::fsck::ask::{self, drop_set, exists, is_there, read, write};
use crate::fsck::key::{list_of, owner_of, root_bucket};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, ReadData, Relation, Unit, left_alone};
use crate::functions;
use crate::graph::Graph;
use crate::graph::drop_lists;
use crate::ids::AccountId;
use crate::journal::Matter;
use crate::keys::Place;
use crate::sharded::{LocalKey, SetState, Sight, SortedSet, Spot};
use crate::tenant::{Answers, Tenant};

/// A local set with all its members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LocalSet(pub(super) LocalKey);

/// The layout of a local set, whatever its members mean.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SetLayout(LocalKey);

/// A member where nobody looks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct MisplacedMember {
    set: LocalKey,
    spot: Spot,
    member: Vec<u8>,
}

/// A piece, and the set that should know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SetPiece(pub(super) LocalKey, pub(super) u32);

/// A guard, and whoever copies under it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CopyGuard(pub(super) LocalKey);

/// The local set in which a set begins.
fn root_of(tenant: &Tenant, set: &LocalKey) -> Result<LocalKey> {
    let unknown = || Error::internal(format!("a set is named {}", set.name.escape_ascii()));
    let bucket = root_bucket(tenant.keys(), &set.name).ok_or_else(unknown)?;
    Ok(LocalKey { place: Place::Whole, bucket, name: set.name.clone() })
}

/// Reads what the record says of the set that this is, or is a part of: how many members, and how far it is spread.
async fn state_of(tenant: &Tenant, set: &LocalKey) -> Result<(u64, SetState)> {
    let root = root_of(tenant, set)?;
    let count = functions::count(tenant.sets().key(&root));
    let slot = tenant.keys().buckets().slot(root.bucket);
    let (members, state) = functions::parse_count(tenant.router().call(Request::read(slot, count)).await?)?;
    let state = match state {
        b'G' => SetState::Spreading,
        b'C' => SetState::Copied,
        b'S' => SetState::Spread,
        _ => SetState::Local,
    };
    Ok((members, state))
}

/// Something about a set, found by what stands there, as far as that tells one from another.
fn found(kind: FindingKind, at: Unit, set: &LocalKey, detail: &[u8], what: impl fmt::Display) -> Deviation {
    let (name, owner) = (set.name.escape_ascii(), owner_of(&set.name));
    let named = owner.map(|(owner, what)| format!("the {} of {owner}", what.escape_ascii()));
    let named = named.unwrap_or_else(|| format!("set {name}"));
    let told = format!("{what}{named} in bucket {}", set.bucket);
    let excused_by = owner.map(|(owner, _)| Matter::Burial(owner)).into_iter().collect();
    Deviation { kind, at, detail: detail.into(), told, excused_by }
}

impl Relation for LocalSet {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let (mut seen, sight) = SetLayout(self.0.clone()).read(tenant).await?;
        seen.read = sight.map(|sight| ReadData::Set { set: self.0.clone(), sight });
        Ok(seen)
    }
}

impl Relation for SetLayout {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        self.read(tenant).await.map(|(seen, _)| seen)
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let Self(set) = self;
        let (sets, owner, list) = (tenant.sets(), owner_of(&set.name), list_of(&set.name));
        match (found.kind, list) {
            (FindingKind::TreeCountWrong, _) => {
                let sight = sets.sight(set).await?;
                sets.recount(set, &sight, true).await?;
                // The record of its owner repeats the number, or the post whose list it is.
                let owner = owner.map(|(owner, _)| Unit::of(AccountCounts(owner)));
                let post = list.map(|(post, _)| Unit::of(PostAt(post)));
                return Ok(owner.into_iter().chain(post).collect());
            }
            (FindingKind::ListOrphaned, Some((post, _))) => {
                drop_lists(tenant, &[post], &mut TouchedServers::new()).await?;
            }
            // Only of its own sets the engine knows what members are.
            _ if owner.is_none() && list.is_none() => return Err(left_alone()),
            _ => {
                let (members, state) = state_of(tenant, set).await?;
                let is_orphaned = found.kind == FindingKind::PartOrphaned;
                // Far from being spread, nobody will look into the parts soon. Else they become parts of it, and what
                // doesn't belong there is found by what it means.
                let never_spreads = list.is_some();
                if is_orphaned
                    && state == SetState::Local
                    && (never_spreads || members < sets.spread_at() / 2)
                {
                    drop_set(tenant, set).await?;
                } else {
                    let whole = SortedSet::<AccountId>::beginning_at(sets, &root_of(tenant, set)?);
                    whole.spread().await?;
                    return Ok(vec![Unit::of(LocalSet(set.clone()))]);
                }
            }
        }
        Ok(Vec::new())
    }
}

impl SetLayout {
    /// Also gives what was read, if its members count.
    async fn read(&self, tenant: &Tenant) -> Result<(Observation, Option<Sight>)> {
        let Self(set) = self;
        let (sets, owner, list) = (tenant.sets(), owner_of(&set.name), list_of(&set.name));
        if let Some((owner, _)) = owner
            && !is_there(tenant, owner).await?
        {
            return Ok((OwnerlessKey::orphan(sets.key(set), owner), None));
        }
        let of = |kind, detail: &[u8]| found(kind, Unit::of(self.clone()), set, detail, "");
        if let (Place::Whole, Some((post, _))) = (set.place, list) {
            let asked = [ask::request("EXISTS", &sets.key(set), &[]), tenant.posts().exists_request(post)];
            let mut answers = Answers::ordered(tenant, asked).await?;
            if answers.next()?.int()? == 1 && answers.next()?.int()? == 0 {
                // Whose the post was nobody knows any more.
                let excused_by = vec![Matter::ListsOf(post), Matter::AnyBurial];
                let found = Deviation { excused_by, ..of(FindingKind::ListOrphaned, b"") };
                return Ok(([found].into(), None));
            }
        }
        let mut counts = true;
        if set.place == Place::Part {
            match state_of(tenant, set).await?.1 {
                SetState::Local => {
                    let is_left = exists(tenant, &sets.key(set)).await?;
                    return Ok((is_left.then(|| of(FindingKind::PartOrphaned, b"")).into(), None));
                }
                // Copies that somebody is making.
                SetState::Spreading => counts = false,
                SetState::Copied | SetState::Spread => {}
            }
        }
        let sight = sets.sight(set).await?;
        let mut found = self.misplaced(tenant, &sight);
        if sight.has_leftovers() {
            found.push(of(FindingKind::SpreadLeftover, b""));
        }
        if matches!(sight.state(), SetState::Spreading | SetState::Copied) {
            found.push(of(FindingKind::SpreadHalted, sight.stored.as_deref().unwrap_or_default()));
        }
        if sight.seems_miscounted()
            && let Some((told, members)) = sets.recount(set, &sight, false).await?
            && told != members
        {
            found.push(of(FindingKind::TreeCountWrong, &told.wrapping_sub(members).to_be_bytes()));
        }
        Ok((found.into(), counts.then_some(sight)))
    }

    /// Members in a piece that their hash doesn't lead to, or in a part that their bucket doesn't.
    fn misplaced(&self, tenant: &Tenant, sight: &Sight) -> Vec<Deviation> {
        let Self(set) = self;
        let is_ours = owner_of(&set.name).is_some() || list_of(&set.name).is_some();
        let is_elsewhere = |member: &[u8]| {
            let bucket = AccountId::from_bytes(member).ok().map(|id| tenant.keys().bucket_of(id));
            is_ours && set.place == Place::Part && bucket != Some(set.bucket)
        };
        let misplaced = sight.members().filter(|(_, entry, belongs)| !belongs || is_elsewhere(&entry.member));
        let misplaced = misplaced.map(|(spot, entry, _)| {
            let what = format!("member {} of ", entry.member.escape_ascii());
            let at = MisplacedMember { set: set.clone(), spot, member: entry.member.clone() };
            found(FindingKind::MemberMisplaced, Unit::of(at), set, b"", what)
        });
        misplaced.collect()
    }
}

impl Relation for MisplacedMember {
    async fn look(&self, _: &Tenant) -> Result<Observation> {
        Ok(Observation::units([SetLayout(self.set.clone())]))
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        let Self { set, spot, member } = self;
        graph.tenant.sets().remove_at(set, *spot, member).await?;
        let pair = match (AccountId::from_bytes(member), owner_of(&set.name)) {
            (Ok(reader), Some((author, b"followers"))) => Some(Unit::of(FollowPair { reader, author })),
            _ => None,
        };
        Ok(pair.into_iter().chain([Unit::of(SetLayout(set.clone()))]).collect())
    }
}

impl Relation for SetPiece {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(set, piece) = self;
        let kind = match tenant.sets().knows_piece(set, *piece).await? {
            Some(true) => return Ok(Observation::default()),
            Some(false) => FindingKind::PieceOrphaned,
            None => FindingKind::SpreadLeftover,
        };
        let is_left = exists(tenant, &tenant.keys().piece(set.place, set.bucket, &set.name, *piece)).await?;
        let what = format!("piece {piece:x} of ");
        Ok(is_left.then(|| found(kind, Unit::of(self.clone()), set, b"", what)).into())
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        graph.tenant.sets().drop_piece(&self.0, self.1).await.map(|()| Vec::new())
    }
}

impl Relation for CopyGuard {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(set) = self;
        let value = read(tenant, "GET", &tenant.keys().guard(set.bucket, &set.name), &[]).await?;
        if value.is_nil() || state_of(tenant, set).await?.1 == SetState::Spreading {
            return Ok(Observation::default());
        }
        Ok([found(FindingKind::GuardLeft, Unit::of(self.clone()), set, value.bytes()?, "")].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let guard = graph.tenant.keys().guard(self.0.bucket, &self.0.name);
        write(&graph.tenant, &guard, functions::string_drop(guard.clone(), &found.detail)).await?;
        Ok(Vec::new())
    }
}
