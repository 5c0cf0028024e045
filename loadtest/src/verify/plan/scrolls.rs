//! Homes that are read by importance, of a plan. Drawn by themselves, so that the rest of a plan is what it is without
//! them.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Planner;
use crate::verify::steps::{Action, Step};

/// How often, per step, somebody reads a home by importance.
const SCROLLING: f64 = 0.005;
/// What the seed of that differs in from that of everything else.
const OTHER_SEED: u64 = 0x005c_2011_5eed_0000;

/// What that is drawn from.
#[derive(Debug)]
pub(super) struct Scrolling(StdRng);

impl Scrolling {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed ^ OTHER_SEED))
    }
}

impl Default for Scrolling {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Planner {
    /// Perhaps somebody reads all of its home by importance.
    pub(super) fn scroll(&mut self) -> Option<Step> {
        let Scrolling(random) = &mut self.imagined.scrolling;
        if self.is_plain || self.is_beside_an_older || !random.random_bool(SCROLLING) {
            return None;
        }
        let actor = random.random_range(1..=self.accounts);
        let (instance, limit) = (random.random_range(0..1_000), random.random_range(4..=40));
        if self.imagined.gone.contains(&actor) {
            return None;
        }
        let client = usize::try_from(actor).unwrap_or(0) % self.clients;
        Some(Step { actor, client, instance, action: Action::Scroll { limit } })
    }
}
