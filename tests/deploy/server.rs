//! A server that runs with deploy/redis.conf, for as long as its value lives and no longer than this process.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::deployed;

/// Ends the server when standard input ends: whatever becomes of the test, the pipe is closed then. Signals from a
/// terminal go to the whole group; the shell outlives them for this.
const KEEPER: &str = r#"trap '' HUP INT TERM; "$@" & while read -r _; do :; done; kill -KILL $!; wait $!"#;
const STARTS_WITHIN: Duration = Duration::from_secs(20);
const REPLIES_WITHIN: Duration = Duration::from_secs(5);
/// The bus port is the port + 10000. All below the ports that the system hands out, all above most of
/// `tideline_local_cluster`'s.
const PORTS: std::ops::Range<u16> = 8_000..12_000;
const BUS: u16 = 10_000;
/// So often somebody else is faster, at most.
const PORTS_TAKEN_MAX: usize = 20;

pub(crate) struct Server {
    keeper: Child,
    pub(crate) port: u16,
}

/// A directory for a server's files; named after this process, so that a server that was left behind can be told.
pub(crate) fn data_dir() -> TempDir {
    tempfile::Builder::new().prefix(&format!("tideline-{}-deploy-", std::process::id())).tempdir().unwrap()
}

/// A port of 127.0.0.1 that is free now, and whose bus port is.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    let origin = u16::try_from(std::process::id() % u32::from(count)).unwrap();
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    (0..count)
        .map(|_| PORTS.start + (origin + NEXT.fetch_add(1, Ordering::Relaxed)) % count)
        .find(|&port| is_free(port) && is_free(port + BUS))
        .expect("a free port")
}

impl Server {
    /// Starts a server where nobody else listens.
    pub(crate) fn start_anywhere(dir: &Path) -> Self {
        let started = (0..PORTS_TAKEN_MAX).find_map(|_| Self::try_start(dir, free_port()));
        started.expect("a port that stays free until a server listens there")
    }

    /// Starts a server with the deployed settings; only where it listens and where its files lie are overridden.
    pub(crate) fn start(dir: &Path, port: u16) -> Self {
        Self::try_start(dir, port).unwrap_or_else(|| panic!("port {port} is taken"))
    }

    /// The same; `None`: somebody else has taken the port since it was looked for.
    fn try_start(dir: &Path, port: u16) -> Option<Self> {
        let log = File::create(dir.join("server.log")).unwrap();
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(program())
            .arg(deployed("redis.conf"))
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .arg("--dir")
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self { keeper, port };
        let deadline = Instant::now() + STARTS_WITHIN;
        // Another server that has the port answers, too.
        let dir = dir.canonicalize().unwrap();
        let is_ours = |reply: Vec<String>| reply.get(1).is_some_and(|told| Path::new(told) == dir);
        while !server.try_ask(&["CONFIG", "GET", "dir"]).is_some_and(is_ours) {
            let said = fs::read_to_string(dir.join("server.log")).unwrap_or_default();
            if said.contains("Address already in use") {
                return None;
            }
            assert!(Instant::now() < deadline, "no answer from port {port}; the server said:\n{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// Sends a command; the reply's strings and numbers, flattened.
    pub(crate) fn ask(&self, command: &[&str]) -> Vec<String> {
        self.try_ask(command).unwrap_or_else(|| panic!("port {}: no reply to {command:?}", self.port))
    }

    fn try_ask(&self, command: &[&str]) -> Option<Vec<String>> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut stream = TcpStream::connect_timeout(&address, REPLIES_WITHIN).ok()?;
        stream.set_read_timeout(Some(REPLIES_WITHIN)).ok()?;
        let mut request = format!("*{}\r\n", command.len());
        for word in command {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        stream.write_all(request.as_bytes()).ok()?;
        let mut reply = Vec::new();
        read_reply(&mut BufReader::new(stream), &mut reply)?;
        Some(reply)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn read_reply(from: &mut BufReader<TcpStream>, into: &mut Vec<String>) -> Option<()> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    let (kind, rest) = line.trim_end().split_at_checked(1)?;
    match kind {
        "*" => (0..rest.parse::<usize>().ok()?).try_for_each(|_| read_reply(from, into)),
        "$" => {
            let mut text = vec![0; rest.parse::<usize>().ok()? + 2];
            from.read_exact(&mut text).ok()?;
            into.push(String::from_utf8_lossy(&text[..text.len() - 2]).into_owned());
            Some(())
        }
        "-" => {
            into.push(line.trim_end().to_owned());
            Some(())
        }
        _ => {
            into.push(rest.to_owned());
            Some(())
        }
    }
}

/// The server program, looked for as `tideline_local_cluster` does.
fn program() -> OsString {
    if let Some(path) = std::env::var_os("TIDELINE_REDIS_SERVER").filter(|path| !path.is_empty()) {
        return path;
    }
    ["redis-server", "valkey-server"]
        .iter()
        .find_map(|name| on_path(name))
        .expect("redis-server or valkey-server on the PATH, or TIDELINE_REDIS_SERVER")
        .into_os_string()
}

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
}
