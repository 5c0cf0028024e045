//! Followers as the books keep them: one sorted set for each account, read in pages by score.

use futures::Stream;
use futures::stream;
use tideline::cluster::{Command, Request, Router};
use tideline::keys::slot_of_key;

use super::world::owner_id;
use crate::bench::Bench;

/// Followers read at a time, as in "Redis in Action".
const PAGE: u64 = 1_000;
/// The first follower's score; each has one of its own, so that no page ends between equal ones.
const FIRST_SCORE: u64 = 1_600_000_000_000;
const FOLLOWS_PER_CALL: usize = 1_000;

/// Where the followers of an account are.
pub(crate) fn key(prefix: &str, author: u64) -> String {
    format!("{prefix}followers:{author}")
}

/// The home of an account.
pub(crate) fn home_key(prefix: &str, owner: &str) -> String {
    format!("{prefix}home:{owner}")
}

/// Adds followers to an account that has none.
pub(crate) async fn follow(bench: &Bench, author: u64, followers: &[u64]) -> anyhow::Result<()> {
    let key = key(&bench.prefix, author);
    let slot = slot_of_key(key.as_bytes());
    let mut score = FIRST_SCORE;
    let calls = followers.chunks(FOLLOWS_PER_CALL).map(|chunk| {
        let mut add = Command::new("ZADD").arg(&key);
        for home in chunk {
            score += 1;
            add.push(score).push(owner_id(*home)?);
        }
        Ok(Request::write(slot, add))
    });
    bench.run_all(calls, 10).await
}

/// A page of followers, as the books ask for it.
pub(crate) fn page_arguments(after: &str) -> [String; 6] {
    let count = PAGE.to_string();
    [after, "+inf", "WITHSCORES", "LIMIT", "0", &count].map(str::to_owned)
}

/// Where the first page begins, and the next one after a page whose last score this is.
pub(crate) const FROM_THE_START: &str = "-inf";
pub(crate) fn after(score: &str) -> String {
    format!("({score}")
}

/// Whether another page may follow one of so many followers.
pub(crate) fn is_full(page: usize) -> bool {
    page as u64 >= PAGE
}

/// All homes of an account's followers, at least `most` at a time but in the last batch, read through the router.
pub(crate) fn homes<'a>(
    router: &'a Router,
    prefix: &'a str,
    author: u64,
    batch: usize,
) -> impl Stream<Item = anyhow::Result<Vec<String>>> + use<'a> {
    let key = key(prefix, author);
    let start = Some(FROM_THE_START.to_owned());
    stream::try_unfold((key, start), move |(key, mut next)| async move {
        let mut homes = Vec::with_capacity(batch);
        while let Some(from) = next.take_if(|_| homes.len() < batch) {
            next = page(router, prefix, &key, &from, &mut homes).await?;
        }
        anyhow::Ok((!homes.is_empty()).then_some((homes, (key, next))))
    })
}

/// Reads one page; returns where the next one begins.
async fn page(
    router: &Router,
    prefix: &str,
    key: &str,
    from: &str,
    homes: &mut Vec<String>,
) -> anyhow::Result<Option<String>> {
    let mut range = Command::new("ZRANGEBYSCORE").arg(key);
    for argument in page_arguments(from) {
        range.push(argument);
    }
    let replies = router.call(Request::read(slot_of_key(key.as_bytes()), range)).await?.into_array()?;
    for follower in replies.chunks_exact(2) {
        homes.push(home_key(prefix, follower[0].text()?));
    }
    let last = replies.last().filter(|_| is_full(replies.len() / 2));
    Ok(last.map(|score| score.text().map(after)).transpose()?)
}
