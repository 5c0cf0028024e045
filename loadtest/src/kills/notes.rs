//! What somebody was answered: what has to be there in the end. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// A post that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PostNote {
    pub(super) text: String,
    pub(super) is_deleted: bool,
}

/// A list of accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListNote {
    pub(super) title: String,
    /// By their places among the people.
    pub(super) members: BTreeSet<usize>,
    pub(super) is_removed: bool,
}

/// Somebody who has signed up and does nothing else.
#[derive(Debug, Clone)]
pub(super) struct NewcomerNote {
    pub(super) login: String,
    pub(super) token: String,
}

/// All that one of the people was answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    pub(super) login: String,
    pub(super) id: String,
    pub(super) tokens: Vec<String>,
    pub(super) revoked: Vec<String>,
    /// Sessions of which nobody was told whether they began.
    pub(super) doubtful_sessions: u64,
    /// By their ids.
    pub(super) posts: BTreeMap<String, PostNote>,
    /// Whether it follows those, by their places among the people.
    pub(super) follows: BTreeMap<usize, bool>,
    /// Whether it likes those, by their ids.
    pub(super) likes: BTreeMap<String, bool>,
    /// By their ids.
    pub(super) lists: BTreeMap<String, ListNote>,
    /// Titles of lists of which nobody was told whether they were made: each is there once at most.
    pub(super) doubtful_lists: BTreeSet<String>,
    /// How far it has read.
    pub(super) marker: Option<String>,
    pub(super) newcomers: Vec<NewcomerNote>,
    /// What went wrong already while it was at work.
    pub(super) wrong: Vec<Wrong>,
    /// Refusals of what has to be refused.
    pub(super) refused: u64,
}

/// What is not as it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrongKind {
    /// Answered, and isn't there, or is another one.
    Missing,
    /// There twice.
    Doubled,
    /// There, although it was refused, taken back, or never asked for.
    Leaked,
    /// A count besides the truth.
    Miscounted,
    /// Refused without a reason.
    Refused,
}

/// One such thing.
#[derive(Debug, Clone)]
pub(super) struct Wrong {
    pub(super) kind: WrongKind,
    pub(super) what: String,
}

impl Notes {
    pub(super) fn wrong(&mut self, kind: WrongKind, what: String) {
        self.wrong.push(Wrong { kind, what: format!("{}: {what}", self.login) });
    }

    /// Posts that have to be there.
    pub(super) fn standing(&self) -> impl Iterator<Item = (&String, &PostNote)> {
        self.posts.iter().filter(|(_, post)| !post.is_deleted)
    }
}

/// What is wrong with a list of names, where each of some has to be once, each of others once at most, and no other.
pub(super) fn once_each(
    what: &str,
    shown: &[String],
    wanted: &BTreeSet<String>,
    doubtful: &BTreeSet<String>,
) -> Vec<(WrongKind, String)> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for name in shown {
        *counts.entry(name).or_default() += 1;
    }
    let mut found = Vec::new();
    for name in wanted.iter().filter(|name| !counts.contains_key(name)) {
        found.push((WrongKind::Missing, format!("{what} {name} isn't there")));
    }
    for (name, times) in counts {
        if times > 1 {
            found.push((WrongKind::Doubled, format!("{what} {name} is there {times} times")));
        }
        if !wanted.contains(name) && !doubtful.contains(name) {
            found.push((WrongKind::Leaked, format!("{what} {name} is there")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_to_be_there_once_and_nothing_else() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let set = |of: &[&str]| names(of).into_iter().collect::<BTreeSet<_>>();
        let kinds = |shown: &[&str]| {
            let found = once_each("post", &names(shown), &set(&["a", "b"]), &set(&["d"]));
            found.into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&["a", "b"]), []);
        assert_eq!(kinds(&["a", "b", "d"]), []);
        assert_eq!(kinds(&["a"]), [WrongKind::Missing]);
        assert_eq!(kinds(&["a", "b", "b", "d", "d"]), [WrongKind::Doubled, WrongKind::Doubled]);
        assert_eq!(kinds(&["a", "b", "c"]), [WrongKind::Leaked]);
    }
}
