//! Settings of how an engine behaves, with the one place where each default stands.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::limits::ActLimits;

/// Longest page of a timeline.
pub const PAGE_LEN_MAX: usize = 100;
/// Most posts, or accounts, asked about in one call.
pub const ASKED_MAX: usize = 100;

/// The length of a page that was asked for with so many entries; refuses none, and more than `most`.
pub(crate) fn page_length(asked: usize, most: usize) -> Result<usize> {
    if asked == 0 || asked > most {
        let text = format!("the limit of a page is {asked}; 1 to {most} are allowed");
        return Err(Error::out_of_range(text));
    }
    Ok(asked)
}

/// Refuses a question about too many posts or accounts.
pub(crate) fn check_asked(count: usize, what: &str) -> Result<()> {
    if count <= ASKED_MAX {
        return Ok(());
    }
    Err(Error::out_of_range(format!("too many {what}: {count}; at most {ASKED_MAX} a call")))
}

/// What has happened when a write is acknowledged.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledge {
    /// A primary has it. A failover that its replica was not in time for may lose it, as with any Redis.
    #[default]
    Accepted,
    /// All replicas of the cluster that serve its slot have it too, at least one: it survives a failover. Where there
    /// was none, a write says [`Accepted`](Self::Accepted) ([`Receipt::reached`]), or fails: that is the setting
    /// [`Replicas`](crate::cluster::Replicas).
    Replicated,
}

/// The answer of a write: what it gave, and which moment it had reached by then.
///
/// What it gave is at hand as if it were the answer itself; to have it as a value, take `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Receipt<T = ()> {
    /// The value that the call gave.
    pub value: T,
    /// What is true of the write: as much as the setting `acknowledge` asks for, unless a primary that should have
    /// replicas had none.
    pub reached: Acknowledge,
}

impl<T> Receipt<T> {
    /// Adds what the write gave.
    pub(crate) fn with<V>(self, value: V) -> Receipt<V> {
        Receipt { value, reached: self.reached }
    }
}

impl<T> std::ops::Deref for Receipt<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> std::ops::DerefMut for Receipt<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Settings of an [`Engine`](crate::Engine). Every duration and bound has its reason beside it.
///
/// Those that remove data are the tenant's ([`TenantSettings`](crate::TenantSettings)): the instance that begins a
/// tenant gives them, all others go by them.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// What others did shows after this long at the latest; 0 turns the caches off. Lower: more reads of posts,
    /// accounts and outboxes. Your own actions always show at once.
    pub visible_within: Duration,
    /// The tenant's. Posts that a home holds for sure. 400 fit one list node of 8 kB; more cost a second one and more
    /// to read.
    pub home_posts: u32,
    /// Entries of a home read beyond the length of the page: a watermark must be among them, one follows about every
    /// 16. Lower: more pages need a second look. Higher: each read costs more.
    pub home_margin: u32,
    /// Posts on a page if the query doesn't say.
    pub page_length: usize,
    /// The tenant's. Posts that an account's outbox holds; older ones are no longer shown.
    pub outbox_posts: u32,
    /// Longest text of a post, in characters.
    pub text_chars: usize,
    /// The tenant's. Posts on an account's list of mentions; beyond that the oldest of who has most there leave.
    /// Higher: a page of it asks more pieces.
    pub mentions_max: u32,
    /// The tenant's. Posts on the timeline of a hashtag; beyond that the oldest of who has most there leave. Higher: a
    /// page of it asks more pieces.
    pub tag_posts_max: u32,
    /// The tenant's. Public posts that each bucket keeps for the public timeline; beyond that the oldest of who has
    /// most there leave. 0: none, and there is no such timeline. Each costs 16 bytes and an eighth.
    pub public_posts: u32,
    /// The most accounts that one may follow.
    pub following_max: u32,
    /// The most accounts that one may mute, block, and hide from, each.
    pub restrictions_max: u32,
    /// The most posts that an account may like.
    pub likes_max: u32,
    /// The most posts that it may bookmark.
    pub bookmarks_max: u32,
    /// The most posts that it may have reposted without a comment.
    pub reposts_max: u32,
    /// How many old posts an account may bring back from the archive within an hour, by what it does with them; what it
    /// takes back is neither counted nor refused.
    pub brought_back_max: u32,
    /// How many requests to follow locked accounts an account may have open, and about how many may wait for one's
    /// answer.
    pub requests_max: u32,
    /// Entries of a bucket's journal; beyond it writes are refused as overloaded, and from half of it on those of
    /// accounts that have left many. What waits for a server that is away stands there too: higher keeps writes going
    /// through a longer outage, at about 100 bytes of the servers' memory each.
    pub journal_max: u32,
    /// Whether replies to accounts that the reader doesn't follow show at home.
    pub shows_replies_to_strangers: bool,
    /// Whether accounts are told of what others do: who follows or mentions them, likes, reposts or quotes what they
    /// have posted. Off: nothing is written of that. All instances of a tenant should say the same: an account isn't
    /// told of what an instance has brought to it that doesn't.
    pub keeps_notifications: bool,
    /// Whether the accounts on pages and lists come with their profiles, and posts with whom they mention: as much as a
    /// client shows. An account that isn't remembered then costs two commands instead of one, and those mentioned a
    /// trip; one that is remembered takes its profile's size besides, usually below 1 kB.
    pub shows_profiles: bool,
    /// The tenant's. A home that was not read for so many days is dropped; the next read fills it. `None`: never.
    pub dormant_after_days: Option<u32>,
    /// The time for which a publish with the same token gives the same post, and a report with the same token the same
    /// report.
    pub token_ttl: Duration,
    /// When a write is acknowledged, unless the call says otherwise; [`Receipt::reached`] tells whether that was
    /// reached.
    pub acknowledge: Acknowledge,
    /// An instance that is silent for so long is taken for dead.
    pub lease_ttl: Duration,
    /// The time between two words of an instance that it lives.
    pub lease_renewal: Duration,
    /// The time between two searches of the journals for work that somebody left.
    pub scan_period: Duration,
    /// Fan-outs and other journal entries under way at once in this instance.
    pub tasks_at_once: usize,
    /// Journal entries of this instance that wait or are under way; beyond it writes are refused as overloaded.
    pub tasks_max: usize,
    /// Deliveries of one fan-out under way at once, while its followers lie in one slot. Lower: others pass it sooner.
    pub fanout_chunk: usize,
    /// States of readers remembered, about 8 bytes for each account that a reader follows.
    pub states_cached: usize,
    /// Likes, bookmarks and reposts of readers remembered in all, 24 bytes each. Those of a reader who has more than
    /// about a thousand of a kind are not.
    pub ties_cached: usize,
    /// Posts remembered.
    pub posts_cached: usize,
    /// Accounts remembered.
    pub accounts_cached: usize,
    /// Outboxes of pulled authors remembered.
    pub outboxes_cached: usize,
    /// The settings by which accounts are pushed or pulled.
    pub modes: ModeSettings,
    /// How often each account may do what others have to put up with.
    pub limits: ActLimits,
}

