//! Names that one account only has: races, changes, and accounts and claims that disagree.

mod clocks;
mod fenced;
mod killed;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use tideline::FindingKind::*;
use tideline::cluster::{Command, Reply, Request};
use tideline::post::Draft;
use tideline::profile::ProfileUpdate;
use tideline::registration::{
    AttemptStep, Name, RegisteredAccount, Registration, RegistrationSettings, SignUp,
};
use tideline::{
    AccountId, AccountKind, AccountState, AccountUpdate, Engine, ErrorKind, FsckOptions, FsckReport,
    NewAccount, StoreOptions,
};

use super::{all_keys, at_key, drained, engine, letter_and_name};
use crate::harness::eventually;

/// Passwords that cost little.
fn settings() -> RegistrationSettings {
    RegistrationSettings {
        memory_kib: 8,
        passes: 1,
        hashes_waiting: 1_000,
        ..RegistrationSettings::default()
    }
}

async fn registration() -> (Engine, Registration) {
    let engine = engine().await;
    let registration = Registration::new(&engine, settings()).await.unwrap();
    (engine, registration)
}

fn ada() -> SignUp {
    SignUp::new("Ada", "correct horse").email("ada@example.org")
}

async fn fsck(engine: &Engine, repair: bool) -> FsckReport {
    let options = FsckOptions { repair, pause: Duration::from_millis(50), ..FsckOptions::default() };
    engine.fsck(&options, &|_| {}).await.unwrap()
}

async fn is_clean(engine: &Engine) {
    let report = fsck(engine, false).await;
    assert!(report.findings.is_empty() && report.in_flight == 0, "{report:#?}");
}

/// How many keys of each kind the tenant has, but for clocks (of removals, too), journals and what fences write.
async fn keys(engine: &Engine) -> BTreeMap<char, usize> {
    let mut found = BTreeMap::new();
    for key in all_keys(engine).await {
        let (letter, _) = letter_and_name(&key);
        // Lists of names follow a moment later.
        if !"cDjfivzQ".contains(letter) {
            *found.entry(letter).or_default() += 1;
        }
    }
    found
}

fn all_of(accounts: usize, claims: usize) -> BTreeMap<char, usize> {
    [('a', accounts), ('n', claims), ('x', accounts), ('y', accounts)].into()
}

/// The account that a claim names, whether or not that one says so.
async fn claimed(engine: &Engine) -> Vec<(Vec<u8>, u16, AccountId)> {
    let mut found = Vec::new();
    for key in all_keys(engine).await {
        if letter_and_name(&key).0 == 'n' {
            let slot = tideline::keys::slot_of_key(&key);
            let value = say(engine, slot, &key, "GET", &[]).await;
            found.push((key, slot, AccountId::from_bytes(&value.bytes().unwrap()[..8]).unwrap()));
        }
    }
    found
}

async fn say(engine: &Engine, slot: u16, key: &[u8], command: &str, arguments: &[&[u8]]) -> Reply {
    let command = Command::new(command).arg(key).args(arguments.iter().copied());
    engine.store().router().call(Request::write(slot, command)).await.unwrap()
}

/// As if an account's attempt had begun more than a minute ago.
async fn is_old(engine: &Engine, account: AccountId) {
    at_key(engine, 'x', account, "HSET", &["t", "1"]).await;
}

