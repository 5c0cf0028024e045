//! A site that a test has started, and whoever speaks to it.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tideline::Engine;
use tideline::registration::{Registration, RegistrationSettings};
use tideline::sharded::SetSettings;
use tideline::{ActLimits, EngineSettings, StoreOptions};
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tideline_server::config::{Registrations, ServerSettings};
use tideline_server::http::{Listener, Network, Shutdown};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::client::{Answer, Client};
use super::contract;

pub(crate) const PASSWORD: &str = "correct horse";
/// As the world knows the site, wherever it listens.
pub(crate) const URL: &str = "http://tide.example:3000";

pub(crate) struct Served {
    pub(crate) cluster: LocalCluster,
    instance: Instance,
    settings: ServerSettings,
    sets: SetSettings,
    /// A token of an application alone, and what the application is known by.
    app: String,
    pub(crate) client: (String, String),
}

/// One server of a site.
pub(crate) struct Instance {
    pub(crate) engine: Engine,
    registration: Registration,
    address: SocketAddr,
    shutdown: Shutdown,
    task: JoinHandle<tideline::Result<()>>,
}

/// Somebody with a token.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) token: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) link: Option<String>,
    pub(crate) body: Value,
}

impl Told {
    fn of(answer: &Answer) -> Self {
        let link = answer.header("link").map(str::to_owned);
        let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        Self { status: answer.status, link, body }
    }

    /// What was asked for; a refusal fails the test.
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }
}

