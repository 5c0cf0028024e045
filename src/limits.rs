//! Limits on how often an account may do what others have to put up with, and on what a new one may. Pure: no I/O, no
//! clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::fields::RecordField;

/// The longest span of a limit: 30 days.
const SPAN_MAX_S: u64 = 30 * 86_400;
/// Units of spans, the longest first.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
/// The text between the limit of everybody and that of new accounts.
const OF_NEW: &str = ", new ";

/// A limit on how often an account may do something, or on how many it may have of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountLimit {
    /// Posts of all kinds: [`ActLimits::posts`].
    Posts,
    /// Direct posts: [`ActLimits::direct_posts`].
    DirectPosts,
    /// Posts into groups: [`ActLimits::group_posts`].
    GroupPosts,
    /// Mentions of who doesn't follow it: [`ActLimits::mentions_of_strangers`].
    MentionsOfStrangers,
    /// Follows within a span of time: [`ActLimits::follows`].
    Follows,
    /// Reports: [`ActLimits::reports`].
    Reports,
    /// Accounts that it follows: [`EngineSettings::following_max`](crate::EngineSettings::following_max).
    FollowedAccounts,
}

impl AccountLimit {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Posts,
        Self::DirectPosts,
        Self::GroupPosts,
        Self::MentionsOfStrangers,
        Self::Follows,
        Self::Reports,
        Self::FollowedAccounts,
    ];

    /// The limit's name, as it serializes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Posts => "posts",
            Self::DirectPosts => "direct_posts",
            Self::GroupPosts => "group_posts",
            Self::MentionsOfStrangers => "mentions_of_strangers",
            Self::Follows => "follows",
            Self::Reports => "reports",
            Self::FollowedAccounts => "followed_accounts",
        }
    }

    /// The words for what is done, for people, and the name of its setting.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Posts => ("posted", "limits.posts"),
            Self::DirectPosts => ("posted directly", "limits.direct_posts"),
            Self::GroupPosts => ("posted into groups", "limits.group_posts"),
            Self::MentionsOfStrangers => {
                ("mentioned accounts that don't follow it", "limits.mentions_of_strangers")
            }
            Self::Follows => ("followed others", "limits.follows"),
            Self::Reports => ("reported others", "limits.reports"),
            Self::FollowedAccounts => ("followed others", "following_max"),
        }
    }

    /// The field of its account's record in which it is counted, of two letters.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Posts => RecordField::POSTS_COUNTED,
            Self::DirectPosts => RecordField::DIRECT_POSTS_COUNTED,
            Self::GroupPosts => RecordField::GROUP_POSTS_COUNTED,
            Self::MentionsOfStrangers => RecordField::MENTIONS_COUNTED,
            Self::Follows => RecordField::FOLLOWS_COUNTED,
            Self::Reports => RecordField::REPORTS_COUNTED,
            Self::FollowedAccounts => RecordField::FOLLOWING,
        }
    }
}

/// The limits of an account's own, whatever others may and however new it is; `None`: it has what the settings say.
///
/// How often within which span, the settings say: what they don't limit, nothing of this limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnLimits {
    /// Posts within the span of [`ActLimits::posts`].
    pub posts: Option<u32>,
    /// Direct posts within the span of [`ActLimits::direct_posts`].
    pub direct_posts: Option<u32>,
    /// Posts into groups within the span of [`ActLimits::group_posts`].
    pub group_posts: Option<u32>,
    /// Mentions within the span of [`ActLimits::mentions_of_strangers`].
    pub mentions_of_strangers: Option<u32>,
    /// Follows within the span of [`ActLimits::follows`].
    pub follows: Option<u32>,
    /// Reports within the span of [`ActLimits::reports`].
    pub reports: Option<u32>,
    /// Accounts that it may follow.
    pub followed_accounts: Option<u32>,
}

/// The most that a limit of an account's own may say: as often as a window counts, and as many as a home is filled
/// from.
const OWN_ACTS_MAX: u32 = u16::MAX as u32;
pub(crate) const OWN_FOLLOWING_MAX: u32 = 20_000;

impl OwnLimits {
    /// The limit of that kind.
    pub fn of(&self, limit: AccountLimit) -> Option<u32> {
        let mut own = *self;
        *own.place(limit)
    }

    /// Sets a limit; `None`: what the settings say of it.
    #[must_use]
    pub fn with(mut self, limit: AccountLimit, most: Option<u32>) -> Self {
        *self.place(limit) = most;
        self
    }

