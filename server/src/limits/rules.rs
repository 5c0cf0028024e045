//! The limits that a request counts against. Pure.

use axum::http::Method;
use percent_encoding::percent_decode_str;

use tideline::registration::{EMAIL_BYTES_MAX, folded_name};

use super::quota::{Limit, Quota};
use super::settings::LimitSettings;

/// A name of a limit, as counters and metrics call it.
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
    Groups,
    Applications,
    LogIns,
    LogInsAddress,
    Letters,
    LettersAddress,
    ApplicationTokens,
    LargeLists,
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
            Self::Groups => "groups",
            Self::Applications => "applications",
            Self::LogIns => "log_ins",
            Self::LogInsAddress => "log_ins_address",
            Self::Letters => "letters",
            Self::LettersAddress => "letters_address",
            Self::ApplicationTokens => "application_tokens",
            Self::LargeLists => "large_lists",
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

/// Facts known of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) method: &'a Method,
    /// The template of its route.
    pub(crate) route: &'a str,
    pub(crate) query: &'a str,
    /// Whether it has a body, of which nothing is known.
    pub(crate) has_body: bool,
    /// Whom it is from, as [`counted_as`](crate::http::counted_as) names an address.
    pub(crate) address: &'a str,
    /// The account that asks.
    pub(crate) account: Option<u64>,
    /// What its token is known by; no secret.
    pub(crate) token: Option<&'a str>,
}

/// Whether requests for this route count: what is always the same does not.
pub(crate) fn is_counted(route: &str) -> bool {
    ["/api/", "/oauth/", "/auth/", "/@", "/users/"].iter().any(|head| route.starts_with(head))
}

