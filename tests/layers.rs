//! No import runs up, and none in a circle: the layers that docs/architecture.md shows are the ones that the code has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

#[path = "support/sources.rs"]
mod sources;

use sources::sources;

/// Roots, which see everything; and a test of all that they show.
const ASIDE: &[&str] = &["lib", "main", "public_types"];

/// The library as other crates name it.
const ENGINE: &str = "tideline";

/// Whether it is a crate of its own, not a module of the engine.
fn is_crate(module: &str) -> bool {
    module.starts_with("tideline_")
}

/// The crate whose sources lie in a folder: in `crates/tideline-router` it is `tideline_router`, in `program`
/// `tideline_program`.
fn crate_in(folder: &str) -> String {
    match folder.strip_prefix("crates/") {
        Some(name) => name.replace('-', "_"),
        None => format!("tideline_{folder}"),
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The layers, the lowest last, as the page shows them: a line each, modules before the first double space.
fn layers(page: &str) -> Vec<Vec<String>> {
    let block = page.split("```layers\n").nth(1).expect("docs/architecture.md has a block of layers");
    let block = block.split("```").next().unwrap_or_default();
    let modules =
        |line: &str| line.split("  ").next().unwrap_or_default().split(' ').map(str::to_owned).collect();
    block.lines().filter(|line| !line.trim().is_empty()).map(modules).collect()
}

/// A module, by its parts: `["timeline", "read"]`.
fn module_of(file: &Path, src: &Path) -> Vec<String> {
    let path = file.strip_prefix(src).expect("the checkout can be read").with_extension("");
    let mut parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// The code without comments, texts and modules of tests, wherever they stand.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if let Some(behind) = behind_raw_text(c, &code, &chars) {
            code.push_str("\"\"");
            chars = behind;
            continue;
        }
        match (c, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            ('"', _) => {
                code.push_str("\"\"");
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            // A quote or a brace, not a lifetime.
            ('\'', Some('"' | '\\' | '{' | '}')) => {
                code.push_str("' '");
                let escaped = chars.next() == Some('\\');
                if escaped {
                    chars.next();
                }
                while chars.next_if(|c| *c != '\'').is_some() {}
                chars.next();
            }
            _ => code.push(c),
        }
    }
    without_tests(&code)
}

/// The characters behind a raw text that begins with this one; `None`: none begins there.
fn behind_raw_text<'t>(c: char, before: &str, chars: &Peekable<Chars<'t>>) -> Option<Peekable<Chars<'t>>> {
    let is_in_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !before.ends_with('b');
    if c != 'r' || is_in_name {
        return None;
    }
    let mut chars = chars.clone();
    let hashes = std::iter::from_fn(|| chars.next_if_eq(&'#')).count();
    chars.next_if_eq(&'"')?;
    loop {
        while chars.next()? != '"' {}
        let mut end = chars.clone();
        if (0..hashes).all(|_| end.next() == Some('#')) {
            return Some(end);
        }
    }
}

/// Code, without texts and comments, but for its modules of tests: `mod tests;`, or the braces behind it.
fn without_tests(code: &str) -> String {
    let code = code.replace(r#"#[cfg(all(test, feature = ""))]"#, "#[cfg(test)]");
    let mut parts = code.split("#[cfg(test)]");
    let mut left = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_module = part.trim_start().starts_with("mod ");
        let mut depth = 0;
        let end = part.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0 && matches!(c, ';' | '}')
        });
        left.push_str(if is_module { &part[end.map_or(part.len(), |(at, _)| at + 1)..] } else { part });
    }
    left
}

