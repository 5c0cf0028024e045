//! Who may see what, as published, written down again without looking at the engine's own filter.

use super::call::{Reach, State, Switch, Tie};
use super::facts::{Tri, Window};
use super::world::{PostFact, PostNo, World};

/// A reader, and when it looked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    world: &'a World,
    reader: u64,
    /// When what the reader did itself is looked at.
    own: Window,
    /// When what others did is looked at: a cache may be this old.
    others: Window,
}

impl<'a> View<'a> {
    pub(crate) fn new(world: &'a World, reader: u64, window: Window) -> Self {
        let others = Window { from: window.from.saturating_sub(world.visible_within), ..window };
        Self { world, reader, own: window, others }
    }

    pub(crate) fn reader(&self) -> u64 {
        self.reader
    }

    /// When what that account did is looked at.
    pub(crate) fn window_of(&self, account: u64) -> Window {
        if account == self.reader { self.own } else { self.others }
    }

    fn follows(&self, author: u64) -> Tri {
        self.world.is_following(self.reader, author, self.own)
    }

    fn mutes(&self, account: u64) -> Tri {
        self.world.is_on(Switch::Mute, self.reader, account, self.own)
    }

    fn blocks(&self, account: u64) -> Tri {
        self.world.is_on(Switch::Block, self.reader, account, self.own)
    }

    fn is_kept_out_by(&self, account: u64) -> Tri {
        let is_on = |what| self.world.is_on(what, account, self.reader, self.others);
        is_on(Switch::Block).or(is_on(Switch::Hide))
    }

    fn state_is(&self, account: u64, is_so: impl Fn(State) -> bool) -> Tri {
        let window = self.window_of(account);
        self.world.states.get(&account).map_or(Tri::No, |fact| fact.is(window, is_so))
    }

    fn exists(&self, post: &PostFact) -> Tri {
        post.exists(self.window_of(post.author))
    }

    /// Whether the reader may see a post that is there, wherever it meets it.
    fn may_read(&self, post: &PostFact) -> Tri {
        let author = post.author;
        let is_seen = self.state_is(author, |state| matches!(state, State::Active | State::Limited));
        if author == self.reader {
            return is_seen;
        }
        let is_named = post.only_to.contains(&self.reader);
        let is_left_out = !post.only_to.is_empty() && !is_named || post.not_to.contains(&self.reader);
        if is_left_out {
            return Tri::No;
        }
        let reaches = match post.reach {
            Reach::Direct => Tri::from(is_named),
            Reach::Followers => self.follows(author),
            Reach::Public | Reach::Unlisted => {
                self.state_is(author, |state| state == State::Active).or(self.follows(author))
            }
        };
        let is_shown = post.hidden.is(self.others, |is| is).not();
        let admits = self.is_kept_out_by(author).not().and(self.blocks(author).not());
        is_seen.and(is_shown).and(admits).and(reaches)
    }

    /// A repost shows only with its original, as that would show by itself. A quote also when its original is gone, not when
    /// it is out of bounds.
    fn original_allows(&self, post: &PostFact) -> Tri {
        let Some(original) = post.original.and_then(|no| self.world.post(no)) else { return Tri::Yes };
        let is_there = self.exists(original);
        let is_own = post.author == self.reader;
        let unmuted = if is_own { Tri::Yes } else { self.mutes(original.author).not() };
        let shows = self.may_read(original).and(unmuted);
        match post.has_text {
            true => is_there.not().or(shows),
            false => is_there.and(shows).and(self.original_allows(original)),
        }
    }

    /// Whether a post belongs into the reader's home.
    pub(crate) fn at_home(&self, post: &PostFact) -> Tri {
        if post.author == self.reader {
            return self.may_meet(post);
        }
        let wanted = self.follows(post.author).and(self.mutes(post.author).not());
        if wanted == Tri::No {
            return Tri::No;
        }
        let answers = match post.parent.and_then(|no| self.world.post(no)) {
            None => Tri::Yes,
            Some(parent) => self.answer_to(post.author, parent.author),
        };
        let allowed = self.may_read(post).and(self.original_allows(post));
        self.exists(post).and(wanted).and(answers).and(allowed)
    }

    /// Whether the reader wants to hear what `author` answers to `other`.
    fn answer_to(&self, author: u64, other: u64) -> Tri {
        let is_close = other == author || other == self.reader;
        let is_known = Tri::from(is_close).or(self.follows(other));
        is_known.and(self.mutes(other).not()).and(self.blocks(other).not())
    }

    /// Whether a post belongs onto its author's page, as the reader may see that.
    pub(crate) fn on_profile(&self, post: &PostFact, replies: bool, reposts: bool) -> Tri {
        let parent = post.parent.and_then(|no| self.world.post(no));
        let is_answer = parent.is_some_and(|parent| parent.author != post.author);
        if is_answer && !replies || post.is_plain_repost() && !reposts {
            return Tri::No;
        }
        self.may_meet(post)
    }

    /// Whether an account is there.
    pub(crate) fn is_there(&self, account: u64) -> Tri {
        self.state_is(account, |state| state != State::Deleted)
    }

    /// Whether a post that is on a list of posts by anybody shows there.
    pub(crate) fn on_list(&self, post: &PostFact) -> Tri {
        let is_own = post.author == self.reader;
        let unmuted = if is_own { Tri::Yes } else { self.mutes(post.author).not() };
        self.may_meet(post).and(unmuted)
    }

    /// Whether the reader may see a post wherever it looks for it.
    pub(crate) fn may_meet(&self, post: &PostFact) -> Tri {
        self.exists(post).and(self.may_read(post)).and(self.original_allows(post))
    }

    /// Whether the reader has tied itself to a post.
    pub(crate) fn is_tied(&self, what: Tie, post: PostNo) -> Tri {
        self.world.is_tied(what, self.reader, self.world.subject(post), self.own)
    }

    /// The posts that certainly belong into the reader's home, newest first.
    pub(crate) fn home(&self) -> Vec<PostNo> {
        let is_shown = |no: &&PostNo| self.world.post(**no).is_some_and(|p| self.at_home(p) == Tri::Yes);
        self.world.by_id.values().rev().filter(is_shown).copied().collect()
    }
}
