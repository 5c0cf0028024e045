//! `fairness`, `scale` and `plan` as people run them, small.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::addresses;
use super::ran::{self, loadtest, result, told};

#[test]
fn small_posts_are_counted_alone_and_beside_a_large_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fairness.json");
    let line = "fairness --followers 8000 --background-homes 0 --small-accounts 10 --small-followers 20 --rate 200 \
                --seconds 1 --rounds 2 --seed 7 --json FILE";
    let output = loadtest(line, &[&file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("beside the large post") && told.contains("The large post took"), "{told}");
    let json = result(&file);
    assert_eq!(
        [&json["command"], &json["seed"], &json["settings"]["followers"]],
        [&json!("fairness"), &json!(7), &json!(8000)]
    );
    assert!(json["large_post_seconds"].as_f64().unwrap() > 0.0);
    for part in ["alone", "beside_large"] {
        let part = &json[part];
        assert_eq!([&part["errors"], &part["dropped"]], [&json!({}), &json!(0)], "{json:#}");
        assert!(part["p50_us"].as_u64() <= part["p99_us"].as_u64(), "{json:#}");
    }
    // Two seconds of 200 posts each: ten standard deviations.
    let alone = json["alone"]["succeeded"].as_u64().unwrap();
    assert!((200..=600).contains(&alone), "{json:#}");
    assert!(json["beside_large"]["succeeded"].as_u64().unwrap() > 0, "{json:#}");
    for ratio in ["p50_ratio", "p99_ratio"] {
        assert!(json[ratio]["median"].as_f64().unwrap() > 0.0, "{json:#}");
        assert_eq!(json[format!("rounds_{ratio}")].as_array().unwrap().len(), 2, "{json:#}");
    }
}

