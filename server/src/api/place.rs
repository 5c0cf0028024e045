//! Places of lists, in digits: several clients take nothing else out of a link, and would find no second page.

use std::fmt::Write as _;

use tideline::ListCursor;

/// The place of the first character that has two digits: all that a place's text is made of lie behind it.
const FIRST: u8 = 33;
const DIGITS: std::ops::RangeInclusive<u8> = 10..=99;

/// Writes a place as a number, two digits for each letter of its text. It is longer than any id.
pub(super) fn in_digits(place: &ListCursor) -> String {
    let mut digits = String::new();
    for letter in place.to_string().bytes() {
        // Writing to a string can't fail.
        let _ = write!(digits, "{}", u32::from(letter) + u32::from(*DIGITS.start()) - u32::from(FIRST));
    }
    digits
}

/// Reads a place; `None`: it is none that was ever written. Links of before have its text as it is.
pub(super) fn of_text(text: &str) -> Option<ListCursor> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let letter = |pair: &[u8; 2]| {
        let number = (pair[0] - b'0') * 10 + (pair[1] - b'0');
        DIGITS.contains(&number).then(|| char::from(number - DIGITS.start() + FIRST))
    };
    pairs.iter().map(letter).collect::<Option<String>>()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_number_that_leads_back_to_it_and_no_id_is_one() {
        let text = "s4278bcfe568000000000000000000007";
        let place: ListCursor = text.parse().unwrap();
        let digits = in_digits(&place);
        assert!(digits.len() == 2 * text.len() && digits.bytes().all(|b| b.is_ascii_digit()), "{digits}");
        assert_eq!(of_text(&digits), Some(place.clone()));
        assert_eq!(of_text(text), Some(place));
        for other in ["", "1", "117691705739452800", "0102", "99", "x", "s", &digits[1..], &digits[2..]] {
            assert_eq!(of_text(other), None, "{other}");
        }
    }
}
