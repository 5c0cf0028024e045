//! Looking at what is stored, and why a page looks as it does.

use std::process::Command;

use tideline::post::{Draft, PostRef};
use tideline::{
    AccountId, Candidate, Engine, ErrorKind, HiddenBecause, HomeStatus, Mode, NewAccount, PostId, Query,
    Verdict,
};

use super::{accounts, drained, engine, engine_with, small, tenant};
use crate::harness::{account, shared};

async fn publish(engine: &Engine, author: AccountId, text: &str) -> PostId {
    engine.publish(author, &Draft::text(text)).await.unwrap().id
}

fn verdict_of(page: &[Candidate], id: PostId) -> Verdict {
    page.iter().find(|c| c.id == id).unwrap_or_else(|| panic!("{id} is not among {page:?}")).verdict
}

#[tokio::test]
async fn an_inspection_tells_why_each_entry_shows_or_not() {
    let engine = engine().await;
    let people = accounts(&engine, 6).await;
    let [reader, friend, muted, left, stranger, author] = people[..] else { panic!("six were made") };
    for followed in [friend, muted, left, author] {
        engine.follow(reader, followed).await.unwrap();
    }
    drained(&engine).await;
    engine.warm(reader).await.unwrap();
    let far = publish(&engine, stranger, "far away").await;
    let shown = publish(&engine, friend, "hello").await;
    let loud = publish(&engine, muted, "loud").await;
    let gone = publish(&engine, author, "a mistake").await;
    let old = publish(&engine, left, "old").await;
    let answer = Draft::text("to you").reply_to(PostRef { id: far, author: stranger });
    let answer = engine.publish(friend, &answer).await.unwrap().id;
    let repost = Draft::repost(PostRef { id: far, author: stranger });
    let under = engine.publish(author, &repost).await.unwrap().id;
    let above = engine.publish(friend, &repost).await.unwrap().id;
    drained(&engine).await;
    engine.mute(reader, muted).await.unwrap();
    engine.delete(author, gone).await.unwrap();
    engine.unfollow(reader, left).await.unwrap();
    drained(&engine).await;

    let seen = engine.read(reader, &Query::home()).await.unwrap().ids();
    let inspection = engine.inspect(reader).await.unwrap();
    let page = &inspection.page;
    let hidden = Verdict::Hidden;
    for (id, verdict) in [
        (shown, Verdict::Shown),
        (above, Verdict::Shown),
        (loud, hidden(HiddenBecause::Muted)),
        (gone, hidden(HiddenBecause::Gone)),
        (old, hidden(HiddenBecause::NotFollowed)),
        (answer, hidden(HiddenBecause::ReplyToStranger)),
        (under, hidden(HiddenBecause::RepostedAbove)),
    ] {
        assert_eq!(verdict_of(page, id), verdict, "{id}");
    }
    let of_page: Vec<PostId> = page.iter().filter(|c| c.verdict == Verdict::Shown).map(|c| c.id).collect();
    assert_eq!(of_page, seen);
    assert!(page.iter().all(|c| c.is_in_home), "{page:?}");
    assert!(matches!(inspection.home.status, HomeStatus::Whole { .. }));
    assert_eq!((inspection.sets.following, inspection.sets.mutes, inspection.sets.followers), (3, 1, 0));
    assert_eq!((inspection.journal, inspection.page_error), (vec![], None));
    let outbox = engine.inspect(author).await.unwrap().outbox;
    let newest: Vec<_> = outbox.newest.iter().map(|post| (post.id, post.is_deleted)).collect();
    assert_eq!((newest, outbox.cut_up_to), (vec![(gone, true), (under, false)], None));
}

#[tokio::test]
async fn an_observer_changes_nothing_and_finds_only_what_exists() {
    let options = tenant(40);
    let observer = || Engine::builder().store(options.clone()).settings(small()).observe();
    assert_eq!(observer().await.unwrap_err().kind(), ErrorKind::NotFound);
    let engine = engine_with(options.clone(), small()).await;
    let people = accounts(&engine, 2).await;
    engine.follow(people[0], people[1]).await.unwrap();
    let id = publish(&engine, people[1], "hello").await;
    let star = NewAccount { mode: Mode::Pull, ..NewAccount::default() };
    let star = engine.create_account(star).await.unwrap();
    engine.follow(people[0], star).await.unwrap();
    let pulled = publish(&engine, star, "to all").await;
    drained(&engine).await;

    let observer = observer().await.unwrap();
    for _ in 0..2 {
        let inspection = observer.inspect(people[0]).await.unwrap();
        assert_eq!((inspection.home.status, inspection.home.records), (HomeStatus::Missing, 0));
        assert_eq!(inspection.last_read_day, None);
        assert_eq!(inspection.pulls, [star]);
        let page: Vec<_> = inspection.page.iter().map(|c| (c.id, c.is_in_home, c.verdict)).collect();
        assert_eq!(page, [(pulled, false, Verdict::Shown), (id, false, Verdict::Shown)]);
    }
    let refused = observer.publish(people[1], &Draft::text("no")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(observer.inspect(account(99)).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn the_program_prints_tables_or_json() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let reader = engine.create_account(NewAccount::default()).await.unwrap();
    let id = publish(&engine, reader, "my own").await;
    drained(&engine).await;
    let inspect = |reader: &str, more: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tideline"));
        program.args(["inspect", reader, "--prefix", &options.prefix]).args(more);
        program.env("TIDELINE_CLUSTER", shared().join(",")).env("TIDELINE_SETS_TREES_CACHED", "10");
        let output = program.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (is_good, text, errors) = inspect(&reader.to_string(), &[]);
    assert!(is_good, "{text}{errors}");
    for wanted in ["missing: the next read fills it", "1 listed: ", &id.to_string(), "yes"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let (_, json, errors) = inspect(&reader.to_string(), &["--json"]);
    let json: serde_json::Value =
        serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}{errors}"));
    assert_eq!(json["account"]["id"], reader.to_string());
    assert_eq!(json["page"][0]["id"], id.to_string());
    assert_eq!(json["page"][0]["verdict"], "shown");
    assert_eq!(json["home"]["status"], "missing");
    let (is_good, _, errors) = inspect("99", &[]);
    assert!(!is_good && errors.contains("account 99 does not exist"), "{errors}");
}
