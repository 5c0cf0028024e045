//! Values of options: whoever types something else is told what may stand there.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

/// A whole number of this range, which begins with a number.
pub(crate) fn whole<T: FromStr + PartialOrd + Display>(
    range: impl RangeBounds<T> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            match (range.start_bound(), range.end_bound()) {
                (Bound::Included(least), Bound::Included(most)) => {
                    format!("write a whole number from {least} to {most}")
                }
                (Bound::Included(least), _) => format!("write a whole number from {least} on"),
                _ => "write a whole number".to_owned(),
            }
        })
    }
}

/// A share of all: `0.2` or `20%`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0 to 1, or from 0% to 100%: 20 % is 0.2 or 20%".to_owned())
}

/// Percent: `20` or `20%`. What uses it says how many there may be.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let is_number = |percent: &f64| percent.is_finite();
    number.parse().ok().filter(is_number).ok_or_else(|| "write percent: 20 or 20%".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// What is refused tells the bounds; so does the table that was read before.
    #[test]
    fn the_readme_tells_the_bounds_of_every_option_that_has_some() {
        let readme = include_str!("../README.md");
        let mut known = 0;
        for command in crate::Cli::command().get_subcommands() {
            let name = command.get_name();
            let section = readme.split("\n## ").find(|part| part.lines().next() == Some(name)).unwrap_or("");
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                let typed = ["loadtest", name, &format!("--{option}"), "?"];
                let Err(told) = crate::Cli::command().try_get_matches_from(typed) else { continue };
                let told = told.to_string();
                let Some((_, bounds)) = told.split_once("write a whole number from ") else { continue };
                let bounds = bounds.lines().next().unwrap_or("").trim_end();
                // Only what its own section has: options of `sweep` are those of `compare`.
                let rows = section.lines().filter(|line| line.starts_with('|'));
                let Some(row) = rows.into_iter().find(|row| row.contains(&format!("`--{option} "))) else {
                    continue;
                };
                let (_, row) = row.split_once(&format!("`--{option} ")).unwrap();
                let has =
                    row.split_once('`').is_some_and(|(_, after)| after.starts_with(&format!(" ({bounds})")));
                assert!(has || bounds.ends_with(" on"), "{name} --{option}: {bounds}, and not {row}");
                known += usize::from(has);
            }
        }
        assert!(known >= 34, "{known}");
    }

    #[test]
    fn a_whole_number_is_within_its_bounds() {
        let two = whole::<u32>(2..=1_000);
        assert_eq!([two("2"), two("1000")], [Ok(2), Ok(1_000)]);
        for text in ["1", "1001", "-3", "zero", "", "2.5", "99999999999"] {
            assert_eq!(two(text), Err("write a whole number from 2 to 1000".to_owned()), "{text}");
        }
        assert_eq!(whole::<usize>(1..)("-1"), Err("write a whole number from 1 on".to_owned()));
    }

    #[test]
    fn shares_are_typed_with_and_without_a_percent_sign() {
        let told = ["0", "0.2", "20%", "20 %", "100%", ".5"].map(|text| share(text).unwrap());
        assert!(
            told.iter().zip([0.0, 0.2, 0.2, 0.2, 1.0, 0.5]).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-9),
            "{told:?}"
        );
        for text in ["20", "101%", "-1", "five", "", "%", "nan", "inf"] {
            assert!(share(text).unwrap_err().contains("20 % is 0.2 or 20%"), "{text}");
        }
        assert_eq!([percent("20"), percent("20%")], [Ok(20.0), Ok(20.0)]);
        assert!(percent("many").is_err() && percent("nan").is_err());
    }
}
