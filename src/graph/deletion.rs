//! Deleting a post that is in memory: the one command for it, and what is done about each answer.
//!
//! Of one that can't be read nobody knows what it refers to and which lists it is on: what stands there shows nothing,
//! and fsck takes it off.

use std::sync::Arc;

use super::jobs::{UnlistTask, entries_of_deleted};
use super::named::{ListItem, post_list};
use crate::change::Tries;
use crate::cluster::{Epoch, TouchedServers};
use crate::error::{Error, Result};
use crate::functions::{self, PostChangeAnswer, PostVersion, RepostPlace, TasksLeft};
use crate::ids::{AccountId, PostId};
use crate::journal::{Journal, JournalEntry, Task, accept, journal_full, reserve_for};
use crate::nonce::draw;
use crate::post::{NamedList, Post, PostRef};
use crate::search::{IndexTask, is_searched};
use crate::sharded::{Order, PiecePlace};
use crate::stored::{StoredPost, Unreadable};
use crate::tenant::{Tenant, no_post};
use crate::tiers::{self, PostErasure};
use crate::turns::Turns;

/// Posts of somebody in groups that are looked at in one page.
const WRITTEN_AT_ONCE: usize = 128;

/// Post, outbox, author's record, journal, agenda.
pub(crate) fn deletion_keys(tenant: &Tenant, author: AccountId, id: PostId) -> [Vec<u8>; 5] {
    let (keys, bucket) = (tenant.keys(), tenant.bucket(author));
    [keys.post(id), keys.outbox(author), keys.account(author), keys.journal(bucket), keys.agenda(bucket)]
}

/// An erasure: how the archive comes to forget a post that is deleted.
#[derive(Debug)]
pub(crate) struct Erasure<'a> {
    pub(crate) so_far: PostErasure,
    /// Who deletes posts that the archive has, of each account.
    pub(crate) turns: &'a Turns<AccountId>,
}

/// A post that is to be deleted, as it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeletedPost<'a> {
    Readable(&'a Post),
    Unreadable(&'a Unreadable),
}

impl DeletedPost<'_> {
    fn seen(&self) -> PostVersion<'_> {
        match self {
            Self::Readable(post) => PostVersion::Revision(post.header().revision),
            Self::Unreadable(unreadable) => PostVersion::Unreadable(unreadable.bytes()),
        }
    }

    /// The entries for all that its deletion leaves to do.
    fn entries(&self, tenant: &Tenant, of: PostRef) -> Vec<JournalEntry> {
        let bucket = tenant.bucket(of.author);
        let entry = |task: Task| JournalEntry::new(bucket, tenant.instance, task);
        let mut entries = match self {
            Self::Readable(post) => entries_of_deleted(tenant, bucket, of.id, post),
            Self::Unreadable(_) if is_searched(tenant) => vec![entry(IndexTask { post: of }.into())],
            Self::Unreadable(_) => Vec::new(),
        };
        entries.push(entry(UnlistTask { post: of }.into()));
        entries
    }

    /// The list of public posts that it may stand on.
    fn public_list(&self, tenant: &Tenant, author: AccountId) -> Option<Vec<u8>> {
        match self {
            Self::Readable(post) => tenant.public_list_of(post),
            Self::Unreadable(_) => tenant.public_list(author),
        }
    }
}

