//! Deleting a post that is in memory: the one command for it, and what is done about each answer.

use std::sync::Arc;

use super::jobs::{UnlistTask, entries_of_deleted};
use super::named::{Listed, post_list};
use crate::change::Tries;
use crate::cluster::{Epoch, Touched};
use crate::error::{Error, Result};
use crate::functions::{self, PostChangeAnswer, RepostPlace, TasksLeft};
use crate::ids::{AccountId, PostId};
use crate::journal::{Entry, Journal, accept, journal_full, reserve_for};
use crate::nonce::draw;
use crate::post::{NamedList, Post, PostRef};
use crate::sharded::{Order, PieceAt};
use crate::stored::StoredPost;
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

/// Sends the deletion of a post that was read, once. `noted`: where it is noted, if it is a plain repost. `None`: look
/// again.
pub(crate) async fn delete_once(
    journal: &Arc<Journal>,
    (of, post): (PostRef, &Post),
    noted: Option<&(PieceAt, RepostPlace)>,
    erasure: &mut Erasure<'_>,
    tries: &mut Tries,
) -> Result<Option<Epoch>> {
    let tenant = &journal.tenant;
    let PostRef { id, author } = of;
    if post.header().author != author {
        return Err(no_post(id));
    }
    let bucket = tenant.bucket(author);
    let mut entries = entries_of_deleted(tenant, bucket, id, post);
    entries.push(Entry::new(bucket, tenant.instance, UnlistTask { post: of }));
    let _places = reserve_for(journal, author, entries.len())?;
    let values: Vec<_> = entries.iter().map(|entry| (entry.id, entry.stored())).collect();
    let left = TasksLeft { journal_most: tenant.settings.journal_max, entries: &values };
    let repost = noted.map(|(_, at)| (at, id.place(tenant.keys().buckets())));
    let command = functions::post_delete(
        &deletion_keys(tenant, author, id),
        (author, id.get()),
        post.header().revision,
        (repost, tenant.public_list_of(post)),
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

/// Deletes a post in a group whose writer is gone; what is gone already is done.
pub(super) async fn delete_written(
    journal: &Arc<Journal>,
    of: PostRef,
    writer: AccountId,
    touched: &mut Touched,
) -> Result<()> {
    let (tries, turns) = (&mut Tries::of_post(of.id), Turns::default());
    let mut erasure = Erasure { so_far: PostErasure::default(), turns: &turns };
    loop {
        let once = async {
            let post = match journal.tenant.posts().in_memory(of.id).await?.but_for_visibility() {
                StoredPost::There(post) if post.header().author == of.author && post.writer() == writer => {
                    post
                }
                // Its id was given twice, or nobody can tell whose it is: fsck tells of it.
                StoredPost::There(_) | StoredPost::Unreadable(_) => return Ok(Some(None)),
                StoredPost::Gone if tiers::thaw_to_delete(&journal.tenant, of).await? => return Ok(None),
                StoredPost::Gone => return Ok(Some(None)),
            };
            Ok(delete_once(journal, (of, &post), None, &mut erasure, tries).await?.map(Some))
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
    touched: &mut Touched,
) -> Result<()> {
    let list = post_list(&journal.tenant, NamedList::Written(writer))?;
    loop {
        let page = list.page(.., None, WRITTEN_AT_ONCE, Order::Ascending).await?;
        let listed: Vec<Listed> = page.entries.into_iter().map(|(listed, _)| listed).collect();
        if listed.is_empty() {
            return Ok(());
        }
        for listed in &listed {
            if let Listed::Post(post) = listed {
                delete_written(journal, *post, writer, touched).await?;
            }
        }
        // That they are gone must last before nobody knows any more which these are.
        journal.tenant.router().fence(touched).await?;
        list.remove(&listed).await?;
    }
}
