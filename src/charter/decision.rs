//! The settings that are a tenant's, and how they are written down. Pure.

use std::collections::BTreeMap;
use std::fmt;

use crate::archive::ArchiveName;
use crate::cluster::Replicas;
use crate::error::{Error, Result};
use crate::functions::StayingPosts;
use crate::settings::EngineSettings;

/// A record's fields, as they are stored. Those that this release doesn't know are kept and handed on.
pub(crate) type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

/// The field of a decision's number.
pub(super) const NUMBER: &str = "decision";
/// The setting that says whether a public timeline is kept.
const PUBLIC_POSTS: &str = "public_posts";
/// The word for no bound on days.
const NEVER: &str = "never";
/// The fields of an archive.
const ARCHIVE: &str = "archive";
const HOT_POSTS: &str = "hot_posts";
const HOT_DAYS: &str = "hot_days";
const LEFT_AFTER_DAYS: &str = "left_after_days";
const SEARCH: &str = "search";
const DAY_MS: u64 = 86_400_000;
/// The version of data of which posts may lie in an archive: a release that doesn't know of those would show a hole.
const FORMAT_WITH_ARCHIVE: u32 = 3;
/// The one of which posts are found by their words: what a release publishes that doesn't know of that, nobody finds.
pub(super) const FORMAT_WITH_SEARCH: u32 = 4;

/// The settings that belong to a tenant, because what they take away is gone for all its instances.
///
/// A new tenant takes those of the instance that begins it. All else changes them by `tideline tenant set`, or
/// [`Engine::decide`](crate::Engine::decide), alone: also the first time, where an import or an earlier release has
/// left data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TenantSettings {
    /// [`EngineSettings::outbox_posts`].
    pub outbox_posts: u32,
    /// [`EngineSettings::mentions_max`].
    pub mentions_max: u32,
    /// [`EngineSettings::tag_posts_max`].
    pub tag_posts_max: u32,
    /// [`EngineSettings::public_posts`].
    #[serde(default)]
    pub public_posts: u32,
    /// [`EngineSettings::home_posts`].
    pub home_posts: u32,
    /// [`EngineSettings::dormant_after_days`].
    pub dormant_after_days: Option<u32>,
    /// [`RouterSettings::replicas`](crate::cluster::RouterSettings::replicas).
    pub replicas: Replicas,
}

/// A decision of a tenant, with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Decision {
    /// Each decision's is one higher than the last one's. 0: nothing has been decided yet, so no posts leave outboxes,
    /// mentions and hashtags.
    pub number: u32,
    /// The settings that were decided; with number 0 those of whoever asks.
    pub settings: TenantSettings,
    /// The archive that holds what has left memory; `None`: all posts stay there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<TenantArchive>,
}

/// The archive of a tenant, and what stays in memory of each account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TenantArchive {
    /// The archive: an instance that holds another one doesn't start.
    pub name: ArchiveName,
    /// So many of its newest posts stay in memory,
    pub hot_posts: u32,
    /// and all that are not as old as so many days.
    pub hot_days: u32,
    /// Posts as old as so many days may have left: the lowest that `hot_days` ever was.
    #[serde(default)]
    pub left_after_days: u32,
    /// Whether posts are found by their words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub search: bool,
}

impl TenantArchive {
    /// The default of what stays in memory: posts of each account, and days.
    pub const HOT_DEFAULT: (u32, u32) = (200, 30);

