//! The example backends, as processes of their own, against a site.

use std::process::Command;

use tideline_server::service;

use super::served::Served;

/// What a program prints that is given the site and a token.
async fn told(program: &'static str, script: &str) -> String {
    let site = Served::start().await;
    let token = service::create(site.registration(), "example", "read write follow").await.unwrap();
    let url = format!("http://{}", site.address());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/backend/").to_owned() + script;
    let run = move || {
        // A second time it finds its accounts.
        let again = Command::new(program).args([&path, &url, &token]).output()?;
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
        Command::new(program).args([&path, &url, &token]).output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let output = output.unwrap_or_else(|e| {
        panic!("{program} can't be started ({e}): run scripts/install-tools.sh {program}")
    });
    site.end().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Both programs do the same: all six posts come, two a page, the newest first.
fn assert_told(told: &str) {
    assert!(told.starts_with("accounts: @annika, @bodil\n"), "{told}");
    let pages: Vec<&str> = told.lines().filter(|line| line.starts_with("a page of Annika's home:")).collect();
    let hours: Vec<&str> =
        told.split("High tide at ").skip(1).filter_map(|rest| rest.split('<').next()).collect();
    assert_eq!(pages.len(), 3, "{told}");
    assert_eq!(hours, ["seven", "noon", "six", "seven", "noon", "six"], "{told}");
}

#[tokio::test]
async fn a_backend_in_python_has_timelines() {
    assert_told(&told("python3", "backend.py").await);
}

#[tokio::test]
async fn a_backend_in_javascript_has_timelines() {
    if std::env::var_os("TIDELINE_WITHOUT_NODE").is_some_and(|value| !value.is_empty()) {
        eprintln!("NOT CHECKED: TIDELINE_WITHOUT_NODE is set");
        return;
    }
    assert_told(&told("node", "backend.mjs").await);
}
