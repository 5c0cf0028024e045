//! Parameters of calls: what each name means, wherever it is asked for.

use serde_json::{Map, Value, json};

/// Parameters that pages are asked for with.
pub(in crate::api) const PAGE: &str = "limit max_id since_id min_id";

/// A parameter that an operation takes.
pub(in crate::api) struct Parameter {
    /// As its row says it: `id[]` is several of them, `a[b]` one inside another, and `*` stands behind what a call
    /// can't do without.
    pub(super) said: &'static str,
}

/// The parameters that a row names.
pub(in crate::api) fn parameters_of(rows: &[&'static str]) -> Vec<Parameter> {
    rows.iter().flat_map(|row| row.split_whitespace()).map(|said| Parameter { said }).collect()
}

impl Parameter {
    fn is_needed(&self) -> bool {
        self.said.ends_with('*')
    }

    fn name(&self) -> &'static str {
        self.said.trim_end_matches('*')
    }

    /// The values that it takes, and its meaning.
    fn schema(&self) -> Value {
        let (kind, description) = meaning(self.name());
        let one = match kind {
            ParameterKind::Text => json!({ "type": "string" }),
            ParameterKind::Flag => json!({ "type": "boolean" }),
            ParameterKind::Number => json!({ "type": "integer" }),
            ParameterKind::OneOf(names) => json!({ "type": "string", "enum": names }),
        };
        let is_many = self.name().ends_with("[]");
        let mut schema = if is_many { json!({ "type": "array", "items": one }) } else { one };
        schema["description"] = description.into();
        schema
    }

    /// It in the query of a call without a body.
    pub(super) fn in_query(&self) -> Value {
        let mut schema = self.schema();
        let description = schema["description"].take();
        schema.as_object_mut().unwrap().remove("description");
        json!({
            "name": self.name(), "in": "query", "required": self.is_needed(),
            "description": description, "schema": schema,
        })
    }

    /// A body with these.
    pub(super) fn body(params: &[Self]) -> Value {
        let mut body = json!({ "type": "object", "properties": {} });
        let needed: Vec<&str> = params.iter().filter(|param| param.is_needed()).map(Self::first).collect();
        if !needed.is_empty() {
            body["required"] = needed.into();
        }
        for param in params {
            let mut place = &mut body;
            let mut parts = param.name().split('[').map(|part| part.trim_end_matches(']')).peekable();
            while let Some(part) = parts.next() {
                let is_inside = parts.peek().is_some_and(|next| !next.is_empty());
                let is_many = parts.next_if(|next| next.is_empty()).is_some();
                let is_last = parts.peek().is_none();
                let properties = place["properties"].as_object_mut().unwrap();
                if is_last && !(is_many && is_inside) {
                    properties.insert(part.to_owned(), param.schema());
                    break;
                }
                let object = json!({ "type": "object", "properties": Map::new() });
                let new = if is_many { json!({ "type": "array", "items": object }) } else { object };
                let inside = properties.entry(part.to_owned()).or_insert(new);
                place = if is_many { &mut inside["items"] } else { inside };
            }
        }
        body
    }

    fn first(&self) -> &'static str {
        self.name().split('[').next().unwrap_or_default()
    }
}

/// The buttons of all pages' forms.
const BUTTONS: &[&str] = &[
    "log_in", "log_out", "approve", "deny", "end", "end_all", "address", "ask", "set", "confirm", "sign_up",
];

enum ParameterKind {
    Text,
    Flag,
    Number,
    OneOf(&'static [&'static str]),
}

/// The kind of value that a name takes, and its meaning.
fn meaning(name: &str) -> (ParameterKind, &'static str) {
    use ParameterKind::*;
    PAGES
        .iter()
        .chain(TEXTS)
        .find(|(known, _)| *known == name)
        .map(|(_, means)| (Text, *means))
        .unwrap_or_else(|| match name {
            "limit" => (Number, "How many, at most"),
            "offset" => (Number, "How many to leave out at the beginning"),
            "role" => (OneOf(&["owner", "moderator", "member"]), "What it may do there"),
            "duration" => (Number, "For how many seconds; 0: until it is ended"),
            "expires_in" => (Number, "After how many seconds it ends"),
            "visibility" => (OneOf(&["public", "unlisted", "private", "direct"]), "Who may see it"),
            "source[privacy]" => {
                (OneOf(&["public", "unlisted", "private", "direct"]), "Who may see one's statuses")
            }
            "order" => (
                OneOf(&["time", "importance"]),
                "What comes first; by importance a page goes on by its link alone",
            ),
            "replies_policy" => (OneOf(&["followed", "list", "none"]), "Whose answers the list shows"),
            "type" => (OneOf(&["accounts", "hashtags", "statuses"]), "What alone is searched"),
            "category" => (OneOf(&["spam", "legal", "violation", "other"]), "What a report is about"),
            "response_type" => (OneOf(&["code"]), "What the application gets"),
            "code_challenge_method" => (OneOf(&["S256"]), "How the challenge was made"),
            "act" => (OneOf(BUTTONS), "Which button was pressed"),
            "grant_type" => (
                OneOf(&["authorization_code", "client_credentials", "password"]),
                "What the token is given for",
            ),
            _ => {
                let flag = FLAGS.iter().find(|(known, _)| *known == name);
                let (_, means) = flag.unwrap_or_else(|| panic!("nothing says what {name:?} means"));
                (Flag, *means)
            }
        })
}

