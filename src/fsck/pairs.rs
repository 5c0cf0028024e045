//! Follows from both sides: edges among the author's followers, pull marks of the reader. And requests.

use super::deviation::{Deviation, FindingKind};
use super::look::{Answers, Seen, is_there};
use super::unit::Unit;
use crate::account::{Account, Mode};
use crate::cluster::{Batch, Command, Reply, Request};
use crate::error::Result;
use crate::functions::read_nonce;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::nonce::Nonce;
use crate::sharded::{Scored, Spot};
use crate::tenant::Tenant;
use crate::timeline::{Record, parse_home};

/// Pairs looked at in one go.
const PAIRS_AT_ONCE: usize = 256;

/// What is known of "a reader follows an author".
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    since: Option<f64>,
    edge: Option<f64>,
    mark: Option<Nonce>,
    /// Of an author that is there.
    author: Option<Author>,
    /// Of the reader's home: `None`, there is none, or it is being filled.
    floor: Option<u64>,
    has_home: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Author {
    mode: Mode,
    pushed_since: u64,
}

/// What is wrong with it.
fn judge(reader: AccountId, author: AccountId, pair: &Pair) -> Vec<Deviation> {
    let edge = |kind, score: f64| Deviation::Edge { kind, reader, author, stamp: score.to_bits() };
    let of_mark = |kind, mark| Deviation::Nonce { kind, reader, author, mark };
    let Some(since) = pair.since else {
        let edge = pair.edge.map(|score| edge(FindingKind::EdgeNeedless, score));
        return edge.into_iter().chain(pair.mark.map(|m| of_mark(FindingKind::MarkOfStranger, m))).collect();
    };
    let Some(card) = pair.author else { return vec![edge(FindingKind::FollowsNobody, since)] };
    let mut found = Vec::new();
    match pair.edge {
        None => found.push(edge(FindingKind::EdgeMissing, since)),
        Some(score) if score < since => found.push(edge(FindingKind::EdgeOld, since)),
        Some(_) => {}
    }
    match (card.mode, pair.mark) {
        (Mode::Pull, None) => found.push(edge(FindingKind::MarkMissing, since)),
        // Where there is no home, or its floor has passed what was not pushed, nothing needs the mark.
        (Mode::Push, Some(mark)) if !pair.has_home || pair.floor.is_some_and(|f| f >= card.pushed_since) => {
            found.push(of_mark(FindingKind::MarkMayGo, mark));
        }
        _ => {}
    }
    found
}

/// Looks at one reader and some authors.
pub(super) async fn pairs(
    tenant: &Tenant,
    reader: AccountId,
    authors: &[AccountId],
) -> Result<Vec<Deviation>> {
    let mut found = Vec::new();
    for authors in authors.chunks(PAIRS_AT_ONCE) {
        found.extend(some_pairs(tenant, reader, authors).await?);
    }
    Ok(found)
}

async fn some_pairs(tenant: &Tenant, reader: AccountId, authors: &[AccountId]) -> Result<Vec<Deviation>> {
    let (keys, slot) = (tenant.keys(), tenant.slot(reader));
    let of = authors.iter().map(|author| Ok((tenant.followers(*author)?, reader)));
    let edges = tenant.sets().scores_in(&of.collect::<Result<Vec<_>>>()?).await?;
    let marks = Command::new("HMGET").arg(&keys.marks(reader));
    let marks = authors.iter().fold(marks, |command, author| command.arg(&author.to_bytes()));
    let first = Command::new("LRANGE").arg(&keys.home(reader)).arg("0").arg("0");
    let mut batch = Batch::with_capacity(authors.len() + 2);
    batch.push(Request::read(slot, marks));
    batch.push(Request::read(slot, first));
    for author in authors {
        batch.push(tenant.account_request(*author));
    }
    let mut answers = Answers::of(tenant, batch).await?;
    let marks = answers.next()?.into_array()?;
    // One that can't be read is found elsewhere.
    let first = parse_home(answers.next()?).unwrap_or_default();
    let floor = match first.first() {
        Some(Record::Watermark(floor)) => Some(*floor),
        _ => None,
    };
    let following = tenant.following(reader)?.scores(authors).await?;
    let mut found = Vec::new();
    for (n, author) in authors.iter().enumerate() {
        let mark = marks.get(n).filter(|mark| !mark.is_nil()).map(mark_of);
        let pair = Pair {
            since: following.get(n).copied().flatten(),
            edge: edges.get(n).copied().flatten(),
            mark,
            author: author_of(*author, answers.next()?)?,
            floor,
            has_home: !first.is_empty(),
        };
        found.extend(judge(reader, *author, &pair));
    }
    Ok(found)
}

fn mark_of(reply: &Reply) -> Nonce {
    // A mark of another length is none that anybody could take away: it reads as zeros, and goes as it stands.
    read_nonce(reply).unwrap_or_default()
}

/// What a record says of an author that is there.
fn author_of(id: AccountId, record: Reply) -> Result<Option<Author>> {
    let card = Account::parse(id, record)?.filter(Account::is_there);
    Ok(card.map(|card| Author { mode: card.mode, pushed_since: card.pushed_since }))
}

/// Everybody that somebody has a mark for.
pub(super) async fn marks(tenant: &Tenant, reader: AccountId) -> Result<Seen> {
    let key = tenant.keys().marks(reader);
    if !is_there(tenant, reader).await? {
        return Ok(Seen::orphan(key, reader));
    }
    let fields = tenant.router().call(Request::read(tenant.slot(reader), Command::new("HKEYS").arg(&key)));
    let authors = fields.await?.into_array()?;
    let authors = authors.iter().map(|id| AccountId::from_bytes(id.bytes()?)).collect::<Result<Vec<_>>>()?;
    Ok(Seen::of(pairs(tenant, reader, &authors).await?))
}

