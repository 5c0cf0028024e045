//! Holds what a server answers against `docs/openapi.json`: whatever a test asks, by whatever means, its answer is
//! looked at here.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::client::{Answer, Sent};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

/// The language of its forms.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

static CONTRACT: LazyLock<Contract> = LazyLock::new(Contract::read);

/// What is documented.
pub(crate) struct Contract {
    paths: Map<String, Value>,
    components: Value,
    /// What answers have to be, by operation and status, once it was asked for.
    forms: Mutex<HashMap<String, Arc<Validator>>>,
}

/// An operation that is documented.
#[derive(Clone, Copy)]
pub(crate) struct Documented<'a> {
    pub(crate) method: &'a str,
    pub(crate) template: &'a str,
    told: &'a Value,
}

impl Documented<'_> {
    /// Its name in what a test says.
    pub(crate) fn name(self) -> String {
        format!("{} {}", self.method, self.template)
    }

    /// The ways in which it may be asked: each the kind of token, and its scopes.
    pub(crate) fn ways(self) -> Vec<(String, Vec<String>)> {
        let ways = self.told["security"].as_array().unwrap().iter();
        let text = |scope: &Value| scope.as_str().unwrap().to_owned();
        let scopes = |of: &Value| of.as_array().unwrap().iter().map(text).collect();
        let way =
            |way: &Value| way.as_object().unwrap().iter().next().map(|(kind, of)| (kind.clone(), scopes(of)));
        ways.map(|of| way(of).unwrap_or_default()).collect()
    }

    /// The statuses that say that it was done.
    pub(crate) fn successes(self) -> impl Iterator<Item = u16> {
        let statuses = self.told["responses"].as_object().unwrap().keys();
        statuses.map(|status| status.parse().unwrap()).filter(|status| *status < 400)
    }

    /// The first names of what can be said with it.
    fn params(self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for param in self.told["parameters"].as_array().into_iter().flatten() {
            names.insert(first(param["name"].as_str().unwrap()).to_owned());
        }
        names
    }
}

/// `a` of `a[b]`.
fn first(name: &str) -> &str {
    name.split('[').next().unwrap()
}

