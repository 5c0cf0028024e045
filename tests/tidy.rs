//! Files fit a head, lines a screen, and each history that code names is told. (Functions of Rust:
//! `too-many-lines-threshold` in clippy.toml, which nobody may lift; it counts neither comments nor blank lines.)

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "support/sources.rs"]
mod sources;

use sources::sources;

/// Files of Rust, and of Lua.
const CODE: [&str; 2] = ["rs", "lua"];

/// Lines of a file, with its tests.
const LINES_MAX: usize = 500;
/// Lines of a function, in Lua: the same as in Rust.
const FUNCTION_LINES_MAX: usize = 70;
/// Columns of a line, comments and texts too.
const COLUMNS_MAX: usize = 120;
/// Lints of which whoever lifts the bound on a function's lines names one; but for copies of what is checked elsewhere.
const LIFTED: [&str; 3] = ["clippy::too_many_lines", "clippy::pedantic", "clippy::all"];
const COPIED: &str = "AS_IT_IS";

/// What is too long in a file: the file itself or a function; lines.
fn too_long(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut whole, mut wide, lines) = (Vec::new(), Vec::new(), text.lines().count());
    if lines > LINES_MAX {
        whole.push(format!("{lines} lines: at most {LINES_MAX}"));
    }
    for (n, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            wide.push(format!("line {}: {columns} columns, at most {COLUMNS_MAX}", n + 1));
        }
        let is_named = LIFTED.iter().any(|lint| line.contains(lint));
        if is_named && !line.contains("LIFTED") && !line.contains(COPIED) {
            whole.push(format!("line {}: lifts the bound on a function's lines", n + 1));
        }
    }
    (whole, wide)
}

/// Functions of Lua that are too long. They begin and end at the beginning of a line.
fn long_functions(text: &str) -> Vec<String> {
    let (mut found, mut begun) = (Vec::new(), None);
    for (n, line) in text.lines().enumerate() {
        if line.starts_with("local function ") || line.starts_with("function ") {
            begun = Some((n, line));
        } else if line == "end"
            && let Some((first, head)) = begun.take()
        {
            let lines = n + 1 - first;
            if lines > FUNCTION_LINES_MAX {
                found.push(format!("{head} has {lines} lines, at most {FUNCTION_LINES_MAX}"));
            }
        }
    }
    found
}

#[test]
fn files_functions_and_lines_are_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = sources(root, &CODE);
    assert!(files.len() > 300, "only {} files were found", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("the checkout can be read");
        let name = file.strip_prefix(root).expect("it lies below").display().to_string();
        let (mut whole, wide) = too_long(&text);
        if name.ends_with(".lua") {
            whole.extend(long_functions(&text));
        }
        found.extend(whole.into_iter().chain(wide).map(|what| format!("{name}: {what}")));
    }
    assert!(found.is_empty(), "{} too long:\n{}", found.len(), found.join("\n"));
}

/// The types that a file declares at its top.
fn types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = match line.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ").map_or("", |(_, item)| item),
            None => line.strip_prefix("pub ").unwrap_or(line),
        };
        let (kind, rest) = line.split_once(' ')?;
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        matches!(kind, "struct" | "enum" | "trait" | "type" | "union").then_some(name)
    })
}

/// Files of the product: all crates but the load test and the simulation, by their places, with what they say.
fn product() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parts = ["src", "crates", "archive/src", "server/src", "program/src"];
    let files = parts.iter().flat_map(|part| sources(&root.join(part), &CODE));
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("the checkout can be read");
        (file.strip_prefix(root).expect("it lies below").display().to_string(), text)
    };
    files.map(read).filter(|(name, _)| !name.starts_with("crates/tideline-simulation/")).collect()
}

