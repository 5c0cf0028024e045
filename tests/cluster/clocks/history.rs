//! A random history while wall clocks are set an hour forward and back: those of the servers, and an instance's, in turn.

use std::collections::BTreeSet;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tideline::{AccountId, Engine, PostId};

use super::super::engine::{accounts, drained};
use super::super::harness::{Own, eventually, seeded};
use super::super::skew::{Clocks, HOUR_S, real_ms};
use super::process::{Process, instance, perform};
use super::{EXACT_MS, node_of, skewed};

/// What clients do while clocks stand as they do.
const OPERATIONS: usize = 25;
/// The clock of the instance that is a process of its own.
const INSTANCE: &str = "instance";

/// What is true, and two instances that serve it.
struct History {
    random: StdRng,
    accounts: Vec<AccountId>,
    follows: BTreeSet<(AccountId, AccountId)>,
    posts: Vec<(PostId, AccountId)>,
    here: Engine,
    there: Process,
    when: String,
}

fn ids(text: &str) -> Vec<PostId> {
    text.split_whitespace().map(|id| PostId::from_u64(id.parse().unwrap()).unwrap()).collect()
}

impl History {
    /// Has one of the two instances do something.
    async fn ask(&mut self, is_here: bool, line: &str) -> String {
        if is_here { perform(&self.here, line).await } else { self.there.ask(line) }
    }

    fn sees(&self, reader: AccountId, author: AccountId) -> bool {
        reader == author || self.follows.contains(&(reader, author))
    }

    /// What the whole home of a reader holds, or what is above a post.
    fn wanted(&self, reader: AccountId, above: Option<PostId>) -> Vec<PostId> {
        let shown = self.posts.iter().filter(|(_, author)| self.sees(reader, *author));
        let mut wanted: Vec<PostId> =
            shown.map(|(post, _)| *post).filter(|post| above.is_none_or(|above| *post > above)).collect();
        wanted.sort_unstable_by(|a, b| b.cmp(a));
        wanted
    }

    /// Somebody does something at one of the instances; its next page, at any of them, shows that (L3).
    async fn step(&mut self) {
        let pick = |random: &mut StdRng, of: usize| random.random_range(0..of);
        let many = self.accounts.len();
        let [who, whom] = [0; 2].map(|_| self.accounts[pick(&mut self.random, many)]);
        let [at, then] = [0; 2].map(|_| self.random.random_bool(0.5));
        let dice = pick(&mut self.random, 10);
        let own = self.posts.iter().rev().find(|(_, author)| *author == who).map(|(post, _)| *post);
        let (mut shows, mut hides) = (None, Vec::new());
        match (dice, own) {
            (0..5, _) | (5, None) => {
                let began = real_ms();
                let post = ids(&self.ask(at, &format!("publish {}", who.get())).await)[0];
                let time = i64::try_from(post.unix_ms()).unwrap();
                let in_time = (began - EXACT_MS..real_ms() + EXACT_MS).contains(&time);
                assert!(in_time, "{}: {post:?} is {} ms off", self.when, time - began);
                self.posts.push((post, who));
                shows = Some(post);
            }
            (5, Some(post)) => {
                self.ask(at, &format!("delete {} {}", who.get(), post.get())).await;
                self.posts.retain(|(other, _)| *other != post);
                hides.push(post);
            }
            (6 | 7, _) if who != whom && !self.follows.contains(&(who, whom)) => {
                self.ask(at, &format!("follow {} {}", who.get(), whom.get())).await;
                self.follows.insert((who, whom));
                shows = self.posts.iter().filter(|(_, author)| *author == whom).map(|(post, _)| *post).max();
            }
            (8, _) if who != whom => {
                self.ask(at, &format!("unfollow {} {}", who.get(), whom.get())).await;
                self.follows.remove(&(who, whom));
                let theirs = self.posts.iter().filter(|(_, author)| *author == whom);
                hides.extend(theirs.map(|(post, _)| *post));
            }
            _ => {}
        }
        let page = ids(&self.ask(then, &format!("newest {}", who.get())).await);
        let wanted = self.wanted(who, None);
        assert!(page.is_sorted_by(|a, b| a > b), "{}: {page:?}", self.when);
        assert!(page.iter().all(|post| wanted.contains(post)), "{}: {page:?} of {wanted:?}", self.when);
        assert!(!hides.iter().any(|post| page.contains(post)), "{}: {page:?} shows {hides:?}", self.when);
        // An older one than a whole page holds is shown by others.
        let is_old = |post: &PostId| page.len() == 40 && page.last() > Some(post);
        let is_shown = shows.is_none_or(|post| page.contains(&post) || is_old(&post));
        assert!(is_shown, "{}: the next page of {who} lacks {shows:?}", self.when);
    }

