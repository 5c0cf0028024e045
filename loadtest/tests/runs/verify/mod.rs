//! The oracle: random histories, with and without faults; and, in `broken`, that it can fail.
//!
//! A failed run prints its seed: `TIDELINE_SEED=N cargo test -p loadtest --test runs verify` plans the same operations,
//! of all tests here; `TIDELINE_SEED=random` draws new ones. For nights: `make verify-long`.

mod broken;

use std::process::Command;

use serde_json::Value;

use super::documented;
use super::seeds;

const WRONGS: [&str; 9] =
    ["missing", "doubled", "leaked", "reordered", "lost", "stale", "stuck", "miscounted", "out_of_step"];

/// So few that a run is over soon (what is compared grows with their square), and so many that the most followed ones
/// have their followers spread and others cross the policy's thresholds.
const ACCOUNTS: &str = "45";

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

    /// As many as there were rounds, at least: each round waits for one of each kind.
    fn must_have_met_work(&self, kinds: &[&str]) {
        for kind in kinds {
            let met = self.count(&format!("/faults/{kind}/met"));
            assert!(met >= self.count("/rounds"), "{kind}: {}", self.told);
        }
    }

    fn must_be_right(&self) {
        assert!(self.wrongs().is_empty() && self.code == Some(0), "{:?}\n{}", self.wrongs(), self.told);
    }
}

