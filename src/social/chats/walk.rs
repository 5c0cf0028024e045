//! Finding where chats stand: a walk through the list of messages of an account's chats, from the newest on.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use futures::future::{join_all, try_join3};

use super::ChatQuery;
use crate::bucket::Buckets;
use crate::engine::Reader;
use crate::error::{ErrorCode, ErrorKind, Result};
use crate::graph::{self, ChatPlaces};
use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, PostRef};
use crate::timeline::{self, Query, View};

/// Messages of a list that a page looks at: as many as a list has before it is cut, and some that come meanwhile.
const MESSAGES_MAX: usize = 2_000;
/// Chats that are looked at together.
const LOOKED_AT: usize = 400;
/// Each time that nothing of a chat shows, so many times more of its messages are looked at than were before.
const FURTHER: usize = 7;
/// Chats that a page reads by themselves: messages of theirs that may show have left the list.
const READS_MAX: usize = 20;

/// A chat that shows.
pub(super) struct FoundChat {
    pub(super) chat: AccountId,
    /// Its newest message that shows.
    pub(super) message: Option<PostRef>,
    /// What came since its reader has read it.
    pub(super) unread: Vec<PostRef>,
    /// Whether its reader has ever read or written there.
    pub(super) is_known: bool,
}

/// The places up to which a chat's reader has read it, and put it aside.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct ReadPlaces {
    read: Option<f64>,
    hidden: Option<f64>,
}

/// A chat as an account's list has it.
#[derive(Debug, PartialEq)]
struct ListedChat {
    id: AccountId,
    /// All of its messages there, the newest first.
    messages: Vec<PostId>,
    /// Those that nobody has looked at, and that were not put aside: where they are among all.
    rest: Range<usize>,
    /// `None`: nobody has asked yet.
    upto: Option<ReadPlaces>,
}

/// A walk through a list of chats. Where a chat stands is known once a message of it was met that shows.
pub(super) struct ChatWalk<'a> {
    reader: Reader<'a>,
    pub(super) view: View<'a>,
    /// Those that stand nowhere yet: next to their first messages that weren't looked at.
    waiting: Vec<ListedChat>,
    /// In no order, and some below others that are waiting.
    pub(super) found: Vec<(PostId, FoundChat)>,
    /// Whether messages have left the list.
    is_cut: bool,
    reads_left: usize,
    pub(super) lacks_archive: bool,
}

impl ListedChat {
    /// The next of its messages that nobody has looked at.
    fn next(&self) -> Option<PostId> {
        self.messages[self.rest.clone()].first().copied()
    }

    /// Whether its reader has ever read or written there, as far as somebody has asked.
    fn is_known(&self) -> bool {
        self.upto.is_some_and(|upto| upto.read.is_some())
    }

    /// The messages that are looked at together, from the next one on.
    fn looked_at(&self) -> Vec<PostRef> {
        let rest = &self.messages[self.rest.clone()];
        let looked_at = rest.iter().take((self.rest.start * FURTHER).max(1));
        looked_at.map(|id| PostRef { id: *id, author: self.id }).collect()
    }
}

/// The chats whose messages these are, newest first.
fn grouped(messages: impl IntoIterator<Item = PostRef>) -> Vec<ListedChat> {
    let (mut chats, mut places) = (Vec::<ListedChat>::new(), HashMap::new());
    for PostRef { id, author } in messages {
        let place = *places.entry(author).or_insert(chats.len());
        match chats.get_mut(place) {
            Some(chat) => chat.messages.push(id),
            None => chats.push(ListedChat { id: author, messages: vec![id], rest: 0..0, upto: None }),
        }
    }
    chats.iter_mut().for_each(|chat| chat.rest = 0..chat.messages.len());
    chats
}

/// Whether a message of a chat stands above a place there.
fn is_above(buckets: Buckets, message: PostId, place: Option<f64>) -> bool {
    place.is_none_or(|place| message.place(buckets) > place)
}

/// The messages of a chat that came since somebody has read; none, where the newest that shows is read. That one may
/// have left the list.
pub(super) fn unread(
    buckets: Buckets,
    messages: impl Iterator<Item = PostId>,
    newest_shown: PostRef,
    read: Option<f64>,
) -> Vec<PostRef> {
    if !is_above(buckets, newest_shown.id, read) {
        return Vec::new();
    }
    let listed = messages.filter(|message| is_above(buckets, *message, read));
    let mut unread: Vec<PostRef> = listed.map(|id| PostRef { id, ..newest_shown }).collect();
    if !unread.contains(&newest_shown) {
        unread.push(newest_shown);
    }
    unread
}

impl<'a> ChatWalk<'a> {
    pub(super) async fn begin(reader: Reader<'a>) -> Result<Self> {
        let (tenant, list) = (reader.engine.tenant(), NamedList::Chats(reader.account));
        let set = graph::post_list(tenant, list)?;
        let (messages, is_cut, view) =
            try_join3(graph::newest_first(&set), graph::was_cut(tenant, list), reader.view()).await?;
        // H247: who has left a chat blocks it.
        let is_in = |message: &PostRef| !view.blocks(message.author);
        let waiting = grouped(messages.into_iter().take(MESSAGES_MAX).filter(is_in));
        let (found, lacks_archive) = (Vec::new(), false);
        Ok(Self { reader, view, waiting, found, is_cut, reads_left: READS_MAX, lacks_archive })
    }

