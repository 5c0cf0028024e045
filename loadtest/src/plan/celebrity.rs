//! What one very large account costs, pushed and pulled. Pure.

use serde::Serialize;
use tideline::{EngineSettings, Facts};

use super::forecast::{Asked, Line, SECONDS_A_DAY, US};
use super::quantity::{bytes, count, time};
use super::units::Units;
use crate::report;

/// Followers that a call delivers to, where there are very many, and chunks of a fan-out under way.
const FOLLOWERS_A_CALL: f64 = 100.0;
const CHUNKS_AT_ONCE: f64 = 3.0;

/// Its costs.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Celebrity {
    pub(crate) pushed_us_per_post: f64,
    pub(crate) pushed_seconds_per_post: f64,
    pub(crate) pushed_us_per_day: f64,
    pub(crate) pulled_us_per_post: f64,
    pub(crate) pulled_us_per_day: f64,
    pub(crate) marks_bytes: f64,
    pub(crate) promotion_us: f64,
}

/// Servers and client together.
fn both(unit: [f64; 2]) -> f64 {
    unit[0] + unit[1]
}

/// Calls that a fan-out has under way, each in one primary.
fn calls_at_once() -> f64 {
    CHUNKS_AT_ONCE * report::count(EngineSettings::default().fanout_chunk as u64) / FOLLOWERS_A_CALL
}

/// What a day costs when it is pulled, and so many of its followers read.
fn pulled_day(asked: &Asked, units: &Units, awake: f64) -> (f64, Line) {
    let pages = awake * asked.reads_per_second / (asked.users * asked.active).max(1.0);
    let looks = Facts::looks_per_second(pages, asked.instances, asked.visible_within()) * SECONDS_A_DAY;
    let reads = pages * SECONDS_A_DAY;
    let us = asked.celebrity_posts_per_day * both(units.publish_pulled_us)
        + reads * both(units.pull_us)
        + looks * both(units.look_us);
    let line = Line {
        name: "celebrity, pulled: a day".to_owned(),
        value: format!("{} of CPU", time(us)),
        formula: format!(
            "{} posts x {} + {} pages of its followers x {} + {} looks ({} instances, each reads it anew after {} s) x {}",
            asked.celebrity_posts_per_day,
            time(both(units.publish_pulled_us)),
            count(reads),
            time(both(units.pull_us)),
            count(looks),
            asked.instances,
            asked.visible_within_s,
            time(both(units.look_us))
        ),
    };
    (us, line)
}

/// What the largest account costs. `free_cores`: what the primaries together have left beside everything else.
pub(super) fn celebrity(asked: &Asked, units: &Units, free_cores: f64) -> (Celebrity, Vec<Line>) {
    let followers = asked.celebrity_followers;
    let delivery = if followers < Units::SPREAD_FROM { units.delivery_us } else { units.delivery_spread_us };
    let awake = followers * asked.active;
    let server_us = awake * delivery[0] + (followers - awake) * units.skipped_us[0];
    let pushed =
        both(units.publish_us) + awake * both(delivery) + (followers - awake) * both(units.skipped_us);
    let (pulled_us_per_day, pulled_line) = pulled_day(asked, units, awake);
    let calls = calls_at_once();
    let cores = free_cores.min(calls);
    let found = Celebrity {
        pushed_us_per_post: pushed,
        pushed_seconds_per_post: server_us / US / cores,
        pushed_us_per_day: pushed * asked.celebrity_posts_per_day,
        pulled_us_per_post: both(units.publish_pulled_us),
        pulled_us_per_day,
        marks_bytes: followers * units.mark_bytes,
        promotion_us: followers * both(units.promote_us),
    };
    let followed = count(followers);
    let lines = vec![
        Line {
            name: "celebrity, pushed: a post".to_owned(),
            value: format!(
                "{} of CPU, {:.1} s until the last home",
                time(pushed),
                found.pushed_seconds_per_post
            ),
            formula: format!(
                "{} publish + {followed} followers: {} awake x {} + {} asleep x {}; in time: the servers' part / {cores:.1} cores (of the primaries' {free_cores:.1} are \
                 free, and one fan-out has {calls} calls under way)",
                time(both(units.publish_us)),
                count(awake),
                time(both(delivery)),
                count(followers - awake),
                time(both(units.skipped_us)),
            ),
        },
        Line {
            name: "celebrity, pushed: a day".to_owned(),
            value: format!("{} of CPU", time(found.pushed_us_per_day)),
            formula: format!("{} posts a day x {}", asked.celebrity_posts_per_day, time(pushed)),
        },
        pulled_line,
        Line {
            name: "celebrity, from pushed to pulled".to_owned(),
            value: format!("{} of CPU, {} of marks", time(found.promotion_us), bytes(found.marks_bytes)),
            formula: format!(
                "{followed} followers x {} and {} B",
                time(both(units.promote_us)),
                units.mark_bytes
            ),
        },
    ];
    (found, lines)
}
