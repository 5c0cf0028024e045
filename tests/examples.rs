//! The examples run to their end, each on a cluster that it starts itself.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/cargo.rs"]
mod cargo;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cargo::cargo;

/// `cargo test` builds examples before the tests, into a directory beside theirs; `cargo test --test examples` does
/// not, and then those that were built last are run.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    if !program.exists() {
        let built = cargo().args(["build", "--locked", "--example", name]).status().unwrap();
        assert!(built.success() && program.exists(), "{} could not be built", program.display());
    }
    program
}

fn run(name: &str, wanted: &[&str]) {
    run_with(name, "", wanted);
}

/// Runs it, and says this to it. What is wanted comes in this order.
fn run_with(name: &str, input: &str, wanted: &[&str]) {
    let mut child = Command::new(program(name));
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Passwords that cost little.
    child.env_remove("TIDELINE_ARCHIVE");
    child.env("TIDELINE_REGISTRATION_MEMORY_KIB", "8").env("TIDELINE_REGISTRATION_PASSES", "1");
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{text}\n{errors}", output.status);
    let mut rest = &*text;
    for wanted in wanted {
        let Some((_, after)) = rest.split_once(wanted) else {
            panic!("{name} did not print {wanted:?}:\n{text}");
        };
        rest = after;
    }
}

#[test]
fn an_engine_is_embedded_in_a_service() {
    run("embed", &["reads: Tide table, page 8", "shut down, 0 tasks left"]);
}

#[test]
fn a_filter_of_ones_own_hides_posts() {
    run("custom_filter", &["without films [\"High tide at six\", \"Low tide at noon\"]", "Hidden(Filtered)"]);
}

#[test]
fn a_policy_of_ones_own_decides_who_is_pulled() {
    run("policy", &["1000 is pulled; ", "reads 2 of its posts", "1000 is pushed again, "]);
}

#[test]
fn a_site_moves_here() {
    run("import", &["200 new accounts", "1001 posts", "100 reads: "]);
}

#[test]
fn a_profile_scrolls_into_an_archive() {
    let lies = "lies in Some(Archive)";
    run("archive", &[lies, "20 of 100, down to \"post 81\"", "100 of 100, down to \"post 1\""]);
}

/// What people say to the small social site.
const SESSION: &str = "\
ada signup correct horse
ben signup battery staple
Ada signup somebody else
ada login wrong horse
ada name Ada L.
ada login correct horse
ada name
ADA login correct horse
ben follow ada
ada post Low tide at noon, @Ben! https://example.com/@cy #Beach #2026
ben home
ben mentions
ben reply 1 On my way @ada
ada reply 2 See you
cy tag beach
cy signup noon is low
cy show 1
cy show 3
ada mentions
cy like 1
cy bookmark 1
ben like 1
ada tag BEACH
cy tag beach
cy bookmarks
ben bookmarks
ada likers 1
cy unlike 1
cy likes
ben likes
ben repost 1
ada profile ben
ben unrepost 1
ben home
ada whisper Only for us #beach
ben home
cy tag beach
cy profile ada
cy like 5
ada edit 1 High tide at noon #sea
cy tag beach
cy tag sea
ben mute ada
ben home
ben delete 1
ada delete 1
cy tag sea
cy bookmarks
cy like 1
ada found sailors
ben join sailors
cy tell sailors Let me in
ben tell sailors Caller sails tomorrow?
ada home
ada leave sailors
ben leave sailors
ben tell sailors Nobody?
cy important
ada say ben,cy Sea dog or land rat?
ben say ada,cy Both
ada say ben,cy Choose
cy chats
cy chats
cy post Buy my cheap shells today
cy post Buy my cheap shells, today!
cy post @ben buy my cheap shells today
ben report 10 He sells
ada queue
ada release 12
ada queue
cy dance
help
";

