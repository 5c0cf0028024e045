//! One look for all who ask before it begins. Who asks while one is under way waits for the next: what was written
//! before it asked, it sees.

use std::sync::{Arc, Mutex};

use super::flights::{FlightEnd, FlightWait, lock};

/// Looks at one thing, of which one is under way and one takes on who comes.
#[derive(Debug)]
pub(super) struct SharedLooks<V> {
    /// The look that has not begun yet.
    boarding: Mutex<Option<Arc<FlightEnd<V>>>>,
    /// Held by the look that is under way.
    turn: tokio::sync::Mutex<()>,
}

/// The turn of the next look: ours, or somebody else's.
#[derive(Debug)]
pub(super) enum LookTurn<'a, V> {
    /// Ours: the others wait for us.
    Ours(SharedLook<'a, V>),
    /// Somebody's who came before us, and hasn't begun yet.
    Theirs(FlightWait<V>),
}

/// A look for all who wait for it. Dropping it before it has landed tells them that nothing came of it.
#[derive(Debug)]
pub(super) struct SharedLook<'a, V> {
    looks: &'a SharedLooks<V>,
    end: Arc<FlightEnd<V>>,
}

impl<V> Default for SharedLooks<V> {
    fn default() -> Self {
        Self { boarding: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }
}

impl<V> SharedLooks<V> {
    /// Joins the look that begins next.
    pub(super) fn join(&self) -> LookTurn<'_, V> {
        let mut boarding = lock(&self.boarding);
        if let Some(theirs) = &*boarding {
            return LookTurn::Theirs(FlightWait(theirs.clone()));
        }
        let end = Arc::new(FlightEnd::default());
        *boarding = Some(end.clone());
        LookTurn::Ours(SharedLook { looks: self, end })
    }

    /// Waits for the look that is under way.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }
}

impl<V> SharedLook<'_, V> {
    /// Begins: nobody joins it from here on.
    pub(super) fn begin(&self) {
        let mut boarding = lock(&self.looks.boarding);
        if boarding.as_ref().is_some_and(|next| Arc::ptr_eq(next, &self.end)) {
            *boarding = None;
        }
    }

    pub(super) fn land(self, value: V) {
        self.end.land(value);
    }
}

impl<V> Drop for SharedLook<'_, V> {
    fn drop(&mut self) {
        self.begin();
        self.end.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(looks: &SharedLooks<u64>) -> SharedLook<'_, u64> {
        let LookTurn::Ours(look) = looks.join() else { panic!("somebody is before us") };
        look
    }

    #[tokio::test]
    async fn who_asks_while_a_look_is_under_way_waits_for_the_next() {
        let looks = SharedLooks::default();
        let first = ours(&looks);
        let LookTurn::Theirs(before) = looks.join() else { panic!("the look hasn't begun") };
        first.begin();
        let second = ours(&looks);
        let LookTurn::Theirs(after) = looks.join() else { panic!("the second hasn't begun") };
        first.land(1);
        assert_eq!(before.landed().await, Some(1));
        second.begin();
        second.land(2);
        assert_eq!(after.landed().await, Some(2), "what was written after the first had begun");
        drop(ours(&looks));
    }

    #[tokio::test]
    async fn a_look_that_is_given_up_holds_nobody_up() {
        let looks = SharedLooks::default();
        let first = ours(&looks);
        let LookTurn::Theirs(waiting) = looks.join() else { panic!("the look hasn't begun") };
        drop(first);
        assert_eq!(waiting.landed().await, None);
        let begun = ours(&looks);
        begun.begin();
        let next = ours(&looks);
        drop(begun);
        assert!(matches!(looks.join(), LookTurn::Theirs(_)), "the end of one look takes nobody off the next");
        drop(next);
    }
}