/// Killed with this value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a run tells of itself, if it listens yet.
fn metrics(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn fairness_and_fanout_serve_metrics_while_they_run() {
    for (line, told) in [
        (
            "fairness --followers 2000 --background-homes 0 --small-followers 20 --rounds 100 --seed 7 --metrics",
            ["{system=\"small_alone\"}", "{system=\"small_beside\"}", "{system=\"large\"}"].as_slice(),
        ),
        (
            "fanout --followers 300 --background-homes 500 --passes 100 --round-deliveries 3000 --skip-replicas \
             --systems tideline,list --seed 7 --metrics",
            &["{system=\"tideline\"}", "{system=\"list\"}"],
        ),
    ] {
        let [address] = addresses::free();
        let run = Command::new(env!("CARGO_BIN_EXE_loadtest"))
            .args(line.split_whitespace())
            .arg(address.to_string())
            .env_remove("TIDELINE_CLUSTER")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut run = Killed(run);
        let until = Instant::now() + Duration::from_secs(240);
        let has_all = |page: String| {
            told.iter().all(|labels| page.contains(&format!("loadtest_fanout_lag_seconds_count{labels}")))
                && page.contains("tideline_")
        };
        while !metrics(address).is_some_and(has_all) {
            assert!(run.0.try_wait().unwrap().is_none(), "{line}: it ended before they showed");
            assert!(Instant::now() < until, "{line}: {}", metrics(address).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_started() {
    for (line, why) in [
        ("fairness --followers 5000000 --background-homes 5000000", "MB are available"),
        ("fairness --rate 0", "--rate"),
        ("compare --rounds -3", "'-3' for '--rounds <N>': write a whole number from 2 to 1000"),
        ("compare --accounts -3", "write a whole number from 1 on"),
        ("sweep --shares many", "write percent: 20 or 20%"),
        ("compare --cluster redis://127.0.0.1:70000", "port 70000 is above 65535"),
        ("compare --systems push_only,pull_only,push_only", "--systems names push_only twice"),
        ("sweep --systems books_pull,books_pull", "--systems names books_pull twice"),
        ("scale --parts speed", "possible values"),
        ("clean --cluster redis://127.0.0.1:1 --prefix myapp:", "no load test has such a prefix"),
        ("clean --prefix loadtest-847245f9", "--cluster <URL>"),
        ("scale --json /nowhere/scale.json", "'/nowhere/scale.json' for '--json"),
        ("scale --primaries 0", "--primaries"),
        ("scale --cluster redis://127.0.0.1:1", "leave --cluster out, and TIDELINE_CLUSTER unset"),
    ] {
        let output = loadtest(line, &[]);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", told(&output));
        assert!(told(&output).contains(why), "{line}: {}", told(&output));
        assert!(!told(&output).contains("Starting"), "{line}: {}", told(&output));
    }
}

/// It panicked.
#[test]
fn whoever_reads_what_is_printed_may_stop_early() {
    let plan = || {
        let mut plan = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        plan.args(["plan", "--users", "1M"]);
        plan
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = plan().stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), told(&output).as_str()), (Some(0), ""));
    // Errors too.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = plan().arg("--units=nowhere.json").stderr(writer).output().unwrap();
    assert_eq!((output.status.code(), told(&output).as_str()), (Some(2), ""));
}

#[test]
fn a_small_run_tells_what_deliveries_and_pages_cost() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scale.json");
    let line = "scale --parts primaries,followers --primaries 2,1 --load growing --followers 1000 --deliveries 1000 \
                --accounts 200 --mean 10 --at-once 16 --rounds 2 --round-seconds 1 --seed 7 --strict --json FILE";
    let output = loadtest(line, &[&file]);
    let told = told(&output);
    assert!(output.status.code() == Some(3) && told.contains("could not be judged in 2 rounds"), "{told}");
    assert!(
        told.contains("The same network and operations at once for each primary, in turns")
            && told.contains("Posts to so many followers"),
        "{told}"
    );
    let json = result(&file);
    assert_eq!([&json["command"], &json["seed"], &json["units"]], [&json!("scale"), &json!(7), &Value::Null]);
    let points = json["points"].as_array().unwrap();
    let primaries: Vec<_> = points.iter().map(|point| point["primaries"].as_u64().unwrap()).collect();
    assert_eq!(primaries, [1, 2]);
    assert_eq!([&points[0]["accounts"], &points[1]["accounts"]], [200, 400]);
    let ratio = |point: &Value, of: &str, name: &str| point[of][name].as_f64().unwrap();
    for of in ["delivery_ratio", "page_ratio"] {
        assert!((ratio(&points[0], of, "median") - 1.0).abs() < 1e-9, "to itself: {json:#}");
        assert!(ratio(&points[1], of, "low") <= ratio(&points[1], of, "high"), "{json:#}");
    }
    let verdicts = json["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 2, "{told}");
    for verdict in verdicts {
        assert_eq!(
            [&verdict["judgement"], &verdict["rounds"]],
            [&json!("too_few_rounds"), &json!(2)],
            "{verdict:#}"
        );
    }
    for (verdict, of) in verdicts.iter().zip(["delivery_ratio", "page_ratio"]) {
        assert_eq!(verdict["ratio"], points[1][of], "{verdict:#}");
    }
    for cost in points.iter().flat_map(|point| [&point["delivery"], &point["page"]]) {
        let both = &cost["both_us"];
        let figure = |of: &Value| of.as_f64().unwrap();
        assert!(figure(&cost["server_us"]) > 0.0 && figure(&cost["client_us"]) > 0.0, "{cost:#}");
        assert!(figure(&both["low"]) <= figure(&both["median"]), "{cost:#}");
        assert!(figure(&both["median"]) <= figure(&both["high"]), "{cost:#}");
    }
    let followers = &json["followers"][0];
    assert_eq!(followers["followers"], 1000);
    assert!(
        followers["server_us"].as_f64().unwrap() > 0.0 && followers["last_seconds"].as_f64().unwrap() > 0.0
    );
    assert!(json["followers"][1].is_null());

    // There are no units in it.
    let output = loadtest("plan --users 1M --units FILE", &[&file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(ran::told(&output).contains("has no units"), "{}", ran::told(&output));
}

fn both(units: &Value, name: &str) -> f64 {
    units[name][0].as_f64().unwrap() + units[name][1].as_f64().unwrap()
}

/// Everything was measured, and is possible.
fn check_units(units: &Value) {
    let below_noise = units["below_noise"].as_array().unwrap();
    let all = "publish_us publish_pulled_us delivery_us skipped_us check_us read_us load_us pull_us look_us follow_us \
               follow_pulled_us fill_us";
    for name in all.split(' ') {
        let sides = units[name].as_array().unwrap();
        assert_eq!(sides.len(), 2, "{name}: {units:#}");
        for (side, us) in ["servers", "client"].iter().zip(sides) {
            // A difference below the noise of a busy machine is 0, and told.
            let is_below = below_noise.contains(&json!(format!("{name} ({side})")));
            assert!(is_below != (us.as_f64().unwrap() > 0.0), "{name} ({side}): {units:#}");
        }
    }
    // Measured, not taken from docs/benchmarks.md.
    assert_ne!(units["look_us"], json!([4.0, 5.0]));
    let elsewhere = [
        "delivery_spread_us",
        "promote_us",
        "ranked_us",
        "group_post_us",
        "message_us",
        "message_member_us",
        "permit_us",
    ];
    assert_eq!(units["not_measured"], json!(elsewhere));
    for name in ["publish_us", "read_us", "follow_us"] {
        assert!(both(units, name) > 0.0, "{name}: {units:#}");
    }

    for name in ["home_entry_bytes", "edge_bytes", "mark_bytes", "account_bytes", "post_bytes"] {
        let bytes = units[name].as_f64().unwrap();
        assert!(bytes > 10.0 && bytes < 2_000.0, "{name}: {units:#}");
    }
    for name in ["publish", "publish_pulled", "delivery", "page", "follow", "follow_pulled", "fill"] {
        let bytes = units[format!("{name}_wire_bytes")].as_f64().unwrap();
        assert!(bytes > 10.0 && bytes < 20_000.0, "{name}: {units:#}");
    }
    assert_eq!(units["at_once"], 48);
}

#[test]
fn measured_costs_are_what_a_plan_reckons_with() {
    let dir = tempfile::tempdir().unwrap();
    let [scale, plan] = ["scale.json", "plan.json"].map(|name| dir.path().join(name));
    let line = "scale --parts units --accounts 200 --mean 10 --at-once 16 --rounds 2 --round-seconds 1 --seed 7 --json \
                FILE";
    let output = loadtest(line, &[&scale]);
    assert!(output.status.success(), "{}", told(&output));
    let measured = result(&scale);
    let (units, modes) = (&measured["units"], &measured["modes"]);
    check_units(units);
    assert!(
        (modes["look_ns"].as_f64().unwrap() / 1_000.0 - both(units, "look_us")).abs() < 0.001,
        "{modes:#}"
    );
    assert!(told(&output).contains("[modes] policy = \"cost\" delivery_ns = "), "{}", told(&output));

    let output = loadtest("plan --users 1M --units FILE --json FILE", &[&scale, &plan]);
    assert!(output.status.success(), "{}", told(&output));
    assert!(told(&output).contains("loadtest scale"), "{}", told(&output));
    let planned = result(&plan);
    assert_eq!(planned["units"], *units);
    let policies: Vec<_> = planned["policies"].as_array().unwrap().iter().map(|of| &of["policy"]).collect();
    assert_eq!(policies, ["push", "pull", "threshold", "cost"]);
    let figure = |of: &Value, name: &str| of[name].as_f64().unwrap();
    let work = planned["work"].as_array().unwrap().iter();
    let cpu: f64 = work.map(|work| figure(work, "per_second") * figure(work, "server_us")).sum();
    let cost = figure(&planned["policies"][3], "server_cpu_us_per_second");
    assert!((cpu / cost - 1.0).abs() < 1e-9, "{planned:#}");
    let told = told(&output);
    assert!(told.contains("docs/benchmarks.md): delivery_spread_us, promote_us"), "{told}");
}
