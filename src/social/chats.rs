//! The chats that an account is in, by their newest messages.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{try_join, try_join4};

use crate::account::Account;
use crate::bucket::Buckets;
use crate::engine::Reader;
use crate::error::CallFuture;
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::graph::{self, Chat, ChatEnd, ChatPlaces};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::{NamedList, PostRef};
use crate::settings::{PAGE_LEN_MAX, page_length};
use crate::timeline::{PagePost, Query, View};

/// Chats on a page if the query doesn't say.
const PAGE_DEFAULT: usize = 20;
/// Chats that are looked at together, at least.
const LOOKED_AT: usize = 40;
/// Chats after which a page ends, whatever it has found: others may have opened them, and they may all be hidden.
const LOOKED_AT_MAX: usize = 400;
/// Messages of a chat that are looked at together with those of others, until it is read by itself.
const LOOKED_BACK: usize = 8;
/// Chats that a page reads by themselves.
const READS_MAX: usize = 5;

/// A question for a page of chats; the default is those with the newest messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ChatQuery {
    /// Chats on the page: 1 to 100; `None`: 20.
    pub limit: Option<usize>,
    /// Only those whose newest message is older than this.
    pub max_id: Option<PostId>,
    /// Only those whose newest message is newer than this, the newest first.
    pub since_id: Option<PostId>,
    /// Only those whose newest message is newer than this, and of these the ones next to it.
    pub min_id: Option<PostId>,
}

/// A page of chats, by their newest messages, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ChatList {
    /// Those that show.
    pub chats: Vec<ShownChat>,
    /// Hand it over as `max_id` to go on with older ones; `None`: there are none.
    pub older: Option<PostId>,
    /// Hand it over as `min_id` to go on with newer ones.
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
    /// The newest message that shows, hydrated and marked; `None`: none does. On a list there is one.
    pub last: Option<PagePost>,
    /// Messages that came since the reader has read it; 0: the newest that shows is read.
    pub unread: usize,
    /// Whether it comes from strangers: the reader has neither read nor written anything there, and follows nobody who
    /// is in it.
    pub is_request: bool,
}

impl ChatQuery {
    fn page_length(&self) -> Result<usize> {
        page_length(self.limit.unwrap_or(PAGE_DEFAULT), PAGE_LEN_MAX)
    }

    /// The chats that may be on the page, in the order in which they are looked at.
    fn asked_for(&self, mut all: Vec<ListedChat>) -> Vec<ListedChat> {
        all.retain(|ListedChat { newest, .. }| {
            self.max_id.is_none_or(|max| *newest < max)
                && self.since_id.is_none_or(|since| *newest > since)
                && self.min_id.is_none_or(|min| *newest > min)
        });
        if self.min_id.is_some() {
            all.reverse();
        }
        all
    }
}

/// A chat as an account's list has it.
#[derive(Debug, PartialEq, Eq)]
struct ListedChat {
    id: AccountId,
    newest: PostId,
    /// All that stand there.
    messages: Vec<PostId>,
}

impl ListedChat {
    fn newest(&self) -> PostRef {
        PostRef { id: self.newest, author: self.id }
    }
}

/// The chats whose messages these are, newest first.
fn grouped(messages: Vec<PostRef>) -> Vec<ListedChat> {
    let (mut chats, mut places) = (Vec::<ListedChat>::new(), HashMap::new());
    for PostRef { id, author } in messages {
        let place = *places.entry(author).or_insert(chats.len());
        match chats.get_mut(place) {
            Some(chat) => chat.messages.push(id),
            None => chats.push(ListedChat { id: author, newest: id, messages: vec![id] }),
        }
    }
    chats
}

/// Whether a message of a chat stands above a place there.
fn is_above(buckets: Buckets, message: PostId, place: Option<f64>) -> bool {
    place.is_none_or(|place| message.place(buckets) > place)
}

/// How many of these messages came since somebody has read; none, where the newest that shows is read.
fn unread(
    buckets: Buckets,
    messages: impl Iterator<Item = PostId>,
    newest_shown: PostId,
    read: Option<f64>,
) -> usize {
    match is_above(buckets, newest_shown, read) {
        true => messages.filter(|message| is_above(buckets, *message, read)).count().max(1),
        false => 0,
    }
}

/// A chat that shows, with that message.
struct FoundChat {
    /// Its place on the list, by the newest message that stands there.
    listed: Option<PostId>,
    chat: AccountId,
    message: Option<PostRef>,
    unread: usize,
    /// Whether its reader has ever read or written there.
    is_known: bool,
}

/// How far a look through chats has come.
#[derive(Default)]
struct ChatWalk {
    found: Vec<FoundChat>,
    /// The one that was looked at last.
    last: Option<PostId>,
    /// Chats that may still be read by themselves: their newest messages don't show.
    reads_left: usize,
    lacks_archive: bool,
}

