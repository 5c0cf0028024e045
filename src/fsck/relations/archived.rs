//! The archive's content, against what memory knows of it: accounts that are gone, posts that nobody lists.
//!
//! What the archive has beyond what memory knows is never taken away here (H201): after memory was restored from a copy
//! that is older than the archive, it is all that is left of these posts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::outboxes::PostAt;
use super::undone::{BuriedOwner, OwnerAhead};
use crate::account::AccountState;
use crate::archive::{Owner, PageAsk, PageContent, PageOrder};
use crate::cluster::{Reply, Request};
use crate::delivery::DeliverTask;
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::fsck::ask::{self, leave, request};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit, left_alone};
use crate::functions;
use crate::graph::{BuryTask, Graph};
use crate::ids::{AccountId, PostId};
use crate::journal::Matter;
use crate::post::PostRef;
use crate::stored::{AgendaEntry, ArchiveFloor, DELETED};
use crate::tenant::{Answers, Tenant, archive_away};
use crate::tiers::recover;

/// An account that a step through the archive has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MetOwner {
    pub(crate) account: AccountId,
    pub(crate) is_buried: bool,
    pub(crate) upto: PostId,
}

/// Accounts that a step through the archive has met.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OwnersInArchive(pub(crate) Vec<MetOwner>);

/// Posts that a step through the archive has met.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PostsInArchive(pub(crate) Vec<PostRef>);

/// An account's part of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OwnerInArchive(AccountId);

/// A post above where its author's outbox says that the archive begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PostInArchive(PostRef);

/// Memory's word on an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerStanding {
    Unknown,
    Deleted,
    /// It is there, and the archive begins there.
    There(Option<PostId>),
}

pub(super) async fn standings(tenant: &Tenant, accounts: &[AccountId]) -> Result<Vec<OwnerStanding>> {
    let (keys, mut batch) = (tenant.keys(), crate::cluster::Batch::new());
    for account in accounts {
        batch.push_ordered([
            request("HGET", &keys.account(*account), &[RecordField::STATE.as_bytes()]),
            request("LINDEX", &keys.outbox(*account), &[b"0"]),
        ]);
    }
    let mut answers = Answers::of(tenant, batch).await?;
    let mut next = || {
        let (state, first) = (answers.next()?, answers.next()?);
        if state.is_nil() {
            return Ok(OwnerStanding::Unknown);
        }
        let is_deleted = AccountState::parse(state.bytes()?) == AccountState::Deleted;
        let upto = ArchiveFloor::read(&first)?.map(|floor| floor.upto);
        Ok(if is_deleted { OwnerStanding::Deleted } else { OwnerStanding::There(upto) })
    };
    accounts.iter().map(|_| next()).collect()
}

impl Relation for OwnersInArchive {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let accounts: Vec<AccountId> = self.0.iter().map(|owner| owner.account).collect();
        let (mut unknown, mut buried, mut ahead) = (Vec::new(), Vec::new(), Vec::new());
        for (owner, standing) in self.0.iter().zip(standings(tenant, &accounts).await?) {
            match standing {
                OwnerStanding::Unknown => unknown.push(OwnerInArchive(owner.account)),
                // What is left of its posts is met with these.
                OwnerStanding::Deleted if owner.is_buried => {}
                OwnerStanding::Deleted => unknown.push(OwnerInArchive(owner.account)),
                OwnerStanding::There(_) if owner.is_buried => buried.push(BuriedOwner(owner.account)),
                OwnerStanding::There(upto) if upto.is_none_or(|upto| upto < owner.upto) => {
                    ahead.push(OwnerAhead(owner.account));
                }
                OwnerStanding::There(_) => {}
            }
        }
        let seen = Observation::units(unknown).and(Observation::units(buried));
        Ok(seen.and(Observation::units(ahead)))
    }
}

