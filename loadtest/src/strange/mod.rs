//! `loadtest strange`: a site is sent many requests that make no sense. Each is answered, the server's memory doesn't
//! grow by them, and in Redis stands only what was asked for.
//!
//! `requests` draws them, as a test of the server does that sends fewer; `keys` counts what stands in Redis; `outcome`
//! is what is told.

mod keys;
mod outcome;
#[path = "../../../server/tests/requests/mod.rs"]
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use futures::future::try_join_all;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Serialize;

use crate::bench::{Bench, on_cluster};
use crate::common::End;
use crate::common::Told as _;
use crate::http::{Answer, Ask, Clients};
use crate::progress;
use crate::report::Files;
use crate::site::{Application, SiteServer, SiteSettings, refused};
use crate::target::PRIMARIES;
use crate::typed::whole;
use keys::Stored;
use outcome::Outcome;
use requests::{StrangeRequest, draw};

/// Connections; on each one request after the other.
const CONNECTIONS: usize = 16;
/// People in whose names requests are sent.
const PEOPLE: usize = 4;
/// So long the server may take to give memory back before that is looked at.
const REST: Duration = Duration::from_secs(3);
/// Pages with forms.
const PAGES: [&str; 3] = ["/oauth/authorize", "/auth/account", "/auth/password"];
/// Of what is wrong so much is shown.
const SHOWN: usize = 20;

/// Requests that make no sense (queries, forms, JSON, multipart, headers, paths), to a server started for it.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct StrangeArgs {
    /// How many
    #[arg(long, default_value_t = 100_000, value_parser = whole::<u64>(100..=100_000_000))]
    requests: u64,
    /// The same seed draws the same requests [default: a new one each time, shown]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..))]
    seed: Option<u64>,
    #[command(flatten)]
    program: crate::site::Program,
    #[command(flatten)]
    #[serde(skip)]
    files: Files,
}

/// What was answered to the requests of one connection.
#[derive(Debug, Default)]
struct Answers {
    statuses: BTreeMap<u16, u64>,
    /// Answers that may not be, and requests without one.
    wrong: Vec<String>,
    asked_for: AskedFor,
}

/// What was asked for, and said to be done.
#[derive(Debug, Default, Clone, Serialize)]
struct AskedFor {
    accounts: u64,
    posts: BTreeSet<String>,
    /// Applications, tokens, sessions of browsers: what stands under a secret.
    tickets: u64,
}

impl AskedFor {
    fn add(&mut self, other: Self) {
        self.accounts += other.accounts;
        self.posts.extend(other.posts);
        self.tickets += other.tickets;
    }

    /// Notes what an answer says that was made.
    fn note(&mut self, request: &StrangeRequest, answer: &Answer) {
        let path = request.path.split('?').next().unwrap_or_default().trim_end_matches('/');
        // A page with a form begins a session of the browser, if it has none.
        if PAGES.contains(&path) && answer.status < 400 {
            self.tickets += 1;
        }
        // A group is an account, also one that could not get its name and is deleted again.
        let may_be_made = answer.is_success() || answer.status >= 409;
        if request.method == "POST" && path == "/api/tideline/v1/groups" && may_be_made {
            self.accounts += 1;
        }
        if request.method != "POST" || !answer.is_success() {
            return;
        }
        match path {
            // With its first token.
            "/api/v1/accounts" => (self.accounts, self.tickets) = (self.accounts + 1, self.tickets + 1),
            "/api/v1/apps" | "/oauth/token" => self.tickets += 1,
            // A chat is an account; it may be there already.
            "/api/tideline/v1/chats" => self.accounts += 1,
            "/api/v1/statuses" => {
                let status = answer.json();
                self.posts.extend(status["id"].as_str().map(str::to_owned));
                self.accounts += u64::from(status["visibility"] == "direct");
            }
            // A repost is a post of its own.
            path if path.ends_with("/reblog") => {
                self.posts.extend(answer.json()["id"].as_str().map(str::to_owned));
            }
            _ => {}
        }
    }
}

/// Runs the test.
pub(crate) async fn run(args: StrangeArgs) -> anyhow::Result<End> {
    let seed = args.seed.unwrap_or_else(rand::random);
    eprintln!("{} requests that make no sense; seed {seed}.", args.requests);
    let measure = async |bench: &Bench| Box::pin(on_bench(&args, bench, seed)).await;
    let outcome = on_cluster(&[], (PRIMARIES, 0), measure).await?;
    args.files.tell(&outcome, &outcome.report())?;
    Ok(outcome.is_right().into())
}

async fn on_bench(args: &StrangeArgs, bench: &Bench, seed: u64) -> anyhow::Result<Outcome> {
    let settings = SiteSettings {
        program: args.program.path()?,
        seeds: bench.target.seeds(),
        prefix: bench.prefix.clone(),
        variables: vec![
            ("SERVER_REGISTRATIONS", "open".to_owned()),
            ("REGISTRATION_MEMORY_KIB", "8".to_owned()),
            ("REGISTRATION_PASSES", "1".to_owned()),
        ],
    };
    let server = SiteServer::start(settings).await?;
    let sent = Box::pin(send_all(args, bench, &server, seed)).await;
    let log = server.end().await;
    let mut outcome = sent?;
    outcome.panics = log.matches("panicked at").count() as u64;
    Ok(outcome)
}

