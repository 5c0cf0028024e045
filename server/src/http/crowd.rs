//! The number of things that one address has under way: connections, and requests with bodies.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::address::{Network, counted_as};

/// Connections, or requests, that are open, by where they come from.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    /// What there are so many of, and the setting that bounds them.
    of: (&'static str, &'static str),
    exempt: Vec<Network>,
    open: Mutex<HashMap<String, usize>>,
    /// Whether it was told that there are too many: once, since it may be a proxy of whoever runs this.
    is_told: AtomicBool,
}

/// One of those of an address; dropped once it ends.
#[derive(Debug)]
pub(super) struct CrowdPlace {
    crowd: Arc<Crowd>,
    /// `None`: of an address that isn't counted.
    of: Option<String>,
}

impl Crowd {
    /// So many of each address, but for those in these networks. `of`: what they are, and the setting that bounds them.
    pub(super) fn new(most: usize, of: (&'static str, &'static str), exempt: Vec<Network>) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            of,
            exempt,
            open: Mutex::default(),
            is_told: AtomicBool::default(),
        })
    }

    /// A place for one more from there; `None`: that address has as many as it may.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<CrowdPlace> {
        if self.exempt.iter().any(|network| network.contains(address)) {
            return Some(CrowdPlace { crowd: Arc::clone(self), of: None });
        }
        let of = counted_as(address);
        let mut open = self.open();
        let many = open.entry(of.clone()).or_default();
        // One that has none is never refused, so none is counted for it in vain.
        if *many >= self.most {
            return None;
        }
        *many += 1;
        drop(open);
        Some(CrowdPlace { crowd: Arc::clone(self), of: Some(of) })
    }

    /// Writes down, the first time, that an address has as many as it may.
    pub(super) fn tell(&self, address: IpAddr) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let (what, setting) = self.of;
            tracing::warn!(
                %address,
                "an address has {} {what}, and gets no more: if it is a proxy of yours, name it under \
                 `trusted_proxies`, a service of yours under `limits_exempt`; `{setting}` is the bound. This is told \
                 once",
                self.most
            );
        }
    }

    /// Each step leaves it whole.
    fn open(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CrowdPlace {
    fn drop(&mut self) {
        let Some(of) = &self.of else { return };
        let mut open = self.crowd.open();
        match open.get_mut(of) {
            Some(many) if *many > 1 => *many -= 1,
            _ => drop(open.remove(of)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_places_and_nothing_is_kept_of_who_has_none() {
        let crowd = Crowd::new(2, ("connections", "most"), vec!["127.0.0.0/8".parse().unwrap()]);
        let enter = |address: &str| crowd.enter(address.parse().unwrap());
        let (one, two) = (enter("192.0.2.1").unwrap(), enter("::ffff:192.0.2.1").unwrap());
        assert!(enter("192.0.2.1").is_none());
        // Neither somebody else, nor who isn't counted.
        let other = enter("192.0.2.2").unwrap();
        let exempt: Vec<_> = (0..9).map(|_| enter("127.0.0.1").unwrap()).collect();
        drop(one);
        let again = enter("192.0.2.1").unwrap();
        assert!(enter("192.0.2.1").is_none());
        drop((two, again, other, exempt));
        assert!(crowd.open().is_empty());
    }
}
