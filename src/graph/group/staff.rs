//! The staff of a group as it stands at one moment, and what it says of somebody's rights.

use std::collections::BTreeMap;

use futures::future::{join_all, try_join, try_join_all};

use super::rights::{self, GroupRole, PosterFacts, PostingRight};
use crate::account::{AccountKind, AccountState};
use crate::cluster::{Batch, Command, Reply, Request};
use crate::error::{Error, ErrorCode, Result};
use crate::fields::RecordField;
use crate::functions::read_nonce;
use crate::graph::membership::is_member;
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::nonce::{Nonce, draw};
use crate::tenant::{Answers, Tenant, no_account};

impl GroupRole {
    /// As stored: a letter and random bytes, so that none looks like one that was there before.
    pub(in crate::graph) fn stored(self) -> Vec<u8> {
        let letter = match self {
            Self::Moderator => b'm',
            Self::Owner => b'o',
        };
        [&[letter][..], &draw()].concat()
    }

    /// Reads a role; one that a later release has written is the least.
    fn parse(stored: &[u8]) -> Self {
        if stored.first() == Some(&b'o') { Self::Owner } else { Self::Moderator }
    }
}

/// A group as its bucket has it at one moment.
#[derive(Debug)]
pub(crate) struct GroupStaff {
    pub(in crate::graph) group: AccountId,
    kind: AccountKind,
    pub(super) stamp: Nonce,
    pub(in crate::graph) roles: BTreeMap<AccountId, GroupRole>,
}

impl GroupStaff {
    /// Looks at a group.
    pub(crate) async fn of(tenant: &Tenant, group: AccountId) -> Result<Self> {
        let (keys, slot) = (tenant.keys(), tenant.slot(group));
        let fields = [RecordField::GRAPH_STAMP, RecordField::STATE, RecordField::KIND];
        let record = fields
            .iter()
            .fold(Command::new("HMGET").arg(&keys.account(group)), |command, field| command.arg(*field));
        let roles = Command::new("HGETALL").arg(&keys.own(OwnKey::Roles, group));
        let mut asked = Batch::with_capacity(2);
        // H219: first the stamp, then what it stands for.
        asked.push_ordered([record, roles].map(|command| Request::read(slot, command)));
        let mut answers = Answers::of(tenant, asked).await?;
        let [stamp, state, kind] = answers.next()?.into_values()?;
        let roles = answers.next()?.into_array()?;
        if stamp.is_nil() || AccountState::parse(state.bytes()?) == AccountState::Deleted {
            return Err(no_account(group));
        }
        let kind = kind.bytes().ok().and_then(|kind| kind.first().copied()).unwrap_or_default();
        let kind = AccountKind::from_letter(kind);
        if !kind.is_group() {
            return Err(Error::invalid(format!("account {group} is no group")));
        }
        let role = |[account, role]: &[Reply; 2]| {
            Ok((AccountId::from_bytes(account.bytes()?)?, GroupRole::parse(role.bytes()?)))
        };
        let roles = roles.as_chunks::<2>().0.iter().map(role).collect::<Result<_>>()?;
        Ok(Self { group, kind, stamp: read_nonce(&stamp)?, roles })
    }

    /// Finds those of these accounts that name somebody as one of their staff, in it or not any more.
    pub(in crate::graph) async fn with_a_role_for(
        tenant: &Tenant,
        holder: AccountId,
        accounts: &[AccountId],
    ) -> Result<Vec<AccountId>> {
        let role = |group: &AccountId| {
            let command = Command::new("HGET").arg(&tenant.keys().own(OwnKey::Roles, *group));
            Request::read(tenant.slot(*group), command.arg(&holder.to_bytes()))
        };
        let mut answers = Answers::of(tenant, accounts.iter().map(role).collect()).await?;
        let mut found = Vec::new();
        for account in accounts {
            if !answers.next()?.is_nil() {
                found.push(*account);
            }
        }
        Ok(found)
    }

    /// Finds those of these groups that an account looks after: as a member with a role.
    pub(crate) async fn groups_looked_after(
        tenant: &Tenant,
        account: AccountId,
        groups: &[AccountId],
    ) -> Result<Vec<AccountId>> {
        let mut found = Self::with_a_role_for(tenant, account, groups).await?;
        let are_in = try_join_all(found.iter().map(|group| is_member(tenant, *group, account))).await?;
        let mut are_in = are_in.into_iter();
        found.retain(|_| are_in.next().unwrap_or_default());
        Ok(found)
    }

    pub(crate) fn roles(&self) -> &BTreeMap<AccountId, GroupRole> {
        &self.roles
    }

