//! Logins and e-mail addresses: what may be one, and which of them are the same. Pure.

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};
use unicode_normalization::UnicodeNormalization as _;

use crate::error::{Error, Result};
use crate::ids::Claim;

/// Characters of a login.
pub const LOGIN_CHARS_MAX: usize = 30;
/// Bytes of a login: it stands in the account's record, whose values are short.
pub const LOGIN_BYTES_MAX: usize = 60;
/// Bytes of an e-mail address.
pub const EMAIL_BYTES_MAX: usize = 254;

const _: () = assert!(LOGIN_BYTES_MAX < 64, "a longer value makes a record a hash table");

/// A login as it was given, and what stands for it.
pub(super) fn login(given: &str) -> Result<(String, Claim)> {
    let given: String = given.trim().nfkc().collect();
    let (bytes, chars) = (given.len(), given.chars().count());
    if chars == 0 || chars > LOGIN_CHARS_MAX || bytes > LOGIN_BYTES_MAX {
        return Err(Error::invalid(format!(
            "a login of {chars} characters and {bytes} bytes: 1 to {LOGIN_CHARS_MAX} characters, at most \
             {LOGIN_BYTES_MAX} bytes"
        )));
    }
    let is_fit = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let edge = |c: Option<char>| c.is_some_and(|c| matches!(c, '-' | '.'));
    if !given.chars().all(is_fit) || edge(given.chars().next()) || edge(given.chars().last()) {
        return Err(Error::invalid(format!(
            "login {given:?}: letters, digits, `_`, and between them `-` and `.`"
        )));
    }
    let claim = claim(Claim::LOGIN, &folded(&given));
    Ok((given, claim))
}

/// An e-mail address as it was given, and what stands for it. What it is never gets into a message.
pub(super) fn email(given: &str) -> Result<(String, Claim)> {
    let given: String = given.trim().nfc().collect();
    let is_fit = given.len() <= EMAIL_BYTES_MAX
        && !given.chars().any(|c| c.is_whitespace() || c.is_control())
        && given.rsplit_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
    if !is_fit {
        return Err(Error::invalid(format!(
            "that is no e-mail address: something, `@`, a domain; no white space; at most {EMAIL_BYTES_MAX} bytes"
        )));
    }
    let claim = claim(Claim::EMAIL, &folded(&given));
    Ok((given, claim))
}

/// Names that fold to the same are the same: compatibility forms are one (NFKC), and so are upper and lower case. First
/// to upper case, for some small letters are the same letter in another place, or two.
fn folded(name: &str) -> String {
    let once = |name: &str| -> String {
        let upper = name.nfkc().flat_map(char::to_uppercase);
        let lower: String = upper.flat_map(char::to_lowercase).collect();
        lower.nfkc().collect()
    };
    // What becomes of a few letters is changed by a second time.
    once(&once(name))
}

fn claim(kind: u8, folded: &str) -> Claim {
    let mut hash = Blake2b::<U16>::new();
    hash.update([kind]);
    hash.update(folded.as_bytes());
    Claim::new(kind, hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(one: &str, other: &str) -> bool {
        login(one).unwrap().1 == login(other).unwrap().1
    }

    #[test]
    fn names_that_differ_in_case_or_form_only_are_the_same() {
        for (one, other) in [
            ("Ada", "aDA"),
            ("stra\u{df}e", "STRASSE"),
            ("\u{3bf}\u{3b4}\u{3bf}\u{3c2}", "\u{39f}\u{394}\u{39f}\u{3a3}"),
            ("\u{ff21}da", "ada"),
            ("e\u{301}tienne", "\u{c9}TIENNE"),
            ("\u{fb01}n", "FIN"),
            (" ada ", "ada"),
        ] {
            assert!(same(one, other), "{one:?} {other:?}");
        }
        assert!(!same("ada", "adda") && !same("a.b", "ab") && !same("a_b", "a-b"));
        // A login is no e-mail address, whatever it says.
        assert_ne!(email("ada@b").unwrap().1.as_bytes()[0], login("ada").unwrap().1.as_bytes()[0]);
        assert_eq!(email("Ada@Example.ORG").unwrap().1, email("ada@example.org").unwrap().1);
    }

    #[test]
    fn what_is_no_name_is_refused_and_says_nothing_of_an_address() {
        let long = "x".repeat(LOGIN_CHARS_MAX + 1);
        for wrong in
            ["", " ", "a b", "a@b", "-a", "a.", "a/b", "a\u{0}b", "\u{202e}ab", &long, &"\u{1f600}".repeat(2)]
        {
            assert!(login(wrong).is_err(), "{wrong:?}");
        }
        // One character that becomes eighteen.
        assert!(login(&"\u{fdfa}".repeat(3)).is_err());
        let long = format!("{}@example.org", "x".repeat(EMAIL_BYTES_MAX));
        for wrong in ["", "secret", "@secret", "secret@", "sec ret@b", &long] {
            let refused = email(wrong).unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn folding_is_settled_after_one_time(name in "\\PC{0,30}") {
            prop_assert_eq!(folded(&folded(&name)), folded(&name));
        }

        #[test]
        fn a_login_is_the_same_in_any_case(name in "[\\p{L}\\p{N}_]{1,12}") {
            if let Ok((given, claim)) = login(&name) {
                for other in [name.to_lowercase(), name.to_uppercase(), given] {
                    if let Ok((_, of_other)) = login(&other) {
                        prop_assert_eq!(of_other, claim, "{} {}", &name, &other);
                    }
                }
            }
        }

        #[test]
        fn names_never_panic_and_what_is_kept_is_bounded(name: String) {
            if let Ok((kept, _)) = login(&name) {
                prop_assert!(kept.len() <= LOGIN_BYTES_MAX && login(&kept).is_ok());
            }
            if let Ok((kept, _)) = email(&name) {
                prop_assert!(kept.len() <= EMAIL_BYTES_MAX && email(&kept).is_ok());
            }
        }
    }
}