impl Contract {
    pub(crate) fn get() -> &'static Self {
        &CONTRACT
    }

    fn read() -> Self {
        let text = std::fs::read_to_string(DOCUMENT).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        close(&mut document["components"]["schemas"]);
        let Value::Object(paths) = document["paths"].take() else { panic!("no paths in {DOCUMENT}") };
        Self { paths, components: document["components"].take(), forms: Mutex::default() }
    }

    /// What stands there, or where it says.
    fn meant<'a>(&'a self, told: &'a Value) -> &'a Value {
        let named = told["$ref"].as_str().and_then(|place| place.strip_prefix("#/components"));
        named.map_or(told, |place| self.components.pointer(place).unwrap())
    }

    /// All operations.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Documented<'_>> {
        self.paths.iter().flat_map(|(template, methods)| {
            let methods = methods.as_object().unwrap();
            methods.iter().map(|(method, told)| Documented { method, template, told })
        })
    }

    /// The operation that a request is for.
    pub(crate) fn of(&self, method: &str, path: &str) -> Option<Documented<'_>> {
        let path = path.split('?').next().unwrap();
        let path = if path == "/" { path } else { path.trim_end_matches('/') };
        // What is named is meant before what stands for anything, whatever can be done with it.
        let at = self.paths.keys().filter(|template| is_at(template, path));
        let template = at.min_by_key(|template| template.matches('{').count())?;
        let is_meant = |operation: &Documented| {
            operation.template == template && operation.method.eq_ignore_ascii_case(method)
        };
        self.operations().find(is_meant)
    }

    fn form(&self, operation: Documented, status: u16) -> Option<Arc<Validator>> {
        let response = self.meant(&operation.told["responses"][status.to_string()]);
        let content = &response["content"]["application/json"];
        let schema = content.get("schema")?;
        let mut forms = self.forms.lock().unwrap();
        let form = forms.entry(format!("{} {status}", operation.name())).or_insert_with(|| {
            let mut whole = json!({ "components": self.components, "$schema": DIALECT });
            whole.as_object_mut().unwrap().extend(schema.as_object().unwrap().clone());
            Arc::new(jsonschema::validator_for(&whole).unwrap())
        });
        Some(form.clone())
    }

    /// Fails if what came back for a request is not what is documented: its status, its kind, a field too many or too
    /// few, a kind of value.
    fn check_answer(&self, sent: &Sent, answer: &Answer) -> Option<Documented<'_>> {
        let is_text = answer.header("content-encoding").is_none() && sent.method != "HEAD";
        let (status, told) = (answer.status, if is_text { answer.lossy_text() } else { String::new() });
        // What HEAD asks for is what GET does.
        let method = if sent.method == "HEAD" { "GET" } else { &sent.method };
        let Some(operation) = self.of(method, &sent.path) else {
            let is_asked_beforehand =
                method == "OPTIONS" || ["/health", "/ready"].contains(&sent.path.as_str());
            assert!(
                status >= 400 || is_asked_beforehand,
                "{method} {} is documented nowhere, and is answered with {status}: {told}",
                sent.path
            );
            return None;
        };
        let name = operation.name();
        assert!(answer.header("x-request-id").is_some(), "{name}: no X-Request-Id");
        let comes_again = answer.header("retry-after").is_some();
        assert!(
            comes_again || ![429, 503].contains(&status),
            "{name} is answered with {status}: no Retry-After"
        );
        let Some(documented) = operation.told["responses"].get(status.to_string()) else {
            // What is documented of all operations together.
            let is_of_all = match status {
                400 | 401 | 403 | 404 => sent.header("tideline-act-as").is_some(),
                406 => sent.header("accept-encoding").is_some_and(|takes| takes.contains("q=0")),
                _ => false,
            };
            assert!(is_of_all, "{name} is answered with {status}, which is not documented: {told}");
            return None;
        };
        if let Some(kinds) = self.meant(documented)["content"].as_object() {
            let kind = answer.header("content-type").unwrap_or_default().split(';').next().unwrap();
            assert!(kinds.contains_key(kind), "{name} is answered with {status} in {kind:?}: {told}");
        }
        if let Some(form) = self.form(operation, status).filter(|_| is_text) {
            let body = serde_json::from_str(&told).unwrap();
            let wrong: Vec<String> =
                form.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(wrong.is_empty(), "{name} is answered with {status} in an undocumented form: {wrong:#?}");
        }
        Some(operation)
    }

    /// Fails if what was done for a request has a parameter that isn't documented.
    fn check_params(&self, operation: Documented, sent: &Sent) {
        let mut params = operation.params();
        let body = self.meant(&operation.told["requestBody"]);
        let body = &body["content"]["application/json"]["schema"]["properties"];
        params.extend(body.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        let names = |pairs: &str| {
            let pairs = pairs.split('&').filter(|pair| !pair.is_empty());
            let name =
                |pair: &str| percent_encoding::percent_decode_str(pair).decode_utf8_lossy().into_owned();
            pairs.map(|pair| first(&name(pair.split('=').next().unwrap())).to_owned()).collect::<Vec<_>>()
        };
        let mut asked = names(sent.path.split_once('?').map_or("", |(_, query)| query));
        match sent.header("content-type") {
            Some("application/x-www-form-urlencoded") => asked.extend(names(&sent.body)),
            _ => {
                let body: Value = serde_json::from_str(&sent.body).unwrap_or_default();
                asked.extend(body.as_object().into_iter().flatten().map(|(name, _)| first(name).to_owned()));
            }
        }
        for param in asked {
            let name = operation.name();
            assert!(params.contains(&param), "{name} is asked for {param:?}, which is not documented");
        }
    }
}

/// Looks at an answer, and at what was asked for.
pub(crate) fn check(sent: &Sent, answer: &Answer) {
    let contract = Contract::get();
    let operation = contract.check_answer(sent, answer);
    if let Some(operation) = operation.filter(|_| answer.status < 400) {
        contract.check_params(operation, sent);
    }
}

/// Looks at an answer to somebody who asks for anything.
pub(crate) fn check_whatever_was_asked(sent: &Sent, answer: &Answer) {
    Contract::get().check_answer(sent, answer);
}

fn is_at(template: &str, path: &str) -> bool {
    let (mut wanted, mut parts) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if is_such(wanted, part) => {}
            _ => return false,
        }
    }
}

/// Whether a part of a path is one of those that a template means: `@{name}` is `@` and something behind it.
fn is_such(wanted: &str, part: &str) -> bool {
    match wanted.split_once('{') {
        Some((head, _)) => part.strip_prefix(head).is_some_and(|rest| !rest.is_empty()),
        None => wanted == part,
    }
}

/// Lets no form have a field that it doesn't name.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            // An object of which the values have one form has no fields of its own.
            let is_form =
                fields.get("type") == Some(&"object".into()) && !fields.contains_key("additionalProperties");
            if is_form {
                fields.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        _ => {}
    }
}
