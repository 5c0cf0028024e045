//! Tokens: whether they end, and whether the posts that they name are or were there. Tickets and
//! counters: whether they end.

use std::sync::Arc;

use crate::cluster::{Command, Reply, Request};
use crate::error::Result;
use crate::fsck::ask::{self, is_there, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions;
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::journal::Matter;
use crate::tenant::{Answers, Tenant};

/// A token of an account. What those of reports name is not looked at: the oldest reports go without a trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TokenKey {
    pub(super) key: Vec<u8>,
    pub(super) account: AccountId,
    pub(super) is_of_post: bool,
}

impl Relation for TokenKey {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { key, account, is_of_post } = self;
        let asked = [ask::request("GET", key, &[]), ask::request("PTTL", key, &[])];
        let mut answers = Answers::ordered(tenant, asked).await?;
        let (value, ttl) = (answers.next()?, answers.next()?.int()?);
        if value.is_nil() {
            return Ok(Observation::default());
        }
        let endless = (ttl == -1).then(|| self.found(FindingKind::TokenEndless, b""));
        let mut found = Vec::from_iter(endless);
        if *is_of_post {
            let id = value.bytes()?.try_into().ok().map(u64::from_be_bytes);
            let is_named = match id.and_then(|id| PostId::from_u64(id).ok()) {
                Some(id) => is_or_was(tenant, *account, id).await?,
                None => false,
            };
            // Tokens of an account that was deleted go with their time.
            if !is_named && is_there(tenant, *account).await? {
                found.push(self.found(FindingKind::TokenOfNoPost, value.bytes()?));
            }
        }
        Ok(found.into())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let command = if found.kind == FindingKind::TokenEndless {
            ends(&graph.tenant, &self.key)
        } else {
            functions::string_drop(self.key.clone(), &found.detail)
        };
        write(&graph.tenant, &self.key, command).await.map(|_| Vec::new())
    }
}

impl TokenKey {
    /// `detail`: the value that should go.
    fn found(&self, kind: FindingKind, detail: &[u8]) -> Deviation {
        let (told, excused_by) =
            (format!("key {}", self.key.escape_ascii()), vec![Matter::Burial(self.account)]);
        Deviation { kind, at: Unit::of(self.clone()), detail: detail.into(), told, excused_by }
    }
}

/// A ticket or a counter, by its key. Whose it is nobody can tell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct EndingKey(pub(super) Vec<u8>);

impl Relation for EndingKey {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(key) = self;
        if ask::read(tenant, "PTTL", key, &[]).await?.int()? != -1 {
            return Ok(Observation::default());
        }
        let (kind, at) = (FindingKind::TokenEndless, Unit::of(self.clone()));
        let told = format!("key {}", key.escape_ascii());
        Ok([Deviation { kind, at, detail: Vec::new(), told, excused_by: Vec::new() }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        let Self(key) = self;
        write(&graph.tenant, key, ends(&graph.tenant, key)).await.map(|_| Vec::new())
    }
}

/// Gives an end to a key without one.
fn ends(tenant: &Tenant, key: &[u8]) -> Command {
    let ttl = u64::try_from(tenant.settings.token_ttl.as_millis()).unwrap_or(u64::MAX);
    Command::new("PEXPIRE").arg(key).arg(ttl)
}

/// Whether an account has, or had, that post: its outbox has it, or has cut it off.
async fn is_or_was(tenant: &Tenant, account: AccountId, post: PostId) -> Result<bool> {
    let outbox = tenant.keys().outbox(account);
    let page = functions::outbox_page(outbox.clone(), true, post.get() + 1, 1);
    let asked = [Request::read(tenant.slot(account), page), ask::request("LINDEX", &outbox, &[b"0"])];
    let mut answers = Answers::ordered(tenant, asked).await?;
    let (page, first) = (answers.next()?.into_array()?, answers.next()?);
    let number = |reply: &Reply| {
        reply.bytes().ok()?.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes) & (u64::MAX >> 1))
    };
    let is_listed = page.get(1).and_then(number) == Some(post.get());
    Ok(is_listed || number(&first).is_some_and(|floor| floor >= post.get()))
}
