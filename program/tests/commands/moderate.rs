//! `tideline moderate`, as a moderator types it.

use std::time::Duration;

use tideline::cluster::{Command, Request};
use tideline::post::Draft;
use tideline::{
    AccountId, AccountKind, CallFuture, DraftFacts, DraftJudge, Engine, EngineSettings, GroupRole, Judgement,
    NewAccount, NewReport, OwnLimits, Query, ReportCategory, ReportQuery,
};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use super::tideline;

/// Holds all that is said.
#[derive(Debug)]
struct Careful;

impl DraftJudge for Careful {
    fn judge<'a>(&'a self, _: &'a DraftFacts<'a>) -> CallFuture<'a, Judgement> {
        Box::pin(async { Ok(Judgement::Hold("nobody is trusted here".into())) })
    }
}

/// One whose owner is gone gets another one.
async fn group_without_an_owner(engine: &Engine, urls: &str, member: AccountId) {
    let new = || NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let owner = engine.create_account(NewAccount::default()).await.unwrap().value;
    let group = engine.create_group(owner, new()).await.unwrap().value;
    let arguments = ["moderate", "owner", &group.to_string(), &member.to_string()];
    let (worked, _, said) = tideline(urls, &arguments);
    assert!(!worked && said.contains("is no member of group"), "{said}");
    engine.join_group(group, member).await.unwrap();
    let (worked, told, said) = tideline(urls, &arguments);
    assert!(worked && told.contains("owns group"), "{told} {said}");
    let staff = engine.stored().group_staff(group).await.unwrap();
    assert!(staff.contains(&(member, GroupRole::Owner)), "{staff:?}");
}

/// One that can't be read nobody can hide: it is deleted, by whoever says whose it is.
async fn deleted_unread(engine: &Engine, urls: &str, [author, other]: [AccountId; 2]) {
    let post = engine.publish(author, &Draft::text("third")).await.unwrap().id;
    let (keys, buckets) = (engine.store().keys(), engine.store().keys().buckets());
    let bucket = buckets.of_account(author.get());
    let mut key = format!("{}{{{}}}w", keys.prefix(), buckets.tag(bucket)).into_bytes();
    key.extend(post.get().to_be_bytes());
    let cut_off = Command::new("SET").arg(&key).arg("?");
    engine.store().router().call(Request::write(buckets.slot(bucket), cut_off)).await.unwrap();
    let (post, author, other) = (post.to_string(), author.to_string(), other.to_string());
    for (arguments, why) in [
        (&["hide", &post][..], "moderate delete"),
        (&["delete", &post, &other], "there is no post"),
        (&["delete", &post, "@nobody"], "there is no account \"@nobody\""),
    ] {
        let (worked, _, said) = tideline(urls, &[&["moderate"], arguments].concat());
        assert!(!worked && said.contains(why), "{said}");
    }
    for _ in 0..2 {
        let (worked, told, said) = tideline(urls, &["moderate", "delete", &post, &author]);
        assert!(worked && told.contains("is gone"), "{told} {said}");
    }
    let stored = Request::read(buckets.slot(bucket), Command::new("EXISTS").arg(&key));
    assert_eq!(engine.store().router().call(stored).await.unwrap().int().unwrap(), 0);
}

/// What was said when it was reported stands there, also once its author has made something else of it.
async fn reported_and_changed(engine: &Engine, urls: &str, [author, reporter]: [AccountId; 2]) {
    let posts = [
        engine.publish(author, &Draft::text("I hate rowers")).await.unwrap().id,
        engine.publish(author, &Draft::text("I hate tides")).await.unwrap().id,
    ];
    for report in engine.reports(&ReportQuery::default()).await.unwrap().reports {
        engine.decide_held(report.id, reporter, true).await.unwrap();
    }
    let report = NewReport {
        reporter,
        target: author,
        posts: posts.to_vec(),
        category: ReportCategory::Other,
        comment: String::new(),
        token: None,
    };
    engine.report(&report).await.unwrap();
    engine.delete(author, posts[0]).await.unwrap();
    let (_, shown, _) = tideline(urls, &["moderate", "list"]);
    let lines: Vec<&str> = shown.lines().skip(1).map(str::trim).collect();
    let wanted = [
        format!("post {}: deleted, or not to be read now", posts[0]),
        "when reported: I hate rowers".to_owned(),
        format!("post {}: I hate tides", posts[1]),
    ];
    assert_eq!(lines, wanted, "{shown}");
}