/// A reader who meets a name knows which type is meant, in whichever crate. What clients get is called as Mastodon's
/// documentation calls it, so those names stand for themselves; models, of the load test and of the simulation, call
/// things as the engine does.
#[test]
fn no_name_stands_for_two_types() {
    const FOR_CLIENTS: &str = "server/src/entity/";
    // Types of tests stay in their files.
    let product: Vec<_> = product().into_iter().filter(|(file, _)| !file.ends_with("/tests.rs")).collect();
    let mut found = Vec::new();
    for group in [|file: &str| !file.starts_with(FOR_CLIENTS), |file: &str| file.starts_with("server/")] {
        let mut seen = BTreeMap::new();
        for (file, text) in product.iter().filter(|(file, _)| group(file)) {
            for name in types(text) {
                if let Some(other) = seen.insert(name, file) {
                    found.push(format!("{name}: {other} and {file}"));
                }
            }
        }
        assert!(seen.len() > 100, "only {} types were found", seen.len());
    }
    assert!(found.is_empty(), "two types of one name:\n{}", found.join("\n"));
    let planted = "pub(crate) struct Page<'a> {\npub type Aged<V> = V;\nenum Way {\n    struct Inner;\n// trait Not\n\
                   pub(in crate::api) trait Told {}\n";
    assert_eq!(types(planted).collect::<Vec<_>>(), ["Page", "Aged", "Way", "Told"]);
}

/// Names of public methods, and of which type each is.
fn methods(text: &str) -> Vec<(String, String)> {
    let (mut of, mut found) = (None, Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("impl") {
            let name = rest.split_once('>').filter(|_| rest.starts_with('<')).map_or(rest, |(_, name)| name);
            let name = name.trim().trim_end_matches(" {");
            of = Some(name.split_once('<').map_or(name, |(name, _)| name).to_owned());
        } else if line == "}" {
            of = None;
        } else if let (Some(of), Some(rest)) = (&of, line.strip_prefix("    pub ")) {
            let name = rest.trim_start_matches("async ").strip_prefix("fn ");
            let name = name.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
            found.extend(name.map(|name| (name.to_owned(), of.clone())));
        }
    }
    found
}

/// `Engine::followers` and `Viewer::followers` would differ by privacy, and nothing but the receiver would tell. What
/// is raw is `stored()`.
#[test]
fn nothing_that_is_asked_as_somebody_is_asked_of_the_engine_too() {
    let mut of = BTreeMap::<String, BTreeSet<String>>::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &CODE) {
        for (name, whose) in methods(&fs::read_to_string(&file).expect("the checkout can be read")) {
            of.entry(whose).or_default().insert(name);
        }
    }
    let asked = |whose: &str| of.get(whose).unwrap_or_else(|| panic!("{whose} has no methods"));
    for whose in ["Viewer", "Reader"] {
        let both: Vec<_> = asked("Engine").intersection(asked(whose)).collect();
        assert!(asked(whose).len() > 5 && both.is_empty(), "of the engine and of a {whose}: {both:?}");
    }
    let planted = "impl<'a> Viewer<'a> {\n    pub fn post(self) {}\n    fn own() {}\n}\npub fn free() {}\n";
    assert_eq!(methods(planted), [("post".to_owned(), "Viewer".to_owned())]);
}

#[test]
fn what_is_too_long_is_found() {
    let count = |text: &str| {
        let (whole, wide) = too_long(text);
        (whole.len(), wide.len())
    };
    assert_eq!(count(&format!("{}\n", "x".repeat(COLUMNS_MAX))), (0, 0));
    assert_eq!(count(&format!("// {}\n", "x".repeat(COLUMNS_MAX))), (0, 1));
    assert_eq!(count(&"x\n".repeat(LINES_MAX)), (0, 0));
    assert_eq!(count(&"x\n".repeat(LINES_MAX + 1)), (1, 0));
    for lint in LIFTED {
        assert_eq!(count(&format!("#[allow({lint})]\nfn f() {{}}\n")), (1, 0));
    }
    let function = |lines: usize| format!("local function f()\n{}end\n", "  g()\n".repeat(lines - 2));
    assert_eq!(long_functions(&function(FUNCTION_LINES_MAX)), Vec::<String>::new());
    assert_eq!(long_functions(&[function(3), function(FUNCTION_LINES_MAX + 1)].concat()).len(), 1);
}

