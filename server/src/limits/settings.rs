//! Limits, as they are set.

use tideline::config::{Section, Setting, Value};

use super::quota::Limit;

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;

/// Limits on how often somebody may do what: Mastodon's numbers, unless the settings say otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSettings {
    /// Requests of one account, with whatever tokens.
    pub account: Limit,
    /// Requests with one token.
    pub token: Limit,
    /// Requests from one address that are nobody's in particular.
    pub address: Limit,
    /// Requests for another page than the first, of one account, or of nobody in particular from one address.
    pub paging: Limit,
    /// Statuses and reposts of one account.
    pub statuses: Limit,
    /// Follows of one account.
    pub follows: Limit,
    /// Statuses and reposts that one account takes back.
    pub deletes: Limit,
    /// Groups that one account makes.
    pub groups: Limit,
    /// Sign-ups from one address.
    pub sign_ups: Limit,
    /// Applications that are registered from one address.
    pub applications: Limit,
    /// Tokens that applications are given for themselves, from one address.
    pub application_tokens: Limit,
    /// Tries to log in as one account from one address.
    pub log_ins: Limit,
    /// Tries to log in from one address, as whomever.
    pub log_ins_address: Limit,
    /// Letters to one e-mail address.
    pub letters: Limit,
    /// Letters that are asked for from one address.
    pub letters_address: Limit,
    /// Pages of who follows an account that very many follow, for one account, or for nobody in particular from one
    /// address.
    pub large_lists: Limit,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            account: Limit::of(1_500, 5 * MINUTE),
            token: Limit::of(300, 5 * MINUTE),
            address: Limit::of(300, 5 * MINUTE),
            paging: Limit::of(300, 15 * MINUTE),
            statuses: Limit::of(300, 3 * HOUR),
            follows: Limit::of(400, 24 * HOUR),
            deletes: Limit::of(30, 30 * MINUTE),
            groups: Limit::of(5, 24 * HOUR),
            sign_ups: Limit::of(5, 30 * MINUTE),
            applications: Limit::of(5, 10 * MINUTE),
            application_tokens: Limit::of(30, 10 * MINUTE),
            log_ins: Limit::of(10, 5 * MINUTE),
            log_ins_address: Limit::of(25, 5 * MINUTE),
            letters: Limit::of(5, 30 * MINUTE),
            letters_address: Limit::of(25, 30 * MINUTE),
            large_lists: Limit::of(30, MINUTE),
        }
    }
}

impl LimitSettings {
    /// No limits at all.
    pub fn off() -> Self {
        let off = Limit(None);
        Self {
            account: off,
            token: off,
            address: off,
            paging: off,
            statuses: off,
            follows: off,
            deletes: off,
            groups: off,
            sign_ups: off,
            applications: off,
            application_tokens: off,
            log_ins: off,
            log_ins_address: off,
            letters: off,
            letters_address: off,
            large_lists: off,
        }
    }

    /// A section with all of them.
    pub(crate) fn in_section<'a>(&'a mut self, section: Section<'a>) -> Section<'a> {
        section
            .with("limit_account", LimitText(&mut self.account))
            .with("limit_token", LimitText(&mut self.token))
            .with("limit_address", LimitText(&mut self.address))
            .with("limit_paging", LimitText(&mut self.paging))
            .with("limit_statuses", LimitText(&mut self.statuses))
            .with("limit_follows", LimitText(&mut self.follows))
            .with("limit_deletes", LimitText(&mut self.deletes))
            .with("limit_groups", LimitText(&mut self.groups))
            .with("limit_sign_ups", LimitText(&mut self.sign_ups))
            .with("limit_applications", LimitText(&mut self.applications))
            .with("limit_application_tokens", LimitText(&mut self.application_tokens))
            .with("limit_log_ins", LimitText(&mut self.log_ins))
            .with("limit_log_ins_address", LimitText(&mut self.log_ins_address))
            .with("limit_letters", LimitText(&mut self.letters))
            .with("limit_letters_address", LimitText(&mut self.letters_address))
            .with("limit_large_lists", LimitText(&mut self.large_lists))
    }
}

/// A limit that is written as text.
struct LimitText<'a>(&'a mut Limit);

impl Setting for LimitText<'_> {
    fn allowed(&self) -> String {
        "how often within how long, as \"300/5m\" (s, m, h, d; at most 30d), or \"off\"".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        value.text().and_then(|text| text.parse().ok()).map(|limit| *self.0 = limit).is_some()
    }

    fn get(&self) -> Value {
        Value::Text(self.0.to_string())
    }
}
