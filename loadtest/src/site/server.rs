//! One server that runs: started, asked for its figures, killed, started again.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;
use tideline::cluster::Seed;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::cpu;

/// Starts the server, which tells its pid before all else, and ends it once standard input ends: when this process
/// does, in whatever way. Nobody waits for the server before that, so no other process is given its pid. Told by its
/// guard, a pid may come behind what the server says.
const KEEPER: &str = r#"
trap '' HUP INT TERM
sh -c 'echo "$$" && exec "$@"' tideline-server "$@" 2>"$TIDELINE_LOG" </dev/null &
while read -r _; do :; done
kill -KILL "$!"
wait
rm -f "$TIDELINE_LOG"
"#;
/// A server serves within this time, ...
const START_MAX: Duration = Duration::from_secs(60);
/// ... and has ended within this, once it was told to.
const END_MAX: Duration = Duration::from_secs(30);
/// Somebody else may take a port between our look and the server's start.
const PORT_TRIES: usize = 5;
/// Lines of its log that are shown of a server that doesn't begin.
const LOG_LINES: usize = 20;

/// How servers are run.
#[derive(Debug, Clone)]
pub(crate) struct SiteSettings {
    pub(crate) program: PathBuf,
    pub(crate) seeds: Vec<Seed>,
    /// What all keys begin with.
    pub(crate) prefix: String,
    /// Variables of the configuration, without their beginning: `SERVER_TITLE`.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// A process that serves.
#[derive(Debug)]
pub(crate) struct SiteServer {
    settings: SiteSettings,
    keeper: Child,
    /// Dropping it ends the server.
    stdin: Option<ChildStdin>,
    told: Lines<BufReader<ChildStdout>>,
    pid: u32,
    address: SocketAddr,
    metrics: SocketAddr,
    log: NamedTempFile,
}

/// The site as clients know it: the same at every server, so that they say the same.
pub(crate) const URL: &str = "http://localhost:3000";

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

impl SiteServer {
    /// Starts a server, and waits until it serves.
    pub(crate) async fn start(settings: SiteSettings) -> anyhow::Result<Self> {
        let mut failed = None;
        for _ in 0..PORT_TRIES {
            let mut server = Self::spawn(settings.clone()).await?;
            match server.is_served().await {
                Ok(()) => return Ok(server),
                Err(error) => failed = Some(error),
            }
            server.end().await;
        }
        Err(failed.unwrap_or_else(|| anyhow::anyhow!("no server was started")))
    }

    async fn spawn(settings: SiteSettings) -> anyhow::Result<Self> {
        let (address, metrics) = (free_address()?, free_address()?);
        let log = NamedTempFile::with_prefix("tideline-serve-")?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "tideline-keeper"]).arg(&settings.program).arg("serve");
        command.args(["--listen", &address.to_string(), "--prefix", &settings.prefix, "--public-url", URL]);
        // Whatever is set for this process is not meant for the server.
        let names = std::env::vars_os().map(|(name, _)| name);
        names.filter(|name| name.to_string_lossy().starts_with("TIDELINE_")).for_each(|name| {
            command.env_remove(name);
        });
        for (name, value) in &settings.variables {
            command.env(format!("TIDELINE_{name}"), value);
        }
        // In no argument: an address may have a password, and everybody sees arguments.
        let seeds: Vec<&str> = settings.seeds.iter().map(Seed::url).collect();
        command.env("TIDELINE_CLUSTER", seeds.join(","));
        command.env("TIDELINE_SERVER_METRICS_LISTEN", metrics.to_string()).env("TIDELINE_LOG", log.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut keeper = command.spawn().context("cannot start `sh`, which guards the server")?;
        let (stdin, stdout) = (keeper.stdin.take(), keeper.stdout.take());
        let mut told = BufReader::new(stdout.context("a server without an output")?).lines();
        let pid = told.next_line().await?.and_then(|line| line.parse().ok());
        let pid = pid.context("the server does not tell its process")?;
        Ok(Self { settings, keeper, stdin, told, pid, address, metrics, log })
    }

    /// Waits until it serves.
    async fn is_served(&mut self) -> anyhow::Result<()> {
        let serves = async {
            while let Some(line) = self.told.next_line().await? {
                if line.starts_with("Serving ") {
                    return anyhow::Ok(());
                }
            }
            anyhow::bail!("it ended")
        };
        let served = tokio::time::timeout(START_MAX, serves).await;
        let served = served.unwrap_or_else(|_| Err(anyhow::anyhow!("it took longer than {START_MAX:?}")));
        served.with_context(|| {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            format!("{} serve did not begin:\n{last}", self.settings.program.display())
        })
    }

    /// Where it is asked.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// CPU time that it has used.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        cpu::of_all_threads(self.pid)
    }

    /// Bytes of it that lie in memory; `None`, where that isn't told.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    }

    /// What it has written to its log until now.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// Its metrics, as Prometheus reads them.
    pub(crate) async fn metrics(&self) -> anyhow::Result<String> {
        let clients = crate::http::Clients::new(self.metrics, 1);
        let told = clients.ask(&crate::http::Ask::get("/metrics")).await?;
        anyhow::ensure!(told.is_success(), "its metrics are answered with {}", told.status);
        Ok(String::from_utf8(told.body)?)
    }

    /// Kills it where it stands.
    fn kill(&self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // Nobody has waited for it: it is there, or it has ended.
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }

    /// Kills it, and waits until it is gone; gives what it has written to its log.
    pub(crate) async fn end(mut self) -> String {
        self.kill();
        let log = self.log();
        drop(self.stdin.take());
        let _ = tokio::time::timeout(END_MAX, self.keeper.wait()).await;
        log
    }
}

/// The sum of a metric over all its labels; `None`: it isn't told.
pub(crate) fn metric(told: &str, name: &str) -> Option<f64> {
    let is_of = |rest: &str| rest.starts_with(['{', ' ']);
    let values = told.lines().filter_map(|line| line.strip_prefix(name).filter(|rest| is_of(rest)));
    let values: Vec<f64> = values.filter_map(|rest| rest.rsplit(' ').next()?.parse().ok()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_summed_over_their_labels() {
        let told = "# TYPE a counter\na{b=\"c d\"} 2\na{b=\"e\"} 3.5\nab 7\nf 1\n";
        assert_eq!([metric(told, "a"), metric(told, "ab"), metric(told, "g")], [Some(5.5), Some(7.0), None]);
    }
}
