//! Outboxes: an account's own posts, by id; read from their end, or further back by a search inside the server.

use super::merge::{Direction, PageEntry};
use crate::account::Mode;
use crate::cluster::{Command, Epoch, Reply, Request};
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::functions;
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::stored::{ArchiveFloor, DELETED};
use crate::tenant::Tenant;

/// Some ids of an outbox, and how far they are all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Of posts that are not deleted, ascending.
    pub(crate) ids: Vec<u64>,
    /// Down: complete for ids >= this, 0 if there is nothing more. Up: for ids <= this.
    pub(crate) bound: u64,
    /// Down, at its end: the outbox's floor, up to which posts were cut off; else 0.
    pub(crate) floor: u64,
    /// The same, where the archive has what is below. Up: the archive has more above where that was asked.
    pub(crate) archived: Option<ArchiveFloor>,
}

impl Part {
    pub(crate) fn entries(&self, author: AccountId) -> impl Iterator<Item = PageEntry> + '_ {
        self.ids.iter().rev().map(move |id| PageEntry { id: *id, author: author.get() })
    }
}

/// An author's newest posts, and how they are delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewestPosts {
    pub(crate) mode: Mode,
    /// The last post before pushing began.
    pub(crate) pushed_since: u64,
    /// So many were asked for; deleted ones are not among the ids.
    pub(crate) asked: usize,
    pub(crate) part: Part,
}

/// Asks for the newest posts of an author, and how they are delivered: two commands that stand together.
pub(crate) fn newest_requests(tenant: &Tenant, author: AccountId, most: usize) -> [Request; 2] {
    let mode = Command::new("HMGET")
        .arg(&tenant.keys().account(author))
        .arg(RecordField::MODE)
        .arg(RecordField::PUSHED_SINCE);
    [Request::read(tenant.slot(author), mode), end_request(tenant, author, most)]
}

/// Asks for the last posts of an author, and whether there are more.
pub(super) fn end_request(tenant: &Tenant, author: AccountId, most: usize) -> Request {
    let last = -1 - i64::try_from(most).unwrap_or(i64::MAX - 1);
    let ids = Command::new("LRANGE").arg(&tenant.keys().outbox(author)).arg(last).arg("-1");
    Request::read(tenant.slot(author), ids)
}

/// Reads what [`newest_requests`] were answered.
pub(crate) fn read_newest(mode: Reply, ids: Reply, most: usize) -> Result<NewestPosts> {
    let [mode, since] = mode.into_values()?;
    let letter = mode.bytes().ok().and_then(|b| b.first().copied()).unwrap_or(b'P');
    let since = since.bytes().ok().and_then(|b| b.try_into().ok()).map_or(0, u64::from_be_bytes);
    let part = read_end(ids, most)?;
    Ok(NewestPosts { mode: Mode::from_letter(letter), pushed_since: since, asked: most, part })
}

/// Reads what [`end_request`] was answered: one more than wanted tells whether there is more.
pub(crate) fn read_end(ids: Reply, most: usize) -> Result<Part> {
    let elements = ids.into_array()?;
    let is_all = elements.len() <= most;
    parse(&elements, is_all, Direction::Down)
}

/// Asks for posts on one side of an id.
pub(crate) fn page_request(
    tenant: &Tenant,
    author: AccountId,
    direction: Direction,
    from: u64,
    most: usize,
) -> Request {
    // Ids are below 2^63; beyond that the search has no order.
    let from = from.min(i64::MAX.unsigned_abs());
    let outbox = tenant.keys().outbox(author);
    let command = functions::outbox_page(outbox, direction == Direction::Down, from, most);
    Request::read(tenant.slot(author), command)
}

/// Reads what [`page_request`] was answered.
pub(crate) fn read_page(reply: Reply, direction: Direction) -> Result<Part> {
    let reply = reply.into_array()?;
    let (is_all, elements) =
        reply.split_first().ok_or_else(|| Error::internal("outbox_page answered nothing"))?;
    parse(elements, is_all.count()? == 1, direction)
}

/// Whether a post is one of an author's, deleted or not, and who told it. One that the outbox has cut off is none any
/// more.
pub(crate) async fn has_published(tenant: &Tenant, author: AccountId, post: PostId) -> Result<(bool, Epoch)> {
    let request = page_request(tenant, author, Direction::Down, post.get() + 1, 1);
    let answer = tenant.router().ask(request).await?;
    let epoch = answer.epoch.clone();
    let reply = answer.ok()?.into_array()?;
    let is = |element: &Reply| {
        let id = element.bytes().ok().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        id.is_some_and(|id| u64::from_be_bytes(id) & !DELETED == post.get())
    };
    let has =
        reply.iter().skip(1).any(is) || tenant.posts().archive_has(PostRef { id: post, author }).await?;
    Ok((has, epoch))
}

fn parse(elements: &[Reply], is_all: bool, direction: Direction) -> Result<Part> {
    let mut ids = Vec::with_capacity(elements.len());
    let (mut is_all, mut floor, mut archived) = (is_all, 0, None);
    let mut ends = (u64::MAX, 0);
    for element in elements {
        let bytes = element.bytes()?;
        let Ok(bytes) = <[u8; 8]>::try_from(bytes) else {
            // The first element: up to where posts were cut off. They are no longer part of any timeline, unless that
            // goes on below.
            if direction == Direction::Down {
                is_all = true;
                floor = bytes.last_chunk().map_or(0, |id| u64::from_be_bytes(*id));
            }
            archived = ArchiveFloor::parse(bytes);
            continue;
        };
        let id = u64::from_be_bytes(bytes);
        let live = id & !DELETED;
        ends = (ends.0.min(live), ends.1.max(live));
        if id & DELETED == 0 {
            ids.push(id);
        }
    }
    // H166: an outbox's end is not its author's where the archive has more.
    let end = archived.map_or(0, |floor: ArchiveFloor| floor.upto.get() + 1);
    let bound = match (direction, is_all) {
        (Direction::Down, true) => end,
        (Direction::Up, true) => u64::MAX,
        (Direction::Down, false) => ends.0,
        (Direction::Up, false) => ends.1,
    };
    Ok(Part { ids, bound, floor, archived })
}