impl Relation for PostsInArchive {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let owners: BTreeSet<AccountId> = self.0.iter().map(|post| post.author).collect();
        let owners: Vec<AccountId> = owners.into_iter().collect();
        let standings = standings(tenant, &owners).await?;
        let of: BTreeMap<AccountId, OwnerStanding> = owners.iter().copied().zip(standings).collect();
        let is_there = |owner: &&AccountId| matches!(of.get(*owner), Some(OwnerStanding::There(_)));
        let gone = owners.iter().filter(|owner| !is_there(owner)).map(|owner| OwnerInArchive(*owner));
        let is_above = |post: &&PostRef| match of.get(&post.author) {
            Some(OwnerStanding::There(upto)) => upto.is_none_or(|upto| post.id > upto),
            _ => false,
        };
        let above = self.0.iter().filter(is_above).map(|post| PostInArchive(*post));
        Ok(Observation::units(gone).and(Observation::units(above)))
    }
}

impl Relation for OwnerInArchive {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let (Self(account), Some(archive)) = (self.clone(), tenant.archive()?) else {
            return Ok(Observation::default());
        };
        let agenda = tenant.keys().agenda(tenant.bucket(account));
        let settles =
            ask::read(tenant, "ZSCORE", &agenda, &[&AgendaEntry::Unsettled(account).to_bytes()]).await?;
        let owner = Owner { bucket: tenant.bucket(account), account };
        let all = PageAsk { owner, edge: PostId::from_u64(0)?, most: 1 };
        let page =
            archive.pages(&[all], PageOrder::OldestFirst, PageContent::Ids).await.map_err(archive_away)?;
        let page = page.into_iter().next().ok_or_else(|| Error::internal("the archive has not answered"))?;
        let (is_known, has_posts) = (page.owner.is_some(), !page.ids.is_empty());
        let is_buried = page.owner.is_some_and(|owner| owner.is_buried);
        // After that: who is deleted stays so.
        let kind = match standings(tenant, &[account]).await?.first() {
            Some(OwnerStanding::Unknown) if is_known || has_posts => FindingKind::ArchivedOfNobody,
            // H187: what the archive may lose of a burial is looked at once more, and then the note goes.
            Some(OwnerStanding::Deleted) if settles.is_nil() && (has_posts || is_known && !is_buried) => {
                FindingKind::ArchivedAfterBurial
            }
            _ => return Ok(Observation::default()),
        };
        let told = format!("account {account}");
        let excused_by = vec![Matter::Burial(account)];
        Ok([Deviation { kind, at: Unit::of(self.clone()), detail: Vec::new(), told, excused_by }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        if found.kind != FindingKind::ArchivedAfterBurial {
            return Err(left_alone());
        }
        // What its posts leave elsewhere goes with them.
        leave(&graph.journal, graph.tenant.bucket(self.0), BuryTask { account: self.0 })
            .await
            .map(|()| Vec::new())
    }
}

impl Relation for PostInArchive {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(PostRef { id, author }) = *self;
        if !tenant.posts().has_row(self.0, None).await? {
            return Ok(Observation::default());
        }
        // After that: a mover stores what the outbox lists, and the floor passes it then.
        let Some(OwnerStanding::There(upto)) = standings(tenant, &[author]).await?.first().copied() else {
            return Ok(Observation::default());
        };
        let page = functions::outbox_page(tenant.keys().outbox(author), true, id.get() + 1, 1);
        let page = tenant.router().call(Request::read(tenant.slot(author), page)).await?.into_array()?;
        let number = |reply: &Reply| {
            reply.bytes().ok()?.try_into().ok().map(|bytes| u64::from_be_bytes(bytes) & !DELETED)
        };
        // Of one that was deleted the archive forgets it when the floor passes it (H172).
        let is_listed = page.get(1).and_then(number) == Some(id.get());
        if is_listed || upto.is_some_and(|upto| id <= upto) {
            return Ok(Observation::default());
        }
        let told = format!("post {id} of account {author}");
        let (kind, excused_by) = (FindingKind::ArchivedUnlisted, vec![Matter::Burial(author)]);
        Ok([Deviation { kind, at: Unit::of(self.clone()), detail: Vec::new(), told, excused_by }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, _found: &Deviation) -> Result<Vec<Unit>> {
        if !recover(&graph.tenant, self.0).await? {
            return Ok(Vec::new());
        }
        leave(&graph.journal, graph.tenant.bucket(self.0.author), DeliverTask { post: self.0 }).await?;
        // What it names, and who has reposted it, memory has forgotten too.
        Ok(vec![Unit::of(PostAt(self.0.id))])
    }
}
