//! Posts of a plan: which are published, liked, taken back.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::seq::IteratorRandom;

use super::{Planner, RECENT, TAGS};
use crate::verify::call::{Ack, Reach, Tie};
use crate::verify::content::Extent;
use crate::verify::steps::{Action, PostPlan};
use crate::verify::world::PostNo;

/// One post in so many goes viral.
const VIRAL: usize = 400;
/// How many posts are such that HTTP can say all that comes with them, where they go over it.
const SAYABLE: f64 = 0.75;

impl Planner {
    /// Likes and bookmarks: often of posts that others tie themselves to as well, and often taken back.
    pub(super) fn tie(&mut self, actor: u64) -> Option<Action> {
        let what = if self.random.random_bool(0.7) { Tie::Like } else { Tie::Bookmark };
        let on = self.imagined.ties.range((actor, what, 0)..=(actor, what, PostNo::MAX));
        if let Some(tied) = on.choose(&mut self.random).copied()
            && self.random.random_bool(0.4)
        {
            self.imagined.ties.remove(&tied);
            return Some(Action::Tie(what, tied.2, false));
        }
        let no = match self.viral() {
            Some(no) => no,
            None => {
                let posts = &self.imagined.posts;
                let from = posts.len().saturating_sub(if self.random.random_bool(0.5) { 12 } else { RECENT });
                posts[from..].iter().choose(&mut self.random)?.0
            }
        };
        self.imagined.ties.insert((actor, what, no));
        Some(Action::Tie(what, no, true))
    }

    /// Now and then the post that everybody talks about: its lists grow long.
    fn viral(&mut self) -> Option<PostNo> {
        let is_it = |post: &&(PostNo, u64, Reach, bool)| {
            post.0 % VIRAL < VIRAL / 20 && post.2 == Reach::Public && !post.3
        };
        let viral = self.imagined.posts.iter().rev().find(is_it).map(|post| post.0);
        viral.filter(|_| self.random.random_bool(0.35))
    }

    pub(super) fn tags(&mut self) -> Vec<u8> {
        let many = if self.random.random_bool(0.25) { self.random.random_range(1..3) } else { 0 };
        let tags: BTreeSet<u8> = (0..many).map(|_| self.random.random_range(0..TAGS)).collect();
        tags.into_iter().collect()
    }

    pub(super) fn recent(&mut self) -> Option<PostNo> {
        let posts = &self.imagined.posts;
        let from = posts.len().saturating_sub(RECENT);
        posts[from..].iter().choose(&mut self.random).map(|post| post.0)
    }

    pub(super) fn own_post(&mut self, actor: u64) -> Option<PostNo> {
        let posts = &self.imagined.posts;
        let from = posts.len().saturating_sub(RECENT * 2);
        let own = posts[from..].iter().filter(|post| post.1 == actor);
        own.choose(&mut self.random).map(|post| post.0)
    }

    /// A post of its own says something else, and often mentions others, or nobody any more.
    pub(super) fn edit(&mut self, actor: u64) -> Option<Action> {
        let no = self.own_post(actor)?;
        let mentions = match self.random.random_range(0..10) {
            // Over HTTP the text says whom a post mentions, and here it names nobody.
            0..5 if self.is_over_http => Some(Vec::new()),
            0..5 => None,
            5 => Some(Vec::new()),
            _ => Some(self.some_accounts(actor)),
        };
        Some(Action::Edit(no, self.tags(), mentions))
    }

    pub(super) fn own_repost(&mut self, actor: u64) -> Option<PostNo> {
        let own = self.imagined.reposts.iter().rev().take(RECENT).filter(|repost| repost.1 == actor);
        let no = own.choose(&mut self.random)?.0;
        self.imagined.reposts.retain(|repost| repost.0 != no);
        self.imagined.posts.retain(|post| post.0 != no);
        Some(no)
    }

    pub(super) fn delete(&mut self, actor: u64) -> Option<Action> {
        let no = self.own_post(actor)?;
        self.imagined.posts.retain(|post| post.0 != no);
        Some(Action::Delete(no))
    }

