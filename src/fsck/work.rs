//! The matters that tasks in journals are about. While a task is under way that puts a deviation right, or makes it
//! look so, nothing is known of that deviation.

use std::collections::HashSet;

use crate::bucket::Bucket;
use crate::error::Result;
use crate::journal::{self, Journal, Matter, Task};
use crate::tenant::Scan;

/// All work that is under way.
#[derive(Debug, Default)]
pub(super) struct WorkUnderWay(HashSet<Matter>);

impl WorkUnderWay {
    /// Reads all journals.
    pub(super) async fn read(journal: &Journal) -> Result<Self> {
        let tenant = &journal.tenant;
        let buckets: Vec<Bucket> = tenant.keys().buckets().all().collect();
        let mut under_way = Self::default();
        for (bucket, length) in journal::lengths(tenant, &buckets).await {
            if length? == 0 {
                continue;
            }
            let key = tenant.keys().journal(bucket);
            let mut scan = Scan::new("HSCAN", &key);
            while let Some(entries) = scan.next(tenant).await? {
                // One that this release doesn't know is a finding of its own.
                let known = entries.iter().filter_map(|(id, value)| journal.parse(bucket, id, value).ok());
                known.for_each(|entry| under_way.add(&entry.task));
            }
        }
        Ok(under_way)
    }

    pub(super) fn add(&mut self, task: &Task) {
        self.0.extend(task.matters());
    }

    /// Whether any of this is under way.
    pub(super) fn has_any(&self, matters: &[Matter]) -> bool {
        matters.iter().any(|matter| self.0.contains(matter))
    }
}
