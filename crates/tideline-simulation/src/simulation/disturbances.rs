//! What goes wrong in a random history, by the odds of its shape.

use std::time::Duration;

use tokio::time::Instant;

use super::moving::Moving;
use super::shape::Shape;
use super::world::world;

/// Something that has gone wrong.
pub(super) enum Disturbance {
    /// A replica has caught up: that meets nobody.
    Sync,
    /// The instance with that place has to die.
    Death(usize),
    Other(&'static str),
}

/// Lets something go wrong, perhaps; `numbers`: of the instances. Of 1,000 times `syncs` times a replica catches up.
pub(super) fn disturb(shape: Shape, syncs: u32, numbers: [usize; 2]) -> Option<Disturbance> {
    let Shape { failovers, deaths, freezes, moves, clocks, silences, .. } = shape;
    let (dice, bucket) = world(|w| (w.below(1_000), usize::try_from(w.below(4)).unwrap_or(0)));
    let mut end = 0;
    let mut is = |share: u32| {
        end += u64::from(share);
        dice < end
    };
    let what = if is(syncs) {
        world(|w| w.sync(bucket));
        return Some(Disturbance::Sync);
    } else if is(failovers) {
        world(|w| {
            let clock_ahead_ms = w.pick(&[0, 0, 5, 20, 60]);
            w.fail_over(bucket, clock_ahead_ms);
        });
        "failover"
    } else if is(deaths) {
        return Some(Disturbance::Death(usize::from(world(|w| w.chance(500)))));
    } else if is(freezes) {
        let number = numbers[usize::from(world(|w| w.chance(500)))];
        world(|w| {
            let ms = w.pick(&[50, 150, 400, 900]);
            w.instances[number].frozen_until = Instant::now() + Duration::from_millis(ms);
            w.note(|| format!("FREEZE of {number} for {ms} ms"));
        });
        "freeze"
    } else if is(moves) {
        world(|w| {
            let (salt, share) = (w.below(u64::MAX), w.below(257));
            let node = &mut w.nodes[bucket];
            node.moving = if node.moving.is_some() { None } else { Some(Moving { salt, share }) };
            w.note(|| format!("MOVE of {bucket} begins or ends"));
        });
        "move"
    } else if is(clocks) {
        world(|w| w.step_clock(bucket));
        "clock"
    } else if is(silences) {
        world(|w| {
            let ms = w.pick(&[50, 120, 300, 600]);
            w.nodes[bucket].silent_until = Instant::now() + Duration::from_millis(ms);
            w.note(|| format!("SILENCE of {bucket} for {ms} ms"));
        });
        "silence"
    } else {
        return None;
    };
    Some(Disturbance::Other(what))
}
