//! Lists of mentions and hashtags.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close};
use crate::graph;
use crate::ids::{AccountId, PostId};
use crate::post::{Draft, Edit, NamedList, PostRef, Tag, Visibility};
use crate::simulation::checks::Before;
use crate::simulation::ends;
use crate::simulation::gates::{At, Gate};
use crate::simulation::operations::TAGS;
use crate::simulation::world::world;
use crate::timeline::Query;

/// Posts missing on lists, or standing there needlessly, are wrong.
pub(super) async fn lists_are_right(stage: &Stage) {
    stage.settled().await;
    let needless = ends::check_lists(&stage.engines[2], "in the end").await;
    if needless > 0 {
        world(|w| w.violated(format!("{needless} posts are on lists that they don't name")));
    }
    stage.ends_well().await;
}

/// A post is deleted by another instance while the one that published it is about to list it.
pub(in crate::simulation) fn deleted_before_it_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named]) = Stage::with([1, 3]).await;
        let adding = close(0, At::Before, "set_add");
        let draft = Draft::text("x").mentions([named]).hashtags([TAGS[0]]);
        let post = stage.engines[0].publish(author, &draft).await.expect("a post").id;
        adding.reached().await;
        stage.engines[1].delete(author, post).await.expect("deleted");
        stage.turns().await;
        adding.open();
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// The same, before that one has read when something was taken off there last.
pub(in crate::simulation) fn deleted_after_the_first_look() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named]) = Stage::with([1, 3]).await;
        let removals = world(|w| w.keys.last_removal(w.keys.bucket_of(named)));
        let reading = Gate::close(0, At::Before, "GET", &removals);
        let draft = Draft::text("x").mentions([named]);
        let post = stage.engines[0].publish(author, &draft).await.expect("a post").id;
        reading.reached().await;
        stage.engines[1].delete(author, post).await.expect("deleted");
        super::pause(100).await;
        reading.open();
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// H126: a copy of what has listed a post comes when that is deleted, and all is settled.
pub(in crate::simulation) fn named_after_all() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named]) = Stage::with([1, 3]).await;
        let copy = Gate::close(0, At::Copied, "set_add", b"");
        let draft = Draft::text("x").mentions([named]);
        let post = stage.engines[0].publish(author, &draft).await.expect("a post").id;
        stage.settled().await;
        copy.stop_no_more();
        stage.engines[1].delete(author, post).await.expect("deleted");
        stage.settled().await;
        copy.deliver();
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// A post is edited twice before it is listed: it loses its hashtag, and gets it back.
pub(in crate::simulation) fn edited_before_it_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, _]) = Stage::with([1, 3]).await;
        let posts = world(|w| w.keys.post_head(w.keys.bucket_of(author)));
        let (looking, looked) =
            (Gate::close(0, At::Before, "GET", &posts), Gate::close(0, At::After, "GET", &posts));
        let draft = Draft::text("x").hashtags([TAGS[0]]);
        let post = stage.engines[0].publish(author, &draft).await.expect("a post").id;
        looking.reached().await;
        let said = |hashtags: &[&str]| Edit {
            hashtags: Some(hashtags.iter().map(|tag| (*tag).to_owned()).collect()),
            ..Edit::default()
        };
        stage.engines[1].edit(author, post, &said(&[])).await.expect("an edit");
        looking.open();
        looked.reached().await;
        stage.engines[1].edit(author, post, &said(&[TAGS[0]])).await.expect("an edit");
        looked.open();
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// A mentioned account is deleted, with its list, while a post is about to be listed there.
pub(in crate::simulation) fn buried_before_it_is_mentioned() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named]) = Stage::with([1, 3]).await;
        let adding = close(0, At::Before, "set_add");
        let draft = Draft::text("x").mentions([named]);
        stage.engines[0].publish(author, &draft).await.expect("a post");
        adding.reached().await;
        stage.engines[1].delete_account(named).await.expect("deleted");
        super::pause(2_000).await;
        adding.open();
        nobody_is_mentioned(&stage, named).await;
    }
    .boxed_local()
}