    fn place(&mut self, limit: AccountLimit) -> &mut Option<u32> {
        match limit {
            AccountLimit::Posts => &mut self.posts,
            AccountLimit::DirectPosts => &mut self.direct_posts,
            AccountLimit::GroupPosts => &mut self.group_posts,
            AccountLimit::MentionsOfStrangers => &mut self.mentions_of_strangers,
            AccountLimit::Follows => &mut self.follows,
            AccountLimit::Reports => &mut self.reports,
            AccountLimit::FollowedAccounts => &mut self.followed_accounts,
        }
    }

    /// Refuses what no limit may say.
    pub(crate) fn check(limit: AccountLimit, most: u32) -> Result<()> {
        let most_of_all =
            if limit == AccountLimit::FollowedAccounts { OWN_FOLLOWING_MAX } else { OWN_ACTS_MAX };
        if (1..=most_of_all).contains(&most) {
            return Ok(());
        }
        let (_, setting) = limit.words();
        Err(Error::out_of_range(format!(
            "{most} as an account's own `{setting}`: 1 to {most_of_all} is allowed; whoever may not at all is suspended"
        )))
    }

    /// The bytes that the record has of them, with these changes: each the field that it is counted in, and the number.
    /// What it has of a later release's kinds stays.
    pub(crate) fn stored_with(stored: &[u8], changes: &[(AccountLimit, Option<u32>)]) -> Vec<u8> {
        let (kept, _) = stored.as_chunks::<6>();
        let is_changed =
            |of: &[u8; 6]| changes.iter().any(|(limit, _)| of.starts_with(limit.field().as_bytes()));
        let mut stored = kept.iter().filter(|of| !is_changed(of)).copied().flatten().collect::<Vec<u8>>();
        for (limit, most) in changes.iter().filter_map(|(limit, most)| Some((limit, (*most)?))) {
            stored.extend([limit.field().as_bytes(), &most.to_be_bytes()].concat());
        }
        stored
    }

    /// Reads them; of a later release's kinds nothing is known.
    pub(crate) fn parse(stored: &[u8]) -> Self {
        let (limits, _) = stored.as_chunks::<6>();
        limits.iter().fold(Self::default(), |own, [a, b, most @ ..]| {
            let named = AccountLimit::ALL.into_iter().find(|limit| limit.field().as_bytes() == [*a, *b]);
            named.map_or(own, |limit| own.with(limit, Some(u32::from_be_bytes(*most))))
        })
    }
}

/// So often within a span of time, wherever that begins: written as `300/3h`, or `300/3h, new 60`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActLimit {
    /// How often.
    pub most: u16,
    /// Within how long: whole seconds, 30 days at most.
    pub span: Duration,
    /// How often an account that is new may.
    pub most_new: u16,
}

impl ActLimit {
    /// So often within so long, whether an account is new or not.
    pub fn of(most: u16, span: Duration) -> Self {
        Self { most, span, most_new: most }
    }
}

/// Limits on how often each account may do what others have to put up with; `None`: as often as it likes.
///
/// All instances of a tenant count together, in the account's own bucket, and should have the same limits. What is so
/// already, and what comes again with its token, is neither counted nor refused; nor is what an account takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActLimits {
    /// Posts of all kinds: answers, quotes, reposts, direct posts and posts into groups too.
    pub posts: Option<ActLimit>,
    /// Direct posts.
    pub direct_posts: Option<ActLimit>,
    /// Posts into groups.
    pub group_posts: Option<ActLimit>,
    /// Accounts that its posts mention and that don't follow it, each one counted.
    pub mentions_of_strangers: Option<ActLimit>,
    /// Follows, and requests to follow.
    pub follows: Option<ActLimit>,
    /// Reports of others.
    pub reports: Option<ActLimit>,
    /// How long an account that was registered is new.
    pub new_for: Duration,
}

impl Default for ActLimits {
    fn default() -> Self {
        Self {
            posts: None,
            direct_posts: None,
            group_posts: None,
            mentions_of_strangers: None,
            follows: None,
            reports: None,
            new_for: Duration::from_secs(7 * 86_400),
        }
    }
}

impl ActLimits {
    /// The limit of an act, if there is one.
    pub fn of(&self, act: AccountLimit) -> Option<ActLimit> {
        match act {
            AccountLimit::Posts => self.posts,
            AccountLimit::DirectPosts => self.direct_posts,
            AccountLimit::GroupPosts => self.group_posts,
            AccountLimit::MentionsOfStrangers => self.mentions_of_strangers,
            AccountLimit::Follows => self.follows,
            AccountLimit::Reports => self.reports,
            AccountLimit::FollowedAccounts => None,
        }
    }
}

