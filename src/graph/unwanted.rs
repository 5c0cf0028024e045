//! Ends follows that nobody wants any more: their author blocks who follows.

use std::sync::Arc;

use super::change::apply;
use super::pair::wanted;
use super::toggles::{nothing_left, requested, unfollow_intent};
use crate::cluster::{Epoch, TouchedServers};
use crate::error::{ErrorKind, Result};
use crate::graph::Graph;
use crate::ids::AccountId;

/// H288: ends what somebody who is blocked follows or asks for before the block is taken back, on replicas: the task
/// that the block has left would find it wanted by then.
pub(super) async fn end_of_blocked(graph: &Arc<Graph>, account: AccountId, other: AccountId) -> Result<()> {
    if !graph.tenant.is_blocked(account, other).await? {
        return Ok(());
    }
    let router = graph.tenant.router();
    let mut tries = router.fence_tries();
    loop {
        let ended = async {
            let mut touched = TouchedServers::new();
            touched.add_epoch(&end_unwanted(graph, other, account, None).await?);
            router.fence(&touched).await
        };
        match ended.await {
            // Whoever is gone follows nobody.
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => tries.after(e).await?,
            Ok(_) => return Ok(()),
        }
    }
}

/// Ends the follow with this score, if its author still doesn't want it; without one whatever there is, a request too.
pub(super) async fn end_unwanted(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    since: Option<f64>,
) -> Result<Epoch> {
    let tenant = &graph.tenant;
    let following = tenant.following(reader)?;
    apply(graph, reader, || {
        Box::pin(async {
            let now = following.score(&author).await?;
            let is_it = match since {
                Some(since) => now.is_some_and(|now| now.to_bits() == since.to_bits()),
                None => now.is_some() || requested(tenant, reader, author).await?.is_some(),
            };
            let mut said = TouchedServers::new();
            // H20: unblocked, R may have followed again. Read under the stamp that is compared: a follow that was
            // acknowledged since has renewed it.
            if !is_it || wanted(tenant, reader, author, &mut said).await?.is_some() {
                return Ok(if since.is_none() { nothing_left() } else { None });
            }
            // H52: that it is unwanted must last: else a failover takes the block back, and the follow is gone all the
            // same.
            tenant.router().fence(&said).await?;
            unfollow_intent(tenant, reader, author).map(Some)
        })
    })
    .await
}
