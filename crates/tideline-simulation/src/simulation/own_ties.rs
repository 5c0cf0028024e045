//! What comes along with the posts of a page; and what accounts like, have bookmarked and reposted, from when on, which
//! pages tell them.

use std::collections::BTreeMap;

use super::lists_of_posts::of_account;
use super::world::World;
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::timeline::{PagePost, Query};

/// Functions that change what an account likes, has bookmarked or reposted.
const CHANGE: [&[u8]; 5] =
    [b"_tie_set", b"_post_publish", b"_post_delete", b"_account_delete", b"_account_bury"];

/// What an account likes, has bookmarked and reposted; with the scores, which tell the reposts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Ties {
    likes: BTreeMap<PostRef, f64>,
    bookmarks: BTreeMap<PostRef, f64>,
    reposts: BTreeMap<PostRef, f64>,
}

/// What it was, by the number of the command that changed it.
pub(super) type PastTies = Vec<(u64, Ties)>;

impl World {
    /// Whether a function of that name may change what somebody likes.
    pub(super) fn is_tie(function: &[u8]) -> bool {
        CHANGE.iter().any(|name| function.ends_with(name))
    }

    /// Notes what the accounts of a bucket like, where that has changed.
    pub(super) fn note_ties(&mut self, number: usize) {
        for account in self.accounts.clone() {
            if usize::from(self.keys.bucket_of(account).index()) != number {
                continue;
            }
            let all = |what| of_account(self, what, account);
            let now = Ties { likes: all("likes"), bookmarks: all("bookmarks"), reposts: all("reposts") };
            let past = self.past_ties.entry(account).or_insert_with(|| vec![(0, Ties::default())]);
            if past.last().is_none_or(|(_, last)| *last != now) {
                past.push((self.commands, now));
            }
        }
    }
}

/// Posts of a page, and replies to them, come with all that the query asks for.
pub(super) fn check_brought(w: &mut World, reader: AccountId, query: &Query, posts: &[PagePost]) {
    let is_hydrated = query.hydrate || query.ties || query.likers + query.replies > 0;
    for post in posts.iter().flat_map(|post| [post].into_iter().chain(&post.replies)) {
        let has = (post.post.is_some(), post.account.as_ref().map(|author| author.id), post.ties.is_some());
        let asked = (is_hydrated, is_hydrated.then_some(post.author), query.ties);
        // It shows only with its original.
        let is_bare = post.post.as_ref().is_some_and(|p| p.is_plain_repost()) && post.original.is_none();
        if has != asked || is_bare {
            w.violated(format!("page of {reader} shows {} as {has:?}, asked was {query:?}", post.id));
        }
    }
}

/// Posts that a page shows tell their reader what it has done with them: as it was at some time since that command.
pub(super) fn check_ties(w: &mut World, reader: AccountId, since: u64, posts: &[PagePost]) {
    let nothing = [(0, Ties::default())];
    let past = w.past_ties.get(&reader).map_or(&nothing[..], Vec::as_slice);
    let first = past.partition_point(|(command, _)| *command <= since).saturating_sub(1);
    let (buckets, bucket) = (w.keys.buckets(), w.keys.bucket_of(reader));
    let mut wrong = Vec::new();
    for post in posts.iter().flat_map(|post| [post].into_iter().chain(&post.replies)) {
        let Some(own) = post.ties else { continue };
        let subject = post.subject();
        let was = |what: &dyn Fn(&Ties) -> bool| past[first..].iter().any(|(_, ties)| what(ties));
        let repost = |ties: &Ties| {
            let place = ties.reposts.get(&subject)?;
            PostId::at_place(buckets, bucket, *place).ok()
        };
        let is_right = was(&|ties| ties.likes.contains_key(&subject) == own.is_liked)
            && was(&|ties| ties.bookmarks.contains_key(&subject) == own.is_bookmarked)
            && was(&|ties| repost(ties) == own.repost);
        if !is_right {
            wrong.push(format!(
                "page of {reader} says {own:?} of {subject:?}; since {since}: {:?}",
                &past[first..]
            ));
        }
    }
    wrong.into_iter().for_each(|what| w.violated(what));
}
