//! Files of the checkout, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// All files below a folder that end so, in their order; none of what is built, or hidden.
pub(crate) fn sources(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the checkout can be read") {
        let path = entry.expect("the checkout can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            found.append(&mut sources(&path, extensions));
        } else if extensions.iter().any(|extension| path.extension().is_some_and(|is| is == *extension)) {
            found.push(path);
        }
    }
    found.sort();
    found
}
