//! The posts that leave a list that is full: those of the authors who have most there. Pure.
//!
//! Every author's newest post stays before anybody's second, the second before anybody's third, and so on: as if each
//! time the oldest post of the author with the most had gone, until the list is as long as it may be. So whatever one
//! author does, posts of others leave only to make room for as many of its own as others have too
//! (docs/decisions/0035).

use std::collections::HashSet;

use super::chat::may_be_chat;
use crate::ids::{AccountId, IdMap};
use crate::post::PostRef;

/// Entries that leave a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeavingEntries {
    /// Newest first.
    pub(super) posts: Vec<PostRef>,
    /// Up to this millisecond nothing stays, and something leaves.
    pub(super) until_ms: Option<u64>,
    /// Of authors of whom something leaves above that: the newest of it. All of theirs that is older leaves too.
    pub(super) authors: Vec<PostRef>,
}

/// The entries that leave a list that is to keep `most` posts, its posts newest first.
pub(super) fn leaving(posts: &[PostRef], most: usize) -> LeavingEntries {
    leaving_by(posts, most, |post| post.author)
}

/// The entries that leave a list on which it is others than their authors who may have as many there: of chats who has
/// written them. What is told of authors says of each that some of its posts up to that one have left.
pub(super) fn leaving_by(
    posts: &[PostRef],
    most: usize,
    by: impl Fn(&PostRef) -> AccountId,
) -> LeavingEntries {
    let mut seen: IdMap<AccountId, usize> = IdMap::default();
    let mut rank = |author: AccountId| {
        let rank = seen.entry(author).or_default();
        // H62: the one to go is the oldest of who has most there.
        *rank += 1;
        *rank
    };
    let mut ranked: Vec<(usize, usize)> =
        posts.iter().enumerate().map(|(at, post)| (rank(by(post)), at)).collect();
    ranked.sort_unstable();
    let mut places: Vec<usize> =
        ranked.split_off(most.min(ranked.len())).into_iter().map(|(_, at)| at).collect();
    places.sort_unstable();
    let oldest_kept = ranked.into_iter().map(|(_, at)| posts[at].id).min();
    let leaving: Vec<PostRef> = places.into_iter().map(|at| posts[at]).collect();
    let until_ms = oldest_kept.map_or(u64::MAX, |post| post.unix_ms().saturating_sub(1));
    let mut authors = Vec::new();
    let mut told = HashSet::new();
    for post in &leaving {
        if told.insert(post.author) && post.id.unix_ms() > until_ms {
            authors.push(*post);
        }
    }
    let until_ms = leaving.last().filter(|post| post.id.unix_ms() <= until_ms).map(|_| until_ms);
    LeavingEntries { posts: leaving, until_ms, authors }
}

