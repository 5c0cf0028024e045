//! Feeds that exist only here, to show that one more touches nothing else: posts with pictures by whom the reader
//! follows, the post with the most of them first on its page; and all posts of an account, also those that its outbox
//! has cut off.

use std::cmp::Reverse;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, LocalBoxFuture};

use super::{Stage, pause};
use crate::error::Result;
use crate::post::{Draft, PostRef};
use crate::simulation::shape::OUTBOX_POSTS;
use crate::simulation::world::world;
use crate::timeline::feed::{BelowFloor, Feed, Origin, admits_at_home};
use crate::timeline::filter::SeenPost;
use crate::timeline::read::ReadRequest;
use crate::timeline::{HiddenBecause, PagePost, Query, View};

fn pictures_feed() -> Feed {
    Feed { arrange: most_pictures_first, ..Feed::new("pictures", Origin::Home, admits_with_pictures) }
}

fn admits_with_pictures(view: &View<'_>, seen: SeenPost<'_>) -> Result<(), HiddenBecause> {
    admits_at_home(view, seen)?;
    match seen.met.post.content().attachments.is_empty() {
        true => Err(HiddenBecause::NotAsked),
        false => Ok(()),
    }
}

fn most_pictures_first(posts: &mut [PagePost]) {
    posts.sort_by_key(|post| Reverse(post.post.as_ref().map(|post| post.content().attachments.len())));
}

/// Pages of two: in between stand posts without pictures, and by somebody whom the reader doesn't follow.
pub(in crate::simulation) fn of_pictures() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, other, stranger]) = Stage::with([1, 3, 0, 2]).await;
        for followed in [author, other] {
            stage.follow(0, reader, followed).await;
        }
        stage.home_of(reader).await;
        let mut ids = Vec::new();
        for (by, pictures) in [(author, 1), (other, 0), (other, 3), (stranger, 2), (author, 0), (author, 2)] {
            let draft = Draft::text("x").attachments(vec![b'p'; pictures]);
            ids.push(stage.engines[0].publish(by, &draft).await.expect("a post").id);
            // So that ids of different buckets stand in this order.
            pause(5).await;
        }
        stage.settled().await;
        let mut query = Query::home().limit(2).hydrated();
        for wanted in [vec![ids[2], ids[5]], vec![ids[0]]] {
            let request = ReadRequest::new(stage.engines[1].as_reader(reader).viewpoint(), &query, false)
                .expect("a request");
            let page = request.page_of(&pictures_feed(), None).await.expect("a page").0;
            if page.ids() != wanted {
                world(|w| w.violated(format!("{:?}, not {wanted:?}", page.ids())));
            }
            query.cursor = page.next;
        }
        if query.cursor.is_some() {
            world(|w| w.violated("there are more pages of pictures"));
        }
    }
    .boxed_local()
}

/// Posts, newest first, as an archive keeps them: two at a time.
#[derive(Debug)]
struct Archive(Vec<PostRef>);

impl BelowFloor for Archive {
    fn read<'a>(&'a self, of: &'a Origin, from: u64, _: usize) -> BoxFuture<'a, Result<(Vec<PostRef>, u64)>> {
        let Origin::Outbox(author) = of else { panic!("only outboxes go on below their floors") };
        // What the outbox has it says itself.
        let is_below = |post: &&PostRef| post.author == *author && post.id.get() < from;
        let posts: Vec<PostRef> = self.0.iter().filter(is_below).take(2).copied().collect();
        let bound = posts.get(1).map_or(0, |post| post.id.get());
        async move { Ok((posts, bound)) }.boxed()
    }
}

/// An outbox that lists five or a few more: without an archive its pages end there, with one they go on, and show every
/// post once.
pub(in crate::simulation) fn below_its_floor() -> LocalBoxFuture<'static, ()> {
    async {
        world(|w| w.outbox_posts = OUTBOX_POSTS.1);
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        let mut all = Vec::new();
        for _ in 0..13 {
            all.push(PostRef { id: stage.publish(0, author).await, author });
        }
        stage.settled().await;
        all.reverse();
        for (below, has_all) in [(None, false), (Some(Archive(all.clone())), true)] {
            let below = below.map(|archive| Arc::new(archive) as Arc<dyn BelowFloor>);
            let feed = Feed { below, ..Feed::new("kept", Origin::Outbox(author), |_, _| Ok(())) };
            let (mut query, mut shown) = (Query::home().limit(3), Vec::new());
            // A page more than each of them alone would take.
            for _ in 0..=all.len() {
                let request = ReadRequest::new(stage.engines[1].as_reader(reader).viewpoint(), &query, false)
                    .expect("a request");
                let page = request.page_of(&feed, None).await.expect("a page").0;
                shown.extend(page.ids());
                query.cursor = page.next;
                if page.next.is_none() {
                    break;
                }
            }
            let wanted = all.iter().map(|post| post.id);
            let wanted: Vec<_> = wanted.take(if has_all { all.len() } else { shown.len() }).collect();
            if shown != wanted || shown.len() < 5 || (shown.len() == all.len()) != has_all {
                world(|w| w.violated(format!("below the floor: {shown:?}, not {wanted:?}")));
            }
        }
    }
    .boxed_local()
}