impl Instance {
    async fn start(cluster: &LocalCluster, settings: ServerSettings, sets: SetSettings) -> Self {
        let store = StoreOptions { prefix: "site:".into(), sets, ..StoreOptions::new(cluster.urls()) };
        let engine_settings = EngineSettings {
            shows_profiles: true,
            public_posts: 256,
            keeps_notifications: true,
            // More than any test says: an account may have less.
            limits: ActLimits {
                posts: Some("60000/1h".parse().unwrap()),
                direct_posts: Some("60000/1h".parse().unwrap()),
                ..ActLimits::default()
            },
            ..EngineSettings::default()
        };
        let builder = Engine::builder().store(store).settings(engine_settings).judge(settings.judge.clone());
        let engine = builder.start().await.unwrap();
        // Passwords that cost little.
        let cheap = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
        let registration = Registration::new(&engine, cheap).await.unwrap();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), None).await.unwrap();
        let (address, shutdown) = (listener.address().unwrap(), Shutdown::default());
        let run = tideline_server::run(
            engine.clone(),
            registration.clone(),
            settings,
            vec![listener],
            shutdown.clone(),
        );
        let task = tokio::spawn(run);
        Self { engine, registration, address, shutdown, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn end(self) {
        self.shutdown.begin();
        self.task.await.unwrap().unwrap();
        self.engine.shutdown(Duration::from_secs(10)).await.unwrap();
    }
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With settings of its own.
    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::start_on(SetSettings::default(), change).await
    }

    /// The same on a store whose sets are kept so.
    pub(crate) async fn start_on(sets: SetSettings, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
        let mut settings = ServerSettings {
            public_url: URL.into(),
            registrations: Registrations::Open,
            // All tests come from one address.
            limits_exempt: Network::loopback().into(),
            // What a test asks next has to be there, on any machine.
            settle_time: Duration::from_secs(60),
            ..ServerSettings::default()
        };
        change(&mut settings);
        let instance = Instance::start(&cluster, settings.clone(), sets.clone()).await;
        let none = (String::new(), String::new());
        let mut served = Self { cluster, instance, settings, sets, app: String::new(), client: none };
        served.client = served.application("read write follow").await;
        let (id, secret) = &served.client;
        let asked = json!({
            "client_id": id, "client_secret": secret, "grant_type": "client_credentials", "scope": "read write follow",
        });
        let token = served.send("POST", "/oauth/token", None, asked).await.ok();
        served.app = token["access_token"].as_str().unwrap().to_owned();
        served
    }

    /// One more server of the same site.
    pub(crate) async fn another(&self) -> Instance {
        Instance::start(&self.cluster, self.settings.clone(), self.sets.clone()).await
    }

    pub(crate) async fn end(self) {
        self.instance.end().await;
        self.cluster.down().await.unwrap();
    }

    /// Where its first server is asked.
    pub(crate) fn address(&self) -> SocketAddr {
        self.instance.address
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.instance.engine
    }

    /// What whoever runs the site makes tokens of services with.
    pub(crate) fn registration(&self) -> &Registration {
        &self.instance.registration
    }

    /// A token of an application alone.
    pub(crate) fn app_token(&self) -> &str {
        &self.app
    }

    /// A token that somebody has let an application have, by its password.
    pub(crate) async fn token(
        &self,
        (client, secret): &(String, String),
        login: &str,
        scopes: &str,
    ) -> String {
        let asked = json!({
            "grant_type": "password", "client_id": client, "client_secret": secret, "scope": scopes,
            "username": login, "password": PASSWORD,
        });
        let token = self.send("POST", "/oauth/token", None, asked).await.ok();
        token["access_token"].as_str().unwrap().to_owned()
    }

    /// An application with these scopes: its name and its secret.
    pub(crate) async fn application(&self, scopes: &str) -> (String, String) {
        let asked = json!({
            "client_name": "a test", "scopes": scopes,
            "redirect_uris": ["https://app.example/back", "urn:ietf:wg:oauth:2.0:oob"],
        });
        let made = self.send("POST", "/api/v1/apps", None, asked).await.ok();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("client_id"), text("client_secret"))
    }

    pub(crate) async fn connect(&self) -> Client<TcpStream> {
        connect(self.instance.address).await
    }

    /// One request with a body of JSON, or with none.
    pub(crate) async fn send(&self, method: &str, path: &str, token: Option<&str>, body: Value) -> Told {
        self.send_to(self.instance.address, (method, path), token, body).await
    }

    /// The same to one of its servers.
    pub(crate) async fn send_to(
        &self,
        address: SocketAddr,
        (method, path): (&str, &str),
        token: Option<&str>,
        body: Value,
    ) -> Told {
        if method != "GET" {
            self.a_millisecond().await;
        }
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        let text = if body.is_null() { String::new() } else { body.to_string() };
        Told::of(&connect(address).await.send(method, path, &headers, &text).await)
    }

    /// Waits until its time has moved on: what one account does then is newer than what another one has done.
    async fn a_millisecond(&self) {
        let router = self.engine().store().router();
        let end = router.now_ms() + 1;
        while router.now_ms() < end {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn sign_up(&self, name: &str) -> Person {
        let email = format!("{name}@tide.example");
        let asked = json!({ "username": name, "email": email, "password": PASSWORD, "agreement": true });
        let token = self.send("POST", "/api/v1/accounts", Some(&self.app), asked).await.ok();
        let token = token["access_token"].as_str().unwrap().to_owned();
        let me =
            self.send("GET", "/api/v1/accounts/verify_credentials", Some(&token), Value::Null).await.ok();
        Person { id: me["id"].as_str().unwrap().to_owned(), token }
    }

    /// Signs up as asked, whatever comes of it.
    pub(crate) async fn try_sign_up(&self, asked: Value) -> Told {
        self.send("POST", "/api/v1/accounts", Some(&self.app), asked).await
    }

    /// The same of a name, and with what else is said; the token that it gets.
    pub(crate) async fn sign_up_with(&self, name: &str, more: &[(&str, &str)]) -> Told {
        let mut asked = json!({
            "username": name, "email": format!("{name}@tide.example"), "password": PASSWORD, "agreement": true,
        });
        more.iter().for_each(|(field, value)| asked[field] = (*value).into());
        self.try_sign_up(asked).await
    }

    pub(crate) async fn get(&self, who: &Person, path: &str) -> Told {
        self.send("GET", path, Some(&who.token), Value::Null).await
    }

    pub(crate) async fn post(&self, who: &Person, path: &str, body: Value) -> Told {
        self.send("POST", path, Some(&who.token), body).await
    }

    pub(crate) async fn guest(&self, path: &str) -> Told {
        self.send("GET", path, None, Value::Null).await
    }

    /// Posts a text; gives the status.
    pub(crate) async fn says(&self, who: &Person, text: &str) -> Value {
        self.post(who, "/api/v1/statuses", json!({ "status": text })).await.ok()
    }
}

/// A connection to a server of a site, whose answers are held against what is documented.
pub(crate) async fn connect(address: SocketAddr) -> Client<TcpStream> {
    Client::checked(TcpStream::connect(address).await.unwrap(), contract::check)
}

/// Texts of one field of an array.
pub(crate) fn each(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap_or_default().to_owned()).collect()
}

pub(crate) fn id(of: &Value) -> String {
    of["id"].as_str().unwrap().to_owned()
}
