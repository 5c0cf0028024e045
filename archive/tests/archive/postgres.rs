//! What is an archive's in PostgreSQL alone: several instances, and a server that is wrong, frozen or dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tideline_archive::{Archive, PostgresArchive, PostgresSettings};
use tideline_local_cluster::LocalPostgres;
use tideline_model::archive::{ArchiveName, ChangeRefusal, PageContent, PageOrder, PostAsk};
use tideline_model::error::ErrorKind;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

use crate::places::{account, ask, change, eventually, id, owner, server, settings, walk};

pub(crate) async fn raw(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_share_a_database_in_schemas_of_their_own() {
    let url = server().await.url();
    let (one, other) = (settings(&url), settings(&url));
    let first = PostgresArchive::connect(one.clone()).await.unwrap();
    first.adopt(ArchiveName([1; 16])).await.unwrap();
    first.change(&[change(1, 1, &[10])]).await.unwrap();
    let second = PostgresArchive::connect(other).await.unwrap();
    assert!(walk(&second).await.is_empty());
    assert_eq!(second.name().await.unwrap(), None);
    // A further instance of the first.
    let again = PostgresArchive::connect(one).await.unwrap();
    assert_eq!(walk(&again).await.len(), 1);
    assert_eq!(again.name().await.unwrap(), Some(ArchiveName([1; 16])));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_reads_makes_no_tables_and_who_may_not_is_told_so() {
    let url = server().await.url();
    let makes = settings(&url);
    let mut reads = makes.clone();
    reads.makes_tables = false;
    let database = raw(&url).await;
    for is_there in [false, true] {
        let error = PostgresArchive::connect(reads.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        let says = format!("no archive in schema `{}`", makes.schema);
        assert!(error.to_string().contains(&says), "{error}");
        let schema =
            database.query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[&makes.schema]).await;
        assert_eq!(schema.unwrap().is_some(), is_there);
        let schema = format!("CREATE SCHEMA IF NOT EXISTS \"{}\"", makes.schema);
        database.batch_execute(&schema).await.unwrap();
    }
    PostgresArchive::connect(makes.clone()).await.unwrap();
    PostgresArchive::connect(reads).await.unwrap();
    database.batch_execute("CREATE ROLE nobody_here LOGIN PASSWORD 'secret'").await.unwrap();
    let (_, host) = url.rsplit_once('@').unwrap();
    let mut others = PostgresSettings::new(&format!("postgres://nobody_here:secret@{host}")).unwrap();
    others.schema = makes.schema;
    let error = PostgresArchive::connect(others).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("user `nobody_here` may not use schema"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_start_at_once_make_the_tables_once() {
    let settings = settings(&server().await.url());
    let started = join_all((0..6).map(|_| PostgresArchive::connect(settings.clone()))).await;
    for archive in started {
        assert!(walk(&archive.unwrap()).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_changes_at_once_those_are_made_that_nobody_has_passed() {
    let settings = settings(&server().await.url());
    let archives = join_all((0..4).map(|_| PostgresArchive::connect(settings.clone())))
        .await
        .into_iter()
        .map(Result::unwrap);
    let archives: Vec<Arc<PostgresArchive>> = archives.map(Arc::new).collect();
    // Owners in either order, tokens in any: who holds one waits for nobody who holds the other.
    let tasks = (1..=40u64).zip(archives.iter().cycle()).map(|(number, archive)| {
        let archive = Arc::clone(archive);
        tokio::spawn(async move {
            let mut changes = vec![change(1, number, &[number * 2]), change(2, number, &[number * 2 + 1])];
            if number % 2 == 0 {
                changes.reverse();
            }
            // So many wait for one row that a lock may come too late: then nothing was written.
            loop {
                match archive.change(&changes).await {
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    outcomes => return (number, outcomes.unwrap()),
                }
            }
        })
    });
    let (mut made, mut highest) = (0, 0);
    for outcome in join_all(tasks).await {
        let (number, outcomes) = outcome.unwrap();
        assert_eq!(outcomes[0].is_ok(), outcomes[1].is_ok(), "both owners are locked by one after another");
        match outcomes[0] {
            Ok(()) => (made, highest) = (made + 1, highest.max(number)),
            Err(ChangeRefusal::Passed(by)) => assert!(by > number),
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    assert_eq!(highest, 40, "nobody passes the last one");
    assert_eq!(walk(&*archives[0]).await.len(), made * 2);
    let states = archives[0].owners(&[owner(1), owner(2)]).await.unwrap();
    assert!(states.iter().all(|state| state.unwrap().token.number == 40));
}

/// Two that wait for one owner at the same time: the second one is judged by what the first one has made of it, not by
/// what it saw before.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_judged_by_what_is_there_once_it_has_its_turn() {
    let url = server().await.url();
    let settings = settings(&url);
    let archive = Arc::new(PostgresArchive::connect(settings.clone()).await.unwrap());
    archive.change(&[change(1, 1, &[10])]).await.unwrap();
    let (holder, watcher) = (raw(&url).await, raw(&url).await);
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%owner%'
            AND pid IN (SELECT pid FROM pg_locks WHERE relation = '\"{}\".owner'::regclass)",
        settings.schema
    );
    let waits = async |many: i64| {
        eventually("somebody who waits", async || {
            watcher.query_one(&waiting, &[]).await.unwrap().get::<_, i64>(0) == many
        })
        .await;
    };
    // A machine that is busy for a second lets one of them run out of time: then both begin anew, with other tokens.
    let mut first = 3;
    let (higher, lower) = loop {
        let lock = format!("BEGIN; SELECT FROM \"{}\".owner WHERE owner = 1 FOR UPDATE", settings.schema);
        holder.batch_execute(&lock).await.unwrap();
        let sent = |number| {
            let archive = Arc::clone(&archive);
            tokio::spawn(async move { archive.change(&[change(1, number, &[number * 10])]).await })
        };
        let higher = sent(first);
        let one_waits = tokio::time::timeout(Duration::from_millis(700), waits(1)).await;
        let lower = sent(first - 1);
        let both_wait = tokio::time::timeout(Duration::from_millis(700), waits(2)).await;
        holder.batch_execute("COMMIT").await.unwrap();
        let outcomes = (higher.await.unwrap(), lower.await.unwrap());
        if let (Ok(_), Ok(_), (Ok(higher), Ok(lower))) = (one_waits, both_wait, outcomes) {
            break (higher[0], lower[0]);
        }
        first += 2;
    };
    assert_eq!((higher, lower), (Ok(()), Err(ChangeRefusal::Passed(first))));
    assert_eq!(archive.owners(&[owner(1)]).await.unwrap()[0].unwrap().token.number, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_would_lose_what_they_answer_are_refused() {
    let server = LocalPostgres::with_settings(&[("fsync", "off")]).await.unwrap();
    let error = PostgresArchive::connect(settings(&server.url())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("fsync is off"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_address_is_told_without_its_password() {
    let url = server().await.url();
    let secret = url.split(['@', ':']).nth(2).unwrap().to_owned();
    let wrong_password = url.replace(&secret, "wrong-password");
    let no_database = url.replace("/postgres", "/nowhere").replace("nowhere:", "postgres:");
    let nobody = url.replacen("127.0.0.1", "127.0.0.2", 1);
    for (url, kind, says) in [
        (wrong_password, ErrorKind::Misconfigured, "password authentication failed"),
        (
            no_database.replace("postgres://nowhere", "postgres://postgres"),
            ErrorKind::Misconfigured,
            "nowhere",
        ),
        (nobody, ErrorKind::Unavailable, "cannot connect to the archive"),
    ] {
        let error = PostgresArchive::connect(settings(&url)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(
            !error.to_string().contains(&secret) && !error.to_string().contains("wrong-password"),
            "{error}"
        );
    }
    for unreadable in [
        "postgres://user:hidden@[",
        " postgres://user:hidden@h/db?sslmode=require",
        "POSTGRES://user:hidden@h/db?sslmode=require",
        "jdbc:postgresql://user:hidden@h/db?ssl=true",
        "host=h password=a hidden=cd",
        "postgres://user:pa@hidden@h/db",
    ] {
        let error = PostgresSettings::new(unreadable).unwrap_err();
        assert!(!error.to_string().contains("hidden"), "{error}");
    }
    assert!(PostgresSettings::new("postgres:///posts").unwrap_err().to_string().contains("names no host"));
    let shown = format!("{:?}", PostgresArchive::connect(settings(&url)).await.unwrap());
    assert!(shown.contains("127.0.0.1") && !shown.contains(&secret), "{shown}");
    let mut strange = settings(&url);
    strange.schema = "a\"b".into();
    assert!(PostgresArchive::connect(strange).await.unwrap_err().to_string().contains("without quotes"));
}

/// What the server says that it can't do for its own disk passes, as a full one does; a right that is missing doesn't.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_cannot_be_read_counts_as_away() {
    let settings = settings(&server().await.url());
    let archive = PostgresArchive::connect(settings.clone()).await.unwrap();
    let (admin, schema) = (raw(&server().await.url()).await, &settings.schema);
    let function = format!(
        "CREATE FUNCTION \"{schema}\".fails() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'could not read block 7' USING ERRCODE = TG_ARGV[0]; END $$"
    );
    admin.batch_execute(&function).await.unwrap();
    for (code, kind) in [
        ("58030", ErrorKind::Unavailable),
        ("42501", ErrorKind::Misconfigured),
        ("XX001", ErrorKind::Internal),
    ] {
        let trigger = format!(
            "CREATE OR REPLACE TRIGGER fails BEFORE INSERT ON \"{schema}\".owner
             EXECUTE FUNCTION \"{schema}\".fails('{code}')"
        );
        admin.batch_execute(&trigger).await.unwrap();
        let error = archive.change(&[change(1, 1, &[10])]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("could not read block 7"), "{error}");
    }
}

/// Whatever the server shows is checked; one that shows nothing is refused where TLS is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn with_tls_a_server_is_known_by_its_certificate() {
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = certified.cert.pem();
    let server = LocalPostgres::with_tls(&certificate, &certified.signing_key.serialize_pem()).await.unwrap();
    let mut known = settings(&format!("{}?sslmode=require", server.url()));
    let unknown = known.clone();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &certificate).unwrap();
    known.root_certificates = Some(file.path().to_owned());
    let archive = PostgresArchive::connect(known).await.unwrap();
    archive.change(&[change(1, 1, &[10])]).await.unwrap();
    assert_eq!(walk(&archive).await.len(), 1);
    let encrypted = "SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()";
    let many: i64 = raw(&format!("{}?sslmode=disable", server.url()))
        .await
        .query_one(encrypted, &[])
        .await
        .unwrap()
        .get(0);
    assert!(many > 0, "nothing is encrypted");

    let error = PostgresArchive::connect(unknown).await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    let plain = settings(&format!("{}?sslmode=require", crate::places::server().await.url()));
    let error = PostgresArchive::connect(plain).await.unwrap_err().to_string();
    assert!(error.contains("TLS"), "{error}");
    let mut nowhere = settings(&server.url());
    nowhere.root_certificates = Some("/nowhere/root.pem".into());
    let error = PostgresArchive::connect(nowhere).await.unwrap_err();
    assert!(error.to_string().contains("certificates /nowhere/root.pem"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_newer_release_wrote_is_left_alone() {
    let url = server().await.url();
    let settings = settings(&url);
    drop(PostgresArchive::connect(settings.clone()).await.unwrap());
    let newer = format!("UPDATE \"{}\".store SET version = version + 1", settings.schema);
    raw(&url).await.batch_execute(&newer).await.unwrap();
    let error = PostgresArchive::connect(settings).await.unwrap_err();
    assert!(error.to_string().contains("written by a newer release"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_broke_off_is_made_anew() {
    let url = server().await.url();
    let settings = settings(&url);
    // Somebody else's table is in the way of the last step's.
    let name = &settings.schema;
    let client = raw(&url).await;
    client
        .batch_execute(&format!("CREATE SCHEMA \"{name}\"; CREATE TABLE \"{name}\".list_stamp ()"))
        .await
        .unwrap();
    let error = PostgresArchive::connect(settings.clone()).await.unwrap_err();
    assert!(error.to_string().contains("list_stamp"), "{error}");
    client.batch_execute(&format!("DROP TABLE \"{name}\".list_stamp")).await.unwrap();
    let archive = PostgresArchive::connect(settings).await.unwrap();
    assert_eq!(archive.change(&[change(1, 1, &[10])]).await.unwrap(), [Ok(())]);
}

/// Each start wrote how far the tables are, also where nothing was to be changed.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_starts_where_nothing_can_be_written() {
    let url = server().await.url();
    let settings = settings(&url);
    let archive = PostgresArchive::connect(settings.clone()).await.unwrap();
    archive.change(&[change(1, 1, &[10])]).await.unwrap();
    let full = format!(
        "CREATE FUNCTION \"{name}\".full_disk() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE EXCEPTION USING ERRCODE = ''53100'', MESSAGE = ''No space left on device''; END';
         DO $$ DECLARE it text; BEGIN
            FOR it IN SELECT tablename FROM pg_tables WHERE schemaname = '{name}' LOOP
                EXECUTE format('CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON \"{name}\".%I
                    FOR EACH STATEMENT EXECUTE FUNCTION \"{name}\".full_disk()', it);
            END LOOP;
         END $$",
        name = settings.schema
    );
    raw(&url).await.batch_execute(&full).await.unwrap();
    let started = PostgresArchive::connect(settings).await.unwrap();
    assert_eq!(walk(&started).await.len(), 1);
    let refused = started.change(&[change(1, 2, &[20])]).await.unwrap_err();
    assert!(refused.to_string().contains("No space left"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_frozen_within_a_transaction_holds_nobody_up_for_long() {
    let url = server().await.url();
    let settings = settings(&url);
    let archive = PostgresArchive::connect(settings.clone()).await.unwrap();
    archive.change(&[change(1, 1, &[10])]).await.unwrap();
    let frozen = raw(&url).await;
    let lock = format!("BEGIN; SELECT FROM \"{}\".owner FOR UPDATE", settings.schema);
    frozen.batch_execute(&lock).await.unwrap();
    // As often as makes an archive that is away be left alone: this one answers.
    for _ in 0..6 {
        let held_up = archive.change(&[change(1, 2, &[20])]).await.unwrap_err();
        assert_eq!(held_up.kind(), ErrorKind::Conflict, "{held_up}");
    }
    archive.change(&[change(2, 1, &[15])]).await.unwrap();
    // Each connection of an archive asks the server to end it after a while, in which case this happens by itself.
    frozen.batch_execute("ROLLBACK").await.unwrap();
    archive.change(&[change(1, 2, &[20])]).await.unwrap();
    assert_eq!(walk(&archive).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_fails_calls_and_has_all_it_answered_when_it_is_back() {
    let mut server = LocalPostgres::up().await.unwrap();
    let archive = Arc::new(PostgresArchive::connect(settings(&server.url())).await.unwrap());
    let answered = Arc::new(AtomicU64::new(0));
    let (writing, noted) = (Arc::clone(&archive), Arc::clone(&answered));
    let writer = tokio::spawn(async move {
        for number in 1.. {
            match writing.change(&[change(1, number, &[number])]).await {
                Ok(outcomes) => {
                    assert_eq!(outcomes, [Ok(())]);
                    noted.store(number, Ordering::SeqCst);
                }
                Err(error) => return error,
            }
        }
        unreachable!("it is killed before")
    });
    // Answered: of one that the server has, and no more, the answer may die with it.
    eventually("thirty answers", async || answered.load(Ordering::SeqCst) >= 30).await;
    server.kill().await.unwrap();
    let error = writer.await.unwrap();
    let answered = answered.load(Ordering::SeqCst);
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unknown), "{error}");
    let error = archive.owners(&[owner(1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    server.start().await.unwrap();
    // It is left alone for a second or so after some failures.
    eventually("an answer", async || archive.owners(&[owner(1)]).await.is_ok()).await;
    let asks = [ask(1, answered + 1, 1_000)];
    let page = archive.pages(&asks, PageOrder::NewestFirst, PageContent::Ids).await.unwrap().remove(0);
    assert_eq!(page.ids.len() as u64, answered.min(1_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_costs_a_call_its_deadline_and_then_nothing() {
    let server = LocalPostgres::up().await.unwrap();
    let mut settings = settings(&server.url());
    // Of whoever has to be answered, on a slow machine too.
    let patient = PostgresArchive::connect(settings.clone()).await.unwrap();
    patient.change(&[change(1, 1, &[10])]).await.unwrap();
    settings.page_timeout = Duration::from_millis(200);
    let archive = PostgresArchive::connect(settings).await.unwrap();
    server.freeze();
    eventually("a call that isn't made", async || {
        let error = archive.owners(&[owner(1)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        error.to_string().contains("left alone")
    })
    .await;
    let error = archive.change(&[change(1, 2, &[20])]).await.unwrap_err();
    assert!(error.kind().is_retryable(), "{error}");
    server.thaw();
    // Sent again as it was: whatever became of it, it is there once.
    eventually("the change", async || archive.change(&[change(1, 2, &[20])]).await.is_ok()).await;
    eventually("an answer", async || archive.owners(&[owner(1)]).await.is_ok()).await;
    assert_eq!(walk(&patient).await.len(), 2);
}

/// Whoever makes ids up keeps nobody waiting who asks for something else.
#[tokio::test(flavor = "multi_thread")]
async fn look_ups_by_ids_alone_leave_readers_to_others() {
    let url = server().await.url();
    let mut settings = settings(&url);
    settings.readers = 4;
    settings.page_timeout = Duration::from_secs(60);
    let schema = settings.schema.clone();
    let archive = PostgresArchive::connect(settings).await.unwrap();
    archive.change(&[change(1, 1, &[10])]).await.unwrap();
    let by = |account| PostAsk { bucket: owner(1).bucket, id: id(10), owner: account };
    let watching = raw(&url).await;
    let stand = format!(
        "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = '{schema}' AND c.relname = 'post' AND NOT l.granted"
    );
    // Nobody waits for a lock for more than a second: on a slow machine all of it is made once more.
    let told = loop {
        let mut holder = raw(&url).await;
        let held = holder.transaction().await.unwrap();
        held.batch_execute(&format!("LOCK TABLE \"{schema}\".post IN ACCESS EXCLUSIVE MODE")).await.unwrap();
        let looking: Vec<_> = (0..8)
            .map(|_| {
                let (archive, ask) = (archive.clone(), by(None));
                tokio::spawn(async move { archive.posts(&[ask]).await })
            })
            .collect();
        let is_over = || looking.iter().all(JoinHandle::is_finished);
        while watching.query_one(&stand, &[]).await.unwrap().get::<_, i64>(0) < 2 && !is_over() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for _ in 0..20 {
            archive.owners(&[owner(1)]).await.unwrap();
        }
        held.commit().await.unwrap();
        let (mut told, mut was_slow) = (0, false);
        for looked in looking {
            match looked.await.unwrap() {
                Ok(answers) => told += usize::from(answers[0].post.is_some()),
                Err(e) if e.kind() == ErrorKind::Conflict => was_slow = true,
                Err(e) => assert_eq!(e.kind(), ErrorKind::Overloaded, "{e}"),
            }
        }
        if !was_slow {
            break told;
        }
    };
    assert!(told >= 2, "{told}");
    assert!(archive.posts(&[by(Some(account(1)))]).await.unwrap()[0].post.is_some());
}

/// While the first machine said nothing, no page came from the second one, and no instance could start.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_hosts_one_that_says_nothing_keeps_nobody_from_the_next() {
    let url = server().await.url();
    let (user, place) = url.rsplit_once('@').unwrap();
    // It takes connections, as a frozen server's machine does, and nobody answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_at = silent.local_addr().unwrap();
    let mut both = settings(&format!("{user}@{silent_at},{place}"));
    both.page_timeout = Duration::from_secs(4);
    let archive = PostgresArchive::connect(both).await.unwrap();
    archive.adopt(ArchiveName([1; 16])).await.unwrap();
    archive.change(&[change(1, 1, &[10])]).await.unwrap();
    assert_eq!(walk(&archive).await.len(), 1);
    // Two of three: their share is all the time that a page has, so the next one begins behind them.
    let mut three = settings(&format!("{user}@{silent_at},{silent_at},{place}"));
    three.page_timeout = Duration::from_secs(2);
    let archive = PostgresArchive::connect(three).await.unwrap();
    eventually("a page comes", async || archive.name().await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_lacks_letters_is_refused() {
    let url = server().await.url();
    let make = "CREATE DATABASE western ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'";
    raw(&url).await.batch_execute(make).await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    let error = PostgresArchive::connect(settings(&format!("{server}/western"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.to_string().contains("its database is in LATIN1"), "{error}");
}
