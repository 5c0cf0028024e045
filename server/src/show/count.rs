//! Counting the letters of a text, as people and Mastodon count them.

use tideline::post::TextNames;
use unicode_segmentation::UnicodeSegmentation as _;

use super::links::urls;

/// Letters that a URL counts, however long it is.
pub const URL_LETTERS: usize = 23;

/// Counts what people see as letters: a flag is one, a letter with its accents too. A URL counts [`URL_LETTERS`], and
/// the host of a mention nothing.
pub fn letters(text: &str) -> usize {
    let urls = urls(text).into_iter().map(|at| (at, URL_LETTERS));
    let hosts = TextNames::of(text).mentions.into_iter().filter_map(|name| {
        let host = 1 + name.host?.len();
        Some((name.at.end - host..name.at.end, 0))
    });
    let mut apart: Vec<_> = urls.chain(hosts).collect();
    apart.sort_by_key(|(at, _)| at.start);
    let (mut count, mut done) = (0, 0);
    for (at, letters) in apart {
        if at.start >= done {
            count += text[done..at.start].graphemes(true).count() + letters;
            done = at.end;
        }
    }
    count + text[done..].graphemes(true).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_count_23_and_hosts_nothing() {
        for (text, count) in [
            ("", 0),
            ("abc", 3),
            ("e\u{301}\u{1f1e9}\u{1f1ea}\r\n", 3),
            ("https://a.example/with/a/very/long/path/indeed", 23),
            ("a http://b.example.", 2 + 23 + 1),
            ("@ada hi", 7),
            ("@ada@somewhere.example hi", 7),
            ("ada@somewhere.example", 21),
            // The host goes before the URL that begins in it.
            ("@a@http://b", 2 + 4),
        ] {
            assert_eq!(letters(text), count, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_length(text in "(https?://|@ada@b.c|\\PC|[a-c@#/:. \n]){0,40}") {
            let longest = text.chars().count() + URL_LETTERS * text.matches("://").count();
            prop_assert!(letters(&text) <= longest);
        }
    }
}
