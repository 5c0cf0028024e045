//! The instances that live, as an observer sees it: pure. A lease is bytes that are others after each renewal. Whoever
//! sees the same bytes for as long as the lease was taken for, by its own monotonic clock, takes its owner for dead. No
//! server's clock has a say: one that was set back must not keep the dead alive for as long (H82), nor one that jumps
//! ahead bury the living.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::lease::IMPORT;
use crate::cluster::Epoch;
use crate::functions::lease_ttl;
use crate::nonce::Nonce;

/// One look counts for at most this part of a lease. Between two looks that are far apart the server may have been
/// away, and nobody could renew anything.
const PART_OF_A_LOOK: u32 = 4;

/// Leases as they have been seen so far.
#[derive(Debug, Default)]
pub(super) struct SeenLeases {
    /// In an order of its own: what is sent of it must be the same when a history is lived again.
    seen: BTreeMap<Nonce, Sighting>,
    /// What stands where a time should be: nobody's lease.
    unreadable: Vec<(Nonce, Vec<u8>)>,
    looked: Option<(Instant, Epoch)>,
}

#[derive(Debug)]
struct Sighting {
    value: Vec<u8>,
    ttl: Duration,
    /// For how long it has been the same.
    silent: Duration,
    /// It was seen to be renewed.
    has_changed: bool,
}

impl Sighting {
    fn is_over(&self) -> bool {
        self.silent >= self.ttl
    }
}

impl SeenLeases {
    /// Takes what stands there, as asked for at `now` and told by `said_by`. `ttl`: of leases that don't say for how
    /// long they were taken.
    pub(super) fn see(
        &mut self,
        (now, said_by): (Instant, Epoch),
        listed: Vec<(Vec<u8>, Vec<u8>)>,
        ttl: Duration,
    ) {
        // A failover brings back what stood there before: other bytes, and nobody has written them since (H102).
        let is_same_server = self.looked.as_ref().is_some_and(|(_, by)| *by == said_by);
        let looked = self.looked.replace((now, said_by));
        let since = looked.map_or(Duration::ZERO, |(at, _)| now.saturating_duration_since(at));
        let mut before = std::mem::take(&mut self.seen);
        self.unreadable.clear();
        for (name, value) in listed {
            // What is no name is nobody's: it must not keep everybody from starting.
            let Ok(name) = Nonce::try_from(name.as_slice()) else { continue };
            let Some(said) = lease_ttl(&value) else {
                self.unreadable.push((name, value));
                continue;
            };
            let ttl = said.unwrap_or(ttl);
            let sighting = match before.remove(&name) {
                Some(seen) if seen.value == value => {
                    Sighting { silent: seen.silent + since.min(ttl / PART_OF_A_LOOK), ..seen }
                }
                Some(seen) if !is_same_server => Sighting { value, ttl, silent: Duration::ZERO, ..seen },
                seen => Sighting { value, ttl, silent: Duration::ZERO, has_changed: seen.is_some() },
            };
            self.seen.insert(name, sighting);
        }
    }

    /// The holders of the leases that stand there, and have not been seen to be over.
    pub(super) fn living(&self) -> HashSet<Nonce> {
        self.seen.iter().filter(|(_, lease)| !lease.is_over()).map(|(name, _)| *name).collect()
    }

    /// Whether that lease stands there at all.
    pub(super) fn has(&self, name: &Nonce) -> bool {
        self.seen.contains_key(name)
    }

    /// Whether whoever holds that lease was seen to renew it.
    pub(super) fn is_renewed(&self, name: &Nonce) -> bool {
        self.seen.get(name).is_some_and(|lease| lease.has_changed && !lease.is_over())
    }

    /// Engines whose leases stand there: how many, and whether one of them was seen to renew it.
    pub(super) fn engines(&self) -> (usize, bool) {
        let engines: Vec<&Nonce> = self.seen.keys().filter(|name| *name != IMPORT).collect();
        (engines.len(), engines.iter().any(|name| self.is_renewed(name)))
    }

    /// Whether it is known of each lease, but that of `own`, whether it is renewed or over.
    pub(super) fn is_decided(&self, own: &Nonce) -> bool {
        self.seen.iter().all(|(name, lease)| name == own || lease.has_changed || lease.is_over())
    }

