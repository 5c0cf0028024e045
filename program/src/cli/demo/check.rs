//! Whether timelines are right: each equals what a plain pull of everybody that its reader follows would give.

use std::collections::HashSet;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use tideline::{Engine, PostId};

use super::graph::DemoGraph;
use super::load::Books;
use super::reads::{WalkedTimeline, walk};
use crate::cli::progress::bar;

/// Timelines that are compared: of readers with a home, and of readers that were away.
const ACTIVE: usize = 200;
const DORMANT: usize = 100;
/// Walks that are timed by themselves: of those who have the most to read.
const DEEP: usize = 3;
const AT_ONCE: usize = 8;
/// Posts that are named of a timeline that is wrong.
const NAMED: usize = 5;

/// The outcome of comparing.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) timelines: usize,
    pub(super) posts: usize,
    /// The walks of those who have the most to read, one after the other.
    pub(super) deep: Vec<(usize, WalkedTimeline)>,
    /// What differs, for each timeline that does.
    pub(super) wrong: Vec<String>,
}

pub(super) async fn check(
    engine: &Engine,
    graph: &DemoGraph,
    books: &Books,
    seed: u64,
) -> anyhow::Result<Checked> {
    let mut checked = Checked { timelines: 0, posts: 0, deep: Vec::new(), wrong: Vec::new() };
    let readers = readers(graph, seed);
    let mut longest = readers.clone();
    longest.sort_by_cached_key(|reader| std::cmp::Reverse(expected(graph, books, *reader).len()));
    for reader in longest.into_iter().take(DEEP) {
        let walk = walk(engine, reader).await?;
        checked.compare(graph, books, reader, &walk.ids);
        checked.deep.push((reader, walk));
    }
    let bar = bar(readers.len(), "timelines compared");
    let walk = |reader: usize| {
        let engine = engine.clone();
        tokio::spawn(async move { (reader, walk(&engine, reader).await) })
    };
    let mut walks = stream::iter(readers).map(walk).buffer_unordered(AT_ONCE);
    while let Some((reader, walk)) = walks.try_next().await? {
        let walk = walk.with_context(|| format!("walking the home of account index {reader}"))?;
        checked.compare(graph, books, reader, &walk.ids);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(checked)
}

/// Readers of all kinds, and all who are pulled.
fn readers(graph: &DemoGraph, seed: u64) -> Vec<usize> {
    let mut random = StdRng::seed_from_u64(seed);
    let active = graph.active().sample(&mut random, ACTIVE).copied().collect::<Vec<_>>();
    let dormant = graph.dormant().sample(&mut random, DORMANT).copied();
    let mut readers: Vec<usize> = DemoGraph::pulled().chain(active).chain(dormant).collect();
    readers.sort_unstable();
    readers.dedup();
    readers
}

/// The posts that a plain pull gives, newest first.
fn expected(graph: &DemoGraph, books: &Books, reader: usize) -> Vec<PostId> {
    let authors = graph.following(reader).iter().chain([&reader]);
    let mut ids: Vec<PostId> = authors.flat_map(|author| books.of(*author)).copied().collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}

impl Checked {
    fn compare(&mut self, graph: &DemoGraph, books: &Books, reader: usize, found: &[PostId]) {
        self.timelines += 1;
        self.posts += found.len();
        let expected = expected(graph, books, reader);
        if let Some(difference) = difference(&expected, found) {
            let follows = graph.following(reader).len();
            let text = format!("account {} (it follows {follows}): {difference}", reader + 1);
            self.wrong.push(text);
        }
    }
}

/// Says what is wrong with a timeline; `None`: nothing.
fn difference(expected: &[PostId], found: &[PostId]) -> Option<String> {
    if expected == found {
        return None;
    }
    let sets: [HashSet<PostId>; 2] = [expected, found].map(|ids| ids.iter().copied().collect());
    let missing: Vec<PostId> = expected.iter().filter(|id| !sets[1].contains(id)).copied().collect();
    let extra: Vec<PostId> = found.iter().filter(|id| !sets[0].contains(id)).copied().collect();
    let mut parts = vec![format!("{} posts instead of {}", found.len(), expected.len())];
    for (what, ids) in [("missing", missing), ("too many", extra)] {
        if !ids.is_empty() {
            let named: Vec<String> = ids.iter().take(NAMED).map(PostId::to_string).collect();
            parts.push(format!("{} {what} ({} ...)", ids.len(), named.join(", ")));
        }
    }
    let place = expected.iter().zip(found).position(|(one, other)| one != other);
    parts.push(format!("the first difference is at {}", place.unwrap_or(expected.len().min(found.len()))));
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(of: &[u64]) -> Vec<PostId> {
        of.iter().map(|id| PostId::from_u64(*id).unwrap()).collect()
    }

    #[test]
    fn the_same_posts_in_the_same_order_are_right() {
        assert_eq!(difference(&ids(&[3, 2, 1]), &ids(&[3, 2, 1])), None);
    }

    #[test]
    fn a_hole_a_stranger_a_repetition_and_another_order_are_told() {
        let told = |found: &[u64]| difference(&ids(&[3, 2, 1]), &ids(found)).unwrap();
        assert!(
            told(&[3, 1]).contains("1 missing (2 ...), the first difference is at 1"),
            "{}",
            told(&[3, 1])
        );
        assert!(told(&[3, 2, 1, 9]).contains("1 too many (9 ...), the first difference is at 3"));
        assert!(told(&[3, 3, 2, 1]).contains("4 posts instead of 3, the first difference is at 1"));
        assert!(told(&[3, 1, 2]).contains("the first difference is at 1"));
    }
}
