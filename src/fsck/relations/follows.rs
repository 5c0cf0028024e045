//! Follows, and what is derived from them: edges among the author's followers, pull marks of the reader.

use std::sync::Arc;

use super::ownerless::OwnerlessKey;
use crate::account::{Account, Mode};
use crate::cluster::{Batch, Reply, Request};
use crate::error::Result;
use crate::fsck::ask::{self, is_there, leave, members_of, read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions::{PullMarking, field_drop, read_nonce};
use crate::graph::Graph;
use crate::graph::PairTask;
use crate::ids::AccountId;
use crate::journal::{Journal, Matter};
use crate::nonce::{Nonce, draw};
use crate::reader::is_new_mark;
use crate::sharded::ScoredMember;
use crate::tenant::{Answers, Tenant};
use crate::timeline::{HomeEntry, parse_home};

/// Pairs looked at in one go.
const PAIRS_AT_ONCE: usize = 256;

/// One follow, from both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FollowPair {
    pub(super) reader: AccountId,
    pub(super) author: AccountId,
}

/// All that somebody has a pull mark for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PullMarks(pub(super) AccountId);

/// Facts of "a reader follows an author".
#[derive(Debug, Clone, Copy, PartialEq)]
struct PairSeen {
    since: Option<f64>,
    edge: Option<f64>,
    mark: Option<Nonce>,
    /// Of an author that is there.
    author: Option<FolloweeMode>,
    /// Of the reader's home: `None`, there is none, or it is being filled.
    floor: Option<u64>,
    has_home: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolloweeMode {
    mode: Mode,
    pushed_since: u64,
}

/// Finds each fault of a pair, and what tells it from another: the score of the follow, or of an edge that no follow
/// has; the mark that should go.
fn judge(pair: &PairSeen) -> Vec<(FindingKind, [u8; 8])> {
    let edge = |kind, score: f64| (kind, score.to_be_bytes());
    let Some(since) = pair.since else {
        let edge = pair.edge.map(|score| edge(FindingKind::EdgeNeedless, score));
        return edge.into_iter().chain(pair.mark.map(|m| (FindingKind::MarkOfStranger, m))).collect();
    };
    let Some(author) = pair.author else { return vec![edge(FindingKind::FollowsNobody, since)] };
    let mut found = Vec::new();
    match pair.edge {
        None => found.push(edge(FindingKind::EdgeMissing, since)),
        Some(score) if score < since => found.push(edge(FindingKind::EdgeOld, since)),
        Some(_) => {}
    }
    match (author.mode, pair.mark) {
        // Whoever was to ask the author has struck that, as a release does that knows no new marks.
        (_, Some(mark)) if is_new_mark(&mark) => found.push((FindingKind::MarkUnasked, mark)),
        (Mode::Pull, None) => found.push(edge(FindingKind::MarkMissing, since)),
        // Where there is no home, or its floor has passed what was not pushed, nothing needs the mark.
        (Mode::Push, Some(mark))
            if !pair.has_home || pair.floor.is_some_and(|f| f >= author.pushed_since) =>
        {
            found.push((FindingKind::MarkMayGo, mark));
        }
        _ => {}
    }
    found
}

/// Looks at the accounts that somebody follows, or at some of them.
pub(super) async fn followed(
    tenant: &Tenant,
    reader: AccountId,
    members: &[&ScoredMember],
) -> Result<Observation> {
    pairs(tenant, reader, &members_of(members)?).await
}

/// Looks at one reader and some authors.
async fn pairs(tenant: &Tenant, reader: AccountId, authors: &[AccountId]) -> Result<Observation> {
    let mut seen = Observation::default();
    for authors in authors.chunks(PAIRS_AT_ONCE) {
        seen = seen.and(some_pairs(tenant, reader, authors).await?);
    }
    Ok(seen)
}

async fn some_pairs(tenant: &Tenant, reader: AccountId, authors: &[AccountId]) -> Result<Observation> {
    let keys = tenant.keys();
    let of = authors.iter().map(|author| Ok((tenant.followers(*author)?, reader)));
    let edges = tenant.sets().scores_in(&of.collect::<Result<Vec<_>>>()?).await?;
    let ids: Vec<[u8; 8]> = authors.iter().map(|author| author.to_bytes()).collect();
    let ids: Vec<&[u8]> = ids.iter().map(<[u8; 8]>::as_slice).collect();
    let mut batch = Batch::with_capacity(authors.len() + 2);
    batch.push(ask::request("HMGET", &keys.marks(reader), &ids));
    batch.push(ask::request("LRANGE", &keys.home(reader), &[b"0", b"0"]));
    for author in authors {
        batch.push(tenant.account_request(*author));
    }
    let mut answers = Answers::of(tenant, batch).await?;
    let marks = answers.next()?.into_array()?;
    // One that can't be read is found elsewhere.
    let first = parse_home(answers.next()?).unwrap_or_default();
    let floor = match first.first() {
        Some(HomeEntry::Watermark(floor)) => Some(*floor),
        _ => None,
    };
    let following = tenant.following(reader)?.scores(authors).await?;
    let mut found = Vec::new();
    for (n, author) in authors.iter().enumerate() {
        let pair = PairSeen {
            since: following.get(n).copied().flatten(),
            edge: edges.get(n).copied().flatten(),
            mark: marks.get(n).filter(|mark| !mark.is_nil()).map(mark_of),
            author: author_of(*author, answers.next()?)?,
            floor,
            has_home: !first.is_empty(),
        };
        let of = FollowPair { reader, author: *author };
        found.extend(judge(&pair).into_iter().map(|(kind, detail)| of.found(kind, detail)));
    }
    Ok(found.into())
}

fn mark_of(reply: &Reply) -> Nonce {
    // A mark of another length is none that anybody could take away: it reads as zeros, and goes as it stands.
    read_nonce(reply).unwrap_or_default()
}

/// Reads what a record says of an author that is there.
fn author_of(id: AccountId, record: Reply) -> Result<Option<FolloweeMode>> {
    let card = Account::parse(id, record)?.filter(Account::is_there);
    Ok(card.map(|card| FolloweeMode { mode: card.mode, pushed_since: card.pushed_since }))
}

/// An author's followers, or some of them: those who don't follow, or since another moment, are looked at.
pub(super) async fn edges(
    tenant: &Tenant,
    author: AccountId,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let mut suspects = Vec::new();
    for members in members.chunks(PAIRS_AT_ONCE) {
        let readers = members_of::<AccountId>(members)?;
        let asked = readers.iter().map(|reader| Ok((tenant.following(*reader)?, author)));
        let since = tenant.sets().scores_in(&asked.collect::<Result<Vec<_>>>()?).await?;
        for ((reader, entry), since) in readers.into_iter().zip(members).zip(since) {
            if since.is_none_or(|since| since > entry.score) {
                suspects.push(FollowPair { reader, author });
            }
        }
    }
    Ok(Observation::units(suspects))
}

impl Relation for PullMarks {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let key = tenant.keys().marks(self.0);
        if !is_there(tenant, self.0).await? {
            return Ok(OwnerlessKey::orphan(key, self.0));
        }
        let authors = read(tenant, "HKEYS", &key, &[]).await?.into_array()?;
        let authors = authors.iter().map(|id| AccountId::from_bytes(id.bytes()?));
        pairs(tenant, self.0, &authors.collect::<Result<Vec<_>>>()?).await
    }
}

