//! The least that an answer of so many bytes costs: a handler that does nothing but answer, in a process of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use clap::Args;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, Command};

use crate::cpu;

/// It answers within this time.
const START_MAX: Duration = Duration::from_secs(30);

/// What the process is told.
#[derive(Debug, Args)]
pub(crate) struct BareArgs {
    /// Bytes of each answer
    #[arg(long)]
    bytes: usize,
}

/// Serves until standard input ends.
pub(crate) async fn serve(args: BareArgs) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    // One text for all, as a server has it that remembers everything.
    let body = axum::body::Bytes::from(vec![b'x'; args.bytes]);
    let answer = move || async move { ([(CONTENT_TYPE, "application/json")], body.clone()) };
    let served = axum::serve(listener, Router::new().route("/", get(answer))).into_future();
    tokio::select! {
        served = served => Ok(served?),
        _ = async { tokio::io::stdin().read_to_end(&mut Vec::new()).await } => Ok(()),
    }
}

/// The process.
#[derive(Debug)]
pub(super) struct BareServer {
    child: Child,
    /// Dropping it ends the process.
    _stdin: ChildStdin,
    pub(super) address: SocketAddr,
}

impl BareServer {
    pub(super) async fn start(bytes: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve-bare", "--bytes", &bytes.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("the bare handler's process")?;
        let stdin = child.stdin.take().context("a process without an input")?;
        let stdout = child.stdout.take().context("a process without an output")?;
        let mut line = String::new();
        let mut told = BufReader::new(stdout);
        tokio::time::timeout(START_MAX, told.read_line(&mut line)).await??;
        let address = line.trim().parse().context("the bare handler does not tell where it is")?;
        Ok(Self { child, _stdin: stdin, address })
    }

    pub(super) fn cpu_time(&self) -> Option<Duration> {
        cpu::of_all_threads(self.child.id()?)
    }
}
