//! An instance in a process of its own, with a wall clock of its own: the test binary once more.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tideline::post::Draft;
use tideline::{AccountId, Engine, ErrorKind, PostId, Query, Range, StoreOptions};

use super::super::engine::{drained, engine_with, small, walk_home};
use super::super::harness::{impatient, options};
use super::super::skew::Clocks;

/// What answers begin with: the test binary says other things too.
const ANSWER: &str = "@@ ";
/// Where its cluster is, and its tenant.
const SEED: &str = "TIDELINE_TEST_SEED";
const PREFIX: &str = "TIDELINE_TEST_PREFIX";

/// Store and settings of an instance here or there.
pub(super) async fn instance(seeds: Vec<String>, prefix: &str) -> Engine {
    let options = StoreOptions { router: impatient(), prefix: prefix.into(), ..options(seeds) };
    engine_with(options, small()).await
}

/// Publishes; again, by its token, while nobody knows whether it was done: a call that was under way when its server
/// was found to be no primary any more ends so (1 of 30 runs at a load of 20).
async fn publish(engine: &Engine, author: AccountId) -> PostId {
    let draft = Draft::text("by the clock").token(rand::random::<u64>().to_string());
    loop {
        match engine.publish(author, &draft).await {
            Err(e) if e.kind() == ErrorKind::Unknown => {}
            published => return published.unwrap().id,
        }
    }
}

/// Does what a line says; gives ids, or text.
pub(super) async fn perform(engine: &Engine, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |n: usize| words[n].parse::<u64>().unwrap();
    let account = |n| AccountId::new(number(n)).unwrap();
    let spelled =
        |ids: Vec<PostId>| ids.into_iter().map(|id| id.get().to_string()).collect::<Vec<_>>().join(" ");
    match words[0] {
        "publish" => spelled(vec![publish(engine, account(1)).await]),
        "delete" => {
            engine.delete(account(1), PostId::from_u64(number(2)).unwrap()).await.unwrap();
            String::new()
        }
        "follow" => {
            engine.follow(account(1), account(2)).await.unwrap();
            String::new()
        }
        "unfollow" => {
            engine.unfollow(account(1), account(2)).await.unwrap();
            String::new()
        }
        "newest" => spelled(engine.as_reader(account(1)).read(&Query::home().limit(40)).await.unwrap().ids()),
        "above" => {
            let range = Range { min_id: PostId::from_u64(number(2)).ok(), ..Range::default() };
            let query = Query::home().limit(100).range(range);
            spelled(engine.as_reader(account(1)).read(&query).await.unwrap().ids())
        }
        "drain" => {
            drained(engine).await;
            String::new()
        }
        "all" => spelled(walk_home(engine, account(1), 20).await),
        "health" => {
            let findings = engine.health().await.unwrap().findings;
            findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
        _ => panic!("{line}"),
    }
}

/// An instance in a process of its own; it is killed with this.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts one that goes by the wall clock of that name.
    pub(super) fn start(clocks: &Clocks, clock: &str, seed: &str, prefix: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["clocks::process::an_instance_of_its_own", "--exact", "--ignored", "--nocapture"])
            .envs(clocks.variables(clock))
            .envs([(SEED, seed), (PREFIX, prefix)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self { child, input, output };
        assert_eq!(process.answer(), "started");
        process
    }

    /// Has it do something.
    pub(super) fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").unwrap();
        self.answer()
    }

    fn answer(&mut self) -> String {
        let mut lines = self.output.by_ref().map(Result::unwrap);
        let answer = lines.find_map(|line| Some(line.split_once(ANSWER)?.1.to_owned()));
        answer.expect("the instance died")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does what it is told until nobody tells it anything any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "no test, but what a test starts as a process of its own"]
async fn an_instance_of_its_own() {
    let (Ok(seed), Ok(prefix)) = (std::env::var(SEED), std::env::var(PREFIX)) else { return };
    let engine = instance(vec![seed], &prefix).await;
    println!("{ANSWER}started");
    for line in std::io::stdin().lines() {
        println!("{ANSWER}{}", perform(&engine, &line.unwrap()).await);
    }
}