impl Relation for FollowPair {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        pairs(tenant, self.reader, &[self.author]).await
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        match found.kind {
            FindingKind::MarkMissing => self.mark(tenant).await?,
            FindingKind::EdgeMissing | FindingKind::EdgeOld => {
                // What was posted meanwhile has reached nobody: pulled first, then completed like a new follow.
                self.mark(tenant).await?;
                self.look_again(&graph.journal, true).await?;
            }
            FindingKind::MarkMayGo | FindingKind::MarkUnasked => {
                self.look_again(&graph.journal, true).await?
            }
            FindingKind::MarkOfStranger => {
                let marks = tenant.keys().marks(self.reader);
                let command = field_drop(marks.clone(), &self.author.to_bytes(), &found.detail);
                write(tenant, &marks, command).await?;
            }
            _ => self.look_again(&graph.journal, false).await?,
        }
        Ok(Vec::new())
    }
}

impl FollowPair {
    pub(super) fn found(self, kind: FindingKind, detail: [u8; 8]) -> Deviation {
        let Self { reader, author } = self;
        let told = format!("account {reader} and account {author}, which it follows, asks or pulls");
        let excused_by = Matter::between(reader, author);
        Deviation { kind, at: Unit::of(self), detail: detail.into(), told, excused_by }
    }

