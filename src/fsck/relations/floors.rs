//! The place where memory says that the archive begins, and whether the archive has got so far; what stands in agendas.

use std::sync::Arc;

use crate::archive::Owner;
use crate::bucket::Bucket;
use crate::cluster::Command;
use crate::error::Result;
use crate::fields::RecordField;
use crate::fsck::ask::{read, request, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit, left_alone};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::stored::{AgendaEntry, ArchiveFloor};
use crate::tenant::{Answers, Scan, Tenant, archive_away};
use crate::tiers::{accept_lagging, lagging};

/// Floors of outboxes that a step of the walk has met.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FloorsOf(pub(super) Vec<AccountId>);

/// A floor of one account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FloorOf(AccountId);

/// The agenda of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AgendaOf(pub(super) Bucket);

/// An entry of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct EntryOfAgenda {
    bucket: Bucket,
    entry: Vec<u8>,
}

/// Floors of which the archive lacks something: up to where it should have all, and what it says.
async fn behind(tenant: &Tenant, accounts: &[AccountId]) -> Result<Vec<(AccountId, String)>> {
    let Some(archive) = tenant.archive()? else { return Ok(Vec::new()) };
    let first = |account: &AccountId| request("LINDEX", &tenant.keys().outbox(*account), &[b"0"]);
    let mut answers = Answers::of(tenant, accounts.iter().map(first).collect()).await?;
    let mut floors = Vec::new();
    for account in accounts {
        if let Some(floor) = ArchiveFloor::read(&answers.next()?)? {
            floors.push((*account, floor));
        }
    }
    if floors.is_empty() {
        return Ok(Vec::new());
    }
    let owner = |account: AccountId| Owner { bucket: tenant.bucket(account), account };
    let owners: Vec<Owner> = floors.iter().map(|(account, _)| owner(*account)).collect();
    let states = archive.owners(&owners).await.map_err(archive_away)?;
    // After the floors: what the archive has got to it doesn't lose.
    let lacks = floors.into_iter().zip(states).filter_map(|((account, floor), state)| {
        floor.check(account, state).err()?;
        let has = state.map_or("nothing".into(), |state| {
            format!("token {}, posts up to {}", state.token.number, state.upto)
        });
        let wanted = format!("token {}, posts up to {}", floor.settled, floor.upto);
        Some((account, format!("of account {account} it has {has}, and once had {wanted}")))
    });
    Ok(lacks.collect())
}

impl Relation for FloorsOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let behind = behind(tenant, &self.0).await?;
        Ok(Observation::units(behind.into_iter().map(|(account, _)| FloorOf(account))))
    }
}

impl Relation for FloorOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Some((account, told)) = behind(tenant, &[self.0]).await?.into_iter().next() else {
            return Ok(Observation::default());
        };
        let lost = lagging(tenant, account).await?.map_or(0, |owner| owner.lost());
        let told = format!("{told}{}", told_of(lost));
        let (kind, at) = (FindingKind::ArchiveBehind, Unit::of(self.clone()));
        Ok([Deviation { kind, at, detail: told.clone().into(), told, excused_by: Vec::new() }].into())
    }
}

/// Tells what it costs to go by an archive that is behind.
fn told_of(lost: i64) -> String {
    match lost {
        0 => String::new(),
        1.. => format!("; {lost} of its posts are neither there nor in memory"),
        _ => format!("; {} posts are there that the account deleted", -lost),
    }
}

/// Has an account go by what the archive has of it, for good.
pub(super) async fn accept_loss(tenant: &Tenant, unit: &Unit) -> Result<Vec<Unit>> {
    let Some(FloorOf(account)) = unit.downcast() else { return Err(left_alone()) };
    if let Some(lost) = accept_lagging(tenant, *account).await? {
        tracing::warn!(
            "account {account} goes by what the archive has of it, a copy that is older{}",
            told_of(lost)
        );
    }
    Ok(Vec::new())
}

impl Relation for AgendaOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(bucket) = *self;
        let (keys, mut suspects) = (tenant.keys(), Vec::new());
        let agenda = keys.agenda(bucket);
        let mut scan = Scan::new("ZSCAN", &agenda);
        while let Some(entries) = scan.next(tenant).await? {
            let mut known = Vec::new();
            for (entry, _) in entries {
                match AgendaEntry::parse(&entry).map(AgendaEntry::account) {
                    None => suspects.push(EntryOfAgenda { bucket, entry }),
                    Some(None) => {}
                    Some(Some(account)) => known.push((account, entry)),
                }
            }
            let state = |account: AccountId| {
                request("HGET", &keys.account(account), &[RecordField::STATE.as_bytes()])
            };
            let states = known.iter().map(|(of, _)| state(*of)).collect();
            let mut states = Answers::of(tenant, states).await?;
            for (_, entry) in known {
                suspects.extend(states.next()?.is_nil().then_some(EntryOfAgenda { bucket, entry }));
            }
        }
        Ok(Observation::units(suspects))
    }
}

impl Relation for EntryOfAgenda {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { bucket, entry } = self;
        let agenda = tenant.keys().agenda(*bucket);
        if read(tenant, "ZSCORE", &agenda, &[entry]).await?.is_nil() {
            return Ok(Observation::default());
        }
        let kind = match AgendaEntry::parse(entry).map(AgendaEntry::account) {
            None => FindingKind::EntryUnknown,
            Some(None) => return Ok(Observation::default()),
            // Of whoever was deleted something may be left that its mover takes away.
            Some(Some(account)) if tenant.account(account).await?.is_some() => {
                return Ok(Observation::default());
            }
            Some(Some(_)) => FindingKind::AgendaNeedless,
        };
        let told = format!("entry {} in the agenda of bucket {bucket}", entry.escape_ascii());
        let at = Unit::of(self.clone());
        Ok([Deviation { kind, at, detail: Vec::new(), told, excused_by: Vec::new() }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        if found.kind != FindingKind::AgendaNeedless {
            return Err(left_alone());
        }
        // Accounts come with an id that nobody had.
        let agenda = graph.tenant.keys().agenda(self.bucket);
        write(&graph.tenant, &agenda, Command::new("ZREM").arg(&agenda).arg(&self.entry))
            .await
            .map(|_| Vec::new())
    }
}