/// Reads so often within so long (`300/3h`): the number as it stands there, and the span in seconds, 30 days at most.
#[doc(hidden)]
pub fn rate_in(text: &str) -> Option<(&str, u64)> {
    let (most, span) = text.split_once('/')?;
    let (letter, seconds) = UNITS.into_iter().find(|(letter, _)| span.ends_with(*letter))?;
    let count: u64 = span.strip_suffix(letter)?.parse().ok()?;
    let span_s = count.checked_mul(seconds).filter(|span| (1..=SPAN_MAX_S).contains(span))?;
    Some((most, span_s))
}

/// Writes a span as [`rate_in`] reads it, in the longest unit that fits.
#[doc(hidden)]
pub fn span_text(span_s: u64) -> String {
    let (letter, seconds) =
        UNITS.into_iter().find(|(_, unit)| span_s.is_multiple_of(*unit)).unwrap_or(('s', 1));
    format!("{}{letter}", span_s / seconds)
}

impl FromStr for ActLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused =
            || format!("{text:?} is no limit: 300/3h, or with one for new accounts: 300/3h, new 60");
        let (limit, of_new) = match text.split_once(OF_NEW) {
            Some((limit, of_new)) => (limit, Some(of_new)),
            None => (text, None),
        };
        let number = |text: &str| text.parse::<u16>().ok().filter(|most| *most > 0).ok_or_else(refused);
        let (most, span_s) = rate_in(limit).ok_or_else(refused)?;
        let limit = Self::of(number(most)?, Duration::from_secs(span_s));
        Ok(of_new.map(number).transpose()?.map_or(limit, |most_new| Self { most_new, ..limit }))
    }
}

impl fmt::Display for ActLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.most, span_text(self.span.as_secs()))?;
        if self.most_new != self.most { write!(f, "{OF_NEW}{}", self.most_new) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_an_accounts_own_are_stored_as_functions_read_them() {
        let own = OwnLimits { posts: Some(7), followed_accounts: Some(9_000), ..OwnLimits::default() };
        let changes = [(AccountLimit::Posts, Some(7)), (AccountLimit::FollowedAccounts, Some(9_000))];
        let stored = OwnLimits::stored_with(b"", &changes);
        assert_eq!(stored, b"lp\0\0\0\x07nf\0\0\x23\x28");
        assert_eq!(OwnLimits::parse(&stored), own);
        // Of a later release.
        let later = OwnLimits::stored_with(b"zz\0\0\0\x07lp\0\0\0\x05", &[(AccountLimit::Posts, Some(7))]);
        assert_eq!(later, b"zz\0\0\0\x07lp\0\0\0\x07");
        assert_eq!(OwnLimits::parse(&later), own.with(AccountLimit::FollowedAccounts, None));
        assert_eq!(OwnLimits::stored_with(&later, &[(AccountLimit::Posts, None)]), b"zz\0\0\0\x07");
        let read = include_str!("functions/lua/windows.lua")
            .lines()
            .find_map(|line| line.strip_prefix("local OWN_LIMIT, OWN_LIMIT_LEN = "));
        assert_eq!(read, Some("'>I4', 6"));
        // As the functions name them.
        assert_eq!((RecordField::OWN_LIMITS, RecordField::FOLLOWING), ("ol", "nf"));
        for limit in AccountLimit::ALL {
            assert_eq!(limit.field().len(), 2, "{limit:?}");
            assert_eq!(serde_json::to_value(limit).unwrap(), limit.as_str());
            let only = OwnLimits::default().with(limit, Some(1));
            let stored = OwnLimits::stored_with(b"", &[(limit, Some(1))]);
            assert_eq!((OwnLimits::parse(&stored), only.of(limit)), (only, Some(1)));
            assert!(OwnLimits::check(limit, 1).is_ok() && OwnLimits::check(limit, 0).is_err());
            assert!(OwnLimits::check(limit, 65_536).is_err(), "{limit:?}");
        }
        assert!(OwnLimits::check(AccountLimit::FollowedAccounts, 20_001).is_err());
    }

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in ["300/3h", "1/1s", "400/1d, new 20", "30/90s", "25/36h, new 50"] {
            assert_eq!(text.parse::<ActLimit>().unwrap().to_string(), text);
        }
        assert_eq!("10/3600s, new 10".parse::<ActLimit>().unwrap().to_string(), "10/1h");
        let wrong =
            ["", "300", "300/5", "0/5m", "-1/5m", "5/0m", "5/5mm", "5/31d", "5m/300", "off", "70000/1h"];
        for text in wrong.into_iter().chain(["5/5m, new 0", "5/5m, new", "5/5m new 3", "5/5m, new 3, new 4"])
        {
            assert!(text.parse::<ActLimit>().is_err(), "{text}");
        }
    }
}
