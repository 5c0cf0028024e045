//! How histories are shaped: what clients do, how often what goes wrong, how small everything is.

use std::sync::Arc;
use std::time::Duration;

use super::world::{Faults, world};
use crate::limits::{ActLimit, ActLimits};
use crate::modes::{AccountFacts, DeliveryWay, Policy, Threshold};
use crate::settings::{EngineSettings, ModeSettings};
use crate::sharded::SetSettings;

/// How a history is shaped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) steps: u32,
    pub(super) faults: Faults,
    /// Failovers, deaths, freezes, moves of slots and such: of 1,000 steps.
    pub(super) failovers: u32,
    pub(super) deaths: u32,
    pub(super) freezes: u32,
    pub(super) moves: u32,
    /// Clocks of servers that are set by hours.
    pub(super) clocks: u32,
    /// Servers that answer nobody for a while.
    pub(super) silences: u32,
    /// How long caches may be behind.
    pub(super) visible_within: Duration,
    /// Whether old posts leave memory for an archive.
    pub(super) archive: bool,
    /// Hours that pass, of 1,000 steps. Where they do, posts leave memory once they are a day old, and else at once.
    pub(super) hours: u32,
}

impl Shape {
    /// Everything goes wrong.
    pub(super) const HARSH: Self = Self {
        steps: 70,
        faults: Faults { lost: 25, slow: 30, has_delays: true, ..Faults::NONE },
        failovers: 70,
        deaths: 12,
        freezes: 20,
        moves: 15,
        clocks: 25,
        silences: 0,
        visible_within: Duration::ZERO,
        archive: false,
        hours: 0,
    };
    /// The same, and caches.
    pub(super) const CACHED: Self = Self { visible_within: Duration::from_millis(60), ..Self::HARSH };
    /// The same, and functions fail half-way.
    pub(super) const TORN: Self =
        Self { faults: Faults { torn: 120, ..Self::HARSH.faults }, failovers: 20, ..Self::HARSH };
    /// The same, and primaries that were replaced answer on, half of them writes too, and servers are silent for a
    /// while: some callers give up before that is over, and what they have sent runs when the server wakes.
    pub(super) const PARTED: Self =
        Self { faults: Faults { deposed: 400, ..Self::HARSH.faults }, silences: 25, ..Self::HARSH };
    /// The same, and fences count without a replica, and the replica that is behind takes over. What was acknowledged
    /// may be lost, and timelines have holes; what is hidden stays hidden.
    pub(super) const HOLLOW: Self =
        Self { faults: Faults { hollow: 300, ..Self::HARSH.faults }, ..Self::HARSH };
    /// Nothing does, but everything interleaves.
    pub(super) const CALM: Self = Self {
        steps: 70,
        faults: Faults { lost: 0, slow: 30, has_delays: true, ..Faults::NONE },
        failovers: 0,
        deaths: 0,
        freezes: 0,
        moves: 0,
        clocks: 0,
        silences: 0,
        visible_within: Duration::ZERO,
        archive: false,
        hours: 0,
    };
    /// Everything goes wrong, and posts leave memory and come back, also with an archive that fails.
    pub(super) const ARCHIVED: Self = Self { steps: 130, archive: true, ..Self::HARSH };
    /// The same where functions fail half-way, where caches are behind, and where nothing goes wrong.
    pub(super) const ARCHIVED_TORN: Self = Self { steps: 130, archive: true, ..Self::TORN };
    pub(super) const ARCHIVED_CACHED: Self = Self { steps: 130, archive: true, ..Self::CACHED };
    pub(super) const ARCHIVED_CALM: Self = Self { steps: 130, archive: true, ..Self::CALM };
    /// The same where posts stay in memory for a day, and for hours once somebody has touched them.
    pub(super) const AGED: Self = Self { hours: 45, ..Self::ARCHIVED };
    pub(super) const AGED_TORN: Self = Self { hours: 45, ..Self::ARCHIVED_TORN };
}

impl Shape {
    /// Whether nothing ever goes wrong.
    pub(super) fn is_calm(&self) -> bool {
        self.failovers + self.deaths + self.freezes + self.moves + self.clocks + self.faults.lost == 0
    }

    /// What goes wrong, by name: in histories of this shape each of them meets something that is under way.
    pub(super) fn wrongs(&self) -> Vec<&'static str> {
        let all = [
            ("failover", self.failovers),
            ("death", self.deaths),
            ("freeze", self.freezes),
            ("move", self.moves),
            ("clock", self.clocks),
            ("silence", self.silences),
            ("stale read", self.faults.deposed),
            ("stray write", self.faults.deposed),
            ("torn call", self.faults.torn),
            ("hollow fence", self.faults.hollow),
        ];
        all.into_iter().filter(|(_, share)| *share > 0).map(|(what, _)| what).collect()
    }
}

/// How often a policy is asked.
pub(super) const DECIDE_EVERY: Duration = Duration::from_millis(60);