fn limits_of_its_own(urls: &str, account: &str) {
    let limits = |arguments: &[&str]| tideline(urls, &[&["moderate", "limits", account], arguments].concat());
    let (worked, told, said) = limits(&["--posts", "9", "--followed-accounts", "5000"]);
    assert!(worked && told.contains("9 at most") && told.contains("5000 at most"), "{told} {said}");
    let (worked, told, _) = limits(&["--followed-accounts", "usual"]);
    assert!(worked && !told.contains("5000"), "{told}");
    let (_, told, _) = limits(&["--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap()["posts"], 9);
    let (_, told, _) = tideline(urls, &["inspect", account]);
    assert!(told.contains("own limits") && told.contains("posts 9"), "{told}");
    for (wrong, why) in [("0", "1 to 65535"), ("70000", "1 to 65535"), ("many", "or `usual`")] {
        let (worked, _, said) = limits(&["--posts", wrong]);
        assert!(!worked && said.contains(why), "{wrong}: {said}");
    }
}

// The engine keeps its lease while commands run.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_held_back_is_listed_released_and_dropped() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
    let urls = cluster.urls().join(",");
    // What commands have done shows at once.
    let settings = EngineSettings { visible_within: Duration::ZERO, ..EngineSettings::default() };
    let builder = Engine::builder().seeds(cluster.urls()).settings(settings);
    let engine = builder.judge(Careful).start().await.unwrap();
    let new = async || engine.create_account(NewAccount::default()).await.unwrap().value;
    let (author, moderator) = (new().await, new().await);
    let by = moderator.to_string();
    let (worked, shown, _) = tideline(&urls, &["moderate", "list"]);
    assert!(worked && shown.contains("Nothing waits."), "{shown}");
    let mut posts = Vec::new();
    for text in ["first\u{1b}[2J", "second"] {
        posts.push(engine.publish(author, &Draft::text(text)).await.unwrap().id);
    }

    let (_, shown, _) = tideline(&urls, &["moderate", "list", "--about", &author.to_string()]);
    for wanted in ["held back", "nobody is trusted here", "second", &format!("{}: first [2J", posts[0])] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let (_, shown, _) = tideline(&urls, &["moderate", "list", "--json", "--limit", "1"]);
    let newest: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let report = |page: &serde_json::Value| page["reports"][0]["report"]["id"].as_str().unwrap().to_owned();
    assert_eq!(newest["reports"][0]["texts"][0]["text"], "second");
    let older = newest["older"].as_str().unwrap().to_owned();
    let (_, shown, _) = tideline(&urls, &["moderate", "list", "--json", "--before", &older]);
    let oldest: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(oldest["reports"][0]["texts"][0]["id"], posts[0].to_string());

    let (worked, told, said) = tideline(&urls, &["moderate", "release", &report(&oldest), &by]);
    assert!(worked && told.contains("everybody sees the post"), "{told} {said}");
    let (worked, told, said) = tideline(&urls, &["moderate", "drop", &report(&newest), &by]);
    assert!(worked && told.contains("is deleted"), "{told} {said}");
    let shown = async || engine.as_reader(moderator).read(&Query::profile(author)).await.unwrap().ids();
    assert_eq!(shown().await, posts[..1]);
    let id = posts[0].to_string();
    for (arguments, left) in [(&["moderate", "hide", &id][..], 0), (&["moderate", "hide", &id, "--undo"], 1)]
    {
        let (worked, told, said) = tideline(&urls, arguments);
        assert!(worked && told.contains(&id), "{told} {said}");
        assert_eq!(shown().await.len(), left);
    }
    let (_, shown, _) = tideline(&urls, &["moderate", "list", "--resolved"]);
    assert!(shown.contains("held back"), "{shown}");

    reported_and_changed(&engine, &urls, [author, moderator]).await;
    deleted_unread(&engine, &urls, [author, moderator]).await;
    group_without_an_owner(&engine, &urls, author).await;
    limits_of_its_own(&urls, &author.to_string());
    assert_eq!(
        engine.own_limits(author).await.unwrap(),
        OwnLimits { posts: Some(9), ..OwnLimits::default() }
    );
    for (arguments, why) in [
        (["release", "12", &by], "there is no report 12"),
        (["resolve", &report(&newest), "nobody"], "there is no account \"nobody\""),
        (["drop", "x", &by], "a report's id is a whole number"),
    ] {
        let (worked, _, said) = tideline(&urls, &[&["moderate"], &arguments[..]].concat());
        assert!(!worked && said.contains(why), "{said}");
    }
    engine.shutdown(Duration::from_secs(10)).await.unwrap();
    cluster.down().await.unwrap();
}
