//! The places of URLs in a text.

use std::ops::Range;

const SCHEMES: [&str; 2] = ["https://", "http://"];
/// Characters that a sentence goes on with, not a URL, if nothing follows.
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
        // Looked at first: a text of nothing but beginnings is read once, not once for each.
        if !rest.starts_with(char::is_alphanumeric) {
            continue;
        }
        let len = rest.find(|c: char| c.is_whitespace() || is_outside(c)).unwrap_or(rest.len());
        at += without_end(&rest[..len]).len();
        found.push(begin..at);
    }
    found
}

/// The beginning of a scheme that ends at a place and begins a word.
fn scheme_before(text: &str, end: usize, scheme: &str) -> Option<usize> {
    let begin = end.checked_sub(scheme.len())?;
    let is_scheme = text.get(begin..end)?.eq_ignore_ascii_case(scheme);
    let begins = !text[..begin].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    (is_scheme && begins).then_some(begin)
}

fn is_outside(c: char) -> bool {
    c.is_control() || matches!(c, '<' | '>' | '"' | '`' | '{' | '}' | '|' | '\\' | '^')
}

/// The part of a URL that is left once the end of its sentence is taken off. Its brackets are counted once, however
/// many there are.
fn without_end(url: &str) -> &str {
    let mut unopened = BRACKETS.map(|(open, close)| {
        let (opened, closed) = (url.matches(open).count(), url.matches(close).count());
        closed.saturating_sub(opened)
    });
    let mut end = url.len();
    for (at, c) in url.char_indices().rev() {
        // A bracket that was opened before the URL is closed behind it.
        let closes = BRACKETS.iter().position(|(_, close)| *close == c);
        match closes {
            Some(bracket) if unopened[bracket] > 0 => unopened[bracket] -= 1,
            None if BEHIND.contains(&c) => {}
            _ => break,
        }
        end = at;
    }
    &url[..end]
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
            (
                "(http://a.example/x).) [http://b.example/[c]]]",
                &["http://a.example/x", "http://b.example/[c]"],
            ),
        ] {
            assert_eq!(found(text), wanted, "{text}");
        }
    }

    /// Each bracket that was taken off had all brackets counted again, and each beginning the rest be read: a post of a
    /// megabyte kept a core for as long as it liked.
    #[test]
    fn a_long_text_is_read_once() {
        let many = 200_000;
        assert_eq!(found(&format!("https://a{}", ")".repeat(many))), ["https://a"]);
        assert_eq!(found(&format!("https://a{}", ").".repeat(many))), ["https://a"]);
        assert_eq!(found(&"https://(".repeat(many)), [""; 0]);
        assert_eq!(found(&format!("{}{}", "http://[".repeat(many), "]".repeat(many))), [""; 0]);
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
