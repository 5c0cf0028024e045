//! Choosing the language that somebody would read, of those that are offered. Pure.

/// Entries of `Accept-Language` that are looked at.
const ENTRIES_MAX: usize = 20;

/// Chooses a language: the one asked for by name (`?lang=`), else the best of `Accept-Language`, else the first that is
/// offered. `de-AT` is `de` where only that is offered.
///
/// # Panics
///
/// If none is offered.
pub fn chosen<'o>(lang: Option<&str>, accept: Option<&str>, offered: &[&'o str]) -> &'o str {
    let asked = lang.and_then(|lang| matching(lang, offered));
    let accepted = || by_weight(accept?).into_iter().find_map(|lang| matching(lang, offered));
    asked.or_else(accepted).unwrap_or(offered[0])
}

fn matching<'o>(lang: &str, offered: &[&'o str]) -> Option<&'o str> {
    let is = |wanted: &str| offered.iter().find(|offered| offered.eq_ignore_ascii_case(wanted)).copied();
    is(lang.trim()).or_else(|| is(lang.trim().split(['-', '_']).next()?))
}

/// Languages that somebody accepts, the most wanted first; without those of weight 0.
fn by_weight(accept: &str) -> Vec<&str> {
    let entry = |entry: &'_ str| {
        let (lang, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        let weight = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
        (lang.len(), weight.map_or(Some(1_000), thousandths))
    };
    let mut weighted: Vec<(&str, u32)> = accept
        .split(',')
        .take(ENTRIES_MAX)
        .filter_map(|text| {
            let (len, weight) = entry(text);
            Some((&text[..len], weight?))
        })
        .filter(|(_, weight)| *weight > 0)
        .collect();
    weighted.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    weighted.into_iter().map(|(lang, _)| lang).collect()
}

/// A weight from `0` to `1.000`.
fn thousandths(text: &str) -> Option<u32> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_weight =
        matches!(whole, "0" | "1") && fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
    let thousandths = is_weight.then(|| format!("{whole}{fraction:0<3}").parse().ok()).flatten();
    thousandths.filter(|weight| *weight <= 1_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OFFERED: [&str; 3] = ["en", "de", "pt-BR"];

    #[test]
    fn the_best_language_is_chosen() {
        for (lang, accept, wanted) in [
            (None, None, "en"),
            (Some("de"), Some("en"), "de"),
            (Some("DE-at"), None, "de"),
            (Some("xx"), Some("de"), "de"),
            (None, Some("fr, de;q=0.5, en;q=0.4"), "de"),
            (None, Some("en;q=0.1, de;q=0.9"), "de"),
            (None, Some("de;q=0, pt-br"), "pt-BR"),
            (None, Some("de;q=2, en"), "en"),
            (None, Some("*"), "en"),
        ] {
            assert_eq!(chosen(lang, accept, &OFFERED), wanted, "{lang:?} {accept:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_one_is_chosen(accept in "[a-z,;=q0-9. -]{0,60}|.{0,60}", lang in ".{0,10}") {
            prop_assert!(OFFERED.contains(&chosen(Some(&lang), Some(&accept), &OFFERED)));
        }
    }
}
