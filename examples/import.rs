//! A site moves here: accounts, follows and posts with their old dates, then it is served.
//!
//! ```sh
//! cargo run --example import                              # starts a cluster, and ends it
//! cargo run --example import -- redis://10.0.0.1:6379     # uses one, under the prefix `import:`
//! ```

mod shared;

use std::time::Duration;

use tideline::post::{Draft, PostRef};
use tideline::{AccountId, Engine, ImportedEdge, ImportedPost, NewAccount, Query, Result};

/// What stands in for the old site's tables.
const PEOPLE: u64 = 200;
const POSTS: u64 = 1_000;
/// 1 January 2020.
const OPENED_MS: u64 = 1_577_836_800_000;

#[tokio::main]
async fn main() -> Result<()> {
    let (config, _cluster) = shared::config("import:").await?;

    // Nobody serves the tenant meanwhile: the importer holds it.
    let mut importer = Engine::builder().config(config.clone()).import().await?;
    let ids = (1..=PEOPLE).map(AccountId::new).collect::<Result<Vec<_>>>()?;
    let people: Vec<NewAccount> =
        ids.iter().map(|id| NewAccount { id: Some(*id), ..NewAccount::default() }).collect();
    println!("{} new accounts", importer.accounts(&people).await?);

    // Everybody follows the first account and the one before.
    let edge = |reader, author| ImportedEdge { reader, author, since_ms: OPENED_MS };
    let mut edges: Vec<ImportedEdge> = ids[1..].iter().map(|reader| edge(*reader, ids[0])).collect();
    edges.extend(ids[1..].windows(2).map(|pair| edge(pair[1], pair[0])));
    importer.edges(&edges).await?;
    println!("{} follows", edges.len());

    // Each author's posts from the oldest to the newest; their new ids come back in the same order, for the table of
    // old ids and new ones that links need.
    let authors = ids.iter().cycle().zip(0..POSTS);
    let posts: Vec<ImportedPost> = authors
        .map(|(author, n)| ImportedPost {
            author: *author,
            created_ms: OPENED_MS + n * 60_000,
            draft: Draft::text(format!("post {n} of the old site")),
        })
        .collect();
    let new_ids = importer.posts(&posts).await?;
    // What refers to other posts comes after them.
    let answered = PostRef { id: new_ids[0], author: ids[0] };
    let reply = ImportedPost {
        author: ids[0],
        created_ms: OPENED_MS + POSTS * 60_000,
        draft: Draft::text("and an answer to the first").reply_to(answered),
    };
    importer.posts(&[reply]).await?;
    importer.finish().await?;
    println!("{} posts", new_ids.len() + 1);

    // From here on it is a tenant like any other: homes are filled by their first read.
    let engine = Engine::builder().config(config).start().await?;
    // Nobody decided yet how much of this is to be kept; here it is what the configuration says. `excess` tells before
    // what a change removes, as `tideline tenant set --as-configured` does.
    let none = engine.decision();
    let change = none.change().set_all(none.settings)?;
    println!("beyond its bounds: {:?}", engine.excess(&change).await?);
    engine.decide(&change).await?;
    let page = engine.as_reader(ids[99]).read(&Query::home().limit(5).hydrated()).await?;
    for post in page.posts.iter().filter_map(|post| post.post.as_ref()) {
        println!("{} reads: {}", ids[99], post.content().text);
    }
    assert_eq!(page.posts.len(), 5);
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
