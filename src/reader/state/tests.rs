//! Mutes that end, and who is heard of all the same.

use super::*;

#[test]
fn a_mute_with_an_end_is_none_from_then_on_and_one_without_stays() {
    let state = ReaderState::of(&[2, 3, 4], &[2, 3, 4], &[]).remarking(&[], &[(70, 3), (90, 4)]);
    assert!(state.as_of(|| 69).is_none());
    let then = state.as_of(|| 70).unwrap();
    assert_eq!([2, 3, 4].map(|account| then.mutes(account)), [true, false, true]);
    assert_eq!(then.as_of(|| 89).map(|_| ()), None);
    let last = then.as_of(|| u64::MAX).unwrap();
    assert_eq!([2, 3, 4].map(|account| last.mutes(account)), [true, false, false]);
    assert_eq!(state.stamps(), last.stamps());
}

#[test]
fn who_is_muted_is_heard_of_where_that_was_said_so() {
    let state = ReaderState::of(&[2, 3, 4], &[2, 3], &[]).hearing_of(&[3, 4]);
    assert_eq!([2, 3, 4].map(|account| state.mutes(account)), [true, true, false]);
    assert_eq!([2, 3, 4].map(|account| state.silences(account)), [true, false, false]);
}