/// The posts that are read of a list's newest ones where no more than `most` are: none stands back for a second one of
/// somebody else. Chats, of which an account opens as many as it likes, count as one.
pub(crate) fn newest_of_each(posts: &[PostRef], most: usize) -> Vec<PostRef> {
    let chats = AccountId::NOBODY;
    let by = |post: &PostRef| if may_be_chat(post.author) { chats } else { post.author };
    let left: HashSet<PostRef> = leaving_by(posts, most, by).posts.into_iter().collect();
    posts.iter().copied().filter(|post| !left.contains(post)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::ids::PostId;
    use proptest::prelude::*;

    type Posts = Vec<PostRef>;

    fn author(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    /// Posts of these authors, the first the oldest; two in a millisecond.
    fn list(authors: &[u64], from: u64) -> Posts {
        let id = |at: usize| PostId::from_u64(((from + at as u64) / 2) << 16 | at as u64).unwrap();
        let posts = authors.iter().enumerate().map(|(at, by)| PostRef { id: id(at), author: author(*by) });
        let mut posts: Posts = posts.collect();
        posts.sort_unstable_by(|a, b| b.cmp(a));
        posts
    }

    fn kept(posts: &Posts, most: usize) -> Posts {
        let gone: BTreeSet<_> = leaving(posts, most).posts.into_iter().collect();
        posts.iter().filter(|post| !gone.contains(*post)).copied().collect()
    }

    fn count(posts: &Posts) -> BTreeMap<AccountId, usize> {
        let mut counts = BTreeMap::new();
        posts.iter().for_each(|post| *counts.entry(post.author).or_default() += 1);
        counts
    }

    /// The rule as it is told: one at a time, the oldest of who has most; of several the oldest.
    fn one_at_a_time(posts: &Posts, most: usize) -> Posts {
        let mut left = posts.clone();
        while left.len() > most {
            let counts = count(&left);
            let highest = counts.values().max().copied().unwrap();
            let oldest = left.iter().rposition(|post| counts[&post.author] == highest).unwrap();
            left.remove(oldest);
        }
        left
    }

    fn authors() -> impl Strategy<Value = Vec<u64>> {
        // One writes most of it.
        proptest::collection::vec(prop_oneof![2 => Just(1u64), 1 => 2u64..9], 0..60)
    }

    proptest! {
        #[test]
        fn the_oldest_of_who_has_most_leaves(by in authors(), most in 1usize..40) {
            let posts = list(&by, 100);
            prop_assert_eq!(kept(&posts, most), one_at_a_time(&posts, most));
        }

        #[test]
        fn what_stays_is_above_every_floor_and_what_leaves_below_one(by in authors(), most in 1usize..40) {
            let posts = list(&by, 100);
            let gone = leaving(&posts, most);
            let floors: BTreeMap<_, _> = gone.authors.iter().map(|post| (post.author, post.id)).collect();
            let is_below = |post: &PostRef| {
                gone.until_ms.is_some_and(|until| post.id.unix_ms() <= until)
                    || floors.get(&post.author).is_some_and(|floor| post.id <= *floor)
            };
            prop_assert!(gone.posts.iter().all(is_below));
            prop_assert!(!kept(&posts, most).iter().any(is_below));
        }

        /// However many posts k accounts write, and whatever they delete: each of n others keeps its newest, as many as
        /// an equal part of the list for n + k.
        #[test]
        fn k_accounts_displace_no_more_than_k_equal_parts(
            honest in proptest::collection::vec(100u64..104, 0..60),
            waves in proptest::collection::vec((proptest::collection::vec(1u64..4, 0..60), any::<u64>()), 1..8),
            most in 8usize..40
        ) {
            let honest = list(&honest, 100);
            let others = count(&honest);
            let part = most / (others.len() + 3);
            // Were there endless posts of the three.
            let mut worst: Posts = list(&[1, 2, 3].repeat(most), 10_000);
            worst.extend(&honest);
            let worst = kept(&worst, most);
            let mut on = kept(&honest, most);
            for (at, (wave, deleted)) in waves.iter().enumerate() {
                let mut now = list(wave, 1_000 * (at as u64 + 1));
                now.extend(on);
                on = kept(&now, most);
                on.retain(|post| post.author.get() >= 100 || deleted >> (post.id.get() % 64) & 1 == 0);
            }
            let left = count(&on);
            for (by, had) in others {
                prop_assert!(left.get(&by).copied().unwrap_or_default() >= part.min(had));
            }
            prop_assert!(worst.iter().filter(|post| post.author.get() >= 100).all(|post| on.contains(post)));
        }

        /// A cut that reads while somebody else cuts sees less of what leaves, or more that is new: what it lets go is
        /// what the other does, or what the new posts push out.
        #[test]
        fn several_that_cut_at_once_agree(
            by in authors(), newer in proptest::collection::vec(1u64..9, 0..20), most in 1usize..40, seen: u64
        ) {
            let posts = list(&by, 100);
            let gone: BTreeSet<_> = leaving(&posts, most).posts.into_iter().collect();
            let mut half = posts.clone();
            half.retain(|post| !gone.contains(post) || seen >> (post.id.get() % 64) & 1 == 0);
            prop_assert_eq!(kept(&half, most), kept(&posts, most));
            let mut longer = list(&newer, 10_000);
            longer.extend(&posts);
            let later: BTreeSet<_> = leaving(&longer, most).posts.into_iter().collect();
            prop_assert!(gone.is_subset(&later));
        }
    }
}
