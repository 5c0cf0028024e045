//! Deleting an account with all its traces: what it follows and who follows it, its posts, its home.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use super::archived::archived;
use super::chat::ChatPlaces;
use super::cut::floors;
use super::deletion::delete_all_written;
use super::jobs::entries_of_deleted;
use super::lists::drop_lists;
use super::named::{ListItem, ListNumber, post_list};
use super::relations::accounts_in;
use super::succession::pass_groups_on;
use super::tie::settle_tie;
use super::toggles::unfollow;
use crate::account::{Account, AccountState};
use crate::claims;
use crate::cluster::{Command, Epoch, Reply, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions;
use crate::graph::Graph;
use crate::ids::{AccountId, Claim, PostId};
use crate::journal::{Journal, JournalEntry, RunOutcome, accept, journal_full, reserve};
use crate::keys::OwnKey;
use crate::post::{NamedList, PostRef};
use crate::search::{IndexTask, is_searched};
use crate::sharded::{Checkpoint, SortedSet};
use crate::stored::{StoredPost, public_entries};
use crate::tenant::Tenant;

/// Followers that are turned away at once.
const AT_ONCE: usize = 32;
/// Posts deleted in one batch: each may leave four entries in a journal that holds a hundred at least.
const POSTS_AT_ONCE: usize = 24;
/// Keys dropped in one call.
const KEYS_AT_ONCE: usize = 500;

/// Takes away what is left of an account whose record says "deleted".
pub(crate) async fn bury(
    graph: &Arc<Graph>,
    account: AccountId,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let tenant = &graph.tenant;
    let answer = tenant.router().ask(tenant.account_request(account)).await?;
    touched.add(&answer);
    let record = Account::parse(account, answer.ok()?)?;
    let is_deleted = record.is_some_and(|a| a.state == AccountState::Deleted);
    if !is_deleted {
        // The deletion was lost together with whoever wrote it, or never made.
        return Ok(RunOutcome::Done);
    }
    let followed = tenant.sets().members_of(&[&tenant.following(account)?]).await?;
    // Others' follows end for it, and others may have its names: that it is deleted must last.
    tenant.router().fence(touched).await?;
    // After the fence: a name that is given up anybody may take.
    let names = claims::of_account(tenant, account, touched).await?;
    let names: Vec<Claim> = names.held.into_iter().chain(names.wanted).collect();
    claims::give_up_all(tenant, account, &names).await?;
    let asked = accounts_in(tenant, account, &tenant.keys().requested(account)).await?;
    let followed: Vec<AccountId> = followed.into_iter().flatten().collect();
    // H276: before it leaves them: another run wouldn't know any more which groups these are.
    pass_groups_on(&graph.journal, account, &followed, touched).await?;
    for author in followed.into_iter().chain(asked) {
        note(touched, unfollow(graph, account, author).await)?;
    }
    for reader in accounts_in(tenant, account, &tenant.keys().waiting(account)).await? {
        note(touched, unfollow(graph, reader, account).await)?;
    }
    let followers = tenant.followers(account)?;
    let mut next = Some(Checkpoint::START);
    while let Some(from) = next {
        let mut said = TouchedServers::new();
        let page = followers.walk_said(from, &mut said).await?;
        // H120: whoever says who follows must be right when the entry is struck.
        touched.extend(&said);
        let mut turned_away = stream::iter(page.entries)
            .map(|(reader, _)| async move {
                // Each leaves a task: users' own must find room beside them.
                graph.journal.tasks.room().await;
                unfollow(graph, reader, account).await
            })
            .buffer_unordered(AT_ONCE);
        while let Some(outcome) = turned_away.next().await {
            note(touched, outcome)?;
        }
        next = page.next;
    }
    ties(tenant, account, touched).await?;
    // H126, H246: what is on its way to lists of this account is looked at anew, and finds nobody.
    let mentions = NamedList::Mentions(account);
    let told = post_list(tenant, mentions)?.remove_for_good(&[ListItem::Number(ListNumber::Floor)]).await?;
    touched.extend(&told.touched);
    delete_all_written(&graph.journal, account, touched).await?;
    posts(&graph.journal, account, touched).await?;
    archived(&graph.journal, account, touched).await?;
    public(tenant, account).await?;
    // Where followers are spread a primary that was replaced may not know some; after this nobody does (H120).
    tenant.router().fence(touched).await?;
    sets(tenant, account, &followers, touched).await?;
    Ok(RunOutcome::Done)
}

/// Notes who acknowledged that; an account that is gone itself has nothing left to change.
fn note(touched: &mut TouchedServers, outcome: Result<Epoch>) -> Result<()> {
    match outcome {
        Ok(epoch) => touched.add_epoch(&epoch),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    Ok(())
}

/// Takes the account off the lists of who likes a post, page by page: another run finds those that are left.
async fn ties(tenant: &Tenant, account: AccountId, touched: &mut TouchedServers) -> Result<()> {
    let likes = tenant.likes(account)?;
    let mut next = Some(Checkpoint::START);
    while let Some(from) = next {
        let page = likes.walk(from).await?;
        next = page.next;
        let posts: Vec<PostRef> = page.entries.into_iter().map(|(post, _)| post).collect();
        // The record says "deleted", so each look finds that nothing is liked any more.
        let mut settled = stream::iter(posts.clone())
            .map(|post| async move {
                let mut said = TouchedServers::new();
                settle_tie(tenant, account, post, &mut said).await.map(|_| said)
            })
            .buffer_unordered(AT_ONCE);
        while let Some(said) = settled.next().await {
            touched.extend(&said?);
        }
        drop(settled);
        // That the lists forget it must last before nobody knows any more which lists these are.
        tenant.router().fence(touched).await?;
        likes.remove(&posts).await?;
    }
    Ok(())
}

/// Deletes all posts, the oldest first; the outbox goes last, so that another run finds what is left.
async fn posts(journal: &Arc<Journal>, account: AccountId, touched: &mut TouchedServers) -> Result<()> {
    let tenant = &journal.tenant;
    let (outbox, slot) = (tenant.keys().outbox(account), tenant.slot(account));
    let mut from = 0;
    loop {
        let range = Command::new("LRANGE").arg(&outbox).arg(from).arg(from + POSTS_AT_ONCE - 1);
        let elements = tenant.router().call(Request::read(slot, range)).await?.into_array()?;
        if elements.is_empty() {
            return Ok(());
        }
        from += elements.len();
        let id = |element: &Reply| {
            let bytes: [u8; 8] = element.bytes().ok()?.try_into().ok()?;
            PostId::from_u64(u64::from_be_bytes(bytes) & (u64::MAX >> 1)).ok()
        };
        let ids: Vec<PostId> = elements.iter().filter_map(id).collect();
        let stored = tenant.posts().get_many(ids.iter().copied()).await?;
        some_posts(journal, account, ids.into_iter().zip(stored).collect(), touched).await?;
    }
}

/// Takes its posts off the public ones of its bucket: by then they are gone.
async fn public(tenant: &Tenant, account: AccountId) -> Result<()> {
    let (bucket, slot) = (tenant.bucket(account), tenant.slot(account));
    let all = Command::new("GETRANGE").arg(&tenant.keys().public_posts(bucket)).arg("0").arg("-1");
    let listed = tenant.router().call(Request::read(slot, all)).await?;
    let own: Vec<PostRef> = public_entries(listed.bytes()?).filter(|post| post.author == account).collect();
    for posts in own.chunks(KEYS_AT_ONCE) {
        let command = functions::public_drop(tenant.keys(), bucket, posts);
        tenant.router().call(Request::write(slot, command)).await?;
    }
    Ok(())
}

/// Deletes these posts, takes them off the lists of what they refer to, and drops their own lists.
pub(super) async fn some_posts(
    journal: &Arc<Journal>,
    account: AccountId,
    stored: Vec<(PostId, StoredPost)>,
    touched: &mut TouchedServers,
) -> Result<()> {
    let tenant = &journal.tenant;
    let ids: Vec<PostId> = stored.iter().map(|(id, _)| *id).collect();
    let (keys, bucket) = (tenant.keys(), tenant.bucket(account));
    let (mut entries, mut posts) = (Vec::new(), Vec::new());
    for (id, stored) in stored {
        // An id that a failover has given twice may be another author's post by now.
        match &stored {
            StoredPost::There(post) if post.header().author == account => {}
            StoredPost::Unreadable(unreadable) if !unreadable.is_anothers(account) => {}
            StoredPost::There(_) | StoredPost::Gone | StoredPost::Unreadable(_) => continue,
        }
        posts.push(keys.post(id));
        // No burial comes to a halt for one that can't be read.
        if let Some(post) = stored.but_for_visibility().found() {
            entries.extend(entries_of_deleted(tenant, bucket, id, &post));
        } else if is_searched(tenant) {
            entries.push(JournalEntry::new(
                bucket,
                tenant.instance,
                IndexTask { post: PostRef { id, author: account } },
            ));
        }
    }
    bury_keys(tenant, account, posts, false, &entries, touched).await?;
    // Without a place here they are found in the journal later.
    if let Ok(_places) = reserve(journal, entries.len()) {
        entries.into_iter().for_each(|entry| drop(accept(journal, entry)));
    }
    // After the posts: who is about to add to such a list finds none, and adds nothing.
    drop_lists(tenant, &ids, touched).await
}

/// Only while the record says "deleted": an executor that stalled must not harm anybody.
async fn bury_keys(
    tenant: &Tenant,
    account: AccountId,
    dropped: Vec<Vec<u8>>,
    all: bool,
    entries: &[JournalEntry],
    touched: &mut TouchedServers,
) -> Result<()> {
    let (keys, most) = (tenant.keys(), tenant.settings.journal_max);
    let of = [keys.account(account), keys.journal(tenant.bucket(account))];
    let of: Vec<Vec<u8>> = of.into_iter().chain(dropped).collect();
    let values: Vec<_> = entries.iter().map(|entry| (entry.id, entry.stored())).collect();
    let command = functions::account_bury(&of, all, most, &values);
    let answer = tenant.router().ask(Request::write(tenant.slot(account), command)).await?;
    touched.add(&answer);
    match answer.ok()?.int()? {
        1 => Ok(()),
        -1 => Err(journal_full(tenant)),
        -2 => Err(Error::unavailable(
            "the journal holds entries of an earlier try to delete the account: send it again with new ones",
        )),
        _ => Err(Error::new(
            ErrorKind::Conflict,
            format!("account {account} is not deleted any more: nothing of it is taken away"),
        )),
    }
}

/// Drops the keys of the account itself, and its followers' edges in other buckets: nobody follows it any more, and an
/// edge that a pair on its way still writes is taken off by that pair.
async fn sets(
    tenant: &Tenant,
    account: AccountId,
    followers: &SortedSet<AccountId>,
    touched: &mut TouchedServers,
) -> Result<()> {
    let keys = tenant.keys();
    let mut own: Vec<Vec<u8>> = OwnKey::ALL.iter().map(|own| keys.own(*own, account)).collect();
    for set in
        [tenant.following(account)?, tenant.mutes(account)?, tenant.blocks(account)?, tenant.hides(account)?]
    {
        own.extend(set.keys_at_home().await?);
    }
    for list in [NamedList::Mentions(account), NamedList::Chats(account), NamedList::Written(account)] {
        own.extend(post_list(tenant, list)?.keys_at_home().await?);
        own.extend(floors(tenant, list)?.keys_at_home().await?);
    }
    for kept in ChatPlaces::ALL {
        own.extend(kept.of(tenant, account)?.keys_at_home().await?);
    }
    for set in [tenant.likes(account)?, tenant.bookmarks(account)?, tenant.reposts(account)?] {
        own.extend(set.keys_at_home().await?);
    }
    // Before the keys at home, which say that there are parts elsewhere: another run finds what is left.
    followers.drop_parts().await?;
    own.extend(followers.keys_at_home().await?);
    for chunk in own.chunks(KEYS_AT_ONCE) {
        bury_keys(tenant, account, chunk.to_vec(), true, &[], touched).await?;
    }
    let days = Command::new("ZREM").arg(&tenant.keys().days(tenant.bucket(account)));
    let days = days.arg(&account.to_bytes());
    tenant.router().call(Request::write(tenant.slot(account), days)).await.map(drop)
}
