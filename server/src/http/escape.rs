//! Texts of users in HTML. Pure.

use std::fmt::Write as _;

/// Appends a text to HTML: what would begin a tag, an entity, or end an attribute in either kind of quotes is written
/// as an entity, so that it may stand in both places. Signs that HTML doesn't allow (NUL and its like) are left out.
pub fn push(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(c),
            c if c.is_control() => {}
            c => html.push(c),
        }
    }
}

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    push(&mut html, text);
    html
}

/// Appends a text to a URL, as one segment of its path or one value of its query: everything but letters, digits and
/// `-._~` as bytes.
pub fn push_percent(url: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// Escapes text for a URL.
pub fn percent(text: &str) -> String {
    let mut url = String::with_capacity(text.len());
    push_percent(&mut url, text);
    url
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            escaped("<a href='x' b=\"y\">&amp;\0\r\n"),
            "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;amp;\n"
        );
        assert_eq!(percent("a b/ä&[]"), "a%20b%2F%C3%A4%26%5B%5D");
    }

    proptest! {
        #[test]
        fn no_sign_of_markup_survives(text in ".{0,80}") {
            prop_assert!(!escaped(&text).contains(['<', '>', '"', '\'']));
            prop_assert!(percent(&text).bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
        }
    }
}
