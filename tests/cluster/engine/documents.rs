//! Documents of accounts: compared and set, bounded, and gone with their account.

use std::collections::BTreeSet;

use futures::future::join_all;
use tideline::cluster::NodeAddr;
use tideline::document::{DOCUMENT_BYTES_MAX, DOCUMENT_NAME_BYTES_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX};
use tideline::registration::{Registration, RegistrationSettings};
use tideline::{
    AccountId, AccountState, AccountUpdate, Acknowledge, Engine, EngineSettings, ErrorCode, ErrorKind,
    FindingKind, FsckOptions, NewAccount, StoreOptions,
};
use tideline_local_cluster::LocalCluster;

use super::{
    accounts, all_keys, at_key, drained, engine, engine_with, letter_and_name, slot_of, small, tenant,
};
use crate::harness::{in_the_end, options, own, patient_with_replicas, replicated};

pub(super) async fn registration_of(engine: &Engine) -> Registration {
    let cheap = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
    Registration::new(engine, cheap).await.unwrap()
}

/// Two instances on a cluster with replicas, whose writes wait for these.
pub(super) async fn two_on(cluster: &LocalCluster) -> [(Engine, Registration); 2] {
    let store = StoreOptions { router: patient_with_replicas(), ..options(cluster.urls()) };
    let settings = EngineSettings { acknowledge: Acknowledge::Replicated, ..small() };
    let one = engine_with(store.clone(), settings.clone()).await;
    let other = engine_with(store, settings).await;
    [(one.clone(), registration_of(&one).await), (other.clone(), registration_of(&other).await)]
}

/// The server of a slot dies, and its replica takes over.
pub(super) fn kill_primary(cluster: &LocalCluster, engine: &Engine, slot: u16) {
    let primary: NodeAddr = engine.store().router().owner(slot).unwrap();
    cluster.node(&primary).unwrap().kill().unwrap();
}

#[tokio::test]
async fn a_document_is_changed_only_by_who_has_seen_it() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let ada = accounts(&engine, 1).await[0];
    assert_eq!(registration.document(ada, "filters").await.unwrap(), None);
    let first = registration.change_document(ada, "filters", None, Some(b"one")).await.unwrap().value;
    let seen = registration.document(ada, "filters").await.unwrap().unwrap();
    assert_eq!((Some(seen.version), seen.bytes.as_slice()), (first, &b"one"[..]));
    let second = registration.change_document(ada, "filters", first.as_ref(), Some(b"")).await.unwrap().value;
    assert_ne!(second, first);
    registration.change_document(ada, "a marker", None, Some(b"\0\xff")).await.unwrap();

    // It is there; it is another one; it is another one too for who would remove it.
    let before = registration.documents(ada).await.unwrap();
    for (seen, new) in [(None, Some(&b"two"[..])), (first.as_ref(), Some(b"two")), (first.as_ref(), None)] {
        let refused = registration.change_document(ada, "filters", seen, new).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    }
    for new in [Some(&b"two"[..]), None] {
        let refused = registration.change_document(ada, "none", first.as_ref(), new).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    }
    assert_eq!(registration.documents(ada).await.unwrap(), before);
    let told: Vec<_> =
        before.iter().map(|(name, document)| (name.as_str(), document.bytes.as_slice())).collect();
    assert_eq!(told, [("a marker", &b"\0\xff"[..]), ("filters", b"")]);

    assert_eq!(
        registration.change_document(ada, "filters", second.as_ref(), None).await.unwrap().value,
        None
    );
    assert_eq!(registration.document(ada, "filters").await.unwrap(), None);
    // A version that was never comes back, though the document does.
    let third = registration.change_document(ada, "filters", None, Some(b"one")).await.unwrap().value;
    assert!(third != first && third != second);
    assert_eq!(registration.documents(ada).await.unwrap().len(), 2);
    // To remove what isn't there is done already.
    registration.change_document(ada, "none", None, None).await.unwrap();
}