    pub(super) fn plain_post(&mut self, author: u64) -> PostPlan {
        let no = self.imagined.next_post;
        self.imagined.next_post += 1;
        self.imagined.posts.push((no, author, Reach::Public, false));
        let extent = if self.is_beside_an_older { Extent::Bare } else { Extent::Whole };
        PostPlan { extent, ..PostPlan::new(no, Reach::Public) }
    }

    pub(super) fn publish(&mut self, actor: u64) -> Option<Action> {
        if self.imagined.states.contains(&actor) && self.random.random_bool(0.9) {
            return None;
        }
        let reach = match self.random.random_range(0..100) {
            0..65 => Reach::Public,
            65..73 => Reach::Unlisted,
            73..90 => Reach::Followers,
            _ => Reach::Direct,
        };
        let no = self.imagined.next_post;
        let mut post = PostPlan::new(no, reach);
        let is_narrow = self.random.random_bool(0.05);
        if reach == Reach::Direct || is_narrow {
            post.only_to = self.some_accounts(actor);
        } else if self.random.random_bool(0.05) {
            post.not_to = self.some_accounts(actor);
        }
        match self.random.random_range(0..100) {
            0..14 => post.original = self.repostable(actor),
            14..30 => post.parent = self.recent(),
            _ => {}
        }
        post.has_text = post.original.is_none() || self.random.random_bool(0.4);
        post.extent = match (self.is_beside_an_older, self.is_over_http) {
            (true, _) => Extent::Bare,
            (_, true) if self.random.random_bool(SAYABLE) => Extent::Sayable,
            _ => Extent::Whole,
        };
        if post.has_text {
            post.tags = self.tags();
            if self.random.random_bool(0.15) {
                post.mentions = self.some_accounts(actor);
                // Whom a direct post mentions may read it.
                post.mentions.retain(|other| reach != Reach::Direct || post.only_to.contains(other));
            }
        }
        post.ack = match self.random.random_range(0..12) {
            0 => Some(Ack::Replicated),
            1 => Some(Ack::First),
            2 => Some(Ack::Delivered),
            _ => None,
        };
        post.has_token = match post.original {
            // Of a plain repost HTTP has a call that takes none; what is for few it makes another one of.
            Some(no) => !(self.is_over_http && !post.has_text && self.is_for_all(no)),
            None => self.random.random_bool(0.9),
        };
        let is_narrowed = !post.only_to.is_empty() || !post.not_to.is_empty();
        if matches!(reach, Reach::Public | Reach::Followers) && !is_narrowed && post.original.is_none() {
            post.says_reach = self.is_plain || self.random.random_bool(0.9);
        }
        let is_locked = self.imagined.locked.contains(&actor);
        let reach = match (post.says_reach, is_locked) {
            (true, _) => reach,
            (false, true) => Reach::Followers,
            (false, false) => Reach::Public,
        };
        let has_audience = !post.only_to.is_empty() || !post.not_to.is_empty();
        self.imagined.next_post += 1;
        self.imagined.posts.push((no, actor, reach, has_audience));
        if post.original.is_some() && !post.has_text {
            self.imagined.reposts.push((no, actor));
        }
        Some(Action::Publish(post))
    }

    /// A recent post that may be passed on. A few are reposted again and again.
    fn repostable(&mut self, actor: u64) -> Option<PostNo> {
        if let Some(no) = self.viral() {
            return Some(no);
        }
        let posts = &self.imagined.posts;
        let from = posts.len().saturating_sub(if self.random.random_bool(0.5) { 12 } else { RECENT });
        let may = |post: &&(PostNo, u64, Reach, bool)| match post.2 {
            Reach::Public | Reach::Unlisted => !post.3,
            Reach::Followers => post.1 == actor,
            Reach::Direct => false,
        };
        posts[from..].iter().filter(may).choose(&mut self.random).map(|post| post.0)
    }

    fn is_for_all(&self, no: PostNo) -> bool {
        let post = self.imagined.posts.iter().rev().find(|post| post.0 == no);
        post.is_some_and(|(_, _, reach, has_audience)| {
            matches!(reach, Reach::Public | Reach::Unlisted) && !has_audience
        })
    }

    fn some_accounts(&mut self, actor: u64) -> Vec<u64> {
        let count = self.random.random_range(1..6);
        let some: BTreeSet<u64> = (0..count).map(|_| self.somebody_but(actor)).collect();
        some.into_iter().collect()
    }
}
