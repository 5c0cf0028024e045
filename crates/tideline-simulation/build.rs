//! Copies the engine, and the crates below it, into one crate in which rules can be taken out at run time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "src/table.rs"]
mod table;

use table::{Change, Kind, RuleEntry};

/// What is copied; what `crate` means there.
const SOURCES: &[(&str, &str)] = &[
    ("src", "crate"),
    ("crates/tideline-model/src", "crate::tideline_model"),
    ("crates/tideline-router/src", "crate::tideline_router"),
];

/// The copy is checked as what it is a copy of.
const AS_IT_IS: &str = "#[allow(warnings, clippy::all, clippy::pedantic)]\n";

/// `crate::rules::`, until `crate` has got its meaning.
const RULES: &str = "@rules::";

type Sources = BTreeMap<PathBuf, String>;

fn main() {
    let package = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    let root = package.join("../..");
    let mut sources = Sources::new();
    for (folder, _) in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        read(&root, &root.join(folder), &mut sources);
    }
    println!("cargo::rerun-if-changed={}", package.join("rules").display());
    println!("cargo::rerun-if-changed={}", package.join("seams").display());
    let simulated = fs::read_to_string(package.join("seams/simulated.rs")).expect("the checkout can be read");
    sources.insert("crates/tideline-router/src/simulated.rs".into(), simulated);
    let mut tables = Sources::new();
    read(&package, &package.join("rules"), &mut tables);
    let tables: Vec<&String> = tables.values().collect();
    for entry in tables.iter().flat_map(|table| table::parse(table)) {
        // The functions are changed at run time: they are a text there too.
        for change in entry.changes.iter().filter(|change| !change.file.ends_with(".lua")) {
            let file = Path::new(change.file);
            let code = sources.get_mut(file).unwrap_or_else(|| panic!("{}: no file {file:?}", entry.name));
            *code = table::replaced(code, &change.right, &with_both(&entry, change))
                .unwrap_or_else(|e| panic!("{} in {}: {e}", entry.name, change.file));
        }
    }
    let names: Vec<String> = tables.iter().map(|table| format!("{table:?}")).collect();
    write(&out.join("tables.rs"), &format!("&[{}]", names.join(", ")));
    for (path, code) in &sources {
        let (folder, itself) =
            SOURCES.iter().find(|(folder, _)| path.starts_with(folder)).expect("read from one of them");
        let place = path.strip_prefix(folder).expect("it begins so");
        let place = match itself.strip_prefix("crate::") {
            Some(module) if place == Path::new("lib.rs") => Path::new(module).join("mod.rs"),
            Some(module) => Path::new(module).join(place),
            None => place.to_owned(),
        };
        let code = if path.ends_with("lua") { code.clone() } else { copied(code, itself) };
        write(&out.join(&place), &if place == Path::new("lib.rs") { as_root(&code) } else { code });
    }
}

/// Reads all files below a folder; their paths begin at the root.
fn read(root: &Path, folder: &Path, sources: &mut Sources) {
    for entry in fs::read_dir(folder).expect("the checkout can be read") {
        let path = entry.expect("the checkout can be read").path();
        if path.is_dir() {
            read(root, &path, sources);
        } else {
            let text = fs::read_to_string(&path).expect("sources are texts");
            sources.insert(path.strip_prefix(root).expect("below it").to_owned(), text);
        }
    }
}

/// What stands in the copy: the right way while the rule holds, else the wrong one.
fn with_both(entry: &RuleEntry<'_>, change: &Change<'_>) -> String {
    let Change { right, wrong, .. } = change;
    // It says itself when what counts, or counts always.
    if entry.kind == Kind::Always || wrong.contains("rules::") {
        return wrong.replace("rules::", RULES);
    }
    let holds = format!("{RULES}holds({:?})", entry.name);
    match (right.ends_with(';'), right.starts_with("let ")) {
        // The wrong way leaves before.
        (true, true) => format!("if !{holds} {{ {wrong} }} {right}"),
        (true, false) => format!("if {holds} {{ {right} }} else {{ {wrong} }}"),
        (false, _) => format!("(if {holds} {{ {right} }} else {{ {wrong} }})"),
    }
}

/// Names of other crates, and tests of their own, which run where they stand.
fn copied(code: &str, itself: &str) -> String {
    let mut code = code.to_owned();
    if itself != "crate" {
        code = code.replace("crate::", &format!("{itself}::"));
    }
    for (_, other) in &SOURCES[1..] {
        let name = format!("{}::", other.trim_start_matches("crate::"));
        let begins = |at: usize| !code[..at].ends_with(|c: char| c == ':' || c == '_' || c.is_alphanumeric());
        let places: Vec<usize> =
            code.match_indices(&name).map(|(at, _)| at).filter(|at| begins(*at)).collect();
        places.into_iter().rev().for_each(|at| code.insert_str(at, "crate::"));
    }
    let code = code.replace("pub use tideline_router as", "pub use crate::tideline_router as");
    let code = if itself == "crate" { drawn(&code) } else { code };
    let code = code
        .replace("#[cfg(test)]\nmod ", "#[cfg(any())]\nmod ")
        .replace("#[cfg(all(test,", "#[cfg(all(any(),");
    code.replace(RULES, "crate::rules::")
}

/// What the engine draws is of a history's seed.
fn drawn(code: &str) -> String {
    code.replace("rand::random(", "crate::rules::random(")
        .replace("rand::random::<", "crate::rules::random::<")
}

/// The root is included, and a text that is included has no inner attributes.
fn as_root(code: &str) -> String {
    let mut root: String = SOURCES[1..]
        .iter()
        .map(|(_, module)| format!("{AS_IT_IS}pub mod {};\n", module.trim_start_matches("crate::")))
        .collect();
    for line in code.lines().filter(|line| !line.starts_with("//!")) {
        if ["mod ", "pub mod ", "use ", "pub use "].iter().any(|item| line.starts_with(item)) {
            root.push_str(AS_IT_IS);
        }
        root.push_str(line);
        root.push('\n');
    }
    root
}

/// Only where it says something else: what hasn't changed isn't compiled again.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("OUT_DIR can be written");
    fs::write(path, text).expect("OUT_DIR can be written");
}
