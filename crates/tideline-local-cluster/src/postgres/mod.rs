//! A real PostgreSQL on loopback, for tests and for trying the archive out.
//!
//! It has a directory, a port and a password of its own; a PostgreSQL that the machine runs is never touched. It never
//! outlives the process that started it.

mod copy;
mod programs;
mod user;

use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use tokio::time::{Instant, sleep};

pub use self::copy::PostgresCopy;
use self::programs::Programs;
use self::user::ServerUser;
use crate::conf::LOG;
use crate::home::{Home, cannot, make_dir};
use crate::keeper::Keeper;
use crate::ports::PortPool;
use crate::process::{children_of, in_own_session, log_tail, to_pid};
use tideline_model::error::{Error, Result};

/// The time that a server may take until it serves; making a new one needs a second or two of a core.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// The time that a server may take to end.
const STOP_DEADLINE: Duration = Duration::from_secs(20);
/// The time that a server which nobody needs any more may take to end.
const QUIT_DEADLINE: Duration = Duration::from_secs(5);
/// Between two looks at it.
const POLL: Duration = Duration::from_millis(5);
/// Somebody else may take a port between our look and the server's start.
const PORT_TRIES: usize = 5;

/// A PostgreSQL server of this process; dropping it ends it and removes its data.
pub struct LocalPostgres {
    // Removes the directory, and ends what is left of the server.
    _keeper: Keeper,
    _ports: PortPool,
    programs: Programs,
    user: Option<ServerUser>,
    home: PathBuf,
    port: u16,
    password: String,
    settings: Vec<(String, String)>,
    server: Option<Child>,
    log_start: u64,
}

impl LocalPostgres {
    /// Starts a new, empty server.
    ///
    /// # Errors
    /// `Misconfigured` if there is no PostgreSQL on this machine, or none that could be started: says what to install.
    pub async fn up() -> Result<Self> {
        Self::with_settings(&[]).await
    }

    /// Starts a new, empty server with settings of its own (`max_connections`, `20`).
    ///
    /// # Errors
    /// As [`up`](Self::up).
    pub async fn with_settings(settings: &[(&str, &str)]) -> Result<Self> {
        Self::with_files(settings, &[]).await
    }

    /// Starts a new, empty server that takes TLS connections too, with this certificate and its key (PEM).
    ///
    /// # Errors
    /// As [`up`](Self::up).
    pub async fn with_tls(certificate: &str, key: &str) -> Result<Self> {
        let settings = [("ssl", "on"), ("ssl_cert_file", "tls.crt"), ("ssl_key_file", "tls.key")];
        Self::with_files(&settings, &[("tls.crt", certificate), ("tls.key", key)]).await
    }