#[tokio::test]
async fn documents_have_bounds_and_take_nothing_from_another_accounts() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let [ada, bea, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let put = async |of: AccountId, name: &str, bytes: usize| {
        registration.change_document(of, name, None, Some(&vec![b'x'; bytes])).await
    };
    let version = put(ada, "n0", 0).await.unwrap().value;
    let names: Vec<String> = (1..DOCUMENTS_MAX).map(|n| format!("n{n}")).collect();
    for done in join_all(names.iter().map(|name| put(ada, name, 0))).await {
        done.unwrap();
    }
    let refused = put(ada, "one more", 0).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::LimitReached, "{refused}");
    assert!(refused.to_string().contains("512 documents"), "{refused}");
    // Those that are there change still, and one that goes makes room.
    let version =
        registration.change_document(ada, "n0", version.as_ref(), Some(b"more")).await.unwrap().value;
    registration.change_document(ada, "n0", version.as_ref(), None).await.unwrap();
    put(ada, "one more", 0).await.unwrap();
    assert_eq!(registration.documents(ada).await.unwrap().len(), 512);
    put(bea, "n0", 0).await.unwrap();

    // As many bytes as all may have, to the byte; each has 8 more.
    let mut left = DOCUMENTS_BYTES_MAX as usize;
    let mut last = None;
    for n in 0.. {
        let bytes = DOCUMENT_BYTES_MAX.min(left - 8);
        last = put(cy, &format!("n{n}"), bytes).await.unwrap().value.map(|version| (n, bytes, version));
        left -= bytes + 8;
        if left == 0 {
            break;
        }
    }
    let (n, bytes, version) = last.unwrap();
    let name = format!("n{n}");
    for (name, seen, bytes) in [("another", None, 0), (name.as_str(), Some(&version), bytes + 1)] {
        let refused =
            registration.change_document(cy, name, seen, Some(&vec![b'y'; bytes])).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::LimitReached, "{refused}");
        assert!(refused.to_string().contains("262144 bytes"), "{refused}");
    }
    let version = registration
        .change_document(cy, &name, Some(&version), Some(&vec![b'y'; bytes]))
        .await
        .unwrap()
        .value;
    registration.change_document(cy, &name, version.as_ref(), Some(b"less")).await.unwrap();
    put(cy, "another", 0).await.unwrap();

    let too_large = put(bea, "large", DOCUMENT_BYTES_MAX + 1).await.unwrap_err();
    assert_eq!(too_large.code(), ErrorCode::OutOfRange);
    for name in ["", "a\nb", "\u{e9}", &"n".repeat(DOCUMENT_NAME_BYTES_MAX + 1)] {
        assert_eq!(put(bea, name, 0).await.unwrap_err().kind(), ErrorKind::Invalid, "{name:?}");
        assert_eq!(registration.document(bea, name).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(engine.inspect(bea).await.unwrap().documents, 1);
}

#[tokio::test]
async fn documents_are_of_accounts_that_are_there_and_go_with_them() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let [ada, bea] = accounts(&engine, 2).await[..] else { unreachable!() };
    let nobody = AccountId::new(4_711).unwrap();
    for of in [ada, bea] {
        registration.change_document(of, "filters", None, Some(b"one")).await.unwrap();
    }
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(bea, &suspended).await.unwrap();
    registration.change_document(bea, "markers", None, Some(b"one")).await.unwrap();
    engine.delete_account(ada).await.unwrap();
    for of in [ada, nobody] {
        let change = registration.change_document(of, "markers", None, Some(b"one")).await.unwrap_err();
        let [one, all] = [
            registration.document(of, "filters").await.unwrap_err(),
            registration.documents(of).await.unwrap_err(),
        ];
        assert_eq!([change.code(), one.code(), all.code()], [ErrorCode::AccountNotFound; 3]);
    }
    drained(&engine).await;
    let keys = all_keys(&engine).await;
    let of: Vec<_> =
        keys.iter().map(|key| letter_and_name(key)).filter(|(letter, _)| *letter == 'V').collect();
    assert_eq!(of, [('V', &bea.get().to_be_bytes()[..])]);

    // What fsck says: nothing; then of documents of nobody, and of one that no release has written.
    let fsck = async |repair| {
        let options = FsckOptions { repair, ..FsckOptions::default() };
        engine.fsck(&options, &|_| {}).await.unwrap()
    };
    assert!(fsck(false).await.findings.is_empty());
    at_key(&engine, 'V', nobody, "HSET", &["filters", "12345678one"]).await;
    let report = fsck(true).await;
    assert_eq!(report.findings.keys().copied().collect::<Vec<_>>(), [FindingKind::KeyOrphaned], "{report:?}");
    assert_eq!(at_key(&engine, 'V', nobody, "EXISTS", &[]).await.int().unwrap(), 0);
    at_key(&engine, 'V', bea, "HSET", &["filters", "short"]).await;
    let report = fsck(false).await;
    assert_eq!(report.findings.keys().copied().collect::<Vec<_>>(), [FindingKind::Unreadable], "{report:?}");
}

