//! Where URLs are in a text.

use std::ops::Range;

const SCHEMES: [&str; 2] = ["https://", "http://"];
/// What a sentence goes on with, not a URL, if nothing follows.
const BEHIND: [char; 12] = ['.', ',', ':', ';', '!', '?', '\'', '*', '_', '~', '\u{2026}', '\u{3002}'];
const BRACKETS: [(char, char); 2] = [('(', ')'), ('[', ']')];

/// Finds all URLs with `http` or `https` that begin a word: up to a space or what no URL has, without what ends the
/// sentence.
pub(super) fn urls(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find("://").map(|colon| at + colon) {
        at = start + 3;
        let Some(begin) = SCHEMES.iter().find_map(|scheme| scheme_before(text, at, scheme)) else { continue };
        let rest = &text[at..];
        let len = rest.find(|c: char| c.is_whitespace() || is_outside(c)).unwrap_or(rest.len());
        let rest = without_end(&rest[..len]);
        if rest.starts_with(char::is_alphanumeric) {
            at += rest.len();
            found.push(begin..at);
        }
    }
    found
}

/// Where a scheme begins that ends at a place, and a word with it.
fn scheme_before(text: &str, end: usize, scheme: &str) -> Option<usize> {
    let begin = end.checked_sub(scheme.len())?;
    let is_scheme = text.get(begin..end)?.eq_ignore_ascii_case(scheme);
    let begins = !text[..begin].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    (is_scheme && begins).then_some(begin)
}

fn is_outside(c: char) -> bool {
    c.is_control() || matches!(c, '<' | '>' | '"' | '`' | '{' | '}' | '|' | '\\' | '^')
}

fn without_end(mut url: &str) -> &str {
    loop {
        let shorter = url.trim_end_matches(BEHIND);
        // A bracket that was opened before the URL is closed behind it.
        let closes = |(open, close): &(char, char)| {
            shorter.ends_with(*close) && shorter.matches(*close).count() > shorter.matches(*open).count()
        };
        let shorter = match BRACKETS.iter().any(closes) {
            true => &shorter[..shorter.len() - 1],
            false => shorter,
        };
        if shorter.len() == url.len() {
            return url;
        }
        url = shorter;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<&str> {
        urls(text).into_iter().map(|at| &text[at]).collect()
    }

    #[test]
    fn urls_end_where_people_would_say() {
        for (text, wanted) in [
            ("see https://a.example/x?y=1#z.", &["https://a.example/x?y=1#z"][..]),
            ("(http://a.example/b_(c))", &["http://a.example/b_(c)"]),
            ("HTTPS://A.example, http://b.example/\u{e4}", &["HTTPS://A.example", "http://b.example/\u{e4}"]),
            ("<https://a.example>\"http://b\"", &["https://a.example", "http://b"]),
            ("xhttp://a ftp://b javascript://c http:// https://. http://?", &[]),
            ("http://a://b", &["http://a://b"]),
        ] {
            assert_eq!(found(text), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn urls_come_one_behind_the_other(text in "(http://|https://|[a-c().,:/<> é@#\n]){0,30}") {
            let mut end = 0;
            for at in urls(&text) {
                prop_assert!(at.start >= end && text.get(at.clone()).is_some());
                end = at.end;
            }
        }
    }
}
