//! A change of what a tenant has decided. Pure.

use std::collections::BTreeSet;

use super::decision::{Decision, TenantSettings};
use crate::error::Result;

/// A change of some of a tenant's settings.
///
/// What it names is what it removes, down to the new bounds, where these aren't above the old ones; the rest stays as it is.
/// Naming a setting with the value that it has finishes what was interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantChange {
    pub(super) from: Decision,
    to: TenantSettings,
    named: BTreeSet<&'static str>,
}

impl Decision {
    /// A change of this decision that names nothing yet.
    pub fn change(&self) -> TenantChange {
        TenantChange { from: *self, to: self.settings, named: BTreeSet::new() }
    }
}

impl TenantChange {
    /// Names a setting, and gives it that value. [`Invalid`](crate::ErrorKind::Invalid): there is none of that name, or it
    /// doesn't take that value, or is out of bounds.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        self.to.set(name, value)?;
        self.to.check()?;
        self.named.extend(TenantSettings::NAMES.into_iter().find(|known| *known == name));
        Ok(self)
    }

    /// The decision that it starts from.
    pub fn from(&self) -> Decision {
        self.from
    }

    /// The settings that it leads to.
    pub fn to(&self) -> TenantSettings {
        self.to
    }

    /// The decision that it leads to: the next one, or the same if nothing differs.
    pub(crate) fn decision(&self) -> Decision {
        let differs = self.from.number == 0 || self.to != self.from.settings;
        Decision { number: self.from.number + u32::from(differs), settings: self.to }
    }

    /// Whether it takes away what is beyond that setting's bound.
    pub(crate) fn cuts(&self, name: &str) -> bool {
        let from = self.from.settings.bound(name);
        let is_raised = |to: u32| from.is_some_and(|from| to > from);
        self.named.contains(name) && self.to.bound(name).is_some_and(|to| !is_raised(to))
    }

    /// Whether it takes anything away at all.
    pub fn removes(&self) -> bool {
        TenantSettings::NAMES.into_iter().any(|name| self.cuts(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Replicas;
    use crate::settings::EngineSettings;

    #[test]
    fn a_change_cuts_what_it_names_and_does_not_raise() {
        let settings = TenantSettings::of(&EngineSettings::default(), Replicas::Preferred);
        let decided = Decision { number: 4, settings };
        for (name, value, cuts) in [
            ("outbox_posts", "100", true),
            ("outbox_posts", "200000", true),
            ("outbox_posts", "200001", false),
            ("mentions_max", "20", true),
            ("tag_posts_max", "20", true),
            ("home_posts", "401", false),
            ("dormant_after_days", "3", true),
            ("dormant_after_days", "never", false),
            ("replicas", "absent", false),
        ] {
            let change = decided.change().set(name, value).unwrap();
            assert_eq!((change.cuts(name), change.removes()), (cuts, cuts), "{name}={value}");
            assert_eq!(change.decision().number, if value == "200000" { 4 } else { 5 });
            assert!(!change.cuts(if name == "home_posts" { "outbox_posts" } else { "home_posts" }));
        }
        assert!(!decided.change().removes());
        assert_eq!(Decision::none(settings).change().decision().number, 1);
        assert!(decided.change().set("outbox_post", "100").is_err());
    }
}
