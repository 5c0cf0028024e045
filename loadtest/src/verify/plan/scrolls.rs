//! Homes that are read by importance, and the public timeline, of a plan. Drawn by themselves, so that the rest of a
//! plan is what it is without them.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Planner;
use crate::verify::call::Which;
use crate::verify::steps::{Action, Step, Walked};

/// How often, per step, somebody reads a home by importance.
const SCROLLING: f64 = 0.005;
/// How often somebody reads what everybody posts.
const BROWSING: f64 = 0.01;
/// What the seeds of these differ in from that of everything else.
const OTHER_SEED: u64 = 0x005c_2011_5eed_0000;
const OPEN_SEED: u64 = 0x0000_0be4_5eed_0000;

/// What these are drawn from.
#[derive(Debug)]
pub(super) struct Scrolling {
    by_importance: StdRng,
    public: StdRng,
}

impl Scrolling {
    pub(super) fn new(seed: u64) -> Self {
        let of = |other: u64| StdRng::seed_from_u64(seed ^ other);
        Self { by_importance: of(OTHER_SEED), public: of(OPEN_SEED) }
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
        let random = &mut self.imagined.scrolling.by_importance;
        if self.is_plain || self.is_beside_an_older || !random.random_bool(SCROLLING) {
            return None;
        }
        let actor = random.random_range(1..=self.accounts);
        let (instance, limit) = (random.random_range(0..1_000), random.random_range(4..=40));
        if self.imagined.gone.contains(&actor) {
            return None;
        }
        Some(self.reading(actor, instance, Action::Scroll { limit }))
    }

    /// Perhaps somebody reads some pages of the public timeline.
    pub(super) fn browse(&mut self) -> Option<Step> {
        let random = &mut self.imagined.scrolling.public;
        if self.is_plain || self.is_beside_an_older || !random.random_bool(BROWSING) {
            return None;
        }
        let actor = random.random_range(1..=self.accounts);
        let (instance, up) = (random.random_range(0..1_000), random.random_bool(0.3));
        let limits = (0..random.random_range(1..6)).map(|_| random.random_range(1..=40)).collect();
        if self.imagined.gone.contains(&actor) {
            return None;
        }
        let which = Walked::Which(Which::Public);
        Some(self.reading(actor, instance, Action::Walk { which, limits, up, around: None }))
    }

    fn reading(&self, actor: u64, instance: usize, action: Action) -> Step {
        let client = usize::try_from(actor).unwrap_or(0) % self.clients;
        Step { actor, client, instance, action }
    }
}
