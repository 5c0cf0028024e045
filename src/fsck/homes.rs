//! Homes: whether they prove what they say, hold what they should, are known to the sweep, and are not too long.

use std::collections::HashSet;

use super::deviation::{Deviation, FindingKind};
use super::look::{Answers, Seen, is_there};
use crate::account::Mode;
use crate::cluster::{Batch, Command, Request};
use crate::delivery::Recipients;
use crate::error::Result;
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::reader::load_state;
use crate::stored::stored_post;
use crate::tenant::Tenant;
use crate::timeline::{Direction, Record, newest_requests, page_request, parse_home};
use crate::timeline::{read_newest, read_page};

/// Ids read of an outbox at first, and further down.
const DEPTH: (usize, usize) = (32, 512);
/// Outboxes read in one go.
const OUTBOXES_AT_ONCE: usize = 500;

/// What is wrong with the records of a home by themselves.
fn judge(reader: AccountId, records: &[Record]) -> Vec<Deviation> {
    let of = |kind, detail| Deviation::Home { kind, reader, detail };
    match records.first() {
        None => return Vec::new(),
        Some(Record::Filling(_)) => return Vec::new(),
        Some(Record::Post(_)) => return vec![of(FindingKind::HomeWithoutFloor, 0)],
        Some(Record::Watermark(_)) => {}
    }
    let (mut highest, mut found) = (0, Vec::new());
    for record in records {
        match record {
            Record::Post(entry) => highest = highest.max(entry.id),
            Record::Watermark(id) if *id < highest => found.push(of(FindingKind::WatermarkLies, *id)),
            Record::Watermark(_) | Record::Filling(_) => {}
        }
    }
    found
}

/// Looks at the home of an account, if it has one.
pub(super) async fn home(graph: &Graph, reader: AccountId) -> Result<Seen> {
    let (keys, slot) = (graph.keys(), graph.slot(reader));
    let key = keys.home(reader);
    if !is_there(graph, reader).await? {
        return super::loose::key(graph, &key).await;
    }
    let of = |kind, detail| Deviation::Home { kind, reader, detail };
    // First whom it follows and pulls, then the home: a mark goes only once the home holds what it stood for.
    let state = load_state(graph, reader, None).await?;
    let most = graph.fit().most();
    let asked = [
        Command::new("LLEN").arg(&key),
        Command::new("LRANGE").arg(&key).arg("0").arg(2 * most),
        Command::new("LINDEX").arg(&key).arg("0"),
        Command::new("ZSCORE").arg(&keys.days(graph.bucket(reader))).arg(&reader.to_bytes()),
    ];
    let mut batch = Batch::new();
    batch.push_ordered(asked.map(|command| Request::read(slot, command)));
    let mut answers = Answers::of(graph, batch).await?;
    let (length, stored) = (answers.next()?.count()?, answers.next()?);
    let (first, day) = (answers.next()?, answers.next()?);
    let Ok(records) = parse_home(stored) else {
        return Ok(Seen::of(vec![of(FindingKind::HomeWithoutFloor, 1)]));
    };
    let mut found = judge(reader, &records);
    if length > 0 && day.is_nil() {
        found.push(of(FindingKind::HomeUnlisted, 0));
    }
    match records.first() {
        Some(Record::Filling(_)) => {
            let nonce = first.bytes()?.last_chunk::<8>().map_or(0, |nonce| u64::from_be_bytes(*nonce));
            found.push(of(FindingKind::FillHalted, nonce));
        }
        Some(Record::Watermark(floor)) if length <= 2 * most => {
            let held = records.iter().filter_map(|record| match record {
                Record::Post(entry) => Some((entry.id, entry.author)),
                _ => None,
            });
            let pushed = state.following.iter().filter(|author| state.pulled.binary_search(author).is_err());
            let authors =
                pushed.copied().chain([reader.get()]).map(AccountId::new).collect::<Result<Vec<_>>>()?;
            found.extend(missing(graph, reader, *floor, &held.collect(), &authors).await?);
        }
        _ => {}
    }
    if length > most {
        found.push(of(FindingKind::HomeTooLong, 0));
    }
    Ok(Seen::of(found))
}

