//! Who may see what, as published, written down again without looking at the engine's own filter.

use super::call::{People, Reach, Relation, State, Switch, Tie};
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
        let is_seen = self.is_seen(author);
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

    /// Whether the reader has reposted it, without a comment.
    pub(crate) fn has_reposted(&self, post: PostNo) -> Tri {
        let subject = self.world.subject(post);
        let is_it =
            |p: &&PostFact| p.author == self.reader && p.is_plain_repost() && p.original == Some(subject);
        let all = self.world.posts.iter().flatten().filter(is_it).filter(|p| p.start > 0);
        all.map(|p| p.exists(self.own)).fold(Tri::No, Tri::or)
    }

    /// Whether somebody else likes a post.
    pub(crate) fn likes(&self, account: u64, post: PostNo) -> Tri {
        let window = self.window_of(account);
        self.world.is_tied(Tie::Like, account, self.world.subject(post), window)
    }

    /// Whether an account is there for others to see.
    pub(crate) fn is_seen(&self, account: u64) -> Tri {
        self.state_is(account, |state| matches!(state, State::Active | State::Limited))
    }

    /// Whether an account lets the reader look at it.
    pub(crate) fn may_look_at(&self, account: u64) -> Tri {
        let is_open = if account == self.reader { Tri::Yes } else { self.is_kept_out_by(account).not() };
        self.is_seen(account).and(is_open)
    }

    /// Whether the reader meets an account on a list of people.
    pub(crate) fn meets(&self, account: u64) -> Tri {
        let is_unwanted = self.blocks(account).or(self.mutes(account));
        self.may_look_at(account).and(is_unwanted.not())
    }

    /// Whether an account is on a list of people, as the reader sees it.
    pub(crate) fn is_on_list(&self, account: u64, of: People) -> Tri {
        let of_whom = |whose: u64, follows: Tri| match whose == self.reader {
            true => follows.and(self.is_seen(account)).and(self.blocks(account).not()),
            false => follows.and(self.may_look_at(whose)).and(self.meets(account)),
        };
        let follows =
            |reader: u64, author: u64| self.world.is_following(reader, author, self.window_of(reader));
        match of {
            People::Followers(whose) => of_whom(whose, follows(account, whose)),
            People::Following(whose) => of_whom(whose, follows(whose, account)),
            People::Own(what) => {
                self.world.is_on(what, self.reader, account, self.own).and(self.is_seen(account))
            }
        }
    }

    /// How the reader stands to an account: each fact with whether it is so.
    pub(crate) fn relation(&self, other: u64, said: Relation) -> [(&'static str, bool, Tri); 7] {
        let on = |what, by, other| self.world.is_on(what, by, other, self.window_of(by));
        let follows = |a, b| self.world.is_following(a, b, self.window_of(a));
        let has_asked = self.world.requests.contains_key(&(other, self.reader));
        let may_ask = if has_asked { Tri::Maybe } else { Tri::No };
        [
            ("follows", said.follows, follows(self.reader, other)),
            ("is followed by", said.is_followed, follows(other, self.reader)),
            ("mutes", said.mutes, on(Switch::Mute, self.reader, other)),
            ("blocks", said.blocks, on(Switch::Block, self.reader, other)),
            ("is blocked by", said.is_blocked, on(Switch::Block, other, self.reader)),
            ("hides from", said.hides, on(Switch::Hide, self.reader, other)),
            ("is asked by", said.is_requested, may_ask),
        ]
    }

    /// The posts that certainly belong into the reader's home, newest first.
    pub(crate) fn home(&self) -> Vec<PostNo> {
        let is_shown = |no: &&PostNo| self.world.post(**no).is_some_and(|p| self.at_home(p) == Tri::Yes);
        self.world.by_id.values().rev().filter(is_shown).copied().collect()
    }
}