/// Sends the deletion of a post that was read, once. `noted`: where it is noted, if it is a plain repost. `None`: look
/// again.
pub(crate) async fn delete_once(
    journal: &Arc<Journal>,
    (of, post): (PostRef, DeletedPost<'_>),
    noted: Option<&(PiecePlace, RepostPlace)>,
    erasure: &mut Erasure<'_>,
    tries: &mut Tries,
) -> Result<Option<Epoch>> {
    let tenant = &journal.tenant;
    let PostRef { id, author } = of;
    if matches!(post, DeletedPost::Readable(post) if post.header().author != author) {
        return Err(no_post(id));
    }
    let entries = post.entries(tenant, of);
    let _places = reserve_for(journal, author, entries.len())?;
    let values: Vec<_> = entries.iter().map(|entry| (entry.id, entry.stored())).collect();
    let left = TasksLeft { journal_most: tenant.settings.journal_max, entries: &values };
    let repost = noted.map(|(_, at)| (at, id.place(tenant.keys().buckets())));
    let command = functions::post_delete(
        &deletion_keys(tenant, author, id),
        (author, id.get()),
        post.seen(),
        (repost, post.public_list(tenant, author)),
        erasure.so_far.under().map(|under| (under, draw())),
        &left,
    );
    // A repost's carries random bytes.
    let Some(answer) = tries.send(tenant, tenant.slot(author), command).await? else {
        return Ok(None);
    };
    let epoch = answer.epoch.clone();
    match (PostChangeAnswer::parse(answer.ok()?)?, noted) {
        // It has left memory since it was read.
        (PostChangeAnswer::NoPost, _) if tiers::thaw_to_delete(tenant, of).await? => Ok(None),
        (PostChangeAnswer::Done | PostChangeAnswer::NoPost, _) => {
            entries.into_iter().for_each(|entry| drop(accept(journal, entry)));
            Ok(Some(epoch))
        }
        (PostChangeAnswer::Foreign, _) => Err(no_post(id)),
        (PostChangeAnswer::Below, _) => {
            erasure.so_far.go_on(tenant, erasure.turns, of).await?;
            Ok(None)
        }
        // Edited since: it may be on other lists by now. Or its author has tied something else meanwhile.
        (PostChangeAnswer::Revision | PostChangeAnswer::Stamp, _) => Ok(None),
        (PostChangeAnswer::JournalFull, _) => Err(journal_full(tenant)),
        (PostChangeAnswer::Tree(tree), Some((piece, _))) => {
            tenant.sets().piece_heirs(piece, &tree)?;
            Ok(None)
        }
        (PostChangeAnswer::Tree(_), None) => Err(Error::internal("a tree of no set")),
        (PostChangeAnswer::State(_), _) => Err(Error::internal("a deletion asks for no state")),
    }
}

/// Deletes a post in a group whose writer is gone; what is gone already is done. One that can't be read, or whose id
/// was given twice, stays: fsck tells of it.
pub(super) async fn delete_written(
    journal: &Arc<Journal>,
    of: PostRef,
    writer: AccountId,
    touched: &mut TouchedServers,
) -> Result<()> {
    let is_it = |stored: &StoredPost| match stored {
        StoredPost::There(post) => post.header().author == of.author && post.writer() == writer,
        _ => false,
    };
    delete_if(journal, of, is_it, touched).await
}

/// Deletes what somebody found where a post should be, if it still is that; what is gone already is done.
pub(crate) async fn delete_found(journal: &Arc<Journal>, of: PostRef, found: StoredPost) -> Result<()> {
    let found = found.but_for_visibility();
    delete_if(journal, of, |stored| *stored == found, &mut TouchedServers::new()).await
}

/// Deletes a post if what is stored there is what somebody wants to go.
async fn delete_if(
    journal: &Arc<Journal>,
    of: PostRef,
    is_it: impl Fn(&StoredPost) -> bool,
    touched: &mut TouchedServers,
) -> Result<()> {
    let (tries, turns) = (&mut Tries::of_post(of.id), Turns::default());
    let mut erasure = Erasure { so_far: PostErasure::default(), turns: &turns };
    loop {
        let once = async {
            let stored = journal.tenant.posts().in_memory(of.id).await?.but_for_visibility();
            let post = match &stored {
                StoredPost::Gone if tiers::thaw_to_delete(&journal.tenant, of).await? => return Ok(None),
                StoredPost::Gone => return Ok(Some(None)),
                stored if !is_it(stored) => return Ok(Some(None)),
                StoredPost::There(post) => DeletedPost::Readable(post),
                StoredPost::Unreadable(unreadable) => DeletedPost::Unreadable(unreadable),
            };
            Ok(delete_once(journal, (of, post), None, &mut erasure, tries).await?.map(Some))
        };
        let once = once.await;
        if let Some(epoch) = tries.ended(once)? {
            epoch.iter().for_each(|epoch| touched.add_epoch(epoch));
            return Ok(());
        }
    }
}

/// Deletes all that an account has posted into groups, which is being deleted itself. What is on its way to that list
/// goes with who finds that its writer is gone (H246).
pub(super) async fn delete_all_written(
    journal: &Arc<Journal>,
    writer: AccountId,
    touched: &mut TouchedServers,
) -> Result<()> {
    let list = post_list(&journal.tenant, NamedList::Written(writer))?;
    loop {
        let page = list.page(.., None, WRITTEN_AT_ONCE, Order::Ascending).await?;
        let listed: Vec<ListItem> = page.entries.into_iter().map(|(listed, _)| listed).collect();
        if listed.is_empty() {
            return Ok(());
        }
        for listed in &listed {
            if let ListItem::Post(post) = listed {
                delete_written(journal, *post, writer, touched).await?;
            }
        }
        // That they are gone must last before nobody knows any more which these are.
        journal.tenant.router().fence(touched).await?;
        list.remove(&listed).await?;
    }
}