/// Numbers of histories in a text: H12, H39b.
fn histories(text: &str) -> BTreeSet<&str> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_of_word(c));
    let is_number = |word: &&str| {
        word.strip_prefix('H').is_some_and(|rest| {
            let digits = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
            rest.len() <= digits.len() + 1 && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        })
    };
    words.filter(is_number).collect()
}

/// What docs/design.md tells: `- **H12** ...`.
fn told(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("**"))
        .map(|(number, _)| number)
        .collect()
}

/// Tables of the simulation's rules.
fn rules() -> impl Iterator<Item = PathBuf> {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/tideline-simulation/rules");
    fs::read_dir(tables).expect("there are tables").map(|table| table.expect("it can be read").path())
}

/// Histories that something catches: a row of docs/testing.md names them, `| H12, H13 | ...`, or a rule of the
/// simulation, which has a line of its own for them, and a proof.
fn caught<'t>(page: &'t str, rules: &'t str) -> BTreeSet<&'t str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let by_rules = rules.lines().filter(|line| line.starts_with('H'));
    rows.map(|(first, _)| first).chain(by_rules).flat_map(histories).collect()
}

#[test]
fn each_history_that_is_told_is_caught() {
    let read = |path: PathBuf| fs::read_to_string(path).expect("the checkout can be read");
    let page = |name: &str| read(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name));
    let (design, testing, rules) =
        (page("design.md"), page("testing.md"), rules().map(read).collect::<String>());
    let (told, caught) = (told(&design), caught(&testing, &rules));
    let told: BTreeSet<&str> = told.into_iter().flat_map(histories).collect();
    assert!(told.len() > 200, "only {} were found", told.len());
    let missed: Vec<&&str> = told.difference(&caught).collect();
    assert!(missed.is_empty(), "no row of docs/testing.md and no rule names {missed:?}");
}

#[test]
fn each_history_that_code_names_is_told() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/design.md")).expect("the checkout can be read");
    let (told, mut files) = (told(&page), Vec::new());
    for folder in ["src", "archive/src", "crates", "program", "loadtest/src", "server/src"] {
        files.extend(sources(&root.join(folder), &CODE));
    }
    files.extend(rules());
    let (mut untold, mut named) = (BTreeSet::new(), 0);
    for file in files {
        let text = fs::read_to_string(&file).expect("the checkout can be read");
        let of_file = histories(&text);
        named += of_file.len();
        untold.extend(of_file.difference(&told).map(|number| format!("{number} in {}", file.display())));
    }
    assert!(named > 200, "only {named} were found");
    assert!(untold.is_empty(), "docs/design.md doesn't tell {untold:#?}");
}

#[test]
fn a_history_is_found_by_its_number() {
    let found = histories("// H12: so; (H39b), `H7`. H and H1x2, SHA1, H12_a, Hash, HGET");
    assert_eq!(found, BTreeSet::from(["H12", "H39b", "H7"]));
    assert_eq!(told("- **H12** A. (H13)\n  **H14**\n- H15"), BTreeSet::from(["H12"]));
    let found = caught("| H1, H2 | H3 |\n| rows | H4 |\nH5\n", "rule\nsays H6\nH7, H8\n- // H9\n");
    assert_eq!(found, BTreeSet::from(["H1", "H2", "H7", "H8"]));
}

/// Tests that were red once are run again and again by their names (`scripts/repeat-tests.sh --once-red`).
#[test]
fn what_was_red_once_is_a_test_and_says_why() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = sources(root, &CODE);
    let all: String = files.iter().map(|file| fs::read_to_string(file).expect("it can be read")).collect();
    let listed = fs::read_to_string(root.join("scripts/once-red.txt")).expect("there is a list");
    let listed: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(listed.len() > 15, "{} tests", listed.len());
    for line in listed {
        let (name, why) = line.split_once('\t').unwrap_or((line, ""));
        let function = name.rsplit("::").next().unwrap_or(name);
        assert!(all.contains(&format!("fn {function}()")), "there is no test {name}");
        assert!(!why.is_empty(), "why was {name} red?");
    }
}

