//! Whoever is killed half-way holds a name for a minute, or has it; and what is left behind.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tideline::FindingKind::*;
use tideline::post::Draft;
use tideline::registration::{AttemptStep, Name, RegisteredAccount, Registration, SignUp};
use tideline::{AccountId, Engine, ErrorKind, NewAccount, StoreOptions};

use super::super::{all_keys, at_key, engine_with, letter_and_name, small};
use super::{ada, all_of, fsck, is_clean, is_old, keys, registration, settings};
use crate::harness::{PATIENCE, eventually, impatient, options, own, replicated};

/// Every step after which a sign-up with a login and an e-mail address can be killed.
const STEPS: [AttemptStep; 6] = [
    AttemptStep::Begun,
    AttemptStep::Claimed(1),
    AttemptStep::Claimed(2),
    AttemptStep::Fenced,
    AttemptStep::Settled,
    AttemptStep::Reread,
];

#[tokio::test]
async fn whoever_is_killed_after_a_step_holds_a_name_for_a_minute_or_has_it() {
    for step in STEPS {
        let (engine, registration) = registration().await;
        registration.sign_up_until(&ada(), &|at| at == step).await.unwrap_err();
        // The claim may not be taken yet; the account is there only once it is settled.
        let is_there = matches!(step, AttemptStep::Settled | AttemptStep::Reread);
        let found = registration.find(&[Name::Login("ada".into())]).await.unwrap();
        assert_eq!(found[0].is_some(), is_there, "{step:?}");
        assert_eq!(registration.check("ada", "correct horse").await.unwrap().is_some(), is_there);
        is_clean(&engine).await;
        let again = registration.sign_up(&ada()).await;
        match step {
            AttemptStep::Begun => drop(again.unwrap()),
            _ => assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict, "{step:?}"),
        }
        let all = keys(&engine).await;
        if is_there {
            assert_eq!(all, all_of(1, 2));
            continue;
        }
        // A minute later: somebody else takes it, or fsck takes it away.
        let left = unconfirmed(&engine).await;
        assert_eq!(left.len(), 1, "{step:?}");
        is_old(&engine, left[0]).await;
        if step == AttemptStep::Begun {
            let report = fsck(&engine, true).await;
            assert_eq!(report.findings.keys().copied().collect::<Vec<_>>(), [AttemptLeft], "{report:#?}");
        } else {
            registration.sign_up(&ada()).await.unwrap();
        }
        assert_eq!(keys(&engine).await, all_of(1, 2), "{step:?}");
        is_clean(&engine).await;
    }
}

/// Accounts that are being registered.
async fn unconfirmed(engine: &Engine) -> Vec<AccountId> {
    let mut found = Vec::new();
    for key in all_keys(engine).await {
        let ('a', id) = letter_and_name(&key) else { continue };
        let id = AccountId::from_bytes(id).unwrap();
        if at_key(engine, 'a', id, "HGET", &["s"]).await.bytes().unwrap() == b"u" {
            found.push(id);
        }
    }
    found
}

