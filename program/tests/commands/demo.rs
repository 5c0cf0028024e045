//! The demonstration runs to its end, finds its timelines right, and leaves nothing.

use std::process::Command;

use super::own_temporary;

#[test]
fn a_small_demonstration_finds_all_its_timelines_right_and_leaves_nothing() {
    // Its temporary directory is ours, to see what is left there.
    let place = own_temporary();
    let output = Command::new(env!("CARGO_BIN_EXE_tideline"))
        .args(["demo", "--accounts", "300", "--posts", "50", "--reads", "200"])
        .env_remove("TIDELINE_CLUSTER")
        .env("TMPDIR", place.path())
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    for wanted in ["Imported 300 accounts", "spread over all buckets", "timelines compared", "all right"] {
        assert!(text.contains(wanted), "it did not print {wanted:?}:\n{text}");
    }
    let left = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| !name.to_string_lossy().starts_with("tideline-ports")).collect();
    assert!(left.is_empty(), "{left:?}");
}
