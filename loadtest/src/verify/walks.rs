//! Everybody's whole timeline, read in all directions when nothing changes any more.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::call::{Asked, Call, Reply, Tie, Which};
use super::check::Wrong;
use super::facts::{Tri, Window};
use super::plan::TAGS;
use super::rules::View;
use super::run::{Ended, Run};
use super::world::{PostFact, PostNo};

/// Readers at the same time.
const AT_ONCE: usize = 16;
/// Pages of one walk; more than any timeline here has.
const PAGES_MAX: usize = 20_000;
/// Posts whose replies and conversations are read.
const REPLIED: usize = 3;
/// A conversation of fewer posts shows all that answers its post.
const CONVERSATION_SMALL: usize = 40;
/// Pages from random places.
const ELSEWHERE: usize = 4;

/// How thoroughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// One walk down.
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
                for account in [account, reader] {
                    let replies = walker.random.random_bool(0.5);
                    let which = Which::Profile { account, replies, reposts: walker.random.random_bool(0.5) };
                    walker.down(which).await;
                }
                walker.lists().await;
            }
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

    /// Pages are asked of all instances in turn: a cursor of one is good at another.
    async fn down(&mut self, which: Which) {
        let mut asked = Asked { which, ..Asked::home(self.reader, 1) };
        for page in 0..PAGES_MAX {
            asked.limit = self.limit();
            asked.hydrate = self.random.random_bool(0.2);
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

    /// Mentions, a hashtag, and the replies to some posts, down and up; and conversations.
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
        let lists = [Which::Mentions, Which::Tag(tag)];
        for which in lists.into_iter().chain(replies.iter().copied().map(Which::Replies)) {
            self.down(which).await;
            self.up(which).await;
        }
        for post in replies {
            self.conversation(post).await;
            self.around(post, false).await;
        }
        let reposted: Vec<u64> = {
            let world = self.run.world();
            let originals = world.posts.iter().flatten().filter(|post| post.is_plain_repost());
            originals.filter_map(|repost| world.post(repost.original?)?.id).collect()
        };
        for _ in 0..REPLIED.min(reposted.len()) {
            let post = reposted[self.random.random_range(0..reposted.len())];
            self.around(post, true).await;
        }
    }

    /// Nobody is told of a like that isn't there, or of a repost that is not for the reader.
    async fn around(&mut self, post: u64, reposts: bool) {
        let (run, reader, limit) = (self.run, self.reader, self.limit());
        let from = run.now();
        let number = usize::try_from(reader).unwrap_or(0);
        let call = Call::Around { reader, post, reposts, limit };
        let Ended::Done(Reply::Ids(shown)) = run.call(number, call).await else { return };
        let mut found = Vec::new();
        {
            let world = run.world();
            let Some(no) = world.by_id.get(&post).copied() else { return };
            let now = Window { from, to: run.now() };
            let view = View::new(&world, reader, now);
            for account in shown {
                let reposted = |fact: &PostFact| {
                    let is_it = fact.author == account && fact.original == Some(no) && fact.is_plain_repost();
                    is_it && fact.start > 0 && view.on_list(fact) != Tri::No
                };
                let may_show = match reposts {
                    true => world.posts.iter().flatten().any(reposted),
                    false => world.is_tied(Tie::Like, account, no, now) != Tri::No,
                };
                if !may_show {
                    let what = if reposts { "reposts" } else { "likes" };
                    found.push((no, format!("that {account} {what} {post} must not show")));
                }
            }
        }
        for (no, text) in found {
            run.wrong(Wrong::Leaked, reader, Some(no), text);
        }
    }

    /// Whatever shows in a conversation may show.
    async fn conversation(&mut self, post: u64) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let call = Call::Conversation { reader, post };
        let number = usize::try_from(reader).unwrap_or(0);
        let Ended::Done(Reply::Ids(shown)) = run.call(number, call).await else { return };
        let mut found = Vec::new();
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let fact = |id: &u64| world.by_id.get(id).and_then(|no| Some((*no, world.post(*no)?)));
            for id in &shown {
                if let Some((no, _)) = fact(id).filter(|(_, post)| view.may_meet(post) == Tri::No) {
                    found.push((
                        Wrong::Leaked,
                        no,
                        format!("{id} must not show in the conversation of {post}"),
                    ));
                }
            }
            let answers = |answer: &PostFact| answer.parent.and_then(|no| world.post(no)?.id) == Some(post);
            let all: Vec<PostNo> =
                world.by_id.values().copied().filter(|no| world.post(*no).is_some_and(answers)).collect();
            for no in all.iter().filter(|_| shown.len() < CONVERSATION_SMALL) {
                let Some(answer) = world.post(*no) else { continue };
                let is_shown = answer.id.is_some_and(|id| shown.contains(&id));
                if view.on_list(answer) == Tri::Yes && !is_shown {
                    let text = format!("{:?} must show in the conversation of {post}", answer.id);
                    found.push((Wrong::Missing, *no, text));
                }
            }
        }
        for (wrong, no, text) in found {
            run.wrong(wrong, reader, Some(no), text);
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
