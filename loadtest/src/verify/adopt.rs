//! Posts of which nobody was told whether they are there. Their authors' outboxes say so, as stored: on pages a post
//! may be hidden from everybody, while its author is suspended or what it passes on is gone.

use std::sync::Arc;

use super::call::Call;
use super::comparisons::Subject;
use super::facts::Time;
use super::run::{Ended, Run};
use super::setup::Setup;
use super::stored::outbox;
use super::told::{Reply, Stored};
use super::world::{PostFact, PostNo, World};

/// Finds out, for each of them, whether it is there, and by which id.
pub(super) async fn adopt(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let mut authors: Vec<u64> = unsure(&run.world()).into_iter().map(|(_, author)| author).collect();
    authors.sort_unstable();
    authors.dedup();
    let store = setup.store().await?;
    for author in authors {
        let ids = outbox(&store, author).await?;
        let unknown: Vec<u64> =
            ids.iter().copied().filter(|id| !run.world().by_id.contains_key(id)).collect();
        for id in unknown {
            match run.call(0, Call::Post { post: id }).await {
                Ended::Done(Reply::Post(Some(stored))) => {
                    let now = run.now();
                    run.world().found(id, &stored, now);
                }
                Ended::Done(_) => {}
                other => run.skipped(Subject::Posts, &other),
            }
        }
        // Its author is gone, with all that it had: it was published if somebody has seen it before.
        while ids.is_empty()
            && let Some(id) = run.unknown_post_of(author)
            && let Some((no, _)) = unsure(&run.world()).into_iter().find(|(_, of)| *of == author)
        {
            let now = run.now();
            run.world().published(no, id, now);
        }
    }
    // An older build doesn't tell what a post passes on.
    if setup.beside.is_none() {
        let mut world = run.world();
        for (no, _) in unsure(&world) {
            // Nobody will find it any more.
            world.posts[no].iter_mut().for_each(|post| post.start = 0);
        }
    }
    Ok(())
}

/// Posts of which nobody was told, and whose they are.
fn unsure(world: &World) -> Vec<(PostNo, u64)> {
    let is_open = |post: &PostFact| post.is_unsure && post.start > 0 && post.id.is_none();
    let posts = world.posts.iter().enumerate().filter_map(|(no, post)| Some((no, post.as_ref()?)));
    posts.filter(|(_, post)| is_open(post)).map(|(no, post)| (no, post.author)).collect()
}

impl World {
    /// A post that nobody knows: the one that says the same, if it was tried.
    fn found(&mut self, id: u64, stored: &Stored, now: Time) {
        let is_it = |(no, author): &(PostNo, u64)| {
            *author == stored.author
                && self.post(*no).is_some_and(|post| {
                    let original = post.original.and_then(|no| self.post(no)?.id);
                    post.said.text == stored.text && original == stored.original
                })
        };
        let Some((no, _)) = unsure(self).into_iter().find(is_it) else { return };
        self.published(no, id, now);
        if let Some(post) = self.post_mut(no) {
            (post.delivered, post.listed) = (now, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::Reach;
    use super::super::steps::PostPlan;
    use super::*;

    #[test]
    fn a_post_is_known_by_what_it_says_and_passes_on() {
        let fact = |no: PostNo, original: Option<PostNo>| {
            let plan = PostPlan { original, ..PostPlan::new(no, Reach::Public) };
            PostFact { is_unsure: true, original, ..plan.fact(7, 10) }
        };
        let (mut first, mut repost) = (fact(0, None), fact(2, Some(0)));
        first.id = Some(50);
        repost.said.text = String::new();
        let posts = [first, fact(1, None), repost].map(Some).into();
        let mut world = World { posts, ..World::default() };
        let text = world.posts[1].as_ref().map(|post| post.said.text.clone()).unwrap();
        let stored = |author, text: &str, original| Stored {
            author,
            reach: Reach::Public,
            text: text.to_owned(),
            original,
            likes: 0,
            replies: 0,
            reposts: 0,
            quotes: 0,
        };
        world.found(60, &stored(8, &text, None), 20);
        world.found(60, &stored(7, "something else", None), 20);
        world.found(60, &stored(7, "", Some(51)), 20);
        assert_eq!(unsure(&world).len(), 2);
        world.found(60, &stored(7, "", Some(50)), 20);
        world.found(61, &stored(7, &text, None), 20);
        assert_eq!([1, 2].map(|no| world.posts[no].as_ref().and_then(|post| post.id)), [Some(61), Some(60)]);
        assert!(unsure(&world).is_empty());
    }
}