/// All paths that begin with `crate`, `$crate`, `super` or a crate of ours, each written out:
/// `use crate::{a, b::{c, d}}` are three.
fn paths(code: &str, rank: &BTreeMap<String, usize>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let crates = rank.keys().map(String::as_str).filter(|module| is_crate(module));
    // The load test's layers are its own modules alone: what it uses of the engine is not among them.
    let engine = rank.keys().any(|module| is_crate(module)).then_some(ENGINE);
    for word in crates.chain(["crate", "super"]).chain(engine) {
        for (at, _) in code.match_indices(word) {
            let before = code[..at].chars().next_back();
            let is_start = before.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            // `super::super::a` begins once.
            let goes_on = code[..at].ends_with("super::");
            let behind = &code[at + word.len()..];
            if is_start && !goes_on && (behind.starts_with("::") || behind.starts_with(" as ")) {
                written_out(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads one tree of a use, or a path; gives what follows it.
fn written_out<'c>(mut code: &'c str, head: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'c str {
    let depth = head.len();
    loop {
        code = code.trim_start();
        if let Some(mut inside) = code.strip_prefix('{') {
            loop {
                inside = written_out(inside, head, found).trim_start();
                match inside.strip_prefix(',') {
                    Some(rest) if !rest.trim_start().starts_with('}') => inside = rest,
                    other => {
                        let rest = other.unwrap_or(inside).trim_start();
                        code = rest.strip_prefix('}').unwrap_or(rest);
                        break;
                    }
                }
            }
            break;
        }
        let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
        head.push(code[..end].to_owned());
        code = &code[end..];
        let Some(rest) = code.strip_prefix("::") else {
            found.push(head.clone());
            // `a as b`: a path of that name too, for what the root exports.
            if let Some(renamed) = code.strip_prefix(" as ") {
                let end = renamed.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(renamed.len());
                found.push(head.iter().cloned().chain([renamed[..end].to_owned()]).collect());
                code = renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            }
            break;
        };
        code = rest;
    }
    head.truncate(depth);
    code
}

/// The top module or crate that a path leads to, from a module; `None`: it stays inside.
fn target(path: &[String], from: &[String], exported: &BTreeMap<String, String>) -> Option<String> {
    if path[0] == ENGINE {
        let first = path.get(1)?;
        return Some(exported.get(first).unwrap_or(first).clone());
    }
    if path[0] != "crate" && path[0] != "super" {
        return (path[0] != from[0]).then(|| path[0].clone());
    }
    // Within a crate of its own all files may use each other.
    if is_crate(&from[0]) {
        return None;
    }
    let absolute: Vec<&String> = if path[0] == "super" {
        let ups = path.iter().take_while(|part| *part == "super").count();
        from.iter().take(from.len().saturating_sub(ups)).chain(&path[ups..]).collect()
    } else {
        path[1..].iter().collect()
    };
    // The root by another name: all that lies there, as of `*`.
    let Some(first) = absolute.first() else { return Some(String::new()) };
    let top = exported.get(*first).unwrap_or(first);
    (Some(top) != from.first()).then(|| top.clone())
}

/// Where the names come from that lie in the crate's root: what it uses for itself, all modules see there.
fn exported(root: &str) -> BTreeMap<String, String> {
    let mut found = Vec::new();
    let code = code_of(root);
    for (at, word) in code.match_indices("use ") {
        let is_start = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if is_start {
            written_out(&code[at + word.len()..], &mut Vec::new(), &mut found);
        }
    }
    let pair = |path: Vec<String>| Some((path.last()?.clone(), path.first()?.clone()));
    found.into_iter().filter_map(pair).collect()
}

/// The other modules that a module's code leads to, as far as they have a rank.
fn used(
    code: &str,
    from: &[String],
    rank: &BTreeMap<String, usize>,
    exported: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for path in paths(code, rank) {
        let Some(to) = target(&path, from, exported) else { continue };
        // All of a root is whatever lies there; so is an item of its own, which sees all modules.
        if to.is_empty() || path[0] == "crate" && to.starts_with(char::is_uppercase) {
            used.extend(rank.keys().filter(|module| **module != from[0]).cloned());
        }
        // Without a rank: a macro.
        if to != "self" && rank.contains_key(&to) {
            used.insert(to);
        }
    }
    used
}

/// What runs up: from a module to one of a higher layer.
fn upward(from: &str, used: &BTreeSet<String>, rank: &BTreeMap<String, usize>) -> Vec<String> {
    used.iter().filter(|to| rank[*to] < rank[from]).map(|to| format!("{from} -> {to}")).collect()
}

/// Modules that lead back to themselves: each uses another one of the list. Whoever uses nobody of them, or is used by
/// nobody, is on no circle.
fn on_circles(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut left: BTreeSet<String> = uses.keys().cloned().collect();
    loop {
        let is_between = |module: &String| {
            uses[module].iter().any(|to| left.contains(to))
                && left.iter().any(|from| uses[from].contains(module))
        };
        let next: BTreeSet<String> = left.iter().filter(|module| is_between(module)).cloned().collect();
        if next.len() == left.len() {
            return left;
        }
        left = next;
    }
}

/// Asserts that nothing of these modules, each with what it uses, runs up or in a circle.
fn assert_one_way(uses: &BTreeMap<String, BTreeSet<String>>, rank: &BTreeMap<String, usize>) {
    let up: Vec<String> = uses.iter().flat_map(|(from, used)| upward(from, used, rank)).collect();
    assert!(up.is_empty(), "these run up: {up:#?}");
    let circle = on_circles(uses);
    assert!(circle.is_empty(), "these use each other in a circle: {circle:?}");
}

/// The layers by rank; and the folders of crates of their own that the page names, each with its crate.
fn ranks() -> (BTreeMap<String, usize>, Vec<(String, String)>) {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("the checkout can be read");
    let (mut ranks, mut crates) = (BTreeMap::new(), Vec::new());
    for (rank, named) in layers(&page).into_iter().enumerate() {
        for module in named {
            let is_folder = root().join(&module).join("Cargo.toml").exists();
            let name = if is_folder { crate_in(&module) } else { module.clone() };
            if is_folder {
                crates.push((module, name.clone()));
            }
            ranks.insert(name, rank);
        }
    }
    (ranks, crates)
}

/// All files of the engine and of the crates beside it, each with its module.
fn modules(crates: &[(String, String)]) -> Vec<(PathBuf, Vec<String>)> {
    let src = root().join("src");
    let mut all: Vec<_> =
        sources(&src, &["rs"]).into_iter().map(|file| (module_of(&file, &src), file)).collect();
    for (folder, name) in crates {
        let src = root().join(folder).join("src");
        let own = |file: PathBuf| ([vec![name.clone()], module_of(&file, &src)].concat(), file);
        all.extend(sources(&src, &["rs"]).into_iter().map(own));
    }
    all.into_iter().map(|(module, file)| (file, module)).collect()
}

/// What each module uses.
fn uses(
    modules: Vec<(PathBuf, Vec<String>)>,
    rank: &BTreeMap<String, usize>,
    exported: &BTreeMap<String, String>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, from) in modules {
        if ASIDE.contains(&from[0].as_str()) || from.last().is_some_and(|last| last == "tests") {
            continue;
        }
        assert!(rank.contains_key(&from[0]), "no layer is shown for {}", from[0]);
        let code = code_of(&fs::read_to_string(&file).expect("the checkout can be read"));
        // It would lie in the root, and nobody saw from where.
        let is_shown = ["macro_export", "macro_use]"].iter().any(|word| code.contains(word));
        assert!(!is_shown, "{} exports a macro", file.display());
        uses.entry(from[0].clone()).or_default().extend(used(&code, &from, rank, exported));
    }
    uses
}

#[test]
fn no_import_runs_up_or_in_a_circle() {
    let (rank, crates) = ranks();
    for folder in fs::read_dir(root().join("crates")).expect("the checkout can be read") {
        let name = crate_in(&format!("crates/{}", folder.expect("it can be read").file_name().display()));
        assert!(rank.contains_key(&name), "docs/architecture.md has no layer for {name}");
    }
    for name in ["archive", "server", "program"].map(crate_in) {
        assert!(rank.contains_key(&name), "docs/architecture.md has no layer for {name}");
    }
    let lib = exported(&fs::read_to_string(root().join("src/lib.rs")).expect("the checkout can be read"));
    assert_one_way(&uses(modules(&crates), &rank, &lib), &rank);
}

/// Crates with layers of their own.
#[test]
fn no_import_of_the_load_test_and_the_server_runs_up_or_in_a_circle() {
    for folder in ["loadtest", "server"] {
        let page = root().join(folder).join("README.md");
        let page = fs::read_to_string(page).expect("the checkout can be read");
        let all = layers(&page).into_iter().enumerate();
        let rank: BTreeMap<String, usize> =
            all.flat_map(|(rank, modules)| modules.into_iter().map(move |module| (module, rank))).collect();
        let src = root().join(folder).join("src");
        let modules =
            sources(&src, &["rs"]).into_iter().map(|file| (file.clone(), module_of(&file, &src))).collect();
        let own_root =
            ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().find(|file| file.exists());
        let own_root = fs::read_to_string(own_root.expect("a crate has a root")).expect("it can be read");
        assert_one_way(&uses(modules, &rank, &exported(&own_root)), &rank);
    }
}

#[test]
fn a_circle_is_found_within_a_layer() {
    let uses = |edges: &[(&str, &[&str])]| {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(from, to)| ((*from).to_owned(), named(to))).collect()
    };
    assert!(on_circles(&uses(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
    let circle = on_circles(&uses(&[("a", &["b"]), ("b", &["c"]), ("c", &["b", "d"]), ("d", &[])]));
    assert_eq!(circle, ["b", "c"].map(str::to_owned).into());
}

/// Uses of a module above, in all forms that there are.
const PLANTED: &[&str] = &[
    "use crate::high::Thing;",
    "use crate::{low::{a, b}, high};",
    "use crate::{\n    low,\n    high::{self, x},\n};",
    "use super::super::high::Thing;",
    "fn f() -> crate::high::Thing { todo() }",
    "use crate::Thing;",
    "use crate::Other as Mine;",
    "pub use crate::high::Thing;",
    "macro_rules! m { () => { $crate::high::f() } }",
    "use crate::*;",
    "use crate::{low::a, *};",
    "use super::super::*;",
    "use crate as all;\nfn f(_: all::high::Thing) {}",
    "use super::super as all;\nfn f(_: all::high::Thing) {}",
    "use crate::Inner;",
    "fn f(_: crate::Deep) {}",
    "fn f(_: crate::OfTheRoot) {}",
    "const X: &str = r#\"a \" b\"#;\nuse crate::high::Thing;",
    "const X: &str = r\"\\\";\nuse crate::high::Thing;",
    "#[cfg(test)]\nmod tests;\nuse crate::high::Thing;",
    "#[cfg(test)]\nmod tests { fn f() { let c = '}'; } }\nuse crate::high::Thing;",
    "#[cfg(test)]\nfn f() -> crate::high::Thing { todo() }",
];

#[test]
fn an_upward_use_is_found_in_each_form() {
    let rank: BTreeMap<String, usize> = ["high", "low"].map(str::to_owned).into_iter().zip(0..).collect();
    let from = ["low", "file"].map(str::to_owned);
    let exported = exported(
        "pub use high::{Thing, other::Other};\npub use low::Small;\npub use tideline_model as mine;\nuse \
         high::Inner;\npub(crate) use high::inner::Deep;",
    );
    let up = |code: &str, from: &[String], rank: &BTreeMap<String, usize>| {
        upward(&from[0], &used(&code_of(code), from, rank, &exported), rank)
    };
    let found = |code: &str| !up(code, &from, &rank).is_empty();
    let rank_of_all = ["tideline_program", "high", "low", "tideline_model"].map(str::to_owned);
    let rank_of_all: BTreeMap<String, usize> = rank_of_all.into_iter().zip(0..).collect();
    for (module, planted) in [
        ("low", "use tideline_program::x;"),
        ("tideline_model", "fn f(_: &tideline::Thing) {}"),
        ("tideline_model", "use tideline::{low, Small};"),
        ("tideline_model", "pub use tideline_program::x;"),
    ] {
        let up = up(planted, &[module.to_owned(), "file".to_owned()], &rank_of_all);
        assert!(!up.is_empty(), "{planted}");
    }
    for (module, fine) in [
        ("low", "use tideline_model::Error;"),
        ("low", "use crate::mine::x;"),
        ("tideline_program", "use tideline::high::Thing;"),
        ("tideline_model", "use crate::high::x;"),
    ] {
        let up = up(fine, &[module.to_owned(), "file".to_owned()], &rank_of_all);
        assert!(up.is_empty(), "{fine}");
    }
    for planted in PLANTED {
        assert!(found(planted), "{planted}");
    }
    for fine in [
        "use crate::low::x;",
        "use super::x;",
        "use super::*;",
        "use crate::Small;",
        "// use crate::high::Thing;",
        "const X: &str = \"crate::high\";",
        "const X: &str = r#\"a \" crate::high\"#;",
        "const X: &str = br\"\\\"; const Y: &str = \"crate::high\";",
        "let r = \"r\"; use crate::low::x;",
        "fn supercrate() {}",
        "#[cfg(test)]\nmod tests { use crate::high::Thing; }",
        "#[cfg(test)]\nmod tests { fn f() { g(\"}\", '}') } use crate::high::Thing; }",
    ] {
        assert!(!found(fine), "{fine}");
    }
}
