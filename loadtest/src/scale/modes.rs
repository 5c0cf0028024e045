//! What the engine's cost model is to be told: the costs that were measured, as its settings.

use std::fmt;

use serde::Serialize;

use crate::stats::whole;
use crate::units::Units;

/// Settings of the section `modes`, in nanoseconds of servers and client together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Modes {
    delivery_ns: u64,
    skipped_ns: u64,
    pull_ns: u64,
    look_ns: u64,
}

impl Modes {
    pub(super) fn of(units: &Units) -> Self {
        Self {
            delivery_ns: ns(units.delivery_us),
            skipped_ns: ns(units.skipped_us),
            pull_ns: ns(units.pull_us),
            look_ns: ns(units.look_us),
        }
    }
}

fn ns([server, client]: [f64; 2]) -> u64 {
    whole((server + client) * 1_000.0)
}

/// As a file of settings has it.
impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delivery_ns, skipped_ns, pull_ns, look_ns } = self;
        writeln!(f, "[modes]\npolicy = \"cost\"\ndelivery_ns = {delivery_ns}\nskipped_ns = {skipped_ns}")?;
        writeln!(f, "pull_ns = {pull_ns}\nlook_ns = {look_ns}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_are_settings_that_the_engine_has() {
        let units = Units {
            delivery_us: [7.7, 1.3],
            skipped_us: [1.3, 0.9],
            pull_us: [0.0, 0.4],
            look_us: [4.0, 5.1],
            ..Units::default()
        };
        let printed: toml::Table = Modes::of(&units).to_string().parse().unwrap();
        let modes = printed["modes"].as_table().unwrap();
        let figures =
            ["delivery_ns", "skipped_ns", "pull_ns", "look_ns"].map(|name| modes[name].as_integer());
        assert_eq!(figures, [9_000, 2_200, 400, 9_100].map(Some));
        let shipped = include_str!("../../../deploy/tideline.toml");
        let shipped = shipped.split("[modes]").nth(1).unwrap();
        for name in modes.keys() {
            assert!(shipped.contains(&format!("\n#{name} = ")), "{name}");
        }
    }
}