/// Adds a line to a document, once, whatever others add to it. `true`: that was acknowledged.
async fn add_line(registration: &Registration, of: AccountId, line: &str) -> bool {
    loop {
        let Ok(seen) = registration.document(of, "lines").await else { continue };
        let (version, mut text) = match seen {
            Some(document) => (Some(document.version), String::from_utf8(document.bytes).unwrap()),
            None => (None, String::new()),
        };
        // Of a try that was told to be unknown.
        if text.lines().any(|there| there == line) {
            return false;
        }
        text += line;
        text.push('\n');
        match registration.change_document(of, "lines", version.as_ref(), Some(text.as_bytes())).await {
            Ok(_) => return true,
            Err(e) => assert!(e.kind().is_retryable(), "{e:?}"),
        }
    }
}

#[tokio::test]
async fn what_two_instances_add_to_one_document_at_once_is_all_there() {
    let one = engine_with(tenant(40), small()).await;
    let options = StoreOptions { prefix: one.store().keys().prefix().to_owned(), ..tenant(40) };
    let other = engine_with(options, small()).await;
    let sites = [registration_of(&one).await, registration_of(&other).await];
    let ada = accounts(&one, 1).await[0];
    let adding = (0..40).map(|n| {
        let site = &sites[n % 2];
        async move { add_line(site, ada, &format!("line {n}")).await }
    });
    let added = in_the_end("forty lines are added", join_all(adding)).await;
    assert!(added.into_iter().all(|is_told| is_told), "no answer was lost");
    let text = sites[0].document(ada, "lines").await.unwrap().unwrap().bytes;
    let lines: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 40, "{lines:?}");
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), 40, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_document_is_lost_when_its_server_dies_beside_it() {
    let cluster = own(replicated()).await;
    let [(engine, one), (_, other)] = two_on(&cluster).await;
    let ada = engine.create_account(NewAccount::default()).await.unwrap().value;
    let sites = [one, other];
    let adding = (0..8).map(|task| {
        let site = sites[task % 2].clone();
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 0..25 {
                let line = format!("{task}-{n}");
                if add_line(&site, ada, &line).await {
                    acknowledged.push(line);
                }
            }
            acknowledged
        })
    });
    let adding: Vec<_> = adding.collect();
    in_the_end("some lines are added", async {
        while sites[0].document(ada, "lines").await.unwrap().is_none_or(|document| document.bytes.len() < 100)
        {
        }
    })
    .await;
    kill_primary(&cluster, &engine, slot_of(&engine, ada));
    let acknowledged = in_the_end("all lines are added", join_all(adding)).await;
    let text = sites[0].document(ada, "lines").await.unwrap().unwrap().bytes;
    let lines: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
    let once: BTreeSet<&String> = lines.iter().collect();
    assert_eq!((lines.len(), once.len()), (200, 200), "{lines:?}");
    for line in acknowledged.into_iter().flat_map(Result::unwrap) {
        assert!(once.contains(&line), "{line} was acknowledged");
    }
}
