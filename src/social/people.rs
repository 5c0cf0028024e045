//! Lists of people, a page at a time: who follows whom, as a reader may meet them; and an account's own affairs, which
//! are for itself alone: whom it mutes, blocks, hides from, who asks to follow it, and whom it has asked.

use std::collections::HashSet;

use futures::future::{try_join, try_join3};

use super::Social;
use super::lists::{AccountList, ListQuery, Listed, read, read_ids};
use crate::error::{CallFuture, Result};
use crate::graph;
use crate::ids::AccountId;
use crate::meters;
use crate::sharded::SortedSet;

impl Social {
    /// Who follows an account, the latest first, as far as the reader may meet them, and wants to; of its own followers
    /// it meets all. The list of an account that is suspended, that blocks the reader or hides from it is empty.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such account.
    pub fn followers<'a>(
        &'a self,
        reader: AccountId,
        account: AccountId,
        query: &'a ListQuery,
    ) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("followers");
            self.met(reader, account, &self.engine.graph().followers(account)?, query).await
        })
    }

    /// Whom an account follows, the latest first; the rest as for [`followers`](Self::followers).
    pub fn following<'a>(
        &'a self,
        reader: AccountId,
        account: AccountId,
        query: &'a ListQuery,
    ) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("following");
            self.met(reader, account, &self.engine.graph().following(account)?, query).await
        })
    }

    /// Whom an account mutes, the latest first: for itself. Who is suspended or gone is left out.
    pub fn mutes<'a>(&'a self, account: AccountId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("mutes");
            self.own(account, read(&self.engine.graph().mutes(account)?, query)).await
        })
    }

    /// Whom an account blocks; the rest as for [`mutes`](Self::mutes).
    pub fn blocks<'a>(&'a self, account: AccountId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("blocks");
            self.own(account, read(&self.engine.graph().blocks(account)?, query)).await
        })
    }

    /// From whom an account hides its posts; the rest as for [`mutes`](Self::mutes).
    pub fn hides<'a>(&'a self, account: AccountId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("hides");
            self.own(account, read(&self.engine.graph().hides(account)?, query)).await
        })
    }

    /// Who waits for an account's answer: for itself. When they asked isn't known, so they come by their ids, the highest
    /// first. Whom it has answered is left out at once. The rest as for [`mutes`](Self::mutes).
    pub fn follow_requests<'a>(
        &'a self,
        account: AccountId,
        query: &'a ListQuery,
    ) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("follow_requests");
            let graph = self.engine.graph();
            let waiting = async { read_ids(&graph::waiting(graph, account).await?, query) };
            let (listed, mut view) = try_join(waiting, self.engine.view(account)).await?;
            let stand = graph::relationships(graph, account, &listed.entries);
            let ((), stand) = try_join(view.load(&[], &listed.entries), stand).await?;
            let asking = stand.into_iter().flatten().filter(|other| other.is_requested);
            let asking: HashSet<AccountId> = asking.map(|other| other.account).collect();
            Ok(listed.accounts(|id| view.any_account(id).filter(|_| asking.contains(&id))))
        })
    }

    /// Whose answer an account waits for; the rest as for [`follow_requests`](Self::follow_requests).
    pub fn requested<'a>(&'a self, account: AccountId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            meters::list("requested");
            self.own(account, async {
                read_ids(&graph::requests_made(self.engine.graph(), account).await?, query)
            })
            .await
        })
    }

    /// A list that others may see too.
    async fn met(
        &self,
        reader: AccountId,
        account: AccountId,
        list: &SortedSet<AccountId>,
        query: &ListQuery,
    ) -> Result<AccountList> {
        let exists = self.engine.graph().existing(account);
        let (_, listed, mut view) = try_join3(exists, read(list, query), self.engine.view(reader)).await?;
        let all: Vec<AccountId> = listed.entries.iter().copied().chain([account]).collect();
        view.load(&[], &all).await?;
        if reader == account {
            // What a block ends goes a moment later.
            return Ok(listed.accounts(|id| view.any_account(id).filter(|_| !view.blocks(id))));
        }
        if !view.may_meet(account) {
            return Ok(AccountList::default());
        }
        Ok(listed.accounts(|account| view.account(account)))
    }

    /// A list that is for its account alone.
    async fn own(
        &self,
        account: AccountId,
        listed: impl Future<Output = Result<Listed<AccountId>>>,
    ) -> Result<AccountList> {
        let (listed, mut view) = try_join(listed, self.engine.view(account)).await?;
        view.load(&[], &listed.entries).await?;
        Ok(listed.accounts(|account| view.any_account(account)))
    }
}