#[tokio::test]
async fn who_has_to_be_let_in_has_its_names_and_does_nothing_until_then() {
    let (engine, registration) = registration().await;
    let sign_up = ada().token("form").waiting();
    let id = registration.sign_up(&sign_up).await.unwrap().id;
    let state = async || registration.find(&[Name::Id(id)]).await.unwrap().remove(0).unwrap().state;
    assert_eq!(state().await, AccountState::Waiting);
    // The same form again is the same account, and lets nobody in.
    assert!(registration.sign_up(&sign_up).await.unwrap().is_repeat);
    assert_eq!(state().await, AccountState::Waiting);
    assert_eq!(registration.sign_up(&ada()).await.unwrap_err().kind(), ErrorKind::Conflict);
    registration.change_document(id, "d", None, Some(b"kept")).await.unwrap();
    let refused = engine.publish(id, &Draft::text("hello")).await.unwrap_err();
    assert!(refused.to_string().contains("not let in yet"), "{refused}");
    assert!(registration.find_beginning("ada").await.unwrap().is_empty());
    // Nobody is told that there is one.
    let eve = engine.create_account(NewAccount::default()).await.unwrap().value;
    let group = NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let group = engine.create_group(eve, group).await.unwrap().value;
    assert_eq!(engine.as_reader(eve).relationships(&[id]).await.unwrap(), [None]);
    for tried in [
        engine.follow(eve, id).await.map(drop),
        engine.block(eve, id).await.map(drop),
        engine.set_note(eve, id, "?").await.map(drop),
        engine.invite_to_group(group, eve, id, true).await.map(drop),
        engine.publish_direct(eve, &[id], &Draft::text("hey")).await.map(drop),
    ] {
        assert_eq!(tried.unwrap_err().kind(), ErrorKind::NotFound);
    }
    // Another name lets nobody in either.
    registration.set_login(id, "lovelace").await.unwrap();
    registration.set_email(id, Some("ada@example.net")).await.unwrap();
    assert_eq!(state().await, AccountState::Waiting);
    is_clean(&engine).await;

    let becomes = |state| AccountUpdate { state: Some(state), ..AccountUpdate::default() };
    engine.update_account(id, &becomes(AccountState::Active)).await.unwrap();
    engine.publish(id, &Draft::text("hello")).await.unwrap();
    let refused = engine.update_account(id, &becomes(AccountState::Waiting)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let eve = registration.sign_up(&SignUp::new("eve", "correct horse").waiting()).await.unwrap().id;
    engine.delete_account(eve).await.unwrap();
    registration.sign_up(&SignUp::new("eve", "correct horse")).await.unwrap();
}

#[tokio::test]
async fn a_name_is_ones_own_whatever_its_case_and_finds_everything() {
    let (engine, registration) = registration().await;
    let RegisteredAccount { id, is_repeat, .. } = registration.sign_up(&ada()).await.unwrap();
    assert!(!is_repeat);
    assert_eq!(keys(&engine).await, all_of(1, 2));
    for taken in [
        SignUp::new("aDA", "another one"),
        SignUp::new("grace", "another one").email("ADA@example.org"),
        SignUp::new("ada", "another one").email("new@example.org"),
    ] {
        let refused = registration.sign_up(&taken).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        assert!(
            refused.to_string().contains("taken") && !refused.to_string().contains("example"),
            "{refused}"
        );
    }
    assert_eq!(keys(&engine).await, all_of(1, 2));

    let update = ProfileUpdate { display_name: Some("Ada L.".into()), ..ProfileUpdate::default() };
    registration.update_profile(id, &update).await.unwrap();
    let names = [
        Name::Login("ADA".into()),
        Name::Email("ada@EXAMPLE.org".into()),
        Name::Id(id),
        Name::Login("nobody".into()),
        Name::Login("no login".into()),
        Name::Id(AccountId::new(4_711).unwrap()),
        Name::Login("ada".into()),
    ];
    let found = registration.find(&names).await.unwrap();
    let ids: Vec<_> = found.iter().map(|account| account.as_ref().map(|account| account.id)).collect();
    assert_eq!(ids, [Some(id), Some(id), Some(id), None, None, None, Some(id)]);
    let hers = found[0].clone().unwrap();
    assert_eq!(hers.login.as_deref(), Some("Ada"));
    assert_eq!(hers.profile.unwrap().display_name, "Ada L.");
    assert!(hers.registered_ms.unwrap() > 1_600_000_000_000);
    assert_eq!(registration.email(id).await.unwrap().as_deref(), Some("ada@example.org"));

    for (name, password, is_right) in [
        ("ada", "correct horse", true),
        ("Ada@Example.org", "correct horse", true),
        ("ada", "Correct horse", false),
        ("nobody", "correct horse", false),
        ("no login", "correct horse", false),
        ("ada@", "", false),
    ] {
        let account = registration.check(name, password).await.unwrap();
        assert_eq!(account.map(|account| account.id), is_right.then_some(id), "{name} {password}");
    }
    registration.set_password(id, "battery staple").await.unwrap();
    assert!(registration.check("ada", "correct horse").await.unwrap().is_none());
    assert!(registration.check("ada", "battery staple").await.unwrap().is_some());
    // What nobody may see is in no message about it.
    assert!(!format!("{:?} {:?}", ada(), names[1]).contains("horse") && !format!("{names:?}").contains("@"));
    is_clean(&engine).await;
}

#[tokio::test]
async fn of_a_hundred_who_want_one_name_one_gets_it_and_the_others_leave_nothing() {
    let (engine, registration) = registration().await;
    let other = Registration::new(
        &super::engine_with(
            StoreOptions { prefix: engine.store().keys().prefix().to_owned(), ..super::tenant(40) },
            super::small(),
        )
        .await,
        settings(),
    )
    .await
    .unwrap();
    // All with one login; each with an address that two want.
    let sign_ups: Vec<SignUp> =
        (0..100).map(|n| SignUp::new("grace", "password").email(format!("{}@example.org", n / 2))).collect();
    let racing = sign_ups.iter().enumerate().map(|(n, sign_up)| {
        let registration = if n % 2 == 0 { &registration } else { &other };
        registration.sign_up(sign_up)
    });
    let outcomes = join_all(racing).await;
    let winners: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    }
    assert_eq!(keys(&engine).await, all_of(1, 2));
    assert_eq!(registration.id_of("grace").await.unwrap(), winners[0].id);
    is_clean(&engine).await;
}

