//! Tickets: found by their secrets, given once, over when their time is.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tideline::cluster::{Command, Request};
use tideline::keys::slot_of_key;
use tideline::registration::{
    Registration, TICKET_BYTES_MAX, TICKET_LASTS_MAX, TICKET_SECRET_BYTES_MAX, TicketKind,
};
use tideline::{Engine, ErrorKind, FindingKind, FsckOptions, StoreOptions};
use tokio::sync::Notify;

use super::documents::{kill_primary, registration_of, two_on};
use super::{all_keys, engine, engine_with, letter_and_name, small, tenant};
use crate::harness::{eventually, in_the_end, own, replicated};

const CODE: TicketKind = TicketKind::new('c').unwrap();
const TOKEN: TicketKind = TicketKind::new('t').unwrap();
const DAY: Duration = Duration::from_secs(86_400);

/// Keys of tickets, those that were taken too.
pub(super) async fn ticket_keys(engine: &Engine) -> Vec<Vec<u8>> {
    let all = all_keys(engine).await;
    all.into_iter().filter(|key| letter_and_name(key).0 == 'X').collect()
}

async fn say(engine: &Engine, key: &[u8], command: &str) -> tideline::cluster::Reply {
    let command = Command::new(command).arg(key);
    engine.store().router().call(Request::write(slot_of_key(key), command)).await.unwrap()
}

#[tokio::test]
async fn a_ticket_is_found_by_its_secret_which_is_stored_nowhere() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let secret = b"a-secret-that-nobody-guesses";
    assert!(*registration.put_ticket(CODE, secret, b"grant", DAY).await.unwrap());
    assert!(!*registration.put_ticket(CODE, secret, b"other", DAY).await.unwrap());
    // Of another kind the same secret finds another one.
    assert_eq!(registration.ticket(TOKEN, secret).await.unwrap(), None);
    assert!(*registration.put_ticket(TOKEN, secret, b"", DAY).await.unwrap());
    assert_eq!(registration.ticket(CODE, secret).await.unwrap().as_deref(), Some(&b"grant"[..]));
    assert_eq!(registration.ticket(TOKEN, secret).await.unwrap().as_deref(), Some(&b""[..]));

    for (seen, is_made) in [(&b"other"[..], false), (b"grant", true), (b"grant", false)] {
        let made = registration.replace_ticket(CODE, secret, seen, b"another", DAY).await.unwrap().value;
        assert_eq!(made, is_made, "{seen:?}");
    }
    assert_eq!(registration.ticket(CODE, secret).await.unwrap().as_deref(), Some(&b"another"[..]));
    assert!(*registration.replace_ticket(CODE, secret, b"another", b"another", DAY).await.unwrap());
    assert!(!*registration.replace_ticket(CODE, b"nobody's", b"", b"another", DAY).await.unwrap());

    assert!(*registration.drop_ticket(TOKEN, secret).await.unwrap());
    assert!(!*registration.drop_ticket(TOKEN, secret).await.unwrap());
    assert_eq!(registration.take_ticket(TOKEN, secret).await.unwrap(), None);
    assert_eq!(registration.take_ticket(CODE, secret).await.unwrap().as_deref(), Some(&b"another"[..]));
    assert_eq!(registration.take_ticket(CODE, secret).await.unwrap(), None);
    assert!(!*registration.replace_ticket(CODE, secret, b"another", b"another", DAY).await.unwrap());
    // What is put anew is another one.
    assert!(*registration.put_ticket(CODE, secret, b"grant", DAY).await.unwrap());
    assert_eq!(registration.ticket(CODE, secret).await.unwrap().as_deref(), Some(&b"grant"[..]));

    let found = ticket_keys(&engine).await;
    assert_eq!(found.len(), 2);
    for key in found {
        let value = say(&engine, &key, "GET").await.bytes().unwrap().to_vec();
        assert!(say(&engine, &key, "PTTL").await.int().unwrap() > 0);
        for shown in [key, value] {
            assert!(!shown.windows(8).any(|part| secret.windows(8).any(|of| of == part)), "{shown:?}");
        }
    }
}

#[tokio::test]
async fn of_many_who_take_a_ticket_at_once_one_gets_it() {
    let one = engine_with(tenant(40), small()).await;
    let options = StoreOptions { prefix: one.store().keys().prefix().to_owned(), ..tenant(40) };
    let other = engine_with(options, small()).await;
    let sites = [registration_of(&one).await, registration_of(&other).await];
    for n in 0..20 {
        let secret = format!("secret {n}");
        let put = (0..4).map(|n| sites[n % 2].put_ticket(CODE, secret.as_bytes(), b"grant", DAY));
        let put: Vec<bool> = join_all(put).await.into_iter().map(|put| put.unwrap().value).collect();
        assert_eq!(put.iter().filter(|is_put| **is_put).count(), 1, "{put:?}");
        let taken = join_all((0..8).map(|n| sites[n % 2].take_ticket(CODE, secret.as_bytes()))).await;
        let taken: Vec<_> = taken.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(taken, [b"grant".to_vec()]);
    }
}

#[tokio::test]
async fn a_ticket_is_over_when_its_time_is_unless_it_is_renewed() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let short = Duration::from_millis(800);
    for secret in [b"renewed", b"over..."] {
        registration.put_ticket(TOKEN, secret, b"session", short).await.unwrap();
    }
    if !*registration.replace_ticket(TOKEN, b"renewed", b"session", b"session", DAY).await.unwrap() {
        println!("NOT CHECKED: this machine took 800 ms for three calls");
        return;
    }
    eventually("a ticket is over", async || registration.ticket(TOKEN, b"over...").await.unwrap().is_none())
        .await;
    assert_eq!(registration.take_ticket(TOKEN, b"over...").await.unwrap(), None);
    assert!(!*registration.replace_ticket(TOKEN, b"over...", b"session", b"session", DAY).await.unwrap());
    assert_eq!(registration.ticket(TOKEN, b"renewed").await.unwrap().as_deref(), Some(&b"session"[..]));
    assert_eq!(ticket_keys(&engine).await.len(), 1);
    assert!(*registration.put_ticket(TOKEN, b"over...", b"session", short).await.unwrap());
}

