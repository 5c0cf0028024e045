//! The index of posts by their words: what comes in late, and what is found.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tideline_archive::Archive;
use tideline_model::archive::{IndexChange, IndexKey, IndexVersion, IndexedPost, SearchAsk};
use tideline_model::bucket::Bucket;
use tideline_model::error::ErrorKind;

use crate::histories::seeds;
use crate::places::{account, bucket_of, each, id};

pub(crate) const MINUTE: u64 = 60_000 << 16;

fn key(of: u64, number: u64) -> IndexKey {
    IndexKey { bucket: bucket_of(of), post: id(number) }
}

fn version(number: u64) -> IndexVersion {
    IndexVersion(number.to_be_bytes())
}

pub(crate) fn change(of: u64, number: u64, (seen, next): (u64, u64), words: &str) -> IndexChange {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let post = IndexedPost { author: account(of), is_public: of != 9, words };
    IndexChange {
        key: key(of, number),
        seen: (seen > 0).then(|| version(seen)),
        version: version(next),
        post: Some(post).filter(|post| !post.words.is_empty()),
    }
}

/// All posts that a search finds, page by page.
pub(crate) async fn found(archive: &dyn Archive, words: &str, reader: Option<u64>, most: usize) -> Vec<u64> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let mut ask = SearchAsk { words, reader: reader.map(account), below: u64::MAX, most };
    let mut found = Vec::new();
    while ask.below > 0 {
        let page = archive.search(&ask).await.expect("a page");
        assert!(page.from < ask.below, "{page:?} of {ask:?}");
        assert!(page.posts.iter().all(|(post, _)| (page.from..ask.below).contains(&post.get())), "{page:?}");
        found.extend(page.posts.iter().map(|(post, _)| post.get()));
        ask.below = page.from;
    }
    found
}

