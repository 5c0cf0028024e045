//! What left memory and came back is what it was, byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use tideline::archive::{ArchivedPost, Owner, OwnerChange, PartName, PostAsk, Prerequisite};
use tideline::cluster::{Command, Request};
use tideline::keys::slot_of_key;
use tideline::post::{Draft, Edit, Post, PostRef};
use tideline::{AccountId, Engine, ErrorKind, ListQuery, Moderation, PostId};

use super::archive::{Archived, publish, walk};
use super::{accounts, all_keys, drained, eventually, letter_and_name, small};

/// Posts of each author who has many.
const POSTS: usize = 40;
/// Where a stored post has the stamp of the moderators' last word.
const LAST_WORD: Range<usize> = 80..84;

/// By key: a string, or members and their scores, in order.
type Stored = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// Everything that is stored of posts and of sets, by key: a post's text, counters, revision and moderators' word, and
/// of its lists members with their scores, in order, and how they lie in pieces. Only bucketwise notes and outboxes
/// are left out, which say where a post lies.
async fn stored(engine: &Engine) -> Stored {
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
        let value = match is_set {
            true => call(members).await.into_array().unwrap(),
            false => vec![call(Command::new("GET").arg(&key)).await],
        };
        found.insert(key.clone(), value.iter().map(|part| part.bytes().unwrap().to_vec()).collect());
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

/// Posts that were published.
struct Published {
    /// How many there are.
    count: usize,
    /// Those of two who have many, with their authors.
    of_two: Vec<(PostId, AccountId)>,
    /// Reposts of these two.
    reposts: Vec<PostId>,
}

/// Does everything that changes posts, with lists that are a tree and lists that are one set.
async fn live(engine: &Engine, authors: &[AccountId]) -> Published {
    let [ada, ben, many @ ..] = authors else { panic!("two and more were made") };
    let of_ada = publish(engine, *ada, POSTS).await;
    let at = |n: usize| PostRef { id: of_ada[n], author: *ada };
    let mut reposts = Vec::new();
    for n in 0..2 {
        reposts.push(engine.publish(*ben, &Draft::repost(at(n))).await.unwrap().id);
    }
    let of_ben = publish(engine, *ben, POSTS).await;
    let mut others = Vec::new();
    for (n, account) in many.iter().enumerate() {
        engine.like(*account, of_ada[3]).await.unwrap();
        engine.like(*account, of_ben[n % 5]).await.unwrap();
        let answer = Draft::text("so").reply_to(at(n % 4));
        let quote = Draft::text("look").quoting(at(5));
        for draft in [answer, Draft::repost(at(n % 7)), quote] {
            others.push((engine.publish(*account, &draft).await.unwrap().id, *account));
        }
    }
    // Also what was taken back.
    engine.unlike(many[0], of_ada[3]).await.unwrap();
    let (answer, author) = others.remove(3);
    engine.delete(author, answer).await.unwrap();
    for (n, text) in [(2, "anew"), (3, "better"), (9, "anew"), (9, "once more")] {
        engine.edit(*ada, of_ada[n], &Edit { text: Some(text.into()), ..Edit::default() }).await.unwrap();
    }
    engine.moderate(of_ada[4], Moderation { sensitive: Some(true), hidden: None }).await.unwrap();
    engine.moderate(of_ben[7], Moderation { sensitive: None, hidden: Some(true) }).await.unwrap();
    drained(engine).await;
    let count = 2 * POSTS + reposts.len() + others.len();
    let of_two = of_ada.into_iter().map(|id| (id, *ada)).chain(of_ben.into_iter().map(|id| (id, *ben)));
    Published { count, of_two: of_two.collect(), reposts }
}

/// Has posts come back by acts that are undone at once. Nobody else's like is among them: each likes its own, which
/// nobody has done.
async fn bring_back(engine: &Engine, published: &Published) {
    for (id, author) in &published.of_two {
        engine.like(*author, *id).await.unwrap();
        engine.unlike(*author, *id).await.unwrap();
    }
    for id in &published.reposts {
        // A like would be the original's. Moderators say what is so already.
        engine.moderate(*id, Moderation { sensitive: None, hidden: Some(false) }).await.unwrap();
    }
    drained(engine).await;
}

/// Takes out what the moderators' word on reposts has changed: four bytes that differ with every word.
fn without_last_word(stored: &mut Stored, published: &Published) {
    for (key, value) in stored {
        let (letter, name) = letter_and_name(key);
        if letter == 'w' && published.reposts.iter().any(|id| id.get().to_be_bytes() == name) {
            value[0][LAST_WORD].fill(0);
        }
    }
}

fn posts_of(stored: &Stored) -> usize {
    stored.keys().filter(|key| letter_and_name(key).0 == 'w').count()
}

#[tokio::test]
async fn what_was_archived_and_brought_back_is_what_it_was_byte_for_byte() {
    for archived in Archived::each_with(small).await {
        // All of it is looked at before the first of it leaves: of 147 posts a busy machine once had 103 left by then.
        let archived = archived.by_hand(small()).await;
        let engine = &archived.engine;
        // More who like a post than one piece of a list holds.
        let authors = accounts(engine, 24).await;
        let published = live(engine, &authors).await;
        let (mut before, seen) = (stored(engine).await, shown(engine, &authors).await);
        assert_eq!(posts_of(&before), published.count);

        // A dozen of each of two stay, and all of those who have fewer.
        let left = published.of_two.len() + published.reposts.len() - 2 * 12;
        archived.left_in_memory(published.count - left).await;
        assert!(stored(engine).await.len() < before.len() - left, "lists have left, too");
        assert_eq!(shown(engine, &authors).await, seen);

        let mut after = BTreeMap::new();
        // What comes back leaves again where it is due, so some may have to come once more.
        eventually("all are back at the same moment", async || {
            bring_back(engine, &published).await;
            after = stored(engine).await;
            posts_of(&after) == published.count
        })
        .await;
        without_last_word(&mut before, &published);
        without_last_word(&mut after, &published);
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        for (key, value) in &before {
            assert_eq!(after[key], *value, "{}", key.escape_ascii());
        }
        let ids =
            |shown: &[(PostId, Post, Vec<AccountId>)]| shown.iter().map(|(id, ..)| *id).collect::<Vec<_>>();
        assert_eq!(ids(&shown(engine, &authors).await), ids(&seen));
    }
}

/// A part of posts that no release knows.
const UNKNOWN: PartName = PartName(b'~');

/// The unknown part of an archived post; an empty one takes it away. None: the post is being moved.
async fn put_part(archived: &Archived, of: PostRef, part: &[u8]) -> Option<()> {
    let bucket = archived.engine.store().keys().buckets().of_account(of.author.get());
    let owner = Owner { bucket, account: of.author };
    let state = archived.archive.owners(&[owner]).await.unwrap()[0].unwrap();
    let mut post = archived_post(archived, of).await;
    post.parts.set(UNKNOWN, part.to_vec());
    let change = OwnerChange {
        owner,
        token: state.token,
        needs: Prerequisite::default(),
        upto: state.upto,
        posts: vec![(post, Vec::new())],
        erased: Vec::new(),
        buries: false,
    };
    archived.archive.change(&[change]).await.unwrap()[0].ok()
}

async fn archived_post(archived: &Archived, of: PostRef) -> ArchivedPost {
    let bucket = archived.engine.store().keys().buckets().of_account(of.author.get());
    let ask = PostAsk { bucket, id: of.id, owner: Some(of.author) };
    archived.archive.posts(&[ask]).await.unwrap().remove(0).post.unwrap()
}

/// H225: instances of two releases serve a tenant, and the later one stores something beside posts.
#[tokio::test]
async fn a_post_with_a_part_of_a_later_release_keeps_it_and_stays_where_it_is() {
    for archived in Archived::each_with(small).await {
        let engine = &archived.engine;
        let [ada] = accounts(engine, 1).await[..] else { panic!("one was made") };
        let posts = publish(engine, ada, POSTS).await;
        let [first, second] = [1, 2].map(|n: usize| PostRef { id: posts[n], author: ada });
        archived.left_in_memory(12).await;
        let edit = Edit { text: Some("anew".into()), ..Edit::default() };
        let put = async |post, part: &[u8]| {
            eventually("nobody moves it", async || put_part(&archived, post, part).await.is_some()).await;
        };

        put(first, b"poll").await;
        let refused = engine.edit(ada, first.id, &edit).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Internal, "{refused}");
        assert!(refused.to_string().contains("a later one has stored a part of it named `~`"), "{refused}");
        engine.delete(ada, first.id).await.unwrap_err();
        assert!(!archived.in_memory().await.contains(&first.id.get()));
        assert_eq!(engine.stored().post(first.id).await.unwrap().unwrap().content().text, "post 1");

        // One that was brought back before, and leaves again.
        engine.edit(ada, second.id, &edit).await.unwrap();
        put(second, b"poll").await;
        eventually("it leaves again", async || {
            engine.archive_due().await.unwrap();
            !archived.in_memory().await.contains(&second.id.get())
        })
        .await;
        assert_eq!(engine.stored().post(second.id).await.unwrap().unwrap().content().text, "anew");
        assert_eq!(archived_post(&archived, second).await.parts.get(UNKNOWN), Some(&b"poll"[..]));

        put(first, b"").await;
        engine.edit(ada, first.id, &edit).await.unwrap();
    }
}