    /// Refuses what no tenant could have.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { hot_posts, hot_days, .. } = *self;
        if !(1..=1_000_000).contains(&hot_posts) || hot_days > 36_500 {
            return Err(Error::invalid(format!(
                "{HOT_POSTS} is {hot_posts} and {HOT_DAYS} is {hot_days}: the first may be 1 to 1,000,000, the \
                 second 0 to 36,500"
            )));
        }
        Ok(())
    }

    /// The posts of an account that stay in memory.
    pub(crate) fn stays(&self) -> StayingPosts {
        StayingPosts { posts: self.hot_posts, ms: u64::from(self.hot_days) * DAY_MS }
    }

    /// The least age of posts that may have left.
    pub(crate) fn left_after_ms(&self) -> u64 {
        u64::from(self.left_after_days) * DAY_MS
    }

    /// Has other posts stay in memory. What has left by then doesn't come back.
    pub(crate) fn keeping(self, hot_posts: u32, hot_days: u32) -> Result<Self> {
        let left_after_days = self.left_after_days.min(hot_days);
        let kept = Self { hot_posts, hot_days, left_after_days, ..self };
        kept.check()?;
        Ok(kept)
    }

    fn parse(text: impl Fn(&str) -> Option<String>) -> std::result::Result<Option<Self>, String> {
        let Some(name) = text(ARCHIVE) else { return Ok(None) };
        let number = |field: &str, default: u32| match text(field) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| format!("{field} is `{value}`")),
        };
        let name = name.parse().map_err(|_| format!("{ARCHIVE} is `{name}`"))?;
        let (posts, days) = Self::HOT_DEFAULT;
        let (hot_posts, hot_days) = (number(HOT_POSTS, posts)?, number(HOT_DAYS, days)?);
        let left_after_days = number(LEFT_AFTER_DAYS, hot_days)?;
        let search = match text(SEARCH).as_deref() {
            None => false,
            Some("yes") => true,
            Some(value) => return Err(format!("{SEARCH} is `{value}`")),
        };
        Ok(Some(Self { name, hot_posts, hot_days, left_after_days, search }))
    }
}

impl TenantSettings {
    /// The names of all settings, as they are written down and typed.
    pub const NAMES: [&str; 7] = [
        "outbox_posts",
        "mentions_max",
        "tag_posts_max",
        PUBLIC_POSTS,
        "home_posts",
        "dormant_after_days",
        "replicas",
    ];

    /// Reads them from an instance's own settings.
    pub(crate) fn of(engine: &EngineSettings, replicas: Replicas) -> Self {
        let EngineSettings {
            outbox_posts,
            mentions_max,
            tag_posts_max,
            public_posts,
            home_posts,
            dormant_after_days,
            ..
        } = *engine;
        Self {
            outbox_posts,
            mentions_max,
            tag_posts_max,
            public_posts,
            home_posts,
            dormant_after_days,
            replicas,
        }
    }

    fn number(&mut self, name: &str) -> Option<&mut u32> {
        match name {
            "outbox_posts" => Some(&mut self.outbox_posts),
            "mentions_max" => Some(&mut self.mentions_max),
            "tag_posts_max" => Some(&mut self.tag_posts_max),
            PUBLIC_POSTS => Some(&mut self.public_posts),
            "home_posts" => Some(&mut self.home_posts),
            _ => None,
        }
    }

    /// Changes one setting. [`Invalid`](crate::ErrorKind::Invalid): there is none of that name, or it doesn't take that
    /// value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let takes = |what: &str| Error::invalid(format!("{name} is `{value}`; it takes {what}"));
        if let Some(number) = self.number(name) {
            *number = value.parse().map_err(|_| takes("a whole number"))?;
        } else if name == "dormant_after_days" {
            let days = (value != NEVER).then(|| value.parse()).transpose();
            self.dormant_after_days = days.map_err(|_| takes("a whole number, or `never`"))?;
        } else if name == "replicas" {
            let named = Replicas::NAMED.into_iter().find(|(known, _)| *known == value);
            (_, self.replicas) = named.ok_or_else(|| takes("`absent`, `preferred` or `required`"))?;
        } else {
            let names = Self::NAMES.join(", ");
            return Err(Error::invalid(format!("`{name}` is no setting of a tenant; these are: {names}")));
        }
        Ok(())
    }

    /// Lists each setting with its value in the words of files and commands.
    pub fn values(&self) -> [(&'static str, String); 7] {
        let mut own = *self;
        Self::NAMES.map(|name| {
            let number = own.number(name).map(|number| number.to_string());
            let value = number.unwrap_or_else(|| match (name, self.dormant_after_days) {
                ("dormant_after_days", Some(days)) => days.to_string(),
                ("dormant_after_days", None) => NEVER.into(),
                _ => Replicas::NAMED
                    .iter()
                    .filter(|(_, rule)| *rule == self.replicas)
                    .map(|(known, _)| *known)
                    .collect(),
            });
            (name, value)
        })
    }

    /// The number that a setting bounds its kind of data by; `None`: by nothing.
    pub(super) fn bound(&self, name: &str) -> Option<u32> {
        let mut own = *self;
        let days = own.dormant_after_days.filter(|_| name == "dormant_after_days");
        own.number(name).map(|number| *number).or(days)
    }

    /// Refuses bounds that no instance could have.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { outbox_posts, mentions_max, tag_posts_max, public_posts, home_posts, .. } = *self;
        let bounds = EngineSettings {
            outbox_posts,
            mentions_max,
            tag_posts_max,
            public_posts,
            home_posts,
            dormant_after_days: self.dormant_after_days,
            ..EngineSettings::default()
        };
        bounds.broken_rule().map_or(Ok(()), |rule| Err(Error::invalid(format!("{rule}; asked for {self}"))))
    }

    /// Lists where `other` differs: the name, our value, the other one.
    pub fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let both = self.values().into_iter().zip(other.values());
        both.filter(|(own, other)| own != other).map(|((name, own), (_, other))| (name, own, other)).collect()
    }

    /// Whether going over to `next` takes anything away.
    pub fn loses_by(&self, next: &Self) -> bool {
        Self::NAMES.into_iter().any(|name| {
            next.bound(name).is_some_and(|next| self.bound(name).is_none_or(|bound| next < bound))
        })
    }
}

