//! `docs/openapi.json`.

use std::collections::BTreeSet;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::answer::AnswerForm;
use super::parameter::Parameter;
use super::{Access, Operation};
use crate::entity;
use crate::grants::Scopes;

/// The bodies in which parameters may come.
const BODIES: [&str; 3] = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"];

/// The whole document.
pub(super) fn document(operations: &[Operation]) -> String {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .for_serialize();
    let mut generator = settings.into_generator();
    let refusal = generator.subschema_for::<entity::Error>().to_value();
    let (mut paths, mut bodies) = (Map::new(), Map::new());
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_lowercase()] = told(operation, &mut bodies, &mut generator);
    }
    let mut schemas = Value::Object(generator.take_definitions(true));
    speak_json(&mut schemas);
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tideline",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What `tideline serve` answers: the client API of Mastodon, as far as it is served, and \
                calls of its own under /api/tideline. Parameters of a call with a body may come in its query, too. \
                Whatever is asked for with Tideline-Act-As may be answered with 400, 401, 403 or 404: it names nobody, \
                or whom the token may not act as; and with 406 where Accept-Encoding takes nothing at all. \
                Every answer has an X-Request-Id; answers that a limit holds for have X-RateLimit-Limit, -Remaining \
                and -Reset, and those with 429 or 503 a Retry-After.",
            "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
        },
        "tags": tags(operations),
        "paths": paths,
        "components": {
            "schemas": schemas, "requestBodies": bodies, "responses": refusals(&refusal), "securitySchemes": schemes(),
        },
    });
    serde_json::to_string_pretty(&document).unwrap() + "\n"
}

fn tags(operations: &[Operation]) -> Vec<Value> {
    let mut groups: Vec<&str> = operations.iter().map(|operation| operation.group).collect();
    groups.dedup();
    groups.into_iter().map(|name| json!({ "name": name })).collect()
}

/// Says `null` where Rust says `None`, and leaves out what makes a link in Rust's own documentation.
fn speak_json(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace("`None`", "`null`").replace("[`", "`").replace("`]", "`");
            }
            fields.values_mut().for_each(speak_json);
        }
        Value::Array(all) => all.iter_mut().for_each(speak_json),
        _ => {}
    }
}

fn told(operation: &Operation, bodies: &mut Map<String, Value>, generator: &mut SchemaGenerator) -> Value {
    let in_path = operation.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let mut params: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    let mut told = json!({
        "tags": [operation.group],
        "summary": operation.does,
        "operationId": id(operation),
        "security": security(operation.access),
        "responses": responses(operation, generator),
    });
    if operation.method == "GET" {
        params.extend(operation.params.iter().map(Parameter::in_query));
    } else if !operation.params.is_empty() {
        let body = Parameter::body(&operation.params);
        let contents: Map<String, Value> =
            BODIES.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": body }))).collect();
        bodies.insert(id(operation), json!({ "content": contents }));
        told["requestBody"] = json!({ "$ref": format!("#/components/requestBodies/{}", id(operation)) });
    }
    let takes_key = (operation.method, operation.path) == ("POST", "/api/v1/statuses");
    if takes_key {
        params.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": { "type": "string" },
            "description": "The same key says that the same status is sent again: it is not posted twice",
        }));
    }
    if !params.is_empty() {
        told["parameters"] = params.into();
    }
    told
}

/// A name for programs that make a client of the document: `getTimelinesHome`.
fn id(operation: &Operation) -> String {
    let words = operation.path.split(['/', '.', '-', '_', '{', '}']);
    let words = words.filter(|word| !word.is_empty() && !["api", "v1", "2", "0"].contains(word));
    let mut id = operation.method.to_lowercase();
    for word in words {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_uppercase());
        id.push_str(rest);
    }
    id
}