    /// Tells what an account may do; the group itself, which a service speaks for, may do all that an owner may. Of who
    /// has left, or may do nothing, no role counts.
    pub(in crate::graph) async fn rank(
        &self,
        tenant: &Tenant,
        account: AccountId,
    ) -> Result<Option<GroupRole>> {
        if account == self.group {
            return Ok(Some(GroupRole::Owner));
        }
        let Some(role) = self.roles.get(&account).copied() else { return Ok(None) };
        let (holder, is_member) =
            try_join(tenant.account(account), is_member(tenant, self.group, account)).await?;
        let counts = is_member && holder.is_some_and(|holder| holder.is_active());
        Ok(counts.then_some(role))
    }

    /// Refuses who isn't on the staff.
    pub(super) async fn only_staff(&self, tenant: &Tenant, by: AccountId) -> Result<GroupRole> {
        self.rank(tenant, by).await?.ok_or_else(|| not_allowed(self.is_no_staff(by)))
    }

    fn is_no_staff(&self, account: AccountId) -> String {
        format!("account {account} is not on the staff of group {}", self.group)
    }

    /// Refuses who may not turn a member out: only who ranks above it may.
    pub(super) async fn may_turn_out(&self, tenant: &Tenant, by: AccountId, member: AccountId) -> Result<()> {
        let (rank, of) = try_join(self.only_staff(tenant, by), self.rank(tenant, member)).await?;
        if !rights::may_turn_out(rank, by == self.group, of) {
            return Err(not_allowed(format!(
                "account {member} ranks as high as account {by} in group {}: an owner takes its role away first",
                self.group
            )));
        }
        Ok(())
    }

    /// Refuses who may not give that role, or take it away. Each may give up its own.
    pub(super) async fn may_give(
        &self,
        tenant: &Tenant,
        by: AccountId,
        (of, role): (AccountId, Option<GroupRole>),
    ) -> Result<()> {
        // Nobody has to be asked who goes: also one whose rank can't be told just now.
        let rank = if by == of && role.is_none() { None } else { self.rank(tenant, by).await? };
        if rights::may_give(rank, by == of, role) {
            return Ok(());
        }
        Err(not_allowed(match rank {
            None => self.is_no_staff(by),
            Some(_) => format!(
                "account {by} is no owner of group {}: only these say who is on its staff",
                self.group
            ),
        }))
    }

    /// The accounts that have a role, are members, and may act.
    pub(crate) async fn holders(&self, tenant: &Tenant, role: GroupRole) -> Result<Vec<AccountId>> {
        let having = self.roles.iter().filter(|(_, has)| **has == role).map(|(account, _)| *account);
        let ranks = join_all(having.clone().map(|account| self.rank(tenant, account))).await;
        let ranks: Vec<Option<GroupRole>> = ranks.into_iter().collect::<Result<_>>()?;
        Ok(having.zip(ranks).filter(|(_, rank)| rank.is_some()).map(|(account, _)| account).collect())
    }

    /// Refuses a change after which no owner would be left who is a member, and may act.
    pub(super) async fn keeps_an_owner(
        &self,
        tenant: &Tenant,
        of: AccountId,
        role: Option<GroupRole>,
    ) -> Result<()> {
        let ends_owning = rights::ends_owning(self.roles.get(&of).copied(), role);
        if !ends_owning || rights::leaves_an_owner(&self.holders(tenant, GroupRole::Owner).await?, of) {
            return Ok(());
        }
        Err(not_allowed(format!(
            "account {of} is the last owner of group {}: make another member an owner first",
            self.group
        )))
    }
}

pub(super) fn not_allowed(text: String) -> Error {
    Error::new(ErrorCode::NotAllowed, text)
}

/// Makes sure that an account may post into a group as of now, told by the group's graph stamp: whoever writes the post
/// compares it.
pub(crate) async fn may_post(tenant: &Tenant, group: AccountId, member: AccountId) -> Result<Nonce> {
    let staff = GroupStaff::of(tenant, group).await?;
    let (writer, is_member) = try_join(tenant.existing(member), is_member(tenant, group, member)).await?;
    let has_role = staff.roles.contains_key(&member);
    match (PosterFacts { is_active: writer.is_active(), is_member, has_role }).right(staff.kind) {
        PostingRight::Granted => Ok(staff.stamp),
        PostingRight::NotActive => {
            let text = format!("account {member} is {}: it cannot post", writer.state);
            Err(Error::new(ErrorCode::NotActive, text))
        }
        PostingRight::NoMember => Err(not_allowed(format!(
            "account {member} is no member of group {group}: it joins it by following"
        ))),
        PostingRight::NotOnStaff => Err(not_allowed(format!(
            "only the staff posts into group {group}, which account {member} is not on"
        ))),
    }
}
