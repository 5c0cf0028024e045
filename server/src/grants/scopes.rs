//! Scopes: what a token allows.

use std::fmt;

/// All scopes there are, by the names that clients ask for. A place in this list is a bit in [`Scopes`], never in what
/// is stored.
const NAMES: &[&str] = &[
    "read",
    "read:accounts",
    "read:blocks",
    "read:bookmarks",
    "read:collections",
    "read:favourites",
    "read:filters",
    "read:follows",
    "read:lists",
    "read:mutes",
    "read:notifications",
    "read:search",
    "read:statuses",
    "write",
    "write:accounts",
    "write:blocks",
    "write:bookmarks",
    "write:collections",
    "write:conversations",
    "write:favourites",
    "write:filters",
    "write:follows",
    "write:lists",
    "write:media",
    "write:mutes",
    "write:notifications",
    "write:reports",
    "write:statuses",
    "follow",
    "profile",
    "push",
    // What is encrypted between devices: nothing here is.
    "crypto",
    // There are no calls of administrators: these are names, so that nobody is refused for one.
    "admin:read",
    "admin:read:accounts",
    "admin:read:canonical_email_blocks",
    "admin:read:domain_allows",
    "admin:read:domain_blocks",
    "admin:read:email_domain_blocks",
    "admin:read:ip_blocks",
    "admin:read:reports",
    "admin:write",
    "admin:write:accounts",
    "admin:write:canonical_email_blocks",
    "admin:write:domain_allows",
    "admin:write:domain_blocks",
    "admin:write:email_domain_blocks",
    "admin:write:ip_blocks",
    "admin:write:reports",
];

/// Relations that the scope `follow` stands for.
const RELATIONS: &[&str] = &["follows", "blocks", "mutes"];

/// A set of scopes: what a token allows, or what somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scopes(u64);

/// A name of a scope that there is not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownScope(pub(crate) String);

impl Scopes {
    /// Reads names with spaces between them; who names none asks for `read`.
    pub(crate) fn parse(text: &str) -> Result<Self, UnknownScope> {
        let mut scopes = Self(0);
        for name in text.split([' ', '+', ',']).filter(|name| !name.is_empty()) {
            let place = NAMES.iter().position(|known| *known == name);
            scopes.0 |= 1 << place.ok_or_else(|| UnknownScope(name.into()))?;
        }
        Ok(if scopes.0 == 0 { Self(1) } else { scopes })
    }

    /// Whether these allow what `needed` names: itself, or what it is a part of.
    pub(crate) fn allow(self, needed: &str) -> bool {
        self.names().any(|held| covers(held, needed))
    }

    /// Whether these allow all that the others do.
    pub(crate) fn allow_all(self, others: Self) -> bool {
        others.names().all(|name| self.allow(name))
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().enumerate().filter(move |(place, _)| self.0 & (1 << place) != 0).map(|(_, name)| *name)
    }

    /// The names of all scopes there are.
    pub(crate) fn known() -> &'static [&'static str] {
        NAMES
    }
}

/// Whether a scope is for those alone who run the site.
pub(crate) fn is_admins(scope: &str) -> bool {
    scope.split(':').next() == Some("admin")
}

fn covers(held: &str, needed: &str) -> bool {
    if held == needed {
        return true;
    }
    if held == "follow" {
        let relation = needed.strip_prefix("read:").or_else(|| needed.strip_prefix("write:"));
        return relation.is_some_and(|relation| RELATIONS.contains(&relation));
    }
    needed.strip_prefix(held).is_some_and(|rest| rest.starts_with(':'))
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, name) in self.names().enumerate() {
            if n > 0 {
                f.write_str(" ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl serde::Serialize for Scopes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Scopes {
    /// Reads the names; what this release does not know allows nothing.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let known = text.split(' ').filter_map(|name| NAMES.iter().position(|known| *known == name));
        Ok(Self(known.fold(0, |scopes, place| scopes | 1 << place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text).unwrap()
    }

    #[test]
    fn a_scope_allows_itself_and_its_parts_and_nothing_else() {
        assert!(scopes("read").allow("read:statuses") && scopes("read").allow("read"));
        assert!(!scopes("read").allow("write:statuses") && !scopes("read:statuses").allow("read"));
        assert!(!scopes("read").allow("admin:read") && scopes("admin:read").allow("admin:read:accounts"));
        // Not each name that begins so is a part.
        assert!(!scopes("read").allow("ready"));
        assert!(scopes("follow").allow("write:mutes") && scopes("follow").allow("read:follows"));
        assert!(!scopes("follow").allow("write:statuses") && !scopes("follow").allow("write"));
        // Who may read and write all may follow.
        assert!(scopes("read write").allow_all(scopes("write:follows read:lists")));
        assert!(!scopes("read").allow_all(scopes("read write")));
    }

    /// An application that asked for one of them was refused whole.
    #[test]
    fn all_scopes_of_mastodon_are_known_and_those_of_what_is_not_there_allow_nothing() {
        let kinds =
            ["domain_allows", "domain_blocks", "ip_blocks", "email_domain_blocks", "canonical_email_blocks"];
        let admins = kinds.map(|kind| format!("admin:read:{kind} admin:write:{kind}")).join(" ");
        let all = scopes(&format!("crypto {admins}"));
        assert!(NAMES.iter().all(|name| !all.allow(name) || *name == "crypto" || is_admins(name)));
    }

    #[test]
    fn scopes_are_written_as_they_are_read() {
        assert_eq!(scopes("write  read:lists").to_string(), "read:lists write");
        assert_eq!(scopes("").to_string(), "read");
        assert_eq!(Scopes::parse("read all"), Err(UnknownScope("all".into())));
        let stored = serde_json::to_string(&scopes("read push")).unwrap();
        assert_eq!(serde_json::from_str::<Scopes>(&stored).unwrap(), scopes("read push"));
        // What a later release has stored gives away nothing here.
        let later: Scopes = serde_json::from_str("\"read:dreams push\"").unwrap();
        assert!(later == scopes("push") && !later.allow("read:dreams"));
        assert!(NAMES.len() <= 64);
    }
}