    /// Has the pair looked at like one that has changed.
    pub(super) async fn look_again(self, journal: &Arc<Journal>, may_drop: bool) -> Result<()> {
        let Self { reader, author } = self;
        leave(journal, journal.tenant.bucket(reader), PairTask { reader, author, may_drop }).await
    }

    /// Has the reader pull the author, if it follows.
    async fn mark(self, tenant: &Tenant) -> Result<()> {
        let key_prefix = tenant.keys().key_prefix(tenant.bucket(self.reader));
        let marking = PullMarking { key_prefix, author: self.author, mark: draw(), stamp: draw() };
        let command = marking.accounts(tenant.keys().marks(self.reader), &[self.reader]);
        let request = Request::write(tenant.slot(self.reader), command).touching_undeclared_keys().once();
        tenant.router().call(request).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: PairSeen = PairSeen {
        since: Some(5.0),
        edge: Some(5.0),
        mark: None,
        author: Some(FolloweeMode { mode: Mode::Push, pushed_since: 70 }),
        floor: Some(60),
        has_home: true,
    };

    fn kinds(pair: PairSeen) -> Vec<FindingKind> {
        judge(&pair).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn each_way_to_be_out_of_step_is_told_from_the_others() {
        use FindingKind::*;
        let pulled = Some(FolloweeMode { mode: Mode::Pull, pushed_since: 0 });
        let promoting = Some(FolloweeMode { mode: Mode::Promoting, pushed_since: 0 });
        let (mark, new) = (Some([7; 8]), Some(*b"new\0mark"));
        let cases = [
            (RIGHT, vec![]),
            (PairSeen { edge: None, ..RIGHT }, vec![EdgeMissing]),
            (PairSeen { edge: Some(4.0), ..RIGHT }, vec![EdgeOld]),
            (PairSeen { since: None, ..RIGHT }, vec![EdgeNeedless]),
            (PairSeen { since: None, edge: None, mark, ..RIGHT }, vec![MarkOfStranger]),
            (PairSeen { author: None, ..RIGHT }, vec![FollowsNobody]),
            (PairSeen { author: pulled, ..RIGHT }, vec![MarkMissing]),
            (PairSeen { author: pulled, mark, ..RIGHT }, vec![]),
            (PairSeen { author: promoting, ..RIGHT }, vec![]),
            // The floor has not passed what was not pushed; then it has; then there is no home.
            (PairSeen { mark, ..RIGHT }, vec![]),
            (PairSeen { mark, floor: Some(70), ..RIGHT }, vec![MarkMayGo]),
            (PairSeen { mark, floor: None, has_home: false, ..RIGHT }, vec![MarkMayGo]),
            (PairSeen { mark, floor: None, ..RIGHT }, vec![]),
            (PairSeen { mark: new, ..RIGHT }, vec![MarkUnasked]),
            (PairSeen { mark: new, author: pulled, ..RIGHT }, vec![MarkUnasked]),
            (PairSeen { mark: new, since: None, edge: None, ..RIGHT }, vec![MarkOfStranger]),
        ];
        for (pair, wanted) in cases {
            assert_eq!(kinds(pair), wanted, "{pair:?}");
        }
    }
}
