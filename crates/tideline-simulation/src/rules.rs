//! What is taken out, and what random bytes are drawn from, on this thread.

use std::cell::{Cell, RefCell};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

thread_local! {
    static OUT: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    static SHORT: Cell<bool> = const { Cell::new(true) };
    static RANDOM: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// Whether a rule holds.
pub(crate) fn holds(rule: &str) -> bool {
    OUT.with_borrow(|out| !out.contains(&rule))
}

/// Whether what is simple takes fewer calls.
pub(crate) fn takes_short_cuts() -> bool {
    SHORT.get()
}

/// Whether this thread takes short cuts from now on.
pub(crate) fn short_cuts(taken: bool) {
    SHORT.set(taken);
}

/// What the engine draws: of the seed, if there is one.
pub(crate) fn random<T>() -> T
where
    rand::distr::StandardUniform: rand::distr::Distribution<T>,
{
    RANDOM.with_borrow_mut(|random| match random {
        Some(seeded) => seeded.random(),
        None => rand::random(),
    })
}

/// Runs something without these rules, with random bytes of a seed.
pub(crate) fn without<R>(rules: &[&'static str], seed: u64, what: impl FnOnce() -> R) -> R {
    OUT.set(rules.to_vec());
    RANDOM.set(Some(StdRng::seed_from_u64(seed)));
    let done = what();
    SHORT.set(true);
    RANDOM.set(None);
    OUT.set(Vec::new());
    done
}
