//! A filter of one's own: words that a reader doesn't want to see.
//!
//! ```sh
//! cargo run --example custom_filter                              # starts a cluster, and ends it
//! cargo run --example custom_filter -- redis://10.0.0.1:6379     # uses one, under the prefix `filter:`
//! ```

mod shared;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tideline::post::Draft;
use tideline::{AccountId, Engine, FilterFacts, NewAccount, PostFilter, Query, Result};

/// The words of each reader, in lower case. A real service loads them when a reader logs in: a filter is asked for
/// each post of each page, so it decides from memory and never waits.
#[derive(Debug, Clone, Default)]
struct Words(Arc<RwLock<HashMap<AccountId, Vec<String>>>>);

impl Words {
    fn hide(&self, reader: AccountId, word: &str) {
        let mut words = self.0.write().unwrap_or_else(PoisonError::into_inner);
        words.entry(reader).or_default().push(word.to_lowercase());
    }
}

impl PostFilter for Words {
    fn shows(&self, facts: &FilterFacts<'_>) -> bool {
        let words = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let reader = facts.reader.filter(|reader| *reader != facts.author.id);
        let Some(words) = reader.and_then(|reader| words.get(&reader)) else { return true };
        // What a repost passes on counts too.
        let texts = [Some(facts.post), facts.original].into_iter().flatten();
        let texts: Vec<String> = texts.map(|post| post.content().text.to_lowercase()).collect();
        !words.iter().any(|word| texts.iter().any(|text| text.contains(word)))
    }
}

async fn texts(engine: &Engine, reader: AccountId) -> Result<Vec<String>> {
    let page = engine.as_reader(reader).read(&Query::home().hydrated()).await?;
    Ok(page.posts.iter().filter_map(|post| Some(post.post.as_ref()?.content().text.clone())).collect())
}

#[tokio::main]
async fn main() -> Result<()> {
    let (config, _cluster) = shared::config("filter:").await?;
    let words = Words::default();
    let engine = Engine::builder().config(config).filter(words.clone()).start().await?;

    let ada = engine.create_account(NewAccount::default()).await?.value;
    let ben = engine.create_account(NewAccount::default()).await?.value;
    engine.follow(ben, ada).await?;
    for text in ["Low tide at noon", "The ending of that film: everybody leaves", "High tide at six"] {
        engine.publish(ada, &Draft::text(text)).await?;
    }
    println!("{ben} reads {:?}", texts(&engine, ben).await?);
    assert_eq!(texts(&engine, ben).await?.len(), 3);

    words.hide(ben, "film");
    println!("without films {:?}", texts(&engine, ben).await?);
    assert_eq!(texts(&engine, ben).await?, ["High tide at six", "Low tide at noon"]);
    assert_eq!(texts(&engine, ada).await?.len(), 3, "others see it");

    // What became of each post, and why.
    for candidate in engine.inspect(ben).await?.page {
        println!("{}: {:?}", candidate.id, candidate.verdict);
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
