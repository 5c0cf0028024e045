//! Posts of which nobody was told whether they are there. Their authors' outboxes say so, as stored: on pages a post
//! may be hidden from everybody, while its author is suspended or what it passes on is gone.

use std::sync::Arc;

use super::archived;
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
        let mut ids = archived::posts_of(run, setup, author).await;
        ids.extend(outbox(&store, author).await?);
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
        if ids.is_empty() {
            adopt_seen(run, author);
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

/// An author is gone, with all that it had: what somebody has seen of it before was published.
fn adopt_seen(run: &Run, author: u64) {
    loop {
        let seen = run.unknown_post_of(author);
        let Some(id) = seen.first().map(|(_, shown)| shown.id) else { return };
        let (mut world, now) = (run.world(), run.now());
        let tried: Vec<PostNo> =
            unsure(&world).into_iter().filter(|(_, of)| *of == author).map(|(no, _)| no).collect();
        // Of several the one that says what it said, and that was for all who have seen it.
        let may_be = |no: &&PostNo| {
            world.post(**no).is_some_and(|post| {
                let is_for = |reader: &u64| *reader == author || post.only_to.contains(reader);
                seen.iter().all(|(reader, shown)| {
                    shown.text.as_ref().is_none_or(|text| *text == post.said.text)
                        && (post.only_to.is_empty() || is_for(reader))
                })
            })
        };
        let Some(no) = tried.iter().find(may_be).or(tried.first()).copied() else { return };
        world.published(no, id, now);
    }
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
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::super::call::{Asked, Reach};
    use super::super::check::Seen;
    use super::super::facts::Window;
    use super::super::pool::Pool;
    use super::super::steps::PostPlan;
    use super::super::told::{Page, Shown};
    use super::*;

    /// Post 50 of account 7.
    const SHOWN: &str = r#"{"id": 50, "author": 7, "text": null, "passes_on": null, "account": null, "original": null,
        "ties": null, "likers": [], "replies": []}"#;

    /// Two posts of somebody who is gone, of which nobody was told and one was seen. The world was held while it was
    /// asked for, by the same thread: a run stood for good, and nobody saw why.
    #[test]
    fn what_was_seen_of_an_author_that_is_gone_was_published() {
        let fact = |no| Some(PostFact { is_unsure: true, ..PostPlan::new(no, Reach::Public).fact(7, 10) });
        let mut world = World { posts: vec![fact(0), fact(1)], ..World::default() };
        world.created(7, false);
        let run = Run::new(Pool::default(), world, (None, Duration::from_secs(1)));
        let shown: Shown = serde_json::from_str(SHOWN).unwrap();
        run.note(Seen {
            asked: Asked::home(1, 5),
            page: Page { posts: vec![shown], ..Page::default() },
            window: Window { from: 20, to: 30 },
            instance: 0,
            is_refused: false,
        });
        let (done, told) = mpsc::channel();
        let of_thread = run.clone();
        thread::spawn(move || {
            adopt_seen(&of_thread, 7);
            done.send(()).unwrap();
        });
        told.recv_timeout(Duration::from_secs(60)).expect("it ends");
        let world = run.world();
        assert_eq!([0, 1].map(|no| world.posts[no].as_ref().and_then(|post| post.id)), [Some(50), None]);
    }

    /// Whoever wrote two posts for different readers was deleted before anybody was told of them: taken for each other,
    /// each seemed to have leaked.
    #[test]
    fn what_was_seen_was_for_who_has_seen_it_and_says_what_it_said() {
        let fact = |no, only_to: &[u64]| {
            let fact = PostPlan::new(no, Reach::Direct).fact(7, 10);
            Some(PostFact { is_unsure: true, only_to: only_to.to_vec(), ..fact })
        };
        let mut world =
            World { posts: vec![fact(0, &[1]), fact(1, &[2]), fact(2, &[2])], ..World::default() };
        world.created(7, false);
        let said = world.posts[2].as_ref().map(|post| post.said.text.clone());
        let run = Run::new(Pool::default(), world, (None, Duration::from_secs(1)));
        for (reader, id, text) in [(2, 50, said), (2, 51, None), (1, 52, None)] {
            let shown: Shown = serde_json::from_str(SHOWN).unwrap();
            let page = Page { posts: vec![Shown { id, text, ..shown }], ..Page::default() };
            let window = Window { from: 20, to: 30 };
            run.note(Seen { asked: Asked::home(reader, 5), page, window, instance: 0, is_refused: false });
        }
        adopt_seen(&run, 7);
        let world = run.world();
        let ids = [0, 1, 2].map(|no| world.posts[no].as_ref().and_then(|post| post.id));
        assert_eq!(ids, [Some(52), Some(51), Some(50)]);
    }

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
