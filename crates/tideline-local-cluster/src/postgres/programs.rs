//! Finding PostgreSQL's programs: packages keep those of a server away from the PATH.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::on_path;
use tideline_model::error::{Error, Result};

/// Names the folder of the programs, before others are looked at.
const VARIABLE: &str = "TIDELINE_POSTGRES_BIN";
/// Folders in which packages put the programs, `*` standing for a version: Debian's and Ubuntu's, Fedora's own and
/// PostgreSQL's for it, Alpine's, Homebrew's.
const FOLDERS: [&str; 5] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
];
/// `INSERT … ON CONFLICT` on any table, `jit` off by a setting, and still maintained when this was written.
pub(super) const OLDEST: u32 = 13;

/// The folder of the programs of one PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Programs(PathBuf);

impl Programs {
    /// The folder that [`VARIABLE`] names, or else that of `initdb` on the PATH, or else the newest that packages have.
    pub(super) fn find() -> Result<Self> {
        if let Some(folder) = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
            return Self::checked(folder.into()).map_err(|e| e.context(VARIABLE));
        }
        if let Some(folder) = on_path("initdb").and_then(|path| path.parent().map(Path::to_owned)) {
            return Self::checked(folder);
        }
        let mut found: Vec<(u32, PathBuf)> = FOLDERS.iter().flat_map(|pattern| versions(pattern)).collect();
        found.sort_unstable();
        match found.pop() {
            Some((_, folder)) => Self::checked(folder),
            None => Err(Error::misconfigured(format!(
                "no PostgreSQL found. Install it (Debian and Ubuntu: apt-get install postgresql; Fedora: dnf install \
                 postgresql-server; Alpine: apk add postgresql; Arch: pacman -S postgresql; macOS: brew install \
                 postgresql@17) or set {VARIABLE} to the folder of initdb and postgres"
            ))),
        }
    }

    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.0.join(program)
    }

    /// A client's program, which may lie where a link to the server's leads, or on the PATH.
    pub(super) fn client(&self, program: &str) -> PathBuf {
        let server = fs::canonicalize(self.path("postgres")).unwrap_or_default();
        let places = [self.path(program), server.with_file_name(program)];
        places.into_iter().find(|path| path.is_file()).unwrap_or_else(|| program.into())
    }

    fn checked(folder: PathBuf) -> Result<Self> {
        let programs = Self(folder);
        let server = programs.path("postgres");
        let output = Command::new(&server).arg("--version").output();
        let output =
            output.map_err(|e| Error::misconfigured(format!("cannot run {}: {e}", server.display())))?;
        let said = String::from_utf8_lossy(&output.stdout);
        match major_version(&said) {
            Some(version) if version >= OLDEST => Ok(programs),
            Some(version) => Err(Error::misconfigured(format!(
                "{} is PostgreSQL {version}: {OLDEST} or later is needed",
                server.display()
            ))),
            None => Err(Error::misconfigured(format!(
                "{} --version printed {:?}, which is not PostgreSQL",
                server.display(),
                said.trim()
            ))),
        }
    }
}

/// Folders that a pattern with one `*` stands for, with what the star stands for; only those with `initdb` in them.
fn versions(pattern: &str) -> Vec<(u32, PathBuf)> {
    let Some((before, after)) = pattern.split_once('*') else { return Vec::new() };
    let (parent, stem) = before.rsplit_once('/').unwrap_or((".", before));
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let name = entry.file_name();
        let version = name.to_str()?.strip_prefix(stem)?.trim_start_matches('-').parse().ok()?;
        let folder = PathBuf::from(format!("{}{after}", entry.path().display()));
        folder.join("initdb").is_file().then_some((version, folder))
    });
    found.collect()
}

/// Finds 15 in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn major_version(text: &str) -> Option<u32> {
    let number = text.split("(PostgreSQL) ").nth(1)?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_packages_print_them() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(major_version("mysqld 8.0"), None);
    }

    #[test]
    fn the_newest_of_several_is_found_by_its_number() {
        let scratch = tempfile::tempdir().unwrap();
        for version in ["9", "15", "x"] {
            let folder = scratch.path().join(version).join("bin");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("initdb"), "").unwrap();
        }
        fs::create_dir_all(scratch.path().join("17/bin")).unwrap();
        let mut found = versions(&format!("{}/*/bin", scratch.path().display()));
        found.sort_unstable();
        let expected = [9, 15].map(|version| (version, scratch.path().join(format!("{version}/bin"))));
        assert_eq!(found, expected, "17 has no initdb");
    }
}