/// Words that documentation often began with where it had no noun and no verb.
const CLAUSES: [&str; 13] = [
    "What", "Who", "Whom", "Whose", "Whoever", "Whatever", "Which", "Why", "Where", "When", "How", "Those",
    "That",
];

/// Beginnings that lean on what stands around: a reader of the public interface may have come by a search.
const LEANING: [&str; 4] = ["It ", "Its ", "With ", "On "];

/// Modules, types, functions, constants and implementations whose documentation begins with a clause, and public ones
/// whose documentation leans on something: their lines.
fn clauses(text: &str) -> Vec<usize> {
    const ITEMS: [&str; 11] = [
        "struct ",
        "enum ",
        "trait ",
        "type ",
        "fn ",
        "async fn ",
        "const ",
        "static ",
        "mod ",
        "impl ",
        "impl<",
    ];
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let is_item = |line: &str| {
        let bare = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub(super) ")).unwrap_or(line);
        let bare = bare.trim_start_matches("pub ");
        ITEMS.iter().any(|item| bare.starts_with(item))
    };
    let begins = (0..lines.len()).filter(|n| is_doc(lines[*n]) && (*n == 0 || !is_doc(lines[n - 1])));
    begins
        .filter(|n| {
            let said = lines[*n].trim_start_matches(['/', '!']).trim_start();
            let word = said.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            let behind = lines[*n..].iter().find(|line| !is_doc(line) && !line.starts_with("#["));
            let is_item = lines[*n].starts_with("//!") || behind.is_some_and(|line| is_item(line));
            let leans = LEANING.iter().any(|begin| said.starts_with(begin));
            let is_public = behind.is_some_and(|line| line.starts_with("pub "));
            is_item && (CLAUSES.contains(&word) || said.starts_with("The same") || leans && is_public)
        })
        .map(|n| n + 1)
        .collect()
}

#[test]
fn documentation_begins_with_no_clause() {
    let mut found = Vec::new();
    for (file, text) in product() {
        found.extend(clauses(&text).into_iter().map(|line| format!("{file}:{line}")));
    }
    let begin = format!("{CLAUSES:?} or `The same`, or, where everybody reads it, with {LEANING:?}");
    assert!(found.is_empty(), "{} begin with {begin}:\n{}", found.len(), found.join("\n"));
    let planted = "//! How pages are read.\n\n/// What a reader sees.\n#[derive(Debug)]\npub(crate) struct View {\n    \
                   /// What it was read by.\n    pub(crate) by: u64,\n}\n\n/// A view.\nstruct Other;\n\
                   /// Who reads.\nfn reader() {}\n/// Reads.\npub fn read() {}\n\
                   /// Its name.\npub fn name() {}\n/// Its age.\nfn age() {}\n/// The same.\nfn old() {}\n";
    assert_eq!(clauses(planted), [1, 3, 12, 16, 20]);
}

/// What docs/architecture.md says to open is there.
#[test]
fn files_that_the_architecture_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the checkout can be read");
    let files: Vec<String> = ["src", "crates", "archive", "program", "server", "tests"]
        .iter()
        .flat_map(|folder| sources(&root.join(folder), &CODE))
        .map(|file| file.display().to_string())
        .collect();
    let is_file =
        |name: &&str| CODE.iter().any(|end| name.ends_with(&format!(".{end}"))) && !name.contains(' ');
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_file).collect();
    let is_there = |name: &str| files.iter().any(|file| file.ends_with(&format!("/{name}")));
    let gone: Vec<&&str> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(named.len() > 100 && gone.is_empty(), "of {} there are no such files: {gone:?}", named.len());
}