impl fmt::Display for TenantSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.values().iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&all.join(" "))
    }
}

impl Decision {
    /// Nothing has been decided; these settings are somebody's own.
    pub(crate) fn none(own: TenantSettings) -> Self {
        Self { number: 0, settings: own, archive: None }
    }

    /// The decision of a new tenant whose first instance has these settings.
    pub(crate) fn first(own: TenantSettings) -> Self {
        Self { number: 1, settings: own, archive: None }
    }

    /// The number of public posts that each bucket keeps; `None`: none are kept.
    pub(crate) fn public_posts(&self) -> Option<u32> {
        // While nothing was decided nobody may cut, and the lists would have no end.
        Some(self.settings.public_posts).filter(|most| *most > 0 && self.is_made())
    }

    /// Whether anything was decided.
    pub(crate) fn is_made(&self) -> bool {
        self.number > 0
    }

    /// Reads a decision from a record; `None`: nothing was ever decided. Where the record lacks a setting, since an
    /// earlier release decided, `own` counts.
    pub(crate) fn parse(fields: &Fields, own: TenantSettings) -> Result<Option<Self>> {
        let text = |name: &str| {
            let value = fields.get(name.as_bytes());
            value.map(|value| String::from_utf8_lossy(value).into_owned())
        };
        let Some(number) = text(NUMBER) else { return Ok(None) };
        let wrong = |why: &dyn fmt::Display| {
            Error::misconfigured(format!(
                "the tenant's record says what this release can't read: {why}; `tideline tenant set` of the release \
                 that wrote it puts that right"
            ))
        };
        // What was decided before there was such a setting keeps none: an instance's own must not begin a list that
        // another one doesn't write.
        let mut settings = TenantSettings { public_posts: 0, ..own };
        for name in TenantSettings::NAMES {
            if let Some(value) = text(name) {
                settings.set(name, &value).map_err(|e| wrong(&e))?;
            }
        }
        let number = number.parse().map_err(|_| wrong(&format!("{NUMBER} is `{number}`")))?;
        let archive = TenantArchive::parse(text).map_err(|e| wrong(&e))?;
        Ok(Some(Self { number, settings, archive }))
    }

    /// The next one, by which the tenant has that archive; the same where it has it so: what was interrupted goes on.
    pub(crate) fn with_archive(self, archive: TenantArchive) -> Self {
        if self.archive == Some(archive) {
            return self;
        }
        Self { number: self.number + 1, archive: Some(archive), ..self }
    }

