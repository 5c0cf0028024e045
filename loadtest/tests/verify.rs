//! The oracle: random histories, with and without faults, and that it can fail.
//!
//! A failed run prints its seed: `TIDELINE_SEED=N cargo test -p loadtest --test verify` plans the same operations.
//! For nights: `make verify-long`.

mod documented;

use std::process::Command;

use serde_json::Value;

const WRONGS: [&str; 9] =
    ["missing", "doubled", "leaked", "reordered", "lost", "stale", "stuck", "miscounted", "out_of_step"];

struct Ran {
    code: Option<i32>,
    json: Value,
    told: String,
}

impl Ran {
    fn count(&self, path: &str) -> u64 {
        self.json.pointer(path).and_then(Value::as_u64).unwrap_or(0)
    }

    fn wrongs(&self) -> Vec<(&'static str, u64)> {
        let counted = WRONGS.map(|wrong| (wrong, self.count(&format!("/{wrong}"))));
        counted.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    fn must_have_happened(&self, event: &str) {
        assert!(self.count(&format!("/events/{event}")) > 0, "{event}: {}", self.told);
    }

    fn must_be_right(&self) {
        assert!(self.wrongs().is_empty() && self.code == Some(0), "{:?}\n{}", self.wrongs(), self.told);
    }
}

fn seed() -> u64 {
    std::env::var("TIDELINE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand::random)
}

fn verify(seed: u64, args: &[&str]) -> Ran {
    println!("TIDELINE_SEED={seed} verify {}", args.join(" "));
    let dir = tempfile::tempdir().expect("a directory for the result");
    let file = dir.path().join("verify.json");
    let output = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(["verify", "--seed", &seed.to_string(), "--json"])
        .arg(&file)
        .args(args)
        .env_remove("TIDELINE_CLUSTER")
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let json = std::fs::read(&file).ok().and_then(|json| serde_json::from_slice(&json).ok());
    Ran {
        code: output.status.code(),
        json: json.unwrap_or(Value::Null),
        told: text(&output.stderr) + &text(&output.stdout),
    }
}

fn long_run(visible_within_ms: &str) {
    let ran = verify(seed(), &["--operations", "6000", "--visible-within-ms", visible_within_ms]);
    ran.must_be_right();
    documented::check(&ran.json);
    assert!(ran.count("/pages_checked") > 2_000 && ran.count("/posts") > 500, "{}", ran.told);
    let operations = ["publish", "delete", "follow", "unfollow", "block", "read", "sweep", "way"];
    for operation in operations.into_iter().chain(["sign up", "login", "find", "log in", "report", "resolve"])
    {
        assert!(ran.count(&format!("/operations/{operation}/acknowledged")) > 0, "{operation}: {}", ran.told);
    }
    assert!(ran.count("/operations/sign up/refused") > 0, "{}", ran.told);
    ran.must_have_happened("pulled after a round");
    ran.must_have_happened("other modes than a round before");
}

#[test]
fn every_page_is_right_when_nothing_is_cached() {
    long_run("0");
}

#[test]
fn every_page_is_right_when_others_may_be_seen_late() {
    long_run("200");
}

#[test]
fn every_page_is_right_whatever_the_policy_is() {
    for policy in ["push", "pull", "threshold", "cost"] {
        let ran = verify(seed(), &["--policy", policy, "--operations", "900", "--round", "300"]);
        ran.must_be_right();
        // Whoever is pulled was pushed once. So short a run may see nobody cross over between two of its rounds.
        if policy == "threshold" {
            ran.must_have_happened("pulled after a round");
        }
    }
}

#[test]
fn nothing_is_lost_when_instances_are_killed_and_frozen() {
    let chaos = ["--chaos", "kill-instance,freeze-instance", "--operations", "2500", "--round", "1500"];
    let ran = verify(seed(), &chaos);
    ran.must_be_right();
    assert!(
        ran.count("/events/instances killed") + ran.count("/events/instances frozen") > 0,
        "{}",
        ran.told
    );
}

#[test]
fn nothing_is_lost_when_slots_move() {
    let ran = verify(seed(), &["--chaos", "reshard", "--operations", "2500", "--round", "1500"]);
    ran.must_be_right();
    ran.must_have_happened("slots moved");
}

#[test]
fn nothing_replicated_is_lost_when_everything_goes_wrong_at_once() {
    // Two rounds: slots move first in one, a primary fails first in the other.
    let chaos = "kill-instance,freeze-instance,failover,reshard";
    let ran = verify(seed(), &["--chaos", chaos, "--operations", "2400", "--round", "1200"]);
    ran.must_be_right();
    let happened = |events: &[&str]| events.iter().any(|event| ran.count(&format!("/events/{event}")) > 0);
    assert!(happened(&["primaries killed", "primaries frozen", "failovers asked for"]), "{}", ran.told);
    assert!(happened(&["slots moved"]), "{}", ran.told);
    assert!(happened(&["instances killed", "instances frozen"]), "{}", ran.told);
}

#[test]
fn what_is_broken_on_purpose_is_found() {
    let broken: [(&str, &str, &[&str]); 7] = [
        ("home-entry", "300", &["missing", "out_of_step"]),
        ("post", "300", &["lost", "out_of_step"]),
        // Only the model is broken.
        ("follow", "300", &["leaked"]),
        ("mute", "300", &["leaked"]),
        ("edge", "300", &["lost", "out_of_step"]),
        ("name", "300", &["lost", "out_of_step"]),
        // Few operations make reports.
        ("reports", "1500", &["lost"]),
    ];
    let seed = seed();
    for (what, operations, wrongs) in broken {
        // An entry that is gone from a home is missed only if its author is not pulled besides.
        let pushed = ["--policy", "push", "--operations", operations, "--accounts", "50"];
        let ran = verify(seed, &[&pushed[..], &["--sabotage", what]].concat());
        assert_eq!(ran.code, Some(1), "{what}: {}", ran.told);
        for wrong in wrongs {
            assert!(ran.count(&format!("/{wrong}")) > 0, "{what}, {wrong}: {}", ran.told);
        }
        assert!(ran.told.contains("--seed") && ran.told.contains("stored, "), "{what}: {}", ran.told);
    }
}

#[test]
fn what_cannot_be_run_ends_with_its_own_code() {
    let ran = verify(1, &["--cluster", "redis://127.0.0.1:1", "--chaos", "failover"]);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
}
