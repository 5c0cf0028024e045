//! Sharded sets: members where nobody looks for them, trees that count wrong, spreading that has come to a halt, and
//! what splits and spreadings have left.

use super::deviation::{Deviation, FindingKind};
use super::key::{list_named, list_of, owner_of, root_bucket};
use super::look::{Seen, is_there};
use super::{lists, named, pairs, ties};
use crate::bucket::Bucket;
use crate::cluster::{Command, Request};
use crate::error::{Error, Result};
use crate::functions;
use crate::ids::AccountId;
use crate::keys::Place;
use crate::sharded::{LocalKey, Scored, Sight, Spot, State};
use crate::tenant::Tenant;

/// The local set in which a set begins.
pub(super) fn root_of(tenant: &Tenant, set: &LocalKey) -> Result<LocalKey> {
    let unknown = || Error::internal(format!("a set is named {}", set.name.escape_ascii()));
    let bucket = root_bucket(tenant.keys(), &set.name).ok_or_else(unknown)?;
    Ok(LocalKey { place: Place::Whole, bucket, name: set.name.clone() })
}

/// What the record of a set says.
pub(super) async fn state_of(tenant: &Tenant, root: &LocalKey) -> Result<(u64, State)> {
    let count = functions::count(tenant.sets().key(root));
    let slot = tenant.keys().buckets().slot(root.bucket);
    let (members, state) = functions::parse_count(tenant.router().call(Request::read(slot, count)).await?)?;
    Ok((
        members,
        match state {
            b'G' => State::Spreading,
            b'C' => State::Copied,
            b'S' => State::Spread,
            _ => State::Local,
        },
    ))
}

/// Looks at a local set and at what its members mean.
pub(super) async fn set(tenant: &Tenant, set: &LocalKey) -> Result<Seen> {
    let (seen, sight) = structure(tenant, set).await?;
    let Some(sight) = sight else { return Ok(seen) };
    let members: Vec<(Spot, &Scored)> =
        sight.members().filter(|(.., belongs)| *belongs).map(|(spot, entry, _)| (spot, entry)).collect();
    if let Some(list) = list_named(&set.name) {
        return Ok(seen.and(named::members(tenant, list, &members).await?));
    }
    Ok(seen.and(match owner_of(&set.name) {
        Some((owner, b"followers")) => pairs::edges(tenant, owner, &members).await?,
        Some((owner, b"following")) => {
            let authors = members.iter().map(|(_, entry)| AccountId::from_bytes(&entry.member));
            Seen::of(pairs::pairs(tenant, owner, &authors.collect::<Result<Vec<_>>>()?).await?)
        }
        Some((owner, b"likes")) => ties::likes(tenant, owner, &members).await?,
        Some((owner, b"bookmarks")) => ties::bookmarks(tenant, owner, &members).await?,
        Some((owner, b"reposts")) => ties::reposts(tenant, owner, &members).await?,
        Some(_) => Seen::default(),
        None => lists::members(tenant, set, &members).await?,
    }))
}

/// Looks at how a local set is laid out. Also gives what was read, if its members count.
pub(super) async fn structure(tenant: &Tenant, set: &LocalKey) -> Result<(Seen, Option<Sight>)> {
    let (sets, owner) = (tenant.sets(), owner_of(&set.name));
    if let Some((owner, _)) = owner
        && !is_there(tenant, owner).await?
    {
        return Ok((Seen::orphan(sets.key(set), owner), None));
    }
    let root = root_of(tenant, set)?;
    let of = |kind, detail| Deviation::Set { kind, set: set.clone(), detail };
    if set.place == Place::Whole && lists::is_orphaned(tenant, set).await? {
        return Ok((Seen::of(vec![of(FindingKind::ListOrphaned, Vec::new())]), None));
    }
    let mut counts = true;
    if set.place == Place::Part {
        match state_of(tenant, &root).await?.1 {
            State::Local => {
                let orphan = exists(tenant, set.bucket, &sets.key(set)).await?;
                let orphan = orphan.then(|| of(FindingKind::PartOrphaned, Vec::new()));
                return Ok((Seen::of(orphan.into_iter().collect()), None));
            }
            // Copies that somebody is making.
            State::Spreading => counts = false,
            State::Copied | State::Spread => {}
        }
    }
    let sight = sets.sight(set).await?;
    let mut found = Vec::new();
    if sight.has_leftovers() {
        found.push(of(FindingKind::SpreadLeftover, Vec::new()));
    }
    if matches!(sight.state(), State::Spreading | State::Copied) {
        found.push(of(FindingKind::SpreadHalted, sight.stored.clone().unwrap_or_default()));
    }
    let ours = owner.is_some() || list_of(&set.name).is_some();
    for (spot, entry, belongs) in sight.members() {
        let is_elsewhere =
            ours && set.place == Place::Part && bucket_of(tenant, &entry.member) != Some(set.bucket);
        if !belongs || is_elsewhere {
            found.push(Deviation::Misplaced { set: set.clone(), spot, member: entry.member.clone() });
        }
    }
    if sight.seems_miscounted()
        && let Some((told, members)) = sets.recount(set, &sight, false).await?
        && told != members
    {
        found.push(of(FindingKind::TreeCountWrong, told.wrapping_sub(members).to_be_bytes().into()));
    }
    Ok((Seen::of(found), counts.then_some(sight)))
}

/// The bucket of a member of one of the engine's sets.
fn bucket_of(tenant: &Tenant, member: &[u8]) -> Option<Bucket> {
    AccountId::from_bytes(member).ok().map(|id| tenant.keys().bucket_of(id))
}

/// Looks whether a piece belongs to its set.
pub(super) async fn piece(tenant: &Tenant, set: &LocalKey, piece: u32) -> Result<Seen> {
    let kind = match tenant.sets().knows_piece(set, piece).await? {
        Some(true) => return Ok(Seen::default()),
        Some(false) => FindingKind::PieceOrphaned,
        None => FindingKind::SpreadLeftover,
    };
    let key = tenant.keys().piece(set.place, set.bucket, &set.name, piece);
    let is_there = exists(tenant, set.bucket, &key).await?;
    Ok(Seen::of(is_there.then_some(Deviation::Piece { kind, set: set.clone(), piece }).into_iter().collect()))
}

async fn exists(tenant: &Tenant, bucket: Bucket, key: &[u8]) -> Result<bool> {
    let slot = tenant.keys().buckets().slot(bucket);
    Ok(tenant.router().call(Request::read(slot, Command::new("EXISTS").arg(key))).await?.int()? == 1)
}

/// Looks whether anybody copies under a guard.
pub(super) async fn guard(tenant: &Tenant, set: &LocalKey) -> Result<Seen> {
    let key = tenant.keys().guard(set.bucket, &set.name);
    let slot = tenant.keys().buckets().slot(set.bucket);
    let value = tenant.router().call(Request::read(slot, Command::new("GET").arg(&key))).await?;
    if value.is_nil() || state_of(tenant, &root_of(tenant, set)?).await?.1 == State::Spreading {
        return Ok(Seen::default());
    }
    let detail = value.bytes()?.to_vec();
    Ok(Seen::of(vec![Deviation::Set { kind: FindingKind::GuardLeft, set: set.clone(), detail }]))
}