    /// As fields of a record.
    pub(super) fn fields(&self) -> Fields {
        let values = self.settings.values().into_iter();
        let archive = self.archive.iter().flat_map(|archive| {
            let format = if archive.search { FORMAT_WITH_SEARCH } else { FORMAT_WITH_ARCHIVE };
            let all = [
                (ARCHIVE, archive.name.to_string()),
                (HOT_POSTS, archive.hot_posts.to_string()),
                (HOT_DAYS, archive.hot_days.to_string()),
                (LEFT_AFTER_DAYS, archive.left_after_days.to_string()),
                ("format", format.to_string()),
            ];
            all.into_iter().chain(archive.search.then(|| (SEARCH, "yes".to_owned())))
        });
        let all = values.chain([(NUMBER, self.number.to_string())]).chain(archive);
        all.map(|(name, value)| (name.as_bytes().to_vec(), value.into_bytes())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> TenantSettings {
        let settings = EngineSettings { public_posts: 256, ..EngineSettings::default() };
        TenantSettings::of(&settings, Replicas::Required)
    }

    #[test]
    fn a_decision_survives_its_record_and_fields_of_other_releases_do_no_harm() {
        let own = TenantSettings { outbox_posts: 7_000, dormant_after_days: None, ..defaults() };
        let decision = Decision { number: 9, settings: own, archive: None };
        let mut fields = decision.fields();
        fields.insert(b"format".to_vec(), b"2".to_vec());
        fields.insert(b"of_another_release".to_vec(), vec![0xff]);
        assert_eq!(Decision::parse(&fields, defaults()).unwrap(), Some(decision));
        fields.remove(b"outbox_posts".as_slice());
        let parsed = Decision::parse(&fields, defaults()).unwrap().unwrap();
        assert_eq!(parsed.settings, TenantSettings { outbox_posts: defaults().outbox_posts, ..own });
        assert_eq!((parsed.public_posts(), Decision::none(own).public_posts()), (Some(256), None));
        fields.remove(b"public_posts".as_slice());
        let parsed = Decision::parse(&fields, defaults()).unwrap().unwrap();
        assert_eq!(parsed.public_posts(), None, "what was decided before there was one");
        fields.insert(b"replicas".to_vec(), b"some".to_vec());
        let text = Decision::parse(&fields, defaults()).unwrap_err().to_string();
        assert!(text.contains("replicas is `some`"), "{text}");
        fields.remove(NUMBER.as_bytes());
        assert_eq!(Decision::parse(&fields, defaults()).unwrap(), None);
    }

    fn archive_of_three_days() -> TenantArchive {
        let (name, days) = (ArchiveName([7; 16]), 3);
        TenantArchive { name, hot_posts: 9, hot_days: days, left_after_days: days, search: false }
    }

    /// A record by a release that let nobody change `hot_days` names no lowest.
    #[test]
    fn the_age_at_which_posts_may_have_left_never_rises() {
        let archive = archive_of_three_days();
        let raised = archive.keeping(9, 30).unwrap();
        assert_eq!((raised.hot_days, raised.left_after_ms()), (30, 3 * DAY_MS));
        let lowered = raised.keeping(20, 1).unwrap();
        assert_eq!((lowered.hot_posts, lowered.stays().ms, lowered.left_after_ms()), (20, DAY_MS, DAY_MS));
        assert!(archive.keeping(0, 3).is_err() && archive.keeping(9, 40_000).is_err());
        let decision = Decision { number: 2, settings: defaults(), archive: Some(archive) };
        let mut fields = decision.fields();
        fields.remove(LEFT_AFTER_DAYS.as_bytes());
        assert_eq!(Decision::parse(&fields, defaults()).unwrap(), Some(decision));
    }

    #[test]
    fn search_belongs_to_the_tenant_and_has_a_format_of_its_own() {
        let archive = archive_of_three_days();
        for (search, format) in [(false, "3"), (true, "4")] {
            let archive = Some(TenantArchive { search, ..archive });
            let decision = Decision { number: 2, settings: defaults(), archive };
            let mut fields = decision.fields();
            assert_eq!(fields[b"format".as_slice()], format.as_bytes());
            assert_eq!(Decision::parse(&fields, defaults()).unwrap(), Some(decision));
            fields.insert(b"search".to_vec(), b"later".to_vec());
            let text = Decision::parse(&fields, defaults()).unwrap_err().to_string();
            assert!(text.contains("search is `later`"), "{text}");
        }
    }

    #[test]
    fn every_setting_is_set_by_its_name_and_told_as_it_was_typed() {
        for (name, value) in [
            ("outbox_posts", "100"),
            ("mentions_max", "21"),
            ("tag_posts_max", "22"),
            ("public_posts", "3"),
            ("home_posts", "23"),
            ("dormant_after_days", "24"),
            ("replicas", "absent"),
        ] {
            let mut settings = defaults();
            settings.set(name, value).unwrap();
            settings.check().unwrap();
            assert_eq!(defaults().differences(&settings).len(), 1, "{name}");
            assert!(settings.values().contains(&(name, value.to_owned())));
            assert_eq!(defaults().loses_by(&settings), name != "replicas", "{name}");
            assert!(!settings.loses_by(&defaults()));
            assert!(settings.set(name, "-1").is_err());
        }
        assert!(defaults().set("journal_max", "100").unwrap_err().to_string().contains("outbox_posts, "));
        assert!(TenantSettings { home_posts: 1, ..defaults() }.check().is_err());
    }
}