/// The members of a follower set, or of a part of one: those who don't follow, or since another moment, are looked at.
pub(super) async fn edges(tenant: &Tenant, author: AccountId, members: &[(Spot, &Scored)]) -> Result<Seen> {
    let mut seen = Seen::default();
    for members in members.chunks(PAIRS_AT_ONCE) {
        let readers = members.iter().map(|(_, entry)| AccountId::from_bytes(&entry.member));
        let readers = readers.collect::<Result<Vec<_>>>()?;
        let asked = readers.iter().map(|reader| Ok((tenant.following(*reader)?, author)));
        let since = tenant.sets().scores_in(&asked.collect::<Result<Vec<_>>>()?).await?;
        for ((reader, (_, entry)), since) in readers.iter().zip(members).zip(since) {
            if since.is_none_or(|since| since > entry.score) {
                seen.units.push(Unit::Pair(*reader, author));
            }
        }
    }
    Ok(seen)
}

/// What somebody has asked for, has said yes to, or is asked: that both sides agree.
pub(super) async fn requests(graph: &Graph, account: AccountId, letter: u8) -> Result<Seen> {
    let keys = graph.keys();
    let hash = match letter {
        b'r' => keys.requested(account),
        b'u' => keys.approved(account),
        _ => keys.waiting(account),
    };
    if !is_there(graph, account).await? {
        return Ok(Seen::orphan(hash, account));
    }
    let fields = graph.router().call(Request::read(graph.slot(account), Command::new("HKEYS").arg(&hash)));
    let mut found = Vec::new();
    for other in fields.await?.into_array()? {
        let other = AccountId::from_bytes(other.bytes()?)?;
        let (reader, author) = if letter == b'r' { (account, other) } else { (other, account) };
        found.extend(request(graph, reader, author).await?);
    }
    Ok(Seen::of(found))
}

/// What stands where about one request: asked, waiting, approved.
pub(super) async fn request_state(
    graph: &Graph,
    reader: AccountId,
    author: AccountId,
) -> Result<[Option<Nonce>; 3]> {
    let keys = graph.keys();
    let get = |hash: Vec<u8>, of: AccountId, field: AccountId| {
        Request::read(graph.slot(of), Command::new("HGET").arg(&hash).arg(&field.to_bytes()))
    };
    let asked = [
        get(keys.waiting(author), author, reader),
        get(keys.approved(author), author, reader),
        get(keys.requested(reader), reader, author),
    ];
    let mut values = Vec::new();
    for answer in graph.run_all(asked.into_iter().collect()).await? {
        let value = answer.ok()?;
        values.push((!value.is_nil()).then(|| mark_of(&value)));
    }
    let [waiting, approved, requested] = values.as_slice() else { return Ok([None; 3]) };
    Ok([*requested, *waiting, *approved])
}

pub(super) async fn request(
    graph: &Graph,
    reader: AccountId,
    author: AccountId,
) -> Result<Option<Deviation>> {
    let [requested, waiting, approved] = request_state(graph, reader, author).await?;
    // An approval is carried out at once, so none stays; whoever asks waits on the other's list.
    let is_right = waiting == requested && approved.is_none();
    let request = requested.or(waiting).or(approved).unwrap_or_default();
    Ok((!is_right).then_some(Deviation::Request { reader, author, request }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: Pair = Pair {
        since: Some(5.0),
        edge: Some(5.0),
        mark: None,
        author: Some(Author { mode: Mode::Push, pushed_since: 70 }),
        floor: Some(60),
        has_home: true,
    };

    fn kinds(pair: Pair) -> Vec<FindingKind> {
        let id = |id| AccountId::new(id).unwrap();
        judge(id(1), id(2), &pair).iter().map(Deviation::kind).collect()
    }

    #[test]
    fn each_way_to_be_out_of_step_is_told_from_the_others() {
        use FindingKind::*;
        let pulled = Some(Author { mode: Mode::Pull, pushed_since: 0 });
        let promoting = Some(Author { mode: Mode::Promoting, pushed_since: 0 });
        let mark = Some([7; 8]);
        let cases = [
            (RIGHT, vec![]),
            (Pair { edge: None, ..RIGHT }, vec![EdgeMissing]),
            (Pair { edge: Some(4.0), ..RIGHT }, vec![EdgeOld]),
            (Pair { since: None, ..RIGHT }, vec![EdgeNeedless]),
            (Pair { since: None, edge: None, mark, ..RIGHT }, vec![MarkOfStranger]),
            (Pair { author: None, ..RIGHT }, vec![FollowsNobody]),
            (Pair { author: pulled, ..RIGHT }, vec![MarkMissing]),
            (Pair { author: pulled, mark, ..RIGHT }, vec![]),
            (Pair { author: promoting, ..RIGHT }, vec![]),
            // The floor has not passed what was not pushed; then it has; then there is no home.
            (Pair { mark, ..RIGHT }, vec![]),
            (Pair { mark, floor: Some(70), ..RIGHT }, vec![MarkMayGo]),
            (Pair { mark, floor: None, has_home: false, ..RIGHT }, vec![MarkMayGo]),
            (Pair { mark, floor: None, ..RIGHT }, vec![]),
        ];
        for (pair, wanted) in cases {
            assert_eq!(kinds(pair), wanted, "{pair:?}");
        }
    }
}
