//! Rules of the protocol by name, bounds, and random bytes: what the simulation takes out, makes small, and draws
//! from its seed. Elsewhere a rule holds, a bound is what it is, and random bytes come from the operating system.

#[cfg(feature = "simulation")]
pub use simulated::{draw_from, holds, random, short_cuts, size, take_out, takes_short_cuts, within};

/// Whether a rule holds.
#[cfg(not(feature = "simulation"))]
#[inline]
pub const fn holds(_rule: &str) -> bool {
    true
}

/// Whether what is simple takes fewer calls: the simulation takes the long way too.
#[cfg(not(feature = "simulation"))]
#[inline]
pub const fn takes_short_cuts() -> bool {
    true
}

/// A bound.
#[cfg(not(feature = "simulation"))]
#[inline]
pub const fn size<T: Copy>(real: T, _in_the_simulation: T) -> T {
    real
}

/// Random bytes.
#[cfg(not(feature = "simulation"))]
#[inline]
pub fn random<T>() -> T
where
    rand::distr::StandardUniform: rand::distr::Distribution<T>,
{
    rand::random()
}

#[cfg(feature = "simulation")]
mod simulated {
    use std::cell::{Cell, RefCell};

    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    thread_local! {
        static OUT: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
        static SMALL: Cell<bool> = const { Cell::new(false) };
        static SHORT: Cell<bool> = const { Cell::new(true) };
        static RANDOM: RefCell<Option<StdRng>> = const { RefCell::new(None) };
    }

    pub fn holds(rule: &str) -> bool {
        !SMALL.get() || OUT.with_borrow(|out| !out.contains(&rule))
    }

    pub fn takes_short_cuts() -> bool {
        SHORT.get()
    }

    /// Whether this thread takes short cuts from now on.
    pub fn short_cuts(taken: bool) {
        SHORT.set(taken);
    }

    pub fn size<T: Copy>(real: T, in_the_simulation: T) -> T {
        if SMALL.get() { in_the_simulation } else { real }
    }

    pub fn random<T>() -> T
    where
        rand::distr::StandardUniform: rand::distr::Distribution<T>,
    {
        RANDOM.with_borrow_mut(|random| match random {
            Some(seeded) => seeded.random(),
            None => rand::random(),
        })
    }

    /// On this thread these rules don't hold from now on.
    pub fn take_out(rules: &[&'static str]) {
        OUT.set(rules.to_vec());
    }

    /// On this thread random bytes come from this seed.
    pub fn draw_from(seed: u64) {
        RANDOM.set(Some(StdRng::seed_from_u64(seed)));
    }

    /// Runs something with bounds as small as the simulation has them.
    pub fn within<R>(what: impl FnOnce() -> R) -> R {
        SMALL.set(true);
        let done = what();
        SMALL.set(false);
        SHORT.set(true);
        RANDOM.set(None);
        OUT.set(Vec::new());
        done
    }
}
