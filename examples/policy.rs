//! A policy of one's own: the service's announcements are pulled, whoever follows; people are pushed.
//!
//! ```sh
//! cargo run --example policy                              # starts a cluster, and ends it
//! cargo run --example policy -- redis://10.0.0.1:6379     # uses one, under the prefix `policy:`
//! ```

mod shared;

use std::collections::HashSet;
use std::time::Duration;

use tideline::post::Draft;
use tideline::{
    AccountFacts, AccountId, DeliveryWay, Engine, EngineSettings, ErrorCode, Mode, ModeSettings, NewAccount,
    Policy, PostAck, Query, Result,
};

/// A policy decides from facts, and from what it knows itself; it never waits. A real service may know who reads the
/// most.
#[derive(Debug)]
struct Announcements(HashSet<AccountId>);

impl Policy for Announcements {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        if self.0.contains(&facts.account) { DeliveryWay::Pull } else { DeliveryWay::Push }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (config, _cluster) = shared::config("policy:").await?;
    let news = AccountId::new(1_000)?;
    // Asked at most this often about an account; a minute is what a service wants.
    let modes = ModeSettings { decide_every: Duration::from_millis(100), ..ModeSettings::default() };
    let settings = EngineSettings { modes, ..config.engine.clone() };
    let policy = Announcements(HashSet::from([news]));
    let engine = Engine::builder().config(config).settings(settings).policy(policy).start().await?;

    // A second run on the same cluster finds it there.
    let announcements = NewAccount { id: Some(news), ..NewAccount::default() };
    match engine.stored().account(news).await {
        Err(e) if e.code() == ErrorCode::AccountNotFound => drop(engine.create_account(announcements).await?),
        other => drop(other?),
    }
    let ben = engine.create_account(NewAccount::default()).await?.value;
    engine.follow(ben, news).await?;

    // The first post is delivered; then the policy is asked, and the followers are told to pull.
    engine.publish_with(news, &Draft::text("The harbour is closed"), PostAck::Delivered).await?;
    while engine.mode(news).await?.mode != Mode::Pull {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.publish(news, &Draft::text("The harbour is open again")).await?;
    let page = engine.as_reader(ben).read(&Query::home()).await?;
    println!("{news} is pulled; {ben} reads {} of its posts", page.posts.len());

    // By hand, whatever the policy says; it goes on while everybody posts and reads.
    let told = engine.set_way(news, Some(DeliveryWay::Push)).await?.all().await?;
    println!("{news} is pushed again, {} followers know", told.delivered);
    assert_eq!(engine.as_reader(ben).read(&Query::home()).await?.ids(), page.ids());
    engine.set_way(news, None).await?;
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
