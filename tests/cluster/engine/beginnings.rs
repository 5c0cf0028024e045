//! Accounts and hashtags by how their names begin.

use std::time::Duration;

use futures::future::join_all;
use tideline::cluster::{Command, Request};
use tideline::keys::slot_of_key;
use tideline::post::{Draft, Edit, Tag, Visibility};
use tideline::profile::ProfileUpdate;
use tideline::registration::{Registration, SignUp};
use tideline::{
    AccountId, AccountState, AccountUpdate, Engine, ErrorKind, FindingKind, FsckOptions, Moderation,
};

use super::documents::{kill_primary, registration_of, two_on};
use super::{accounts, all_keys, drained, engine, letter_and_name, milliseconds};
use crate::harness::{eventually, in_the_end, own, replicated};

async fn sign_up(registration: &Registration, login: &str) -> AccountId {
    registration.sign_up(&SignUp::new(login, "correct horse")).await.unwrap().id
}

async fn found(registration: &Registration, typed: &str) -> Vec<AccountId> {
    registration.find_beginning(typed).await.unwrap().iter().map(|account| account.id).collect()
}

async fn call_it(registration: &Registration, account: AccountId, display_name: &str) {
    let update = ProfileUpdate { display_name: Some(display_name.into()), ..ProfileUpdate::default() };
    registration.update_profile(account, &update).await.unwrap();
}

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

async fn tags(engine: &Engine, typed: &str) -> Vec<String> {
    engine.hashtags_beginning(&tag(typed), 100).await.unwrap().iter().map(Tag::to_string).collect()
}

/// The lists of names that a tenant has: beginning and length.
async fn lists(engine: &Engine) -> Vec<(String, i64)> {
    let mut lists = Vec::new();
    for key in all_keys(engine).await {
        if let ('Q', name) = letter_and_name(&key) {
            lists.push((String::from_utf8(name.to_vec()).unwrap(), say(engine, &key, "ZCARD").await));
        }
    }
    lists
}

/// Says a command about a key, which answers with a number.
async fn say(engine: &Engine, key: &[u8], command: &str) -> i64 {
    let request = Request::write(slot_of_key(key), Command::new(command).arg(key));
    engine.store().router().call(request).await.unwrap().int().unwrap()
}

/// The key of a beginning's list, as docs/keys.md spells it.
fn list_of(engine: &Engine, beginning: &[u8]) -> Vec<u8> {
    let (keys, buckets) = (engine.store().keys(), engine.store().keys().buckets());
    let tag = buckets.tag(buckets.of_bytes(beginning));
    [keys.prefix().as_bytes(), format!("{{{tag}}}Q").as_bytes(), beginning].concat()
}

#[tokio::test]
async fn somebody_is_found_by_how_each_name_begins_as_soon_as_it_has_it_and_no_longer_than_that() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let ada = sign_up(&registration, "ada_l").await;
    let adam = sign_up(&registration, "adam").await;
    drained(&engine).await;
    let mut both = found(&registration, "ad").await;
    both.sort_unstable();
    let mut expected = vec![ada, adam];
    expected.sort_unstable();
    assert_eq!(both, expected);
    assert_eq!(found(&registration, "Ada L").await, [ada]);
    for nobody in ["", "@", "b", "adams"] {
        assert_eq!(found(&registration, nobody).await, [], "{nobody:?}");
    }

    call_it(&registration, ada, "Countess Lovelace").await;
    drained(&engine).await;
    assert_eq!(found(&registration, "ada love").await, [ada]);
    call_it(&registration, ada, "Byron").await;
    registration.set_login(ada, "tides").await.unwrap();
    drained(&engine).await;
    assert_eq!((found(&registration, "by").await, found(&registration, "tid").await), (vec![ada], vec![ada]));
    for before in ["lovelace", "countess", "ada l"] {
        assert_eq!(found(&registration, before).await, [], "{before:?}");
    }
    // Whoever has found it there takes it off.
    eventually("who is called so no more is taken off", async || {
        lists(&engine).await.iter().all(|(name, _)| name != "alovelace")
    })
    .await;

    // Who is followed most comes first; who is suspended isn't found.
    let fans = accounts(&engine, 2).await;
    for fan in fans {
        engine.follow(fan, adam).await.unwrap();
    }
    call_it(&registration, ada, "Ada").await;
    drained(&engine).await;
    assert_eq!(found(&registration, "ad").await, [adam, ada]);
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(adam, &suspended).await.unwrap();
    assert_eq!(found(&registration, "ad").await, [ada]);
    engine.delete_account(ada).await.unwrap();
    assert_eq!(found(&registration, "ad").await, []);
}

#[tokio::test]
async fn hashtags_are_found_by_how_they_begin_as_long_as_a_post_bears_them() {
    let engine = engine().await;
    let ada = accounts(&engine, 1).await[0];
    let bears = async |names: &[&str], visibility| {
        let draft = Draft::text("x").hashtags(names.iter().copied()).visibility(visibility);
        engine.publish(ada, &draft).await.unwrap().id
    };
    for name in ["tide_pool", "tide_x", "tide", "TideLine"] {
        bears(&[name], Visibility::Public).await;
    }
    let twice = bears(&["tideline"], Visibility::Public).await;
    let gone = bears(&["tide_y"], Visibility::Public).await;
    bears(&["tide_z"], Visibility::Followers).await;
    drained(&engine).await;
    assert_eq!(tags(&engine, "#TIDE").await, ["tide", "tideline", "tide_x", "tide_y", "tide_pool"]);
    assert_eq!(tags(&engine, "tide_").await, ["tide_x", "tide_y", "tide_pool"]);
    engine.delete(ada, gone).await.unwrap();
    engine.delete(ada, twice).await.unwrap();
    drained(&engine).await;
    assert_eq!(tags(&engine, "tide").await, ["tide", "tideline", "tide_x", "tide_pool"]);
    assert_eq!(tags(&engine, "nothing").await, Vec::<String>::new());
    let two = engine.hashtags_beginning(&tag("tide"), 2).await.unwrap();
    assert_eq!(two, [tag("tide"), tag("tideline")]);
}

