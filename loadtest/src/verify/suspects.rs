//! Answers about other accounts, and about posts, that may be wrong: whether they are is known once all calls that
//! overlap them have ended.

use super::call::{State, Switch};
use super::check::Wrong;
use super::facts::{Fact, Time, Tri, Window};
use super::rules::View;
use super::world::{Pair, PostNo, World};

/// Such an answer: of whom about whom, and when.
#[derive(Debug, Clone)]
pub(crate) enum Suspect {
    /// It was told that it follows.
    Follows(Pair, Window),
    /// Its follow was refused, with these words.
    Refused(Pair, Window, String),
    /// An answer to its request was refused, with these words; from when on the request stood.
    Unanswered(Pair, Window, String),
    /// What it wanted of the other was refused because one of the two isn't there, with these words.
    Missed(Pair, Window, String),
    /// What it wanted to leave out of the other's posts was refused because it doesn't follow it, with these words.
    Unfollowed(Pair, Window, String),
    /// What a moderator wanted of a post was refused because it isn't there, with these words.
    MissedPost(PostNo, Window, String),
    /// What an account wanted to do with posts was refused because one isn't there, or not for it, with these words.
    Unseen(u64, Vec<PostNo>, Window, String),
}

impl Suspect {
    /// What is wrong about it, if something surely is.
    pub(crate) fn judge(&self, world: &World) -> Option<(Wrong, Pair, String)> {
        match self {
            Self::Follows(pair, window) => {
                let is_wrong =
                    lock(world, pair.1, *window) == Tri::Yes && !may_have_followed(world, *pair, *window);
                let text =
                    || format!("{} follows {}, which is locked, and nobody has let it", pair.0, pair.1);
                is_wrong.then(|| (Wrong::Leaked, *pair, text()))
            }
            Self::Refused(pair, window, why) => {
                let text = || format!("{} may not follow {}, for nothing: {why}", pair.0, pair.1);
                is_free(world, *pair, *window).then(|| (Wrong::Stuck, *pair, text()))
            }
            Self::Unanswered(pair, window, why) => {
                let stands = !world.is_at_risk(window.from, window.to)
                    && lock(world, pair.1, *window) == Tri::Yes
                    && !has_changed(world, *pair, window.from);
                let text = || format!("{} asks {}, whose answer was refused: {why}", pair.0, pair.1);
                (stands && is_free(world, *pair, *window)).then(|| (Wrong::Stuck, *pair, text()))
            }
            Self::Missed(pair, window, why) => {
                let are_there =
                    [pair.0, pair.1].iter().all(|account| world.is_there(*account, *window) == Tri::Yes);
                are_there.then(|| (Wrong::Stuck, *pair, format!("both are there: {why}")))
            }
            Self::Unfollowed(pair, window, why) => {
                let follows = world.is_following(pair.0, pair.1, *window) == Tri::Yes;
                follows.then(|| (Wrong::Stuck, *pair, format!("{} follows {}: {why}", pair.0, pair.1)))
            }
            Self::MissedPost(no, window, why) => {
                let post = world.post(*no).filter(|post| post.deleted.is_none());
                let author = post.map(|post| post.author);
                let author = author.filter(|author| world.is_there(*author, *window) == Tri::Yes)?;
                Some((Wrong::Stuck, (author, author), format!("post {no} is there: {why}")))
            }
            Self::Unseen(account, posts, window, why) => {
                let view = View::new(world, *account, *window);
                let mut known = posts.iter().map(|no| world.post(*no));
                let are_seen = known.all(|post| post.is_some_and(|post| view.may_meet(post) == Tri::Yes));
                let text = || format!("posts {posts:?} are there, also for {account}: {why}");
                are_seen.then(|| (Wrong::Stuck, (*account, *account), text()))
            }
        }
    }
}

fn lock(world: &World, account: u64, window: Window) -> Tri {
    world.locks.get(&account).map_or(Tri::No, |fact| fact.is(window, |is| is))
}

