//! Programs of others that must not outlive us: they end with us, however that happens, and when they have used too much CPU time.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use tokio::process::Command;

/// As a local cluster's servers end with whoever started them: by the end of a pipe.
const SCRIPT: &str = include_str!("guarded.sh");

/// Runs a program to its end, which comes at the latest when it has used so much CPU time. It is killed if this is dropped.
pub(crate) async fn run(
    dir: &Path,
    cpu_seconds: u64,
    program: impl IntoIterator<Item: AsRef<OsStr>>,
) -> std::io::Result<ExitStatus> {
    let mut shell = Command::new("sh")
        .args(["-c", SCRIPT, "loadtest-guard", &cpu_seconds.to_string()])
        .args(program)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    // Waiting would close it.
    let _until_here = shell.stdin.take();
    shell.wait().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const SPIN: &str = "echo $$ >pid; while :; do :; done";

    #[tokio::test]
    async fn a_program_tells_how_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let run = async |line: &str| run(dir.path(), 60, ["sh", "-c", line]).await.unwrap();
        assert!(run("exit 0").await.success());
        assert_eq!(run("exit 5").await.code(), Some(5));
        assert!(!super::run(dir.path(), 60, ["there-is-no-such-program"]).await.unwrap().success());
    }

    /// Two were found that had spun for 24 minutes.
    #[tokio::test]
    async fn a_program_that_spins_ends_when_it_has_used_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path(), 1, ["sh", "-c", SPIN]);
        let ended = tokio::time::timeout(Duration::from_secs(120), run).await.expect("it ends").unwrap();
        assert!(!ended.success());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_program_goes_with_whoever_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let told = || std::fs::read_to_string(dir.path().join("pid")).ok().filter(|pid| pid.ends_with('\n'));
        let pid = tokio::select! {
            ended = run(dir.path(), 60, ["sh", "-c", SPIN]) => panic!("{ended:?}"),
            pid = async {
                loop {
                    if let Some(pid) = told() {
                        break pid;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            } => pid,
        };
        let process = Path::new("/proc").join(pid.trim());
        let until = Instant::now() + Duration::from_secs(60);
        while process.join("cwd").exists() {
            assert!(Instant::now() < until, "{} is still there", process.display());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
