//! Looking at one thing.

use super::deviation::{Deviation, FindingKind};
use super::unit::Unit;
use super::{homes, journals, lists, loose, named, names, outboxes, pairs, records, sets, ties};
use crate::cluster::{Answer, Batch, Command, Reply, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::tenant::Tenant;

/// What was seen at one thing: what is out of step, and what else must be looked at to tell.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) deviations: Vec<Deviation>,
    pub(super) units: Vec<Unit>,
}

impl Seen {
    pub(super) fn of(deviations: Vec<Deviation>) -> Self {
        Self { deviations, units: Vec::new() }
    }

    /// A key whose account isn't there.
    pub(super) fn orphan(key: Vec<u8>, owner: AccountId) -> Self {
        let kind = FindingKind::KeyOrphaned;
        Self::of(vec![Deviation::Key { kind, key, owner: Some(owner), detail: Vec::new() }])
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.deviations.extend(other.deviations);
        self.units.extend(other.units);
        self
    }
}

/// Answers in the order in which they were asked for.
pub(super) struct Answers(std::vec::IntoIter<Answer>);

impl Answers {
    pub(super) async fn of(tenant: &Tenant, batch: Batch) -> Result<Self> {
        Ok(Self(tenant.run_all(batch).await?.into_iter()))
    }

    pub(super) fn next(&mut self) -> Result<Reply> {
        self.0.next().ok_or_else(|| Error::internal("an answer is missing"))?.ok()
    }
}

/// Whether an account is there: not deleted, nor one that never was.
pub(super) async fn is_there(tenant: &Tenant, account: AccountId) -> Result<bool> {
    let state = Command::new("HGET").arg(&tenant.keys().account(account)).arg("s");
    let state = tenant.router().call(Request::read(tenant.slot(account), state)).await?;
    Ok(!state.is_nil() && state.bytes()? != b"d")
}

/// Looks at it. Stored data that makes no sense is what it finds; only a cluster that doesn't answer is an error.
pub(super) async fn look(graph: &Graph, unit: &Unit) -> Result<Seen> {
    match look_at(graph, unit).await {
        Err(e) if e.kind() == ErrorKind::Internal => {
            Ok(Seen::of(vec![Deviation::Unreadable { unit: unit.clone(), why: e.to_string() }]))
        }
        // Somebody whom we were looking at has been deleted meanwhile.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Seen::default()),
        seen => seen,
    }
}

async fn look_at(graph: &Graph, unit: &Unit) -> Result<Seen> {
    match unit {
        Unit::Record(account) => records::record(graph, *account).await,
        Unit::Marks(account) => pairs::marks(graph, *account).await,
        Unit::Pair(reader, author) => pairs::pairs(graph, *reader, &[*author]).await.map(Seen::of),
        Unit::Requests(account, letter) => pairs::requests(graph, *account, *letter).await,
        Unit::Request(reader, author) => {
            Ok(Seen::of(pairs::request(graph, *reader, *author).await?.into_iter().collect()))
        }
        Unit::Home(account) => homes::home(graph, *account).await,
        Unit::Outbox(account) => outboxes::outbox(graph, *account).await,
        Unit::Post(post) => outboxes::post(graph, *post).await,
        Unit::Listed { post, author } => outboxes::listed(graph, *post, *author).await,
        Unit::Listing { post, to } => lists::listing(graph, *post, *to).await,
        Unit::ListEntry { post, author, list } => named::entry(graph, *post, *author, *list).await,
        Unit::Tie { account, post, what } => ties::tie(graph, *account, *post, *what).await,
        Unit::Reposted { account, original } => ties::reposted(graph, *account, *original).await,
        Unit::Set(set) => sets::set(graph, set).await,
        Unit::Structure(set) => sets::structure(graph, set).await.map(|(seen, _)| seen),
        Unit::Piece(set, piece) => sets::piece(graph, set, *piece).await,
        Unit::Guard(set) => sets::guard(graph, set).await,
        Unit::Claim(claim) => names::claim(graph, claim).await,
        Unit::Credentials(account) => names::credentials(graph, *account).await,
        Unit::Key(key) => loose::key(graph, key).await,
        Unit::Journal(bucket) => journals::journal(graph, *bucket).await,
        Unit::Days(bucket) => loose::days(graph, *bucket).await,
        Unit::Living => journals::living(graph).await,
    }
}
