//! Every operation that is documented, asked for once by whoever may, and by those who may not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tideline::{AccountId, NewReport, ReportCategory, ReportQuery};
use tideline_server::accounts::{AccountRole, set_role};
use tideline_server::service;

use super::contract::{Contract, Documented};
use super::served::{PASSWORD, Person, Served, id};

/// All scopes that say of what they are; those without say the same of everything.
const SCOPES: &str = "read:accounts read:blocks read:bookmarks read:favourites read:filters read:follows read:lists \
    read:mutes read:notifications read:search read:statuses write:accounts write:blocks write:bookmarks \
    write:conversations write:favourites write:filters write:follows write:lists write:media write:mutes \
    write:notifications write:reports write:statuses profile push admin:read:reports admin:write:reports \
    admin:read:accounts admin:write:accounts";
/// Those of them that the scope `follow` stands for are named beside it.
const APPLICATION: &str = "read write follow profile push admin:read admin:write";

/// Pages' own forms, and what links of letters lead to: `forms` walks along these.
pub(super) const FORMS: [&str; 8] = [
    "post /oauth/authorize",
    "post /auth/sign_up",
    "post /auth/account",
    "post /auth/password",
    "get /auth/reset",
    "post /auth/reset",
    "get /auth/confirm",
    "post /auth/confirm",
];

struct World {
    site: Served,
    ada: Person,
    ben: Person,
    cleo: Person,
    status: String,
    /// One of Ben's.
    shout: String,
    list: String,
    /// Notifications of ada's.
    told: Vec<String>,
    client: (String, String),
    /// A session of ada's.
    session: String,
    service: String,
    /// Reports: two of statuses that were held back, one that Ben has made.
    reports: Vec<String>,
    /// A private group of Ada's, and a status that stands there.
    group: String,
    posted: String,
    /// A chat of Ada's with who has written there.
    chat: String,
    /// Who asks to join it, as Cleo does.
    eve: Person,
}