    /// Nothing is under way any more: each walk is whole, and whoever pages up from what it had seen gets all that is new.
    async fn compare(&mut self, seen: Option<PostId>) {
        drained(&self.here).await;
        for reader in self.accounts.clone() {
            let is_here = self.random.random_bool(0.5);
            let walked = ids(&self.ask(is_here, &format!("all {}", reader.get())).await);
            assert_eq!(walked, self.wanted(reader, None), "{}: the walk of {reader}", self.when);
            let Some(seen) = seen else { continue };
            let above = ids(&self.ask(!is_here, &format!("above {} {}", reader.get(), seen.get())).await);
            assert_eq!(above, self.wanted(reader, Some(seen)), "{}: {reader} above {seen:?}", self.when);
        }
    }

    /// Health says which clock it is.
    async fn is_told(&mut self, whose: &str, off: i64) {
        let way = if off > 0 { "ahead of" } else { "behind" };
        let starts = format!("{whose}: its clock is 3");
        let there = &mut self.there;
        eventually("health says which clock it is", async || {
            let told = there.ask("health");
            told.split("; ").any(|told| told.starts_with(&starts) && told.contains(way))
        })
        .await;
    }
}

async fn begin(cluster: &Own, clocks: &Clocks, prefix: &str) -> History {
    let seed = &cluster.urls()[0];
    clocks.set(INSTANCE, 0).unwrap();
    let here = instance(cluster.urls(), prefix).await;
    let there = Process::start(clocks, INSTANCE, seed, prefix);
    // Two at each server.
    let all = accounts(&here, 40).await;
    let at = |node: usize| {
        let node = cluster.nodes()[node].addr();
        all.iter().copied().filter(|account| node_of(&here, *account) == node).take(2).collect::<Vec<_>>()
    };
    let accounts = (0..3).flat_map(at).collect();
    let (random, when) = (seeded("clocks_are_set"), String::new());
    History { random, accounts, follows: BTreeSet::new(), posts: Vec::new(), here, there, when }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_law_breaks_while_clocks_of_servers_and_of_instances_are_set_by_hours() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = skewed(&clocks).await;
    let prefix = "clocks";
    let mut history = begin(&cluster, &clocks, prefix).await;
    for clock in ["0", "1", "2", INSTANCE] {
        for off in [HOUR_S, 0, -HOUR_S, 0] {
            history.when = format!("clock {clock} {off} s ahead");
            let node = clock.parse::<usize>().ok().map(|number| cluster.nodes()[number].addr());
            match &node {
                Some(node) => clocks.set_server(clock, &cluster, node, off).await.unwrap(),
                None => clocks.set(clock, off).unwrap(),
            }
            let seen = history.posts.iter().map(|(post, _)| *post).max();
            for _ in 0..OPERATIONS {
                history.step().await;
            }
            if off != 0 {
                let whose = node.map_or_else(|| "this instance".into(), |node| node.to_string());
                history.is_told(&whose, off).await;
                history.step().await;
            }
            // The leases lie at the first server: what dies there is found all the same.
            if clock == "0" || off == 0 {
                let author = history.accounts[0];
                history.there.ask(&format!("publish {}", author.get()));
                history.there = Process::start(&clocks, INSTANCE, &cluster.urls()[0], prefix);
                let page = ids(&history.ask(true, &format!("newest {}", author.get())).await);
                let known: Vec<PostId> = history.posts.iter().map(|(post, _)| *post).collect();
                let new = page.into_iter().filter(|post| !known.contains(post)).map(|post| (post, author));
                history.posts.extend(new.collect::<Vec<_>>());
            }
            history.compare(seen).await;
        }
    }
    println!("{} posts, {} follows", history.posts.len(), history.follows.len());
}
