//! `docs/operations.md`: every call that Mastodon documents, and what becomes of it here.

use std::fmt::Write as _;

use super::answer::AnswerForm;
use super::{Access, Operation};

/// The calls that Mastodon's documentation has, with what is to be said of those that are not served.
const DOCUMENTED: &str = include_str!("documented.txt");

/// A call that is documented.
struct DocumentedCall {
    method: &'static str,
    path: &'static str,
    /// Why it isn't served: `later`, or `refused`, and a reason.
    missing: Option<&'static str>,
}

fn documented() -> Vec<DocumentedCall> {
    let lines = DOCUMENTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (call, missing) =
                line.split_once("  ").map_or((line, None), |(call, why)| (call, Some(why.trim())));
            let (method, path) = call.split_once(' ').unwrap();
            DocumentedCall { method, path, missing }
        })
        .collect()
}

/// Gives a path with one name for all of its parts that vary.
fn place(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with([':', '{']) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// The whole page.
pub(super) fn table(operations: &[Operation]) -> String {
    let documented = documented();
    let of = |call: &DocumentedCall| {
        let mut served = operations.iter();
        served.find(|served| served.method == call.method && place(served.path) == place(call.path))
    };
    let mut rows = String::new();
    let mut counts = [0; 4];
    for call in &documented {
        let (state, what) = match (of(call), call.missing) {
            (Some(served), None) if is_empty(served) => (1, format!("empty on purpose | {}", told(served))),
            (Some(served), None) => (0, format!("served | {}", told(served))),
            // Beside the table: it has to answer whatever else does not.
            (None, Some(why)) if why.starts_with("served: ") => (0, format!("served | {}", reason(why))),
            (None, Some(why)) if why.starts_with("later: ") => (2, format!("later | {}", reason(why))),
            (None, Some(why)) if why.starts_with("refused: ") => (3, format!("refused | {}", reason(why))),
            (None, why) => panic!("{} {}: documented.txt has to say why: {why:?}", call.method, call.path),
            (Some(_), Some(why)) => panic!("{} {} is served, not {why}", call.method, call.path),
        };
        counts[state] += 1;
        writeln!(rows, "| {} `{}` | {what} |", call.method, call.path).unwrap();
    }
    let is_own = |served: &&Operation| {
        !documented.iter().any(|call| of(call).is_some_and(|of| std::ptr::eq(of, *served)))
    };
    let own: Vec<&Operation> = operations.iter().filter(is_own).collect();
    let [served, empty, later, refused] = counts;
    let mut page = format!(
        "# Operations\n\n\
         All calls that Mastodon documents for clients, {} of them, and what becomes of each: {served} are served, \
         {empty} answer with\nnothing because there is nothing, {later} come later, {refused} are refused. What a \
         served one takes and answers stands in\n[openapi.json](openapi.json). Both are made of the server's own table \
         of routes; a test fails where they differ from it, or where\nan answer that any test gets differs from \
         them.\n\n\
         | call | | |\n|---|---|---|\n{rows}\n\
         Beside these:\n\n| call | |\n|---|---|\n",
        documented.len(),
    );
    for served in own {
        writeln!(page, "| {} `{}` | {} |", served.method, served.path, told(served)).unwrap();
    }
    page
}

fn reason(why: &str) -> &str {
    why.split_once(": ").map_or("", |(_, reason)| reason)
}

/// Whether a call asks for something that there never is: a list without anything on it, an object without any field.
fn is_empty(served: &Operation) -> bool {
    let AnswerForm::Json(form) = served.handler.answer else { return false };
    let form = form(&mut schemars::SchemaGenerator::default());
    let is_no_object =
        form.get("$ref").is_some_and(|form| form.as_str().is_some_and(|form| form.ends_with("/Empty")));
    form.get("maxItems").is_some_and(|most| *most == 0) || (served.method == "GET" && is_no_object)
}

fn told(served: &Operation) -> String {
    let scopes = served.access.scopes().join("` or `");
    let needs = match served.access {
        Access::Everybody => "anybody".to_owned(),
        Access::Viewer(_) => format!("anybody; with `{scopes}` each in its own way"),
        Access::Token => "any token".to_owned(),
        Access::Application(_) => format!("an application with `{scopes}`"),
        Access::User(_) => format!("an account with `{scopes}`"),
        Access::Service(_) => format!("a service with `{scopes}`"),
        Access::Client => "an application with its secret".to_owned(),
    };
    format!("{}: {needs}", served.does)
}
