//! What members write to each other, in chats and in groups: what is known of it, and what is wrong about what one of
//! them reads.

use std::collections::BTreeSet;

use super::check::Wrong;
use super::facts::{Fact, Tri, Window};
use super::told::Message;

/// Something written, by its place in the plan.
pub(crate) type WrittenNo = usize;

/// What is known of something written.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) by: u64,
    /// Once it was acknowledged.
    pub(crate) id: Option<u64>,
    /// Whether it may have been written, though nobody was told.
    pub(crate) is_unsure: bool,
    /// Whether it was taken back.
    pub(crate) is_gone: Fact<bool>,
}

impl Written {
    pub(crate) fn new(by: u64, id: Option<u64>, is_unsure: bool) -> Self {
        Self { by, id, is_unsure, is_gone: Fact::new(false) }
    }

    /// Whether it is still there.
    pub(crate) fn stands(&self, window: Window) -> Tri {
        self.is_gone.is(window, |is| is).not()
    }
}

/// What it says: each another thing.
pub(crate) fn text_of(what: &str, no: WrittenNo) -> String {
    format!("{what} {no}")
}

/// What says that.
pub(crate) fn no_of(what: &str, text: &str) -> Option<WrittenNo> {
    text.strip_prefix(what)?.trim_start().parse().ok().filter(|no| text_of(what, *no) == text)
}

/// What is wrong about what somebody reads where all these may stand, each with whether it shows there. `of` tells
/// which of them a text is.
pub(crate) fn wrongs(
    all: &[(WrittenNo, &Written, Tri)],
    of: impl Fn(&str) -> Option<WrittenNo>,
    read: &[Message],
) -> Vec<(Wrong, String)> {
    let mut found = Vec::new();
    let mut wrong = |wrong, text: String| found.push((wrong, text));
    for pair in read.windows(2).filter(|pair| pair[0].id <= pair[1].id) {
        wrong(Wrong::Reordered, format!("{:?} before {:?}", pair[0], pair[1]));
    }
    let known = |message: &Message| {
        let no = of(&message.text)?;
        let at = all.binary_search_by_key(&no, |(no, ..)| *no).ok()?;
        Some(&all[at]).filter(|(_, written, _)| written.id.is_none_or(|id| id == message.id))
    };
    let mut met = BTreeSet::new();
    for message in read {
        let Some((no, written, shows)) = known(message) else {
            wrong(Wrong::Leaked, format!("{message:?} was never written here, or under another id"));
            continue;
        };
        if !met.insert(*no) {
            wrong(Wrong::Doubled, format!("{message:?} is there twice"));
        }
        if written.id.is_none() && !written.is_unsure {
            wrong(Wrong::Leaked, format!("{message:?} was refused"));
        }
        if *shows == Tri::No {
            wrong(Wrong::Leaked, format!("{message:?} doesn't show here"));
        }
    }
    for (no, written, shows) in all {
        if *shows == Tri::Yes && written.id.is_some() && !met.contains(no) {
            wrong(Wrong::Missing, format!("number {no} isn't there: {written:?}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_read_once_by_whom_it_is_for() {
        let said = |id, is_unsure| Written::new(1, id, is_unsure);
        let facts = [
            said(Some(10), false),
            said(Some(20), false),
            said(Some(30), false),
            said(None, true),
            said(None, false),
        ];
        let shows = [Tri::Yes, Tri::Yes, Tri::No, Tri::Yes, Tri::Yes];
        let all: Vec<_> =
            facts.iter().zip(shows).enumerate().map(|(no, (of, shows))| (no, of, shows)).collect();
        let message = |no: usize, id| Message { id, text: text_of("message", no) };
        let kinds = |read: &[Message]| -> Vec<Wrong> {
            let found = wrongs(&all, |text| no_of("message", text), read);
            found.into_iter().map(|(wrong, _)| wrong).collect()
        };
        let [one, two] = [message(0, 10), message(1, 20)];
        assert!(kinds(&[two.clone(), one.clone()]).is_empty());
        assert!(kinds(&[message(3, 25), two.clone(), one.clone()]).is_empty());
        assert_eq!(kinds(std::slice::from_ref(&two)), [Wrong::Missing]);
        assert_eq!(kinds(&[one.clone(), two.clone()]), [Wrong::Reordered]);
        assert_eq!(kinds(&[two.clone(), two.clone(), one.clone()]), [Wrong::Reordered, Wrong::Doubled]);
        for leaked in [message(2, 30), message(4, 30), message(9, 30), message(0, 30)] {
            assert_eq!(kinds(&[leaked, two.clone(), one.clone()]), [Wrong::Leaked]);
        }
    }
}
