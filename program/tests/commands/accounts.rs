//! `tideline account`, as an operator types it.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tideline::post::Draft;
use tideline::registration::{Name, Registration, RegistrationSettings, SignUp};
use tideline::{AccountId, AccountKind, AccountState, Engine, NewAccount};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

struct Operator {
    cluster: String,
}

impl Operator {
    /// Whether a command worked, what it printed, and what it said beside; this is typed into it.
    fn types(&self, input: &str, arguments: &[&str]) -> (bool, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
        command.arg("account").args(arguments).env("TIDELINE_CLUSTER", &self.cluster);
        // Passwords that cost little.
        command.env("TIDELINE_REGISTRATION_MEMORY_KIB", "8").env("TIDELINE_REGISTRATION_PASSES", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may have ended before it has read that.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (is_done, printed, told) = self.types("", arguments);
        assert!(is_done, "{arguments:?}: {told}");
        printed
    }

    fn refused(&self, arguments: &[&str], why: &str) {
        let (is_done, _, told) = self.types("", arguments);
        assert!(!is_done && told.contains(why), "{arguments:?}: {told}");
    }
}

// The engine keeps its lease while commands run.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_made_named_suspended_exported_and_deleted_by_commands() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
    let engine = Engine::builder().seeds(cluster.urls()).start().await.unwrap();
    let cheap = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
    let registration = Registration::new(&engine, cheap).await.unwrap();
    let operator = Operator { cluster: cluster.urls().join(",") };

    let told = operator.done(&["create", "Ada", "--email", "ada@example.org", "--id", "42"]);
    assert!(told.starts_with("account 42, @Ada\npassword: "), "{told}");
    let drawn = told.lines().find_map(|line| line.strip_prefix("password: ")).unwrap();
    let ada = registration.check("ada", drawn).await.unwrap().unwrap();
    operator.refused(&["create", "ada"], "this login is taken");
    operator.refused(&["create", "no name"], "login");
    operator
        .refused(&["role", "nobody"], "there is no account \"nobody\": name its id, its login or its e-mail");
    operator.refused(&["suspend", "0"], "ids run from 1");

    for name in ["42", "ada", "@ADA", "ada@example.org"] {
        assert_eq!(operator.done(&["role", name]).trim(), "account 42, @Ada: user");
    }
    operator.done(&["role", "ada", "moderator"]);
    assert_eq!(operator.done(&["role", "42"]).trim(), "account 42, @Ada: moderator");
    operator.done(&["role", "ada", "user"]);
    assert_eq!(operator.done(&["role", "42"]).trim(), "account 42, @Ada: user");

    let (is_done, told, _) = operator.types("another horse\n", &["password", "ada", "--password-stdin"]);
    assert!(is_done && !told.contains("horse"), "{told}");
    assert!(registration.check("ada", drawn).await.unwrap().is_none());
    assert!(registration.check("ada", "another horse").await.unwrap().is_some());
    let (is_done, _, told) = operator.types("no hay\n", &["password", "ada", "--password-stdin"]);
    assert!(!is_done && told.contains("password") && !told.contains("no hay"), "{told}");

    operator.refused(&["email", "ada", "no address"], "e-mail");
    operator.refused(&["email", "ada"], "<EMAIL>");
    for (typed, has) in [("ada@sea.example", Some("ada@sea.example")), ("--none", None)] {
        operator.done(&["email", "ada", typed]);
        assert_eq!(registration.email(ada.id).await.unwrap().as_deref(), has);
    }
    operator.done(&["email", "ada", "ada@example.org"]);

    let state = async || registration.find(&[Name::Id(ada.id)]).await.unwrap().remove(0).unwrap().state;
    operator.done(&["suspend", "ada"]);
    assert_eq!(state().await, AccountState::Suspended);
    operator.done(&["suspend", "ada", "--lift"]);
    assert_eq!(state().await, AccountState::Active);
    assert!(operator.done(&["limit", "ada"]).contains("is limited"));
    assert_eq!(state().await, AccountState::Limited);
    operator.done(&["limit", "ada", "--lift"]);
    operator.refused(&["delete", "ada"], "say so with --yes");
    assert_eq!(state().await, AccountState::Active);
    operator.done(&["delete", "ada", "--yes"]);
    operator.refused(&["delete", "ada", "--yes"], "there is no account");
    // Who waits to be let in.
    assert_eq!(operator.done(&["waiting"]).trim(), "Nobody waits.");
    for name in ["bea", "eve"] {
        registration.sign_up(&SignUp::new(name, "correct horse").waiting()).await.unwrap();
        operator.refused(&["suspend", name], "waits to be let in: approve or reject it");
    }
    assert!(operator.done(&["approve", "bea"]).contains("@bea is let in"));
    operator.refused(&["approve", "bea"], "does not wait to be let in: it is active");
    operator.refused(&["reject", "bea"], "does not wait to be let in");
    assert!(operator.done(&["reject", "eve"]).contains("is turned away"));
    operator.refused(&["approve", "eve"], "there is no account");
    operator.done(&["suspend", "bea"]);