    /// Walks until it is known which chats are on a page of so many, and whether there are others behind it.
    pub(super) async fn find(&mut self, query: &ChatQuery, limit: usize) -> Result<()> {
        let mut together = limit + 1;
        loop {
            self.waiting.sort_unstable_by_key(|chat| Reverse(chat.next()));
            let Some(next) = self.waiting.first().and_then(ListedChat::next) else { return Ok(()) };
            // What waits stands there at the highest.
            let in_place = self.found.iter().filter(|(place, _)| *place > next && query.takes(*place));
            // Upwards it is those next to the end that are asked for.
            let is_full = query.min_id.is_none() && in_place.count() > limit;
            if is_full || query.down_to().is_some_and(|end| next <= end) {
                return Ok(());
            }
            let rest = self.waiting.split_off(together.min(self.waiting.len()));
            let now = std::mem::replace(&mut self.waiting, rest);
            self.look(now).await?;
            together = (together * 2).min(LOOKED_AT);
        }
    }

    /// Looks at the next messages of these chats.
    async fn look(&mut self, mut chats: Vec<ListedChat>) -> Result<()> {
        self.ask_places(&mut chats).await?;
        let messages: Vec<PostRef> = chats.iter().flat_map(ListedChat::looked_at).collect();
        let untold = self.view.load_as_told(&messages, &[]).await?;
        let mut left = Vec::new();
        for mut chat in chats {
            let looked_at = chat.looked_at();
            if let Some(message) = looked_at.iter().find(|message| self.view.shows(**message)) {
                self.add(&chat, *message);
            } else if looked_at.iter().any(|message| self.view.is_untold(*message, untold.as_ref())) {
                self.lacks_archive = true;
            } else if self.is_cut && chat.is_known() && left.len() < self.reads_left {
                left.push(chat);
            } else {
                chat.rest.start += looked_at.len();
                self.waiting.extend(Some(chat).filter(|chat| chat.next().is_some()));
            }
        }
        self.read_each(left).await
    }

    /// Asks how far these chats are read and put aside, where nobody has; what was put aside is left out.
    async fn ask_places(&self, chats: &mut Vec<ListedChat>) -> Result<()> {
        let (tenant, account) = (self.reader.engine.tenant(), self.reader.account);
        let (read, hidden) = (ChatPlaces::Read.of(tenant, account)?, ChatPlaces::Hidden.of(tenant, account)?);
        let mut fresh: Vec<&mut ListedChat> = chats.iter_mut().filter(|chat| chat.upto.is_none()).collect();
        let asked = fresh.iter().flat_map(|chat| [(read.clone(), chat.id), (hidden.clone(), chat.id)]);
        let places = tenant.sets().scores_in(&asked.collect::<Vec<_>>()).await?;
        for (chat, places) in fresh.iter_mut().zip(places.chunks(2)) {
            let [read, hidden] = [0, 1].map(|which| places.get(which).copied().flatten());
            chat.upto = Some(ReadPlaces { read, hidden });
            let is_left = |message: &PostId| is_above(tenant.keys().buckets(), *message, hidden);
            chat.rest.end = chat.messages.partition_point(is_left);
        }
        chats.retain(|chat| chat.next().is_some());
        Ok(())
    }

    /// Reads these chats by themselves, below their messages that don't show. Only those that the reader knows: anybody
    /// may open others with it, and any number of them.
    async fn read_each(&mut self, chats: Vec<ListedChat>) -> Result<()> {
        self.reads_left -= chats.len();
        let query = |chat: &ListedChat| {
            let range = timeline::Range { max_id: chat.next(), ..timeline::Range::default() };
            Query::chat(chat.id).range(range).limit(1)
        };
        let queries: Vec<Query> = chats.iter().map(query).collect();
        let pages = join_all(queries.iter().map(|query| self.reader.read(query))).await;
        let mut read = Vec::new();
        for (chat, page) in chats.into_iter().zip(pages) {
            match page {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) if e.code() == ErrorCode::ArchiveAway => self.lacks_archive = true,
                page => read.extend(page?.posts.first().map(|post| (chat, post.subject()))),
            }
        }
        let messages: Vec<PostRef> = read.iter().map(|(_, message)| *message).collect();
        self.view.load(&messages, &[]).await?;
        for (chat, message) in read {
            if self.view.shows(message) {
                self.add(&chat, message);
            }
        }
        Ok(())
    }

    /// Adds a chat that stands at that message, unless it was put aside up to there.
    fn add(&mut self, chat: &ListedChat, message: PostRef) {
        let buckets = self.reader.engine.tenant().keys().buckets();
        let ReadPlaces { read, hidden } = chat.upto.unwrap_or_default();
        if is_above(buckets, message.id, hidden) {
            let unread = unread(buckets, chat.messages.iter().copied(), message, read);
            let found =
                FoundChat { chat: chat.id, message: Some(message), unread, is_known: chat.is_known() };
            self.found.push((message.id, found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_chat_are_looked_at_eight_times_as_far_each_time() {
        let message = |ms: u64, chat: u64| PostRef {
            id: PostId::from_u64(ms << 16).unwrap(),
            author: AccountId::new(chat).unwrap(),
        };
        let messages = (1..=100).rev().flat_map(|ms| [message(2 * ms, 1), message(2 * ms - 1, 2)]);
        let mut chats = grouped(messages);
        assert_eq!(chats.iter().map(|chat| chat.id.get()).collect::<Vec<_>>(), [1, 2]);
        let mut seen = Vec::new();
        while chats[0].next().is_some() {
            let looked_at = chats[0].looked_at();
            assert_eq!(looked_at.first().map(|message| message.id), chats[0].next());
            seen.push(looked_at.len());
            chats[0].rest.start += seen[seen.len() - 1];
        }
        assert_eq!(seen, [1, 7, 56, 36]);
    }
}
