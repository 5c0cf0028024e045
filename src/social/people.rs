//! Lists of people, a page at a time: who follows whom, as a reader may meet them; and an account's own affairs, which
//! are for itself alone: whom it mutes, blocks, hides from, who asks to follow it, and whom it has asked.

use std::collections::HashSet;

use futures::future::{try_join, try_join3};

use super::lists::{AccountList, ListQuery, ListedEntries, READS_MAX, read, read_ids, read_seen};
use crate::engine::{Reader, Viewer};
use crate::error::{CallFuture, Error, ErrorCode, Result};
use crate::graph::{self, GroupRole, GroupStaff};
use crate::ids::AccountId;
use crate::meters;
use crate::reader;
use crate::sharded::SortedSet;
use crate::timeline::View;

impl<'a> Viewer<'a> {
    /// Lists who follows an account, the latest first, as far as the viewer may meet them, and wants to; of its own
    /// followers it meets all. The list of an account that is suspended, that blocks the viewer or hides from it is
    /// empty, and that of a private group for who isn't in it. The staff of a group meets all of its members whom it
    /// doesn't block itself.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such account.
    pub fn followers(self, account: AccountId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("followers");
            self.met(account, &self.engine.tenant().followers(account)?, query).await
        })
    }

    /// Lists whom an account follows, the latest first, private groups that the viewer isn't in left out; the rest as
    /// for [`followers`](Self::followers).
    pub fn following(self, account: AccountId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("following");
            self.met(account, &self.engine.tenant().following(account)?, query).await
        })
    }

    /// Lists who is on the staff of a group, by their ids: members with a role.
    ///
    /// [`NotAllowed`](crate::ErrorCode::NotAllowed): it is private, and the viewer isn't in it.
    pub fn group_staff(self, group: AccountId) -> CallFuture<'a, Vec<(AccountId, GroupRole)>> {
        Box::pin(async move {
            let (staff, mut view) = try_join(self.engine.stored().group_staff(group), self.view()).await?;
            view.load(&[], &[group]).await?;
            if view.knows_members(group) {
                return Ok(staff);
            }
            Err(Error::new(ErrorCode::NotAllowed, format!("only members of group {group} see who is in it")))
        })
    }

    /// A list that others may see too.
    async fn met(
        self,
        account: AccountId,
        list: &SortedSet<AccountId>,
        query: &ListQuery,
    ) -> Result<AccountList> {
        let exists = self.engine.tenant().existing(account);
        let (_, mut listed, mut view) = try_join3(exists, read_seen(list, query), self.view()).await?;
        let all: Vec<AccountId> = listed.members().into_iter().chain([account]).collect();
        view.load(&[], &all).await?;
        let is_own = self.reader == account;
        if !is_own && (!view.may_meet(account) || !view.knows_members(account)) {
            return Ok(AccountList::default());
        }
        // A group's staff meets who is in it, whomever that blocks: nobody gets away from it so.
        let tenant = self.engine.tenant();
        let is_group = view.any_account(account).is_some_and(|account| account.kind.is_group());
        let meets_all = is_own
            || is_group
                && !GroupStaff::groups_looked_after(tenant, self.reader, &[account]).await?.is_empty();
        let found = |view: &View<'_>, id: AccountId| match meets_all {
            // What a block ends goes a moment later.
            true => view.any_account(id).filter(|_| !view.blocks(id)),
            false => view.account(id).filter(|_| view.knows_members(id)),
        };
        for _ in 1..READS_MAX {
            let Some(more) = listed.read_on(list, |id| found(&view, *id).is_some()).await? else { break };
            view.load(&[], &more.members()).await?;
            listed = more;
        }
        Ok(listed.accounts(|id| found(&view, id)))
    }
}

impl<'a> Reader<'a> {
    /// Lists whom the account mutes, the latest first. Who is suspended or gone is left out.
    pub fn mutes(self, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("mutes");
            let graph = self.engine.graph();
            let mutes = graph.tenant.mutes(self.account)?;
            // First the list: whom it has muted meanwhile the state knows, too.
            let listed = read(&mutes, query).await?;
            let (mut view, now) =
                try_join(self.view(), reader::current(&graph.readers, self.account)).await?;
            view.load(&[], &listed.members()).await?;
            // Those that have ended stand there until the next change.
            Ok(listed.accounts(|id| view.any_account(id).filter(|_| now.state.mutes(id.get()))))
        })
    }

    /// Lists whom the account blocks; the rest as for [`mutes`](Self::mutes).
    pub fn blocks(self, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("blocks");
            self.own(read(&self.engine.tenant().blocks(self.account)?, query)).await
        })
    }

    /// Lists from whom the account hides its posts; the rest as for [`mutes`](Self::mutes).
    pub fn hides(self, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("hides");
            self.own(read(&self.engine.tenant().hides(self.account)?, query)).await
        })
    }

    /// Lists who waits for the account's answer. When they asked isn't known, so they come by their ids, the highest
    /// first. Whom it has answered is left out at once. The rest as for [`mutes`](Self::mutes).
    pub fn follow_requests(self, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("follow_requests");
            let tenant = self.engine.tenant();
            let waiting = async { read_ids(&graph::waiting(tenant, self.account).await?, query) };
            let (listed, mut view) = try_join(waiting, self.view()).await?;
            let waiting = listed.members();
            let stand = graph::relationships(tenant, self.account, &waiting);
            let ((), stand) = try_join(view.load(&[], &waiting), stand).await?;
            let asking = stand.into_iter().flatten().filter(|other| other.is_requested);
            let asking: HashSet<AccountId> = asking.map(|other| other.account).collect();
            Ok(listed.accounts(|id| view.any_account(id).filter(|_| asking.contains(&id))))
        })
    }

    /// Lists whose answer the account waits for; the rest as for [`follow_requests`](Self::follow_requests).
    pub fn requested(self, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("requested");
            self.own(async {
                read_ids(&graph::requests_made(self.engine.tenant(), self.account).await?, query)
            })
            .await
        })
    }

    /// A list that is for its account alone.
    async fn own(
        self,
        listed: impl Future<Output = Result<ListedEntries<AccountId>>>,
    ) -> Result<AccountList> {
        let (listed, mut view) = try_join(listed, self.view()).await?;
        view.load(&[], &listed.members()).await?;
        Ok(listed.accounts(|account| view.any_account(account)))
    }
}
