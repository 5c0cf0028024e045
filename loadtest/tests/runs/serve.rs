//! `serve`, `kills` and `strange` as people run them, small, on the program that serves.

use serde_json::Value;

use super::program::program;
use super::ran::{loadtest, result, told};
use super::seeds;

fn count(of: &Value, field: &str) -> u64 {
    of[field].as_u64().unwrap_or_else(|| panic!("{field}: {of:#}"))
}

#[test]
fn a_small_run_over_http_tells_what_a_page_costs_and_compares_pages_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("serve.json");
    let line = "serve --seed 7 --readers 60 --followees 20 --history 3 --connections 8 --rounds 2 --turn-seconds 1 \
                --posts 8 --followers 20 --rate 20 --open-seconds 2 --open-rounds 2 --passwords --compare-every 10 \
                --posts-rate 1 --likes-rate 2 --renames-rate 1 --program FILE --json FILE";
    let output = loadtest(line, &[program(), &file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    let json = result(&file);
    assert_eq!(json["seed"], 7);
    let page_bytes = json["page_bytes"].as_f64().unwrap();
    assert!((10_000.0..100_000.0).contains(&page_bytes), "{page_bytes}");
    let compared = &json["compared"];
    assert!(count(compared, "pages") > 0 && count(compared, "different") == 0, "{compared:#}");
    for kind in ["posts", "likes"] {
        assert!(count(&json["written"][kind], "succeeded") > 0, "{kind}: {:#}", json["written"]);
    }
    let open = &json["open"];
    assert!(open["plain"]["p99_us"]["median"].as_f64().unwrap() > 0.0, "{open:#}");
    assert!(open["passwords"]["hashed_per_second"].as_f64().unwrap() > 0.0, "{open:#}");
    assert!(count(&json["post"], "followers") > 0);
    if cfg!(target_os = "linux") {
        let costs = &json["costs"];
        for figure in ["site_us", "redis_us", "bare_us", "client_us", "ratio"] {
            assert!(costs[figure]["median"].is_f64(), "{figure}: {costs:#}");
        }
        assert_eq!(costs["judgement"], "too_few_rounds");
    }
    assert!(told.contains("2 rounds are too few to judge"), "{told}");
}

#[test]
fn pages_of_a_site_that_runs_need_tokens_and_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    std::fs::write(&file, "a b\n").unwrap();
    for (line, wanted) in [
        ("serve --url http://localhost:1", "--tokens"),
        ("serve --url https://localhost --tokens FILE", "without TLS"),
        ("serve --url http://localhost:1 --tokens FILE", "a token is letters without spaces"),
        ("serve --readers 20 --followees 20", "nobody follows itself"),
        ("serve --program /nowhere --readers 20 --followees 5", "there is no program /nowhere"),
    ] {
        let output = loadtest(line, &[&file]);
        let told = told(&output);
        assert!(output.status.code() == Some(2) && told.contains(wanted), "{line}: {told}");
    }
}

#[test]
fn what_was_answered_is_there_after_servers_and_a_primary_were_killed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kills.json");
    // The fifth is a primary of Redis.
    let line =
        format!("kills --seed {} --kills 5 --people 6 --answers 60 --program FILE --json FILE", seeds::or(3));
    let output = loadtest(&line, &[program(), &file]);
    assert!(output.status.success(), "{}", told(&output));
    let json = result(&file);
    let killed = &json["killed"];
    assert_eq!([count(killed, "one"), count(killed, "both"), count(killed, "primaries")], [3, 1, 1]);
    assert!(count(killed, "under_way") > 0 && count(&json, "posts") > 0 && count(&json, "looked_at") > 0);
}

#[test]
fn whatever_a_server_is_sent_it_answers_and_keeps_only_what_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("strange.json");
    let line = format!("strange --seed {} --requests 2000 --program FILE --json FILE", seeds::or(5));
    let output = loadtest(&line, &[program(), &file]);
    let json = result(&file);
    // Of so few its memory has not come to rest: that is for the long run.
    assert_eq!([count(&json, "wrong"), count(&json, "panics")], [0, 0], "{}", told(&output));
    assert!(count(&json, "sent") >= 1_900 && count(&json["statuses"], "404") > 0);
}
