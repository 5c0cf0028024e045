//! A random history while wall clocks are set an hour forward and back, those of the servers and of the instances in
//! turn, and while each server whose clock is off fails over.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tideline::cluster::{Command, NodeAddr, Reply};
use tideline::{AccountId, PostId};
use tideline_local_cluster::ClusterSpec;

use super::super::engine::accounts;
use super::super::harness::{Own, PATIENCE, eventually, own, seeded};
use super::super::skew::{Clocks, HOUR_S, real_ms};
use super::process::{Process, instance};
use super::{EXACT_MS, node_of};

/// What clients do while clocks stand as they do.
const OPERATIONS: usize = 12;
/// The same at night.
const OPERATIONS_LONG: usize = 300;
/// The clocks of the instances.
const INSTANCES: [&str; 2] = ["one", "other"];
/// Those of the servers: primaries, then their replicas.
const SERVERS: [&str; 6] = ["0", "1", "2", "3", "4", "5"];
const PREFIX: &str = "clocks";

/// What is true, and two instances that serve it.
struct History {
    random: StdRng,
    accounts: Vec<AccountId>,
    follows: BTreeSet<(AccountId, AccountId)>,
    posts: Vec<(PostId, AccountId)>,
    instances: [Process; 2],
    operations: usize,
    when: String,
}

fn ids(text: &str) -> Vec<PostId> {
    text.split_whitespace().map(|id| PostId::from_u64(id.parse().unwrap()).unwrap()).collect()
}

fn pick(random: &mut StdRng, of: usize) -> usize {
    random.random_range(0..of)
}