/// What clients do, and how many of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    pub(super) readers: usize,
    pub(super) authors: usize,
    /// Of 1,000 operations; the rest are reads.
    pub(super) shares: [(&'static str, u64); 16],
}

const fn mix(readers: usize, authors: usize, of: [u64; 16]) -> Mix {
    let shares = [
        ("publish", of[0]),
        ("follow", of[1]),
        ("unfollow", of[2]),
        ("delete", of[3]),
        ("restrict", of[4]),
        ("spread", of[5]),
        ("drop", of[6]),
        ("sweep", of[7]),
        ("warm", of[8]),
        ("answer", of[9]),
        ("upwards", of[10]),
        ("bury", of[11]),
        ("edit", of[12]),
        ("cross", of[13]),
        ("tie", of[14]),
        ("lock", of[15]),
    ];
    Mix { readers, authors, shares }
}

/// Everything; one pair of accounts; one reader; one author with many followers.
pub(super) const MIXES: [Mix; 4] = [
    mix(4, 3, [270, 150, 80, 30, 50, 20, 35, 3, 60, 25, 30, 4, 20, 25, 40, 8]),
    mix(2, 1, [220, 240, 230, 5, 10, 15, 25, 3, 40, 10, 20, 1, 10, 40, 30, 12]),
    mix(1, 3, [330, 100, 30, 10, 10, 3, 110, 3, 150, 5, 20, 1, 10, 20, 40, 4]),
    mix(4, 1, [260, 260, 140, 5, 5, 50, 20, 3, 20, 10, 20, 0, 10, 40, 30, 8]),
];

/// How many posts an outbox lists: more than any author has; and fewer than many have, in every fourth history.
pub(super) const OUTBOX_POSTS: (u32, u32) = (1_000, 5);
/// So many more lie in an outbox before it is cut, here.
pub(super) const OUTBOX_SLACK: usize = 2;

/// The bound of outboxes in the history of a seed: small where most posts are of one author.
pub(super) fn outbox_posts_of(seed: u64) -> u32 {
    if seed % 4 == 3 { OUTBOX_POSTS.1 } else { OUTBOX_POSTS.0 }
}

/// How many public posts a bucket keeps: more than there are; and fewer, in every fourth history.
const PUBLIC_POSTS: (u32, u32) = (1_000, 2);

/// The bound of public posts in the history of a seed, and whether all are kept.
pub(super) fn public_posts_of(seed: u64) -> u32 {
    if seed % 4 == 1 { PUBLIC_POSTS.1 } else { PUBLIC_POSTS.0 }
}

/// Whether a bucket keeps all public posts.
pub(super) fn keeps_all_public(public_posts: u32) -> bool {
    public_posts == PUBLIC_POSTS.0
}

/// Small homes and pages, one member a piece, short leases.
pub(super) fn settings(
    visible_within: Duration,
    decide_every: Duration,
    outbox_posts: u32,
) -> (EngineSettings, SetSettings) {
    let far = Some(ActLimit::of(u16::MAX, Duration::from_secs(3_600)));
    let engine = EngineSettings {
        visible_within,
        home_posts: 5,
        home_margin: 1,
        page_length: 3,
        outbox_posts,
        mentions_max: 3,
        tag_posts_max: 4,
        lease_ttl: Duration::from_millis(260),
        lease_renewal: Duration::from_millis(80),
        scan_period: Duration::from_millis(70),
        fanout_chunk: 2,
        states_cached: 100,
        ties_cached: 1_000,
        posts_cached: 100,
        accounts_cached: 100,
        outboxes_cached: 100,
        modes: ModeSettings { decide_every, ..ModeSettings::default() },
        // Counted, and never reached: what that writes may fail like anything else.
        limits: ActLimits { posts: far, follows: far, ..ActLimits::default() },
        ..EngineSettings::default()
    };
    let sets = SetSettings { piece_limit: Some(1), spread_at: Some(1_000), trees_cached: 1_000 };
    (engine, sets)
}

/// What an instance brings along: every other one has smaller bounds than its tenant. None of them counts.
pub(super) fn of_instance(number: usize, engine: EngineSettings) -> EngineSettings {
    if number.is_multiple_of(2) {
        return engine;
    }
    EngineSettings { home_posts: 2, outbox_posts: 2, mentions_max: 1, tag_posts_max: 1, ..engine }
}

/// Nobody crosses over but by hand.
#[derive(Debug)]
pub(super) struct ByHand;

impl Policy for ByHand {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        facts.now
    }
}

/// Changes its mind for no reason.
#[derive(Debug)]
struct Whim;

impl Policy for Whim {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        match (world(|w| w.chance(300)), facts.now) {
            (true, DeliveryWay::Push) => DeliveryWay::Pull,
            (true, DeliveryWay::Pull) => DeliveryWay::Push,
            (false, now) => now,
        }
    }
}

/// Who decides about push and pull in the history of a seed.
pub(super) fn policy_of(seed: u64) -> Arc<dyn Policy> {
    match seed % 3 {
        0 => Arc::new(ByHand),
        1 => Arc::new(Threshold { pull_from: 2, push_below: 2 }),
        _ => Arc::new(Whim),
    }
}
