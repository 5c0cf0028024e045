//! What was true when, as far as the acknowledgements tell: each change happened somewhere between the start of its
//! call and its acknowledgement.

/// Microseconds since the run began.
pub(crate) type Time = u64;
/// Not yet.
pub(crate) const OPEN: Time = Time::MAX;
/// Not before the work is drained, whatever the owner says meanwhile.
pub(crate) const UNTIL_DRAINED: Time = OPEN - 1;

/// From when until when something is looked at; both included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from: Time,
    pub(crate) to: Time,
}

/// Three-valued: what can't be known is neither wrong nor right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tri {
    No,
    Maybe,
    Yes,
}

impl Tri {
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Maybe,
        }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    pub(crate) fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

impl From<bool> for Tri {
    fn from(is_so: bool) -> Self {
        if is_so { Self::Yes } else { Self::No }
    }
}

/// A change by who owns the fact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<T> {
    pub(crate) start: Time,
    pub(crate) end: Time,
    pub(crate) value: T,
}

/// Something that others did, which may have changed the fact at any time since, or not at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Influence<T> {
    pub(crate) value: T,
    pub(crate) start: Time,
    /// When what caused it was over (an approval given, a block taken back).
    pub(crate) over: Time,
    /// When the owner has decided anew.
    pub(crate) until: Time,
}

/// One fact and how it changed.
#[derive(Debug, Clone)]
pub(crate) struct Fact<T> {
    pub(crate) first: T,
    pub(crate) changes: Vec<Change<T>>,
    pub(crate) influences: Vec<Influence<T>>,
}

impl<T: Copy + PartialEq> Fact<T> {
    pub(crate) fn new(first: T) -> Self {
        Self { first, changes: Vec::new(), influences: Vec::new() }
    }

    /// Its owner has changed it. What others had done before that call began no longer counts.
    pub(crate) fn change(&mut self, start: Time, end: Time, value: T) {
        self.changes.push(Change { start, end, value });
        for influence in &mut self.influences {
            if influence.over <= start {
                influence.until = influence.until.min(end);
            }
        }
    }

    pub(crate) fn influence(&mut self, value: T, start: Time, over: Time) {
        self.influences.push(Influence { value, start, over, until: OPEN });
    }

    /// The same of what is known only now: what its owner has decided since then ends it.
    pub(crate) fn influenced(&mut self, value: T, start: Time) {
        let later = self.changes.iter().find(|change| change.start >= start);
        let until = later.map_or(OPEN, |later| later.end);
        self.influences.push(Influence { value, start, over: start, until });
    }

    /// What causes this value is over: from now on the owner decides.
    pub(crate) fn over(&mut self, value: T, end: Time) {
        for influence in self.influences.iter_mut().filter(|i| i.value == value && i.over == OPEN) {
            influence.over = end;
        }
    }

    /// Everything has drained: what may have come of work that was under way has come by now.
    pub(crate) fn drained(&mut self, now: Time) {
        for influence in self.influences.iter_mut().filter(|i| i.over == UNTIL_DRAINED) {
            influence.until = influence.until.min(now);
        }
    }

    /// It has this value all the same, and nobody has brought it back: nothing has come of work that was under way.
    pub(crate) fn unmoved(&mut self, value: T) {
        let is_doubt = |i: &Influence<T>| i.over == UNTIL_DRAINED && i.value != value;
        let Some(since) = self.influences.iter().filter(|i| is_doubt(i)).map(|i| i.start).min() else {
            return;
        };
        let is_changed = self.changes.iter().any(|change| change.end >= since);
        let is_moved = self.influences.iter().any(|i| !is_doubt(i) && i.until > since);
        if !is_changed && !is_moved {
            self.influences.retain(|i| !is_doubt(i));
        }
    }

    /// Some of its owner's changes may have been lost by a failover: what was before them may go on, until a later
    /// change that wasn't lost. Whether that may be so for good.
    pub(crate) fn may_lack(&mut self, is_at_risk: impl Fn(&Change<T>) -> bool) -> bool {
        let mut is_open = false;
        for (no, change) in self.changes.iter().enumerate().filter(|(_, change)| is_at_risk(change)) {
            let before = no.checked_sub(1).map_or(self.first, |last| self.changes[last].value);
            let until =
                self.changes[no..].iter().find(|later| !is_at_risk(later)).map_or(OPEN, |later| later.end);
            for influence in self.influences.iter_mut().filter(|i| i.until == change.end) {
                influence.until = until;
            }
            let start = change.start;
            self.influences.push(Influence { value: before, start, over: start, until });
            is_open |= until == OPEN;
        }
        is_open
    }

    /// Whether it can't be known what it is at a time.
    pub(crate) fn is_unsure(&self, at: Time) -> bool {
        let possible = self.possible(Window { from: at, to: at });
        possible.iter().any(|value| *value != possible[0])
    }