/// More posts than are gone through without the index of words, many of them of one moment.
#[tokio::test(flavor = "multi_thread")]
async fn words_are_found_behind_the_posts_of_the_first_window() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let number = |n: u64| if n < 600 { n * MINUTE } else { 600 * MINUTE + n };
        let words = |n: u64| match n {
            0 | 3 | 250 => "all old",
            n if n.is_multiple_of(7) => "all seventh",
            _ => "all",
        };
        let all: Vec<IndexChange> = (0..1_400).map(|n| change(1, number(n), (0, 1), words(n))).collect();
        for changes in all.chunks(64) {
            assert!(archive.index(changes).await.unwrap().iter().all(|is_made| *is_made), "{kind:?}");
        }
        for most in [2, 28, 1_000] {
            let find = async |words| found(archive, words, None, most).await;
            assert_eq!(find("old").await, [number(250), number(3), 0], "{kind:?}");
            let is_seventh = |n: &u64| words(*n) == "all seventh";
            let sevenths: Vec<u64> = (0..1_400).rev().filter(is_seventh).map(number).collect();
            assert_eq!(find("seventh all").await, sevenths, "{kind:?}");
            assert_eq!(find("old seventh").await, [0; 0], "{kind:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_found_by_all_of_its_words_and_the_newest_first() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let changes = [
            change(1, 10, (0, 1), "der rote fuchs"),
            change(2, 20 * MINUTE, (0, 1), "der fuchs ß жук 猫"),
            change(1, 400_000 * MINUTE, (0, 1), "rote der 7"),
        ];
        assert_eq!(archive.index(&changes).await.unwrap(), [true; 3], "{kind:?}");
        for most in [1, 7] {
            let find = async |words| found(archive, words, None, most).await;
            assert_eq!(find("der").await, [400_000 * MINUTE, 20 * MINUTE, 10], "{kind:?}");
            assert_eq!(find("fuchs der").await, [20 * MINUTE, 10], "{kind:?}");
            assert_eq!(find("rote fuchs").await, [10], "{kind:?}");
            assert_eq!(find("猫 ß жук").await, [20 * MINUTE], "{kind:?}");
            assert!(find("fuc").await.is_empty() && find("der wolf").await.is_empty(), "{kind:?}");
        }
        let ask = |words: &[&str]| SearchAsk {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            reader: None,
            below: u64::MAX,
            most: 5,
        };
        // Operators of either language, and what its tokenizer would part.
        for words in [&[][..], &["a b"], &["a\" OR \"b"], &["a'|'b"], &[""], &["a-b"], &["NOT", "x*"]] {
            let refused = archive.search(&ask(words)).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{kind:?} {words:?}: {refused}");
        }
        for words in [["AND", "not"], ["NEAR", "or"]] {
            assert!(archive.search(&ask(&words)).await.unwrap().posts.is_empty(), "{kind:?} {words:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_public_only_its_author_finds() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        archive.index(&[change(9, 10, (0, 1), "geheim"), change(1, 11, (0, 1), "geheim")]).await.unwrap();
        for (reader, finds) in [(None, vec![11]), (Some(1), vec![11]), (Some(9), vec![11, 10])] {
            assert_eq!(found(archive, "geheim", reader, 5).await, finds, "{kind:?}");
        }
        // A reader's number is no word.
        assert!(
            found(archive, "9", Some(9), 5).await.is_empty()
                && found(archive, "all", None, 5).await.is_empty()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_late_changes_nothing_and_brings_nothing_back() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let one = async |change| archive.index(&[change]).await.unwrap()[0];
        let late = change(1, 10, (0, 1), "alt");
        assert!(one(change(1, 10, (0, 2), "neu")).await, "{kind:?}");
        assert!(!one(late.clone()).await, "{kind:?}: of a post that nothing was seen of");
        assert!(!one(change(1, 10, (1, 3), "alt")).await, "{kind:?}: of another version");
        assert_eq!(
            (found(archive, "neu", None, 5).await, found(archive, "alt", None, 5).await),
            (vec![10], vec![])
        );
        assert!(one(change(1, 10, (2, 4), "")).await, "{kind:?}");
        assert!(!one(late.clone()).await && !one(change(1, 10, (2, 5), "alt")).await, "{kind:?}: it is gone");
        assert!(found(archive, "neu", None, 5).await.is_empty(), "{kind:?}");
        assert_eq!(
            archive.index_versions(&[key(1, 10), key(1, 11)]).await.unwrap(),
            [Some(version(4)), None]
        );
        assert!(archive.walk_index(bucket_of(1), None, 5).await.unwrap().is_empty(), "{kind:?}");
        // An id that comes twice is somebody else's by now.
        assert!(one(change(1, 10, (4, 6), "wieder")).await, "{kind:?}");
        assert_eq!(found(archive, "wieder", None, 5).await, [10], "{kind:?}");
        let twice = archive.index(&[late.clone(), late]).await.unwrap_err();
        assert!(twice.to_string().contains("post 10 stands twice in one call"), "{twice}");
    }
}

/// The index as simply as it can be told.
#[derive(Default)]
struct ModelIndex(BTreeMap<u64, (IndexVersion, Option<IndexedPost>)>);

impl ModelIndex {
    fn change(&mut self, change: &IndexChange) -> bool {
        let number = change.key.post.get();
        let is_seen = self.0.get(&number).map(|(version, _)| *version) == change.seen;
        if is_seen {
            self.0.insert(number, (change.version, change.post.clone()));
        }
        is_seen
    }

    fn found(&self, words: &str, reader: Option<u64>) -> Vec<u64> {
        let is_found = |post: &IndexedPost| {
            words.split_whitespace().all(|word| post.words.iter().any(|of| of == word))
                && (post.is_public || reader.map(account) == Some(post.author))
        };
        let all = self.0.iter().rev();
        all.filter(|(_, (_, post))| post.as_ref().is_some_and(is_found)).map(|(number, _)| *number).collect()
    }
}

const WORDS: [&str; 6] = ["a", "b", "c", "der", "猫", "42"];
const STEPS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn random_changes_leave_what_the_model_has() {
    for seed in seeds() {
        for (kind, place) in each().await {
            let archive = &*place.archive;
            let (mut random, mut model) = (StdRng::seed_from_u64(seed), ModelIndex::default());
            let (mut made, mut refused) = (0, 0);
            for step in 0..STEPS {
                let at = format!("{kind:?}, seed {seed}, step {step}");
                if random.random_bool(0.4) {
                    let words = draw_words(&mut random, 1);
                    let reader = random.random_bool(0.5).then(|| random.random_range(1..=9));
                    let most = random.random_range(1..8);
                    assert_eq!(
                        found(archive, &words, reader, most).await,
                        model.found(&words, reader),
                        "{at}"
                    );
                    continue;
                }
                let numbers: BTreeSet<u64> = (0..4).map(|_| random.random_range(0..30)).collect();
                let changes: Vec<IndexChange> =
                    numbers.into_iter().map(|number| draw_change(&mut random, &model, number)).collect();
                let expected: Vec<bool> = changes.iter().map(|change| model.change(change)).collect();
                made += expected.iter().filter(|is_made| **is_made).count();
                refused += expected.iter().filter(|is_made| !**is_made).count();
                assert_eq!(archive.index(&changes).await.unwrap(), expected, "{at}: {changes:?}");
            }
            let there = model.0.iter().filter(|(_, (_, post))| post.is_some()).count();
            let mut walked = 0;
            for bucket in (0..16).map(Bucket) {
                let mut after = None;
                while let Some(last) = {
                    let page = archive.walk_index(bucket, after, 2).await.unwrap();
                    walked += page.len();
                    page.last().map(|(post, _)| *post)
                } {
                    after = Some(last);
                }
            }
            assert_eq!(walked, there, "{kind:?}, seed {seed}");
            assert!(made > STEPS / 4 && refused > STEPS / 10, "{made} {refused}");
        }
    }
}

fn draw_words(random: &mut StdRng, least: usize) -> String {
    let many = random.random_range(least..4);
    let words: Vec<&str> = WORDS.sample(random, many).copied().collect();
    words.join(" ")
}

fn draw_change(random: &mut StdRng, model: &ModelIndex, place: u64) -> IndexChange {
    // Far apart, some of them, and always of one owner.
    let (of, number) = (place % 9 + 1, place * place * place * (MINUTE / 7) + 1);
    let seen = match random.random_range(0..4) {
        0 => 0,
        1 => random.random_range(1..1_000),
        _ => model.0.get(&number).map_or(0, |(version, _)| u64::from_be_bytes(version.0)),
    };
    let words = draw_words(random, 0);
    change(of, number, (seen, random.random_range(1..1_000)), &words)
}
