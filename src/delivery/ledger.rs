//! The work that a round has done and the work that it has left, bucket by bucket. A server that is away costs the
//! round the buckets that lie there, and none of those that it has visited elsewhere.

use crate::bucket::Bucket;
use crate::cluster::{Epoch, FenceOutcome, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{AcknowledgedBuckets, BucketSet, JournalEntry, RoundPart, VisitedBuckets, left_by};
use crate::tenant::Tenant;

/// A ledger of what a round has done and what it has left.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Visited, and not known to be on replicas yet.
    visited: Vec<AcknowledgedBuckets>,
    /// To be visited again.
    left: BucketSet,
    /// Nothing was visited since it was last seen what lasts.
    is_fenced: bool,
    /// Some server that had part in it had no replica to fence.
    lacks_replicas: bool,
    /// Why something is left, or not on replicas. What doesn't go by itself comes before what does.
    why: Option<Error>,
}

impl Ledger {
    /// Goes on with what an earlier run could not bring onto replicas. What was lost meanwhile is left again: the
    /// entry's checkpoint says so.
    pub(crate) async fn open(tenant: &Tenant, entry: &mut JournalEntry) -> Self {
        let Some((mut left, written)) = left_by(&entry.checkpoint) else { return Self::default() };
        let mut visited = std::mem::take(&mut entry.unfenced);
        if visited.is_empty() {
            let named = |(name, buckets): VisitedBuckets| (tenant.router().epoch_named(&name), buckets);
            visited = written.into_iter().map(named).collect();
        }
        let mut ledger = Self { visited, ..Self::default() };
        // H114: what was acknowledged counts if it can be fenced by now. What its server has lost is left again, of
        // what nobody can say yet it waits.
        if !ledger.visited.is_empty() {
            ledger.fence(tenant).await;
            left.extend(&std::mem::take(&mut ledger.left));
        }
        entry.checkpoint = RoundPart::Left(left).to_string();
        ledger
    }

    /// A follower in this bucket was visited, says the server of that epoch.
    pub(crate) fn visited(&mut self, bucket: Bucket, epoch: &Epoch) {
        self.is_fenced = false;
        match self.visited.iter_mut().find(|(known, _)| known == epoch) {
            Some((_, buckets)) => buckets.insert(bucket),
            None => {
                let mut buckets = BucketSet::default();
                buckets.insert(bucket);
                self.visited.push((epoch.clone(), buckets));
            }
        }
    }

    /// These servers have said who in this bucket is to be visited, one after the other.
    pub(crate) fn told(&mut self, bucket: Bucket, said: &TouchedServers) {
        // H120: if one that was replaced has said so, somebody else is to be visited.
        said.epochs().iter().for_each(|epoch| self.visited(bucket, epoch));
    }

    /// A follower in this bucket could not be visited.
    pub(crate) fn left(&mut self, bucket: Bucket, why: Error) {
        self.left.insert(bucket);
        self.failed(why);
    }

    fn failed(&mut self, why: Error) {
        if self.why.as_ref().is_none_or(|known| known.kind().is_retryable() && !why.kind().is_retryable()) {
            self.why = Some(why);
        }
    }

