//! What moving posts and reading pages costs: our CPU time, and the server's.
//!
//! Time by the clock says little on a shared machine, so CPU time is told for each; PostgreSQL's is that of all its
//! processes.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "small numbers, for a table"
)]

mod clock;

use tideline_archive::{Archive, PostgresArchive, PostgresSettings, SqliteArchive};
use tideline_local_cluster::LocalPostgres;
use tideline_model::archive::{
    ArchiveToken, ArchivedPost, Owner, OwnerChange, PageAsk, PageContent, PageOrder, Prerequisite,
};
use tideline_model::bucket::Buckets;
use tideline_model::ids::{AccountId, PostId};

use crate::clock::Clock;

const OWNERS: u64 = 2_048;
/// Posts that a move takes of one owner, and owners in a transaction.
const POSTS: u64 = 16;
const AT_ONCE: u64 = 64;
const ROUNDS: u64 = 8;
/// A short text with its header.
const BYTES: usize = 260;
const PAGES: u64 = 100;

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
        measure("SQLite", &sqlite, &Vec::new).await;
        let server = LocalPostgres::up().await.expect("PostgreSQL");
        let settings = PostgresSettings::new(&server.url()).expect("an address");
        let postgres = PostgresArchive::connect(settings).await.expect("an archive");
        measure("PostgreSQL", &postgres, &|| server.pids()).await;
    });
}

async fn measure(name: &str, archive: &dyn Archive, pids: &dyn Fn() -> Vec<u32>) {
    let clock = Clock::start(pids);
    for round in 0..ROUNDS {
        for first in (1..=OWNERS).step_by(AT_ONCE as usize) {
            let changes: Vec<OwnerChange> = (first..first + AT_ONCE).map(|of| change(of, round)).collect();
            assert!(archive.change(&changes).await.expect("a change").iter().all(Result::is_ok));
        }
    }
    clock.tell(name, "post moved", ROUNDS * OWNERS * POSTS);
    let size = archive.size().await.expect("a size");
    println!("| {name} | bytes a post | {} | | |", size.bytes / (ROUNDS * OWNERS * POSTS));
    for (owners, content, step) in [
        (1, PageContent::Posts, "page of a profile, 20 posts"),
        (200, PageContent::Ids, "page of a home, 200 authors, 8 ids each"),
        (2_000, PageContent::Ids, "page of a home, 2,000 authors, 8 ids each"),
    ] {
        let most = if owners == 1 { 20 } else { 8 };
        let clock = Clock::start(pids);
        for page in 0..PAGES {
            let ask = |place: u64| {
                let edge = post_id((page * 7 + place) % OWNERS + 1, ROUNDS / 2, place % POSTS);
                PageAsk { owner: owner((page * 7 + place) % OWNERS + 1), edge, most }
            };
            let asks: Vec<PageAsk> = (0..owners).map(ask).collect();
            let pages = archive.pages(&asks, PageOrder::NewestFirst, content).await.expect("a page");
            assert!(pages.iter().all(|page| page.ids.len() == most));
        }
        clock.tell(name, step, PAGES);
    }
}

fn owner(of: u64) -> Owner {
    let account = AccountId::new(of).expect("an account");
    Owner { bucket: Buckets::default().of_account(of), account }
}

fn post_id(of: u64, round: u64, place: u64) -> PostId {
    PostId::from_u64(((round * POSTS + place) * OWNERS + of) << 16).expect("a post")
}

fn change(of: u64, round: u64) -> OwnerChange {
    let post = |place| {
        let id = post_id(of, round, place);
        (ArchivedPost::new(id, owner(of).account, 1, vec![place as u8; BYTES]), Vec::new())
    };
    let posts: Vec<_> = (0..POSTS).map(post).collect();
    OwnerChange {
        owner: owner(of),
        token: ArchiveToken { number: round + 1, nonce: [1; 8] },
        needs: Prerequisite {
            token_number: round,
            upto: (round > 0).then(|| post_id(of, round - 1, POSTS - 1)),
        },
        upto: post_id(of, round, POSTS - 1),
        posts,
        erased: Vec::new(),
        buries: false,
    }
}
