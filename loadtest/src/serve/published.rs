//! What a post costs whose author has so many followers: all of it, until it is in their homes.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Serialize;

use super::turns::Field;
use super::writes::Writers;
use crate::judgement::Judgement;
use crate::progress;
use crate::site::{metric, refused};
use crate::stats::{Estimate, count};

/// Posts under way at once.
const AT_ONCE: usize = 8;
/// Deliveries are waited for so long, ...
const DELIVERED_MAX: Duration = Duration::from_secs(60);
/// ... and looked at so often: each look costs the server something.
const LOOK: Duration = Duration::from_millis(250);
/// What a post may cost at most, of server and Redis.
const POST_US: f64 = 500.0;

/// Posts, and what one costs in microseconds of CPU.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PostCost {
    pub(super) posts: u64,
    /// Of each author.
    pub(super) followers: u32,
    pub(super) site_us: Option<Estimate>,
    pub(super) redis_us: Option<Estimate>,
    pub(super) post_us: Option<Estimate>,
    pub(super) judgement: Option<Judgement>,
}

impl PostCost {
    /// What is claimed of it and isn't so.
    pub(super) fn unmet(&self) -> Option<String> {
        let cost = self.post_us.filter(|_| self.judgement == Some(Judgement::Worse))?;
        Some(format!("a post to {} followers costs {} us: at most {POST_US}", self.followers, cost.told(0)))
    }
}

/// Has authors with about so many followers post, in rounds; nobody else writes or reads meanwhile.
pub(super) async fn run(
    field: &Field<'_>,
    writers: &Writers,
    (authors, followers): (&[u32], u32),
) -> anyhow::Result<PostCost> {
    let args = field.args;
    let (mut site, mut redis, mut posts) = (Vec::new(), Vec::new(), 0);
    let bar = progress::bar(args.rounds.into(), "posts".to_owned());
    for _ in 0..args.rounds {
        let before = field.cpu_times().await?;
        let deliveries = delivered(field).await?;
        let post = async |nth: u32| {
            let author = authors[nth as usize % authors.len()];
            let answer = writers.post(author).await?;
            if answer.is_success() { anyhow::Ok(()) } else { Err(refused("a post", &answer)) }
        };
        stream::iter(0..args.posts).map(post).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        let wanted = deliveries + f64::from(args.posts) * f64::from(followers);
        let since = Instant::now();
        while delivered(field).await? < wanted {
            anyhow::ensure!(
                since.elapsed() < DELIVERED_MAX,
                "posts were not delivered in {DELIVERED_MAX:?}: {} of {wanted} deliveries",
                delivered(field).await?
            );
            tokio::time::sleep(LOOK).await;
        }
        let after = field.cpu_times().await?;
        let each = |before: Option<Duration>, after: Option<Duration>| {
            Some(after?.checked_sub(before?)?.as_secs_f64() * 1e6 / f64::from(args.posts))
        };
        site.extend(each(before.site, after.site));
        redis.extend(each(before.redis, after.redis));
        posts += u64::from(args.posts);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let both: Vec<f64> = site.iter().zip(&redis).map(|(site, redis)| site + redis).collect();
    let post_us = Estimate::of(&both).filter(|_| count(both.len() as u64) >= f64::from(args.rounds));
    Ok(PostCost {
        posts,
        followers,
        site_us: Estimate::of(&site),
        redis_us: Estimate::of(&redis),
        post_us,
        judgement: post_us.map(|cost| Judgement::of(&cost, POST_US, both.len())),
    })
}

/// Deliveries of all posts until now.
async fn delivered(field: &Field<'_>) -> anyhow::Result<f64> {
    let told = field.server.metrics().await?;
    // None before the first one.
    Ok(metric(&told, "tideline_deliveries_total").unwrap_or_default())
}
