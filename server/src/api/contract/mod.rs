//! Documentation of the operations: `docs/openapi.json`, and the table in `docs/operations.md`.
//!
//! Both are made of the table of operations, of the types of their handlers and of `documented.txt`, which names all
//! calls that Mastodon documents. `TIDELINE_WRITE_FORMS=1 cargo test -p tideline-server --lib` writes them anew; look
//! at the difference before you keep it. The tests of a site hold every answer that they get against the former.

mod answer;
mod documented;
mod openapi;
mod parameter;

use std::path::PathBuf;

use crate::form::is_for_people;
use crate::limits::is_counted;
pub(super) use answer::{DocumentedHandler, handled_by};
pub(super) use parameter::{PAGE, Parameter, parameters_of};

/// Something that can be asked of the server.
pub(super) struct Operation {
    pub(super) group: &'static str,
    pub(super) method: &'static str,
    /// Its path, with names in braces for what is not always the same.
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) params: Vec<Parameter>,
    pub(super) does: &'static str,
    /// Statuses that don't follow from the rest.
    pub(super) statuses: &'static [u16],
    pub(super) handler: DocumentedHandler,
}

/// The right to ask. Scopes that do alike are parted by `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Anybody, and it is all the same who it is.
    Everybody,
    /// Anybody; with a token of this scope each in its own way.
    Viewer(&'static str),
    /// Whoever has a token.
    Token,
    /// An application, for itself.
    Application(&'static str),
    /// An account.
    User(&'static str),
    /// A service.
    Service(&'static str),
    /// An application that says its secret.
    Client,
}

impl Access {
    /// The scopes of which a token needs one.
    fn scopes(self) -> Vec<&'static str> {
        match self {
            Self::Viewer(scopes) | Self::Application(scopes) | Self::User(scopes) | Self::Service(scopes) => {
                scopes.split('|').collect()
            }
            Self::Everybody | Self::Token | Self::Client => Vec::new(),
        }
    }

    /// Whether a handler has to look at who asks.
    fn is_asked(self) -> bool {
        !matches!(self, Self::Everybody | Self::Client)
    }
}

impl Operation {
    /// Every status that its answers can have, unless they are asked for as somebody else (`Tideline-Act-As`).
    fn statuses(&self) -> Vec<u16> {
        let mut statuses = vec![200, 503];
        statuses.extend(self.statuses);
        if is_counted(self.path) {
            statuses.push(429);
        }
        if self.handler.reads_params {
            // However they come: GET takes a body, too.
            statuses.extend([400, 413, 415]);
        }
        if self.path.contains('{') && !matches!(self.access, Access::User(_)) {
            statuses.push(404);
        }
        match self.access {
            Access::Everybody => {}
            Access::Client => statuses.push(401),
            // An application alone is nobody; and whoever asks may be gone since it was looked at.
            Access::User(_) => statuses.extend([401, 403, 404, 422]),
            _ => statuses.extend([401, 403]),
        }
        if self.method != "GET" {
            statuses.push(409);
        }
        statuses.sort_unstable();
        let named_twice =
            self.statuses.iter().find(|named| statuses.iter().filter(|of| of == named).count() > 1);
        assert_eq!(named_twice, None, "{} {} answers with it anyway", self.method, self.path);
        statuses
    }
}

#[test]
fn what_people_open_is_what_answers_with_pages() {
    for operation in super::operations() {
        let is_page = matches!(operation.handler.answer, answer::AnswerForm::Html);
        assert_eq!(is_for_people(operation.path), is_page, "{}", operation.path);
    }
}

/// A file of the documentation.
fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// Fails if a file of the documentation is another one than this; or writes it, if it is asked to.
fn assert_written(name: &str, wanted: &str) {
    let path = document(name);
    if std::env::var_os("TIDELINE_WRITE_FORMS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(wanted.lines()).position(|(written, wanted)| written != wanted);
    let line = differs.unwrap_or_else(|| written.lines().count().min(wanted.lines().count()));
    assert!(
        written == wanted,
        "docs/{name} is not what the server answers from line {} on: {:?} instead of {:?}; TIDELINE_WRITE_FORMS=1 \
         writes it anew",
        line + 1,
        written.lines().nth(line),
        wanted.lines().nth(line),
    );
}

#[test]
fn the_documentation_tells_of_the_operations_as_they_are() {
    let operations = super::operations();
    assert_written("openapi.json", &openapi::document(&operations));
    assert_written("operations.md", &documented::table(&operations));
}

#[test]
fn a_row_says_of_its_handler_what_its_types_say() {
    for operation in super::operations() {
        let call = format!("{} {}", operation.method, operation.path);
        assert_eq!(operation.access.is_asked(), operation.handler.looks_at_who_asks, "{call}: who asks");
        assert_eq!(!operation.params.is_empty(), operation.handler.reads_params, "{call}: parameters");
        assert!(!operation.does.ends_with('.'), "{call}: {}", operation.does);
    }
}