/// Who isn't there has no list.
pub(super) async fn nobody_is_mentioned(stage: &Stage, named: AccountId) {
    stage.settled().await;
    let mentions = stage.engines[2].store().sets().of_account::<AccountId>(named, "mentions");
    match mentions.expect("a set").len().await {
        Ok(0) => {}
        other => world(|w| w.violated(format!("mentions of nobody: {other:?}"))),
    }
}

/// H126: a copy of what has listed a post comes when the account is deleted whose list it is.
pub(in crate::simulation) fn named_after_a_burial() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named]) = Stage::with([1, 3]).await;
        let copy = Gate::close(0, At::Copied, "set_add", b"");
        stage.engines[0].publish(author, &Draft::text("x").mentions([named])).await.expect("a post");
        stage.settled().await;
        copy.stop_no_more();
        stage.engines[1].delete_account(named).await.expect("deleted");
        stage.settled().await;
        copy.deliver();
        nobody_is_mentioned(&stage, named).await;
    }
    .boxed_local()
}

/// A hashtag is taken away by an edit: what is left on its list doesn't show; brought back, it does.
pub(in crate::simulation) fn hashtag_is_taken_away() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([1]).await;
        let draft = Draft::text("x").hashtags([TAGS[0]]);
        let post = stage.engines[0].publish(author, &draft).await.expect("a post").id;
        stage.settled().await;
        for tags in [vec![TAGS[1].to_owned()], vec![TAGS[0].to_owned()]] {
            let shows = tags[0] == TAGS[0];
            let edit = Edit { hashtags: Some(tags), ..Edit::default() };
            stage.engines[1].edit(author, post, &edit).await.expect("edited");
            let tag = Tag::new(TAGS[0]).expect("a hashtag");
            let page = stage.engines[2].as_reader(author).read(&Query::tag(tag)).await.expect("a page");
            if page.posts.len() != usize::from(shows) {
                world(|w| w.violated(format!("a post of #{tag:?} shows wrongly: {page:?}")));
            }
        }
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// A stranger answers a post, for followers only, and names its reader; then an edit takes that away.
pub(in crate::simulation) fn mention_is_taken_away() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, stranger]) = Stage::with([1, 3, 2]).await;
        stage.follow(0, reader, author).await;
        let post = stage.publish(0, author).await;
        let said = Draft::text("x").reply_to(PostRef { id: post, author }).mentions([reader]);
        let said = said.visibility(Visibility::Followers);
        let answer = stage.engines[0].publish(stranger, &said).await.expect("an answer").id;
        stage.settled().await;
        let query = Query::home().limit(3).with_replies(2);
        for mentions in [vec![reader], Vec::new()] {
            let shows = !mentions.is_empty();
            let edit = Edit { mentions: Some(mentions), ..Edit::default() };
            stage.engines[1].edit(stranger, answer, &edit).await.expect("an edit");
            let before = Before::now();
            let page = stage.engines[2].as_reader(reader).read(&query).await.expect("a page");
            before.check(reader, &query, &page);
            let answers: usize = page.posts.iter().map(|post| post.replies.len()).sum();
            if shows && answers != 1 {
                world(|w| w.violated(format!("an answer to its reader doesn't show: {page:?}")));
            }
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// Somebody mentions an account that its follower blocks.
pub(in crate::simulation) fn unwanted_is_mentioned() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, unwanted]) = Stage::with([1, 3, 2]).await;
        stage.follow(0, reader, author).await;
        stage.engines[0].block(reader, unwanted).await.expect("a block");
        stage.engines[0].publish(author, &Draft::text("x").mentions([unwanted])).await.expect("a post");
        stage.publish(0, author).await;
        stage.settled().await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H61: somebody mentions an account in posts for others.
