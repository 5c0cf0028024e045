//! A password is planted wherever one is handed over, and looked for in everything that is shown.

use std::fmt::Debug;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use tideline::cluster::{Router, RouterSettings, Seed};
use tideline::registration::{Name, SignUp};
use tideline::{Config, Engine, ErrorKind, FindingKind, FsckOptions, NewAccount, Store, StoreOptions};
use tideline_local_cluster::ClusterSpec;
use tracing::level_filters::LevelFilter;

use super::access::use_engine;
use super::harness::{PATIENCE, impatient, options, own};

/// Written with an escape in URLs: neither half is to show.
const PASSWORD: &str = "pl4nted/w0rd";
const HALVES: [&str; 2] = ["pl4nted", "w0rd"];
/// What people choose who sign up in `use_engine`.
const OF_PEOPLE: [&str; 2] = ["correct horse", "battery staple"];

#[track_caller]
fn assert_hidden(what: &str, text: &str) {
    for secret in HALVES.iter().chain(&OF_PEOPLE) {
        let place = text.find(secret).map(|at| text[..at].lines().last().unwrap_or_default());
        assert!(place.is_none(), "{what} shows a password, behind: {place:?}");
    }
}

#[track_caller]
fn assert_hidden_by_debug(value: &impl Debug) {
    let (line, lines) = (format!("{value:?}"), format!("{value:#?}"));
    assert_hidden(&line, &line);
    assert_hidden(&line, &lines);
}

/// All that is logged on this thread, from all levels on.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

async fn refused(seed: &str) -> tideline::Error {
    Store::open(StoreOptions { router: impatient(), ..options(vec![seed.to_owned()]) }).await.unwrap_err()
}

/// An engine, and what it tells. A private note is shown by the call that gives it, and by nothing else.
async fn look_at(engine: &Engine) {
    assert_hidden_by_debug(engine);
    assert_hidden_by_debug(engine.store());
    assert_hidden_by_debug(engine.store().router());
    assert_hidden_by_debug(&engine.health().await.unwrap());
    assert_hidden_by_debug(&engine.store().router().findings());
    let me = engine.create_account(NewAccount::default()).await.unwrap().value;
    let other = engine.create_account(NewAccount::default()).await.unwrap().value;
    let note = format!("a {} cousin", HALVES[0]);
    engine.set_note(me, other, &note).await.unwrap();
    let relationships = engine.as_reader(me).relationships(&[other]).await.unwrap();
    assert_eq!(relationships[0].as_ref().unwrap().note.as_ref(), Some(&note));
    assert_hidden_by_debug(&relationships);
    assert_hidden_by_debug(&engine.inspect(me).await.unwrap());
    assert_hidden_by_debug(&engine.set_note(me, other, &note.repeat(200)).await.unwrap_err());
    assert_hidden_by_debug(&engine.set_note(other, other, &note).await.unwrap_err());
    engine.delete_account(other).await.unwrap();
    engine.drained(PATIENCE).await.unwrap();
    let options = FsckOptions { repair: true, pause: Duration::from_millis(50), ..FsckOptions::default() };
    let report = engine.fsck(&options, &|_| {}).await.unwrap();
    assert!(report.findings.contains_key(&FindingKind::RemarkNeedless), "{report:?}");
    assert_hidden_by_debug(&report);
}

