//! Holds what a server answers against `docs/openapi.json`: whatever a test asks, its answer is looked at here.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

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
        let is_at = |operation: &Documented| {
            operation.method.eq_ignore_ascii_case(method) && is_at(operation.template, path)
        };
        // What is named is meant before what stands for anything.
        self.operations().filter(is_at).min_by_key(|operation| operation.template.matches('{').count())
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

    /// Fails if what came back for a request is not what is documented: its status, a field too many or too few, a kind
    /// of value; or if what was asked for is nothing that it takes.
    pub(crate) fn check(&self, (method, path, asked): (&str, &str, &Value), status: u16, body: &Value) {
        let Some(operation) = self.of(method, path) else {
            assert!(
                status >= 400,
                "{method} {path} is documented nowhere, and is answered with {status}: {body}"
            );
            return;
        };
        let name = operation.name();
        let documented = operation.told["responses"].get(status.to_string());
        assert!(documented.is_some(), "{name} is answered with {status}, which is not documented: {body}");
        if let Some(form) = self.form(operation, status) {
            let wrong: Vec<String> =
                form.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(wrong.is_empty(), "{name} is answered with {status} in an undocumented form: {wrong:#?}");
        }
        if status == 200 {
            let query = path.split_once('?').map_or("", |(_, query)| query).split('&');
            let in_query =
                query.filter(|pair| !pair.is_empty()).map(|pair| first(pair.split('=').next().unwrap()));
            let in_body = asked.as_object().into_iter().flatten().map(|(name, _)| first(name));
            let mut params = operation.params();
            let body = self.meant(&operation.told["requestBody"]);
            let body = &body["content"]["application/json"]["schema"]["properties"];
            params.extend(body.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
            for param in in_query.chain(in_body) {
                assert!(params.contains(param), "{name} is asked for {param:?}, which is not documented");
            }
        }
    }
}

fn is_at(template: &str, path: &str) -> bool {
    let (mut wanted, mut parts) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if wanted == part || (wanted.starts_with('{') && !part.is_empty()) => {
            }
            _ => return false,
        }
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
