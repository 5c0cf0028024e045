//! A feed that exists only here, to show that one more touches nothing else: posts with pictures by whom the reader
//! follows, the post with the most of them first on its page.

use std::cmp::Reverse;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, pause};
use crate::post::Draft;
use crate::simulation::world::world;
use crate::timeline::feed::{Feed, Origin, admits_at_home};
use crate::timeline::filter::Seen;
use crate::timeline::read::PageRequest;
use crate::timeline::{HiddenBecause, PagePost, Query, View};

fn pictures_feed() -> Feed {
    Feed { arrange: most_pictures_first, ..Feed::new("pictures", Origin::Home, admits_with_pictures) }
}

fn admits_with_pictures(view: &View<'_>, seen: Seen<'_>) -> Result<(), HiddenBecause> {
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
            let request = PageRequest::new(stage.engines[1].as_reader(reader).viewpoint(), &query, false)
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
