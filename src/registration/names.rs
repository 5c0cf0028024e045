//! Logins and e-mail addresses: what may be one, and which of them are the same. Pure.

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};
use unicode_normalization::UnicodeNormalization as _;

use crate::error::{Error, ErrorCode, Result};
use crate::ids::Claim;

/// Characters of a login. They are ASCII: it stands in the account's record, whose values are short, and a mention in a
/// text is read in the same way everywhere.
pub const LOGIN_CHARS_MAX: usize = 30;
/// Bytes of an e-mail address.
pub const EMAIL_BYTES_MAX: usize = 254;

const _: () = assert!(LOGIN_CHARS_MAX < 64, "a longer value makes a record a hash table");

/// A login as it was given, and what stands for it.
pub(crate) fn login(given: &str) -> Result<(String, Claim)> {
    let given = given.trim();
    let chars = given.chars().count();
    if chars == 0 || chars > LOGIN_CHARS_MAX {
        return Err(Error::new(
            ErrorCode::LoginMalformed,
            format!("login: {chars} characters; 1 to {LOGIN_CHARS_MAX} are allowed"),
        ));
    }
    // What a mention reads: else a text would name somebody else, whose login is the beginning of this one.
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !given.chars().all(is_fit) || given.starts_with(['-', '.']) || given.ends_with(['-', '.']) {
        return Err(Error::new(
            ErrorCode::LoginMalformed,
            format!(
                "login {given:?}: only letters from a to z, digits and `_` are allowed, and `-` or `.` between them"
            ),
        ));
    }
    Ok((given.to_owned(), claim(Claim::LOGIN, &given.to_ascii_lowercase())))
}

/// An e-mail address as it was given, and what stands for it. What it is never gets into a message.
pub(crate) fn email(given: &str) -> Result<(String, Claim)> {
    let given: String = given.trim().nfc().collect();
    let is_fit = given.len() <= EMAIL_BYTES_MAX
        && !given.chars().any(|c| c.is_whitespace() || c.is_control())
        && given.rsplit_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
    if !is_fit {
        return Err(Error::new(
            ErrorCode::EmailMalformed,
            format!(
                "not an e-mail address: it is something, `@` and a domain, without white space, and of at most \
                 {EMAIL_BYTES_MAX} bytes"
            ),
        ));
    }
    let claim = claim(Claim::EMAIL, &folded_name(&given));
    Ok((given, claim))
}

/// Names that fold to the same are the same: compatibility forms are one (NFKC), and so are upper and lower case. First
/// to upper case, for some small letters are the same letter in another place, or two.
#[doc(hidden)]
pub fn folded_name(name: &str) -> String {
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
    use crate::post::TextNames;
    use proptest::prelude::*;
    use unicode_normalization::char::is_combining_mark;

    fn same(one: &str, other: &str) -> bool {
        login(one).unwrap().1 == login(other).unwrap().1
    }

    #[test]
    fn names_that_differ_in_case_or_form_only_are_the_same() {
        for (one, other) in [
            ("stra\u{df}e", "STRASSE"),
            ("\u{3bf}\u{3b4}\u{3bf}\u{3c2}", "\u{39f}\u{394}\u{39f}\u{3a3}"),
            ("\u{ff21}da", "ada"),
            ("e\u{301}tienne", "\u{c9}TIENNE"),
            ("\u{fb01}n", "FIN"),
        ] {
            let of = |name: &str| email(&format!("{name}@b")).unwrap().1;
            assert_eq!(of(one), of(other), "{one:?} {other:?}");
        }
        assert!(same("Ada", "aDA") && same(" ada ", "ada"));
        assert!(!same("ada", "adda") && !same("a.b", "ab") && !same("a_b", "a-b"));
        // A login is no e-mail address, whatever it says.
        assert_ne!(email("ada@b").unwrap().1.as_bytes()[0], login("ada").unwrap().1.as_bytes()[0]);
        assert_eq!(email("Ada@Example.ORG").unwrap().1, email("ada@example.org").unwrap().1);
    }

    #[test]
    fn what_is_no_name_is_refused_and_says_nothing_of_an_address() {
        let long = "x".repeat(LOGIN_CHARS_MAX + 1);
        for wrong in [
            "",
            " ",
            "a b",
            "a@b",
            "-a",
            "a.",
            "a/b",
            "a\u{0}b",
            "\u{202e}ab",
            &long,
            "\u{1f600}",
            "jos\u{e9}",
            "\u{ff21}da",
            "jose\u{301}",
            "\u{212a}im",
        ] {
            assert!(login(wrong).is_err(), "{wrong:?}");
        }
        let long = format!("{}@example.org", "x".repeat(EMAIL_BYTES_MAX));
        for wrong in ["", "secret", "@secret", "secret@", "sec ret@b", &long] {
            let refused = email(wrong).unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn folding_is_settled_after_one_time(name in "\\PC{0,30}") {
            prop_assert_eq!(folded_name(&folded_name(&name)), folded_name(&name));
        }

        #[test]
        fn a_login_is_the_same_in_any_case(name in "[a-zA-Z0-9_]{1,12}") {
            let (given, claim) = login(&name).unwrap();
            for other in [name.to_lowercase(), name.to_uppercase(), given] {
                prop_assert_eq!(login(&other).unwrap().1, claim, "{} {}", &name, &other);
            }
        }

        /// Logins had letters of all scripts once, mentions those from a to z: `@jos\u{e9}` in a text named `jos`.
        #[test]
        fn a_mention_is_of_a_whole_login_or_of_nobody(
            name in "[a-cA-C0_.\\-]{1,31}|[a-c\u{e9}\u{301}\u{3055}\u{ff21}\u{664}_.\\-]{1,6}",
            after in "|[ ,.!?)]",
        ) {
            let text = format!("(@{name}{after}");
            let named: Vec<String> = TextNames::of(&text).names().map(|named| named.name.clone()).collect();
            match login(&name) {
                Ok((login, _)) => prop_assert_eq!(named, [login]),
                // What ends a sentence is no part of a name.
                Err(_) => {
                    let trimmed = name.trim_end_matches(['.', '-']);
                    let inside = |named: &String| trimmed.strip_prefix(named.as_str());
                    let is_word = |c: char| c.is_alphanumeric() || is_combining_mark(c);
                    prop_assert!(named.iter().filter_map(inside).all(|rest| !rest.starts_with(is_word)), "{:?}", named);
                }
            }
        }

        #[test]
        fn names_never_panic_and_what_is_kept_is_bounded(name: String) {
            if let Ok((kept, _)) = login(&name) {
                prop_assert!(kept.len() <= LOGIN_CHARS_MAX && login(&kept).is_ok());
            }
            if let Ok((kept, _)) = email(&name) {
                prop_assert!(kept.len() <= EMAIL_BYTES_MAX && email(&kept).is_ok());
            }
        }
    }
}