impl World {
    async fn new() -> Self {
        let site = Served::start_with(|settings| settings.judge.holds_links_of_new = true).await;
        let (ada, ben, cleo) =
            (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
        for follower in [&ben, &cleo] {
            site.post(follower, &format!("/api/v1/accounts/{}/follow", ada.id), Value::Null).await.ok();
        }
        site.post(&ada, &format!("/api/v1/accounts/{}/follow", ben.id), Value::Null).await.ok();
        let status = id(&site.says(&ada, "something to walk around #walk").await);
        let shout = id(&site.says(&ben, "I AM HERE").await);
        let list = id(&site.post(&ada, "/api/v1/lists", json!({ "title": "some" })).await.ok());
        let told = site.get(&ada, "/api/v1/notifications").await.ok();
        let told = told.as_array().unwrap().iter().map(id).collect();
        let client = site.application(APPLICATION).await;
        let service = service::create(site.registration(), "walker", "read write follow").await.unwrap();
        let sessions = site.get(&ada, "/api/tideline/v1/sessions").await.ok();
        let session = id(&sessions[0]);
        let reports = reports(&site, &ada, &ben).await;
        let eve = site.sign_up("eve").await;
        let (group, posted) = group(&site, (&ada, &ben), [&cleo, &eve]).await;
        let alone = json!({ "account_ids": [eve.id] });
        let chat = id(&site.post(&ada, "/api/tideline/v1/chats", alone).await.ok());
        site.post(&eve, "/api/v1/statuses", json!({ "status": "hello", "chat": chat })).await.ok();
        Self {
            site,
            ada,
            ben,
            cleo,
            status,
            shout,
            list,
            told,
            client,
            session,
            service,
            reports,
            group,
            posted,
            chat,
            eve,
        }
    }

    /// A token of ada's that allows this much.
    async fn token(&self, scopes: &str) -> String {
        self.site.token(&self.client, "ada", scopes).await
    }

    /// What there is to ask for, in an order in which everything is there when it is asked for.
    fn calls(&self) -> Vec<Call> {
        [
            whatever_there_is(),
            self.of_notifications(),
            self.of_groups(),
            self.of_chats(),
            self.of_accounts(),
            self.of_statuses(),
            self.of_moderators(),
            self.of_applications(),
        ]
        .concat()
    }

    fn of_moderators(&self) -> Vec<Call> {
        let of = |n: usize, what: &str| format!("/api/tideline/v1/reports/{}/{what}", self.reports[n]);
        vec![
            post("/api/v1/reports", json!({ "account_id": self.ben.id, "comment": "he shouts" })),
            get("/api/tideline/v1/reports?limit=5"),
            post(of(0, "release"), Value::Null),
            post(of(1, "drop"), Value::Null),
            post(of(2, "resolve"), Value::Null),
            post(format!("/api/tideline/v1/statuses/{}/moderate", self.shout), json!({ "sensitive": false })),
            post(format!("/api/tideline/v1/accounts/{}/state", self.ben.id), json!({ "becomes": "active" })),
            get(format!("/api/tideline/v1/accounts/{}/limits", self.ben.id)),
            post(format!("/api/tideline/v1/accounts/{}/limits", self.ben.id), json!({ "posts": 300 })),
        ]
    }

    fn of_chats(&self) -> Vec<Call> {
        let of = |what: &str| format!("/api/tideline/v1/chats/{}{what}", self.chat);
        vec![
            get("/api/v1/conversations"),
            post(format!("/api/v1/conversations/{}/read", self.chat), Value::Null),
            ("DELETE", format!("/api/v1/conversations/{}", self.chat), Value::Null),
            post("/api/tideline/v1/chats", json!({ "account_ids": [self.cleo.id, self.ben.id] })),
            get(of("")),
            get(of("/statuses")),
            post(of("/leave"), Value::Null),
        ]
    }

    fn of_groups(&self) -> Vec<Call> {
        let of = |what: &str| format!("/api/tideline/v1/groups/{}/{what}", self.group);
        let whom = |account: &str| json!({ "account_id": account });
        let mut calls = vec![
            post("/api/tideline/v1/groups", json!({ "username": "divers", "announcement": true })),
            get(of("staff")),
            get(of("requests?limit=5")),
            post(of("authorize"), whom(&self.cleo.id)),
            post(of("roles"), json!({ "account_id": self.cleo.id, "role": "moderator" })),
            post(of("reject"), whom(&self.eve.id)),
            ("DELETE", of(&format!("statuses/{}", self.posted)), Value::Null),
        ];
        let of_ben = ["remove", "invite", "uninvite", "ban", "unban"];
        calls.extend(of_ben.map(|what| post(of(what), whom(&self.ben.id))));
        let group = format!("/api/tideline/v1/groups/{}", self.group);
        calls.push(("PATCH", group.clone(), json!({ "display_name": "The divers", "locked": false })));
        calls.push(("DELETE", group, Value::Null));
        calls
    }

    fn of_notifications(&self) -> Vec<Call> {
        let of = |n: usize, path: &str| format!("/api/v1/notifications/{}{path}", self.told[n]);
        vec![
            get(of(0, "")),
            post(of(0, "/dismiss"), Value::Null),
            post("/api/v1/notifications/dismiss", json!({ "id": self.told[1] })),
            post("/api/v1/notifications/clear", Value::Null),
            post("/api/v1/markers", json!({ "home": { "last_read_id": "7" } })),
        ]
    }

    fn of_accounts(&self) -> Vec<Call> {
        let (ada, ben, cleo) = (&self.ada.id, &self.ben.id, &self.cleo.id);
        let of = |path: &str| format!("/api/v1/accounts/{ben}{path}");
        let on = |path: &str| format!("/api/v1/lists/{}{path}", self.list);
        let ben_alone = json!({ "account_ids": [ben] });
        let mut calls = vec![
            get(format!("/api/v1/accounts?id[]={ada}&id[]={ben}")),
            get(format!("/api/v1/accounts/relationships?id[]={ben}")),
            post(of("/follow"), json!({ "reblogs": true })),
            post(on("/accounts"), ben_alone.clone()),
            get(on("/accounts")),
            ("DELETE", on("/accounts"), ben_alone),
            get(format!("/api/v1/timelines/list/{}", self.list)),
            ("PUT", on(""), json!({ "title": "others" })),
            get(on("")),
            post("/api/v1/lists", json!({ "title": "more" })),
            ("DELETE", on(""), Value::Null),
            post(of("/note"), json!({ "comment": "of ben" })),
            post(of("/mute"), json!({ "duration": 0 })),
        ];
        calls.extend(["", "/statuses", "/followers", "/following", "/lists"].map(|path| get(of(path))));
        let deeds = ["/unmute", "/unfollow", "/remove_from_followers", "/block", "/unblock"];
        calls.extend(deeds.map(|path| post(of(path), Value::Null)));
        calls.push(get(REQUESTS));
        let answers = [(ben, "authorize"), (cleo, "reject")];
        calls.extend(answers.map(|(who, what)| post(format!("{REQUESTS}/{who}/{what}"), Value::Null)));
        let itself = json!({ "locked": true, "note": "I am" });
        calls.push(("PATCH", "/api/v1/accounts/update_credentials".into(), itself));
        calls
    }

    fn of_statuses(&self) -> Vec<Call> {
        let on = |path: &str| format!("/api/v1/statuses/{}{path}", self.status);
        let mut calls = vec![
            get(format!("/api/v1/statuses?id[]={}", self.status)),
            get(format!("/@ada/{}", self.status)),
            get(format!("/users/ada/statuses/{}", self.status)),
            post("/api/v1/statuses", json!({ "status": "more", "in_reply_to_id": self.status })),
        ];
        calls.extend(
            ["/favourite", "/bookmark", "/pin", "/reblog", "/mute"].map(|deed| post(on(deed), Value::Null)),
        );
        let reads = ["", "/source", "/history", "/context", "/favourited_by", "/reblogged_by", "/quotes"];
        calls.extend(reads.map(|path| get(on(path))));
        let undone = ["/unfavourite", "/unbookmark", "/unpin", "/unreblog", "/unmute"];
        calls.extend(undone.map(|deed| post(on(deed), Value::Null)));
        calls.push(("PUT", on(""), json!({ "status": "something else" })));
        calls.push(("DELETE", on(""), Value::Null));
        calls
    }

    fn of_applications(&self) -> Vec<Call> {
        let (client, secret) = &self.client;
        let with = |name: &str, value: &str| {
            let mut asked = json!({ "client_id": client, "client_secret": secret });
            asked[name] = value.into();
            asked
        };
        let back = "urn:ietf:wg:oauth:2.0:oob";
        let new = json!({
            "username": "dan", "email": "dan@tide.example", "password": PASSWORD, "agreement": true,
        });
        vec![
            post("/api/v1/apps", json!({ "client_name": "more", "redirect_uris": "https://more.example/" })),
            get(format!("/oauth/authorize?response_type=code&client_id={client}&redirect_uri={back}")),
            post("/oauth/token", with("grant_type", "client_credentials")),
            post("/oauth/revoke", with("token", "none")),
            post("/api/v1/emails/confirmations", Value::Null),
            ("DELETE", format!("/api/tideline/v1/sessions/{}", self.session), Value::Null),
            post("/api/v1/accounts", new),
            post("/api/tideline/v1/accounts", json!({ "id": 42, "display_name": "Answer" })),
        ]
    }
}

/// A private group of Ada's with a status of Ben's, which others ask to join.
async fn group(site: &Served, (ada, ben): (&Person, &Person), others: [&Person; 2]) -> (String, String) {
    let new = json!({ "username": "sailors", "locked": true });
    let group = id(&site.post(ada, "/api/tideline/v1/groups", new).await.ok());
    let invite = format!("/api/tideline/v1/groups/{group}/invite");
    site.post(ada, &invite, json!({ "account_id": ben.id })).await.ok();
    let join = format!("/api/v1/accounts/{group}/follow");
    for asks in [ben, others[0], others[1]] {
        site.post(asks, &join, Value::Null).await.ok();
    }
    (group, id(&site.says(ben, "Who sails, @sailors?").await))
}

/// Reports for Ada, who is a moderator.
async fn reports(site: &Served, ada: &Person, ben: &Person) -> Vec<String> {
    let account = |of: &Person| AccountId::new(of.id.parse().unwrap()).unwrap();
    set_role(site.registration(), account(ada), AccountRole::Moderator).await.unwrap();
    for n in 0..2 {
        site.says(ben, &format!("https://{n}.example")).await;
    }
    let spam = NewReport {
        reporter: account(ada),
        target: account(ben),
        posts: Vec::new(),
        category: ReportCategory::Spam,
        comment: String::new(),
        token: None,
    };
    let made = site.engine().report(&spam).await.unwrap().value;
    let all = site.engine().reports(&ReportQuery::default()).await.unwrap().reports;
    let held = all.iter().map(|report| report.id).filter(|id| *id != made);
    held.chain([made]).map(|id| id.to_string()).collect()
}

/// Fails if an operation says that it answers with a success that nobody has met.
pub(super) fn assert_met<'a>(
    operations: impl Iterator<Item = Documented<'a>>,
    met: &BTreeSet<(String, u16)>,
) {
    let told =
        operations.flat_map(|operation| operation.successes().map(move |status| (operation.name(), status)));
    let missed: Vec<_> = told.filter(|told| !met.contains(told)).collect();
    assert!(missed.is_empty(), "documented, and met by nothing here: {missed:?}");
}

