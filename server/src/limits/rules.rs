//! Which limits a request counts against. Pure.

use std::net::IpAddr;

use axum::http::Method;

use super::quota::{Limit, Quota};
use super::settings::LimitSettings;

/// What is limited: what counters and metrics call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LimitName {
    Account,
    Token,
    Address,
    Paging,
    Statuses,
    Follows,
    Deletes,
    SignUps,
    Applications,
    LogIns,
    LogInsAddress,
    Letters,
    LettersAddress,
}

impl LimitName {
    /// Never to change: instances of two releases count together.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Token => "token",
            Self::Address => "address",
            Self::Paging => "paging",
            Self::Statuses => "statuses",
            Self::Follows => "follows",
            Self::Deletes => "deletes",
            Self::SignUps => "sign_ups",
            Self::Applications => "applications",
            Self::LogIns => "log_ins",
            Self::LogInsAddress => "log_ins_address",
            Self::Letters => "letters",
            Self::LettersAddress => "letters_address",
        }
    }
}

/// Something that counts against a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedAct {
    pub(crate) limit: LimitName,
    pub(crate) quota: Quota,
    /// Whose it is.
    pub(crate) subject: String,
}

/// What is known of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) method: &'a Method,
    /// The template of its route.
    pub(crate) route: &'a str,
    pub(crate) query: &'a str,
    /// Whom it is from, as [`subject`] names an address.
    pub(crate) address: &'a str,
    /// The account that asks.
    pub(crate) account: Option<u64>,
    /// What its token is known by; no secret.
    pub(crate) token: Option<&'a str>,
}

