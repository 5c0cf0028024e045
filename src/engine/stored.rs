//! A view of what is stored, without looking who asks.

use std::collections::HashSet;

use futures::future::try_join;

use super::Engine;
use crate::account::Account;
use crate::error::{CallFuture, Result};
use crate::graph::{self, GroupRole, GroupStaff};
use crate::ids::{AccountId, PostId};
use crate::post::{Post, PostRef};
use crate::sharded::{Checkpoint, CommonMembers, Order, SetPage};
use crate::tenant::{Answers, no_account};
use crate::timeline::{self, Cursor, HiddenBecause, Query};

/// A view of what is stored, whoever may see it: for moderation, for what a service decides by, for tests. What
/// somebody may see is a [`Reader`](crate::Reader)'s affair.
#[derive(Debug, Clone, Copy)]
pub struct StoredData<'a> {
    engine: &'a Engine,
}

impl Engine {
    /// Gives access to what is stored, whoever may see it.
    pub fn stored(&self) -> StoredData<'_> {
        StoredData { engine: self }
    }
}

impl<'a> StoredData<'a> {
    /// An account's record, with its counts; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if it doesn't exist,
    /// or is deleted.
    ///
    /// How many follow it is exact while these are few (below `spread_at`), else at most a minute old.
    pub fn account(self, id: AccountId) -> CallFuture<'a, Account> {
        Box::pin(async move {
            let account = self.shown(id).await?;
            if !graph::is_uncounted(&account, self.engine.tenant().router().now_ms()) {
                return Ok(account);
            }
            graph::count_followers(self.engine.tenant(), id).await?;
            self.shown(id).await
        })
    }

    async fn shown(self, id: AccountId) -> Result<Account> {
        let mut answers =
            Answers::of(self.engine.tenant(), self.engine.tenant().shown_requests(id).collect()).await?;
        let account = self.engine.graph().readers.read_shown(id, &mut answers)?.filter(Account::is_there);
        account.ok_or_else(|| no_account(id))
    }

    /// A post; `None`: there is none. [`ErrorKind::Internal`](crate::ErrorKind::Internal): it can't be read, so nobody
    /// sees it.
    pub fn post(self, id: PostId) -> CallFuture<'a, Option<Post>> {
        Box::pin(async move { self.engine.tenant().posts().get(id).await?.readable() })
    }

    /// Whether `reader` follows `author`.
    pub fn is_following(self, reader: AccountId, author: AccountId) -> CallFuture<'a, bool> {
        Box::pin(async move { Ok(self.engine.tenant().following(reader)?.score(&author).await?.is_some()) })
    }

    /// Lists who is on the staff of a group, by their ids: members with a role.
    pub fn group_staff(self, group: AccountId) -> CallFuture<'a, Vec<(AccountId, GroupRole)>> {
        Box::pin(async move {
            let staff = GroupStaff::of(self.engine.tenant(), group).await?;
            let (accounts, roles): (Vec<AccountId>, Vec<GroupRole>) = staff.roles().iter().unzip();
            let are_members = graph::are_members(self.engine.tenant(), group, &accounts).await?;
            let staff = accounts.into_iter().zip(roles).zip(are_members);
            Ok(staff.filter(|(_, is_member)| *is_member).map(|(of, _)| of).collect())
        })
    }

    /// Whether an account is on the staff of a group: a member with a role.
    pub fn is_on_staff(self, group: AccountId, account: AccountId) -> CallFuture<'a, bool> {
        Box::pin(async move {
            Ok(!GroupStaff::groups_looked_after(self.engine.tenant(), account, &[group]).await?.is_empty())
        })
    }

    /// Whether each follows the other.
    pub fn is_mutual(self, one: AccountId, other: AccountId) -> CallFuture<'a, bool> {
        Box::pin(async move {
            let both = (self.is_following(one, other), self.is_following(other, one));
            let (a, b) = try_join(both.0, both.1).await?;
            Ok(a && b)
        })
    }

    /// A page of whom an account follows, by the time of the follow.
    pub fn following(
        self,
        account: AccountId,
        after: Option<&'a (AccountId, f64)>,
        limit: usize,
        order: Order,
    ) -> CallFuture<'a, SetPage<AccountId>> {
        Box::pin(async move { self.engine.tenant().following(account)?.page(.., after, limit, order).await })
    }

    /// A page of who follows an account, by the time of the follow.
    pub fn followers(
        self,
        account: AccountId,
        after: Option<&'a (AccountId, f64)>,
        limit: usize,
        order: Order,
    ) -> CallFuture<'a, SetPage<AccountId>> {
        Box::pin(async move { self.engine.tenant().followers(account)?.page(.., after, limit, order).await })
    }

    /// Tells how many an account follows, and how many follow it, counted now. [`Account`](crate::Account) has both
    /// too, and costs less: those who follow an account that many follow are asked for in every bucket here.
    pub fn counts(self, account: AccountId) -> CallFuture<'a, (u64, u64)> {
        Box::pin(async move {
            let (following, followers) =
                (self.engine.tenant().following(account)?, self.engine.tenant().followers(account)?);
            try_join(following.len(), followers.len()).await
        })
    }

    /// Lists whom both accounts follow.
    pub fn common_following(self, one: AccountId, other: AccountId) -> CallFuture<'a, Vec<AccountId>> {
        Box::pin(async move {
            let sets = [self.engine.tenant().following(one)?, self.engine.tenant().following(other)?];
            let members = self.engine.tenant().sets().members_of(&[&sets[0], &sets[1]]).await?;
            let mut both = members.into_iter();
            let first: HashSet<AccountId> = both.next().into_iter().flatten().collect();
            Ok(both.next().into_iter().flatten().filter(|id| first.contains(id)).collect())
        })
    }

    /// Gives followers of both accounts: some of them and a checkpoint, until there is none. Walks the followers of
    /// `one`, which should be the one with fewer.
    pub fn common_followers(
        self,
        one: AccountId,
        other: AccountId,
        from: Checkpoint,
    ) -> CallFuture<'a, CommonMembers<AccountId>> {
        Box::pin(async move {
            self.engine.tenant().followers(one)?.common(&self.engine.tenant().followers(other)?, from).await
        })
    }

    /// Gives those who wait for a locked account's answer, by their ids. With what they show of themselves, page by
    /// page: [`Reader::follow_requests`](crate::Reader::follow_requests).
    pub fn follow_requests(self, account: AccountId) -> CallFuture<'a, Vec<AccountId>> {
        Box::pin(
            async move { Ok(graph::waiting(self.engine.tenant(), account).await?.into_iter().collect()) },
        )
    }

    /// Lists the accounts on which this one has a private note. What that says:
    /// [`Reader::relationships`](crate::Reader::relationships).
    pub fn noted(self, account: AccountId) -> CallFuture<'a, Vec<AccountId>> {
        Box::pin(async move { graph::noted(self.engine.tenant(), account).await })
    }

    /// Lists an account's posts, the latest first, also those that nobody sees: so many or more from there on, and
    /// where to go on. What it has written into groups and chats: [`written`](Self::written).
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable): only an archive that is away could tell.
    pub fn posts(
        self,
        author: AccountId,
        from: Option<Cursor>,
        limit: usize,
    ) -> CallFuture<'a, (Vec<PostId>, Option<Cursor>)> {
        Box::pin(async move {
            let query = Query { cursor: from, ..Query::profile(author).limit(limit) };
            let by = self.engine.as_reader(author).viewpoint();
            let (page, judged) = timeline::explain(by, &query).await?;
            let is_there = |verdict: &Result<(), HiddenBecause>| *verdict != Err(HiddenBecause::Gone);
            let posts = judged.into_iter().filter(|(_, verdict)| is_there(verdict));
            Ok((posts.map(|(post, _)| post.id).collect(), page.next))
        })
    }

    /// Lists what an account has written into groups and chats, the latest first: so many behind that one, none at the
    /// end.
    pub fn written(
        self,
        writer: AccountId,
        after: Option<PostRef>,
        limit: usize,
    ) -> CallFuture<'a, Vec<PostRef>> {
        Box::pin(async move { graph::written(self.engine.tenant(), writer, after, limit).await })
    }
}
