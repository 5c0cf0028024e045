//! What left memory and came back is what it was, byte for byte.

use std::collections::BTreeMap;

use tideline::cluster::{Command, Reply, Request};
use tideline::keys::slot_of_key;
use tideline::post::{Draft, Edit, Post, PostRef};
use tideline::{AccountId, Engine, ListQuery, Moderation, PostId};

use super::archive::{Archived, publish, walk};
use super::{accounts, all_keys, drained, eventually, letter_and_name, small};

/// Posts of each author who has many.
const POSTS: usize = 40;

/// Everything that is stored of posts and of sets, by key: a post's text, counters, revision and moderators' word, and
/// of its lists members with their scores, in order, and how they lie in pieces. Only bucketwise notes and outboxes
/// are left out, which say where a post lies.
async fn stored(engine: &Engine) -> BTreeMap<Vec<u8>, Reply> {
    let router = engine.store().router();
    let mut found = BTreeMap::new();
    for key in all_keys(engine).await {
        let (letter, name) = letter_and_name(&key);
        if !"wsptq".contains(letter) || name.is_empty() {
            continue;
        }
        let call = async |command| router.call(Request::read(slot_of_key(&key), command)).await.unwrap();
        let is_set = call(Command::new("TYPE").arg(&key)).await.text().unwrap() == "zset";
        let members = Command::new("ZRANGE").arg(&key).arg("0").arg("-1").arg("WITHSCORES");
        let value = if is_set { members } else { Command::new("GET").arg(&key) };
        found.insert(key.clone(), call(value).await);
    }
    found
}

/// The same as callers meet it, wherever it lies: profiles in their order, posts, and who has liked, reposted, quoted
/// or answered them.
async fn shown(engine: &Engine, authors: &[AccountId]) -> Vec<(PostId, Post, Vec<AccountId>)> {
    let mut found = Vec::new();
    for author in authors {
        for id in walk(engine, *author, *author, 9).await {
            let post = engine.stored().post(id).await.unwrap().unwrap();
            let likers =
                engine.as_reader(*author).likers(id, &ListQuery::default()).await.map(|page| page.accounts);
            let likers = likers.unwrap_or_default().iter().map(|account| account.id).collect();
            found.push((id, post, likers));
        }
    }
    found
}

/// Does everything that changes posts, with lists that are a tree and lists that are one set.
async fn live(engine: &Engine, authors: &[AccountId]) -> Vec<PostId> {
    let [ada, ben, many @ ..] = authors else { panic!("two and more were made") };
    let (of_ada, of_ben) = (publish(engine, *ada, POSTS).await, publish(engine, *ben, POSTS).await);
    let at = |n: usize| PostRef { id: of_ada[n], author: *ada };
    let mut all = [of_ada.clone(), of_ben.clone()].concat();
    for (n, account) in many.iter().enumerate() {
        engine.like(*account, of_ada[3]).await.unwrap();
        engine.like(*account, of_ben[n % 5]).await.unwrap();
        let answer = Draft::text("so").reply_to(at(n % 4));
        all.push(engine.publish(*account, &answer).await.unwrap().id);
        all.push(engine.repost(*account, of_ada[n % 7]).await.unwrap().id);
        let quote = Draft::text("look").quoting(at(5));
        all.push(engine.publish(*account, &quote).await.unwrap().id);
    }
    // Also what was taken back, and what has answers of its own.
    engine.unlike(many[0], of_ada[3]).await.unwrap();
    engine.delete(many[1], all[2 * POSTS + 3]).await.unwrap();
    all.remove(2 * POSTS + 3);
    for n in [2, 3, 9] {
        let edit = Edit { text: Some(format!("anew {n}")), ..Edit::default() };
        engine.edit(*ada, of_ada[n], &edit).await.unwrap();
    }
    engine.edit(*ada, of_ada[9], &Edit { text: Some("once more".into()), ..Edit::default() }).await.unwrap();
    engine.moderate(of_ada[4], Moderation { sensitive: Some(true), hidden: None }).await.unwrap();
    engine.moderate(of_ben[7], Moderation { sensitive: None, hidden: Some(true) }).await.unwrap();
    drained(engine).await;
    all
}

#[tokio::test]
async fn what_was_archived_and_brought_back_is_what_it_was_byte_for_byte() {
    for archived in Archived::each_with(small).await {
        let engine = &archived.engine;
        // More who like a post than one piece of a list holds.
        let authors = accounts(engine, 24).await;
        let all = live(engine, &authors).await;
        let (before, seen) = (stored(engine).await, shown(engine, &authors).await);
        assert_eq!(before.keys().filter(|key| letter_and_name(key).0 == 'w').count(), all.len());

        // A dozen of each of two stay, and all of those who have fewer.
        archived.left_in_memory(all.len() - 2 * (POSTS - 12)).await;
        assert!(stored(engine).await.len() < before.len() - 2 * (POSTS - 12), "lists have left, too");
        assert_eq!(shown(engine, &authors).await, seen);

        let mut after = BTreeMap::new();
        eventually("all are back at the same moment", async || {
            for id in &all {
                // What it is already: only that it comes back.
                let said = *engine.stored().post(*id).await.unwrap().unwrap().header();
                let same = Moderation { sensitive: None, hidden: Some(said.is_hidden()) };
                engine.moderate(*id, same).await.unwrap();
            }
            after = stored(engine).await;
            after.keys().filter(|key| letter_and_name(key).0 == 'w').count() == all.len()
        })
        .await;
        let (keys, kept) = (after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        assert_eq!(keys, kept);
        for (key, value) in &before {
            assert_eq!(after[key], *value, "{}", key.escape_ascii());
        }
        assert_eq!(shown(engine, &authors).await, seen);
    }
}
