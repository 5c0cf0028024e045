//! Which calls are under way, where and about whom: whether a fault met any that it can affect.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::call::Call;
use super::facts::{OPEN, Time, Window};

/// A call that was sent to an instance, until it was answered or given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentCall {
    pub(crate) instance: usize,
    /// Whose data it certainly needs.
    pub(crate) account: Option<u64>,
    /// Whether it writes.
    pub(crate) changes: bool,
    /// Whether a hasty instance would lie about it.
    pub(crate) is_rushed: bool,
    when: Window,
}

/// All calls of a run.
#[derive(Debug)]
pub(crate) struct SentCalls {
    began: Instant,
    calls: Mutex<Vec<SentCall>>,
}

/// A call that is under way; over when it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    all: &'a SentCalls,
    number: usize,
}

impl SentCalls {
    /// Of a run that began then.
    pub(crate) fn new(began: Instant) -> Self {
        Self { began, calls: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::try_from(self.began.elapsed().as_micros()).unwrap_or(Time::MAX - 1)
    }

    pub(crate) fn begin(&self, instance: usize, call: &Call) -> UnderWay<'_> {
        let when = Window { from: self.now(), to: OPEN };
        let (account, changes, is_rushed) = (call.whose(), call.changes(), call.hasty_reply().is_some());
        let mut calls = self.calls();
        calls.push(SentCall { instance, account, changes, is_rushed, when });
        UnderWay { all: self, number: calls.len() - 1 }
    }

    /// Whether such a call was under way at some time since then, or is.
    pub(crate) fn any_since(&self, since: Time, is_such: impl Fn(&SentCall) -> bool) -> bool {
        self.calls().iter().any(|call| call.when.to >= since && is_such(call))
    }

    fn calls(&self) -> MutexGuard<'_, Vec<SentCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let now = self.all.now();
        self.all.calls()[self.number].when.to = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_meets_what_was_under_way_since_it_struck_and_what_it_can_affect() {
        let calls = SentCalls::new(Instant::now());
        let is_of = |account| move |call: &SentCall| call.account == Some(account);
        drop(calls.begin(0, &Call::Warm { account: 1 }));
        while calls.now() == 0 {}
        let struck = calls.now() + 1;
        while calls.now() < struck {}
        let _write = calls.begin(1, &Call::DeleteAccount { account: 2 });
        // One was over before, nobody has called for the third.
        assert!([1, 2, 3].map(|account| calls.any_since(struck, is_of(account))) == [false, true, false]);
        assert!(calls.any_since(0, is_of(1)));
        assert!(calls.any_since(struck, |call| call.instance == 1 && call.changes));
        assert!(!calls.any_since(struck, |call| call.instance == 0 || !call.changes));
    }
}
