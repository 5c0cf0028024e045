//! Every setting: the section and the name under which it is written, and the field that it sets.
//!
//! Each struct is taken apart without `..`: who adds a field to one must name it here.

use super::Config;
use super::value::{Number, NumberOrWord, Setting, TextOrWord, Time, ValueUnit, WordChoice};
use crate::cluster::{Replicas, RouterSettings, TlsFiles};
use crate::limits::ActLimits;
use crate::registration::RegistrationSettings;
use crate::settings::{Acknowledge, EngineSettings, ModeSettings, PolicyName};
use crate::sharded::SetSettings;
use crate::store::StoreOptions;

pub(super) const SECTIONS: [&str; 6] = ["cluster", "sets", "engine", "modes", "limits", "registration"];

/// Sections of what is built on the engine.
pub(super) const SECTIONS_OF_OTHERS: [&str; 2] = ["server", "mail"];

const ACKNOWLEDGE: [(&str, Acknowledge); 2] =
    [("accepted", Acknowledge::Accepted), ("replicated", Acknowledge::Replicated)];

const POLICIES: [(&str, PolicyName); 4] = [
    ("push", PolicyName::Push),
    ("pull", PolicyName::Pull),
    ("threshold", PolicyName::Threshold),
    ("cost", PolicyName::Cost),
];

/// A setting of one configuration.
#[expect(missing_debug_implementations, reason = "a place has none")]
pub struct Field<'a> {
    /// The section.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its place.
    pub value: Box<dyn Setting + 'a>,
}

impl Field<'_> {
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }
}

/// The settings of one section, in the order of the example.
#[expect(missing_debug_implementations, reason = "a place has none")]
pub struct Section<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its settings.
    pub fields: Vec<Field<'a>>,
}

impl<'a> Section<'a> {
    /// Begins a section, without settings.
    pub fn new(name: &'static str) -> Self {
        Self { name, fields: Vec::new() }
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Setting + 'a) -> Self {
        self.fields.push(Field { section: self.name, name, value: Box::new(value) });
        self
    }

    /// Adds a setting that is a number.
    #[must_use]
    pub fn number<T: Copy + TryFrom<u64> + TryInto<u64>>(self, name: &'static str, value: &'a mut T) -> Self {
        self.with(name, Number(value))
    }

    /// With several numbers.
    fn numbers<const N: usize>(self, numbers: [(&'static str, &'a mut u32); N]) -> Self {
        numbers.into_iter().fold(self, |section, (name, value)| section.number(name, value))
    }

    /// Adds a setting that is a duration, in the unit with which its name ends.
    #[must_use]
    pub fn time(self, name: &'static str, value: &'a mut std::time::Duration) -> Self {
        let unit = if name.ends_with("_ms") { ValueUnit::Milliseconds } else { ValueUnit::Seconds };
        self.with(name, Time(value, unit))
    }
}

/// All settings of a configuration.
pub(super) fn fields(config: &mut Config) -> Vec<Field<'_>> {
    let Config { store, engine, registration } = config;
    let StoreOptions { seeds, prefix, buckets, router, sets } = store;
    let data = Section::new("cluster")
        .with("seeds", seeds)
        .with("prefix", prefix)
        .with("buckets", NumberOrWord(buckets, "auto"));
    let (engine, modes, limits) = of_engine(engine);
    let of_engine = [engine, of_modes(modes), of_limits(limits)];
    let sections = [data, of_router(router), of_sets(sets)].into_iter().chain(of_engine);
    sections.chain([of_registration(registration)]).flat_map(|section| section.fields).collect()
}

fn of_router(settings: &mut RouterSettings) -> Section<'_> {
    let RouterSettings {
        tls: TlsFiles { ca, certificate, key },
        connections_per_node,
        connect_timeout,
        response_timeout,
        deadline,
        pipeline_length,
        in_flight_per_node,
        backoff: (backoff_first, backoff_longest),
        refresh_period,
        replicas,
        fence_timeout,
    } = settings;
    Section::new("cluster")
        .with("replicas", WordChoice(replicas, &Replicas::NAMED))
        .with("tls_ca", ca)
        .with("tls_certificate", certificate)
        .with("tls_key", key)
        .number("connections_per_node", connections_per_node)
        .time("connect_timeout_ms", connect_timeout)
        .time("response_timeout_ms", response_timeout)
        .time("deadline_ms", deadline)
        .time("fence_timeout_ms", fence_timeout)
        .time("backoff_first_ms", backoff_first)
        .time("backoff_longest_ms", backoff_longest)
        .time("refresh_period_ms", refresh_period)
        .number("pipeline_length", pipeline_length)
        .number("in_flight_per_node", in_flight_per_node)
}

fn of_sets(settings: &mut SetSettings) -> Section<'_> {
    let SetSettings { piece_limit, spread_at, trees_cached } = settings;
    Section::new("sets")
        .with("piece_limit", NumberOrWord(piece_limit, "auto"))
        .with("spread_at", NumberOrWord(spread_at, "auto"))
        .number("trees_cached", trees_cached)
}