    /// After everything has drained and the truth was looked up.
    pub(crate) fn settle(&mut self, now: Time, value: T) {
        self.influences.iter_mut().for_each(|influence| influence.until = influence.until.min(now));
        self.changes.push(Change { start: now, end: now, value });
    }

    /// Each value that it may have had in the window.
    pub(crate) fn possible(&self, window: Window) -> Vec<T> {
        let before = self.changes.partition_point(|change| change.end <= window.from);
        let base = before.checked_sub(1).map_or(self.first, |last| self.changes[last].value);
        let later = self.changes[before..].iter().filter(|change| change.start <= window.to);
        let touches = |i: &&Influence<T>| i.start <= window.to && i.until > window.from;
        let others = self.influences.iter().filter(touches).map(|influence| influence.value);
        std::iter::once(base).chain(later.map(|change| change.value)).chain(others).collect()
    }

    /// Whether it was so, throughout the window.
    pub(crate) fn is(&self, window: Window, is_so: impl Fn(T) -> bool) -> Tri {
        let possible = self.possible(window);
        match (possible.iter().any(|value| is_so(*value)), possible.iter().all(|value| is_so(*value))) {
            (_, true) => Tri::Yes,
            (true, _) => Tri::Maybe,
            _ => Tri::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(from: Time, to: Time) -> Window {
        Window { from, to }
    }

    #[test]
    fn a_change_counts_from_its_acknowledgement_and_may_count_from_its_start() {
        let mut fact = Fact::new(false);
        fact.change(10, 20, true);
        assert_eq!(fact.is(at(1, 9), |v| v), Tri::No);
        assert_eq!(fact.is(at(1, 10), |v| v), Tri::Maybe);
        assert_eq!(fact.is(at(19, 30), |v| v), Tri::Maybe);
        assert_eq!(fact.is(at(20, 30), |v| v), Tri::Yes);
    }

    #[test]
    fn what_a_failover_may_have_lost_is_in_doubt_until_it_is_said_again_or_looked_up() {
        let mut fact = Fact::new(false);
        fact.change(10, 20, true);
        fact.change(30, 40, false);
        fact.change(50, 60, true);
        fact.change(90, 95, true);
        let mut lost = fact.clone();
        assert!(!lost.may_lack(|change| (15..=55).contains(&change.end)));
        assert_eq!(
            [25, 45, 65].map(|time| lost.is(at(time, time), |v| v)),
            [Tri::Maybe, Tri::Maybe, Tri::Yes]
        );
        let mut lost = fact.clone();
        assert!(lost.may_lack(|change| change.end > 50));
        assert_eq!([25, 45, 65].map(|time| lost.is(at(time, time), |v| v)), [Tri::Yes, Tri::No, Tri::Maybe]);
        assert!(lost.is_unsure(100));
        lost.settle(110, false);
        assert!(!lost.is_unsure(110) && lost.is(at(110, 120), |v| v) == Tri::No);
        // What others had done, and a word that may be lost had ended, goes on.
        let mut fact = Fact::new(false);
        fact.influence(true, 1, 2);
        fact.change(10, 20, false);
        assert_eq!(fact.is(at(21, 21), |v| v), Tri::No);
        fact.may_lack(|_| true);
        assert_eq!(fact.is(at(21, 21), |v| v), Tri::Maybe);
    }

    #[test]
    fn what_others_did_counts_until_the_owner_decides_anew() {
        let mut fact = Fact::new(true);
        fact.influence(false, 10, OPEN);
        fact.change(15, 16, true);
        assert_eq!(fact.is(at(20, 20), |v| v), Tri::Maybe);
        fact.over(false, 30);
        fact.change(31, 33, true);
        assert_eq!(fact.is(at(32, 32), |v| v), Tri::Maybe);
        assert_eq!(fact.is(at(33, 40), |v| v), Tri::Yes);
        // What comes of work that is under way, no word of the owner's ends.
        fact.influence(false, 50, UNTIL_DRAINED);
        fact.over(false, 60);
        fact.change(61, 62, true);
        assert_eq!(fact.is(at(70, 70), |v| v), Tri::Maybe);
        let mut unmoved = fact.clone();
        fact.drained(80);
        assert_eq!(fact.is(at(70, 70), |v| v), Tri::Maybe);
        assert_eq!(fact.is(at(80, 80), |v| v), Tri::Yes);
        // Its owner has said something since: it may have gone and come back.
        unmoved.unmoved(true);
        assert_eq!(unmoved.is(at(70, 70), |v| v), Tri::Maybe);
        let mut quiet = Fact::new(true);
        quiet.influence(false, 50, UNTIL_DRAINED);
        assert_eq!(quiet.is(at(70, 70), |v| v), Tri::Maybe);
        quiet.unmoved(true);
        assert_eq!(quiet.is(at(70, 70), |v| v), Tri::Yes);
    }
}