fn security(access: Access) -> Value {
    let mut ways: Vec<Value> = access.scopes().into_iter().map(|scope| json!({ "token": [scope] })).collect();
    match access {
        Access::Everybody => {}
        Access::Viewer(_) => ways.insert(0, json!({})),
        Access::Token => ways.push(json!({ "token": [] })),
        Access::Application(_) | Access::User(_) => {}
        Access::Service(_) => ways = vec![json!({ "service": access.scopes() })],
        Access::Client => ways.extend([json!({}), json!({ "client": [] })]),
    }
    ways.into()
}

fn responses(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    for status in operation.statuses() {
        let is_page = matches!(operation.handler.answer, AnswerForm::Html);
        let response = match status {
            200 => answer(&operation.handler.answer, generator),
            303 => json!({ "description": "Leads back to the application" }),
            // What is refused where people look is a page, too.
            _ if is_page => json!({ "description": refused(status), "content": { "text/html": {} } }),
            _ => json!({ "$ref": format!("#/components/responses/{status}") }),
        };
        responses.insert(status.to_string(), response);
    }
    responses.into()
}

fn answer(form: &AnswerForm, generator: &mut SchemaGenerator) -> Value {
    let (schema, is_page) = match form {
        AnswerForm::Json(schema) => (schema(generator).to_value(), false),
        AnswerForm::Page(schema) => (schema(generator).to_value(), true),
        AnswerForm::Html => {
            return json!({ "description": "A page for people", "content": { "text/html": {} } });
        }
        AnswerForm::Picture => return json!({ "description": "A picture", "content": { "image/png": {} } }),
    };
    let mut answer =
        json!({ "description": "Done", "content": { "application/json": { "schema": schema } } });
    if is_page {
        answer["headers"] = json!({ "Link": {
            "description": "The pages beside it, the next one first; absent where there is none",
            "schema": { "type": "string" },
        } });
    }
    answer
}

/// The answers that say why there is none.
fn refusals(refusal: &Value) -> Value {
    let response = |status| {
        let content = json!({ "application/json": { "schema": refusal } });
        json!({ "description": refused(status), "content": content })
    };
    let all = [400, 401, 403, 404, 409, 413, 415, 422, 429, 503];
    all.iter().map(|status| (status.to_string(), response(*status))).collect::<Map<String, Value>>().into()
}

fn refused(status: u16) -> &'static str {
    match status {
        400 => "A parameter can't be read, or is missing",
        401 => "There is no token, or no such one; or an application's secret is wrong",
        403 => "The token doesn't allow that, or nobody may do it",
        404 => "It isn't there, or not for whoever asks",
        409 => "Somebody else has changed it meanwhile",
        413 => "The body is too large",
        415 => "The body is in a form that isn't read, or has a file, which isn't taken",
        422 => "It is understood, and can't be",
        429 => "Too often; Retry-After says when to come again",
        503 => "Not now; Retry-After says when to come again",
        _ => unreachable!("no answer is made with {status}"),
    }
}

fn schemes() -> Value {
    let scopes: BTreeSet<&str> = Scopes::known().iter().copied().collect();
    let scopes: Map<String, Value> = scopes.into_iter().map(|scope| (scope.to_owned(), "".into())).collect();
    json!({
        "token": {
            "type": "oauth2",
            "description": "A token of somebody, or of an application alone. A scope holds all that begins with it \
                and a colon; `follow` what is read and written of follows, blocks and mutes.",
            "flows": {
                "authorizationCode": {
                    "authorizationUrl": "/oauth/authorize", "tokenUrl": "/oauth/token", "scopes": scopes,
                },
                "clientCredentials": { "tokenUrl": "/oauth/token", "scopes": scopes },
                "password": { "tokenUrl": "/oauth/token", "scopes": scopes },
            },
        },
        "client": {
            "type": "http", "scheme": "basic",
            "description": "An application's client_id and client_secret; they may be parameters as well.",
        },
        "service": {
            "type": "http", "scheme": "bearer",
            "description": "A token that `tideline token` has made. With the header Tideline-Act-As it acts for an \
                account, wherever a token of somebody is asked for.",
        },
    })
}