/// A policy that is shipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicyName {
    /// [`PushOnly`](crate::PushOnly).
    Push,
    /// [`PullOnly`](crate::PullOnly).
    Pull,
    /// [`Threshold`](crate::Threshold).
    #[default]
    Threshold,
    /// [`CostModel`](crate::CostModel).
    Cost,
}

/// Settings by which accounts are pushed or pulled, unless a [`Policy`](crate::Policy) of your own decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeSettings {
    /// The policy that decides.
    pub policy: PolicyName,
    /// Threshold: the number of followers from which on an account is pulled.
    pub pull_from: u64,
    /// Threshold: the number of followers below which it is pushed again. Close to `pull_from`: accounts go back and
    /// forth, each time at the cost of two posts.
    pub push_below: u64,
    /// Cost model: what a delivery costs servers and client, in nanoseconds.
    pub delivery_ns: u64,
    /// Cost model: what a follower without a home costs.
    pub skipped_ns: u64,
    /// Cost model: what one more pulled author costs a read.
    pub pull_ns: u64,
    /// Cost model: what its outbox costs more when no cache has it.
    pub look_ns: u64,
    /// Cost model: how much cheaper the other way must be, in percent.
    pub margin_percent: u64,
    /// How often pulls are brought into accounts' records and the policy is asked about these, and how old the rates of
    /// an account may be that it is asked with.
    pub decide_every: Duration,
}

impl Default for ModeSettings {
    fn default() -> Self {
        Self {
            policy: PolicyName::default(),
            pull_from: 100_000,
            push_below: 50_000,
            // As measured: docs/benchmarks.md. Deliveries cost 4 to 8 us, the fewer the more of them go to one bucket.
            delivery_ns: 7_000,
            skipped_ns: 1_300,
            pull_ns: 300,
            look_ns: 9_000,
            margin_percent: 30,
            decide_every: Duration::from_secs(60),
        }
    }
}

