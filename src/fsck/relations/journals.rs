//! Journals and leases: entries that nobody carries out, leases that nobody can read.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::cluster::Command;
use crate::error::Result;
use crate::fsck::ask::{read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, ReadData, Relation, Unit, left_alone};
use crate::functions::lease_ttl;
use crate::graph::Graph;
use crate::journal::{self, Journal};
use crate::tenant::{Scan, Tenant};

/// The journal of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BucketJournal(pub(super) Bucket);

/// An entry as it stands there, and whoever carries it out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StoredEntry {
    bucket: Bucket,
    id: Vec<u8>,
}

/// The leases of all who live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Leases;

impl Relation for BucketJournal {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(bucket) = *self;
        let key = tenant.keys().journal(bucket);
        let (mut entries, mut scan) = (Vec::new(), Scan::new("HSCAN", &key));
        while let Some(page) = scan.next(tenant).await? {
            entries.extend(page);
        }
        let read = (!entries.is_empty()).then_some(ReadData::Journal { bucket, entries });
        Ok(Observation { read, ..Observation::default() })
    }
}

/// Tells which entries of a bucket's journal nobody can read or nobody carries out.
pub(super) async fn of_entries(
    journal: &Journal,
    bucket: Bucket,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<Observation> {
    let living = journal::living(journal).await?;
    let found = entries.into_iter().filter_map(|(id, detail)| {
        let kind = match journal.parse(bucket, &id, &detail) {
            Err(_) => FindingKind::EntryUnknown,
            // Those of owners that don't live are searched for and taken over, unless nobody does that.
            Ok(entry) if !living.contains(&entry.owner) && !journal.tasks.knows(bucket, entry.id) => {
                FindingKind::EntryStale
            }
            Ok(_) => return None,
        };
        let told = format!("entry {} in the journal of bucket {bucket}", id.escape_ascii());
        let at = Unit::of(StoredEntry { bucket, id });
        Some(Deviation { kind, at, detail, told, excused_by: Vec::new() })
    });
    Ok(found.into())
}

impl Relation for StoredEntry {
    async fn look(&self, _: &Tenant) -> Result<Observation> {
        Ok(Observation::units([BucketJournal(self.bucket)]))
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        if found.kind != FindingKind::EntryStale {
            return Err(left_alone());
        }
        let _place = journal::reserve(&graph.journal, 1)?;
        journal::take_over(&graph.journal, graph.journal.parse(self.bucket, &self.id, &found.detail)?)
            .await?;
        Ok(Vec::new())
    }
}

impl Relation for Leases {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let all = read(tenant, "HGETALL", &tenant.keys().living(), &[]).await?.into_array()?;
        let mut found = Vec::new();
        for pair in all.chunks_exact(2) {
            let name = pair[0].bytes()?;
            // One that can't be read is nobody's; it only goes by itself if its time can be read.
            if name.len() != 8 || lease_ttl(pair[1].bytes()?).is_none() {
                let (kind, told) = (FindingKind::LeaseUnreadable, format!("lease {}", name.escape_ascii()));
                let (at, detail) = (Unit::of(*self), name.into());
                found.push(Deviation { kind, at, detail, told, excused_by: Vec::new() });
            }
        }
        Ok(found.into())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let (tenant, living) = (&graph.tenant, graph.tenant.keys().living());
        write(tenant, &living, Command::new("HDEL").arg(&living).arg(&found.detail)).await?;
        Ok(Vec::new())
    }
}
