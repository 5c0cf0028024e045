//! Reads the tables in `rules/`: for each rule why it is there, what stands in the product, and what stands there
//! without it.
//!
//! build.rs uses this file too.

/// A rule that can be taken out, or something that is always so in the copy: a bound that is smaller, a way in.
#[derive(Debug)]
pub(crate) struct RuleEntry<'t> {
    pub(crate) kind: Kind,
    pub(crate) name: &'t str,
    /// What it says, and its history (`H23`), or why it has none.
    pub(crate) why: String,
    pub(crate) changes: Vec<Change<'t>>,
    /// Files of the simulation itself, below the package, that ask for it.
    pub(crate) asked_in: Vec<&'t str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Holds unless a test takes it out.
    Rule,
    /// Is always so in the copy.
    Always,
}

/// One place in the product.
#[derive(Debug)]
pub(crate) struct Change<'t> {
    /// Below the workspace's root.
    pub(crate) file: &'t str,
    /// Stands there exactly once, whatever its spaces and line breaks.
    pub(crate) right: String,
    pub(crate) wrong: String,
}

/// Reads a table: a paragraph is an entry.
pub(crate) fn parse(table: &str) -> Vec<RuleEntry<'_>> {
    let paragraphs = table.split("\n\n").map(|text| text.trim_matches('\n'));
    paragraphs.filter(|text| !text.is_empty() && !text.starts_with('#')).map(entry).collect()
}

fn entry(text: &str) -> RuleEntry<'_> {
    let mut lines = text.lines();
    let (kind, name) = match lines.next().and_then(|line| line.split_once(' ')) {
        Some(("rule", name)) => (Kind::Rule, name),
        Some(("always", name)) => (Kind::Always, name),
        _ => panic!("a paragraph begins with `rule NAME` or `always NAME`: {text}"),
    };
    let mut entry = RuleEntry { kind, name, why: String::new(), changes: Vec::new(), asked_in: Vec::new() };
    for line in lines {
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (sign, entry.changes.last_mut()) {
            ("asked", _) => entry.asked_in.push(rest.trim_start_matches("in ")),
            ("in", _) => {
                entry.changes.push(Change { file: rest, right: String::new(), wrong: String::new() });
            }
            ("-", Some(change)) => add_line(&mut change.right, rest),
            ("+", Some(change)) => add_line(&mut change.wrong, rest),
            (_, None) if entry.asked_in.is_empty() => add_line(&mut entry.why, line),
            _ => panic!("neither `in FILE` nor `-` nor `+`: {line}"),
        }
    }
    let is_used = !entry.changes.is_empty() || !entry.asked_in.is_empty();
    assert!(is_used, "{name} changes nothing");
    entry
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Replaces the one place where a text stands, whatever its spaces and line breaks.
pub(crate) fn replaced(code: &str, right: &str, by: &str) -> Result<String, String> {
    let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let (all, wanted) = (solid(code), solid(right));
    let places: Vec<usize> = all.match_indices(&wanted).map(|(at, _)| at).collect();
    let &[at] = places.as_slice() else {
        return Err(format!("stands there {} times, not once:\n{right}", places.len()));
    };
    // Where the solid bytes stand in the code: the first one of the text, and behind its last one.
    let mut seen = 0;
    let (mut begin, mut end) = (0, 0);
    for (place, c) in code.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        if seen == at {
            begin = place;
        }
        seen += c.len_utf8();
        if seen == at + wanted.len() {
            end = place + c.len_utf8();
            break;
        }
    }
    Ok([&code[..begin], by, &code[end..]].concat())
}