#[tokio::test]
async fn no_password_shows_in_options_logs_errors_metrics_or_health() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_ansi(false);
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _counted = metrics::set_default_local_recorder(&recorder);

    let spec = ClusterSpec::ephemeral().replicas(1).password(PASSWORD);
    assert_hidden_by_debug(&spec);
    let cluster = own(spec).await;
    let options = options(cluster.urls());
    assert!(options.seeds[0].url().contains(HALVES[0]), "the password is planted");
    let toml = format!("[cluster]\nseeds = [{:?}]\n", options.seeds[0].url());
    let config = Config::from_toml(&toml).unwrap();
    assert_eq!(config.store.seeds, options.seeds[..1]);
    assert_hidden_by_debug(&options);
    assert_hidden_by_debug(&options.seeds);
    assert_hidden_by_debug(&config);
    assert_hidden_by_debug(&Engine::builder().store(options.clone()));
    assert_hidden_by_debug(&Engine::builder().config(config));
    assert_hidden_by_debug(
        &SignUp::new("ada", OF_PEOPLE[0]).email("pl4nted@w0rd.example").token(OF_PEOPLE[1]),
    );
    assert_hidden_by_debug(&Name::Email("pl4nted@w0rd.example".into()));

    use_engine(options.clone()).await.unwrap();
    let engine = Engine::builder().store(options.clone()).start().await.unwrap();
    look_at(&engine).await;

    // What callers wait for in vain tells of the server and of each try.
    let primary = cluster.owner_of(0).await.unwrap();
    let node = cluster.nodes().iter().find(|node| node.addr() == primary).unwrap();
    node.kill().unwrap();
    let router = RouterSettings { deadline: Duration::from_millis(800), ..impatient() };
    let late = Router::connect(&cluster.urls(), "", router, None).await.unwrap();
    let keys = (0..200).map(|n| {
        let key = format!("k{n}").into_bytes();
        let slot = tideline::keys::slot_of_key(&key);
        tideline::cluster::Request::write(slot, tideline::cluster::Command::new("INCR").arg(&key))
    });
    let failed: Vec<_> = late.run(keys.collect()).await.into_iter().filter_map(Result::err).collect();
    assert!(!failed.is_empty(), "a server is gone");
    assert_hidden(&format!("{failed:?}"), &format!("{failed:?} {failed:#?}"));
    engine.shutdown(Duration::from_secs(5)).await.unwrap();

    let addr = cluster.nodes().iter().map(|node| node.addr()).find(|addr| *addr != primary).unwrap();
    for (seed, kind) in [
        (format!("redis://:pl4nted-w0rd@{addr}"), ErrorKind::Misconfigured),
        (format!("redis://pl4nted:w0rd@{addr}"), ErrorKind::Misconfigured),
        (format!("rediss://:pl4nted%2Fw0rd@{addr}"), ErrorKind::Unavailable),
        ("redis://:pl4nted%2Fw0rd@127.0.0.1:1".into(), ErrorKind::Unavailable),
        ("redis://:pl4nted/w0rd@127.0.0.1:1".into(), ErrorKind::Invalid),
        ("redis://pl4nted:12/w0rd@127.0.0.1:1".into(), ErrorKind::Invalid),
        ("http://:pl4nted-w0rd@127.0.0.1:1".into(), ErrorKind::Invalid),
    ] {
        let error = refused(&seed).await;
        assert_eq!(error.kind(), kind, "{error:?}");
        assert_hidden(&seed, &format!("{error} {error:?} {error:#?}"));
    }
    let misplaced = "[cluster]\nprefix = 5\nbuckets = \"redis://:pl4nted@w0rd@h:1\"\n\
                     [sets]\nspread_at = [\"redis://:w0rd@h\"]\n";
    let error = Config::from_toml(misplaced).unwrap_err();
    assert!(error.to_string().contains("***@h"), "{error}");
    assert_hidden("a configuration with mistakes", &format!("{error} {error:?}"));

    let (logged, metrics) = (log.text(), format!("{:?}", snapshotter.snapshot().into_vec()));
    println!("{} bytes of log, {} of metrics", logged.len(), metrics.len());
    assert!(logged.contains("tideline") && metrics.contains("tideline_redis_commands_total"), "{logged}");
    assert_hidden("the log", &logged);
    assert_hidden("metrics", &metrics);
}

fn program(seeds: &[String], args: &[&str]) -> Output {
    let mut program = Command::new(crate::harness::program());
    program.args(args).env("RUST_LOG", "trace").env("TIDELINE_CLUSTER", seeds.join(","));
    program.env("TIDELINE_CLUSTER_SEEDS", seeds.join(",")).output().unwrap()
}

#[tokio::test]
async fn the_program_shows_no_password() {
    let cluster = own(ClusterSpec::ephemeral().password(PASSWORD)).await;
    let (urls, dead) = (cluster.urls(), vec!["redis://:pl4nted%2Fw0rd@127.0.0.1:1".to_owned()]);
    assert_hidden("seeds", &format!("{:?}", urls.iter().map(Seed::from).collect::<Vec<_>>()));
    for node in cluster.nodes() {
        // Where there is no such file, there is no process list that shows it.
        let line = std::fs::read(format!("/proc/{}/cmdline", node.pid().unwrap())).unwrap_or_default();
        assert_hidden("a server's line in the process list", &String::from_utf8_lossy(&line));
    }
    let dir = cluster.dir().display().to_string();
    let demo = ["demo", "--accounts", "100", "--posts", "5", "--reads", "5"];
    for (seeds, args, is_right) in [
        (&urls, &demo[..], true),
        (&urls, &["demo", "--help"], true),
        (&urls, &["inspect", "--help"], true),
        (&urls, &["fsck", "--prefix", "nobody:"], false),
        (&urls, &["tenant", "show", "--prefix", "nobody:"], false),
        (&urls, &["tenant", "set", "home_posts=5", "--prefix", "nobody:"], false),
        (&urls, &["cluster", "status", "--dir", &dir], true),
        (&dead, &["inspect", "1"], false),
        (&dead, &["mode", "1", "pull"], false),
        (&dead, &["tenant", "show"], false),
        (&dead, &["tenant", "restore"], false),
        (&dead, &["demo"], false),
    ] {
        let output = program(seeds, args);
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_right, "{args:?}: {text}");
        assert_hidden(&format!("{args:?}"), &text);
    }
}
