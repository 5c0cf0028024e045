use super::*;

const X: Name = Name::Login(1);
const Y: Name = Name::Email(2);

fn attempt(by: Option<u64>, wanted: &[Name], (from, to): (Time, Time)) -> Attempt {
    let window = Window { from, to };
    Attempt { by, wanted: wanted.to_vec(), window, sent: 1, refused: None }
}

fn refused(wanted: &[Name], when: (Time, Time)) -> Attempt {
    Attempt { refused: Some("taken".to_owned()), ..attempt(None, wanted, when) }
}

fn kinds(names: &mut Names) -> Vec<Wrong> {
    names.check().into_iter().map(|(wrong, ..)| wrong).collect()
}

fn told(question: Question, id: Option<u64>, at: Time) -> Told {
    let card = |id| Card { id, login: Some(X.text()), email: Some(Y.text()) };
    Told { question, answer: id.map(card), window: Window { from: at, to: at } }
}

/// Account 1 has X and Y from 20 on, and is gone at 40.
fn one() -> Names {
    let mut names = Names::default();
    names.signed_up(1, "one".to_owned(), attempt(None, &[X, Y], (10, 20)));
    names.gone(1, 30, 40);
    names
}

#[test]
fn a_name_is_one_accounts_only_and_free_once_that_one_is_gone() {
    let mut names = one();
    names.given(2, attempt(Some(2), &[X], (35, 45)));
    assert!(kinds(&mut names).is_empty());
    names.given(3, attempt(Some(3), &[X], (50, 60)));
    assert_eq!(kinds(&mut names), [Wrong::Doubled]);
}

#[test]
fn who_is_refused_met_somebody_who_has_the_name_or_is_about_to() {
    let mut names = one();
    names.refused(refused(&[X], (15, 16)));
    names.refused(refused(&[X], (39, 50)));
    assert!(kinds(&mut names).is_empty());
    names.refused(refused(&[X], (41, 50)));
    names.refused(refused(&[Name::Login(9)], (15, 16)));
    assert_eq!(kinds(&mut names), [Wrong::Stuck, Wrong::Stuck]);
    // Two that want the same name only: one of them gets it.
    names.refused(refused(&[X], (61, 70)));
    names.refused(refused(&[X], (61, 70)));
    assert_eq!(kinds(&mut names), [Wrong::Stuck, Wrong::Stuck]);
    // Whoever wants two may fail for the other one, and whoever was killed keeps them for a minute.
    names.refused(refused(&[X, Name::Email(9)], (80, 90)));
    names.refused(refused(&[X], (85, 95)));
    assert_eq!(kinds(&mut names), [Wrong::Stuck]);
    let killed = Attempt { sent: 2, ..refused(&[X], (100, 110)) };
    names.refused(killed);
    names.refused(refused(&[X], (110 + LEFT_FOR, 111 + LEFT_FOR)));
    assert!(kinds(&mut names).is_empty());
    names.refused(refused(&[X], (111 + LEFT_FOR, 112 + LEFT_FOR)));
    assert_eq!(kinds(&mut names), [Wrong::Stuck]);
}

#[test]
fn what_is_told_was_so_at_that_time() {
    let right = || Question::Password(Y, password_of("one", 0));
    for question in [Question::Named(X), Question::Account(1), right()] {
        let mut names = one();
        for (id, at) in [(None, 9), (Some(1), 15), (None, 15), (Some(1), 25), (Some(1), 35), (None, 45)] {
            names.tell(told(question.clone(), id, at));
        }
        assert!(kinds(&mut names).is_empty(), "{question:?}");
        names.tell(told(question.clone(), None, 25));
        names.tell(told(question.clone(), Some(1), 45));
        names.tell(told(question.clone(), Some(2), 25));
        assert_eq!(kinds(&mut names), [Wrong::Lost, Wrong::Leaked, Wrong::Leaked], "{question:?}");
    }
    let mut names = Names::default();
    names.signed_up(1, "one".to_owned(), attempt(None, &[X, Y], (10, 20)));
    names.tell(told(Question::Password(X, "one, password 1".to_owned()), Some(1), 20));
    names.given(1, attempt(Some(1), &[Name::Login(3)], (21, 22)));
    names.tell(told(Question::Named(Y), Some(1), 25));
    assert_eq!(kinds(&mut names), [Wrong::Leaked, Wrong::Stale]);
}

#[test]
fn what_was_sent_again_and_refused_is_not_known_until_somebody_looks() {
    let mut names = Names::default();
    let sent_twice = Attempt { by: Some(1), sent: 2, ..refused(&[X], (10, 20)) };
    names.refused(sent_twice);
    names.tell(told(Question::Named(X), None, 25));
    names.tell(Told {
        answer: Some(Card { id: 1, login: Some(X.text()), email: None }),
        ..told(Question::Named(X), None, 25)
    });
    let now = Window { from: 30, to: 30 };
    assert_eq!(names.unsure(now), [1]);
    names.settle(1, None, 30);
    assert!(names.unsure(Window { from: 31, to: 31 }).is_empty() && kinds(&mut names).is_empty());
    names.tell(told(Question::Named(X), Some(1), 40));
    assert_eq!(kinds(&mut names), [Wrong::Leaked]);
}

#[test]
fn what_attempts_may_have_left_is_found_once_or_again_if_it_was_too_young() {
    let left = |attempts, claims| Left { attempts, claims };
    let mut names = Names::default();
    names.given(1, attempt(Some(1), &[X], (10, 20)));
    names.refused(Attempt { sent: 3, ..refused(&[X], (10, 20)) });
    assert_eq!(names.may_be_left(30), left(2, 4));
    assert_eq!(
        names.may_be_left(21 + LEFT_FOR),
        left(2, 4),
        "it was younger than a minute at the first look"
    );
    assert_eq!(names.may_be_left(22 + LEFT_FOR), left(0, 0));
    // An account has one attempt at a time, however often its changes are sent.
    let again = || Attempt { sent: 50, ..attempt(Some(1), &[X], (30 + LEFT_FOR, 40 + LEFT_FOR)) };
    names.given(1, again());
    names.given(1, again());
    assert_eq!(names.may_be_left(50 + LEFT_FOR), left(1, 4));
}
