//! Groups: accounts whose members post into them.

use std::time::Duration;

use super::Engine;
use super::accounts::locked;
use super::byline::{Byline, PostingPlace};
use crate::account::NewAccount;
use crate::cluster::{Epoch, Request};
use crate::error::{CallFuture, Error, ErrorCode, ErrorKind, Result};
use crate::functions;
use crate::graph::{self, ApprovedBy, FollowOutcome, GroupRole};
use crate::ids::{AccountId, PostId};
use crate::nonce::Nonce;
use crate::post::PostRef;
use crate::settings::Receipt;
use crate::stored::home_entry;
use crate::tenant::no_post;

/// Tries of making the founder of a group its owner, while servers are away: who begins anew founds another one.
const OWNING_TRIES: usize = 20;
const OWNING_PAUSE: Duration = Duration::from_millis(100);

impl Engine {
    /// Creates a group, with a first owner: an account of the kind [`Group`](crate::AccountKind::Group), whose members
    /// all post, or [`Announcement`](crate::AccountKind::Announcement), whose staff alone does. A locked one is
    /// private: only members see what is posted there, and who wants to join waits for the staff's answer, or is
    /// invited.
    ///
    /// Whoever follows a group is a member of it, and posts into it with [`Draft::group`](crate::post::Draft::group);
    /// [`join_group`](Self::join_group) and [`leave_group`](Self::leave_group) keep its rules for that.
    ///
    /// If it fails half-way the group may be there without an owner:
    /// [`set_group_role`](Self::set_group_role) gives it one.
    pub fn create_group(&self, founder: AccountId, new: NewAccount) -> CallFuture<'_, Receipt<AccountId>> {
        Box::pin(async move {
            if !new.kind.is_group() {
                return Err(Error::invalid("kind: a group is of the kind `Group` or `Announcement`"));
            }
            // It follows what it founds: refused afterwards, an account would be left each time.
            let follows = self.tenant.existing(founder).await?.following;
            let own = self.own_limits(founder).await?.followed_accounts;
            let most = own.unwrap_or(self.tenant.settings.following_max);
            if follows >= u64::from(most) {
                return Err(graph::following_bound(most).reached(founder));
            }
            let group = self.create_account(new.made_at(self.tenant.router().now_ms())).await?.value;
            let mut owned = self.own_group(group, founder).await;
            for _ in 0..OWNING_TRIES {
                if !owned.as_ref().is_err_and(|e| e.kind().is_retryable()) {
                    break;
                }
                tokio::time::sleep(OWNING_PAUSE).await;
                owned = self.own_group(group, founder).await;
            }
            match owned {
                Ok(owned) => Ok(owned.with(group)),
                Err(e) if e.kind().is_retryable() => {
                    let without =
                        format!("group {group} is there, and may lack its owner (`set_group_role`)");
                    Err(e.context(without))
                }
                // Refused: nobody would own it.
                Err(e) => {
                    if let Err(left) = self.delete_account(group).await {
                        tracing::warn!("group {group} has no owner, and was not deleted: {left}");
                    }
                    Err(e)
                }
            }
        })
    }

    /// Makes an account, which exists, the first owner of a group that has none yet.
    async fn own_group(&self, group: AccountId, founder: AccountId) -> Result<Receipt> {
        let (followed, _) = graph::follow(&self.graph, founder, group).await?;
        let given = async {
            if followed == FollowOutcome::Requested {
                graph::let_in_at_once(&self.graph, group, founder, ApprovedBy::Staff).await?;
            }
            self.set_group_role(group, group, founder, Some(GroupRole::Owner)).await
        };
        given.await.map_err(|e| match e.kind() {
            // H280: a failover has lost the follow, or the request: nobody has refused anything.
            ErrorKind::NotFound | ErrorKind::Invalid => {
                Error::unavailable(format!("account {founder} is no member of what it founds yet: {e}"))
            }
            _ => e,
        })
    }

    /// Gives a member a role on the staff of a group, or takes it away. `by`: who does so; the group itself stands for
    /// the service, which may all that an owner may. Owners may, and each member gives its own role up.
    ///
    /// [`NotAllowed`](crate::ErrorCode::NotAllowed): it may not, it isn't a member, or no owner would be left.
    pub fn set_group_role(
        &self,
        group: AccountId,
        by: AccountId,
        member: AccountId,
        role: Option<GroupRole>,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::set_role(&self.graph.journal, group, by, (member, role)).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Joins a group, or asks to, if it is private: whom it has [invited](Self::invite_to_group) is let in at once.
    pub fn join_group(&self, group: AccountId, account: AccountId) -> CallFuture<'_, Receipt<FollowOutcome>> {
        Box::pin(async move {
            let (followed, epoch) = graph::join(&self.graph, group, account).await?;
            Ok(self.acknowledged(epoch).await?.with(followed))
        })
    }

    /// Whether an account may post into a group now: it is a member, and of announcements on the staff. `false`, too,
    /// of what is no group.
    pub fn posts_into(&self, group: AccountId, account: AccountId) -> CallFuture<'_, bool> {
        Box::pin(async move {
            match graph::may_post(&self.tenant, group, account).await {
                Ok(_) => Ok(true),
                Err(e) if matches!(e.kind(), ErrorKind::Invalid | ErrorKind::NotFound) => Ok(false),
                Err(e) => Err(e),
            }
        })
    }

    /// Leaves a group, and gives one's role up. From then on one sees nothing of it that is for members.
    ///
    /// [`NotAllowed`](crate::ErrorCode::NotAllowed): the last owner can't.
    pub fn leave_group(&self, group: AccountId, member: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::leave(&self.graph, group, member).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Turns a member out of a group, who may join again. `by`: who does so, on the staff and above the member. Once it
    /// is acknowledged no page of whoever it was shows what is for members, and nothing more of it comes into the
    /// group.
    pub fn turn_out(&self, group: AccountId, by: AccountId, member: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epochs = graph::turn_out(&self.graph, group, by, member).await?;
            self.all_acknowledged(epochs).await
        })
    }

    /// Bans an account from a group: turns it out, and keeps it from joining; `false` takes that back.
    pub fn ban_from_group(
        &self,
        group: AccountId,
        by: AccountId,
        account: AccountId,
        on: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epochs = graph::ban(&self.graph, group, by, (account, on)).await?;
            self.all_acknowledged(epochs).await
        })
    }

    /// Invites an account into a group: it joins without waiting for an answer. `false` takes that back, which the
    /// account itself may, too. It is told by whoever invites it.
    pub fn invite_to_group(
        &self,
        group: AccountId,
        by: AccountId,
        account: AccountId,
        on: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::invite(&self.graph, group, by, (account, on)).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Answers who has asked to join a private group: lets it in, or not. `by`: who does so, on its staff.
    pub fn answer_group_request(
        &self,
        group: AccountId,
        by: AccountId,
        requester: AccountId,
        lets_in: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::answer(&self.graph, group, by, (requester, lets_in)).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Makes a group private, or open, for one of its owners. Who waits to be let in is, once it is open; what was
    /// posted before stays for members.
    ///
    /// [`NotAllowed`](crate::ErrorCode::NotAllowed): `by` is no owner.
    pub fn set_group_privacy(
        &self,
        group: AccountId,
        by: AccountId,
        is_private: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(self.set_fields((group, Some(by)), vec![locked(is_private)], !is_private))
    }

    /// Deletes a group for one of its owners, with all that was posted there.
    ///
    /// [`NotAllowed`](crate::ErrorCode::NotAllowed): `by` is no owner.
    pub fn delete_group(&self, group: AccountId, by: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(self.delete_as((group, Some(by)), false))
    }

    pub(super) async fn all_acknowledged(&self, epochs: Vec<Epoch>) -> Result<Receipt> {
        let mut receipt = Receipt { value: (), reached: self.tenant.settings.acknowledge };
        for epoch in epochs {
            let of = self.acknowledged(epoch).await?;
            if of.reached != receipt.reached {
                receipt = of;
            }
        }
        Ok(receipt)
    }

    /// Under which of a group's or a chat's stamps somebody may post into it; `None`: it is the affair of neither.
    pub(super) async fn allowed_under(&self, by: Byline) -> Result<Option<Nonce>> {
        match by.place {
            PostingPlace::Own => Ok(None),
            PostingPlace::Group => graph::may_post(&self.tenant, by.author, by.writer).await.map(Some),
            PostingPlace::Chat => Ok(Some(graph::may_write(&self.tenant, by.author, by.writer).await?)),
        }
    }

    /// Has who posted into a group find that at home, and who wrote to a chat have read it up to there.
    pub(super) async fn bring_to_writer(&self, by: Byline, id: PostId) {
        match by.place {
            PostingPlace::Own => {}
            PostingPlace::Group => self.bring_home(by.writer, PostRef { id, author: by.author }).await,
            PostingPlace::Chat => self.read_own(by, id).await,
        }
    }

    /// Brings a post into a group home to who wrote it, so that its next read shows it; the fan-out, or a pull, does
    /// the same a little later.
    async fn bring_home(&self, writer: AccountId, PostRef { id, author }: PostRef) {
        let (tenant, keys) = (&self.tenant, self.tenant.keys());
        let (home, head) = (keys.home(writer), keys.key_prefix(tenant.bucket(writer)));
        let entry = home_entry(id.get(), author.get());
        let fit = tenant.fit_of(tenant.known.decision());
        let deliver = functions::home_deliver_to(home, head, author, &entry, fit, &[writer]);
        if let Err(e) = tenant.router().call(Request::write(tenant.slot(writer), deliver)).await {
            tracing::debug!("post {id} comes to account {writer}, who wrote it, with its fan-out: {e}");
        }
    }

    /// The group or the chat that a post went into, if the account may take it away there: who wrote it, or is on the
    /// group's staff.
    pub(super) async fn group_of(&self, by: AccountId, id: PostId) -> Result<AccountId> {
        let post =
            self.tenant.posts().get(id).await?.but_for_visibility().found().ok_or_else(|| no_post(id))?;
        if post.is_by_member() && post.writer() == by {
            return Ok(post.header().author);
        }
        let group = post.group().ok_or_else(|| no_post(id))?;
        match graph::only_staff(&self.tenant, group, by).await {
            Ok(()) => Ok(group),
            // Who may not is told what everybody is told.
            Err(e) if e.kind() == ErrorKind::NotFound => Err(no_post(id)),
            Err(e) if e.code() == ErrorCode::NotAllowed => Err(no_post(id)),
            Err(e) => Err(e),
        }
    }
}
