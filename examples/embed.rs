//! The engine inside a service of one's own: set up once, shared by all requests, shut down at the end.
//!
//! ```sh
//! cargo run --example embed                              # starts a cluster, and ends it
//! cargo run --example embed -- redis://10.0.0.1:6379     # uses one, under the prefix `embed:`
//! ```

mod shared;

use std::time::Duration;

use tideline::post::Draft;
use tideline::{AccountId, Engine, ErrorKind, NewAccount, Page, PostAck, Query, Result};

/// What a service keeps. Copies of an engine are cheap: every handler may have one.
#[derive(Clone)]
struct Service {
    engine: Engine,
}

impl Service {
    /// A handler for "post this". The token makes it safe to send again when the answer got lost.
    async fn post(&self, author: AccountId, text: &str, token: &str) -> Result<String> {
        let draft = Draft::text(text).token(token);
        match self.engine.publish(author, &draft).await {
            Ok(published) => Ok(published.id.to_string()),
            Err(e) if e.kind().is_retryable() => {
                // Overloaded, a failover, a lost reply: once more, a moment later.
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok(self.engine.publish(author, &draft).await?.id.to_string())
            }
            Err(e) => Err(e),
        }
    }

    /// A handler for "the next page", given what the last one returned.
    async fn home(&self, reader: AccountId, after: Option<&str>) -> Result<Page> {
        let mut query = Query::home().limit(3).hydrated();
        if let Some(cursor) = after {
            query = query.after(cursor.parse()?);
        }
        self.engine.as_reader(reader).read(&query).await
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (config, _cluster) = shared::config("embed:").await?;
    let service = Service { engine: Engine::builder().config(config).start().await? };
    let engine = &service.engine;
    // They go to the log too; here nobody has set up a `tracing` subscriber.
    for finding in engine.health().await?.findings {
        println!("the servers' settings: {finding}");
    }

    // Ids may be your own users' (`NewAccount::id`); here they are allocated.
    let ada = engine.create_account(NewAccount::default()).await?.value;
    let ben = engine.create_account(NewAccount::default()).await?.value;
    engine.follow(ben, ada).await?;

    for n in 1..=8 {
        let id = service.post(ada, &format!("Tide table, page {n}"), &format!("form-{n}")).await?;
        println!("{ada} posted {id}");
    }
    let again = service.post(ada, "Tide table, page 8", "form-8").await?;
    println!("sent again, it is still {again}");

    // Requests run at once; a reader scrolls page by page.
    let (mut next, mut seen) = (None::<String>, 0);
    loop {
        let page = service.home(ben, next.as_deref()).await?;
        for post in page.posts.iter().filter_map(|post| post.post.as_ref()) {
            println!("{ben} reads: {}", post.content().text);
            seen += 1;
        }
        match page.next {
            Some(cursor) => next = Some(cursor.to_string()),
            None => break,
        }
    }
    assert_eq!(seen, 8, "an endless scroll shows every post once");

    // Wait for all homes where that matters, and tell apart what can go wrong by what to do about it.
    engine.publish_with(ada, &Draft::text("In every home"), PostAck::Delivered).await?;
    let stranger = AccountId::new(1)?;
    let refused = engine.follow(ben, stranger).await.map_err(|e| e.kind());
    assert_eq!(refused.err(), Some(ErrorKind::NotFound));

    let left = engine.shutdown(Duration::from_secs(5)).await?;
    println!("shut down, {left} tasks left for other instances");
    Ok(())
}
