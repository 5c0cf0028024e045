//! What it costs to have posts found by their words, and to find them: our CPU time, and the server's.

#![expect(clippy::cast_precision_loss, reason = "small numbers, for a table")]

mod clock;

use tideline_archive::{Archive, PostgresArchive, PostgresSettings, SqliteArchive};
use tideline_local_cluster::LocalPostgres;
use tideline_model::archive::{IndexChange, IndexKey, IndexVersion, IndexedPost, SearchAsk};
use tideline_model::bucket::Buckets;
use tideline_model::ids::{AccountId, PostId};
use tokio_postgres::NoTls;

use crate::clock::Clock;

const POSTS: u64 = 500_000;
/// Posts of one call, as the engine's tasks bring them together under load.
const AT_ONCE: u64 = 64;
/// Between two posts, ms: all of them in a month.
const APART_MS: u64 = 5_200;
/// Words of a post; those of rank 1 are in a tenth of the words, the rest in falling numbers.
const WORDS: u64 = 15;
const SEARCHES: u64 = 50;

fn main() {
    // `cargo test --benches` only sees that it builds.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        println!("| archive | step | a second | our CPU | server's CPU |");
        println!("|---|---|---|---|---|");
        let folder = tempfile::tempdir().expect("a folder");
        let sqlite = SqliteArchive::open(folder.path().join("posts.db")).await.expect("an archive");
        index("SQLite", &sqlite, &Vec::new).await;
        search("SQLite", &sqlite, &Vec::new).await;
        let server = LocalPostgres::up().await.expect("PostgreSQL");
        let settings = PostgresSettings::new(&server.url()).expect("an address");
        let postgres = PostgresArchive::connect(settings).await.expect("an archive");
        index("PostgreSQL", &postgres, &|| server.pids()).await;
        // A server looks at what its tables hold about once a minute, and by itself.
        search("PostgreSQL, no statistics yet", &postgres, &|| server.pids()).await;
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.expect("a connection");
        tokio::spawn(connection);
        client.batch_execute("VACUUM ANALYZE tideline.search").await.expect("statistics");
        search("PostgreSQL", &postgres, &|| server.pids()).await;
    });
}

async fn index(name: &str, archive: &dyn Archive, pids: &dyn Fn() -> Vec<u32>) {
    let before = archive.size().await.expect("a size").bytes;
    let clock = Clock::start(pids);
    for first in (0..POSTS).step_by(usize::try_from(AT_ONCE).expect("small")) {
        let changes: Vec<IndexChange> = (first..POSTS.min(first + AT_ONCE)).map(change).collect();
        let keys: Vec<IndexKey> = changes.iter().map(|change| change.key).collect();
        assert!(archive.index_versions(&keys).await.expect("versions").iter().all(Option::is_none));
        assert!(archive.index(&changes).await.expect("a change").iter().all(|is_made| *is_made));
    }
    clock.tell(name, "post indexed", POSTS);
    let size = archive.size().await.expect("a size").bytes - before;
    println!("| {name} | bytes a post | {} | | |", size / POSTS);
}

async fn search(name: &str, archive: &dyn Archive, pids: &dyn Fn() -> Vec<u32>) {
    for (words, step, least) in [
        (&["rare"][..], "rare word: one in 10,000 posts", 28),
        (&["permille"], "word of 0.1 % of the posts", 28),
        (&["twentieth"], "word of 5 % of the posts", 28),
        (&["even"], "word of half of the posts", 28),
        (&["common"], "common word: every post", 28),
        (&["even", "rare"], "common and rare word", 1),
        (&["even", "odd"], "two that half of the posts have, and none both", 0),
        (&["missing"], "word that no post has", 0),
    ] {
        let ask = SearchAsk {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            reader: AccountId::new(7).ok(),
            below: u64::MAX,
            most: 28,
        };
        let clock = Clock::start(pids);
        for _ in 0..SEARCHES {
            let mut ask = ask.clone();
            let mut found = 0;
            while ask.below > 0 && found < ask.most {
                let page = archive.search(&ask).await.expect("a page");
                (ask.below, found) = (page.from, found + page.posts.len());
            }
            assert!(found >= least, "{words:?}: {found}");
        }
        clock.tell(name, step, SEARCHES);
    }
}

fn change(number: u64) -> IndexChange {
    let author = AccountId::new(number % 1_000 + 1).expect("an account");
    let buckets = Buckets::default();
    let bucket = buckets.of_account(author.get());
    let post = PostId::new(buckets, bucket, 1_700_000_000_000 + number * APART_MS, 0).expect("a post");
    let mut words =
        vec!["common".to_owned(), if number.is_multiple_of(2) { "even" } else { "odd" }.to_owned()];
    for (one_in, word) in [(20, "twentieth"), (1_000, "permille"), (10_000, "rare")] {
        words.extend(number.is_multiple_of(one_in).then(|| word.to_owned()));
    }
    let mut state = number;
    for _ in 0..WORDS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // As words are in texts: the one of rank n about as often as 1/n.
        let drawn = (state >> 40) as f64 / (1_u64 << 24) as f64;
        words.push(format!("word{:.0}", 20_000_f64.powf(drawn)));
    }
    words.sort();
    words.dedup();
    IndexChange {
        key: IndexKey { bucket, post },
        seen: None,
        version: IndexVersion((number + 1).to_be_bytes()),
        post: Some(IndexedPost { author, is_public: true, words }),
    }
}