    /// Adds what was done beside.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.is_fenced &= other.visited.is_empty();
        for (epoch, buckets) in other.visited {
            match self.visited.iter_mut().find(|(known, _)| *known == epoch) {
                Some((_, ours)) => ours.extend(&buckets),
                None => self.visited.push((epoch, buckets)),
            }
        }
        self.left.extend(&other.left);
        other.why.into_iter().for_each(|why| self.failed(why));
    }

    /// Whether nothing is left, and all that was visited is on replicas.
    pub(crate) fn is_settled(&self) -> bool {
        self.left.is_empty() && self.visited.is_empty()
    }

    /// Makes sure that what was visited lasts, server by server. Whose server has forgotten it is left; whose server
    /// can't say stays as it is.
    pub(crate) async fn fence(&mut self, tenant: &Tenant) {
        if std::mem::replace(&mut self.is_fenced, true) {
            return;
        }
        let mut all = TouchedServers::new();
        self.visited.iter().for_each(|(epoch, _)| all.add_epoch(epoch));
        let e = match tenant.router().fence(&all).await {
            Ok(outcome) => {
                self.lacks_replicas |= outcome == FenceOutcome::WithoutReplicas;
                return self.visited.clear();
            }
            Err(e) => e,
        };
        let only = (self.visited.len() == 1).then_some(e);
        for (epoch, buckets) in std::mem::take(&mut self.visited) {
            let mut one = TouchedServers::new();
            one.add_epoch(&epoch);
            let fenced = match &only {
                Some(e) => Err(e.clone()),
                None => tenant.router().fence(&one).await,
            };
            match fenced {
                Ok(outcome) => self.lacks_replicas |= outcome == FenceOutcome::WithoutReplicas,
                Err(e) => {
                    match e.kind() {
                        // H76: what it has forgotten is to be done again.
                        ErrorKind::Conflict => self.left.extend(&buckets),
                        _ => self.visited.push((epoch, buckets)),
                    }
                    self.failed(e);
                }
            }
        }
    }

    /// Ends a run that could not go on: what an earlier one has done is kept. Of what this one has done nobody can say
    /// which followers that were, so it is done again.
    pub(crate) fn keep(self, entry: &mut JournalEntry) {
        entry.lacks_replicas |= self.lacks_replicas;
        if matches!(RoundPart::of(&entry.checkpoint), RoundPart::Left(_)) {
            entry.unfenced = self.visited;
        }
    }

    /// Ends a run: the entry knows what is left, and the error says why. In memory at first: whoever puts it aside
    /// writes it into the journal.
    pub(crate) fn close(self, entry: &mut JournalEntry) -> Result<()> {
        entry.lacks_replicas |= self.lacks_replicas;
        if self.is_settled() {
            return Ok(());
        }
        let why = self.why.unwrap_or_else(|| {
            let unfenced: Vec<String> = self.visited.iter().map(|(epoch, _)| epoch.name()).collect();
            Error::unavailable(format!(
                "a round has left the buckets [{}], and what lasts of it at {unfenced:?} is unknown; it goes on there",
                self.left
            ))
        });
        entry.checkpoint = RoundPart::Left(self.left).to_string();
        entry.unfenced = self.visited;
        Err(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeAddr;
    use crate::delivery::DeliverTask;
    use crate::ids::{AccountId, PostId};
    use crate::post::PostRef;

    #[test]
    fn what_is_left_stands_in_the_entry_and_the_worst_reason_is_told() {
        let task = DeliverTask {
            post: PostRef { id: PostId::from_u64(7).unwrap(), author: AccountId::new(1).unwrap() },
        };
        let mut entry = JournalEntry::new(Bucket(0), [1; 8], task);
        let epoch = Epoch::of_life(NodeAddr::new("node", 1), 0);
        let (mut ledger, mut beside) = (Ledger::default(), Ledger::default());
        ledger.visited(Bucket(3), &epoch);
        ledger.left(Bucket(9), Error::unavailable("silent"));
        beside.visited(Bucket(4), &epoch);
        beside.left(Bucket(8), Error::internal("another type"));
        beside.left(Bucket(10), Error::unavailable("silent"));
        ledger.absorb(beside);
        assert!(!ledger.left.is_empty() && !ledger.is_settled());
        assert_eq!(ledger.close(&mut entry).unwrap_err().to_string(), "another type");
        assert_eq!(entry.checkpoint, "left.8-10");
        let [(of, buckets)] = &entry.unfenced[..] else { panic!("{:?}", entry.unfenced) };
        assert_eq!((of, buckets.to_string().as_str()), (&epoch, "3-4"));
        assert!(Ledger::default().close(&mut entry).is_ok());
    }
}
