//! One server process: started, found again, told from others, signalled.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, kill_process};

use super::binary::on_path;
use super::conf::{CONF, LOG, PID};
use super::home::cannot;
use tideline_model::error::{Error, Result};

/// The part of a log that an error message shows.
const TAIL_LINES: usize = 8;
const TAIL_BYTES: u64 = 16 * 1024;
/// A killed process is gone at once, unless the machine is in trouble.
const DEATH_DEADLINE: Duration = Duration::from_secs(10);

/// One server process, alive or not.
#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    home: PathBuf,
    /// Present if we started it: then it stays a zombie until we ask, and its pid cannot be another's.
    child: Option<Child>,
    /// Length of the log before this process wrote to it.
    log_start: u64,
}

impl Process {
    /// Starts the server of the node directory `home`, which holds its configuration.
    pub(super) fn spawn(server: &Path, home: &Path, env: &[(String, String)]) -> Result<Self> {
        let path = home.join(LOG);
        let log =
            File::options().create(true).append(true).open(&path).map_err(|e| cannot("open", &path, &e))?;
        let log_start = log.metadata().map_or(0, |meta| meta.len());
        let errors = log.try_clone().map_err(|e| cannot("open", &path, &e))?;
        let child = in_own_session(server)
            .arg(home.join(CONF))
            .current_dir(home)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|e| cannot("run", server, &e))?;
        Ok(Self { pid: child.id(), home: home.to_owned(), child: Some(child), log_start })
    }

    /// Finds the running server of `home`: by its pid file, by what else is known of its pid, or else (Linux)
    /// among all processes: one whose starter was killed may not have written its pid file yet.
    pub(super) fn find(home: &Path, hint: Option<u32>) -> Option<Self> {
        let filed = fs::read_to_string(home.join(PID)).ok().and_then(|text| text.trim().parse().ok());
        let known = [filed, hint].into_iter().flatten();
        let pid = known.chain(all_pids()).find(|pid| is_server_of(*pid, home))?;
        Some(Self { pid, home: home.to_owned(), child: None, log_start: 0 })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn is_alive(&mut self) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => is_server_of(self.pid, &self.home),
        }
    }

    /// Sends a signal, if the process still is our server.
    pub(super) fn signal(&mut self, signal: Signal) -> Result<()> {
        let pid = to_pid(self.pid).filter(|_| self.is_alive());
        let sent = pid.ok_or(rustix::io::Errno::SRCH).and_then(|pid| kill_process(pid, signal));
        sent.map_err(|e| {
            Error::unavailable(format!(
                "the server in {} (pid {}) cannot be signalled: {e}",
                self.home.display(),
                self.pid
            ))
        })
    }

    /// Kills the process and waits until it is gone; its ports are free then.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        let deadline = Instant::now() + DEATH_DEADLINE;
        while self.is_alive() {
            if Instant::now() >= deadline {
                return Err(Error::internal(format!("pid {} is still there after SIGKILL", self.pid)));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The last lines that this process wrote.
    pub(super) fn log_tail(&self) -> String {
        log_tail(&self.home, self.log_start)
    }
}

/// The last lines of the log in `home`, from byte `start` on.
pub(super) fn log_tail(home: &Path, start: u64) -> String {
    let path = home.join(LOG);
    let read = || -> std::io::Result<String> {
        let mut file = File::open(&path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(end.saturating_sub(TAIL_BYTES))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n  ");
    format!("the last lines of {}:\n  {tail}", path.display())
}

/// A command in a session of its own: no ctrl-C and no closing terminal reaches it.
pub(super) fn in_own_session(program: &Path) -> Command {
    // Doing it ourselves takes unsafe code; without the tool (macOS) a process group must do.
    if let Some(setsid) = on_path("setsid") {
        let mut command = Command::new(setsid);
        command.arg(program);
        command
    } else {
        let mut command = Command::new(program);
        command.process_group(0);
        command
    }
}

fn all_pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Processes whose parent is that one.
pub(super) fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        // Behind the name, which may hold anything: state, parent.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(1).and_then(|field| field.parse().ok()) == Some(parent)
    };
    if Path::new("/proc/self/stat").exists() {
        return all_pids().filter(is_child).collect();
    }
    let Ok(output) = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output() else { return Vec::new() };
    let listed = String::from_utf8_lossy(&output.stdout);
    let pairs = listed.lines().filter_map(|line| {
        let (pid, of) = line.trim().split_once(char::is_whitespace)?;
        Some((pid.parse().ok()?, of.trim().parse::<u32>().ok()?))
    });
    pairs.filter(|(_, of)| *of == parent).map(|(pid, _)| pid).collect()
}

pub(super) fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Whether `pid` is the server of `home`, not some later process that was given the same number.
fn is_server_of(pid: u32, home: &Path) -> bool {
    // Servers lead a group; the copies they make of themselves to write data do not. Asked last: for a
    // process from outside a container the answer is no pid, and rustix asserts that it is one.
    lives_in(pid, home) && to_pid(pid).is_some_and(|pid| getpgid(Some(pid)) == Ok(pid))
}

fn lives_in(pid: u32, home: &Path) -> bool {
    if Path::new("/proc/self/fd").is_dir() {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let points_to =
            |link: &str, target: &Path| fs::read_link(process.join(link)).is_ok_and(|path| path == target);
        return points_to("cwd", home) && points_to("fd/1", &home.join(LOG));
    }
    let Ok(output) = Command::new("ps").args(["-ww", "-o", "command=", "-p", &pid.to_string()]).output()
    else {
        return false;
    };
    String::from_utf8_lossy(&output.stdout).contains(&*home.join(CONF).to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_pid_is_not_taken_for_a_server() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(PID), std::process::id().to_string()).unwrap();
        assert!(Process::find(home.path(), Some(1)).is_none());
    }

    #[test]
    fn the_tail_begins_where_this_process_began_to_write() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(LOG), "old\nnew 1\n\nnew 2\n").unwrap();
        let tail = log_tail(home.path(), 4);
        assert!(tail.ends_with("new 1\n  new 2") && !tail.contains("old"), "{tail}");
    }
}
