//! Texts that an account says again and again: a text is the same, whatever stands around its letters.

use std::time::Duration;

use crate::error::Result;
use crate::ids::AccountId;
use crate::post::Content;
use crate::tenant::Tenant;

/// Letters of the shortest text that is counted: who says "thank you" says it to many.
const LETTERS_MIN: usize = 12;
/// The strings by which a link in a text is recognized.
const LINKS: [&str; 3] = ["http://", "https://", "www."];

/// All that a post says: its warning, and its text.
pub(super) fn all_of(content: &Content) -> String {
    let warning = content.content_warning.as_deref().unwrap_or_default();
    format!("{warning}\n{}", content.text)
}

/// Whether two posts say the same.
pub(super) fn is_same(one: &Content, other: &Content) -> bool {
    letters(&all_of(one)) == letters(&all_of(other))
}

/// Whether there is a link in a text.
pub(super) fn has_link(text: &str) -> bool {
    let text = text.to_lowercase();
    LINKS.iter().any(|link| text.contains(link))
}

/// The letters of a text, in lower case, without words that mention somebody; `None`: too few.
fn letters(text: &str) -> Option<String> {
    let words = text.split_whitespace().filter(|word| !word.starts_with('@'));
    let letters: String =
        words.flat_map(str::chars).filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    (letters.chars().count() >= LETTERS_MIN).then_some(letters)
}

/// Counts that an account says something, and tells how often it has within that span. What has an attempt's name, and
/// comes again by it, was said once, whatever has become of it the first time.
pub(super) async fn count(
    tenant: &Tenant,
    author: AccountId,
    (text, attempt): (&str, Option<&str>),
    span: Duration,
) -> Result<u64> {
    let Some(letters) = letters(text) else { return Ok(1) };
    let is_again = match attempt {
        // No text that is counted has a byte of 0.
        Some(attempt) => {
            let named = counter(tenant, author, &format!("{letters}\0{attempt}"));
            tenant.count_up(&named, 1, span).await? > 1
        }
        None => false,
    };
    let times = tenant.count_up(&counter(tenant, author, &letters), u32::from(!is_again), span).await?;
    Ok(times.max(1))
}

/// The time until what an account says counts no more.
pub(super) async fn counts_for(tenant: &Tenant, author: AccountId, text: &str) -> Result<Duration> {
    match letters(text) {
        Some(letters) => tenant.counter_lasts(&counter(tenant, author, &letters)).await,
        None => Ok(Duration::ZERO),
    }
}

/// The counter of what an account says. Under the tenant's secret: nobody makes texts that count as others do.
fn counter(tenant: &Tenant, author: AccountId, said: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..8].copy_from_slice(&author.to_bytes());
    name[8..].copy_from_slice(&tenant.tags().hash(said.as_bytes()).to_be_bytes());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_beside_its_letters_is_the_same_text() {
        let said = letters("Buy cheap pills at HTTPS://x.example/1 now!").unwrap();
        for text in [
            "@ada buy cheap pills at https://x.example/27 now",
            "buy  cheap\npills, at https://x.example/ NOW 100 %",
        ] {
            assert_eq!(letters(text).unwrap(), said, "{text}");
        }
        assert_ne!(letters("buy cheap bills at https://x.example/ now").unwrap(), said);
        for short in ["", "Thank you!", "@ada @ben 12345678901234", "👍👍👍👍👍👍👍👍👍👍👍👍👍"]
        {
            assert_eq!(letters(short), None, "{short}");
        }
    }

    #[test]
    fn a_warning_says_as_much_as_a_text() {
        let content = |text: &str, warning: &str| Content {
            text: text.to_owned(),
            content_warning: Some(warning.to_owned()),
            ..Content::default()
        };
        let pills = content("ok", "Buy cheap pills at https://x.example");
        assert!(has_link(&all_of(&pills)) && letters(&all_of(&pills)).is_some());
        assert!(is_same(&pills, &content("ok!", "Buy cheap pills at https://x.example/27")));
        assert!(!is_same(&pills, &content("ok", "")));
    }

    #[test]
    fn links_are_found_wherever_they_stand() {
        for text in ["https://a.example", "so:HTTP://a.example!", "look at www.a.example"] {
            assert!(has_link(text), "{text}");
        }
        for text in ["", "http", "a.example", "e.g. this"] {
            assert!(!has_link(text), "{text}");
        }
    }
}