    /// Leases that are over, with what stood there: they may go.
    pub(super) fn over(&self) -> Vec<(Nonce, Vec<u8>)> {
        let over = self.seen.iter().filter(|(_, lease)| lease.is_over());
        let over = over.map(|(name, lease)| (*name, lease.value.clone()));
        let mut over: Vec<_> = over.chain(self.unreadable.iter().cloned()).collect();
        // In an order that doesn't change from run to run: a history of the simulation is what its seed says.
        over.sort_unstable();
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NodeAddr;

    const ADA: &[u8] = b"ada-----";
    const TTL: Duration = Duration::from_secs(10);

    /// Leases that are looked at each second.
    struct Observer {
        leases: SeenLeases,
        now: Instant,
        server: Epoch,
    }

    fn server(life: u32) -> Epoch {
        Epoch::of_life(NodeAddr::new("h", 1), life)
    }

    impl Observer {
        fn new() -> Self {
            Self { leases: SeenLeases::default(), now: Instant::now(), server: server(1) }
        }

        /// Looks, and tells whether Ada lives.
        fn look(&mut self, after: u64, said: &str) -> bool {
            self.now += Duration::from_secs(after);
            let at = (self.now, self.server.clone());
            self.leases.see(at, vec![(ADA.into(), said.as_bytes().into())], TTL);
            !self.leases.living().is_empty()
        }
    }

    #[test]
    fn whoever_is_silent_for_its_lease_is_dead_whatever_time_stands_there() {
        for said in ["1.10000", "1", "99999999999999.10000", "99999999999999"] {
            let mut observer = Observer::new();
            assert!((0..10).all(|_| observer.look(1, said)), "{said}");
            assert!(!observer.look(1, said), "{said}");
            assert_eq!(observer.leases.over(), [(*b"ada-----", said.as_bytes().to_vec())]);
        }
        let mut longer = Observer::new();
        assert!((0..20).all(|_| longer.look(1, "5.20000")));
        assert!(!longer.look(1, "5.20000"));
    }

    #[test]
    fn whoever_renews_lives_also_by_a_clock_that_goes_back() {
        let mut observer = Observer::new();
        let said = |n: i64| format!("{}.10000", 1_000_000 - 1_000 * n);
        assert!((0..20).all(|n| observer.look(5, &said(n))));
        assert!(observer.leases.is_renewed(b"ada-----") && observer.leases.is_decided(b"somebody"));
    }

    #[test]
    fn nobody_is_dead_because_nobody_could_look() {
        let mut observer = Observer::new();
        observer.look(1, "7.10000");
        // The server was away for a minute: who lives may renew its lease from now on.
        assert!(observer.look(60, "7.10000"));
        assert!((0..7).all(|_| observer.look(1, "7.10000")));
        assert!(!observer.look(1, "7.10000"));
    }

    #[test]
    fn what_a_failover_has_brought_back_is_no_renewal() {
        let mut observer = Observer::new();
        assert!(observer.look(1, "7.10000"));
        observer.server = server(2);
        assert!(observer.look(1, "4.10000"));
        assert!(!observer.leases.is_renewed(b"ada-----") && !observer.leases.is_decided(b"somebody"));
        // It may live all the same: whoever does renews it here too.
        assert!(observer.look(1, "17.10000"));
        assert!(observer.leases.is_renewed(b"ada-----"));
    }

    #[test]
    fn what_has_no_time_is_over_and_what_is_no_name_nobodys() {
        let mut leases = SeenLeases::default();
        let listed = [(ADA, "soon"), (b"odd", "5.5"), (b"(import)", "9.9")];
        let listed = listed.map(|(name, value)| (name.to_vec(), value.as_bytes().to_vec()));
        leases.see((Instant::now(), server(1)), listed.into(), TTL);
        assert_eq!(leases.living(), HashSet::from([*IMPORT]));
        assert_eq!(leases.over(), [(*b"ada-----", b"soon".to_vec())]);
        assert!(leases.has(IMPORT) && !leases.is_renewed(IMPORT) && !leases.is_decided(b"somebody"));
        assert_eq!(leases.engines(), (0, false));
    }
}
