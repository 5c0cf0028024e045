//! What one very large account costs, pushed and pulled. Pure.

use serde::Serialize;
use tideline::Facts;

use super::forecast::{Asked, Line, SECONDS_A_DAY, US};
use super::quantity::{bytes, count, time};
use super::units::Units;

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

/// A post that is pushed to so many followers.
#[derive(Debug, Clone, Copy)]
pub(super) struct FanOut {
    followers: f64,
    awake: f64,
    /// Of a follower with a home, and of one without.
    delivery_us: [f64; 2],
    skipped_us: [f64; 2],
    /// Of all of it, servers and client.
    us: [f64; 2],
    /// Until the last home has it.
    pub(super) seconds: f64,
}

impl FanOut {
    /// `free_cores`: what the primaries together have left beside everything else. A fan-out goes to all of them at once; but one instance
    /// carries it, so that its own part is not divided.
    pub(super) fn of(followers: f64, asked: &Asked, units: &Units, free_cores: f64) -> Self {
        let delivery_us =
            if followers < Units::SPREAD_FROM { units.delivery_us } else { units.delivery_spread_us };
        // Measured where followers are few; where calls have many of them, one without a home costs no more than one with.
        let skipped_us = [0, 1].map(|side| units.skipped_us[side].min(delivery_us[side]));
        let awake = followers * asked.active;
        let us = [0, 1].map(|side| {
            units.publish_us[side] + awake * delivery_us[side] + (followers - awake) * skipped_us[side]
        });
        Self { followers, awake, delivery_us, skipped_us, us, seconds: (us[0] / free_cores).max(us[1]) / US }
    }

    fn line(&self, units: &Units, free_cores: f64) -> Line {
        Line {
            name: "celebrity, pushed: a post".to_owned(),
            value: format!("{} of CPU, {} until the last home", time(both(self.us)), time(self.seconds * US)),
            formula: format!(
                "{} publish + {} followers: {} awake x {} + {} asleep x {}; in time: the longer one of the servers' part, {} / {free_cores:.1} cores of \
                 theirs that are free, and the instance's, {}, which is on one core",
                time(both(units.publish_us)),
                count(self.followers),
                count(self.awake),
                time(both(self.delivery_us)),
                count(self.followers - self.awake),
                time(both(self.skipped_us)),
                time(self.us[0]),
                time(self.us[1]),
            ),
        }
    }
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
    let post = FanOut::of(followers, asked, units, free_cores);
    let (pushed, awake) = (both(post.us), post.awake);
    let (pulled_us_per_day, pulled_line) = pulled_day(asked, units, awake);
    let found = Celebrity {
        pushed_us_per_post: pushed,
        pushed_seconds_per_post: post.seconds,
        pushed_us_per_day: pushed * asked.celebrity_posts_per_day,
        pulled_us_per_post: both(units.publish_pulled_us),
        pulled_us_per_day,
        marks_bytes: followers * units.mark_bytes,
        promotion_us: followers * both(units.promote_us),
    };
    let lines = vec![
        post.line(units, free_cores),
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
                "{} followers x {} and {} B",
                count(followers),
                time(both(units.promote_us)),
                units.mark_bytes
            ),
        },
    ];
    (found, lines)
}
