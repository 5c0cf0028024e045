//! Everybody's whole timeline, read in all directions when nothing changes any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};

use super::call::{Asked, List, People, Switch, Tie, Which};
use super::check::Wrong;
use super::looks::Look;
use super::plan::TAGS;
use super::run::Run;
use super::world::{PostFact, PostNo};

/// Readers at the same time.
const AT_ONCE: usize = 16;
/// Pages of one walk; more than any timeline here has.
const PAGES_MAX: usize = 20_000;
/// Posts whose replies and conversations are read.
const REPLIED: usize = 3;
/// Posts whose likers, reposters and quotes are read.
const AROUND: usize = 3;
/// Posts, and accounts, that are looked at by their ids.
const LOOKED_AT: usize = 40;
/// Pages from random places.
const ELSEWHERE: usize = 4;

/// How thoroughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// One walk down, and what is around some posts.
    Round,
    /// Down and up, from random places, and profiles.
    All,
}

/// Walks all timelines. The pages are checked with all others.
pub(crate) async fn walk(run: &Arc<Run>, seed: u64, depth: Depth) {
    let accounts = run.world().accounts.clone();
    stream::iter(accounts)
        .for_each_concurrent(AT_ONCE, |reader| async move {
            let mut walker = Walker { run, reader, random: StdRng::seed_from_u64(seed ^ reader) };
            walker.down(Which::Home).await;
            if depth == Depth::All {
                walker.up(Which::Home).await;
                walker.elsewhere().await;
                let account = u64::from(walker.random.random_range(1..=30_u32));
                for account in [account, reader].into_iter().chain(walker.somebody_gone()) {
                    let replies = walker.random.random_bool(0.5);
                    let which = Which::Profile { account, replies, reposts: walker.random.random_bool(0.5) };
                    walker.down(which).await;
                }
                walker.lists().await;
                walker.others().await;
                let limit = walker.limit();
                Look { run, reader }.list(List::Ranked, limit).await;
            }
            walker.around(if depth == Depth::All { AROUND } else { 1 }).await;
        })
        .await;
}

struct Walker<'a> {
    run: &'a Arc<Run>,
    reader: u64,
    random: StdRng,
}