/// A method, a path, and a body or none.
type Call = (&'static str, String, Value);

const REQUESTS: &str = "/api/v1/follow_requests";

fn get(path: impl Into<String>) -> Call {
    ("GET", path.into(), Value::Null)
}

fn post(path: impl Into<String>, body: Value) -> Call {
    ("POST", path.into(), body)
}

/// What may be asked for whatever there is.
fn whatever_there_is() -> Vec<Call> {
    let paths = "/.well-known/nodeinfo /.well-known/oauth-authorization-server /nodeinfo/2.0 /oauth/userinfo \
        / /@ada /users/ada /tags/walk /avatars/original/missing.png /headers/original/missing.png /thumbnail.png \
        /auth/account /auth/password /auth/sign_up /api/tideline/v1/sessions \
        /api/v1/instance /api/v2/instance /api/v1/instance/rules /api/v1/instance/peers /api/v1/custom_emojis \
        /api/v1/announcements /api/v1/instance/translation_languages /api/v1/domain_blocks \
        /api/v1/apps/verify_credentials /api/v1/accounts/verify_credentials \
        /api/v1/accounts/lookup?acct=ben /api/v1/accounts/search?q=be&limit=5 /api/v1/preferences /api/v1/lists \
        /api/v2/search?q=ada /api/v1/timelines/home?limit=3 /api/v1/timelines/public \
        /api/v1/timelines/tag/walk?any[]=run /api/v1/notifications?limit=5 /api/v1/notifications/unread_count \
        /api/v1/markers?timeline[]=home /api/v1/bookmarks /api/v1/favourites /api/v1/blocks /api/v1/mutes";
    paths.split_whitespace().map(get).collect()
}

/// The token with which an operation is asked for, if with one.
fn token<'a>(world: &'a World, operation: Documented, ada: &'a str) -> Option<&'a str> {
    match (operation.name().as_str(), operation.ways().as_slice()) {
        ("post /api/v1/accounts", _) => Some(world.site.app_token()),
        (_, [(kind, _), ..]) if kind == "service" => Some(&world.service),
        (_, ways) => ways.iter().any(|(kind, _)| kind == "token").then_some(ada),
    }
}

#[tokio::test]
async fn every_operation_answers_as_it_is_documented() {
    let world = World::new().await;
    let contract = Contract::get();
    let ada = world.token(APPLICATION).await;
    let mut asked = BTreeSet::new();
    for (method, path, body) in world.calls() {
        let operation =
            contract.of(method, &path).unwrap_or_else(|| panic!("{method} {path} is not documented"));
        // Somebody waits for an answer only while ada is asked.
        if path == REQUESTS {
            let locked = json!({ "locked": true });
            world.site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ada), locked).await.ok();
            for follower in [&world.ben, &world.cleo] {
                let follow = format!("/api/v1/accounts/{}/follow", world.ada.id);
                world.site.post(follower, &follow.replace("follow", "unfollow"), Value::Null).await;
                world.site.post(follower, &follow, Value::Null).await.ok();
            }
        }
        let told = world.site.send(method, &path, token(&world, operation, &ada), body).await;
        assert_eq!(told.status, 200, "{method} {path}: {}", told.body);
        asked.insert((operation.name(), told.status));
    }
    let all = contract.operations().filter(|operation| !FORMS.contains(&operation.name().as_str()));
    assert_met(all, &asked);
    world.site.end().await;
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say_and_nothing_else() {
    let world = World::new().await;
    let contract = Contract::get();
    let mut tokens: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for (method, path, body) in world.calls() {
        let operation = contract.of(method, &path).unwrap();
        let ways = operation.ways();
        // Whoever says nothing may ask, or nobody may without an application's secret.
        if ways.is_empty() || ways.iter().any(|(kind, _)| kind.is_empty() || kind == "client") {
            continue;
        }
        let ask =
            async |token: Option<&str>| world.site.send(method, &path, token, body.clone()).await.status;
        let name = operation.name();
        assert_eq!(ask(None).await, 401, "{name} without a token");
        assert_eq!(ask(Some("made up")).await, 401, "{name} with no such token");
        let needed: Vec<String> = ways.iter().flat_map(|(_, scopes)| scopes.clone()).collect();
        if needed.is_empty() || ways[0].0 == "service" {
            continue;
        }
        if !tokens.contains_key(&needed) {
            let others =
                SCOPES.split_whitespace().filter(|scope| !needed.iter().any(|needed| needed == scope));
            let token = world.token(&others.collect::<Vec<_>>().join(" ")).await;
            tokens.insert(needed.clone(), token);
        }
        assert_eq!(ask(Some(&tokens[&needed])).await, 403, "{name} with all scopes but {needed:?}");
        if name != "post /api/v1/accounts" {
            // What is for moderators no application may ask for by itself.
            let status = if needed[0].starts_with("admin:") { 403 } else { 422 };
            assert_eq!(ask(Some(world.site.app_token())).await, status, "{name} by an application alone");
        }
    }
    assert!(tokens.len() > 10, "{}", tokens.len());
    world.site.end().await;
}