#[tokio::test]
async fn who_is_still_being_registered_may_not_like() {
    let (engine, registration) = registration().await;
    registration.sign_up_until(&ada(), &|at| at == AttemptStep::Begun).await.unwrap_err();
    let ada = unconfirmed(&engine).await[0];
    let bea = engine.create_account(NewAccount::default()).await.unwrap().value;
    let post = engine.publish(bea, &Draft::text("to be liked")).await.unwrap().id;
    assert_eq!(engine.like(ada, post).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(engine.follow(ada, bea).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn fsck_alone_takes_away_what_killed_sign_ups_left() {
    for step in &STEPS[..4] {
        let (engine, registration) = registration().await;
        registration.sign_up_until(&ada(), &|at| at == *step).await.unwrap_err();
        is_clean(&engine).await;
        is_old(&engine, unconfirmed(&engine).await[0]).await;
        let report = fsck(&engine, false).await;
        assert_eq!(
            report.findings.keys().copied().collect::<Vec<_>>(),
            [AttemptLeft],
            "{step:?} {report:#?}"
        );
        assert!(!report.is_clean());
        let report = fsck(&engine, true).await;
        assert!(report.is_clean(), "{report:#?}");
        assert_eq!(keys(&engine).await, BTreeMap::new(), "{step:?}");
        is_clean(&engine).await;
    }
}

#[tokio::test]
async fn with_a_token_a_second_try_brings_the_first_one_to_its_end() {
    for step in STEPS {
        let (engine, registration) = registration().await;
        let sign_up = ada().token("form-7");
        registration.sign_up_until(&sign_up, &|at| at == step).await.unwrap_err();
        if step != AttemptStep::Begun {
            let stranger = SignUp { password: "battery staple".into(), ..sign_up.clone() };
            let refused = registration.sign_up(&stranger).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "{step:?}");
        }
        let again = registration.sign_up(&sign_up).await.unwrap();
        assert_eq!(again.is_repeat, step != AttemptStep::Begun, "{step:?}");
        assert_eq!(
            registration.sign_up(&sign_up).await.unwrap(),
            RegisteredAccount { is_repeat: true, ..again }
        );
        assert_eq!(registration.check("ada", "correct horse").await.unwrap().unwrap().id, again.id);
        // Somebody else's token, or another name with the same one, is no repeat.
        assert!(registration.sign_up(&ada().token("form-8")).await.is_err());
        assert!(registration.sign_up(&SignUp { login: "bea".into(), ..sign_up }).await.is_err());
        // Nor is it one with another password: who got hold of a token has not signed up.
        let stranger = SignUp { password: "battery staple".into(), ..ada().token("form-7") };
        assert_eq!(
            registration.sign_up(&stranger).await.unwrap_err().kind(),
            ErrorKind::Conflict,
            "{step:?}"
        );
        if step == AttemptStep::Begun {
            is_old(&engine, unconfirmed(&engine).await[0]).await;
            fsck(&engine, true).await;
        }
        assert_eq!(keys(&engine).await, all_of(1, 2), "{step:?}");
        is_clean(&engine).await;
    }
}

/// A process was frozen before it settled, for more than a minute; somebody else got the name; it woke up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_wakes_up_after_others_took_over_gets_nothing_and_leaves_nothing() {
    let (engine, registration) = registration().await;
    let winner = Mutex::new(None);
    let meanwhile = |step| {
        if step == AttemptStep::Fenced {
            let (engine, registration) = (engine.clone(), registration.clone());
            let runtime = tokio::runtime::Handle::current();
            // On another thread: the sleeper must not go on meanwhile.
            let taken = std::thread::spawn(move || {
                runtime.block_on(async {
                    is_old(&engine, unconfirmed(&engine).await[0]).await;
                    registration.sign_up(&ada()).await.unwrap().id
                })
            });
            *winner.lock().unwrap() = Some(taken.join().unwrap());
        }
        false
    };
    let refused = registration.sign_up_until(&ada(), &meanwhile).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert_eq!(registration.id_of("ada").await.unwrap(), winner.lock().unwrap().unwrap());
    assert_eq!(keys(&engine).await, all_of(1, 2));
    is_clean(&engine).await;
}

#[tokio::test]
async fn a_change_that_is_killed_after_a_step_is_not_made_or_made() {
    for step in [
        AttemptStep::Begun,
        AttemptStep::Claimed(1),
        AttemptStep::Fenced,
        AttemptStep::Settled,
        AttemptStep::Reread,
    ] {
        let (engine, registration) = registration().await;
        let id = registration.sign_up(&ada()).await.unwrap().id;
        registration.set_login_until(id, "bea", &|at| at == step).await.unwrap_err();
        let is_made = matches!(step, AttemptStep::Settled | AttemptStep::Reread);
        let name = if is_made { "bea" } else { "ada" };
        assert_eq!(registration.id_of(name).await.unwrap(), id, "{step:?}");
        assert!(registration.check(name, "correct horse").await.unwrap().is_some());
        let (other, taken) = if is_made { ("ada", None) } else { ("bea", Some(ErrorKind::Conflict)) };
        assert!(registration.check(other, "correct horse").await.unwrap().is_none());
        if is_made {
            let report = fsck(&engine, true).await;
            assert_eq!(report.findings.keys().copied().collect::<Vec<_>>(), [ClaimNeedless], "{report:#?}");
            assert!(report.is_clean());
        } else {
            is_clean(&engine).await;
            assert_eq!(
                registration.set_login(id, "carl").await.unwrap_err().kind(),
                ErrorKind::Conflict,
                "under way"
            );
            if step != AttemptStep::Begun {
                let refused = registration.sign_up(&SignUp::new(other, "password")).await;
                assert_eq!(refused.err().map(|e| e.kind()), taken, "{step:?}");
            }
            is_old(&engine, id).await;
        }
        registration.sign_up(&SignUp::new(other, "password")).await.unwrap();
        if step == AttemptStep::Begun {
            assert!(fsck(&engine, true).await.is_clean());
        }
        assert_eq!(keys(&engine).await, all_of(2, 3), "{step:?}");
        is_clean(&engine).await;
    }
}

/// Primaries are killed one after the other while people sign up, each again and again until somebody says yes. What
/// was acknowledged is there with its names, and nobody has a name twice.
#[tokio::test]
async fn names_are_ones_own_also_when_primaries_are_killed() {
    let cluster = own(replicated()).await;
    let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let engine = engine_with(options, small()).await;
    let registration = Registration::new(&engine, settings()).await.unwrap();
    let is_over = AtomicBool::new(false);
    let registered = Mutex::new(Vec::new());
    let people = (0..6).map(|person| {
        let (registration, is_over, registered) = (&registration, &is_over, &registered);
        async move {
            for n in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                // Two want each login; each sign-up has an address and a token of its own.
                let (login, mine) = (format!("n{}-{n}", person / 2), format!("{person}-{n}"));
                let sign_up =
                    SignUp::new(&login, "password").email(format!("{mine}@example.org")).token(mine.as_str());
                for _ in 0..1_000 {
                    match registration.sign_up(&sign_up).await {
                        Ok(done) => {
                            registered.lock().unwrap().push((login.clone(), mine.clone(), done.id));
                            break;
                        }
                        Err(e) if e.to_string().contains("taken") => break,
                        Err(e) => assert!(e.kind().is_retryable(), "{e:?}"),
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    });
    let faults = async {
        let more = async || {
            let until = registered.lock().unwrap().len() + 6;
            eventually("people are registered", async || registered.lock().unwrap().len() >= until).await;
        };
        for _ in 0..2 {
            more().await;
            let victim = cluster.primaries().await[0];
            victim.kill().unwrap();
            eventually("a replica takes over", async || cluster.primaries().await.len() == 3).await;
            // At the promoted one, and with the old one back.
            more().await;
            cluster.restart(victim.index).await.unwrap();
            cluster.wait_healthy(PATIENCE).await.unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    };
    futures::future::join(join_all(people), faults).await;
    let registered = registered.into_inner().unwrap();
    println!("{} accounts were registered", registered.len());
    let mut names = std::collections::HashMap::new();
    for (login, mine, id) in &registered {
        assert_eq!(names.entry(login.clone()).or_insert(*id), id, "{login} twice");
        assert_eq!(registration.id_of(login).await.unwrap(), *id);
        let by_email = registration.find(&[Name::Email(format!("{mine}@example.org"))]).await.unwrap();
        assert_eq!(by_email[0].as_ref().unwrap().id, *id);
    }
    // Attempts that were ended on the way may have left something; a minute later it goes.
    for left in unconfirmed(&engine).await {
        is_old(&engine, left).await;
    }
    let report = fsck(&engine, true).await;
    assert!(report.is_clean(), "{report:#?}");
    let wrong = [ClaimOfOther, ClaimMissing, CredentialsMissing];
    assert!(wrong.iter().all(|kind| !report.findings.contains_key(kind)), "{report:#?}");
    is_clean(&engine).await;
}
