//! How often an account posts and is pulled, while clocks are set by hours: what a policy is told of that.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, pause};
use crate::cluster::Request;
use crate::functions::{DeliveryRates, pulls_add};
use crate::ids::AccountId;
use crate::simulation::world::{HOUR_MS, world};

/// Rates are brought up to date with each second.
const EVERY_MS: u64 = 900;
const SECONDS_A_DAY: f64 = 86_400.0;

/// A second in which an account posts once and is pulled so often; its rates after that.
async fn a_second(stage: &Stage, author: AccountId, pulls: u64) -> DeliveryRates {
    pause(1_000).await;
    stage.publish(0, author).await;
    let tenant = stage.engines[0].tenant();
    let add = pulls_add(tenant.keys().account(author), pulls, tenant.router().now_ms(), EVERY_MS);
    let reply = tenant.router().call(Request::write(tenant.slot(author), add)).await.expect("an account");
    DeliveryRates::parse(&reply.into_array().expect("rates")).expect("rates")
}

/// An account's own server is set an hour ahead and an hour back; all others are right.
pub(in crate::simulation) fn while_a_clock_is_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([3]).await;
        a_second(&stage, author, 10).await;
        for ahead_ms in [0, HOUR_MS, -HOUR_MS, 0] {
            world(|w| w.nodes[3].clock_ahead_ms = ahead_ms);
            for _ in 0..3 {
                let rates = a_second(&stage, author, 10).await;
                let is = |found: f64, a_second: f64| (found / (a_second * SECONDS_A_DAY) - 1.0).abs() < 0.1;
                if !is(rates.posts_per_day, 1.0) || !is(rates.pulls_per_day, 10.0) {
                    world(|w| w.violated(format!("a server {ahead_ms} ms ahead makes it {rates:?}")));
                }
            }
        }
    }
    .boxed_local()
}

/// The median itself was an hour ahead for a while: most servers were. What was noted at a time to come must not stand
/// until that has come.
pub(in crate::simulation) fn noted_at_a_time_to_come() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([3]).await;
        let set = |by_ms: i64| world(|w| w.set_clocks(w.now_ms().saturating_add_signed(by_ms)));
        a_second(&stage, author, 1).await;
        set(HOUR_MS);
        let ahead = a_second(&stage, author, 1).await;
        set(-HOUR_MS);
        let mut rates = ahead;
        for _ in 0..10 {
            rates = a_second(&stage, author, 100).await;
        }
        if rates.pulls_per_day < 3.0 * ahead.pulls_per_day {
            world(|w| w.violated(format!("{ahead:?} an hour ahead, {rates:?} after ten busy seconds")));
        }
    }
    .boxed_local()
}
