//! An instance's caches of posts, accounts and lists: bounded, and for no longer than `visible_within`.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::flights::Flights;
use super::outbox::NewestPosts;
use super::pulls::OutboxLook;
use crate::account::Account;
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::Post;
use crate::settings::EngineSettings;

/// A value, and when it was asked for.
pub type AgedValue<V> = (std::time::Instant, V);

/// A cache in which an instance keeps posts, or accounts, that it has read: bounded, shared by all readers. The engine
/// decides how long an entry is good for; a cache may forget whatever it likes.
///
/// It is called on every read, so it must not block.
pub trait ObjectCache<K, V>: std::fmt::Debug + Send + Sync {
    /// The value that was put there last, if it still has that: asked before something is read, and once more when it
    /// has been, for what is read again as it was.
    fn get(&self, key: &K) -> Option<AgedValue<V>>;
    /// Keeps a value.
    fn put(&self, key: K, value: AgedValue<V>);
}

impl<K, V> ObjectCache<K, V> for Cache<K, AgedValue<V>>
where
    K: Eq + std::hash::Hash + std::fmt::Debug + Send + Sync,
    V: Clone + Send + Sync,
{
    fn get(&self, key: &K) -> Option<AgedValue<V>> {
        Cache::get(self, key)
    }

    fn put(&self, key: K, value: AgedValue<V>) {
        self.insert(key, value);
    }
}

/// Caches of the caller's own, in place of those that an engine makes itself.
#[derive(Debug, Default)]
pub(crate) struct OwnCaches {
    pub(crate) posts: Option<Arc<PostCache>>,
    pub(crate) accounts: Option<Arc<AccountCache>>,
}

/// A cache of posts; `None`: there is no such post.
pub type PostCache = dyn ObjectCache<PostId, Option<Arc<Post>>>;
/// A cache of accounts; `None`: there is no such account.
pub type AccountCache = dyn ObjectCache<AccountId, Option<Arc<Account>>>;

/// A cache whose entries are good for a while.
#[derive(Debug)]
pub(crate) struct FreshCache<K, V> {
    entries: Option<Arc<dyn ObjectCache<K, V>>>,
    good_for: Duration,
    name: &'static str,
}

impl<K, V> FreshCache<K, V>
where
    K: Eq + std::hash::Hash + Clone + std::fmt::Debug + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new(name: &'static str, most: usize, good_for: Duration) -> Self {
        Self::over(name, None, most, good_for)
    }

    /// Over a cache of the caller's own, if there is one. Without any time to be good for, nothing is kept.
    fn over(
        name: &'static str,
        own: Option<Arc<dyn ObjectCache<K, V>>>,
        most: usize,
        good_for: Duration,
    ) -> Self {
        let make = || own.unwrap_or_else(|| Arc::new(Cache::<K, AgedValue<V>>::new(most)));
        Self { entries: (!good_for.is_zero()).then(make), good_for, name }
    }

    /// The value that was put there, if that is not too long before `now`.
    pub(crate) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let (at, value) = self.entries.as_ref()?.get(key)?;
        let is_fresh = now.saturating_duration_since(Instant::from_std(at)) < self.good_for;
        is_fresh.then_some(value)
    }

    /// Whether anything is kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.entries.is_some()
    }

    /// Notes a value that was asked for at `at`: it may be older than the answer.
    pub(crate) fn put(&self, key: K, at: Instant, value: V) {
        if let Some(entries) = &self.entries {
            entries.put(key, (at.into_std(), value));
        }
    }

    pub(crate) fn count(&self, hits: usize, misses: usize) {
        if hits + misses > 0 {
            meters::cache(self.name, hits, misses);
        }
    }
}

impl<K, T> FreshCache<K, Option<Arc<T>>>
where
    K: Eq + std::hash::Hash + Clone + std::fmt::Debug + Send + Sync + 'static,
    T: PartialEq + Send + Sync + 'static,
{
    /// Puts in what is often read again as it was: gives the very one that was there in place of an equal one, so
    /// what others have made of that still counts.
    pub(crate) fn put_again(&self, key: K, at: Instant, value: Option<T>) -> Option<Arc<T>> {
        let known = self.entries.as_ref().and_then(|entries| entries.get(&key)).and_then(|(_, known)| known);
        let value = value.map(|value| match known {
            Some(known) if *known == value => known,
            _ => Arc::new(value),
        });
        self.put(key, at, value.clone());
        value
    }
}

/// A memory of posts, accounts and lists.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Posts; `None`: deleted.
    pub(crate) posts: FreshCache<PostId, Option<Arc<Post>>>,
    pub(crate) accounts: FreshCache<AccountId, Option<Arc<Account>>>,
    /// Whether the first blocks the second, or hides from it.
    pub(crate) restrictions: FreshCache<(AccountId, AccountId), bool>,
    pub(crate) outboxes: FreshCache<AccountId, Arc<NewestPosts>>,
    /// The newest members of long lists of posts.
    pub(crate) newest: FreshCache<(PostId, u8), Arc<[Vec<u8>]>>,
    /// Looks at outboxes that are under way.
    pub(crate) flights: Flights<OutboxLook>,
    /// Pairs that were journaled by a reader not long ago.
    pub(crate) asked: FreshCache<(AccountId, AccountId), ()>,
}

/// A reader asks at most this often that a needless mark be looked at.
const ASK_EVERY: Duration = Duration::from_secs(60);
const ASKED_MAX: usize = 10_000;
/// Long lists whose newest members are remembered, about a kilobyte each.
const LISTS_MAX: usize = 5_000;

impl Caches {
    pub(crate) fn new(settings: &EngineSettings, own: OwnCaches) -> Self {
        let t = settings.visible_within;
        Self {
            posts: FreshCache::over("posts", own.posts, settings.posts_cached, t),
            accounts: FreshCache::over("accounts", own.accounts, settings.accounts_cached, t),
            restrictions: FreshCache::new("restrictions", settings.accounts_cached, t),
            outboxes: FreshCache::new("outboxes", settings.outboxes_cached, t),
            newest: FreshCache::new("lists", LISTS_MAX, t),
            flights: Flights::default(),
            asked: FreshCache::new("asked", ASKED_MAX, ASK_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_again_as_it_was_is_the_very_one_that_was_there() {
        let second = Duration::from_secs(1);
        let cache = FreshCache::<u8, Option<Arc<String>>>::new("posts", 10, second);
        let now = Instant::now();
        let read = |text: Option<&str>, at| cache.put_again(1, at, text.map(str::to_owned));
        let first = read(Some("ebb"), now).unwrap();
        let late = now + 2 * second;
        assert_eq!(cache.get(&1, late), None);
        assert!(Arc::ptr_eq(&first, &read(Some("ebb"), late).unwrap()), "it was as old as it is");
        assert!(Arc::ptr_eq(&first, &cache.get(&1, late).flatten().unwrap()), "and is fresh again");
        assert_eq!(*read(Some("flow"), late).unwrap(), "flow");
        assert_eq!(read(None, late), None);
        assert_eq!(cache.get(&1, late), Some(None), "it is known to be gone");

        let forgetful = FreshCache::<u8, Option<Arc<String>>>::new("posts", 10, Duration::ZERO);
        let read = || forgetful.put_again(1, now, Some("ebb".to_owned())).unwrap();
        assert!(!Arc::ptr_eq(&read(), &read()));
    }
}
