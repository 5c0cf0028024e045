//! How often an account may do what others have to put up with, and what a new one may. Pure: no I/O, no clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::fields::RecordField;

/// The longest span of a limit: 30 days.
const SPAN_MAX_S: u64 = 30 * 86_400;
/// Units of spans, the longest first.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
/// What stands between the limit of everybody and that of new accounts.
const OF_NEW: &str = ", new ";

/// An act that may be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LimitedAct {
    Posts,
    DirectPosts,
    MentionsOfStrangers,
    Follows,
    Reports,
}

impl LimitedAct {
    /// What is done, for people, and what its setting is called.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Posts => ("posted", "limits.posts"),
            Self::DirectPosts => ("posted directly", "limits.direct_posts"),
            Self::MentionsOfStrangers => {
                ("mentioned accounts that don't follow it", "limits.mentions_of_strangers")
            }
            Self::Follows => ("followed others", "limits.follows"),
            Self::Reports => ("reported others", "limits.reports"),
        }
    }

    /// The field of its author's record in which it is counted.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Posts => RecordField::POSTS_COUNTED,
            Self::DirectPosts => RecordField::DIRECT_POSTS_COUNTED,
            Self::MentionsOfStrangers => RecordField::MENTIONS_COUNTED,
            Self::Follows => RecordField::FOLLOWS_COUNTED,
            Self::Reports => RecordField::REPORTS_COUNTED,
        }
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

/// How often each account may do what others have to put up with; `None`: as often as it likes.
///
/// All instances of a tenant count together, in the account's own bucket, and should have the same limits. What is so
/// already, and what comes again with its token, is neither counted nor refused; nor is what an account takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActLimits {
    /// Posts of all kinds: answers, quotes, reposts and direct posts too.
    pub posts: Option<ActLimit>,
    /// Direct posts.
    pub direct_posts: Option<ActLimit>,
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
            mentions_of_strangers: None,
            follows: None,
            reports: None,
            new_for: Duration::from_secs(7 * 86_400),
        }
    }
}

impl ActLimits {
    /// The limit of an act, if there is one.
    pub(crate) fn of(&self, act: LimitedAct) -> Option<ActLimit> {
        match act {
            LimitedAct::Posts => self.posts,
            LimitedAct::DirectPosts => self.direct_posts,
            LimitedAct::MentionsOfStrangers => self.mentions_of_strangers,
            LimitedAct::Follows => self.follows,
            LimitedAct::Reports => self.reports,
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

    fn from_str(text: &str) -> Result<Self, String> {
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
