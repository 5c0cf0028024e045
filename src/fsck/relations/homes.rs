//! Homes: whether they prove what they say, hold what they should, are known to the sweep, and are not too long.

use std::collections::HashSet;
use std::sync::Arc;

use super::ownerless::OwnerlessKey;
use crate::account::Mode;
use crate::cluster::{Batch, Command};
use crate::delivery::Recipients;
use crate::error::Result;
use crate::fields::RecordField;
use crate::fsck::ask::{self, is_there, read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::Matter;
use crate::post::PostRef;
use crate::reader::load_state;
use crate::stored::{ArchiveFloor, StoredPost};
use crate::tenant::{Answers, Tenant};
use crate::timeline::{Direction, HomeEntry, Merge, named, newest_requests, page_request, parse_home};
use crate::timeline::{read_newest, read_page};

/// Ids read of an outbox at first, and further down.
const DEPTH: (usize, usize) = (32, 512);
/// Rounds in which outboxes are read further down: 32,000 posts of one author that a home of some hundreds should hold.
const ROUNDS_MAX: usize = 64;
/// Outboxes read in one go.
const OUTBOXES_AT_ONCE: usize = 500;

/// The home of an account, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct HomeOf(pub(super) AccountId);

/// Finds what is wrong with the entries of a home by themselves.
fn judge(entries: &[HomeEntry]) -> Vec<(FindingKind, u64)> {
    match entries.first() {
        None | Some(HomeEntry::Filling(_)) => return Vec::new(),
        Some(HomeEntry::Post(_)) => return vec![(FindingKind::HomeWithoutFloor, 0)],
        Some(HomeEntry::Watermark(_)) => {}
    }
    let (mut highest, mut found) = (0, Vec::new());
    for entry in entries {
        match entry {
            HomeEntry::Post(post) => highest = highest.max(post.id),
            HomeEntry::Watermark(id) if *id < highest => found.push((FindingKind::WatermarkLies, *id)),
            HomeEntry::Watermark(_) | HomeEntry::Filling(_) => {}
        }
    }
    found
}

impl Relation for HomeOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let (keys, reader) = (tenant.keys(), self.0);
        let key = keys.home(reader);
        if !is_there(tenant, reader).await? {
            return Ok(Observation::units([OwnerlessKey(key)]));
        }
        // First whom it follows and pulls, then the home: a mark goes only once the home holds what it stood for.
        let state = load_state(tenant, reader, None).await?;
        let most = tenant.fit().most();
        let asked = [
            ask::request("LLEN", &key, &[]),
            ask::request("LRANGE", &key, &[b"0", (2 * most).to_string().as_bytes()]),
            ask::request("LINDEX", &key, &[b"0"]),
            ask::request("ZSCORE", &keys.days(tenant.bucket(reader)), &[&reader.to_bytes()]),
        ];
        let mut answers = Answers::ordered(tenant, asked).await?;
        let (length, stored) = (answers.next()?.count()?, answers.next()?);
        let (first, day) = (answers.next()?, answers.next()?);
        let of = |(kind, detail)| self.found(kind, detail);
        let Ok(entries) = parse_home(stored) else {
            return Ok([of((FindingKind::HomeWithoutFloor, 1))].into());
        };
        let mut found: Vec<Deviation> = judge(&entries).into_iter().map(of).collect();
        if length > 0 && day.is_nil() {
            found.push(of((FindingKind::HomeUnlisted, 0)));
        }
        match entries.first() {
            Some(HomeEntry::Filling(_)) => {
                let nonce = first.bytes()?.last_chunk::<8>().map_or(0, |nonce| u64::from_be_bytes(*nonce));
                found.push(of((FindingKind::FillHalted, nonce)));
            }
            Some(HomeEntry::Watermark(floor)) if length <= 2 * most => {
                let held = entries.iter().filter_map(|entry| match entry {
                    HomeEntry::Post(post) => Some((post.id, post.author)),
                    _ => None,
                });
                let pushed =
                    state.following().iter().filter(|author| state.pulled.binary_search(author).is_err());
                let authors =
                    pushed.copied().chain([reader.get()]).map(AccountId::new).collect::<Result<Vec<_>>>()?;
                let missing = missing(tenant, reader, *floor, &held.collect(), &authors).await?;
                found.extend(missing.into_iter().map(|post| self.lacks(post)));
            }
            _ => {}
        }
        if length > most {
            found.push(of((FindingKind::HomeTooLong, 0)));
        }
        Ok(found.into())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let (keys, reader) = (tenant.keys(), self.0);
        let home = keys.home(reader);
        let drop_home = || write(tenant, &home, Command::new("UNLINK").arg(&home));
        match found.kind {
            FindingKind::FillHalted => {
                if let Some(nonce) = found.detail.first_chunk() {
                    write(tenant, &home, functions::home_drop(home.clone(), nonce)).await?;
                }
            }
            FindingKind::HomeUnlisted => {
                let day =
                    read(tenant, "HGET", &keys.account(reader), &[RecordField::LAST_READ_DAY.as_bytes()])
                        .await?;
                let day = day.count().ok().and_then(|day| u32::try_from(day).ok()).filter(|day| *day > 0);
                let day = day.unwrap_or_else(|| tenant.today());
                tenant.router().call(tenant.read_noted(reader, day)).await?;
            }
            FindingKind::HomeTooLong => {
                write(tenant, &home, functions::home_tidy(home.clone(), tenant.fit())).await?;
                if read(tenant, "LLEN", &home, &[]).await?.count()? > tenant.fit().most() {
                    drop_home().await?;
                }
            }
            // The next read fills it.
            _ => drop(drop_home().await?),
        }
        Ok(Vec::new())
    }
}