    let code = operator.done(&["invite", "--uses", "3", "--days", "2"]).trim().to_owned();
    assert_eq!(code.len(), 43, "{code}");
    let listed = operator.done(&["invite", "--list"]);
    assert!(listed.contains(" 3 ") && !listed.contains(&code), "{listed}");
    operator.done(&["invite", "--revoke", &code]);
    operator.refused(&["invite", "--revoke", &code], "there is no such invitation");
    assert!(operator.done(&["invite", "--list"]).contains("There are no invitations"));
    operator.refused(&["invite", "--uses", "0"], "1 to 10000 uses");
    operator.refused(&["invite", "--days", "400"], "1 to 365 days");
    engine.shutdown(Duration::from_secs(30)).await.unwrap();
    cluster.down().await.unwrap();
}

/// All that is stored of somebody, and nothing that proves who it is.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_exported_with_what_it_wrote_elsewhere_and_thinks_of_others() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
    let engine = Engine::builder().seeds(cluster.urls()).start().await.unwrap();
    let operator = Operator { cluster: cluster.urls().join(",") };
    operator.done(&["create", "Ada", "--email", "ada@example.org", "--id", "42"]);
    let ada = AccountId::new(42).unwrap();
    let [ben, cleo, club] = [7, 8, 9].map(|id| AccountId::new(id).unwrap());
    for other in [ben, cleo] {
        engine.create_account(NewAccount { id: Some(other), ..NewAccount::default() }).await.unwrap();
    }
    let group = NewAccount { id: Some(club), kind: AccountKind::Group, ..NewAccount::default() };
    engine.create_group(ben, group).await.unwrap();
    engine.join_group(club, ada).await.unwrap();
    engine.set_note(ada, cleo, "met at the pier").await.unwrap();
    engine.mute_for(ada, ben, Duration::from_secs(3_600)).await.unwrap();
    let chat = engine.open_chat(ada, &[cleo], None).await.unwrap().value;
    // What lists them is brought in line a moment later.
    for draft in [Draft::text("Who has my oars?").group(club), Draft::text("Come at nine").chat(chat)] {
        engine.settled(Duration::from_secs(60), engine.publish(ada, &draft)).await.unwrap();
        // Of one millisecond neither is the newer one.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    engine.publish(ada, &Draft::text("High tide at six")).await.unwrap();
    let exported = operator.done(&["export", "ada"]);
    let lines: Vec<serde_json::Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["account"]["login"], "Ada");
    assert_eq!(lines[2]["email"], "ada@example.org");
    assert!(lines.last().unwrap()["post"].to_string().contains("High tide at six"), "{exported}");
    assert!(!exported.contains("argon2"), "{exported}");
    let all = |what: &str| lines.iter().filter_map(|line| line.get(what)).cloned().collect::<Vec<_>>();
    assert_eq!(all("note"), [json!({ "on": cleo, "text": "met at the pier" })]);
    let [muted] = &all("mutes")[..] else { panic!("{exported}") };
    assert!(muted["id"] == json!(ben) && muted["until_ms"].as_u64() > Some(0), "{exported}");
    let written: Vec<_> = all("written").iter().map(|post| post["in"].clone()).collect();
    assert_eq!(written, [json!(chat), json!(club)]);
    assert!(all("limits")[0].is_object(), "{exported}");
    assert_eq!(all("chat")[0]["others"], json!([cleo]));
    // Whoever asks for what is stored of it gets that also where nobody sees it any more.
    let posts = all("post");
    operator.done(&["suspend", "ada"]);
    let suspended = operator.done(&["export", "ada"]);
    let lines = suspended.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let still: Vec<_> = lines.filter_map(|line| line.get("post").cloned()).collect();
    assert_eq!((posts.len(), still), (1, posts));
}