fn verify(seed: u64, args: &[&str]) -> Ran {
    println!("TIDELINE_SEED={seed} verify {}", args.join(" "));
    let dir = tempfile::tempdir().expect("a directory for the result");
    let file = dir.path().join("verify.json");
    let output = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(["verify", "--seed", &seed.to_string(), "--json"])
        .arg(&file)
        .args(if args.contains(&"--accounts") { &[][..] } else { &["--accounts", ACCOUNTS] })
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

fn long_run(seed: u64, visible_within_ms: &str) {
    let args = ["--operations", "2400", "--round", "1200", "--visible-within-ms", visible_within_ms];
    let ran = verify(seeds::or(seed), &args);
    ran.must_be_right();
    documented::check(&ran.json);
    assert!(ran.count("/pages_checked") > 1_300 && ran.count("/posts") > 330, "{}", ran.told);
    let operations = ["publish", "delete", "follow", "unfollow", "block", "read", "sweep", "way"];
    let named = ["sign up", "login", "find", "log in", "report", "resolve"];
    let together = ["say", "enter group", "exit group", "post into group", "release"];
    for operation in operations.into_iter().chain(named).chain(together) {
        assert!(ran.count(&format!("/operations/{operation}/acknowledged")) > 0, "{operation}: {}", ran.told);
    }
    assert!(ran.count("/operations/sign up/refused") > 0, "{}", ran.told);
    ran.must_have_happened("pulled after a round");
    ran.must_have_happened("other modes than a round before");
}

#[test]
fn every_page_is_right_when_nothing_is_cached() {
    long_run(1, "0");
}

#[test]
fn every_page_is_right_when_others_may_be_seen_late() {
    long_run(2, "200");
}

#[test]
fn every_page_is_right_over_http_whatever_fails_meanwhile() {
    let chaos = "kill-instance,failover,cut-clients";
    let args = ["--over", "http", "--chaos", chaos, "--operations", "600", "--round", "600"];
    let ran = verify(seeds::or(1), &args);
    ran.must_be_right();
    ran.must_have_met_work(&chaos.split(',').collect::<Vec<_>>());
    ran.must_have_happened("calls over HTTP");
}

#[test]
fn every_page_is_right_whatever_the_policy_is() {
    for policy in ["push", "pull", "threshold", "cost"] {
        let ran = verify(seeds::or(3), &["--policy", policy, "--operations", "600", "--round", "300"]);
        ran.must_be_right();
        // Whoever is pulled was pushed once. So short a run may see nobody cross over between two of its rounds.
        if policy == "threshold" {
            ran.must_have_happened("pulled after a round");
        }
    }
}

#[test]
fn nothing_is_lost_when_instances_are_killed_and_frozen() {
    let chaos = ["--chaos", "kill-instance,freeze-instance", "--operations", "1400", "--round", "700"];
    let ran = verify(seeds::or(4), &chaos);
    ran.must_be_right();
    ran.must_have_met_work(&["kill-instance", "freeze-instance"]);
    ran.must_have_happened("instances that had just delivered");
}

#[test]
fn nothing_is_lost_when_instances_sleep_and_another_build_works_beside() {
    let chaos = "kill-instance,sleep-instance";
    let beside = ["--beside", env!("CARGO_BIN_EXE_loadtest")];
    let args = ["--chaos", chaos, "--operations", "1000", "--round", "1000"];
    let ran = verify(seeds::or(13), &[&args[..], &beside].concat());
    ran.must_be_right();
    ran.must_have_met_work(&chaos.split(',').collect::<Vec<_>>());
    ran.must_have_happened("instances sent to sleep in the middle of a write");
}

#[test]
fn nothing_is_lost_when_slots_move() {
    let ran = verify(seeds::or(5), &["--chaos", "reshard", "--operations", "1200", "--round", "600"]);
    ran.must_be_right();
    ran.must_have_met_work(&["reshard"]);
}

#[test]
fn nothing_is_lost_at_servers_that_are_slow_or_silent_or_full_or_forgetful() {
    // Three actors: a slot stands half-way meanwhile, and instances are killed.
    let chaos = "kill-instance,open-slots,cut-clients,flush-functions,slow-server,silent-server,full-server";
    let ran = verify(seeds::or(10), &["--chaos", chaos, "--operations", "1200", "--round", "1200"]);
    ran.must_be_right();
    ran.must_have_met_work(&chaos.split(',').collect::<Vec<_>>());
}

#[test]
fn nothing_replicated_is_lost_when_servers_are_cut_off_and_replaced_again_and_again() {
    let chaos = "cut-bus,failovers-in-a-row";
    let ran = verify(seeds::or(12), &["--chaos", chaos, "--operations", "900", "--round", "900"]);
    ran.must_be_right();
    ran.must_have_met_work(&chaos.split(',').collect::<Vec<_>>());
}

#[test]
fn what_is_acknowledged_by_default_may_go_with_a_failover_and_nothing_else_does() {
    let chaos = "failover,kill-instance";
    let args = ["--defaults", "--chaos", chaos, "--operations", "900", "--round", "450"];
    let ran = verify(seeds::or(21), &args);
    ran.must_be_right();
    ran.must_have_met_work(&chaos.split(',').collect::<Vec<_>>());
}

#[test]
fn every_page_is_right_whatever_clocks_are_set_to() {
    let ran = verify(seeds::or(43), &["--chaos", "set-clocks", "--operations", "700", "--round", "700"]);
    ran.must_be_right();
    if ran.told.contains("NOT CHECKED") {
        println!("{}", ran.told);
    } else {
        ran.must_have_met_work(&["set-clocks"]);
    }
}

/// Most of what these accounts have is in the archive: two posts of each stay in memory with this seed.
fn archived(seed: u64, args: &[&str], kinds: &str) {
    let operations = ["--chaos", kinds, "--operations", "900", "--round", "900"];
    let ran = verify(seeds::or(seed), &[&operations[..], args].concat());
    ran.must_be_right();
    ran.must_have_met_work(&kinds.split(',').collect::<Vec<_>>());
    ran.must_have_happened("posts in the archive after a round");
}

#[test]
fn nothing_is_lost_when_the_only_instance_dies_that_has_its_archive_in_a_file() {
    archived(4, &["--archive", "sqlite", "--instances", "1"], "kill-instance,freeze-instance,cut-clients");
}

#[test]
fn nothing_is_lost_or_silently_left_out_while_the_archives_server_fails() {
    let kinds = "kill-archive,freeze-archive,slow-archive,full-archive,forget-archive,kill-instance";
    archived(8, &["--archive"], kinds);
}

#[test]
fn nothing_replicated_is_lost_when_everything_goes_wrong_at_once() {
    // Two rounds: slots move first in one, a primary fails first in the other.
    let chaos = "kill-instance,freeze-instance,failover,reshard";
    let ran = verify(seeds::or(6), &["--chaos", chaos, "--operations", "1600", "--round", "800"]);
    ran.must_be_right();
    ran.must_have_met_work(&chaos.split(',').collect::<Vec<_>>());
}

/// A round is not over before its faults, and a fault is none that meets nothing: a page is all that this one asks for,
/// and a server without memory takes part in that as ever.
#[test]
fn a_run_whose_faults_met_no_work_fails() {
    let args = ["--chaos", "full-server", "--operations", "1", "--round", "1", "--accounts", "70"];
    let ran = verify(9, &args);
    let called: Vec<&String> = ran.json["operations"].as_object().expect("a table").keys().collect();
    let to_begin = ["create", "drained", "find", "follow", "log in", "look", "publish", "read", "sign up"];
    assert!(
        called == to_begin && ran.count("/posts") == 300,
        "this seed's step writes something: {called:?}"
    );
    assert!(ran.wrongs().is_empty() && ran.code == Some(1), "{:?}: {}", ran.wrongs(), ran.told);
    assert!(ran.told.contains("Nothing was under way that these could affect"), "{}", ran.told);
}

#[test]
fn faults_that_do_not_go_with_an_archive_are_refused() {
    for (args, remedy) in [
        (&["--chaos", "kill-archive"][..], "--archive postgres"),
        (&["--archive", "sqlite", "--chaos", "slow-archive"], "--archive postgres"),
        (&["--archive", "sqlite", "--chaos", "kill-instance"], "--instances 1"),
        (&["--archive", "sqlite", "--instances", "1", "--chaos", "sleep-instance"], "--archive postgres"),
        (&["--sabotage", "short-page"], "--archive"),
    ] {
        let ran = verify(1, args);
        assert!(ran.code == Some(2) && ran.told.contains(remedy), "{args:?}: {}", ran.told);
    }
}

#[test]
fn what_cannot_be_run_ends_with_its_own_code() {
    let ran = verify(1, &["--cluster", "redis://127.0.0.1:1", "--chaos", "failover"]);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
}
