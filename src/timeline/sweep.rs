//! Dropping the homes of those who don't read: what is delivered to nobody costs nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::bucket::Bucket;
use crate::charter::Decision;
use crate::cluster::{Batch, Command, Request};
use crate::error::Result;
use crate::functions::{self, Grounds};
use crate::ids::AccountId;
use crate::journal::Recurring;
use crate::meters;
use crate::tenant::Tenant;

/// The time between two looks at homes, and the number of a bucket's homes that are looked at together.
const PERIOD: Duration = Duration::from_secs(60 * 60);
const BATCH: u32 = 500;

/// Sweeps of homes that nobody reads. Several instances may sweep: each home goes once.
#[derive(Debug)]
pub(crate) struct HomeSweeps;

impl Recurring for HomeSweeps {
    type Owner = Tenant;

    /// Not all instances at once.
    fn pause(&mut self, _: &Tenant) -> Duration {
        PERIOD.mul_f64(rand::random_range(0.5..1.5))
    }

    async fn round(&mut self, tenant: &Arc<Tenant>) {
        let Decision { number, settings, .. } = tenant.known.decision();
        let Some(days) = settings.dormant_after_days else { return };
        let grounds = tenant.known.grounds(number);
        let day = tenant.today().saturating_sub(days);
        if let Err(e) = sweep(tenant, day, Some(grounds)).await {
            tracing::warn!("dormant homes could not be dropped: {e}");
        }
    }
}

/// Drops the homes of all who have not read after `day`, on these grounds; `None`: by hand. Tells how many.
pub(crate) async fn sweep(tenant: &Tenant, day: u32, grounds: Option<Grounds>) -> Result<u64> {
    let mut swept = 0;
    for bucket in tenant.keys().buckets().all() {
        loop {
            let dropped = sweep_some(tenant, bucket, day, grounds).await?;
            swept += dropped;
            if dropped < u64::from(BATCH) {
                break;
            }
        }
    }
    meters::swept(swept);
    Ok(swept)
}

/// Counts the accounts that have not read after `day`, and are known to have had a home.
pub(crate) async fn dormant(tenant: &Tenant, day: u32) -> Result<u64> {
    let count = |bucket| {
        let command = Command::new("ZCOUNT").arg(&tenant.keys().days(bucket)).arg("-inf").arg(day);
        Request::read(tenant.keys().buckets().slot(bucket), command)
    };
    let mut dormant = 0;
    for answer in tenant.run_all(tenant.keys().buckets().all().map(count).collect()).await? {
        dormant += answer.ok()?.count()?;
    }
    Ok(dormant)
}

async fn sweep_some(tenant: &Tenant, bucket: Bucket, day: u32, grounds: Option<Grounds>) -> Result<u64> {
    let days = tenant.keys().days(bucket);
    let slot = tenant.keys().buckets().slot(bucket);
    let range = Command::new("ZRANGEBYSCORE").arg(&days).arg("-inf").arg(day);
    let range = range.arg("LIMIT").arg("0").arg(BATCH);
    let dormant = tenant.router().call(Request::read(slot, range)).await?.into_array()?;
    let mut batch = Batch::with_capacity(dormant.len());
    for id in dormant {
        let account = AccountId::from_bytes(id.bytes()?)?;
        let home = tenant.keys().home(account);
        let command = functions::home_sweep(days.clone(), home, &account.to_bytes(), day, grounds);
        batch.push(Request::write(slot, command));
    }
    let mut dropped = 0;
    for answer in tenant.router().run(batch).await {
        dropped += answer?.ok()?.count()?;
    }
    Ok(dropped)
}
