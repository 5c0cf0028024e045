//! The chats that an account is in, by their newest messages that show.

mod walk;

use std::cmp::Reverse;
use std::sync::Arc;

use futures::future::try_join4;

use self::walk::{ChatWalk, FoundChat, unread};
use crate::account::{Account, AccountState};
use crate::engine::Reader;
use crate::error::CallFuture;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{self, Chat, ChatPlaces};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::{NamedList, PostRef};
use crate::settings::{PAGE_LEN_MAX, page_length};
use crate::timeline::{PagePost, Query, View};

/// Chats on a page if the query doesn't say.
const PAGE_DEFAULT: usize = 20;
/// Unread messages of a chat that are looked at: where its reader doesn't want to meet a member, or one is suspended;
/// and where nothing speaks against any but that moderators hide some.
const UNREAD_LOOKED_AT: [usize; 2] = [100, 20];

/// A question for a page of chats, each of which stands where its newest message does that shows. The default is the
/// newest ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ChatQuery {
    /// Chats on the page: 1 to 100; `None`: 20.
    pub limit: Option<usize>,
    /// Only those that stand below this message.
    pub max_id: Option<PostId>,
    /// Only those that stand above this one, the newest first.
    pub since_id: Option<PostId>,
    /// Only those that stand above this one, and of these the ones next to it.
    pub min_id: Option<PostId>,
}

/// A page of chats, by their newest messages that show, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ChatList {
    /// Those that show.
    pub chats: Vec<ShownChat>,
    /// Hand it over as `max_id` to go on with older ones: the page's last message. `None`: there are none, or the page
    /// is empty.
    pub older: Option<PostId>,
    /// Hand it over as `min_id` to go on with newer ones: the page's first message. `None`: the page is empty.
    pub newer: Option<PostId>,
    /// Whether the archive was away: chats may be missing of which only that could tell what to show.
    pub lacks_archive: bool,
}

/// A chat as one of its members sees it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ShownChat {
    /// Its id.
    pub id: AccountId,
    /// The other members, as far as they are active.
    pub others: Vec<Arc<Account>>,
    /// The newest message that shows, hydrated and with ties; `None`: none does. On a list there is one.
    pub last: Option<PagePost>,
    /// Messages that came since the reader has read it, and show; 0: the newest that shows is read. Of more than
    /// twenty the others count as they are; where it doesn't want to meet a member, or a member is limited or
    /// suspended, those of the newest hundred alone count.
    pub unread: usize,
    /// Whether it comes from strangers: the reader has neither read nor written anything there, and follows nobody who
    /// is in it.
    pub is_request: bool,
}

impl ChatQuery {
    fn page_length(&self) -> Result<usize> {
        page_length(self.limit.unwrap_or(PAGE_DEFAULT), PAGE_LEN_MAX)
    }

    /// Whether a chat that stands there is asked for.
    fn takes(&self, place: PostId) -> bool {
        self.max_id.is_none_or(|max| place < max) && self.down_to().is_none_or(|end| place > end)
    }

    /// The place where what is asked for ends.
    fn down_to(&self) -> Option<PostId> {
        self.since_id.max(self.min_id)
    }
}

impl<'a> Reader<'a> {
    /// Lists the chats that the account is in, as far as one of its newest thousand messages from chats is theirs;
    /// of these everybody who writes to it has an equal part. A chat stands where its newest message does that shows.
    /// One that the account has left, or put aside since, doesn't show, nor one of which it may see no message.
    pub fn chats(self, query: &'a ChatQuery) -> CallFuture<'a, ChatList> {
        Box::pin(async move {
            meters::list("chats");
            let limit = query.page_length()?;
            let mut walk = ChatWalk::begin(self).await?;
            walk.find(query, limit).await?;
            let ChatWalk { mut view, mut found, lacks_archive, .. } = walk;
            found.retain(|(place, _)| query.takes(*place));
            found.sort_unstable_by_key(|(place, _)| Reverse(*place));
            let goes_on = found.len() > limit;
            if query.min_id.is_some() {
                found.drain(..found.len().saturating_sub(limit));
            }
            found.truncate(limit);
            let ends = [found.first(), found.last()].map(|end| end.map(|(place, _)| *place));
            let older = ends[1].filter(|_| goes_on || query.min_id.is_some());
            let found = found.into_iter().map(|(_, chat)| chat).collect();
            Ok(ChatList { chats: self.shown(&mut view, found).await?, older, newer: ends[0], lacks_archive })
        })
    }

    /// Reads one chat that the account is in, as it would stand on the list, also if nobody has written to it.
    ///
    /// [`NotFound`](ErrorKind::NotFound): it is in no such chat.
    pub fn chat(self, id: AccountId) -> CallFuture<'a, ShownChat> {
        Box::pin(async move {
            meters::list("chat");
            let (tenant, query) = (self.engine.tenant(), Query::chat(id).limit(1));
            let list = graph::post_list(tenant, NamedList::Chats(self.account))?;
            let (read, messages) = (ChatPlaces::Read.of(tenant, self.account)?, graph::newest_first(&list));
            let (page, messages, read, mut view) =
                try_join4(self.read(&query), messages, async { read.score(&id).await }, self.view()).await?;
            let message = page.posts.first().map(PagePost::subject);
            let unread = message.map_or_else(Vec::new, |newest| {
                let own = messages.iter().filter(|message| message.author == id).map(|message| message.id);
                unread(tenant.keys().buckets(), own, newest, read)
            });
            view.load(message.as_slice(), &[]).await?;
            let found = FoundChat { chat: id, message, unread, is_known: read.is_some() };
            let none = || Error::new(ErrorKind::NotFound, format!("there is no chat {id}"));
            self.shown(&mut view, vec![found]).await?.pop().ok_or_else(none)
        })
    }

