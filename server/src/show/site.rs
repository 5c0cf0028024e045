//! Addresses of this site, where things are shown. Pure.

use tideline::{Account, PostId};

/// This site, by the address that the world knows it by.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Without a slash behind it.
    pub url: &'a str,
}

impl<'a> Site<'a> {
    /// An address here; `path` begins with a slash.
    pub fn at(self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The name behind `@name@`: the host, and its port if it isn't the usual one.
    pub fn domain(self) -> &'a str {
        self.url.split_once("://").map_or(self.url, |(_, domain)| domain)
    }

    /// Whether a mention's host is this site, with its port or without.
    pub fn is_host(self, host: &str) -> bool {
        let domain = self.domain();
        let bare = domain.rsplit_once(':').map_or(domain, |(bare, _)| bare);
        host.eq_ignore_ascii_case(domain) || host.eq_ignore_ascii_case(bare)
    }

    /// The page of an account.
    pub fn account(self, account: &Account) -> String {
        self.at(&format!("/@{}", login(account)))
    }

    /// The page of a post.
    pub fn post(self, author: &Account, post: PostId) -> String {
        self.at(&format!("/@{}/{}", login(author), post.get()))
    }

    /// A picture, or the one of who has none.
    pub fn picture(self, url: &str, kind: &str) -> String {
        if url.is_empty() { self.at(&format!("/{kind}/original/missing.png")) } else { url.to_owned() }
    }
}

/// The name of an account; of one that never signed up a name that nobody can sign up with.
pub fn login(account: &Account) -> String {
    account.login.clone().unwrap_or_else(|| format!("id{}", account.id.get()))
}
