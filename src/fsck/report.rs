//! The outcome of fsck.

use std::collections::BTreeMap;

use serde::Serialize;

use super::kind::FindingKind;
use super::seen::Deviation;

/// Examples kept of each kind.
const EXAMPLES_MAX: usize = 10;

/// A report of what fsck found, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FsckReport {
    /// Keys that were looked at.
    pub keys: u64,
    /// Accounts among them.
    pub accounts: u64,
    /// Findings by kind; kinds of which nothing was found are left out.
    pub findings: BTreeMap<FindingKind, Findings>,
    /// What looked out of step while work on it was under way for as long as was waited: nothing is known about it.
    pub in_flight: u64,
    /// What only the archive could tell, and didn't, because it was away or lacks what it once had: nothing is known
    /// about it.
    pub untold: u64,
    /// What the archive holds, as far as it was looked through; none: the tenant has none.
    pub archived: Option<ArchivedCount>,
}

/// Counts of what an archive holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ArchivedCount {
    /// Accounts of which it has ever had anything.
    pub owners: u64,
    /// Posts.
    pub posts: u64,
    /// Bytes of these, without their lists.
    pub bytes: u64,
}

/// The findings of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The number that was found.
    pub found: u64,
    /// The number of these that a repair has put right.
    pub repaired: u64,
    /// Whether they do no harm: see [`FindingKind::is_harmless`].
    pub is_harmless: bool,
    /// Some of them, those that are left first.
    pub examples: Vec<String>,
}

impl Findings {
    /// Counts those that are there still.
    pub fn left(&self) -> u64 {
        self.found - self.repaired
    }
}

impl FsckReport {
    /// Whether nothing is left that is wrong, and everything could be told.
    pub fn is_clean(&self) -> bool {
        self.untold == 0
            && self.findings.values().all(|findings| findings.is_harmless || findings.left() == 0)
    }

    pub(super) fn add(&mut self, deviation: &Deviation, is_repaired: bool) {
        let kind = deviation.kind;
        let of = self.findings.entry(kind).or_default();
        of.is_harmless = kind.is_harmless();
        of.found += 1;
        of.repaired += u64::from(is_repaired);
        if of.examples.len() < EXAMPLES_MAX {
            of.examples.push(deviation.told.clone());
        } else if !is_repaired {
            of.examples.pop();
            of.examples.insert(0, deviation.told.clone());
        }
    }
}

/// The progress of a run of fsck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct FsckProgress {
    /// Keys of this tenant that were looked at.
    pub keys: u64,
    /// About how many keys there are, of all tenants.
    pub of: u64,
    /// The number of things that seem out of step so far, and are looked at again.
    pub suspects: u64,
    /// The number of things that are out of step.
    pub found: u64,
}
