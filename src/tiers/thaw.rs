//! Bringing a post back into memory that somebody changes: a like, an answer, an edit, a word of a moderator.

use std::slice;

use super::begin::Tiers;
use super::bundle::{keys_of, thawed};
use crate::archive::{
    Archive, ListKind, ListMember, MembersAnswer, MembersAsk, OwnerState, PAGE_MAX, PostAsk,
};
use crate::cluster::{Batch, Command, Reply, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{PostThaw, ThawAnswer, ThawReason};
use crate::ids::AccountId;
use crate::meters;
use crate::post::{LISTS, PostHeader, PostRef};
use crate::stored::ArchiveFloor;
use crate::tenant::{Tenant, archive_away, changed_always};

/// Tries of one thaw while its author's posts move.
const TRIES_MAX: usize = 16;

/// Brings a post back that has left memory. True: it is in memory now; false: there is no such post.
pub(crate) async fn thaw(tenant: &Tenant, post: PostRef, touched: &mut TouchedServers) -> Result<bool> {
    thaw_for(tenant, post, ThawReason::Change, touched).await
}

/// Brings a post back for who compares what it finds in memory with what it changes.
pub(crate) async fn thaw_of(tenant: &Tenant, post: PostRef) -> Result<bool> {
    thaw_for(tenant, post, ThawReason::Change, &mut TouchedServers::new()).await
}

/// Brings a post back for who deletes it.
pub(crate) async fn thaw_to_delete(tenant: &Tenant, post: PostRef) -> Result<bool> {
    thaw_for(tenant, post, ThawReason::Deletion, &mut TouchedServers::new()).await
}

/// Brings a post back into memory that lies above its author's floor and is in the archive alone, and has the outbox
/// list it. False: it is in memory, or nowhere.
pub(crate) async fn recover(tenant: &Tenant, post: PostRef) -> Result<bool> {
    thaw_for(tenant, post, ThawReason::Recovery, &mut TouchedServers::new()).await
}

async fn thaw_for(
    tenant: &Tenant,
    post: PostRef,
    reason: ThawReason,
    touched: &mut TouchedServers,
) -> Result<bool> {
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(false) };
    if tenant.bucket(post.author) != post.id.bucket(tenant.keys().buckets()) {
        return Ok(false);
    }
    for _ in 0..TRIES_MAX {
        if let Some(is_there) = tiers.thaw_once(post, reason, touched).await? {
            return Ok(is_there);
        }
    }
    Err(changed_always(ErrorKind::Unavailable, format_args!("post {}", post.id)))
}

impl Tiers<'_> {
    /// Whether nobody has changed what the archive has of an account since. H177: whoever deletes a post has the
    /// archive forget it while it is in memory, and may die then: it is there.
    async fn is_unchanged(&self, account: AccountId, token: &Reply) -> Result<bool> {
        let [record, ..] = self.keys(account);
        let now = Command::new("HGET").arg(&record).arg(RecordField::ARCHIVE_TOKEN);
        let now = self.tenant.router().call(Request::read(self.tenant.slot(account), now)).await?;
        Ok(now == *token)
    }

    /// One try. `None`: look again.
    async fn thaw_once(
        &self,
        post: PostRef,
        reason: ThawReason,
        touched: &mut TouchedServers,
    ) -> Result<Option<bool>> {
        let (tenant, slot) = (self.tenant, self.tenant.slot(post.author));
        let [record, outbox, agenda] = self.keys(post.author);
        let mut batch = Batch::new();
        // H258: the token first: whatever changes after that, this try comes to nothing.
        batch.push_ordered([
            Request::read(slot, Command::new("HGET").arg(&record).arg(RecordField::ARCHIVE_TOKEN)),
            tenant.posts().exists_request(post.id),
            Request::read(slot, Command::new("LINDEX").arg(&outbox).arg("0")),
        ]);
        let mut said = tenant.run_all(batch).await?;
        said.iter().for_each(|answer| touched.add(answer));
        let mut next = || said.drain(..1).next().ok_or_else(|| Error::internal("an answer is missing"));
        let (token, exists, first) = (next()?.ok()?, next()?.ok()?.int()?, next()?.ok()?);
        let is_recovery = reason == ThawReason::Recovery;
        if exists == 1 {
            return Ok(Some(!is_recovery));
        }
        let floor = ArchiveFloor::read(&first)?;
        if floor.is_some_and(|floor| post.id <= floor.upto) == is_recovery {
            return Ok(Some(false));
        }
        let bucket = tenant.bucket(post.author);
        let ask = PostAsk { bucket, id: post.id, owner: Some(post.author) };
        let answer = self.archive.posts(&[ask]).await.map_err(archive_away)?.pop();
        let answer = answer.ok_or_else(|| Error::internal("the archive has not answered"))?;
        let check = |state| floor.map_or(Ok(()), |floor: ArchiveFloor| floor.check(post.author, state));
        check(answer.owner)?;
        let Some(archived) = answer.post else {
            return Ok(self.is_unchanged(post.author, &token).await?.then_some(false));
        };
        let header = PostHeader::parse(&archived.stored).ok();
        if is_recovery && header.is_none() {
            return Ok(Some(false));
        }
        let is_listed =
            header.is_none_or(|of| of.likes > 0 || of.reposts > 0 || of.replies > 0 || of.quotes > 0);
        let mut members = <[Vec<ListMember>; 4]>::default();
        if is_listed {
            for (members, (letter, ..)) in members.iter_mut().zip(LISTS) {
                let all =
                    MembersAsk { bucket, post: post.id, kind: ListKind(letter), below: None, most: PAGE_MAX };
                let all = all_members(self.archive, all, check).await?;
                // Deleted since the post was read: look again.
                let Some(all) = all else { return Ok(None) };
                *members = all;
            }
        }
        let (lists, pieces) = thawed(tenant, &archived, members)?;
        let keys = [record, outbox, agenda].into_iter().chain(keys_of(tenant, post.id)?).chain(pieces);
        let thaw = PostThaw {
            keys: keys.collect(),
            account: post.author,
            id: post.id,
            token: if token.is_nil() { Vec::new() } else { token.bytes()?.to_vec() },
            stored: &archived.stored,
            reason,
            warm_at: self.warm_until(),
            lists,
        };
        let answer = tenant.router().ask(Request::write(slot, thaw.command())).await?;
        touched.add(&answer);
        Ok(match ThawAnswer::parse(answer.ok()?)? {
            ThawAnswer::Done => {
                meters::post_thawed();
                Some(true)
            }
            ThawAnswer::There => Some(!is_recovery),
            ThawAnswer::Changed => None,
            ThawAnswer::NoAccount => Some(false),
        })
    }
}

/// All members of a list in the archive, descending: as many as a post may have that has left memory. `None`: the post
/// is gone. H228: `check` refuses what an archive says that has forgotten since what it has just told of the post.
pub(super) async fn all_members(
    archive: &dyn Archive,
    mut ask: MembersAsk,
    check: impl Fn(Option<OwnerState>) -> Result<()>,
) -> Result<Option<Vec<ListMember>>> {
    let mut members = Vec::new();
    loop {
        let answer = archive.members(slice::from_ref(&ask)).await.map_err(archive_away)?.pop();
        let Some(MembersAnswer { owner: Some(state), members: page }) = answer else { return Ok(None) };
        check(Some(state))?;
        let is_last = page.len() < ask.most;
        ask.below = page.last().cloned();
        members.extend(page);
        if is_last {
            return Ok(Some(members));
        }
    }
}