impl Walker<'_> {
    fn limit(&mut self) -> usize {
        if self.random.random_bool(0.2) {
            self.random.random_range(1..4)
        } else {
            self.random.random_range(4..101)
        }
    }

    /// An account that was deleted, if there is one.
    fn somebody_gone(&mut self) -> Option<u64> {
        let world = self.run.world();
        let gone = world.states.keys().copied().filter(|account| world.is_deleted(*account));
        let gone: BTreeSet<u64> = gone.collect();
        gone.into_iter().choose(&mut self.random)
    }

    /// Pages are asked of all instances in turn: a cursor of one is good at another.
    async fn down(&mut self, which: Which) {
        let mut asked = Asked { which, ..Asked::home(self.reader, 1) };
        for page in 0..PAGES_MAX {
            asked.limit = self.limit();
            asked.hydrate = self.random.random_bool(0.2);
            asked.around = asked.hydrate && self.random.random_bool(0.3);
            let Some(page) = self.run.read(page, asked).await else { return };
            match page.next {
                Some(next) if asked.cursor.is_none_or(|cursor| next < cursor) => asked.cursor = Some(next),
                // The check of the page says that it doesn't move.
                Some(_) => return,
                None => return,
            }
        }
        self.run.wrong(Wrong::Stuck, self.reader, None, format!("{asked:?}: a walk down doesn't end"));
    }

    /// Mentions, a hashtag, what is public, and the replies to some posts, down and up; and conversations.
    async fn lists(&mut self) {
        let replied: Vec<u64> = {
            let world = self.run.world();
            let parents = world.posts.iter().flatten().filter_map(|post| world.post(post.parent?)?.id);
            parents.collect()
        };
        let tag = self.random.random_range(0..TAGS);
        let replies =
            (0..REPLIED.min(replied.len())).map(|_| replied[self.random.random_range(0..replied.len())]);
        let replies: Vec<u64> = replies.collect();
        let public = (!self.run.world().is_beside_an_older).then_some(Which::Public);
        let lists = [Which::Mentions, Which::Tag(tag)];
        for which in lists.into_iter().chain(public).chain(replies.iter().copied().map(Which::Replies)) {
            self.down(which).await;
            self.up(which).await;
        }
        let look = Look { run: self.run, reader: self.reader };
        for post in replies {
            look.conversation(post).await;
        }
    }

    /// Who likes and reposts some posts, and what quotes them; who waits for whom. `many`: of each kind.
    async fn around(&mut self, many: usize) {
        let look = Look { run: self.run, reader: self.reader };
        let (liked, reposted, quoted) = {
            let world = self.run.world();
            let id = |no: PostNo| world.post(no).and_then(|post| post.id);
            let mut liked: Vec<u64> =
                world.ties.keys().filter(|tie| tie.0 == Tie::Like).filter_map(|tie| id(tie.2)).collect();
            liked.sort_unstable();
            let (quotes, reposts): (Vec<_>, Vec<_>) =
                world.posts.iter().flatten().partition(|post| post.has_text);
            let originals = |of: Vec<&PostFact>| -> Vec<u64> {
                of.into_iter().filter_map(|post| id(post.original?)).collect()
            };
            (liked, originals(reposts), originals(quotes))
        };
        self.some_of(&liked, many, List::Likers).await;
        self.some_of(&reposted, many, List::Reposters).await;
        self.some_of(&quoted, many, List::Quotes).await;
        for of in [People::Requests, People::Requested] {
            look.list(List::People(of), self.limit()).await;
        }
    }

    async fn some_of(&mut self, posts: &[u64], many: usize, list: fn(u64) -> List) {
        for _ in 0..many.min(posts.len()) {
            let post = posts[self.random.random_range(0..posts.len())];
            Look { run: self.run, reader: self.reader }.list(list(post), self.limit()).await;
        }
    }

    async fn up(&mut self, which: Which) {
        let mut asked = Asked { which, min: Some(0), ..Asked::home(self.reader, 1) };
        for page in 0..PAGES_MAX {
            asked.limit = self.limit();
            let Some(page) = self.run.read(page, asked).await else { return };
            match page.newer {
                Some(newer) if asked.min.is_none_or(|min| newer > min) => asked.min = Some(newer),
                _ => return,
            }
        }
        self.run.wrong(Wrong::Stuck, self.reader, None, format!("{asked:?}: a walk up doesn't end"));
    }

    /// Posts by their ids, and lists of people.
    async fn others(&mut self) {
        let (ids, accounts): (Vec<u64>, Vec<u64>) = {
            let world = self.run.world();
            (world.by_id.keys().copied().collect(), world.states.keys().copied().collect())
        };
        let mut some = |of: &[u64]| -> Vec<u64> {
            let many = LOOKED_AT.min(of.len());
            (0..many).map(|_| of[self.random.random_range(0..of.len())]).collect()
        };
        let (posts, others) = (some(&ids), some(&accounts));
        let look = Look { run: self.run, reader: self.reader };
        look.by_ids(posts).await;
        for account in others.first().copied().into_iter().chain([self.reader]) {
            for of in [People::Followers(account), People::Following(account)] {
                look.list(List::People(of), self.limit()).await;
            }
        }
        for what in [Switch::Mute, Switch::Block, Switch::Hide] {
            look.list(List::People(People::Own(what)), self.limit()).await;
        }
        look.relations(others).await;
    }

    async fn elsewhere(&mut self) {
        let ids: Vec<u64> = self.run.world().by_id.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        for page in 0..ELSEWHERE {
            // Beside a post as often as at one.
            let mut place = || {
                let id = ids[self.random.random_range(0..ids.len())];
                Some(id.saturating_add_signed(self.random.random_range(-1..=1)))
            };
            let mut asked = Asked::home(self.reader, 1);
            match page % 4 {
                0 => asked.max = place(),
                1 => asked.since = place(),
                2 => asked.min = place(),
                _ => (asked.min, asked.max) = (place(), place()),
            }
            asked.limit = self.limit();
            self.run.read(page, asked).await;
        }
    }
}
