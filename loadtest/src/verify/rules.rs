//! Who may see what, as published, written down again without looking at the engine's own filter.

use std::collections::{BTreeMap, HashMap};

use super::call::{List, People, Reach, State, Switch, Tie};
use super::facts::{Tri, Window};
use super::told::Relation;
use super::world::{PostFact, PostNo, World};

/// Posts of which surely no bucket has more than it keeps for the public timeline, though a few authors write most.
const PUBLIC_MOST: usize = 10_000;

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

    /// Whether what that account says to its followers is for the reader too. It may seem to be locked still, as others
    /// are seen, while the reader's own follow shows: of one that has not been answered that is not so.
    fn is_let_in(&self, author: u64) -> Tri {
        let follows = self.follows(author);
        let fact = self.world.follows.get(&(self.reader, author));
        let is_new =
            fact.is_some_and(|fact| fact.changes.iter().any(|c| c.value && c.start >= self.others.from));
        let may_seem_locked = self.world.lock(author, self.others.from, self.others.to) != Tri::No;
        if is_new && may_seem_locked { follows.and(Tri::Maybe) } else { follows }
    }

    fn mutes(&self, account: u64) -> Tri {
        self.world.is_on(Switch::Mute, self.reader, account, self.own)
    }

    fn hides_reposts(&self, author: u64) -> Tri {
        self.world.hides_reposts((self.reader, author), self.own)
    }

    fn leaves_out(&self, author: u64) -> Tri {
        self.world.is_on(Switch::LeftOut, self.reader, author, self.own)
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

    pub(crate) fn exists(&self, post: &PostFact) -> Tri {
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
        let is_meant = match post.reach {
            Reach::Direct => Tri::from(is_named),
            Reach::Followers => post.mentions(self.reader, self.window_of(author)),
            Reach::Public | Reach::Unlisted => Tri::Yes,
        };
        let is_followed = self.is_let_in(author);
        let reaches = match post.reach {
            Reach::Direct if !is_named => Tri::No,
            _ => is_meant.and(self.state_is(author, |state| state == State::Active)).or(is_followed),
        };
        let is_shown = post.hidden.is(self.others, |is| is).not();
        let admits = self.is_kept_out_by(author).not().and(self.blocks(author).not());
        is_seen.and(is_shown).and(admits).and(reaches)
    }

    /// What a post passes on, and whether that is there.
    pub(crate) fn original(&self, post: &PostFact) -> Option<(&'a PostFact, Tri)> {
        let original = self.world.post(post.original?)?;
        Some((original, self.exists(original)))
    }

    /// A repost shows only with its original, as that would show by itself. A quote also when its original is gone, not
    /// when it is out of bounds.
    fn original_allows(&self, post: &PostFact) -> Tri {
        let Some((original, is_there)) = self.original(post) else { return Tri::Yes };
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
        let is_left_out = if post.is_plain_repost() { self.hides_reposts(post.author) } else { Tri::No };
        let is_left_out = is_left_out.or(self.leaves_out(post.author));
        let wanted = self.follows(post.author).and(self.mutes(post.author).or(is_left_out).not());
        if wanted == Tri::No {
            return Tri::No;
        }
        let answers = match post.parent.and_then(|no| self.world.post(no)) {
            None => Tri::Yes,
            Some(parent) => self.answer_to(post.author, parent.author),
        };
        let original = self.original(post).filter(|_| post.is_plain_repost());
        let of_original = original.map_or(Tri::No, |(original, _)| self.names_unwanted(original));
        let names_nobody = self.names_unwanted(post).or(of_original).not();
        let allowed = self.may_read(post).and(self.original_allows(post));
        self.exists(post).and(wanted).and(answers).and(names_nobody).and(allowed)
    }

    /// Whether a post that another one wrote mentions somebody whom the reader mutes or blocks.
    fn names_unwanted(&self, post: &PostFact) -> Tri {
        if post.author == self.reader {
            return Tri::No;
        }
        let names_one = post.may_say(self.window_of(post.author), |said| {
            let unwanted = said.mentions.iter().map(|other| self.mutes(*other).or(self.blocks(*other)));
            unwanted.fold(Tri::No, Tri::or)
        });
        if self.world.is_beside_an_older { names_one.and(Tri::Maybe) } else { names_one }
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

    /// Whether a post shows among all that is public: it names no readers, says something, and answers nobody else.
    pub(crate) fn on_public_page(&self, post: &PostFact) -> Tri {
        let parent = post.parent.and_then(|no| self.world.post(no));
        let is_answer = parent.is_some_and(|parent| parent.author != post.author);
        match post.reach == Reach::Public && post.is_for_all() && !post.is_plain_repost() && !is_answer {
            // With more some may have left their bucket's list.
            true if self.world.by_id.len() > PUBLIC_MOST => self.on_list(post).and(Tri::Maybe),
            true => self.on_list(post),
            false => Tri::No,
        }
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

    /// Whether the reader is told what an account does: of one that is limited only who follows it.
    pub(crate) fn is_told_by(&self, account: u64) -> Tri {
        let is_limited = self.state_is(account, |state| state == State::Limited);
        self.meets(account).and(is_limited.not().or(self.follows(account)))
    }

    /// Whether a message by an account shows to the reader, in a chat that both are in: whomever its writer blocks.
    pub(crate) fn hears(&self, account: u64) -> Tri {
        if account == self.reader {
            return self.is_seen(account);
        }
        let is_open = self.state_is(account, |state| state == State::Active).or(self.is_let_in(account));
        let is_unwanted = self.blocks(account).or(self.mutes(account));
        self.is_seen(account).and(is_unwanted.not()).and(is_open)
    }

    /// Whether an account is on a list of people, as the reader sees it.
    fn is_on_list(&self, account: u64, of: People) -> Tri {
        let of_whom = |whose: u64, follows: Tri| match whose == self.reader {
            true => follows.and(self.is_seen(account)).and(self.blocks(account).not()),
            false => follows.and(self.may_look_at(whose)).and(self.meets(account)),
        };
        let follows =
            |reader: u64, author: u64| self.world.is_following(reader, author, self.window_of(reader));
        match of {
            People::Followers(whose) => {
                of_whom(whose, self.world.is_listed((account, whose), self.window_of(account)))
            }
            People::Following(whose) => of_whom(whose, follows(whose, account)),
            People::Own(what) => {
                self.world.is_on(what, self.reader, account, self.own).and(self.is_seen(account))
            }
            People::Requests => self.world.waits((account, self.reader)).and(self.is_seen(account)),
            People::Requested => self.world.waits((self.reader, account)).and(self.is_seen(account)),
        }
    }

    /// Everything that may be on a list, with whether it is on it for the reader.
    pub(crate) fn list(&self, of: List) -> BTreeMap<u64, Tri> {
        let posts = |is_on: &dyn Fn(PostNo, &PostFact) -> Tri| {
            let all = self.world.by_id.iter().filter_map(|(id, no)| Some((*id, *no, self.world.post(*no)?)));
            all.map(|(id, no, post)| (id, is_on(no, post))).collect()
        };
        let accounts = |is_on: &dyn Fn(u64) -> Tri| {
            self.world.states.keys().map(|account| (*account, is_on(*account))).collect()
        };
        match of {
            List::People(of) => accounts(&|account| self.is_on_list(account, of)),
            List::Likers(post) => match self.world.by_id.get(&post) {
                Some(no) => accounts(&|account| self.likes(account, *no).and(self.meets(account))),
                None => BTreeMap::new(),
            },
            List::Reposters(post) => {
                let reposts = self.passing_on(post).filter(|repost| repost.is_plain_repost());
                reposts.fold(BTreeMap::new(), |mut all, repost| {
                    let shows = self.on_list(repost).and(self.meets(repost.author));
                    all.entry(repost.author).and_modify(|is: &mut Tri| *is = is.or(shows)).or_insert(shows);
                    all
                })
            }
            List::Quotes(post) => {
                let quotes = self.passing_on(post).filter(|quote| quote.has_text);
                quotes.filter_map(|quote| Some((quote.id?, self.on_list(quote)))).collect()
            }
            // Of a plain repost the original is meant, which is another post.
            List::Tied(what) => posts(&|no, post| match post.is_plain_repost() {
                true => Tri::No,
                false => self.is_tied(what, no).and(self.may_meet(post)),
            }),
            List::Ranked => {
                let newest = self.newest_reposts_at_home();
                let is_newest =
                    |post: &PostFact| post.original.and_then(|of| newest.get(&of)) == post.id.as_ref();
                // Of several reposts of one post in a window the newest shows.
                posts(&|_, post| match self.at_home(post) {
                    Tri::Yes if post.is_plain_repost() && !is_newest(post) => Tri::Maybe,
                    is_there => is_there,
                })
            }
        }
    }

    /// Of each post that is reposted the newest repost that may stand at home.
    fn newest_reposts_at_home(&self) -> HashMap<PostNo, u64> {
        let mut newest = HashMap::new();
        // In the order of their ids.
        for (id, no) in &self.world.by_id {
            let Some(repost) = self.world.post(*no).filter(|post| post.is_plain_repost()) else { continue };
            if let Some(original) = repost.original.filter(|_| self.at_home(repost) != Tri::No) {
                newest.insert(original, *id);
            }
        }
        newest
    }

    /// The posts that pass a post on, with a comment or without.
    pub(crate) fn passing_on(&self, post: u64) -> impl Iterator<Item = &'a PostFact> {
        let subject = self.world.by_id.get(&post).map(|no| self.world.subject(*no));
        let all = self.world.by_id.values().filter_map(|no| self.world.post(*no));
        all.filter(move |post| post.original.is_some() && post.original == subject)
    }

    /// Whether that of which it is a list is there for the reader.
    pub(crate) fn has_list(&self, of: List) -> Tri {
        match of {
            List::People(People::Followers(whose) | People::Following(whose)) => self.is_there(whose),
            List::Likers(post) | List::Reposters(post) | List::Quotes(post) => {
                let post = self.world.by_id.get(&post).and_then(|no| self.world.post(*no));
                post.map_or(Tri::No, |post| self.may_meet(post))
            }
            List::People(_) | List::Tied(_) | List::Ranked => Tri::Yes,
        }
    }

    /// How the reader stands to an account: each fact with whether it is so.
    pub(crate) fn relation(&self, other: u64, said: Relation) -> Vec<(&'static str, bool, Tri)> {
        let on = |what, by, other| self.world.is_on(what, by, other, self.window_of(by));
        let follows = |a, b| self.world.is_following(a, b, self.window_of(a));
        let noted = on(Switch::Note, self.reader, other);
        // A wrong text is never right.
        let noted = if said.notes == Some(false) { Tri::No } else { noted };
        let hides_reposts =
            said.hides_reposts.map(|hides| ("hides reposts of", hides, self.hides_reposts(other)));
        let others = vec![
            ("follows", said.follows, follows(self.reader, other)),
            ("is followed by", said.is_followed, follows(other, self.reader)),
            ("mutes", said.mutes, on(Switch::Mute, self.reader, other)),
            ("blocks", said.blocks, on(Switch::Block, self.reader, other)),
            ("is blocked by", said.is_blocked, on(Switch::Block, other, self.reader)),
            ("hides from", said.hides, on(Switch::Hide, self.reader, other)),
            ("has a note on", said.notes.is_some(), noted),
            ("is asked by", said.is_requested, self.world.waits((other, self.reader))),
        ];
        let leaves_out = said.leaves_out.map(|is| ("leaves out", is, self.leaves_out(other)));
        others.into_iter().chain(hides_reposts).chain(leaves_out).collect()
    }

    /// The posts that certainly belong into the reader's home, newest first.
    pub(crate) fn home(&self) -> Vec<PostNo> {
        let is_shown = |no: &&PostNo| self.world.post(**no).is_some_and(|p| self.at_home(p) == Tri::Yes);
        self.world.by_id.values().rev().filter(is_shown).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::Reach;
    use super::super::steps::PostPlan;
    use super::*;

    #[test]
    fn whoever_follows_an_account_that_was_unlocked_just_now_may_be_one_that_waits() {
        let mut world = World { visible_within: 200, ..World::default() };
        world.created(1, true);
        world.created(2, false);
        world.locked(1, false, (1_000, 1_001));
        world.followed((2, 1), 1_050, 1_051, true);
        let post = PostPlan::new(0, Reach::Followers).fact(1, 500);
        let read = |at| View::new(&world, 2, Window { from: at, to: at + 1 }).may_read(&post);
        assert_eq!([1_060, 1_300].map(read), [Tri::Maybe, Tri::Yes]);
    }
}
