//! A change of what a tenant has decided. Pure.

use std::collections::BTreeSet;

use super::decision::{Decision, TenantSettings};
use crate::error::{Error, Result};

/// A change of some of a tenant's settings.
///
/// What it names is what it removes, down to the new bounds, where these aren't above the old ones; the rest stays as
/// it is. Naming a setting with the value that it has finishes what was interrupted.
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
    /// Names a setting, and gives it that value. [`Invalid`](crate::ErrorKind::Invalid): there is none of that name, or
    /// it doesn't take that value, or is out of bounds.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        self.to.set(name, value)?;
        self.to.check()?;
        self.named.extend(TenantSettings::NAMES.into_iter().find(|known| *known == name));
        Ok(self)
    }

    /// Names all settings, with these values. [`Invalid`](crate::ErrorKind::Invalid): one is out of bounds.
    pub fn set_all(mut self, settings: TenantSettings) -> Result<Self> {
        settings.check()?;
        self.to = settings;
        self.named.extend(TenantSettings::NAMES);
        Ok(self)
    }

    /// Refuses a first decision that doesn't name everything: what isn't named would be the caller's own, and nobody
    /// would have said so (H141).
    pub(crate) fn check(&self) -> Result<()> {
        let names = TenantSettings::NAMES.into_iter();
        let missing: Vec<&str> = names.filter(|name| !self.named.contains(name)).collect();
        if self.from.is_made() || missing.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "nothing was decided yet, so all of the tenant's settings have to be named; missing: {}. `--as-configured` \
             takes what isn't named from the file of --config, in a program `TenantChange::set_all`",
            missing.join(", ")
        )))
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
        let differs = !self.from.is_made() || self.to != self.from.settings;
        Decision {
            number: self.from.number + u32::from(differs),
            settings: self.to,
            archive: self.from.archive,
        }
    }

    /// Whether it takes away what is beyond that setting's bound. The first decision may always: nothing was bounded
    /// until then.
    pub(crate) fn cuts(&self, name: &str) -> bool {
        let from = self.from.settings.bound(name);
        let is_raised = |to: u32| self.from.is_made() && from.is_some_and(|from| to > from);
        // What is beyond an outbox's bound moves to the archive.
        let moves = name == "outbox_posts" && self.from.archive.is_some();
        self.named.contains(name) && !moves && self.to.bound(name).is_some_and(|to| !is_raised(to))
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
        let decided = Decision { number: 4, settings, archive: None };
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
        // H141: 5,000 is more than the tool's own 1,000, and less than there was.
        let first = Decision::none(settings).change().set("mentions_max", "5000").unwrap();
        assert!(first.cuts("mentions_max"));
        let missing = first.check().unwrap_err().to_string();
        assert!(
            missing.contains("missing: outbox_posts, tag_posts_max, public_posts, home_posts, "),
            "{missing}"
        );
        assert!(Decision::none(settings).change().set_all(settings).unwrap().check().is_ok());
        assert!(decided.change().set("mentions_max", "500").unwrap().check().is_ok());
        assert!(decided.change().set("outbox_post", "100").is_err());
    }
}
