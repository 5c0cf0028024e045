//! The command.

use tideline::NewAccount;

use super::*;
use crate::engine::{engine_with, small, tenant};
use crate::harness::shared;

#[tokio::test]
async fn its_exit_code_says_clean_or_not_or_that_it_could_not_look() {
    let store = tenant(40);
    let engine = engine_with(store.clone(), small()).await;
    let author = engine.create_account(NewAccount::default()).await.unwrap().value;
    let program = |prefix: &str, more: &[&str]| {
        let mut program = std::process::Command::new(crate::harness::program());
        program.args(["fsck", "--prefix", prefix, "--pause", "50"]).args(more);
        program.env("TIDELINE_CLUSTER", shared().join(","));
        program
    };
    let run = |prefix: &str, more: &[&str]| {
        let output = program(prefix, more).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, text, errors) = run(&store.prefix, &[]);
    assert!(code == 0 && text.contains("1 accounts") && text.ends_with("Clean.\n"), "{code}: {text}{errors}");
    let begun =
        format!("looking at all keys under prefix `{}`; with many keys this takes minutes\n", store.prefix);
    assert!(errors.contains(&begun) && !text.contains(&begun), "{text}{errors}");
    raw_of(&engine, author, 'a', "HSET", &[b"nf", b"9"]).await;
    let (code, text, errors) = run(&store.prefix, &[]);
    assert!(code == 1 && text.contains("count_wrong: 1 found, 0 repaired"), "{code}: {text}{errors}");
    assert!(text.contains(&format!("field `nf` of account {author}: 9 too many")), "{text}");
    // The account lies elsewhere.
    let elsewhere = ((bucket_of(&engine, author) + 1) % 16).to_string();
    let (code, text, _) = run(&store.prefix, &["--buckets", &elsewhere]);
    assert_eq!(code, 0, "{text}");
    let here = format!("{0}-{0}", bucket_of(&engine, author));
    let (code, json, errors) = run(&store.prefix, &["--buckets", &here, "--repair", "--json"]);
    let json: serde_json::Value =
        serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}{errors}"));
    assert_eq!(code, 0, "{json}");
    assert_eq!(json["findings"]["count_wrong"]["repaired"], 1, "{json}");
    let (code, _, errors) = run("nobody-has-this:", &[]);
    assert!(code == 2 && errors.contains("nobody has opened it"), "{code}: {errors}");
    assert!(errors.contains("`--prefix` names the tenant"), "{errors}");

    // Nobody reads what it prints, as with `| true`: it panicked.
    let (reader, nobody) = std::io::pipe().unwrap();
    drop(reader);
    let output = program(&store.prefix, &[]).stdout(nobody).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.contains("panicked")), (Some(0), false), "{errors}");
}
