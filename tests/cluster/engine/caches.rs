//! What an instance remembers, and what it must not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tideline::post::{Draft, Post};
use tideline::{AgedValue, Engine, EngineSettings, ObjectCache, PostId, Query};

use super::{accounts, drained, small, tenant, walk_home};

#[derive(Debug, Default)]
struct Kept {
    posts: Mutex<HashMap<PostId, AgedValue<Option<Arc<Post>>>>>,
    hits: AtomicUsize,
}

impl ObjectCache<PostId, Option<Arc<Post>>> for Kept {
    fn get(&self, id: &PostId) -> Option<AgedValue<Option<Arc<Post>>>> {
        let found = self.posts.lock().unwrap().get(id).cloned();
        self.hits.fetch_add(usize::from(found.is_some()), Ordering::Relaxed);
        found
    }

    fn put(&self, id: PostId, post: AgedValue<Option<Arc<Post>>>) {
        self.posts.lock().unwrap().insert(id, post);
    }
}

#[tokio::test]
async fn a_cache_of_ones_own_serves_others_posts_and_never_those_of_the_reader() {
    let kept = Arc::new(Kept::default());
    let settings = EngineSettings { visible_within: Duration::from_secs(600), ..small() };
    let builder = Engine::builder().store(tenant(40)).settings(settings).post_cache(kept.clone());
    let engine = builder.start().await.unwrap();
    let people = accounts(&engine, 2).await;
    engine.follow(people[1], people[0]).await.unwrap();
    let post = engine.publish(people[0], &Draft::text("kept")).await.unwrap().id;
    drained(&engine).await;
    for hits in [0, 1, 2] {
        assert_eq!(engine.as_reader(people[1]).read(&Query::home()).await.unwrap().ids(), [post]);
        assert_eq!(kept.hits.load(Ordering::Relaxed), hits);
    }
    // What others did may show late, here ten minutes; what one did oneself shows at once.
    engine.delete(people[0], post).await.unwrap();
    assert_eq!(walk_home(&engine, people[0], 5).await, []);
    assert_eq!(walk_home(&engine, people[1], 5).await, [post]);
}

#[tokio::test]
async fn a_page_of_mentions_loads_few_posts_that_do_not_show_and_none_of_whom_the_reader_blocks() {
    let kept = Arc::new(Kept::default());
    let settings = EngineSettings { visible_within: Duration::from_secs(600), ..small() };
    let builder = Engine::builder().store(tenant(40)).settings(settings).post_cache(kept.clone());
    let engine = builder.start().await.unwrap();
    let [victim, friend, attacker] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let draft = Draft::text("x").mentions([victim]);
    let wanted = engine.publish(friend, &draft).await.unwrap().id;
    // The attacker hides them itself.
    engine.hide_from(attacker, victim).await.unwrap();
    for _ in 0..900 {
        engine.publish(attacker, &draft).await.unwrap();
    }
    drained(&engine).await;
    let loaded = || std::mem::take(&mut *kept.posts.lock().unwrap()).len();
    loaded();
    let (mut query, mut ids) = (Query::mentions().limit(20), Vec::new());
    loop {
        let page = engine.as_reader(victim).read(&query).await.unwrap();
        let loaded = loaded();
        assert!(loaded <= 600, "{loaded} posts for one page");
        ids.extend(page.ids());
        match page.next {
            Some(next) => query = query.after(next),
            None => break,
        }
    }
    assert_eq!(ids, [wanted]);
    engine.block(victim, attacker).await.unwrap();
    assert_eq!(engine.as_reader(victim).read(&Query::mentions().limit(20)).await.unwrap().ids(), [wanted]);
    assert_eq!(loaded(), 1);
}