/// Whether nothing keeps one from following the other.
fn is_free(world: &World, (reader, author): Pair, window: Window) -> bool {
    let is_active = |state| matches!(state, State::Active | State::Limited);
    let both = [reader, author];
    let are_active =
        both.iter().all(|a| world.states.get(a).is_some_and(|fact| fact.is(window, is_active) == Tri::Yes));
    let blocks = |by, other| world.is_on(Switch::Block, by, other, window) != Tri::No;
    are_active && !blocks(reader, author) && !blocks(author, reader)
}

/// Whether it may have followed before, or have been let in by then.
fn may_have_followed(world: &World, pair: Pair, window: Window) -> bool {
    let may = |fact: &Fact<bool>| {
        let before = fact.changes.partition_point(|change| change.end <= window.from);
        let was = before.checked_sub(1).map_or(fact.first, |last| fact.changes[last].value);
        let overlaps = fact.changes[before..].iter().any(|c| c.value && c.start < window.from);
        was || overlaps || fact.influences.iter().any(|i| i.value && i.start <= window.to)
    };
    world.follows.get(&pair).is_some_and(may)
}

/// Whether it has followed or unfollowed since.
fn has_changed(world: &World, pair: Pair, since: Time) -> bool {
    world.follows.get(&pair).is_some_and(|fact| fact.changes.iter().any(|change| change.end >= since))
}

#[cfg(test)]
mod tests {
    use super::super::call::Reach;
    use super::super::facts::Change;
    use super::super::steps::PostPlan;
    use super::*;

    fn world() -> World {
        let mut world = World::default();
        world.created(1, false);
        world.created(2, true);
        world
    }

    const AT: Window = Window { from: 10, to: 20 };

    #[test]
    fn who_is_locked_is_followed_only_by_whom_it_lets() {
        let mut world = world();
        let suspect = Suspect::Follows((1, 2), AT);
        assert_eq!(suspect.judge(&world).map(|wrong| wrong.0), Some(Wrong::Leaked));
        world.answered(2, 1, true, (15, 25));
        assert!(suspect.judge(&world).is_none());
        // Of who isn't locked nobody asks.
        assert!(Suspect::Follows((2, 1), AT).judge(&world).is_none());
    }

    #[test]
    fn a_refusal_has_a_reason() {
        let mut world = world();
        let suspect = Suspect::Refused((2, 1), AT, String::new());
        assert_eq!(suspect.judge(&world).map(|wrong| wrong.0), Some(Wrong::Stuck));
        world.switched(Switch::Block, (1, 2), true, (18, 30));
        assert!(suspect.judge(&world).is_none());
        let answer = Suspect::Unanswered((1, 2), AT, String::new());
        assert!(answer.judge(&world).is_none());
        world.created(3, false);
        world.followed((2, 3), 1, 2, true);
        let remark = Suspect::Unfollowed((2, 3), AT, String::new());
        assert_eq!(remark.judge(&world).map(|wrong| wrong.0), Some(Wrong::Stuck));
        world.unfollowed((2, 3), 18, 30);
        assert!(remark.judge(&world).is_none());
    }

    /// A repost was refused because its original was being deleted, and judged before anybody had noted the deletion.
    #[test]
    fn a_post_that_was_being_deleted_need_not_be_seen() {
        let mut world = world();
        world.posts.push(Some(PostPlan::new(0, Reach::Public).fact(1, 2)));
        world.published(0, 77, 5);
        let suspect = Suspect::Unseen(2, vec![0], AT, String::new());
        assert_eq!(suspect.judge(&world).map(|wrong| wrong.0), Some(Wrong::Stuck));
        world.posts[0].as_mut().unwrap().deleted = Some(Change { start: 18, end: 30, value: () });
        assert!(suspect.judge(&world).is_none());
    }

    #[test]
    fn who_is_there_is_not_missed() {
        let mut world = world();
        let suspect = Suspect::Missed((1, 2), AT, String::new());
        assert_eq!(suspect.judge(&world).map(|wrong| wrong.0), Some(Wrong::Stuck));
        // Nobody knows whether account 3 has ever been there.
        assert!(Suspect::Missed((1, 3), AT, String::new()).judge(&world).is_none());
        world.buried(2, 18, 30);
        assert!(suspect.judge(&world).is_none());
    }
}
