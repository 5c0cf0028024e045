//! Which accounts are locked, since when, and whom they have let in: by what the stores say and what was executed.

use super::truth;
use super::world::{Toggle, World};
use crate::ids::AccountId;

impl World {
    /// Notes which accounts of a bucket are locked, where that has changed. Once one is open, whoever waits for its
    /// answer follows it, sooner or later.
    pub(super) fn note_locks(&mut self, number: usize) {
        for account in self.accounts_at(number).collect::<Vec<_>>() {
            let (is_locked, at) = (truth::is_locked(self, account), self.commands);
            let past = self.locks.entry(account).or_default();
            let was_locked = past.last().is_some_and(|(_, was)| *was);
            if was_locked != is_locked {
                past.push((at, is_locked));
            }
            if was_locked && !is_locked {
                for other in self.accounts.clone() {
                    *self.open.entry((Toggle::Follow, other, account)).or_default() += 1;
                }
            }
        }
    }

    /// An account has said yes to a request, which may be carried out at any time.
    pub(super) fn note_approval(&mut self, approved: &[u8], requester: &[u8], request: &[u8]) {
        let author = self.accounts.iter().copied().find(|account| self.keys.approved(*account) == approved);
        let reader = self.accounts.iter().copied().find(|account| account.to_bytes() == requester);
        let Some(pair) = reader.zip(author) else { return };
        self.let_in.entry(pair).or_default().insert(request.to_vec());
    }

    /// The command with which a follow began.
    fn began(&self, reader: AccountId, author: AccountId, since: f64) -> u64 {
        let past = self.past.get(&reader).map_or(&[][..], Vec::as_slice);
        let is_it = |state: &truth::State| state.following.get(&author) == Some(&since);
        past.iter().find(|(_, state)| is_it(state)).map_or(u64::MAX, |(command, _)| *command)
    }

    /// Whether an account was locked at any time of a follow.
    pub(super) fn was_locked_during(&self, reader: AccountId, author: AccountId, since: f64) -> bool {
        let began = self.began(reader, author, since);
        let past = self.locks.get(&author).map_or(&[][..], Vec::as_slice);
        let from = past.partition_point(|(command, _)| *command <= began).saturating_sub(1);
        past[from..].iter().any(|(_, is_locked)| *is_locked)
    }

    /// Whether a follow began while its author was locked, which had been so before that command and is so still, and
    /// has never let this reader in.
    pub(super) fn is_uninvited(
        &self,
        reader: AccountId,
        author: AccountId,
        since: f64,
        command: u64,
    ) -> bool {
        let Some((locked, true)) = self.locks.get(&author).and_then(|past| past.last()) else { return false };
        *locked <= command
            && self.began(reader, author, since) > *locked
            && !self.let_in.contains_key(&(reader, author))
    }
}