fn of_engine(settings: &mut EngineSettings) -> (Section<'_>, &mut ModeSettings, &mut ActLimits) {
    let EngineSettings {
        visible_within,
        home_posts,
        home_margin,
        page_length,
        outbox_posts,
        text_chars,
        mentions_max,
        tag_posts_max,
        public_posts,
        following_max,
        restrictions_max,
        likes_max,
        bookmarks_max,
        reposts_max,
        brought_back_max,
        requests_max,
        journal_max,
        shows_replies_to_strangers,
        keeps_notifications,
        shows_profiles,
        dormant_after_days,
        token_ttl,
        acknowledge,
        lease_ttl,
        lease_renewal,
        scan_period,
        tasks_at_once,
        tasks_max,
        fanout_chunk,
        states_cached,
        ties_cached,
        posts_cached,
        accounts_cached,
        outboxes_cached,
        modes,
        limits,
    } = settings;
    let section = Section::new("engine")
        .time("visible_within_ms", visible_within)
        .with("acknowledge", WordChoice(acknowledge, &ACKNOWLEDGE))
        .with("shows_replies_to_strangers", shows_replies_to_strangers)
        .with("keeps_notifications", keeps_notifications)
        .with("shows_profiles", shows_profiles)
        .number("page_length", page_length)
        .number("text_chars", text_chars)
        .number("home_posts", home_posts)
        .number("home_margin", home_margin)
        .with("dormant_after_days", NumberOrWord(dormant_after_days, "never"))
        .number("outbox_posts", outbox_posts)
        .number("mentions_max", mentions_max)
        .number("tag_posts_max", tag_posts_max)
        .number("public_posts", public_posts)
        .number("following_max", following_max)
        .number("restrictions_max", restrictions_max)
        .numbers([("likes_max", likes_max), ("bookmarks_max", bookmarks_max), ("reposts_max", reposts_max)])
        .number("brought_back_max", brought_back_max)
        .number("requests_max", requests_max)
        .time("token_ttl_s", token_ttl)
        .number("journal_max", journal_max)
        .number("tasks_at_once", tasks_at_once)
        .number("tasks_max", tasks_max)
        .number("fanout_chunk", fanout_chunk)
        .time("lease_ttl_ms", lease_ttl)
        .time("lease_renewal_ms", lease_renewal)
        .time("scan_period_ms", scan_period);
    let caches = [states_cached, ties_cached, posts_cached, accounts_cached, outboxes_cached];
    (with_caches(section, caches), modes, limits)
}

fn with_caches<'a>(section: Section<'a>, caches: [&'a mut usize; 5]) -> Section<'a> {
    let names = ["states_cached", "ties_cached", "posts_cached", "accounts_cached", "outboxes_cached"];
    names.into_iter().zip(caches).fold(section, |section, (name, cache)| section.number(name, cache))
}

fn of_modes(settings: &mut ModeSettings) -> Section<'_> {
    let ModeSettings {
        policy,
        pull_from,
        push_below,
        delivery_ns,
        skipped_ns,
        pull_ns,
        look_ns,
        margin_percent,
        decide_every,
    } = settings;
    Section::new("modes")
        .with("policy", WordChoice(policy, &POLICIES))
        .number("pull_from", pull_from)
        .number("push_below", push_below)
        .number("delivery_ns", delivery_ns)
        .number("skipped_ns", skipped_ns)
        .number("pull_ns", pull_ns)
        .number("look_ns", look_ns)
        .number("margin_percent", margin_percent)
        .time("decide_every_s", decide_every)
}

fn of_limits(settings: &mut ActLimits) -> Section<'_> {
    let ActLimits { posts, direct_posts, group_posts, mentions_of_strangers, follows, reports, new_for } =
        settings;
    let limits = [
        ("posts", posts),
        ("direct_posts", direct_posts),
        ("group_posts", group_posts),
        ("mentions_of_strangers", mentions_of_strangers),
        ("follows", follows),
        ("reports", reports),
    ];
    let allowed = "a limit, as \"300/3h\" or \"300/3h, new 60\"";
    let section = Section::new("limits");
    let limits = limits.into_iter();
    limits
        .fold(section, |section, (name, limit)| section.with(name, TextOrWord(limit, ("off", allowed))))
        .time("new_for_s", new_for)
}

fn of_registration(settings: &mut RegistrationSettings) -> Section<'_> {
    let RegistrationSettings { memory_kib, passes, hashes_at_once, hashes_waiting } = settings;
    Section::new("registration")
        .number("memory_kib", memory_kib)
        .number("passes", passes)
        .with("hashes_at_once", NumberOrWord(hashes_at_once, "cores"))
        .number("hashes_waiting", hashes_waiting)
}