impl<'a> Reader<'a> {
    /// Lists the chats that the account is in, those with the newest messages first: as far as one of their newest
    /// thousand messages stands on its list, of which everybody who writes to it has an equal part. One that it has
    /// left, or put aside since, doesn't show, nor one of which it may see no message. A page may be shorter than
    /// asked for, even empty, and still have a next one.
    pub fn chats(self, query: &'a ChatQuery) -> CallFuture<'a, ChatList> {
        Box::pin(async move {
            meters::list("chats");
            let limit = query.page_length()?;
            let list = graph::post_list(self.engine.graph(), NamedList::Chats(self.account))?;
            let (messages, mut view) = try_join(graph::newest_first(&list), self.view()).await?;
            let asked = query.asked_for(grouped(messages));
            let mut walk = ChatWalk { reads_left: READS_MAX, ..ChatWalk::default() };
            let (mut rest, mut looked_at) = (asked.as_slice(), 0);
            while !rest.is_empty() && walk.found.len() < limit && looked_at < LOOKED_AT_MAX {
                let (now, later) = rest.split_at(limit.max(LOOKED_AT).min(rest.len()));
                let done = self.look(&mut view, now, limit, &mut walk).await?;
                looked_at += now.len();
                if done < now.len() {
                    break;
                }
                rest = later;
            }
            let is_over = walk.last.is_none() || walk.last == asked.last().map(|chat| chat.newest);
            let ends = |chat: Option<&FoundChat>| chat.and_then(|chat| chat.listed);
            let newest = ends(walk.found.iter().max_by_key(|chat| chat.listed));
            let (older, newer) = match query.min_id {
                // Upwards what was looked at last is the newest.
                Some(min) => {
                    let oldest = ends(walk.found.iter().min_by_key(|chat| chat.listed));
                    (oldest.or(Some(min)), walk.last.or(Some(min)))
                }
                None => (walk.last.filter(|_| !is_over), newest),
            };
            if query.min_id.is_some() {
                walk.found.reverse();
            }
            let lacks_archive = walk.lacks_archive;
            Ok(ChatList { chats: self.shown(&mut view, walk.found).await?, older, newer, lacks_archive })
        })
    }

    /// Reads one chat that the account is in, as it would stand on the list, also if nobody has written to it.
    ///
    /// [`NotFound`](ErrorKind::NotFound): it is in no such chat.
    pub fn chat(self, id: AccountId) -> CallFuture<'a, ShownChat> {
        Box::pin(async move {
            meters::list("chat");
            let (graph, query) = (self.engine.graph(), Query::chat(id).limit(1));
            let list = graph::post_list(graph, NamedList::Chats(self.account))?;
            let (read, messages) = (ChatPlaces::Read.of(graph, self.account)?, graph::newest_first(&list));
            let (page, messages, read, mut view) =
                try_join4(self.read(&query), messages, async { read.score(&id).await }, self.view()).await?;
            let message = page.posts.first().map(PagePost::subject);
            let unread = message.map_or(0, |newest| {
                let own = messages.iter().filter(|message| message.author == id).map(|message| message.id);
                unread(graph.keys().buckets(), own, newest.id, read)
            });
            view.load(message.as_slice(), &[]).await?;
            let found = FoundChat { listed: None, chat: id, message, unread, is_known: read.is_some() };
            let none = || Error::new(ErrorKind::NotFound, format!("there is no chat {id}"));
            self.shown(&mut view, vec![found]).await?.pop().ok_or_else(none)
        })
    }