#[tokio::test]
async fn an_account_that_is_being_registered_is_not_there() {
    let (engine, registration) = registration().await;
    let id = AccountId::new(77).unwrap();
    let new = NewAccount { id: Some(id), ..NewAccount::default() };
    let sign_up = SignUp { account: new.clone(), ..ada() };
    registration.sign_up_until(&sign_up, &|at| at == AttemptStep::Fenced).await.unwrap_err();
    let other = engine.create_account(NewAccount::default()).await.unwrap().value;
    let not_found = [
        engine.stored().account(id).await.map(drop),
        engine.follow(other, id).await.map(drop),
        engine.follow(id, other).await.map(drop),
        engine.mute(id, other).await.map(drop),
        engine.warm(id).await.map(drop),
        engine.delete_account(id).await.map(drop),
        engine
            .update_account(
                id,
                &AccountUpdate { state: Some(AccountState::Active), ..AccountUpdate::default() },
            )
            .await
            .map(drop),
        registration.set_login(id, "bea").await.map(drop),
        registration.set_password(id, "another one").await.map(drop),
        registration.update_profile(id, &ProfileUpdate::default()).await.map(drop),
        engine.as_reader(other).read(&tideline::Query::profile(id)).await.map(drop),
    ];
    // Nor is it mentioned.
    let mention = engine.publish(other, &Draft::text("hello").mentions([id])).await.unwrap().id;
    drained(&engine).await;
    assert!(!keys(&engine).await.contains_key(&'s'), "{:?}", keys(&engine).await);
    for (n, outcome) in not_found.into_iter().enumerate() {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound, "{n}");
    }
    assert_eq!(engine.publish(id, &Draft::text("hello")).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(engine.create_account(new).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(registration.sign_up(&sign_up).await.unwrap_err().kind(), ErrorKind::Conflict);
    drained(&engine).await;
    is_clean(&engine).await;
    engine.delete(other, mention).await.unwrap();
    // The same id again, a minute later.
    is_old(&engine, id).await;
    assert_eq!(registration.sign_up(&sign_up).await.unwrap().id, id);
    engine.follow(other, id).await.unwrap();
    drained(&engine).await;
    is_clean(&engine).await;
}

#[tokio::test]
async fn names_change_and_the_old_ones_are_free_then() {
    let (engine, registration) = registration().await;
    let id = registration.sign_up(&ada()).await.unwrap().id;
    let bea = registration.sign_up(&SignUp::new("bea", "password")).await.unwrap().id;
    assert_eq!(registration.set_login(id, "BEA").await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(
        registration.set_email(bea, Some("ada@example.org")).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    assert_eq!(keys(&engine).await, all_of(2, 3));
    // Only another case; then another name.
    registration.set_login(id, "ADA").await.unwrap();
    assert_eq!(engine.stored().account(id).await.unwrap().login.as_deref(), Some("ADA"));
    registration.set_login(id, "Lovelace").await.unwrap();
    registration.set_email(id, None).await.unwrap();
    assert_eq!(keys(&engine).await, all_of(2, 2));
    assert_eq!(registration.email(id).await.unwrap(), None);
    registration.set_email(bea, Some("ada@example.org")).await.unwrap();
    registration.set_login(bea, "ada").await.unwrap();
    let found =
        registration.find(&["ada", "bea", "lovelace"].map(|name| Name::Login(name.into()))).await.unwrap();
    let ids: Vec<_> = found.into_iter().map(|account| account.map(|account| account.id)).collect();
    assert_eq!(ids, [Some(bea), None, Some(id)]);
    // An account that was made without a name gets one.
    let plain = engine.create_account(NewAccount::default()).await.unwrap().value;
    registration.set_login(plain, "carl").await.unwrap();
    assert!(registration.check("carl", "password").await.unwrap().is_none());
    registration.set_password(plain, "password").await.unwrap();
    assert!(registration.check("carl", "password").await.unwrap().is_some());
    is_clean(&engine).await;

    engine.delete_account(bea).await.unwrap();
    assert!(registration.check("ada", "password").await.unwrap().is_none());
    assert!(
        registration
            .find(&[Name::Id(bea), Name::Login("ada".into())])
            .await
            .unwrap()
            .iter()
            .all(Option::is_none)
    );
    // At once, though its traces are still being taken away.
    registration.sign_up(&SignUp::new("ada", "password")).await.unwrap();
    drained(&engine).await;
    let mut all = all_of(4, 3);
    all.extend([('x', 3), ('y', 2)]);
    assert_eq!(keys(&engine).await, all);
    is_clean(&engine).await;
}

/// An account changed its login and was about to give up the old one, when somebody else changed it back: the claim
/// stood there for the same account, taken by another attempt. It was given up, and then another account could take it
/// too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_is_taken_back_meanwhile_is_not_given_up() {
    for until in [
        AttemptStep::Begun,
        AttemptStep::Claimed(1),
        AttemptStep::Fenced,
        AttemptStep::Settled,
        AttemptStep::Reread,
    ] {
        let (engine, registration) = registration().await;
        let id = registration.sign_up(&ada()).await.unwrap().id;
        let meanwhile = |step| {
            if step == AttemptStep::Reread {
                let (registration, runtime) = (registration.clone(), tokio::runtime::Handle::current());
                let taken_back = std::thread::spawn(move || {
                    runtime.block_on(registration.set_login_until(id, "ada", &|at| at == until)).unwrap_err()
                });
                taken_back.join().unwrap();
            }
            false
        };
        registration.set_login_until(id, "bea", &meanwhile).await.unwrap();
        let named = claimed(&engine).await.into_iter().filter(|(.., of)| *of == id).count();
        assert_eq!(named, 3, "{until:?}: two logins and an address");
        let taken = registration.sign_up(&SignUp::new("ada", "password")).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Conflict, "{until:?}");
    }
}

#[tokio::test]
async fn claims_and_accounts_that_say_different_things_are_found() {
    let (engine, registration) = registration().await;
    let id = registration.sign_up(&SignUp::new("ada", "password")).await.unwrap().id;
    let other = registration.sign_up(&SignUp::new("bea", "password")).await.unwrap().id;
    let heals = async |wanted: &[tideline::FindingKind]| {
        for repair in [false, true] {
            let report = fsck(&engine, repair).await;
            assert_eq!(report.findings.keys().copied().collect::<Vec<_>>(), wanted, "{report:#?}");
        }
        is_clean(&engine).await;
    };
    let (key, slot, _) = claimed(&engine).await.into_iter().find(|(.., of)| *of == id).unwrap();
    // Lost in a failover.
    say(&engine, slot, &key, "DEL", &[]).await;
    heals(&[ClaimMissing]).await;
    assert_eq!(registration.id_of("ada").await.unwrap(), id);
    // Names somebody who is called otherwise.
    let mut wrong = other.to_bytes().to_vec();
    wrong.extend(b"12345678");
    say(&engine, slot, &key, "SET", &[&wrong]).await;
    assert!(registration.id_of("ada").await.is_err());
    let report = fsck(&engine, true).await;
    let kinds: Vec<_> = report.findings.keys().copied().collect();
    assert_eq!((kinds, report.is_clean()), (vec![ClaimNeedless, ClaimMissing], true), "{report:#?}");
    assert_eq!(registration.id_of("ada").await.unwrap(), id);
    is_clean(&engine).await;
    // Names nobody.
    let mut nobody = AccountId::new(4_711).unwrap().to_bytes().to_vec();
    nobody.extend(b"12345678");
    let mut free = key.clone();
    let last = free.len() - 1;
    free[last] ^= 1;
    let buckets = engine.store().keys().buckets();
    let at = free.iter().position(|b| *b == b'}').unwrap() + 1;
    let bucket = buckets.of_bytes(&free[at + 1..]);
    free = [format!("{}{{{}}}", engine.store().keys().prefix(), buckets.tag(bucket)).as_bytes(), &free[at..]]
        .concat();
    say(&engine, buckets.slot(bucket), &free, "SET", &[&nobody]).await;
    heals(&[ClaimNeedless]).await;
    // Both say so: for people to decide.
    let claim = at_key(&engine, 'x', id, "HGET", &["c"]).await.bytes().unwrap().to_vec();
    let mut both = at_key(&engine, 'x', other, "HGET", &["c"]).await.bytes().unwrap().to_vec();
    both.extend(&claim);
    let of_other = {
        let keys = engine.store().keys();
        let bucket = keys.buckets().of_account(other.get());
        let mut key = format!("{}{{{}}}x", keys.prefix(), keys.buckets().tag(bucket)).into_bytes();
        key.extend(other.to_bytes());
        (key, keys.buckets().slot(bucket))
    };
    say(&engine, of_other.1, &of_other.0, "HSET", &[b"c", &both]).await;
    let report = fsck(&engine, true).await;
    assert_eq!(report.findings.keys().copied().collect::<Vec<_>>(), [ClaimOfOther], "{report:#?}");
    assert!(!report.is_clean());
    // Without credentials its claim is nobody's, and nobody knows its password.
    say(&engine, of_other.1, &of_other.0, "DEL", &[]).await;
    let report = fsck(&engine, true).await;
    assert_eq!(report.findings.keys().copied().collect::<Vec<_>>(), [ClaimNeedless, CredentialsMissing]);
    // Of nobody.
    let nobody = AccountId::new(4_711).unwrap();
    registration.set_login(other, "bea").await.unwrap();
    at_key(&engine, 'x', nobody, "HSET", &["h", "?"]).await;
    at_key(&engine, 'y', nobody, "SET", &["?"]).await;
    heals(&[KeyOrphaned]).await;
}

/// Whoever logs in has told the password: what it costs to try stolen hashes follows the settings.
#[tokio::test]
async fn a_right_password_is_hashed_anew_when_that_costs_another_amount_now() {
    let (engine, registration) = registration().await;
    let id = registration.sign_up(&ada()).await.unwrap().id;
    let costly = RegistrationSettings { memory_kib: 16, ..settings() };
    let costly = Registration::new(&engine, costly).await.unwrap();
    let hash = async || at_key(&engine, 'x', id, "HGET", &["h"]).await.text().unwrap().to_owned();
    let first = hash().await;
    assert!(first.contains("m=8,"), "{first}");
    // Not by a wrong one, nor where it costs the same.
    assert!(costly.check("ada", "wrong horse").await.unwrap().is_none());
    assert!(registration.check("ada", "correct horse").await.unwrap().is_some());
    assert!(costly.check("ada", "correct horse").await.unwrap().is_some());
    eventually("it is hashed anew", async || hash().await.contains("m=16,")).await;
    assert_ne!(hash().await, first);
    for way in [&registration, &costly] {
        assert_eq!(way.check("Ada@example.org", "correct horse").await.unwrap().unwrap().id, id);
        assert!(way.check("ada", "wrong horse").await.unwrap().is_none());
    }
}