async fn send_all(
    args: &StrangeArgs,
    bench: &Bench,
    server: &SiteServer,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let clients = Arc::new(Clients::new(server.address(), CONNECTIONS));
    let (known, tokens) = move_in(&clients).await?;
    let (began, mut answers, mut resident) = (Instant::now(), Answers::default(), [None; 2]);
    // The people's own.
    answers.asked_for = AskedFor {
        accounts: PEOPLE as u64,
        posts: known.iter().cloned().collect(),
        tickets: PEOPLE as u64 + 2,
    };
    let bar = progress::bar(args.requests, "requests".to_owned());
    let sent = Arc::new(AtomicU64::new(0));
    // Of the seed itself: seeds that lie together once drew the same requests, each on another connection.
    let mut random = StdRng::seed_from_u64(seed);
    for resident in &mut resident {
        let each = args.requests / 2 / CONNECTIONS as u64;
        let connections = (0..CONNECTIONS).map(|_| {
            let random = StdRng::from_rng(&mut random);
            let (clients, known, tokens, sent, bar) =
                (clients.clone(), known.clone(), tokens.clone(), sent.clone(), bar.clone());
            tokio::spawn(async move {
                let mut sending = Sending { clients, known, tokens, random, answers: Answers::default() };
                for _ in 0..each {
                    sending.one().await;
                    bar.set_position(sent.fetch_add(1, Ordering::Relaxed));
                }
                sending.answers
            })
        });
        for one in try_join_all(connections).await? {
            one.statuses
                .into_iter()
                .for_each(|(status, n)| *answers.statuses.entry(status).or_default() += n);
            answers.wrong.extend(one.wrong);
            answers.asked_for.add(one.asked_for);
        }
        tokio::time::sleep(REST).await;
        *resident = server.resident_bytes();
    }
    bar.finish_and_clear();
    // Who was there before them is there, and is served.
    let me = Ask::get("/api/v1/accounts/verify_credentials").token(tokens[0].trim_start_matches("Bearer "));
    let own = clients.ask(&me).await?;
    if !own.is_success() {
        answers.wrong.push(format!("{:#}", refused("who was there before", &own)));
    }
    let stored = Stored::count(bench).await?;
    answers.wrong.extend(stored.beyond(&answers.asked_for));
    let sent = sent.load(Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    let asked_for =
        (answers.asked_for.accounts, answers.asked_for.posts.len() as u64, answers.asked_for.tickets);
    Ok(Outcome {
        command: "strange",
        settings: args.clone(),
        seed,
        seconds,
        sent,
        statuses: answers.statuses.iter().map(|(status, n)| (status.to_string(), *n)).collect(),
        resident_bytes: resident,
        keys: stored.by_letter,
        accounts_asked_for: asked_for.0,
        posts_asked_for: asked_for.1,
        tickets_asked_for: asked_for.2,
        wrong: answers.wrong.len() as u64,
        panics: 0,
        examples: answers.wrong.into_iter().take(SHOWN).collect(),
    })
}

/// People with a post each; gives ids of both, and headers that sign them in.
async fn move_in(clients: &Clients) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let application = Application::register(clients).await?;
    let (mut known, mut tokens) = (Vec::new(), Vec::new());
    for nth in 0..PEOPLE {
        let answer = clients.ask(&application.sign_up(&format!("person{nth}"))).await?;
        anyhow::ensure!(answer.is_success(), refused("a sign-up", &answer));
        let token = answer.json()["access_token"].as_str().context("a sign-up without a token")?.to_owned();
        let post = Ask::post("/api/v1/statuses", serde_json::json!({ "status": "hello" })).token(&token);
        let post = clients.ask(&post).await?;
        anyhow::ensure!(post.is_success(), refused("a post", &post));
        let post = post.json();
        known.extend(
            [&post["id"], &post["account"]["id"]].map(|id| id.as_str().unwrap_or_default().to_owned()),
        );
        tokens.push(format!("Bearer {token}"));
    }
    Ok((known, tokens))
}

/// One connection's requests.
struct Sending {
    clients: Arc<Clients>,
    known: Vec<String>,
    tokens: Vec<String>,
    random: StdRng,
    answers: Answers,
}

impl Sending {
    async fn one(&mut self) {
        let request = draw(&mut self.random, &self.known, &self.tokens);
        let bytes = bytes(&request);
        let answer = match self.clients.send(&bytes).await {
            Ok(answer) => Ok(answer),
            // A connection may end with an answer.
            Err(_) => self.clients.send_anew(&bytes).await,
        };
        match answer {
            Ok(answer) => {
                *self.answers.statuses.entry(answer.status).or_default() += 1;
                let is_busy = answer.status == 503 && answer.has_retry_after;
                if answer.status >= 500 && !is_busy {
                    self.answers.wrong.push(format!("{}: {request:?}", answer.status));
                }
                self.answers.asked_for.note(&request, &answer);
            }
            Err(error) => self.answers.wrong.push(format!("no answer, {error}: {request:?}")),
        }
    }
}

fn bytes(request: &StrangeRequest) -> Vec<u8> {
    let headers: String =
        request.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let StrangeRequest { method, path, body, .. } = request;
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}