impl History {
    /// Has one of the two instances do something.
    fn ask(&mut self, at: usize, line: &str) -> String {
        self.instances[at].ask(line)
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
    fn step(&mut self) {
        let many = self.accounts.len();
        let [who, whom] = [0; 2].map(|_| self.accounts[pick(&mut self.random, many)]);
        let [at, then] = [0; 2].map(|_| pick(&mut self.random, 2));
        let dice = pick(&mut self.random, 10);
        let own = self.posts.iter().rev().find(|(_, author)| *author == who).map(|(post, _)| *post);
        let (mut shows, mut hides) = (None, Vec::new());
        match (dice, own) {
            (0..5, _) | (5, None) => {
                let began = real_ms();
                let post = ids(&self.ask(at, &format!("publish {}", who.get())))[0];
                let time = i64::try_from(post.unix_ms()).unwrap();
                let in_time = (began - EXACT_MS..real_ms() + EXACT_MS).contains(&time);
                assert!(in_time, "{}: {post:?} is {} ms off", self.when, time - began);
                self.posts.push((post, who));
                shows = Some(post);
            }
            (5, Some(post)) => {
                self.ask(at, &format!("delete {} {}", who.get(), post.get()));
                self.posts.retain(|(other, _)| *other != post);
                hides.push(post);
            }
            (6 | 7, _) if who != whom && !self.follows.contains(&(who, whom)) => {
                self.ask(at, &format!("follow {} {}", who.get(), whom.get()));
                self.follows.insert((who, whom));
                shows = self.posts.iter().filter(|(_, author)| *author == whom).map(|(post, _)| *post).max();
            }
            (8, _) if who != whom => {
                self.ask(at, &format!("unfollow {} {}", who.get(), whom.get()));
                self.follows.remove(&(who, whom));
                let theirs = self.posts.iter().filter(|(_, author)| *author == whom);
                hides.extend(theirs.map(|(post, _)| *post));
            }
            _ => {}
        }
        let page = ids(&self.ask(then, &format!("newest {}", who.get())));
        let wanted = self.wanted(who, None);
        assert!(page.is_sorted_by(|a, b| a > b), "{}: {page:?}", self.when);
        assert!(page.iter().all(|post| wanted.contains(post)), "{}: {page:?} of {wanted:?}", self.when);
        assert!(!hides.iter().any(|post| page.contains(post)), "{}: {page:?} shows {hides:?}", self.when);
        // An older one than a whole page holds is shown by others.
        let is_old = |post: &PostId| page.len() == 40 && page.last() > Some(post);
        let is_shown = shows.is_none_or(|post| page.contains(&post) || is_old(&post));
        assert!(is_shown, "{}: the next page of {who} lacks {shows:?}", self.when);
    }

    /// Nothing is under way any more: each walk is whole, and whoever pages up from what it had seen gets all that is
    /// new.
    fn compare(&mut self, seen: Option<PostId>) {
        let one = pick(&mut self.random, 2);
        self.ask(one, "drain");
        for reader in self.accounts.clone() {
            let one = pick(&mut self.random, 2);
            let walked = ids(&self.ask(one, &format!("all {}", reader.get())));
            assert_eq!(walked, self.wanted(reader, None), "{}: the walk of {reader}", self.when);
            let Some(seen) = seen else { continue };
            let above = ids(&self.ask(1 - one, &format!("above {} {}", reader.get(), seen.get())));
            assert_eq!(above, self.wanted(reader, Some(seen)), "{}: {reader} above {seen:?}", self.when);
        }
    }

    /// An instance's health says which clock it is.
    async fn is_told(&mut self, at: usize, whose: &str, off: i64) {
        let way = if off > 0 { "ahead of" } else { "behind" };
        let starts = format!("{whose}: its clock is 3");
        let instance = &mut self.instances[at];
        eventually("health says which clock it is", async || {
            let told = instance.ask("health");
            told.split("; ").any(|told| told.starts_with(&starts) && told.contains(way))
        })
        .await;
    }

    /// An instance dies right after a post, and what it has left is found all the same; another one begins.
    fn dies(&mut self, at: usize, clocks: &Clocks, cluster: &Own) {
        let author = self.accounts[0];
        let post = ids(&self.ask(at, &format!("publish {}", author.get())))[0];
        self.posts.push((post, author));
        self.instances[at] = Process::start(clocks, INSTANCES[at], &cluster.urls()[0], PREFIX);
    }

    /// Some time passes while a clock is off, or right again, and an instance dies.
    async fn lives(&mut self, when: String, clocks: &Clocks, cluster: &Own, told: Option<(&str, i64)>) {
        self.when = when;
        let seen = self.posts.iter().map(|(post, _)| *post).max();
        for _ in 0..self.operations {
            self.step();
        }
        if let Some((whose, off)) = told {
            // Of its own clock only an instance itself knows.
            let at = INSTANCES.iter().position(|name| *name == whose);
            let whose = if at.is_some() { "this instance" } else { whose };
            self.is_told(at.unwrap_or(0), whose, off).await;
            self.step();
        }
        let dying = pick(&mut self.random, 2);
        self.dies(dying, clocks, cluster);
        self.compare(seen);
    }
}

async fn begin(cluster: &Own, clocks: &Clocks, operations: usize) -> History {
    let setup = instance(cluster.urls(), PREFIX).await;
    // Two at each primary.
    let all = accounts(&setup, 40).await;
    let at = |node: usize| {
        let node = cluster.nodes()[node].addr();
        all.iter().copied().filter(|account| node_of(&setup, *account) == node).take(2).collect::<Vec<_>>()
    };
    let accounts = (0..3).flat_map(at).collect();
    setup.shutdown(PATIENCE).await.unwrap();
    let instances = INSTANCES.map(|clock| Process::start(clocks, clock, &cluster.urls()[0], PREFIX));
    let (random, when) = (seeded("clocks_are_set"), String::new());
    History { random, accounts, follows: BTreeSet::new(), posts: Vec::new(), instances, operations, when }
}

/// The server with that clock.
fn server(cluster: &Own, clock: &str) -> NodeAddr {
    cluster.nodes()[clock.parse::<usize>().unwrap()].addr()
}

/// Fails over, and waits until the server that was primary knows that. Until then it answers reads with what it had,
/// and a page from there may lack one's own post, whatever a clock says: the exception to L3, which
/// `partitions::ones_own_post_is_missing_only_where_the_map_is_older_than_a_failover` makes.
async fn fail_over(cluster: &Own, primary: &str, replica: &str) {
    cluster.failover(&server(cluster, replica)).await.unwrap();
    let replaced = server(cluster, primary);
    eventually("the server that was replaced follows", async || {
        let role = cluster.ask(&replaced, Command::new("ROLE")).await;
        let role = role.and_then(Reply::into_array);
        role.is_ok_and(|role| role.first().is_some_and(|role| role.text().is_ok_and(|role| role == "slave")))
    })
    .await;
}

/// The primary of each pair is off, and fails over to its replica, whose clock is right; then that one is off.
async fn live(clocks: &Clocks, operations: usize) {
    let spec = ClusterSpec::ephemeral().replicas(1).node_timeout(Duration::from_secs(30));
    let cluster = own(clocks.of_servers(spec, &[0, 1, 2, 3, 4, 5].map(|n| (n, SERVERS[n])))).await;
    let mut history = begin(&cluster, clocks, operations).await;
    let mut failovers = 0;
    // Some fail over while they are ahead, some while they are behind.
    for (primary, off) in [(SERVERS[0], HOUR_S), (SERVERS[1], -HOUR_S), (SERVERS[2], HOUR_S)] {
        let replica = cluster.replica_of(&server(&cluster, primary)).await.unwrap().addr();
        let replica = *SERVERS.iter().find(|clock| server(&cluster, clock) == replica).unwrap();
        let turns = [
            (primary, None, -off),
            (primary, Some(replica), off),
            (replica, None, -off),
            (replica, None, off),
        ];
        for (clock, next, off) in turns {
            let whose = server(&cluster, clock);
            clocks.set_server(clock, &cluster, &whose, off).await.unwrap();
            let when = format!("the clock of server {clock} is {off} s ahead");
            history.lives(when, clocks, &cluster, Some((&whose.to_string(), off))).await;
            if let Some(next) = next {
                fail_over(&cluster, clock, next).await;
                failovers += 1;
                let when = format!("server {next} follows {clock}, whose clock is {off} s ahead");
                history.lives(when, clocks, &cluster, None).await;
            }
            clocks.set_server(clock, &cluster, &whose, 0).await.unwrap();
        }
        history.lives(format!("the clock of server {replica} is right again"), clocks, &cluster, None).await;
    }
    for clock in INSTANCES {
        for off in [HOUR_S, -HOUR_S, 0] {
            clocks.set(clock, off).unwrap();
            let told = (off != 0).then_some((clock, off));
            history.lives(format!("instance {clock} is {off} s ahead"), clocks, &cluster, told).await;
        }
    }
    println!("{} posts, {} follows, {failovers} failovers", history.posts.len(), history.follows.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_law_breaks_while_clocks_of_servers_and_of_instances_are_set_by_hours() {
    let Some(clocks) = Clocks::new() else { return };
    live(&clocks, OPERATIONS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: make verify-long"]
async fn no_law_breaks_in_a_long_history_either() {
    let Some(clocks) = Clocks::new() else { return };
    live(&clocks, OPERATIONS_LONG).await;
}