/// An address as it is limited: one of IPv6 by its first half, since everybody has all that begin so.
pub(crate) fn subject(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// All that a request counts against; first what is rare.
pub(crate) fn acts_of(limits: &LimitSettings, facts: RequestFacts<'_>) -> Vec<CountedAct> {
    let mut acts = Acts(Vec::new());
    let is_limited = |head: &&str| facts.route.starts_with(head);
    let is_api = ["/api/", "/oauth/", "/auth/"].iter().any(is_limited);
    if !is_api {
        return acts.0;
    }
    let by_account = facts.account.map(|account| format!("account {account}"));
    let by_address = || format!("address {}", facts.address);
    // Whom a request without an account is from is known by the address only.
    let whose = by_account.clone().unwrap_or_else(by_address);
    match (facts.method, facts.route) {
        (&Method::POST, "/api/v1/accounts") => acts.add(LimitName::SignUps, limits.sign_ups, by_address()),
        (&Method::POST, "/api/v1/apps") => {
            acts.add(LimitName::Applications, limits.applications, by_address())
        }
        (&Method::POST, "/api/v1/statuses" | "/api/v1/statuses/{id}/reblog") => {
            acts.add(LimitName::Statuses, limits.statuses, whose.clone());
        }
        (&Method::DELETE, "/api/v1/statuses/{id}") | (&Method::POST, "/api/v1/statuses/{id}/unreblog") => {
            acts.add(LimitName::Deletes, limits.deletes, whose.clone());
        }
        (&Method::POST, "/api/v1/accounts/{id}/follow") => {
            acts.add(LimitName::Follows, limits.follows, whose.clone());
        }
        _ => {}
    }
    if facts.method == Method::GET && is_further_page(facts.query) {
        acts.add(LimitName::Paging, limits.paging, whose);
    }
    if let Some(token) = facts.token {
        acts.add(LimitName::Token, limits.token, token.to_owned());
    }
    match by_account {
        Some(account) => acts.add(LimitName::Account, limits.account, account),
        None => acts.add(LimitName::Address, limits.address, by_address()),
    }
    acts.0
}

/// What a try to log in counts against: for this account *and* from this address, so that nobody can lock somebody out
/// who comes from elsewhere; and from this address.
pub(crate) fn log_in(limits: &LimitSettings, address: &str, name: &str) -> Vec<CountedAct> {
    let mut acts = Acts(Vec::new());
    // As long as no name is: what is longer is nobody's anyway.
    let name: String = name.trim().trim_start_matches('@').chars().take(NAME_CHARS).collect();
    acts.add(LimitName::LogIns, limits.log_ins, format!("{address} {}", name.to_lowercase()));
    acts.add(LimitName::LogInsAddress, limits.log_ins_address, address.to_owned());
    acts.0
}

/// What a letter counts against that is asked for from an address.
pub(crate) fn letter_from(limits: &LimitSettings, address: &str) -> Vec<CountedAct> {
    let mut acts = Acts(Vec::new());
    acts.add(LimitName::LettersAddress, limits.letters_address, address.to_owned());
    acts.0
}

/// What a letter counts against that goes to somebody's e-mail address, whoever asks for it.
pub(crate) fn letter_to(limits: &LimitSettings, email: &str) -> Vec<CountedAct> {
    let mut acts = Acts(Vec::new());
    acts.add(LimitName::Letters, limits.letters, email.trim().to_lowercase());
    acts.0
}

/// Letters of a name that tell it from others here.
const NAME_CHARS: usize = 128;

struct Acts(Vec<CountedAct>);

impl Acts {
    fn add(&mut self, limit: LimitName, Limit(quota): Limit, subject: String) {
        self.0.extend(quota.map(|quota| CountedAct { limit, quota, subject }));
    }
}

fn is_further_page(query: &str) -> bool {
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    names.into_iter().any(|name| matches!(name, "page" | "max_id" | "min_id" | "since_id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &Method, route: &str, query: &str, account: Option<u64>) -> Vec<(LimitName, String)> {
        let token = account.map(|_| "token t");
        let facts = RequestFacts { method, route, query, address: "a", account, token };
        let acts = acts_of(&LimitSettings::default(), facts);
        acts.into_iter().map(|act| (act.limit, act.subject)).collect()
    }

    #[test]
    fn a_request_counts_for_its_account_and_token_and_else_for_its_address() {
        use LimitName::*;
        let home = "/api/v1/timelines/home";
        let (mine, token) = ((Account, "account 7".to_owned()), (Token, "token t".to_owned()));
        let from = |limit| (limit, "address a".to_owned());
        assert_eq!(of(&Method::GET, home, "limit=3", Some(7)), [token.clone(), mine.clone()]);
        let paging = (Paging, "account 7".to_owned());
        assert_eq!(
            of(&Method::GET, home, "limit=3&max_id=9", Some(7)),
            [paging, token.clone(), mine.clone()]
        );
        assert_eq!(of(&Method::GET, home, "x=max_id", None), [from(Address)]);
        assert_eq!(of(&Method::GET, home, "min_id=1", None), [from(Paging), from(Address)]);
        assert_eq!(of(&Method::POST, "/api/v1/accounts", "", None), [from(SignUps), from(Address)]);
        assert_eq!(of(&Method::POST, "/api/v1/apps", "", None), [from(Applications), from(Address)]);
        assert_eq!(of(&Method::POST, "/oauth/token", "", None), [from(Address)]);
        let deletes = (Deletes, "account 7".to_owned());
        for (method, route) in
            [(&Method::DELETE, "/api/v1/statuses/{id}"), (&Method::POST, "/api/v1/statuses/{id}/unreblog")]
        {
            assert_eq!(of(method, route, "", Some(7)), [deletes.clone(), token.clone(), mine.clone()]);
        }
        assert_eq!(of(&Method::POST, "/api/v1/statuses", "", Some(7)).len(), 3);
        assert_eq!(of(&Method::GET, "/.well-known/nodeinfo", "", None), []);
    }

    #[test]
    fn tries_to_log_in_count_for_account_and_address_together() {
        let subjects = |address: &str, name: &str| {
            let acts = log_in(&LimitSettings::default(), address, name);
            acts.into_iter().map(|act| act.subject).collect::<Vec<_>>()
        };
        assert_eq!(subjects("a", " @Ada"), ["a ada", "a"]);
        assert_eq!(subjects("b", "ada"), ["b ada", "b"]);
        assert!(log_in(&LimitSettings::off(), "a", "ada").is_empty());
        assert_eq!(subjects("a", &"\u{130}".repeat(5_000))[0].chars().count(), 2 + 2 * NAME_CHARS);
    }

    #[test]
    fn addresses_of_ipv6_count_by_their_first_half() {
        let of = |address: &str| subject(address.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
