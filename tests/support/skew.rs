//! Wall clocks that are off: a library that is preloaded into a process, a server or an instance.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

pub(crate) const HOUR_S: i64 = 3_600;
/// Clocks are set by more than this.
const FAR_S: i64 = HOUR_S / 2;

/// Preloaded into a process, this adds the seconds in a file to its wall clock; its monotonic clock stays what it is.
/// libfaketime does the same, but hangs in servers with jemalloc.
const LIBRARY: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long skew(void) {
    int before = errno;
    char text[32] = "0";
    const char *path = getenv("CLOCK_SKEW_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0) text[0] = '0';
        close(file);
    }
    errno = before;
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, which, now);
    if (done == 0 && which == CLOCK_REALTIME) now->tv_sec += skew();
    return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec;
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}
"#;

/// How long a server may take to say so after its clock was set.
const PATIENCE: Duration = Duration::from_secs(60);

/// Wall clocks of processes, each by a name.
#[derive(Debug)]
pub(crate) struct Clocks {
    dir: tempfile::TempDir,
    library: PathBuf,
}

impl Clocks {
    /// Compiles the library with the compiler that links Rust programs too; `None`, and says so, where that cannot be.
    pub(crate) fn new() -> Option<Self> {
        let compiled = tempfile::tempdir().ok().and_then(|dir| {
            let library = dir.path().join("clock.so");
            is_compiled(&library).then_some(Self { dir, library })
        });
        if compiled.is_none() {
            println!(
                "NOT CHECKED: `cc` cannot build a library that skews a clock here (Debian: apt-get install gcc)"
            );
        }
        compiled
    }

    /// A process with these variables goes by the clock of that name.
    pub(crate) fn variables(&self, name: &str) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library.clone()), ("CLOCK_SKEW_FILE", self.dir.path().join(name))]
    }

    /// A cluster, some of whose servers go by clocks of these names.
    pub(crate) fn of_servers(&self, spec: ClusterSpec, names: &[(usize, &str)]) -> ClusterSpec {
        names.iter().fold(spec, |spec, (node, name)| {
            let add = |spec: ClusterSpec, (variable, path): (&str, PathBuf)| {
                spec.node_env(*node, variable, path.to_string_lossy())
            };
            self.variables(name).into_iter().fold(spec, add)
        })
    }

    /// Sets a clock so many seconds ahead, at once. One that was never set is right.
    ///
    /// # Errors
    /// What writing a file may end with.
    pub(crate) fn set(&self, name: &str, seconds: i64) -> std::io::Result<()> {
        let (new, file) = (self.dir.path().join("new"), self.dir.path().join(name));
        // Never half of it: between writing and reading it would be right for a moment.
        std::fs::write(&new, seconds.to_string())?;
        std::fs::rename(&new, &file)
    }

    /// The same for a server's clock, until the server says so.
    ///
    /// # Errors
    /// `TimedOut` if it never does.
    pub(crate) async fn set_server(
        &self,
        name: &str,
        cluster: &LocalCluster,
        node: &NodeAddr,
        seconds: i64,
    ) -> std::io::Result<()> {
        self.set(name, seconds)?;
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let told = cluster.ask(node, Command::new("TIME")).await.and_then(|time| time.into_array());
            let told = told.ok().and_then(|time| time.first()?.text().ok()?.parse::<i64>().ok());
            if told.is_some_and(|told| (told - real_ms() / 1_000 - seconds).abs() < FAR_S) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let text = format!("{node} never said that its clock is {seconds} s off");
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, text))
    }
}

fn is_compiled(library: &Path) -> bool {
    let source = library.with_extension("c");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o"]).arg(library).arg(&source);
    cfg!(target_os = "linux")
        && std::fs::write(&source, LIBRARY).is_ok()
        && compiler.output().is_ok_and(|output| output.status.success())
}

/// Milliseconds since 1970 by a clock that nobody sets: this process's own.
pub(crate) fn real_ms() -> i64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
