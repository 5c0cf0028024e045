//! Mutes that end, and how remarks are stored.

use super::*;

#[test]
fn a_mute_with_an_end_is_none_from_then_on_and_one_without_stays() {
    let state = ReaderState::of(&[2, 3, 4], &[2, 3, 4], &[]).remarking(&[], &[(70, 3), (90, 4)]);
    assert!(state.as_of(69).is_none());
    let then = state.as_of(70).unwrap();
    assert_eq!([2, 3, 4].map(|account| then.mutes(account)), [true, false, true]);
    assert_eq!(then.as_of(89).map(|_| ()), None);
    let last = then.as_of(u64::MAX).unwrap();
    assert_eq!([2, 3, 4].map(|account| last.mutes(account)), [true, false, false]);
    assert_eq!(state.stamps(), last.stamps());
}

#[test]
fn a_remark_of_another_form_says_nothing() {
    let stored = ReaderState::remark(&70_u64.to_be_bytes());
    assert_eq!(ReaderState::mute_end(&stored), Some(70));
    assert_eq!(ReaderState::remarked(&stored), Some(&70_u64.to_be_bytes()[..]));
    for other in [&b""[..], b"\x02........", b"\x01short", &[stored.as_slice(), b"more"].concat()] {
        assert_eq!(ReaderState::mute_end(other), None);
    }
}
