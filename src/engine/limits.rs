//! Limits of an account's own.

use super::Engine;
use crate::change::Tries;
use crate::cluster::{Command, Request};
use crate::error::{CallFuture, Result};
use crate::fields::RecordField;
use crate::graph;
use crate::ids::AccountId;
use crate::limits::{AccountLimit, OwnLimits};
use crate::settings::Receipt;
use crate::tenant::no_account;

impl Engine {
    /// Changes limits of an account's own, only these; `None`: what the settings say of it. They hold at once, on all
    /// instances, and take nothing away: whoever follows more than it may by now follows nobody further.
    ///
    /// [`OutOfRange`](crate::ErrorCode::OutOfRange): up to 65,535 acts, and 20,000 that it follows.
    pub fn limit_account<'a>(
        &'a self,
        account: AccountId,
        limits: &'a [(AccountLimit, Option<u32>)],
    ) -> CallFuture<'a, Receipt<OwnLimits>> {
        Box::pin(async move {
            for (limit, most) in limits {
                most.map_or(Ok(()), |most| OwnLimits::check(*limit, most))?;
            }
            let tries = &mut Tries::of(account);
            loop {
                let once = async {
                    // H21, H263: first the stamp, then what it is decided by.
                    let (seen, _) = graph::graph_stamp(&self.tenant, account).await?;
                    let stored = OwnLimits::stored_with(&self.stored_limits(account).await?, limits);
                    let own = OwnLimits::parse(&stored);
                    let fields = [(RecordField::OWN_LIMITS, stored)];
                    let made = self.fields_change(account, seen, &fields).write(tries).await?;
                    Ok(made.map(|made| (own, made.epoch)))
                };
                let once = once.await;
                if let Some((own, epoch)) = tries.ended(once)? {
                    return Ok(self.acknowledged(epoch).await?.with(own));
                }
            }
        })
    }

    /// The limits of an account's own.
    pub fn own_limits(&self, account: AccountId) -> CallFuture<'_, OwnLimits> {
        Box::pin(async move { Ok(OwnLimits::parse(&self.stored_limits(account).await?)) })
    }

    async fn stored_limits(&self, account: AccountId) -> Result<Vec<u8>> {
        let record = self.tenant.keys().account(account);
        let command = Command::new("HMGET").arg(&record).args([RecordField::STATE, RecordField::OWN_LIMITS]);
        let told = self.tenant.router().call(Request::read(self.tenant.slot(account), command)).await?;
        match &told.into_array()?[..] {
            [state, own] if !state.is_nil() => Ok(own.bytes().unwrap_or_default().to_vec()),
            _ => Err(no_account(account)),
        }
    }
}