    async fn with_files(settings: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Self> {
        let programs = Programs::find()?;
        let user = ServerUser::needed()?;
        let dir = Home::temporary()?.path().to_owned();
        // Its name is what the keeper goes by.
        let home = dir.join("node-postgres");
        make_dir(&home)?;
        if let Some(user) = &user {
            for path in [&dir, &home] {
                chown(path, Some(user.uid), Some(user.gid)).map_err(|e| cannot("give away", path, &e))?;
            }
        }
        let keeper = Keeper::start_as(&dir, user.as_ref().map(|user| (user.uid, user.gid)))?;
        let mut server = Self {
            _keeper: keeper,
            _ports: PortPool::passing(),
            programs,
            user,
            home,
            port: 0,
            password: format!("{:032x}", rand::random::<u128>()),
            settings: settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            server: None,
            log_start: 0,
        };
        server.make_data().await?;
        for (name, text) in files {
            server.write_secret(&server.home.join(name), text)?;
        }
        let mut tried = 0;
        loop {
            server.port = server._ports.take()?.client;
            tried += 1;
            match server.start().await {
                Err(_) if tried < PORT_TRIES && server.is_port_taken() => {}
                started => return started.map(|()| server),
            }
        }
    }

    /// Tells where clients connect: `postgres://…`, with the password, to the database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The address of another database of this server.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// Tells where one of the clients lies that come with this server: `pg_dump`, `psql`.
    pub fn client(&self, program: &str) -> PathBuf {
        self.programs.client(program)
    }

    /// Starts the server that was stopped or killed, with the data and on the port that it had.
    ///
    /// # Errors
    /// `Unavailable` with the end of its log if it doesn't serve in time.
    pub async fn start(&mut self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let path = self.home.join(LOG);
        let log = File::options().create(true).append(true).mode(0o600).open(&path);
        let log = log.map_err(|e| cannot("open", &path, &e))?;
        self.log_start = log.metadata().map_or(0, |meta| meta.len());
        let errors = log.try_clone().map_err(|e| cannot("open", &path, &e))?;
        // One that was killed leaves it, and its process id may be somebody else's by now.
        let _ = fs::remove_file(self.status_file());
        let mut command = self.command("postgres");
        command.arg("-D").arg(&self.home).arg("-p").arg(self.port.to_string());
        // Shared memory in its directory goes with that.
        let fixed = [
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("dynamic_shared_memory_type", "mmap"),
        ];
        let given = self.settings.iter().map(|(name, value)| (&**name, &**value));
        for (name, value) in fixed.into_iter().chain(given) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
        self.server = Some(child.map_err(|e| cannot("run", &self.programs.path("postgres"), &e))?);
        let deadline = Instant::now() + START_DEADLINE;
        while !self.serves() {
            let has_ended = !self.is_running();
            if has_ended || Instant::now() >= deadline {
                let what = if has_ended { "ended" } else { "does not serve" };
                let tail = log_tail(&self.home, self.log_start);
                return Err(Error::unavailable(format!("PostgreSQL on port {} {what}; {tail}", self.port)));
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Ends the server and all its sessions at once, as a loss of power would; its data stays.
    ///
    /// # Errors
    /// `Internal` if its processes don't go.
    pub async fn kill(&mut self) -> Result<()> {
        self.end(Signal::KILL).await
    }

    /// Ends the server in good order; sessions are cut off.
    ///
    /// # Errors
    /// `Internal` if it doesn't end.
    pub async fn stop(&mut self) -> Result<()> {
        // SIGINT is PostgreSQL's "fast" shutdown.
        self.end(Signal::INT).await
    }

    /// Stops all its processes where they stand: connections stay, nothing answers.
    pub fn freeze(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Whether its first process lives.
    pub fn is_running(&mut self) -> bool {
        self.server.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    async fn end(&mut self, signal: Signal) -> Result<()> {
        // It must begin no more of them while they are looked for.
        self.signal_first(Signal::STOP);
        let sessions = self.first().map(children_of).unwrap_or_default();
        match signal {
            // Sessions notice a dead first process only when they next wait for something.
            Signal::KILL => self.signal_all(signal),
            _ => [signal, Signal::CONT].into_iter().for_each(|signal| self.signal_first(signal)),
        }
        let deadline = Instant::now() + STOP_DEADLINE;
        while self.is_running() || sessions.iter().any(|pid| is_there(*pid)) {
            if Instant::now() >= deadline {
                return Err(Error::internal(format!("PostgreSQL (pid {:?}) does not end", self.first())));
            }
            sleep(POLL).await;
        }
        self.server = None;
        Ok(())
    }

    /// The process ids of its first process, then of the others.
    pub fn pids(&self) -> Vec<u32> {
        let first = self.first();
        first.into_iter().chain(first.into_iter().flat_map(children_of)).collect()
    }

    fn first(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    fn signal_first(&self, signal: Signal) {
        self.first().into_iter().for_each(|pid| send(pid, signal));
    }

    fn signal_all(&self, signal: Signal) {
        self.pids().into_iter().for_each(|pid| send(pid, signal));
    }

    /// Makes the files of a new server.
    async fn make_data(&self) -> Result<()> {
        let secret = self.home.with_file_name("password");
        self.write_secret(&secret, &self.password)?;
        let mut command = self.command("initdb");
        command.arg("-D").arg(&self.home).args(["-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]);
        command.arg("--auth=scram-sha-256").arg("--pwfile").arg(&secret).stdin(Stdio::null());
        let made = tokio::task::spawn_blocking(move || command.output()).await;
        let output = made
            .map_err(|e| Error::internal(e.to_string()))?
            .map_err(|e| cannot("run", &self.programs.path("initdb"), &e))?;
        let _ = fs::remove_file(&secret);
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error::misconfigured(format!("initdb failed: {}", said.trim())))
    }

    /// Writes a file that nobody but the server reads.
    fn write_secret(&self, path: &Path, text: &str) -> Result<()> {
        let write = || -> std::io::Result<()> {
            let mut file = File::options().create_new(true).write(true).mode(0o600).open(path)?;
            writeln!(file, "{text}")?;
            self.user.as_ref().map_or(Ok(()), |user| chown(path, Some(user.uid), Some(user.gid)))
        };
        write().map_err(|e| cannot("write", path, &e))
    }

    /// One of PostgreSQL's programs, as the user that it may run as, where no ctrl-C reaches it.
    fn command(&self, program: &str) -> Command {
        let mut command = in_own_session(&self.programs.path(program));
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command.current_dir(&self.home);
        command
    }

    /// The file in which the server says who it is, and whether it serves.
    fn status_file(&self) -> PathBuf {
        self.home.join("postmaster.pid")
    }

    /// Whether the server says that it takes connections: on the eighth line, "ready".
    fn serves(&self) -> bool {
        let Some(pid) = self.first() else { return false };
        let said = fs::read_to_string(self.status_file()).unwrap_or_default();
        let mut lines = said.lines();
        lines.next().and_then(|line| line.trim().parse().ok()) == Some(pid)
            && lines.nth(6).is_some_and(|line| line.trim() == "ready")
    }

    fn is_port_taken(&self) -> bool {
        log_tail(&self.home, self.log_start).contains("could not bind")
    }
}

impl fmt::Debug for LocalPostgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LocalPostgres");
        shown.field("home", &self.home).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Drop for LocalPostgres {
    /// Ends it, whoever is frozen too: asked first, for then it gives the system's shared memory back. What is left the
    /// keeper kills.
    fn drop(&mut self) {
        self.thaw();
        self.signal_first(Signal::QUIT);
        let since = std::time::Instant::now();
        while self.is_running() && since.elapsed() < QUIT_DEADLINE {
            std::thread::sleep(POLL);
        }
        self.signal_all(Signal::KILL);
        if let Some(child) = &mut self.server {
            let _ = child.wait();
        }
    }
}

/// Sends a signal to a process; one that has gone meanwhile needs none.
fn send(pid: u32, signal: Signal) {
    let _ = to_pid(pid).map(|pid| kill_process(pid, signal));
}

/// Whether a process works. One that has ended may wait for good to be asked how, where nobody is there to do that.
/// Where nothing is told (macOS), sessions are on their own.
fn is_there(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| !['Z', 'X'].contains(&state))
}

/// The state of a process, in the letter that the system has for it.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ").and_then(|(_, fields)| fields.chars().next())
}
