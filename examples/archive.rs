//! A profile that scrolls from memory into an archive: in a file, or in PostgreSQL.
//!
//! ```sh
//! cargo run --example archive                                      # a cluster and a file, both gone at the end
//! TIDELINE_ARCHIVE=sqlite:posts \
//!     cargo run --example archive -- redis://127.0.0.1:7000        # both stay: prefix `archive:`
//! TIDELINE_ARCHIVE='postgres://user@host/database?schema=try&settles_within=0' \
//!     cargo run --example archive -- redis://10.0.0.1:6379
//! ```
//!
//! An archive is one tenant's: one that stays goes with a cluster that stays.

mod shared;

use std::sync::Arc;
use std::time::Duration;

use tideline::archive::Archive;
use tideline::post::Draft;
use tideline::{Engine, ErrorKind, NewAccount, Query, Result};
use tideline_archive::{PostgresArchive, PostgresSettings, SqliteArchive};

/// Posts that are published, and how many of them stay in memory. A service keeps more of them, and for some days.
const POSTS: usize = 100;
const HOT_POSTS: u32 = 10;

/// Opens an archive by its place, as the program takes it.
async fn open(place: &str) -> Result<Arc<dyn Archive>> {
    Ok(match place.strip_prefix("sqlite:") {
        Some(file) => Arc::new(SqliteArchive::open(file).await?),
        None => Arc::new(PostgresArchive::connect(PostgresSettings::new(place)?).await?),
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let (config, _cluster) = shared::config("archive:").await?;
    let folder = tempfile::tempdir().expect("a folder for the file");
    let none = |_| format!("sqlite:{}", folder.path().join("posts").display());
    let place = std::env::var("TIDELINE_ARCHIVE").unwrap_or_else(none);

    // Once, and for good: no instance starts without its archive any more. Begun already, that does nothing.
    let archive = open(&place).await?;
    let builder = || Engine::builder().config(config.clone()).archive(archive.clone());
    match builder().begin_archive(HOT_POSTS, 0).await {
        // The tenant is there once somebody has served it.
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let service = Engine::builder().config(config.clone()).start().await?;
            service.shutdown(Duration::from_secs(10)).await?;
            builder().begin_archive(HOT_POSTS, 0).await?;
        }
        begun => drop(begun?),
    }

    let engine = builder().start().await?;
    let ada = engine.create_account(NewAccount::default()).await?.value;
    let first = engine.publish(ada, &Draft::text("post 1")).await?.id;
    for n in 2..=POSTS {
        engine.publish(ada, &Draft::text(format!("post {n}"))).await?;
    }

    // Instances move what is due by themselves, within some ten seconds. This has it done now.
    let moved = engine.archive_all().await?;
    println!("{} posts of account {ada} have left memory now", moved.left);
    println!("its first post, {first}, lies in {:?}", engine.inspect_post(first).await?.tier);

    // A profile scrolls on as if nothing had happened.
    let (mut query, mut shown) = (Query::profile(ada).limit(20).hydrated(), 0);
    loop {
        let page = match engine.as_nobody().read(&query).await {
            Ok(page) => page,
            // Only the archive could tell what comes next, and it is away.
            Err(e) if e.kind() == ErrorKind::Unavailable => break println!("and on, later: {e}"),
            Err(e) => return Err(e),
        };
        shown += page.posts.len();
        if let Some(oldest) = page.posts.iter().filter_map(|post| post.post.as_ref()).next_back() {
            println!("{shown} of {POSTS}, down to {:?}", oldest.content().text);
        }
        match page.next {
            Some(cursor) => query = query.after(cursor),
            None => break,
        }
    }
    engine.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}
