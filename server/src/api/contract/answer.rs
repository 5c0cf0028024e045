//! A handler as its types describe it: what it answers, and what it looks at.

use std::borrow::Cow;
use std::future::Future;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::api::limited::CountedClient;
use crate::api::pictures::Picture;
use crate::app::Shared;
use crate::auth::caller::{Caller, WhoeverAsks};
use crate::entity::{Id, Status};
use crate::form::FormPage;
use crate::http::path::PathId;
use crate::http::{Day, Json, Paged, PagedText, Params, Refusal, Timestamp};

/// Forms of what writes itself as text.
macro_rules! text {
    ($($name:ident $format:literal $what:literal),*) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", $format: $what })
            }
        }
    )*};
}

text!(Id "pattern" "^[0-9]+$", Timestamp "format" "date-time", Day "format" "date");

/// What is known of a handler.
pub(in crate::api) struct DocumentedHandler {
    pub(super) answer: AnswerForm,
    pub(super) looks_at_who_asks: bool,
    pub(super) reads_params: bool,
}

/// What an answer of 200 is.
pub(in crate::api) enum AnswerForm {
    /// JSON of this form.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// The same, with links to the pages beside it.
    Page(fn(&mut SchemaGenerator) -> Schema),
    /// A page for people.
    Html,
    /// A PNG.
    Picture,
}

/// Tells what is known of this handler.
pub(in crate::api) fn handled_by<H: Handles<Args>, Args>(_: H) -> DocumentedHandler {
    DocumentedHandler {
        answer: H::Answer::FORM,
        looks_at_who_asks: H::LOOKS_AT_WHO_ASKS,
        reads_params: H::READS_PARAMS,
    }
}

/// A function that handles requests, with these arguments.
pub(in crate::api) trait Handles<Args> {
    type Answer: DocumentedAnswer;
    const LOOKS_AT_WHO_ASKS: bool;
    const READS_PARAMS: bool;
}

macro_rules! handles {
    ($($arg:ident),*) => {
        impl<H, F, $($arg),*> Handles<($($arg,)*)> for H
        where
            H: Fn($($arg),*) -> F,
            F: Future,
            F::Output: DocumentedAnswer,
            $($arg: Argument,)*
        {
            type Answer = F::Output;
            const LOOKS_AT_WHO_ASKS: bool = false $(|| $arg::IS_WHO_ASKS)*;
            const READS_PARAMS: bool = false $(|| $arg::IS_PARAMS)*;
        }
    };
}

handles!();
handles!(A);
handles!(A, B);
handles!(A, B, C);
handles!(A, B, C, D);
handles!(A, B, C, D, E);
handles!(A, B, C, D, E, G);

/// Something that handlers get of a request.
pub(in crate::api) trait Argument {
    const IS_WHO_ASKS: bool = false;
    const IS_PARAMS: bool = false;
}

impl Argument for State<Shared> {}
impl Argument for Path<String> {}
impl Argument for Path<(String, String)> {}
impl Argument for PathId {}
impl Argument for Uri {}
impl Argument for HeaderMap {}
impl Argument for CountedClient {}
impl Argument for Caller {
    const IS_WHO_ASKS: bool = true;
}
impl Argument for WhoeverAsks {
    const IS_WHO_ASKS: bool = true;
}
impl Argument for Params {
    const IS_PARAMS: bool = true;
}

/// Something that handlers answer.
pub(in crate::api) trait DocumentedAnswer {
    const FORM: AnswerForm;
}

impl<T: JsonSchema> DocumentedAnswer for Json<T> {
    const FORM: AnswerForm = AnswerForm::Json(|generator| generator.subschema_for::<T>());
}

impl<T: JsonSchema> DocumentedAnswer for Paged<T> {
    const FORM: AnswerForm = AnswerForm::Page(|generator| generator.subschema_for::<Vec<T>>());
}

/// Pages of statuses alone are remembered as text.
impl DocumentedAnswer for PagedText {
    const FORM: AnswerForm = AnswerForm::Page(|generator| generator.subschema_for::<Vec<Status>>());
}

impl DocumentedAnswer for FormPage {
    const FORM: AnswerForm = AnswerForm::Html;
}

impl DocumentedAnswer for Picture {
    const FORM: AnswerForm = AnswerForm::Picture;
}

impl DocumentedAnswer for Response {
    const FORM: AnswerForm = AnswerForm::Html;
}

impl<A: DocumentedAnswer> DocumentedAnswer for Result<A, Refusal> {
    const FORM: AnswerForm = A::FORM;
}