/// Whoever sees a hashtag suggested, or none, would learn from it what moderators hide.
#[tokio::test]
async fn hashtags_are_not_found_that_stand_on_hidden_posts_alone() {
    let engine = engine().await;
    let accounts = accounts(&engine, 2).await;
    let bears = async |author: usize, name: &str| {
        let draft = Draft::text("x").hashtags([name]).visibility(Visibility::Public);
        engine.publish(accounts[author], &draft).await.unwrap().id
    };
    let (slur, both) = (bears(0, "slur_a").await, bears(0, "slur_b").await);
    bears(1, "slur_b").await;
    bears(1, "slur_c").await;
    drained(&engine).await;
    assert_eq!(tags(&engine, "slur_").await, ["slur_b", "slur_a", "slur_c"]);
    let hidden = |hidden| Moderation { hidden: Some(hidden), ..Moderation::default() };
    for post in [slur, both] {
        engine.moderate(post, hidden(true)).await.unwrap();
    }
    assert_eq!(tags(&engine, "slur_").await, ["slur_b", "slur_c"]);
    assert_eq!(tags(&engine, "slur_a").await, Vec::<String>::new());
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(accounts[1], &suspended).await.unwrap();
    assert_eq!(tags(&engine, "slur_").await, Vec::<String>::new());
    // Whoever names it and takes that back, again and again, hides it from nobody who types it.
    let shown = bears(0, "slur_d").await;
    for _ in 0..10 {
        let post = bears(0, "slur_d").await;
        let none = Edit { hashtags: Some(Vec::new()), ..Edit::default() };
        engine.edit(accounts[0], post, &none).await.unwrap();
    }
    drained(&engine).await;
    assert_eq!(tags(&engine, "slur_d").await, ["slur_d"]);
    engine.delete(accounts[0], shown).await.unwrap();
    drained(&engine).await;
    assert_eq!(tags(&engine, "slur_d").await, Vec::<String>::new());
    // Its list still has it: it comes back with its post.
    engine.moderate(slur, hidden(false)).await.unwrap();
    assert_eq!(tags(&engine, "slur_").await, ["slur_a"]);
}

/// A stranger with many accounts takes places on a list, but not from whom more follow.
#[tokio::test]
async fn a_list_of_a_beginning_keeps_who_is_followed_most_and_of_equals_who_came_last() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let (known, unknown) = (sign_up(&registration, "zoe").await, sign_up(&registration, "zora").await);
    let fans = accounts(&engine, 3).await;
    for fan in fans {
        engine.follow(fan, known).await.unwrap();
    }
    drained(&engine).await;
    // Listed with its followers.
    call_it(&registration, known, "Zoe").await;
    drained(&engine).await;
    // Who is put on a list within 64 ms of another came at the same time, and chance decides.
    milliseconds(&engine, 64).await;
    let strangers: Vec<String> = (0..101).map(|i| format!("z{i:03}")).collect();
    for some in strangers.chunks(20) {
        join_all(some.iter().map(|login| sign_up(&registration, login))).await;
    }
    drained(&engine).await;
    let listed = found(&registration, "z").await;
    assert_eq!((listed.len(), listed[0]), (100, known));
    assert!(!listed.contains(&unknown));
    assert_eq!(found(&registration, "zo").await, [known, unknown], "on another list there is room");
    assert!(lists(&engine).await.iter().all(|(_, many)| *many <= 100));
}

#[tokio::test]
async fn fsck_finds_who_is_not_on_the_lists_of_its_names_and_has_it_put_there() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let ada = sign_up(&registration, "ada").await;
    call_it(&registration, ada, "Lovelace").await;
    drained(&engine).await;
    let fsck = async |repair| {
        let report = engine.fsck(&FsckOptions { repair, ..FsckOptions::default() }, &|_| {}).await.unwrap();
        report.findings.keys().copied().collect::<Vec<_>>()
    };
    assert_eq!(fsck(false).await, []);
    assert_eq!(say(&engine, &list_of(&engine, b"alovelace"), "DEL").await, 1);
    assert_eq!(found(&registration, "lovelace").await, []);
    for repair in [false, true] {
        assert_eq!(fsck(repair).await, [FindingKind::NameUnlisted]);
    }
    drained(&engine).await;
    assert_eq!(fsck(false).await, []);
    assert_eq!(found(&registration, "lovelace").await, [ada]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_signed_up_is_found_though_the_server_of_a_list_dies() {
    let cluster = own(replicated()).await;
    let [(one, registration), (_, elsewhere)] = two_on(&cluster).await;
    let buckets = one.store().keys().buckets();
    kill_primary(&cluster, &one, buckets.slot(buckets.of_bytes(b"agrace")));
    let signing = async {
        loop {
            match registration.sign_up(&SignUp::new("grace", "correct horse").token("once")).await {
                Ok(registered) => return registered.id,
                Err(e) => assert!(e.kind().is_retryable() || e.kind() == ErrorKind::Conflict, "{e:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let grace = in_the_end("somebody signs up", signing).await;
    eventually("she is found by each beginning", async || {
        for typed in ["g", "gra", "grace"] {
            let is_found = elsewhere
                .find_beginning(typed)
                .await
                .is_ok_and(|found| found[..].iter().any(|of| of.id == grace));
            if !is_found {
                return false;
            }
        }
        true
    })
    .await;
}