impl HomeOf {
    /// `detail`: of a watermark its id, of a fill its nonce.
    fn found(self, kind: FindingKind, detail: u64) -> Deviation {
        let (told, excused_by) = (format!("the home of {}", self.0), vec![Matter::Burial(self.0)]);
        Deviation { kind, at: Unit::of(self), detail: detail.to_be_bytes().into(), told, excused_by }
    }

    pub(super) fn lacks(self, post: PostRef) -> Deviation {
        let told = format!("post {} of {} in the home of {}", post.id, post.author, self.0);
        let mut excused_by = Matter::between(self.0, post.author);
        excused_by.push(Matter::Delivery(post));
        let kind = FindingKind::EntryMissing;
        Deviation { kind, at: Unit::of(self), detail: Vec::new(), told, excused_by }
    }
}

/// Posts above a home's floor that it should hold and doesn't: down to where outboxes were read, which is nearly always
/// the floor.
async fn missing(
    tenant: &Tenant,
    reader: AccountId,
    floor: u64,
    held: &HashSet<(u64, u64)>,
    authors: &[AccountId],
) -> Result<Vec<PostRef>> {
    let mut lacking = Vec::new();
    for authors in authors.chunks(OUTBOXES_AT_ONCE) {
        let mut batch = Batch::with_capacity(2 * authors.len());
        for author in authors {
            batch.push_ordered(newest_requests(tenant, *author, DEPTH.0));
        }
        let mut answers = Answers::of(tenant, batch).await?;
        let (mut merge, mut sources) = (Merge::new(Direction::Down, u64::MAX, floor), Vec::new());
        for author in authors {
            let newest = read_newest(answers.next()?, answers.next()?, DEPTH.0)?;
            // Who is pulled and has no mark is found by that; one's own posts always come.
            if newest.mode != Mode::Pull || *author == reader {
                let source = merge.open();
                merge.feed(
                    source,
                    newest.part.entries(*author),
                    in_memory(newest.part.bound, newest.part.archived),
                );
                sources.push(*author);
            }
        }
        for round in 0.. {
            let deeper = merge.wanting_for(usize::MAX);
            if deeper.is_empty() {
                break;
            }
            if round == ROUNDS_MAX {
                let at = deeper.iter().map(|n| merge.bound_of(*n)).max().unwrap_or_default();
                tracing::warn!(
                    "the home of {reader} was compared from its newest posts down to {at}, in {ROUNDS_MAX} rounds; of \
                     what is below, down to its floor {floor}, nothing is said"
                );
                break;
            }
            let request =
                |n: &usize| page_request(tenant, sources[*n], Direction::Down, merge.bound_of(*n), DEPTH.1);
            let mut answers = Answers::of(tenant, deeper.iter().map(request).collect()).await?;
            for n in deeper {
                let part = read_page(answers.next()?, Direction::Down)?;
                merge.feed(n, part.entries(sources[n]), in_memory(part.bound, part.archived));
            }
        }
        let lacks =
            merge.take(usize::MAX).into_iter().filter(|entry| !held.contains(&(entry.id, entry.author)));
        lacking.extend(named(&lacks.collect::<Vec<_>>()));
    }
    wanted(tenant, reader, lacking).await
}

/// Tells how far a part of an outbox is all that memory has. What is in the archive isn't compared.
fn in_memory(bound: u64, archived: Option<ArchiveFloor>) -> u64 {
    if archived.is_some() { 0 } else { bound }
}

/// Of these posts those that a fan-out brings to the reader.
async fn wanted(tenant: &Tenant, reader: AccountId, lacking: Vec<PostRef>) -> Result<Vec<PostRef>> {
    let mut found = Vec::new();
    for lacking in lacking.chunks(OUTBOXES_AT_ONCE) {
        // Above their authors' floors: nothing of it is asked of the archive.
        let stored = ask::posts(tenant, lacking).await?.posts;
        for (post, stored) in lacking.iter().zip(stored) {
            // What can't be read is found for itself.
            let Some(stored) = stored.and_then(StoredPost::found) else { continue };
            let comes = post.author == reader
                || match Recipients::of(&stored) {
                    Recipients::Followers => true,
                    Recipients::Named(named) => named.contains(&reader),
                    Recipients::Nobody => false,
                };
            if stored.header().author == post.author && comes {
                found.push(*post);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Reply;
    use crate::stored::home_entry;

    fn kinds(entries: &[(u64, u64)]) -> Vec<FindingKind> {
        let entries = entries.iter().map(|(id, author)| Reply::of_bytes(&home_entry(*id, *author))).collect();
        let entries = parse_home(Reply::of_items(entries)).unwrap();
        judge(&entries).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn a_home_must_begin_with_a_floor_and_its_watermarks_must_be_true() {
        const WATERMARK: u64 = u64::MAX;
        assert_eq!(kinds(&[]), []);
        assert_eq!(kinds(&[(0, WATERMARK), (9, 2), (5, 2), (9, WATERMARK), (7, 2)]), []);
        assert_eq!(kinds(&[(0, 1 << 63), (9, 2), (5, WATERMARK)]), []);
        assert_eq!(kinds(&[(9, 2), (9, WATERMARK)]), [FindingKind::HomeWithoutFloor]);
        assert_eq!(kinds(&[(0, WATERMARK), (9, 2), (5, 2), (8, WATERMARK)]), [FindingKind::WatermarkLies]);
    }
}
