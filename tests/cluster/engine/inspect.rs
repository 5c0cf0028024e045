//! Looking at what is stored, and why a page looks as it does.

use std::process::Command;

use tideline::cluster::{Command as ServerCommand, Request};
use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::registration::{AttemptStep, Registration, RegistrationSettings, SignUp};
use tideline::{
    AccountId, AccountState, Engine, ErrorKind, HiddenBecause, HomeCandidate, HomeStatus, HomeVerdict,
    ListMembership, Mode, Moderation, NewAccount, PostId, PostInspection, Query, StoreOptions,
};

use super::{a_millisecond, accounts, drained, engine, engine_with, small, tenant};
use crate::harness::{account, shared};

async fn publish(engine: &Engine, author: AccountId, text: &str) -> PostId {
    engine.publish(author, &Draft::text(text)).await.unwrap().id
}

fn verdict_of(page: &[HomeCandidate], id: PostId) -> HomeVerdict {
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
    a_millisecond(&engine).await;
    let above = engine.publish(friend, &repost).await.unwrap().id;
    drained(&engine).await;
    engine.mute(reader, muted).await.unwrap();
    engine.delete(author, gone).await.unwrap();
    engine.unfollow(reader, left).await.unwrap();
    drained(&engine).await;

    let seen = engine.as_reader(reader).read(&Query::home()).await.unwrap().ids();
    let inspection = engine.inspect(reader).await.unwrap();
    let page = &inspection.page;
    let hidden = HomeVerdict::Hidden;
    for (id, verdict) in [
        (shown, HomeVerdict::Shown),
        (above, HomeVerdict::Shown),
        (loud, hidden(HiddenBecause::Muted)),
        (gone, hidden(HiddenBecause::Gone)),
        (old, hidden(HiddenBecause::NotFollowed)),
        (answer, hidden(HiddenBecause::ReplyToStranger)),
        (under, hidden(HiddenBecause::RepostedAbove)),
    ] {
        assert_eq!(verdict_of(page, id), verdict, "{id}");
    }
    let of_page: Vec<PostId> =
        page.iter().filter(|c| c.verdict == HomeVerdict::Shown).map(|c| c.id).collect();
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
    let star = engine.create_account(star).await.unwrap().value;
    engine.follow(people[0], star).await.unwrap();
    a_millisecond(&engine).await;
    let pulled = publish(&engine, star, "to all").await;
    drained(&engine).await;

    let observer = observer().await.unwrap();
    for _ in 0..2 {
        let inspection = observer.inspect(people[0]).await.unwrap();
        assert_eq!((inspection.home.status, inspection.home.entries), (HomeStatus::Missing, 0));
        assert_eq!(inspection.last_read_day, None);
        assert_eq!(inspection.pulls, [star]);
        let page: Vec<_> = inspection.page.iter().map(|c| (c.id, c.is_in_home, c.verdict)).collect();
        assert_eq!(page, [(pulled, false, HomeVerdict::Shown), (id, false, HomeVerdict::Shown)]);
    }
    let refused = observer.publish(people[1], &Draft::text("no")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(observer.inspect(account(99)).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Where it is listed: the list, whether it is named now, and whether the post is there.
fn listings(of: &PostInspection) -> Vec<(&str, bool, ListMembership)> {
    of.listings.iter().map(|listing| (&*listing.list, listing.is_named, listing.place)).collect()
}

#[tokio::test]
async fn an_inspection_of_a_post_tells_its_lists_and_where_it_is_listed() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let [ada, ben] = people[..] else { panic!("two were made") };
    let first = publish(&engine, ada, "low tide").await;
    let draft = Draft::text("a secret").mentions([ben]).hashtags(["Tide"]);
    let answer = draft.reply_to(PostRef { id: first, author: ada });
    let post = engine.publish(ada, &answer).await.unwrap().id;
    engine.like(ben, post).await.unwrap();
    engine.bookmark(ben, first).await.unwrap();
    let repost = engine.repost(ben, post).await.unwrap().id;
    drained(&engine).await;
    let edit = Edit { hashtags: Some(vec!["sea".into()]), ..Edit::default() };
    engine.edit(ada, post, &edit).await.unwrap();
    engine.moderate(post, Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
    drained(&engine).await;

    let found = engine.inspect_post(post).await.unwrap();
    assert_eq!((found.author, found.visibility, found.revision), (ada, Visibility::Public, 1));
    assert_eq!((found.is_hidden, found.is_called_sensitive), (true, false));
    assert_eq!(found.reply_to, Some(PostRef { id: first, author: ada }));
    let lengths = |of: &PostInspection| -> Vec<_> {
        of.lists.iter().map(|list| (list.list, list.said, list.members)).collect()
    };
    assert_eq!(lengths(&found), [("replies", 0, 0), ("reposts", 1, 1), ("quotes", 0, 0), ("likes", 1, 1)]);
    let of_first = format!("replies of post {first} of {ada}");
    let mentions = format!("mentions of {ben}");
    let mut listed = listings(&found);
    assert_eq!(listed.remove(0), (&*of_first, true, ListMembership::On));
    // What an edit takes away stays on its list, and doesn't show there; its name is gone with it.
    let tide = listed.iter().position(|(list, ..)| list.starts_with("hashtag number ")).unwrap();
    assert_eq!((listed[tide].1, listed.remove(tide).2), (false, ListMembership::On));
    assert_eq!(listed, [(&*mentions, true, ListMembership::On), ("hashtag sea", true, ListMembership::On)]);
    assert!(!serde_json::to_string(&found).unwrap().contains("a secret"));

    let of_repost = engine.inspect_post(repost).await.unwrap();
    let [mine, theirs] = [format!("what {ben} reposts"), format!("reposts of post {post} of {ada}")];
    let both = [(&*mine, true, ListMembership::On), (&*theirs, true, ListMembership::On)];
    assert_eq!((listings(&of_repost), of_repost.is_plain_repost), (both.to_vec(), true));
    let of_ben = engine.inspect(ben).await.unwrap();
    let sets = of_ben.sets;
    assert_eq!((sets.likes, sets.bookmarks, sets.reposts, sets.mentions), (1, 1, 1, 1));
    assert!(of_ben.ties_stamp.is_some() && of_ben.names.is_none());
    assert_eq!(engine.inspect(ada).await.unwrap().ties_stamp, None);

    // A number that is out of step shows beside the length of its list, and so does a post that is missing on one.
    let keys = engine.store().keys();
    let bucket = keys.buckets().of_account(ada.get());
    let tag = format!("{}{{{}}}", keys.prefix(), keys.buckets().tag(bucket)).into_bytes();
    let at = |name: &[u8], of: PostId| [&tag, name, &of.get().to_be_bytes()].concat();
    let wrong = ServerCommand::new("SETRANGE").arg(&at(b"w", post)).arg("64").arg(&[0, 0, 0, 7]);
    let lost = ServerCommand::new("DEL").arg(&at(b"s#replies:", first));
    for command in [wrong, lost] {
        let request = Request::write(keys.buckets().slot(bucket), command);
        engine.store().router().call(request).await.unwrap();
    }
    let found = engine.inspect_post(post).await.unwrap();
    assert_eq!(lengths(&found)[3], ("likes", 7, 1));
    assert_eq!(listings(&found)[0], (&*of_first, true, ListMembership::Off));
    engine.delete(ada, post).await.unwrap();
    assert_eq!(engine.inspect_post(post).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn names_are_told_without_what_is_secret() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let settings = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
    let registration = Registration::new(&engine, settings).await.unwrap();
    let mut bea = SignUp::new("Bea", "correct horse").email("bea@example.org");
    bea.account.id = Some(account(7));
    registration.sign_up_until(&bea, &|at| at == AttemptStep::Claimed(1)).await.unwrap_err();
    let ada = SignUp::new("Ada", "correct horse").email("ada@example.org");
    let ada = registration.sign_up(&ada).await.unwrap().id;

    let found = engine.inspect(ada).await.unwrap();
    let names = found.names.clone().unwrap();
    assert_eq!((found.account.login.as_deref(), names.attempt_since_ms), (Some("Ada"), None));
    assert!(names.wanted.is_empty() && names.held.iter().all(|claim| claim.names == Some(ada)), "{names:?}");
    assert_eq!(names.held.iter().filter(|claim| claim.is_login).count(), 1);
    assert_eq!(names.held.len(), 2);
    let found = engine.inspect(account(7)).await.unwrap();
    let names = found.names.unwrap();
    assert_eq!((found.account.state, names.held.len()), (AccountState::Unconfirmed, 0));
    assert!(names.attempt_since_ms.is_some());
    let taken: Vec<_> = names.wanted.iter().map(|claim| (claim.is_login, claim.names)).collect();
    assert_eq!(taken, [(false, Some(account(7))), (true, None)]);

    let ada = ada.to_string();
    for id in [&*ada, "7"] {
        for more in [&[][..], &["--json"]] {
            let (is_good, text, errors) = inspect(&options, &[&[id], more].concat());
            assert!(is_good && text.contains(if id == "7" { "Bea" } else { "Ada" }), "{text}{errors}");
            for secret in ["example.org", "argon2"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
    let (_, text, _) = inspect(&options, &[&ada]);
    assert!(text.contains("has: e-mail address, login"), "{text}");
    let (_, text, _) = inspect(&options, &["7"]);
    for wanted in ["(Bea): person, unconfirmed", "e-mail address, login (its claim is missing)"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

/// What the program says, and whether it is content.
fn inspect(options: &StoreOptions, arguments: &[&str]) -> (bool, String, String) {
    let mut program = Command::new(crate::harness::program());
    program.arg("inspect").args(arguments).args(["--prefix", &options.prefix]);
    program.env("TIDELINE_CLUSTER", shared().join(",")).env("TIDELINE_SETS_TREES_CACHED", "10");
    let output = program.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn the_program_prints_tables_or_json() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let reader = engine.create_account(NewAccount::default()).await.unwrap().value;
    let id = publish(&engine, reader, "my own").await;
    drained(&engine).await;
    let (is_good, text, errors) = inspect(&options, &[&reader.to_string()]);
    assert!(is_good, "{text}{errors}");
    for wanted in ["missing: the next read fills it", "1 listed; the newest: ", &id.to_string(), "yes"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let (_, json, errors) = inspect(&options, &[&reader.to_string(), "--json"]);
    let json: serde_json::Value =
        serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}{errors}"));
    assert_eq!(json["account"]["id"], reader.to_string());
    // Also what an account that is serialized elsewhere doesn't tell.
    let whole = ["mode", "pushed_since", "blocks", "hides"].map(|field| json["account"][field].clone());
    assert_eq!(whole, [serde_json::json!("push"), "0".into(), 0.into(), 0.into()]);
    let told = serde_json::to_value(engine.stored().account(reader).await.unwrap()).unwrap();
    assert!(told["following"].is_u64() && told["blocks"].is_null() && told["mode"].is_null(), "{told}");
    assert_eq!(json["page"][0]["id"], id.to_string());
    assert_eq!(json["page"][0]["verdict"], "shown");
    assert_eq!(json["home"]["status"], "missing");
    let (is_good, text, errors) = inspect(&options, &[&reader.to_string(), "--ranking"]);
    assert!(is_good && text.contains(&id.to_string()) && text.contains("reactions 0.00"), "{text}{errors}");
    let (_, json, _) = inspect(&options, &[&reader.to_string(), "--ranking", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["posts"][0]["score"]["age"].as_f64().is_some_and(|age| age <= 0.0), "{json}");
    assert_eq!(json["hidden"], serde_json::json!([]));
    let (is_good, _, errors) = inspect(&options, &["99"]);
    let wanted = format!("error: under prefix `{}`: account 99 does not exist\n", options.prefix);
    assert!(!is_good && errors.ends_with(&wanted), "{errors}");

    let id = id.to_string();
    let (is_good, text, errors) = inspect(&options, &["--post", &id]);
    for wanted in [&id, "public", "say nothing", "likes", "nothing that concerns it is open"] {
        assert!(is_good && text.contains(wanted), "{wanted}: {text}{errors}");
    }
    let (_, json, errors) = inspect(&options, &["--post", &id, "--json"]);
    let json: serde_json::Value =
        serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}{errors}"));
    assert_eq!((&json["id"], &json["visibility"]), (&id.into(), &"public".into()));
    for (arguments, wanted) in [
        (&["--post", "77"][..], "there is no post 77"),
        (&["7", "--post", "77"], "cannot be used with"),
        (&[], "required"),
        (&["ada"], "there is no account \"ada\": name its id, its login or its e-mail address"),
        (&["0"], "ids run from 1"),
        (&["--post", "my-post"], "a post's id is a whole number"),
    ] {
        let (is_good, _, errors) = inspect(&options, arguments);
        assert!(!is_good && errors.contains(wanted), "{errors}");
    }
}