impl ModeSettings {
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        let costs = [self.delivery_ns, self.skipped_ns, self.pull_ns, self.look_ns];
        let rules = [
            (self.push_below <= self.pull_from, "push_below must not be above pull_from"),
            (
                costs.iter().all(|ns| *ns <= 1_000_000_000),
                "delivery_ns, skipped_ns, pull_ns and look_ns must be up to a second",
            ),
            ((1..=10_000).contains(&self.margin_percent), "margin_percent must be 1 to 10,000"),
            (self.decide_every >= Duration::from_millis(1), "decide_every must be at least a millisecond"),
        ];
        rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule)
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            visible_within: Duration::from_secs(1),
            home_posts: 400,
            home_margin: 20,
            page_length: 20,
            outbox_posts: 200_000,
            text_chars: crate::post::TEXT_CHARS_DEFAULT,
            mentions_max: 1_000,
            tag_posts_max: 2_000,
            public_posts: 0,
            following_max: 2_000,
            restrictions_max: 10_000,
            likes_max: 100_000,
            bookmarks_max: 10_000,
            reposts_max: 100_000,
            brought_back_max: 300,
            requests_max: 10_000,
            journal_max: 10_000,
            shows_replies_to_strangers: false,
            keeps_notifications: false,
            shows_profiles: false,
            dormant_after_days: Some(30),
            token_ttl: Duration::from_secs(24 * 60 * 60),
            acknowledge: Acknowledge::default(),
            lease_ttl: Duration::from_secs(10),
            lease_renewal: Duration::from_secs(3),
            scan_period: Duration::from_secs(2),
            tasks_at_once: 64,
            tasks_max: 10_000,
            fanout_chunk: 4_000,
            states_cached: 50_000,
            ties_cached: 2_000_000,
            posts_cached: 100_000,
            accounts_cached: 100_000,
            outboxes_cached: 20_000,
            modes: ModeSettings::default(),
            limits: ActLimits::default(),
        }
    }
}

impl EngineSettings {
    /// Checks every bound, and those that must fit together.
    pub(crate) fn check(&self) -> Result<()> {
        match self.broken_rule().or_else(|| self.modes.broken_rule()) {
            Some(rule) => Err(Error::invalid(format!("engine settings: {rule}; they are {self:?}"))),
            None => Ok(()),
        }
    }

    /// The first bound that isn't kept; its text names the settings concerned.
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        let rules = [
            ((16..=10_000).contains(&self.home_posts), "home_posts must be 16 to 10,000"),
            ((1..=1_000).contains(&self.home_margin), "home_margin must be 1 to 1,000"),
            ((1..=PAGE_LEN_MAX).contains(&self.page_length), "page_length must be 1 to 100"),
            ((100..=10_000_000).contains(&self.outbox_posts), "outbox_posts must be 100 to 10,000,000"),
            ((1..=16_000).contains(&self.text_chars), "text_chars must be 1 to 16,000"),
            ((20..=20_000).contains(&self.mentions_max), "mentions_max must be 20 to 20,000"),
            ((20..=20_000).contains(&self.tag_posts_max), "tag_posts_max must be 20 to 20,000"),
            (self.public_posts <= 2_000, "public_posts must be 0 to 2,000"),
            ((1..=20_000).contains(&self.following_max), "following_max must be 1 to 20,000"),
            ((1..=100_000).contains(&self.restrictions_max), "restrictions_max must be 1 to 100,000"),
            (
                [self.likes_max, self.bookmarks_max, self.reposts_max]
                    .iter()
                    .all(|most| (1..=10_000_000).contains(most)),
                "likes_max, bookmarks_max and reposts_max must be 1 to 10,000,000",
            ),
            ((1..=10_000).contains(&self.brought_back_max), "brought_back_max must be 1 to 10,000"),
            ((1..=100_000).contains(&self.requests_max), "requests_max must be 1 to 100,000"),
            ((100..=1_000_000).contains(&self.journal_max), "journal_max must be 100 to 1,000,000"),
            (self.dormant_after_days != Some(0), "dormant_after_days must not be 0"),
            (!self.token_ttl.is_zero(), "token_ttl must not be zero"),
            (
                !self.lease_renewal.is_zero() && self.lease_renewal * 2 < self.lease_ttl,
                "lease_ttl must be more than twice lease_renewal, or one lost renewal ends an instance's work",
            ),
            (!self.scan_period.is_zero(), "scan_period must not be zero"),
            ((1..=10_000).contains(&self.tasks_at_once), "tasks_at_once must be 1 to 10,000"),
            (
                self.tasks_max >= self.tasks_at_once && self.tasks_max <= 1_000_000,
                "tasks_max must be at least tasks_at_once, and at most 1,000,000",
            ),
            ((128..=1_000_000).contains(&self.fanout_chunk), "fanout_chunk must be 128 to 1,000,000"),
            (
                [
                    self.states_cached,
                    self.ties_cached,
                    self.posts_cached,
                    self.accounts_cached,
                    self.outboxes_cached,
                ]
                .iter()
                .all(|n| (1..=100_000_000).contains(n)),
                "states_cached, ties_cached, posts_cached, accounts_cached and outboxes_cached must be 1 to \
                 100,000,000",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_together() {
        EngineSettings::default().check().unwrap();
    }

    #[test]
    fn refuses_settings_that_do_not_fit_together() {
        let base = EngineSettings::default;
        let wrong = [
            EngineSettings { home_posts: 0, ..base() },
            EngineSettings { lease_ttl: Duration::from_secs(3), ..base() },
            EngineSettings { tasks_max: 1, ..base() },
            EngineSettings { posts_cached: 0, ..base() },
            EngineSettings { modes: ModeSettings { pull_from: 1, ..ModeSettings::default() }, ..base() },
        ];
        for settings in wrong {
            assert_eq!(settings.check().unwrap_err().kind(), crate::ErrorKind::Invalid);
        }
    }
}
