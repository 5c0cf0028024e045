//! Steps by which tables come to be: numbered, each made once, all of those that are missing in one transaction.

use tideline_model::error::{Error, Result};

/// Steps of SQLite, in order.
pub(crate) const SQLITE: [&str; 2] =
    [include_str!("../migrations/sqlite-001.sql"), include_str!("../migrations/sqlite-002.sql")];
/// Steps of PostgreSQL.
pub(crate) const POSTGRES: [&str; 2] =
    [include_str!("../migrations/postgres-001.sql"), include_str!("../migrations/postgres-002.sql")];

/// The steps that are missing behind `version`.
pub(crate) fn missing(steps: &'static [&'static str], version: i64) -> Result<&'static [&'static str]> {
    usize::try_from(version).ok().and_then(|made| steps.get(made..)).ok_or_else(|| {
        Error::misconfigured(format!(
            "the archive was written by a newer release (version {version}; this one knows {}): update this program",
            steps.len()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_made_from_where_an_archive_stands() {
        assert_eq!(missing(&["a", "b"], 0).unwrap(), ["a", "b"]);
        assert_eq!(missing(&["a", "b"], 1).unwrap(), ["b"]);
        assert!(missing(&["a", "b"], 2).unwrap().is_empty());
        assert!(missing(&["a", "b"], 3).unwrap_err().to_string().contains("newer release (version 3"));
    }
}
