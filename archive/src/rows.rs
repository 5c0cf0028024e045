//! Numbers and members as SQL has them.

use tideline_model::archive::{
    ArchiveName, ArchiveToken, IndexVersion, ListMember, MembersAsk, OwnerState, PageOrder, PostParts,
};
use tideline_model::error::{Error, Result};
use tideline_model::ids::{AccountId, PostId};

/// On which side of an edge a page lies, and in which order it is read.
pub(crate) fn sides(order: PageOrder) -> (&'static str, &'static str) {
    match order {
        PageOrder::NewestFirst => ("<", "DESC"),
        PageOrder::OldestFirst => (">", "ASC"),
    }
}

/// An id as SQL has it: below 2^63.
pub(crate) fn of_post(id: PostId) -> i64 {
    id.get().cast_signed()
}

/// An id as SQL has it.
pub(crate) fn of_account(id: AccountId) -> i64 {
    id.get().cast_signed()
}

pub(crate) fn to_post(number: i64) -> Result<PostId> {
    PostId::from_u64(number.cast_unsigned()).map_err(unreadable)
}

pub(crate) fn to_account(number: i64) -> Result<AccountId> {
    AccountId::new(number.cast_unsigned()).map_err(unreadable)
}

/// A number that a server counts: never above 2^63.
pub(crate) fn of_count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn to_count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn to_state(token: i64, nonce: &[u8], upto: i64, is_buried: bool) -> Result<OwnerState> {
    let nonce = nonce.try_into().map_err(|_| unreadable(format!("a nonce of {} bytes", nonce.len())))?;
    let token = ArchiveToken { number: to_count(token), nonce };
    Ok(OwnerState { token, upto: to_post(upto)?, is_buried })
}

pub(crate) fn to_name(bytes: &[u8]) -> Result<ArchiveName> {
    bytes.try_into().map(ArchiveName).map_err(|_| unreadable(format!("a name of {} bytes", bytes.len())))
}

pub(crate) fn of_version(version: IndexVersion) -> i64 {
    i64::from_be_bytes(version.0)
}

pub(crate) fn to_version(number: i64) -> IndexVersion {
    IndexVersion(number.to_be_bytes())
}

/// Parts of a post, over those that it has: mostly none, which takes no room.
pub(crate) fn of_parts(parts: &PostParts, before: &PostParts) -> Option<Vec<u8>> {
    Some(parts.over(before).to_bytes()).filter(|bytes| !bytes.is_empty())
}

pub(crate) fn to_parts(bytes: Option<&[u8]>) -> Result<PostParts> {
    PostParts::from_bytes(bytes.unwrap_or_default())
}

fn unreadable(why: impl std::fmt::Display) -> Error {
    Error::internal(format!("the archive holds what this release doesn't read: {why}"))
}

/// Members of a list, put together from its chunks, the highest chunk first.
#[derive(Debug)]
pub(crate) struct MemberPage<'a> {
    ask: &'a MembersAsk,
    /// The number of the lowest chunk that was seen.
    lowest: Option<i32>,
    members: Vec<ListMember>,
}

impl<'a> MemberPage<'a> {
    pub(crate) fn new(ask: &'a MembersAsk) -> Self {
        Self { ask, lowest: None, members: Vec::new() }
    }

    /// The chunks to read next: those below this number, that begin at this score or below it, so many; none: all is
    /// there.
    pub(crate) fn wants(&self) -> Option<(i32, f64, i64)> {
        let below = self.ask.below.as_ref().map_or(f64::INFINITY, |member| member.score);
        let lacks = self.ask.most.saturating_sub(self.members.len());
        // One more: of the first one some lie above the edge.
        let chunks = lacks.div_ceil(tideline_model::archive::MemberList::CHUNK) + 1;
        (lacks > 0 && self.lowest != Some(0))
            .then(|| (self.lowest.unwrap_or(i32::MAX), below, i64::try_from(chunks).unwrap_or(i64::MAX)))
    }

    /// Takes one in.
    pub(crate) fn take(&mut self, chunk: i32, members: &[u8]) -> Result<()> {
        self.lowest = Some(chunk);
        let of_chunk = ListMember::decode(members)?;
        let is_below =
            |member: &ListMember| self.ask.below.as_ref().is_none_or(|edge| member.order(edge).is_lt());
        let lacks = self.ask.most - self.members.len();
        self.members.extend(of_chunk.into_iter().rev().filter(is_below).take(lacks));
        Ok(())
    }

    /// Says that there are no chunks below.
    pub(crate) fn ends(&mut self) {
        self.lowest = Some(0);
    }

    pub(crate) fn into_members(self) -> Vec<ListMember> {
        self.members
    }
}