const PAGES: &[(&str, &str)] = &[
    ("max_id", "Only what is older than this"),
    ("since_id", "Only what is newer than this, the newest first"),
    ("min_id", "Only what is newer than this, and of that what is next to it"),
];

const TEXTS: &[(&str, &str)] = &[
    (
        "account_id",
        "Only what this account did; of reports: what is about it; of a report, and in a group: whom it is about",
    ),
    ("account_ids[]", "Ids of accounts"),
    ("chat", "The chat that it is a message of"),
    ("acct", "The account's name; the site may stand behind it"),
    ("all[]", "Hashtags that have to be there as well"),
    ("any[]", "Hashtags that do as well"),
    ("client_id", "What the application is known by"),
    ("client_name", "What the application is called"),
    ("client_secret", "The application's secret"),
    ("code", "What the page has given the application"),
    ("code_challenge", "The hash of a secret that the application keeps until it wants the token"),
    ("code_verifier", "That secret"),
    ("comment", "What is noted; of a report: what is wrong"),
    (
        "created_at",
        "When the account was made, a day or a moment; without it, nobody knows: it shows as 1970",
    ),
    (
        "direct_posts",
        "How many direct posts it may write within the span of the site's limit; empty: as others",
    ),
    ("display_name", "The name that is shown"),
    ("email", "An address of e-mail"),
    ("exclude_types[]", "Without these kinds"),
    ("fields_attributes[][name]", "What a row of the account's table is about"),
    ("fields_attributes[][value]", "What the row says"),
    ("followed_accounts", "How many accounts it may follow; empty: as others"),
    ("follows", "How often it may follow somebody within the span of the site's limit; empty: as others"),
    ("form", "What the page has written into its form"),
    (
        "group_posts",
        "How many posts it may write into groups within the span of the site's limit; empty: as others",
    ),
    ("home[last_read_id]", "The last status of home that was read"),
    ("id", "Its id"),
    ("id[]", "Ids"),
    ("in_reply_to_id", "The status that it answers"),
    ("language", "Its language"),
    ("invite_code", "What somebody was invited with"),
    ("languages[]", "Languages of the statuses that are wanted: not kept yet"),
    ("locale", "The language of what is written to whoever signs up"),
    (
        "mentions_of_strangers",
        "How many strangers it may mention within the span of the site's limit; empty: as others",
    ),
    ("none[]", "Hashtags that must not be there"),
    ("note", "What the account says of itself"),
    ("notifications[last_read_id]", "The last notification that was read"),
    ("password", "The password"),
    ("posts", "How many posts it may write within the span of the site's limit; empty: as others"),
    ("q", "What is looked for"),
    ("quoted_status_id", "The status that it quotes"),
    ("reason", "Why somebody wants to come"),
    ("redirect_uri", "Where the application wants its answer: one of the addresses that it has named"),
    ("redirect_uris[]", "Where the application may want its answer; or one text with a line for each"),
    ("reports", "How often it may report others within the span of the site's limit; empty: as others"),
    ("rule_ids[]", "The rules of the site that were broken"),
    ("scope", "What the token is to allow, with spaces between; `read` if nothing is said"),
    ("scopes", "What the application may ask for, with spaces between; `read` if nothing is said"),
    ("session", "The session that is ended"),
    ("source[language]", "The language of one's statuses"),
    ("spoiler_text", "What is shown in its place at first"),
    ("state", "What the application gets back with its answer"),
    ("status", "What it says"),
    ("status_ids[]", "The statuses that a report is about, of that account"),
    ("tagged", "Only statuses with this hashtag"),
    ("timeline[]", "Of which timelines: `home`, `notifications`"),
    ("title", "What the list is called"),
    ("token", "The token"),
    ("types[]", "Only these kinds"),
    ("username", "The name; to log in, an address of e-mail does as well"),
    ("website", "The application's page"),
];

const FLAGS: &[(&str, &str)] = &[
    ("agreement", "Whether whoever signs up agrees to what holds here"),
    ("announcement", "Whether the staff alone posts into it"),
    ("bot", "Whether nobody sits behind it"),
    ("discoverable", "Whether it may be suggested to others"),
    ("exclude_reblogs", "Without what the account passes on"),
    ("exclude_replies", "Without answers to others"),
    ("exclusive", "Whether what the list shows stays out of home"),
    ("following", "Only accounts that one follows"),
    ("force_login", "Whether somebody who has logged in has to do it again"),
    ("forward", "Whether another site is told: none is"),
    ("group", "Whether it stands for many"),
    ("hide_collections", "Whether nobody is shown whom it follows and who follows it"),
    ("indexable", "Whether search engines, and others by their words, may find its statuses"),
    ("local", "Only statuses of this site: all are"),
    ("locked", "Whether it is asked before somebody follows it"),
    ("notifications", "Whether one is not told what it does, either: one never is"),
    ("notify", "Whether one is told of each of its statuses: not kept yet"),
    ("only_media", "Only statuses with pictures, films or sounds: there are none yet"),
    ("pinned", "Only what stands above the others"),
    ("reblogs", "Whether what it passes on comes into one's home"),
    ("remote", "Only statuses of other sites: there are none"),
    ("hidden", "Whether nobody but its author sees the status"),
    ("becomes", "What the account is from now on: active, limited, suspended"),
    ("resolved", "Only what somebody has resolved, instead of what is open"),
    ("resolve", "Whether other sites are asked: none is"),
    ("sensitive", "Whether its pictures are hidden at first"),
    ("source[sensitive]", "Whether the pictures of one's statuses are hidden at first"),
    ("with_suspended", "Whether suspended accounts are told of, too: they always are"),
];