/// All that a request counts against; first what is rare.
pub(crate) fn acts_of(limits: &LimitSettings, facts: RequestFacts<'_>) -> Vec<CountedAct> {
    let mut acts = Acts(Vec::new());
    if !is_counted(facts.route) {
        return acts.0;
    }
    let (by_account, by_address) = (facts.account.map(by_account), || by_address(facts.address));
    // Whom a request without an account is from is known by the address only.
    let whose = by_account.clone().unwrap_or_else(by_address);
    match (facts.method, facts.route) {
        (&Method::POST, "/api/v1/accounts" | "/auth/sign_up") => {
            acts.add(LimitName::SignUps, limits.sign_ups, by_address());
        }
        // Each takes a name for good.
        (&Method::POST, "/api/tideline/v1/groups") => {
            acts.add(LimitName::Groups, limits.groups, whose.clone());
        }
        (&Method::POST, "/api/v1/apps") => {
            acts.add(LimitName::Applications, limits.applications, by_address())
        }
        // A chat that is opened is as good as a message.
        (&Method::POST, "/api/v1/statuses" | "/api/v1/statuses/{id}/reblog" | "/api/tideline/v1/chats") => {
            acts.add(LimitName::Statuses, limits.statuses, whose.clone());
        }
        // What somebody takes back of its own. In a group its call counts that (`taken_back`).
        (&Method::DELETE, "/api/v1/statuses/{id}") | (&Method::POST, "/api/v1/statuses/{id}/unreblog") => {
            acts.add(LimitName::Deletes, limits.deletes, whose.clone());
        }
        (&Method::POST, "/api/v1/accounts/{id}/follow") => {
            acts.add(LimitName::Follows, limits.follows, whose.clone());
        }
        _ => {}
    }
    // What is asked for with HEAD is read all the same; and a body may say what a query does.
    let reads = matches!(*facts.method, Method::GET | Method::HEAD);
    if reads && (facts.has_body || is_further_page(facts.query)) {
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

/// The limits that a try to log in counts against: for this account *and* from this address, so that nobody can lock
/// somebody out who comes from elsewhere; and from this address.
pub(crate) fn log_in(limits: &LimitSettings, address: &str, name: &str) -> Vec<CountedAct> {
    let mut acts = Acts::of(LimitName::LogIns, limits.log_ins, format!("{address} {}", told_apart(name)));
    acts.add(LimitName::LogInsAddress, limits.log_ins_address, address.to_owned());
    acts.0
}

/// The limit that such a try counts against once it is known whose the name is, if it is anybody's: an account has a
/// login and an address of e-mail, and is tried by either.
pub(crate) fn log_in_as(
    limits: &LimitSettings,
    address: &str,
    account: Option<u64>,
    name: &str,
) -> Vec<CountedAct> {
    // Not spelled as what is typed: that begins with an address.
    let subject = match account {
        Some(account) => format!("{account} {address}"),
        None => format!("0 {address} {}", told_apart(name)),
    };
    Acts::of(LimitName::LogIns, limits.log_ins, subject).0
}

/// A name as it is counted: as long as no name is, since what is longer is nobody's anyway.
fn told_apart(name: &str) -> String {
    let name: String = name.trim().trim_start_matches('@').chars().take(NAME_CHARS).collect();
    folded_name(&name)
}

/// The limit for a letter that is asked for from an address.
pub(crate) fn letter_from(limits: &LimitSettings, address: &str) -> Vec<CountedAct> {
    Acts::of(LimitName::LettersAddress, limits.letters_address, address.to_owned()).0
}

/// The limit for a letter that goes to somebody's e-mail address, whoever asks for it.
pub(crate) fn letter_to(limits: &LimitSettings, email: &str) -> Vec<CountedAct> {
    Acts::of(LimitName::Letters, limits.letters, folded_name(email.trim())).0
}

/// The limit for a token that an application is given for itself. By the address alone: whoever has an application's
/// secret, as all who use a page's have, must not be able to keep the others from theirs.
pub(crate) fn application_token(limits: &LimitSettings, address: &str) -> Vec<CountedAct> {
    Acts::of(LimitName::ApplicationTokens, limits.application_tokens, address.to_owned()).0
}

/// The limit for a status of its own that an account takes back.
pub(crate) fn taken_back(limits: &LimitSettings, account: u64) -> Vec<CountedAct> {
    Acts::of(LimitName::Deletes, limits.deletes, by_account(account)).0
}

/// The limit for a page of a list with so many on it that it costs much.
pub(crate) fn large_list(limits: &LimitSettings, address: &str, account: Option<u64>) -> Vec<CountedAct> {
    let whose = account.map_or_else(|| by_address(address), by_account);
    Acts::of(LimitName::LargeLists, limits.large_lists, whose).0
}

fn by_account(account: u64) -> String {
    format!("account {account}")
}

fn by_address(address: &str) -> String {
    format!("address {address}")
}

/// Letters of a name that tell it from others here: all that an e-mail address may have.
const NAME_CHARS: usize = EMAIL_BYTES_MAX;

struct Acts(Vec<CountedAct>);

impl Acts {
    /// One act.
    fn of(limit: LimitName, most: Limit, subject: String) -> Self {
        let mut acts = Self(Vec::new());
        acts.add(limit, most, subject);
        acts
    }

    fn add(&mut self, limit: LimitName, Limit(quota): Limit, subject: String) {
        self.0.extend(quota.map(|quota| CountedAct { limit, quota, subject }));
    }
}

fn is_further_page(query: &str) -> bool {
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    // As parameters are read: letter by letter in whatever way they are written.
    names
        .map(|name| percent_decode_str(name).decode_utf8_lossy())
        .any(|name| matches!(name.as_ref(), "page" | "max_id" | "min_id" | "since_id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &Method, route: &str, query: &str, account: Option<u64>) -> Vec<(LimitName, String)> {
        let token = account.map(|_| "token t");
        let facts = RequestFacts { method, route, query, has_body: false, address: "a", account, token };
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
        for path in ["/api/v1/accounts", "/auth/sign_up"] {
            assert_eq!(of(&Method::POST, path, "", None), [from(SignUps), from(Address)]);
        }
        assert_eq!(of(&Method::POST, "/api/v1/apps", "", None), [from(Applications), from(Address)]);
        assert_eq!(of(&Method::POST, "/oauth/token", "", None), [from(Address)]);
        let deletes = (Deletes, "account 7".to_owned());
        for (method, route) in
            [(&Method::DELETE, "/api/v1/statuses/{id}"), (&Method::POST, "/api/v1/statuses/{id}/unreblog")]
        {
            assert_eq!(of(method, route, "", Some(7)), [deletes.clone(), token.clone(), mine.clone()]);
        }
        let of_others = "/api/tideline/v1/groups/{id}/statuses/{status_id}";
        assert_eq!(of(&Method::DELETE, of_others, "", Some(7)), [token.clone(), mine.clone()]);
        let opened = of(&Method::POST, "/api/tideline/v1/chats", "", Some(7));
        assert_eq!(opened[0], (Statuses, "account 7".to_owned()));
        assert_eq!(of(&Method::POST, "/api/v1/statuses", "", Some(7)).len(), 3);
        assert_eq!(of(&Method::GET, "/.well-known/nodeinfo", "", None), []);
        assert_eq!(of(&Method::GET, "/@{name}/{id}", "", None), [from(Address)]);
    }

    /// HEAD reads a page as GET does; a name may be written otherwise; and a body may ask for what a query does.
    #[test]
    fn a_further_page_counts_however_it_is_asked_for() {
        let home = "/api/v1/timelines/home";
        let pages = |method: &Method, query: &str, has_body: bool| {
            let (account, token) = (Some(7), Some("token t"));
            let facts = RequestFacts { method, route: home, query, has_body, address: "a", account, token };
            acts_of(&LimitSettings::default(), facts).iter().any(|act| act.limit == LimitName::Paging)
        };
        assert!(pages(&Method::GET, "max_id=1", false) && pages(&Method::HEAD, "max_id=1", false));
        assert!(
            pages(&Method::GET, "limit=1&max%5Fid=1", false) && pages(&Method::GET, "%6d%61x_id=1", false)
        );
        assert!(pages(&Method::GET, "", true) && pages(&Method::HEAD, "", true));
        assert!(!pages(&Method::GET, "", false) && !pages(&Method::POST, "", true));
    }

    #[test]
    fn tries_to_log_in_count_for_account_and_address_together() {
        let subjects = |address: &str, name: &str| {
            let acts = log_in(&LimitSettings::default(), address, name);
            acts.into_iter().map(|act| act.subject).collect::<Vec<_>>()
        };
        assert_eq!(subjects("a", " @Ada"), ["a ada", "a"]);
        assert_eq!(subjects("b", "ada"), ["b ada", "b"]);
        // Whose name is the same elsewhere is the same here.
        for (one, other) in
            [("stra\u{df}e@b", "STRASSE@B"), ("\u{ff21}da@b", "ada@b"), ("e\u{301}@b", "\u{c9}@b")]
        {
            assert_eq!(subjects("a", one), subjects("a", other), "{one}");
            let of = |email| letter_to(&LimitSettings::default(), email).pop().unwrap().subject;
            assert_eq!(of(one), of(other), "{one}");
        }
        let of = |account| log_in_as(&LimitSettings::default(), "a", account, " @Ada").pop().unwrap().subject;
        assert_eq!([of(Some(7)), of(None)], ["7 a", "0 a ada"]);
        assert!(log_in(&LimitSettings::off(), "a", "ada").is_empty());
        assert_eq!(subjects("a", &"\u{130}".repeat(5_000))[0].chars().count(), 2 + 2 * NAME_CHARS);
    }
}