    /// Chats as they stand on a page.
    async fn shown(self, view: &mut View<'_>, found: Vec<FoundChat>) -> Result<Vec<ShownChat>> {
        let ids: Vec<AccountId> = found.iter().map(|of| of.chat).collect();
        let posts: Vec<PostRef> = found.iter().filter_map(|of| of.message).collect();
        let chats = Chat::of_many(self.engine.tenant(), &ids).await?;
        let others = |chat: &Chat| chat.members.iter().copied().filter(|id| *id != self.account).collect();
        let others: Vec<Vec<AccountId>> =
            chats.iter().map(|chat| chat.as_ref().map(others).unwrap_or_default()).collect();
        view.load(&[], &others.concat()).await?;
        let unread = count_unread(view, &found, &others).await?;
        let mut posts = view.tied(posts).await?.into_iter();
        let shown = found.into_iter().zip(others).zip(unread).map(|((of, others), unread)| ShownChat {
            id: of.chat,
            is_request: !of.is_known && !others.iter().any(|other| view.follows(*other)),
            others: others.into_iter().filter_map(|other| view.any_account(other)).collect(),
            last: of.message.and_then(|_| posts.next()),
            unread,
        });
        Ok(shown.collect())
    }
}

/// Counts the messages of each chat that its reader has not read, and that show: of more than are looked at the others
/// do, unless there is a member whom it doesn't meet.
async fn count_unread(
    view: &mut View<'_>,
    found: &[FoundChat],
    others: &[Vec<AccountId>],
) -> Result<Vec<usize>> {
    let [doubtful, others_looked_at] = UNREAD_LOOKED_AT;
    // Whom it doesn't want to meet, or who is suspended; and of who is limited it sees nothing unless it follows.
    let is_met = |other: AccountId| {
        let account = view.account(other);
        account.is_some_and(|of| of.state != AccountState::Limited || view.follows(other))
    };
    let is_doubtful = |others: &Vec<AccountId>| others.iter().any(|other| !is_met(*other));
    let parts: Vec<_> = found
        .iter()
        .zip(others)
        .map(|(of, others)| {
            let (is_doubtful, many) = (is_doubtful(others), of.unread.len());
            let looked_at = if is_doubtful { doubtful } else { others_looked_at };
            (of.unread.split_at(looked_at.min(many)), is_doubtful)
        })
        .collect();
    let looked_at: Vec<PostRef> =
        parts.iter().flat_map(|((looked_at, _), _)| looked_at.iter().copied()).collect();
    let untold = view.load_as_told(&looked_at, &[]).await?;
    let count = |((looked_at, rest), is_doubtful): &((&[PostRef], &[PostRef]), bool)| {
        // Of what only the archive could tell it can't be said that it doesn't show.
        let shows = |message: &&PostRef| view.shows(**message) || view.is_untold(**message, untold.as_ref());
        let shown = looked_at.iter().filter(shows).count();
        // The newest that shows, at least, where any is unread.
        shown.max(looked_at.len().min(1)) + if *is_doubtful { 0 } else { rest.len() }
    };
    Ok(parts.iter().map(count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_chats_is_asked_for_between_messages() {
        let at = |ms: u64| PostId::from_u64(ms << 16).unwrap();
        let taken = |query: ChatQuery| (1..=9).filter(|ms| query.takes(at(*ms))).collect::<Vec<_>>();
        let [max_id, min_id, since_id] = [Some(at(8)), Some(at(6)), Some(at(5))];
        assert_eq!(taken(ChatQuery { max_id, ..ChatQuery::default() }), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(taken(ChatQuery { min_id, ..ChatQuery::default() }), [7, 8, 9]);
        assert_eq!(taken(ChatQuery { max_id, min_id, since_id, ..ChatQuery::default() }), [7]);
        for wrong in [0, PAGE_LEN_MAX + 1] {
            let refused = ChatQuery { limit: Some(wrong), ..ChatQuery::default() }.page_length().unwrap_err();
            assert!(refused.to_string().contains(&format!("{wrong}; 1 to 100")), "{refused}");
        }
    }
}
