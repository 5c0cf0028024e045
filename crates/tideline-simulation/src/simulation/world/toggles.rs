//! Follows come and go only while somebody wants that.

use super::*;

impl World {
    /// The accounts of a bucket, and what they follow, mute, block.
    pub(super) fn states_of(&self, number: usize) -> Vec<(AccountId, State)> {
        self.accounts_at(number).map(|account| (account, State::of(self, account))).collect()
    }

    /// Notes what the accounts of a bucket follow, mute, block, where that has changed. `between`: how they stood to
    /// each other before a change; else it is a failover.
    pub(in crate::simulation) fn note_states(&mut self, number: usize, between: Option<&truth::Between>) {
        for (account, state) in self.states_of(number) {
            let before = self.past.get(&account).and_then(|past| past.last()).map(|(_, last)| last.clone());
            match (&before, between) {
                (Some(before), None) => self.lost.extend(toggles(account, &state, before)),
                (Some(before), Some(between)) => self.check_toggles(account, before, &state, between),
                (None, _) => {}
            }
            if before.is_none_or(|last| *last != state) {
                let past = self.past.entry(account).or_default();
                past.push((self.commands, Rc::new(state)));
            }
        }
    }

    /// From now on whatever that account follows, or who follows it, may end.
    pub(in crate::simulation) fn ends_all_follows(&mut self, account: AccountId) {
        for other in self.accounts.clone() {
            *self.open.entry((Toggle::Unfollow, account, other)).or_default() += 1;
            *self.open.entry((Toggle::Unfollow, other, account)).or_default() += 1;
        }
    }

    /// A follow comes and goes only while somebody wants that: a late copy of what was answered long ago must not.
    fn check_toggles(&mut self, reader: AccountId, before: &State, now: &State, between: &truth::Between) {
        for toggle in toggles(reader, before, now) {
            let (what, _, author) = toggle;
            // One that its author's lock has overtaken becomes a request.
            let since = before.following.get(&author).copied().unwrap_or_default();
            let is_overtaken = match what {
                Toggle::Unfollow => {
                    between.unasked.contains(&(reader, author))
                        && self.was_locked_during(reader, author, since)
                }
                // One that was asked for becomes a follow once it is approved, or its author isn't locked: that it is
                // may have been the word of a primary that had been replaced (parted seed 1404).
                Toggle::Follow => between.requested.get(&(reader, author)).is_some_and(|request| {
                    let let_in = self.let_in.get(&(reader, author));
                    let was_misled = self.stale_reads > 0 && !truth::is_locked(self, author);
                    was_misled || let_in.is_some_and(|let_in| let_in.contains(request))
                }),
            };
            let is_open = self.open.get(&toggle).is_some_and(|open| *open > 0) || self.lost.contains(&toggle);
            if !is_open && !is_overtaken {
                self.violated(format!(
                    "UNDONE: {what:?} of {author} by {reader}, which nobody wants any more"
                ));
            }
        }
    }
}

/// What leads from one state of a reader to another.
pub(super) fn toggles(reader: AccountId, from: &State, to: &State) -> Vec<(Toggle, AccountId, AccountId)> {
    let follows = to.following.keys().filter(|author| !from.following.contains_key(author));
    let unfollows = from.following.keys().filter(|author| !to.following.contains_key(author));
    let follows = follows.map(|author| (Toggle::Follow, reader, *author));
    follows.chain(unfollows.map(|author| (Toggle::Unfollow, reader, *author))).collect()
}
