//! What a scenario says about the policies, and about how long what others did may stay unseen, on which they depend.

use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use tideline::{EngineSettings, ModeSettings, PolicyName};

const COST_MAX_NS: u64 = 1_000_000_000;
const VISIBLE_WITHIN_MAX_MS: u64 = 3_600_000;

/// Settings of the policies that take some; what is left out is as the engine has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policies {
    /// Of `threshold`: pulled from so many followers on. 0: a twentieth of all accounts.
    pub(crate) pull_from: u64,
    /// Of `cost_model`, in nanoseconds: what a delivery costs servers and client.
    pub(crate) delivery_ns: u64,
    /// A follower without a home.
    pub(crate) skipped_ns: u64,
    /// One more pulled author of a page.
    pub(crate) pull_ns: u64,
    /// What its outbox costs more when no cache has it.
    pub(crate) look_ns: u64,
    /// What others did shows after this long at the latest, so caches may answer for so long. Of all systems but
    /// `books_pull`.
    pub(crate) visible_within_ms: u64,
}

impl Default for Policies {
    fn default() -> Self {
        let EngineSettings { visible_within, modes, .. } = EngineSettings::default();
        let ModeSettings { delivery_ns, skipped_ns, pull_ns, look_ns, .. } = modes;
        let visible_within_ms = u64::try_from(visible_within.as_millis()).unwrap_or(VISIBLE_WITHIN_MAX_MS);
        Self { pull_from: 0, delivery_ns, skipped_ns, pull_ns, look_ns, visible_within_ms }
    }
}

impl Policies {
    /// Pulled from so many on, and pushed again below so many, on a network of so many accounts.
    pub(crate) fn threshold(self, accounts: u64) -> (u64, u64) {
        let from = if self.pull_from == 0 { (accounts / 20).max(1) } else { self.pull_from };
        (from, from / 2)
    }

    /// What the engine makes the cost model of.
    pub(crate) fn cost_model(self) -> ModeSettings {
        let Self { delivery_ns, skipped_ns, pull_ns, look_ns, .. } = self;
        ModeSettings {
            policy: PolicyName::Cost,
            delivery_ns,
            skipped_ns,
            pull_ns,
            look_ns,
            ..ModeSettings::default()
        }
    }

    /// The engine's setting of that name.
    pub(crate) fn visible_within(self) -> Duration {
        Duration::from_millis(self.visible_within_ms)
    }

    pub(super) fn check(self) -> anyhow::Result<()> {
        for (name, ns) in [
            ("delivery_ns", self.delivery_ns),
            ("skipped_ns", self.skipped_ns),
            ("pull_ns", self.pull_ns),
            ("look_ns", self.look_ns),
        ] {
            ensure!(ns <= COST_MAX_NS, "{name} must be up to a second, 1,000,000,000; it is {ns}");
        }
        let ms = self.visible_within_ms;
        ensure!(
            ms <= VISIBLE_WITHIN_MAX_MS,
            "visible_within_ms must be up to an hour, 3,600,000; it is {ms}. 0 turns the caches off"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_goes_by_the_size_of_the_network_unless_told() {
        assert_eq!(Policies::default().threshold(10_000), (500, 250));
        assert_eq!(Policies { pull_from: 64, ..Policies::default() }.threshold(10_000), (64, 32));
    }

    #[test]
    fn what_is_left_out_is_as_the_engine_has_it() {
        let policies = Policies::default();
        assert_eq!(policies.visible_within(), EngineSettings::default().visible_within);
        let modes = ModeSettings { policy: PolicyName::Cost, ..ModeSettings::default() };
        assert_eq!(policies.cost_model(), modes);
    }
}
