//! Whether posts are delivered too late: not by the clock, which says more about the machine than about the engine, but
//! by how many that were published later have overtaken them. A slow machine is slow for all of them.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::check::Wrong;
use super::facts::Time;
use super::run::Run;
use super::world::{PostFact, PostNo, World};

/// So many others may be delivered first that were begun when a post was acknowledged already. Three is the most that
/// was seen, in rounds of 600 posts; what is held back until the end is overtaken by hundreds.
const OVERTAKING_MAX: usize = 200;

/// So many posts are published once all is mended and drained: enough for one of the first to be late.
pub(crate) const POSTS_AFTER_FAULTS: usize = OVERTAKING_MAX + 100;
/// They come a few at a time: all at once would be over within 150 ms, and a process may stand still for so long on a
/// busy machine, a server or an instance, while the others go on.
pub(crate) const POSTS_AT_ONCE: usize = 10;
pub(crate) const PAUSE: Duration = Duration::from_millis(80);

/// Judges the posts since then. Nothing may have gone wrong meanwhile: a fault may hold up some homes, and not others.
pub(crate) fn judge(run: &Run, since: Time) {
    if run.has_given_up() {
        return;
    }
    let (late, most) = {
        let world = run.world();
        let all = overtaken(&world, since);
        let most = all.iter().map(|(_, by)| *by).max().unwrap_or(0);
        let late = all.into_iter().filter(|(_, by)| *by > OVERTAKING_MAX);
        let late = late.filter_map(|(no, by)| Some((no, world.post(no)?.author, by)));
        (late.collect::<Vec<_>>(), most)
    };
    run.at_least("posts that overtook an older one, at most", u64::try_from(most).unwrap_or(u64::MAX));
    for (no, author, by) in late {
        let text = format!("post {no} was not delivered before {by} others that were published later");
        run.wrong(Wrong::Stuck, author, Some(no), text);
    }
}

/// All is drained, whatever went wrong before: whoever waits for a delivery is told, or that nobody knows of it there.
pub(crate) async fn judge_untold(run: &Run, patience: Duration) {
    let until = Instant::now() + patience;
    for (no, told) in run.take_awaited() {
        if timeout_at(until, told).await.is_err() && !run.has_given_up() {
            let author = run.world().post(no).map_or(0, |post| post.author);
            let text = format!("post {no} is delivered, and who waits for that is not told");
            run.wrong(Wrong::Stuck, author, Some(no), text);
        }
    }
}

/// Each post with how many were delivered before it, and begun after it was acknowledged.
fn overtaken(world: &World, since: Time) -> Vec<(PostNo, usize)> {
    let all = world.posts.iter().enumerate().filter_map(|(no, post)| Some((no, post.as_ref()?)));
    let mut known: Vec<(PostNo, &PostFact)> =
        all.filter(|(_, post)| post.is_awaited && post.start >= since).collect();
    known.sort_by_key(|(_, post)| post.start);
    let count = |(no, post): &(PostNo, &PostFact)| {
        let later = known.partition_point(|(_, other)| other.start < post.acknowledged);
        let overtakers = known[later..].iter().filter(|(_, other)| other.delivered < post.delivered);
        (*no, overtakers.count())
    };
    known.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::call::Reach;
    use crate::verify::facts::OPEN;
    use crate::verify::steps::PostPlan;

    #[test]
    fn who_was_published_later_and_delivered_earlier_has_overtaken() {
        // Start, acknowledged, delivered.
        let times =
            [(1, 5, 9), (10, 15, 50), (12, 16, 20), (16, 18, 30), (20, 22, 60), (21, 25, OPEN), (30, 31, 32)];
        let posts = times.iter().enumerate().map(|(no, (start, acknowledged, delivered))| {
            let fact = PostPlan::new(no, Reach::Public).fact(1, *start);
            let (acknowledged, delivered) = (*acknowledged, *delivered);
            Some(PostFact { acknowledged, delivered, is_awaited: no != 6, ..fact })
        });
        let world = World { posts: posts.collect(), ..World::default() };
        // 2 was begun before 1 was acknowledged, and of 6 nobody knows.
        assert_eq!(overtaken(&world, 10), [(1, 1), (2, 0), (3, 0), (4, 0), (5, 0)]);
    }
}
