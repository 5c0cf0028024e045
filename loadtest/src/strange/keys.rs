//! What stands in Redis, by the letters of its keys.

use std::collections::BTreeMap;

use super::AskedFor;
use crate::bench::Bench;
use crate::keys;

/// Letters of keys that a site may have without its being asked for anything: what belongs to the tenant and its
/// buckets; what accounts, posts, sets, names and counters of limits are made of. `docs/keys.md` tells of each.
const KNOWN: &str = "izcjdGEDvnXQCbBeFfamhorulRMNWJVIxykKwsptqg";

/// How many keys there are.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) by_letter: BTreeMap<String, u64>,
}

impl Stored {
    /// Counts all of the tenant's.
    pub(super) async fn count(bench: &Bench) -> anyhow::Result<Self> {
        let mut stored = Self::default();
        let mut add = async |keys: Vec<Vec<u8>>| {
            for key in keys {
                // The letter behind the tag says what a key is.
                let letter = key.split(|byte| *byte == b'}').nth(1).and_then(|name| name.first());
                let letter =
                    letter.map_or_else(|| "none".to_owned(), |letter| char::from(*letter).to_string());
                *stored.by_letter.entry(letter).or_default() += 1;
            }
            Ok(())
        };
        for slot in bench.slots().values() {
            keys::each(&bench.router, *slot, &bench.prefix, &mut add).await?;
        }
        Ok(stored)
    }

    fn of(&self, letter: &str) -> u64 {
        self.by_letter.get(letter).copied().unwrap_or_default()
    }

    /// What stands there beyond what was asked for.
    pub(super) fn beyond(&self, asked_for: &AskedFor) -> Vec<String> {
        let unknown = self.by_letter.iter().filter(|(letter, _)| !KNOWN.contains(letter.as_str()));
        let mut found: Vec<String> =
            unknown.map(|(letter, n)| format!("{n} keys of an unknown kind {letter}")).collect();
        let bounds = [
            ("a", "accounts", asked_for.accounts),
            ("w", "posts", asked_for.posts.len() as u64),
            // Whoever revokes a secret that there is leaves a stone for ten minutes; of one that there isn't none.
            ("X", "tickets", asked_for.tickets),
        ];
        for (letter, what, most) in bounds {
            if self.of(letter) > most {
                found.push(format!("{} {what} are stored, and {most} were asked for", self.of(letter)));
            }
        }
        // What accounts and posts have beside themselves: each has so many keys at most of each kind.
        for letter in ["m", "h", "o", "r", "u", "l", "R", "M", "N", "W", "J", "V", "I", "x", "y"] {
            if self.of(letter) > asked_for.accounts {
                found.push(format!("{} keys {letter} of {} accounts", self.of(letter), asked_for.accounts));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_is_found() {
        let asked_for = AskedFor { accounts: 2, tickets: 1, ..AskedFor::default() };
        let stored = |letters: &[(&str, u64)]| Stored {
            by_letter: letters.iter().map(|(letter, n)| ((*letter).to_owned(), *n)).collect(),
        };
        assert_eq!(stored(&[("a", 2), ("X", 1), ("h", 2), ("c", 900)]).beyond(&asked_for), [""; 0]);
        let found = stored(&[("a", 3), ("w", 1), ("V", 3), ("?", 1)]).beyond(&asked_for);
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