pub(in crate::simulation) fn mentioned_in_what_it_may_not_see() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named, other]) = Stage::with([1, 3, 2]).await;
        let draft = Draft::text("x").visibility(Visibility::Direct).only_to([other]).mentions([named, other]);
        stage.engines[0].publish(author, &draft).await.expect("a post");
        stage.settled().await;
        for (account, wanted) in [(named, 0), (other, 1)] {
            let mentions = stage.engines[2].store().sets().of_account::<AccountId>(account, "mentions");
            match mentions.expect("a set").len().await {
                Ok(found) if found == wanted => {}
                found => world(|w| w.violated(format!("{wanted} mentions of {account}: {found:?}"))),
            }
        }
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// H62: somebody mentions an account, and uses a hashtag, more often than their lists are long.
pub(in crate::simulation) fn flooded() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [friend, flooder, named]) = Stage::with([1, 3, 2]).await;
        let draft = Draft::text("x").mentions([named]).hashtags([TAGS[0]]);
        let post = stage.engines[0].publish(friend, &draft).await.expect("a post").id;
        stage.settled().await;
        let mut flood = Vec::new();
        for _ in 0..12 {
            flood.push(stage.engines[0].publish(flooder, &draft).await.expect("a post").id);
            stage.settled().await;
        }
        let tag = Tag::new(TAGS[0]).expect("a hashtag");
        let shown = async |query: Query, first: PostId, whose: &str| {
            let page = stage.engines[2].as_reader(named).read(&query.limit(20)).await.expect("a page");
            if !page.ids().contains(&first) {
                world(|w| w.violated(format!("{query:?} lacks {whose}: {page:?}")));
            }
        };
        for query in [Query::mentions(), Query::tag(tag)] {
            shown(query, post, "a friend's post").await;
            shown(query, flood[11], "the last post of the flood").await;
        }
        lists_are_right(&stage).await;
        // What is gone again has taken nobody's place.
        for post in flood {
            stage.engines[1].delete(flooder, post).await.expect("deleted");
        }
        stage.settled().await;
        for query in [Query::mentions(), Query::tag(tag)] {
            shown(query, post, "a friend's post").await;
        }
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// Somebody mentions an account so often that its list is about to be cut, settled but for the last post.
async fn fills_mentions(stage: &Stage, author: AccountId, named: AccountId) -> [PostId; 4] {
    let draft = Draft::text("x").mentions([named]);
    let mut posts = Vec::new();
    for _ in 0..3 {
        posts.push(stage.engines[0].publish(author, &draft).await.expect("a post").id);
        stage.settled().await;
    }
    posts.push(stage.engines[0].publish(author, &draft).await.expect("a post").id);
    posts.try_into().expect("four")
}

/// H101: floors have risen; the list's server fails over without them, then the posts go.
pub(in crate::simulation) fn floors_are_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [friend, flooder, named]) = Stage::with([1, 3, 2]).await;
        stage.engines[0].publish(friend, &Draft::text("x").mentions([named])).await.expect("a post");
        stage.settled().await;
        let leaving = close(0, At::Before, "set_remove");
        fills_mentions(&stage, flooder, named).await;
        leaving.reached().await;
        stage.fail_over(named);
        leaving.open();
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// H101: the same with the list's own floor, which takes the place of those of many authors.
pub(in crate::simulation) fn floor_of_many_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [named, friend, flooders @ ..]) = Stage::with([2, 1, 3, 3, 3, 3, 3]).await;
        stage.engines[0].publish(friend, &Draft::text("x").mentions([named])).await.expect("a post");
        stage.settled().await;
        let list = NamedList::Mentions(named);
        let floors = graph::floors(stage.engines[2].tenant(), list).expect("a name").root_key();
        let leaving = Gate::close(0, At::Before, "set_remove", &floors);
        for (nth, flooder) in flooders.into_iter().enumerate() {
            let [.., stays, last] = fills_mentions(&stage, flooder, named).await;
            if nth + 1 < flooders.len() {
                stage.settled().await;
                // What has left is still there, and the next one finds a list that is not full.
                for post in [stays, last] {
                    stage.engines[0].delete(flooder, post).await.expect("deleted");
                }
                stage.settled().await;
            }
        }
        leaving.reached().await;
        stage.fail_over(named);
        leaving.open();
        lists_are_right(&stage).await;
    }
    .boxed_local()
}