/// Posts above a home's floor that it should hold and doesn't.
async fn missing(
    graph: &Graph,
    reader: AccountId,
    floor: u64,
    held: &HashSet<(u64, u64)>,
    authors: &[AccountId],
) -> Result<Vec<Deviation>> {
    let mut lacking: Vec<(AccountId, PostId)> = Vec::new();
    for authors in authors.chunks(OUTBOXES_AT_ONCE) {
        let mut batch = Batch::with_capacity(2 * authors.len());
        for author in authors {
            batch.push_ordered(newest_requests(graph, *author, DEPTH.0));
        }
        let mut answers = Answers::of(graph, batch).await?;
        for author in authors {
            let mut newest = read_newest(answers.next()?, answers.next()?, DEPTH.0)?;
            // Who is pulled and has no mark is found by that; one's own posts always come.
            if newest.mode == Mode::Pull && *author != reader {
                continue;
            }
            let mut ids = newest.part.ids.clone();
            while newest.part.bound > floor.saturating_add(1) && newest.part.bound > 0 {
                let from = newest.part.bound;
                let request = page_request(graph, *author, Direction::Down, from, DEPTH.1);
                newest.part = read_page(graph.router().call(request).await?, Direction::Down)?;
                ids.extend(&newest.part.ids);
            }
            let lacks = ids.into_iter().filter(|id| *id > floor && !held.contains(&(*id, author.get())));
            lacking.extend(lacks.filter_map(|id| Some((*author, PostId::from_u64(id).ok()?))));
        }
    }
    wanted(graph, reader, lacking).await
}

/// Of these posts those that a fan-out brings to the reader.
async fn wanted(
    tenant: &Tenant,
    reader: AccountId,
    lacking: Vec<(AccountId, PostId)>,
) -> Result<Vec<Deviation>> {
    let get = |(_, post): &(AccountId, PostId)| tenant.post_request(*post);
    let mut found = Vec::new();
    for lacking in lacking.chunks(OUTBOXES_AT_ONCE) {
        let answers = tenant.run_all(lacking.iter().map(get).collect()).await?;
        for ((author, post), answer) in lacking.iter().zip(answers) {
            // What can't be read is found for itself.
            let Ok(Some(stored)) = stored_post(answer)? else { continue };
            let comes = *author == reader
                || match Recipients::of(&stored) {
                    Recipients::Followers => true,
                    Recipients::Named(named) => named.contains(&reader),
                    Recipients::Nobody => false,
                };
            if stored.header().author == *author && comes {
                found.push(Deviation::EntryMissing { reader, author: *author, post: *post });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Reply;
    use crate::stored::record_of;

    fn kinds(records: &[(u64, u64)]) -> Vec<FindingKind> {
        let records = records.iter().map(|(id, author)| Reply::of_bytes(&record_of(*id, *author))).collect();
        let records = parse_home(Reply::of_items(records)).unwrap();
        judge(AccountId::new(1).unwrap(), &records).iter().map(Deviation::kind).collect()
    }

    #[test]
    fn a_home_must_begin_with_a_floor_and_its_watermarks_must_be_true() {
        const MARK: u64 = u64::MAX;
        assert_eq!(kinds(&[]), []);
        assert_eq!(kinds(&[(0, MARK), (9, 2), (5, 2), (9, MARK), (7, 2)]), []);
        assert_eq!(kinds(&[(0, 1 << 63), (9, 2), (5, MARK)]), []);
        assert_eq!(kinds(&[(9, 2), (9, MARK)]), [FindingKind::HomeWithoutFloor]);
        assert_eq!(kinds(&[(0, MARK), (9, 2), (5, 2), (8, MARK)]), [FindingKind::WatermarkLies]);
    }
}