#[tokio::test]
async fn tickets_have_bounds_and_errors_say_no_secret() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let secret = [b's'; TICKET_SECRET_BYTES_MAX];
    let value = vec![b'v'; TICKET_BYTES_MAX];
    assert!(*registration.put_ticket(CODE, &secret, &value, TICKET_LASTS_MAX).await.unwrap());
    assert_eq!(registration.ticket(CODE, &secret).await.unwrap(), Some(value.clone()));
    let long = [secret.as_slice(), b"ssss"].concat();
    let large = [value.as_slice(), b"v"].concat();
    let refused = [
        registration.put_ticket(CODE, &long, b"", DAY).await.unwrap_err(),
        registration.put_ticket(CODE, b"", b"", DAY).await.unwrap_err(),
        registration.put_ticket(CODE, b"secret", &large, DAY).await.unwrap_err(),
        registration.put_ticket(CODE, b"secret", b"", Duration::ZERO).await.unwrap_err(),
        registration.put_ticket(CODE, b"secret", b"", TICKET_LASTS_MAX + DAY).await.unwrap_err(),
        registration.replace_ticket(CODE, &secret, &value, &large, DAY).await.unwrap_err(),
        registration.ticket(CODE, &long).await.unwrap_err(),
        registration.take_ticket(CODE, &long).await.unwrap_err(),
        registration.drop_ticket(CODE, &long).await.unwrap_err(),
    ];
    for refused in refused {
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(!format!("{refused:?}").contains("ssss"), "{refused}");
    }
    assert_eq!(ticket_keys(&engine).await.len(), 1);
}

#[tokio::test]
async fn a_ticket_without_an_end_is_found_and_ends() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    registration.put_ticket(TOKEN, b"secret", b"session", DAY).await.unwrap();
    let fsck = async |repair| {
        let options = FsckOptions { repair, ..FsckOptions::default() };
        engine.fsck(&options, &|_| {}).await.unwrap()
    };
    assert!(fsck(false).await.findings.is_empty());
    let key = ticket_keys(&engine).await.remove(0);
    say(&engine, &key, "PERSIST").await;
    let report = fsck(true).await;
    assert_eq!(
        report.findings.keys().copied().collect::<Vec<_>>(),
        [FindingKind::TokenEndless],
        "{report:?}"
    );
    assert!(say(&engine, &key, "PTTL").await.int().unwrap() > 0);
    assert_eq!(registration.ticket(TOKEN, b"secret").await.unwrap().as_deref(), Some(&b"session"[..]));
    assert!(fsck(false).await.findings.is_empty());
}

/// Takes a ticket until somebody says that it is taken: how often it was given.
async fn taken(registration: Registration, secret: String) -> usize {
    loop {
        match registration.take_ticket(CODE, secret.as_bytes()).await {
            Ok(taken) => return usize::from(taken.is_some()),
            // Given to nobody, or not taken.
            Err(e) => assert!(e.kind().is_retryable(), "{e:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_put_is_there_after_a_server_has_died_and_is_given_once_at_most_while_it_does() {
    const TICKETS: usize = 200;
    let cluster = own(replicated()).await;
    let [(engine, one), (_, other)] = two_on(&cluster).await;
    let sites = [one, other];
    let secret = |n: usize| format!("secret {n}");
    for n in 0..TICKETS {
        let (secret, value) = (secret(n), format!("grant {n}"));
        assert!(*sites[n % 2].put_ticket(CODE, secret.as_bytes(), value.as_bytes(), DAY).await.unwrap());
        assert!(*sites[n % 2].put_ticket(TOKEN, secret.as_bytes(), value.as_bytes(), DAY).await.unwrap());
    }
    // A few at a time, so that some meet the server's death; half of them are left until it has died.
    let (begun, dead) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let taking = tokio::spawn({
        let (sites, begun, dead) = (sites.clone(), begun.clone(), dead.clone());
        async move {
            let mut given = Vec::new();
            for n in 0..TICKETS {
                match n {
                    10 => begun.notify_one(),
                    _ if n == TICKETS / 2 => dead.notified().await,
                    _ => {}
                }
                let both = sites.clone().map(|site| taken(site, secret(n)));
                given.push(join_all(both).await.into_iter().sum::<usize>());
            }
            given
        }
    });
    let victim = slot_of_key(&ticket_keys(&engine).await[0]);
    in_the_end("some are taken", begun.notified()).await;
    kill_primary(&cluster, &engine, victim);
    dead.notify_one();
    let given = in_the_end("all tickets are taken", taking).await.unwrap();
    // Whose answer was lost nobody has got.
    assert!(given.iter().all(|times| *times <= 1), "{given:?}");
    assert!(given.iter().filter(|times| **times == 1).count() > TICKETS / 2, "{given:?}");
    for n in 0..TICKETS {
        let secret = secret(n);
        let value = in_the_end("a ticket is read", sites[0].ticket(TOKEN, secret.as_bytes())).await.unwrap();
        assert_eq!(value, Some(format!("grant {n}").into_bytes()));
        assert_eq!(sites[n % 2].take_ticket(CODE, secret.as_bytes()).await.unwrap(), None);
    }
}