    /// Looks through chats until so many show. Tells how many of these it has looked at.
    async fn look(
        self,
        view: &mut View<'_>,
        chats: &[ListedChat],
        most: usize,
        walk: &mut ChatWalk,
    ) -> Result<usize> {
        let graph = self.engine.graph();
        let buckets = graph.keys().buckets();
        let (read, hidden) =
            (ChatPlaces::Read.of(graph, self.account)?, ChatPlaces::Hidden.of(graph, self.account)?);
        let asked: Vec<_> =
            chats.iter().flat_map(|chat| [(read.clone(), chat.id), (hidden.clone(), chat.id)]).collect();
        let places = graph.sets().scores_in(&asked).await?;
        let newest: Vec<PostRef> = chats.iter().map(ListedChat::newest).collect();
        let mut untold = view.load_as_told(&newest, &[]).await?;
        // Where the newest was deleted, or is by whom the reader mutes, those before it.
        let is_left = |chat: &&ListedChat| !view.blocks(chat.id) && !view.shows(chat.newest());
        let left: Vec<AccountId> = chats.iter().filter(is_left).map(|chat| chat.id).collect();
        let ends = graph::ends_of(graph, &left, LOOKED_BACK).await?;
        let before: Vec<PostRef> = ends.iter().flat_map(|end| &end.messages).copied().collect();
        if !before.is_empty() {
            untold = view.load_as_told(&before, &[]).await?.or(untold);
        }
        let ends: HashMap<AccountId, ChatEnd> = left.into_iter().zip(ends).collect();
        for (n, (chat, places)) in chats.iter().zip(places.chunks(2)).enumerate() {
            if walk.found.len() == most {
                return Ok(n);
            }
            let [read, hidden] = [0, 1].map(|which| places.get(which).copied().flatten());
            let is_above = |id: PostId, place| is_above(buckets, id, place);
            // H247: who has left blocks it.
            if view.blocks(chat.id) || !is_above(chat.newest, hidden) {
                walk.last = Some(chat.newest);
                continue;
            }
            let message = match ends.get(&chat.id) {
                None => Some(chat.newest()),
                Some(end) => match end.messages.iter().copied().find(|message| view.shows(*message)) {
                    Some(message) => Some(message),
                    None if end.messages.iter().any(|message| view.is_untold(*message, untold.as_ref())) => {
                        walk.lacks_archive = true;
                        None
                    }
                    None if end.is_all => None,
                    None if walk.reads_left == 0 => return Ok(n),
                    None => {
                        walk.reads_left -= 1;
                        self.newest_shown(view, chat, walk).await?
                    }
                },
            };
            walk.last = Some(chat.newest);
            let Some(message) = message.filter(|of| is_above(of.id, hidden)) else { continue };
            let unread = unread(buckets, chat.messages.iter().copied(), message.id, read);
            walk.found.push(FoundChat {
                listed: Some(chat.newest),
                chat: chat.id,
                message: Some(message),
                unread,
                is_known: read.is_some(),
            });
        }
        Ok(chats.len())
    }

    /// The newest message of a chat that shows, from the chat itself; loaded.
    async fn newest_shown(
        self,
        view: &mut View<'_>,
        chat: &ListedChat,
        walk: &mut ChatWalk,
    ) -> Result<Option<PostRef>> {
        let page = match self.read(&Query::chat(chat.id)).await {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) if e.code() == ErrorCode::ArchiveAway => {
                walk.lacks_archive = true;
                return Ok(None);
            }
            page => page?,
        };
        let message = page.posts.first().map(PagePost::subject);
        if let Some(message) = message {
            view.load(&[message], &[]).await?;
        }
        Ok(message.filter(|message| view.shows(*message)))
    }

    /// Chats as they stand on a page.
    async fn shown(self, view: &mut View<'_>, found: Vec<FoundChat>) -> Result<Vec<ShownChat>> {
        let ids: Vec<AccountId> = found.iter().map(|of| of.chat).collect();
        let posts: Vec<PostRef> = found.iter().filter_map(|of| of.message).collect();
        let chats = Chat::of_many(self.engine.graph(), &ids).await?;
        let others = |chat: &Chat| chat.members.iter().copied().filter(|id| *id != self.account).collect();
        let others: Vec<Vec<AccountId>> =
            chats.iter().map(|chat| chat.as_ref().map(others).unwrap_or_default()).collect();
        view.load(&[], &others.concat()).await?;
        let mut posts = view.marked(posts).await?.into_iter();
        let shown = found.into_iter().zip(others).map(|(of, others)| ShownChat {
            id: of.chat,
            is_request: !of.is_known && !others.iter().any(|other| view.follows(*other)),
            others: others.into_iter().filter_map(|other| view.any_account(other)).collect(),
            last: of.message.and_then(|_| posts.next()),
            unread: of.unread,
        });
        Ok(shown.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(ms: u64, chat: u64) -> PostRef {
        PostRef { id: PostId::from_u64(ms << 16).unwrap(), author: AccountId::new(chat).unwrap() }
    }

    fn chats(query: &ChatQuery) -> Vec<u64> {
        let messages = [(9, 1), (8, 2), (7, 1), (6, 3), (5, 2)].map(|(ms, chat)| message(ms, chat));
        query.asked_for(grouped(messages.to_vec())).into_iter().map(|chat| chat.id.get()).collect()
    }

    #[test]
    fn chats_stand_where_their_newest_message_does() {
        let at = |ms: u64| Some(message(ms, 1).id);
        assert_eq!(chats(&ChatQuery::default()), [1, 2, 3]);
        assert_eq!(chats(&ChatQuery { max_id: at(9), ..ChatQuery::default() }), [2, 3]);
        assert_eq!(chats(&ChatQuery { since_id: at(6), ..ChatQuery::default() }), [1, 2]);
        assert_eq!(chats(&ChatQuery { min_id: at(6), ..ChatQuery::default() }), [2, 1]);
        let of_two = &grouped(vec![message(8, 2), message(5, 2)])[0];
        assert_eq!(of_two.messages.len(), 2);
        for wrong in [0, PAGE_LEN_MAX + 1] {
            let refused = ChatQuery { limit: Some(wrong), ..ChatQuery::default() }.page_length().unwrap_err();
            assert!(refused.to_string().contains(&format!("{wrong}; 1 to 100")), "{refused}");
        }
    }
}