#[test]
fn people_meet_on_a_small_social_site() {
    run_with(
        "social_site",
        SESSION,
        &[
            "welcome, ada\nwelcome, ben\nsorry: this login is taken\n",
            "that is not the password, or there is no ada\nada is called Ada L.\nwelcome back, Ada L.\n",
            "ada is called ada\nwelcome back, ada\nben follows ada\nposted [1]\n",
            // Ben's home, and what mentions him.
            "[1] ada: Low tide at noon, @Ben! https://example.com/@cy #Beach #2026\n",
            "[1] ada: Low tide at noon, @Ben! https://example.com/@cy #Beach #2026\nposted [2]\nposted [3]\n",
            "sorry: nobody has the login \"cy\"\nwelcome, cy\n",
            // The conversation, from its beginning and from its end.
            "[1] ada: Low tide at noon, @Ben! https://example.com/@cy #Beach #2026 (answered 1x)\n",
            "  [2] ben: On my way @ada (answered 1x)\n    [3] ada: See you\n[1] ada: Low tide",
            "  [2] ben: On my way @ada (answered 1x)\n    [3] ada: See you\n[2] ben: On my way @ada",
            // Likes are for everybody to see, bookmarks for nobody else.
            "#2026 (liked 2x, answered 1x)\n",
            "#2026 (liked 2x, answered 1x, you like it, you keep it)\n",
            "#2026 (liked 2x, answered 1x, you like it, you keep it)\nnothing\nliked by ben, cy\ncy no longer likes \
             [1]\n",
            "nothing\n",
            "#2026 (liked 1x, answered 1x, you like it)\n",
            // A repost comes and goes.
            "ben passes on [1]\nben: 2 posts, 0 followers, follows 1\n[4] ben: passes on ada: Low tide at noon, @Ben! ",
            "#2026 (liked 1x, reposted 1x, answered 1x)\n",
            "#2026 (liked 1x, answered 1x, you like it)\n",
            // What is for followers shows to them, and to nobody else: neither under its hashtag nor on a profile.
            "posted [5]\n[5] ada: Only for us #beach\n[3] ada: See you\n",
            "#2026 (liked 1x, answered 1x, you like it)\n[1] ada: Low tide",
            "#2026 (liked 1x, answered 1x, you keep it)\nada: 3 posts, 1 followers, follows 0\n[3] ada: See you\n",
            "#2026 (liked 1x, answered 1x, you keep it)\nsorry: there is no post [5]\n",
            // Edited, muted, deleted.
            "nothing\n[1] ada: High tide at noon #sea (liked 1x, answered 1x, you keep it)\n",
            "[2] ben: On my way @ada (answered 1x)\nsorry: only who wrote post [1] can do that\nada has deleted [1]\n",
            "nothing\nnothing\nsorry: there is no post [1]\nada has founded sailors\nsorry: account ",
            // What is posted into a group shows to its members, with who wrote it.
            "it joins it by following\nposted [6]\n[6] ben in sailors: Caller sails tomorrow?\n",
            "is the last owner of group ",
            "make another member an owner first\nben has left sailors\nsorry: account ",
            // What is said to somebody shows to nobody else; each who opens one of three has another one.
            "posted [7]\nposted [8]\nposted [9]\nwith ada, ben, 2 unread\n[9] ada: Choose\n[7] ada: Sea dog",
            "with ada, ben, 1 unread\n[8] ben: Both\n",
            "with ada, ben, 0 unread\n",
            // What is said again and again waits for somebody who looks at it.
            "posted [10]\nposted [11]\nposted [12]: others see it once it is released\nben has reported [10]\n",
            "about cy [10]: He sells\nabout cy [12]: the same text for the 3. time within an hour\n",
            "ada has released [12]\nabout cy [10]: He sells\n",
            "sorry: nobody can \"dance\" here; `help`",
            "ada signup correct horse",
            "good bye, 0 tasks left",
        ],
    );
}

#[test]
fn help_of_the_social_site_lists_every_command() {
    let output = Command::new(program("social_site")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let arms = include_str!("../examples/social_site.rs").lines().filter_map(|line| line.split_once("\" =>"));
    let verbs: Vec<&str> = arms
        .filter_map(|(verbs, _)| verbs.trim().strip_prefix('"'))
        .flat_map(|verbs| verbs.split("\" | \""))
        .collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in verbs {
        assert!(help.split_whitespace().any(|word| word == verb), "{verb} is not in:\n{help}");
    }
}
