//! Lists, conversations and posts by their ids while the archive is away: they end above what only the archive could
//! tell, or leave it out, and say so.

use tideline::post::{Draft, PostRef};
use tideline::{
    AccountId, ChatQuery, Conversation, Engine, ErrorCode, ListCursor, ListQuery, PostId, PostList, Result,
};
use tideline_local_cluster::LocalPostgres;

use super::archive::publish;
use super::archive_away::archived;
use super::chats::{last_of, opened, said};
use super::{a_millisecond, accounts, eventually};

/// The newest of a list, and what it says of the archive.
type Told = (Vec<PostId>, bool);

fn told(list: &PostList) -> Told {
    (list.posts.iter().map(|post| post.id).collect(), list.lacks_archive)
}

fn conversation(of: &Conversation) -> ([Vec<PostId>; 2], bool) {
    let ids = |posts: &[tideline::PagePost]| posts.iter().map(|post| post.id).collect();
    ([ids(&of.ancestors), ids(&of.descendants)], of.lacks_archive)
}

fn is_away<T: std::fmt::Debug>(answer: Result<T>) {
    assert_eq!(answer.unwrap_err().code(), ErrorCode::ArchiveAway);
}

async fn answer(engine: &Engine, author: AccountId, to: PostId, of: AccountId) -> PostId {
    let draft = Draft::text("an answer").reply_to(PostRef { id: to, author: of });
    engine.publish(author, &draft).await.unwrap().id
}

/// H250.
#[tokio::test]
async fn what_an_account_likes_and_has_bookmarked_ends_above_what_only_the_archive_could_tell() {
    let mut server = LocalPostgres::up().await.unwrap();
    let tenant = archived(&server).await;
    let engine = &tenant.engine;
    let [ada, ben, dan] = accounts(engine, 3).await[..] else { panic!("three were made") };
    let dans = engine.publish(dan, &Draft::text("quoted")).await.unwrap().id;
    let posts = publish(engine, ada, 40).await;
    let quote = Draft::text("look").quoting(PostRef { id: dans, author: dan });
    let quote = engine.publish(ada, &quote).await.unwrap().id;
    let reader = engine.as_reader(ben);
    let (mut first_like, mut first_bookmark) = (None, None);
    // Some of these leave memory, the latest stay: what is above them, and what is below.
    for post in [posts[0], posts[39], posts[1], posts[38], quote, posts[37]] {
        engine.like(ben, post).await.unwrap();
        engine.bookmark(ben, post).await.unwrap();
        if post == posts[0] {
            let newest = ListQuery::default().limit(1);
            first_like = reader.likes(&newest).await.unwrap().older;
            first_bookmark = reader.bookmarks(&newest).await.unwrap().older;
        }
    }
    publish(engine, dan, 40).await;
    tenant.left_in_memory(12 + 12).await;
    server.kill().await.unwrap();

    let all = [posts[37], quote, posts[38], posts[1], posts[39], posts[0]];
    let mut places = Vec::new();
    for is_likes in [true, false] {
        let list = async |query: ListQuery| match is_likes {
            true => reader.likes(&query).await,
            false => reader.bookmarks(&query).await,
        };
        // The quote is there, and what it quotes is not.
        let down = list(ListQuery::default()).await.unwrap();
        assert_eq!(told(&down), (vec![posts[37]], true));
        let older = down.older.unwrap();
        is_away(list(ListQuery::default().older_than(older.clone())).await);
        // A full page lacks nothing.
        assert_eq!(told(&list(ListQuery::default().limit(1)).await.unwrap()), (vec![posts[37]], false));
        // Up it ends below.
        let oldest: ListCursor = if is_likes { first_like.take() } else { first_bookmark.take() }.unwrap();
        let up = list(ListQuery::default().newer_than(oldest.clone())).await.unwrap();
        assert_eq!(told(&up), (vec![posts[39]], true));
        let newer = up.newer.unwrap();
        is_away(list(ListQuery::default().newer_than(newer.clone())).await);
        places.push((is_likes, older, newer, oldest));
    }

    // Posts by their ids: those that can be told, and which can't.
    let by_ids = reader.posts(&[posts[39], posts[0], quote, posts[38]]).await.unwrap();
    let ids: Vec<PostId> = by_ids.posts.iter().map(|post| post.id).collect();
    assert_eq!((ids, by_ids.untold), (vec![posts[39], posts[38]], vec![posts[0], quote]));
    is_away(reader.posts(&[posts[0], posts[1]]).await);
    is_away(reader.post(posts[0]).await);

    server.start().await.unwrap();
    eventually("the archive answers again", async || reader.post(posts[0]).await.is_ok()).await;
    for (is_likes, older, newer, oldest) in places {
        let list = async |query: ListQuery| match is_likes {
            true => told(&reader.likes(&query).await.unwrap()),
            false => told(&reader.bookmarks(&query).await.unwrap()),
        };
        // Nothing that was untold was taken for gone.
        assert_eq!(list(ListQuery::default()).await, (all.to_vec(), false));
        assert_eq!(list(ListQuery::default().older_than(older)).await, (all[1..].to_vec(), false));
        assert_eq!(list(ListQuery::default().newer_than(newer)).await, (all[..4].to_vec(), false));
        assert_eq!(list(ListQuery::default().newer_than(oldest)).await, (all[..5].to_vec(), false));
    }
    let by_ids = reader.posts(&[posts[39], posts[0], quote, posts[38]]).await.unwrap();
    assert_eq!((by_ids.posts.len(), by_ids.untold), (4, vec![]));
}

#[tokio::test]
async fn quotes_reposts_and_answers_that_are_there_show_without_those_that_are_not() {
    let mut server = LocalPostgres::up().await.unwrap();
    let tenant = archived(&server).await;
    let engine = &tenant.engine;
    let [ada, ben, cora, dan] = accounts(engine, 4).await[..] else { panic!("four were made") };
    // Of Cora all leaves memory, of the others nothing.
    let root = engine.publish(cora, &Draft::text("root")).await.unwrap().id;
    let above = answer(engine, dan, root, cora).await;
    let post = answer(engine, ada, above, dan).await;
    let at = PostRef { id: post, author: ada };
    let mut quotes = Vec::new();
    for by in [dan, cora, ben] {
        a_millisecond(engine).await;
        quotes.insert(0, engine.publish(by, &Draft::text("look").quoting(at)).await.unwrap().id);
        engine.repost(by, post).await.unwrap();
    }
    let gone = answer(engine, cora, post, ada).await;
    let below_gone = answer(engine, dan, gone, cora).await;
    let there = answer(engine, ben, post, ada).await;
    let below = answer(engine, dan, there, ben).await;
    publish(engine, cora, 40).await;
    tenant.left_in_memory(12 + 9).await;
    server.kill().await.unwrap();

    let reader = engine.as_reader(ada);
    let newest = ListQuery::default();
    let quoted = reader.quotes(post, &newest).await.unwrap();
    assert_eq!(told(&quoted), (quotes[..1].to_vec(), true));
    let older = newest.clone().older_than(quoted.older.unwrap());
    is_away(reader.quotes(post, &older).await);
    let reposters = reader.reposters(post, &newest).await.unwrap();
    let who = |list: &tideline::AccountList| list.accounts.iter().map(|of| of.id).collect::<Vec<_>>();
    assert_eq!((who(&reposters), reposters.lacks_archive), (vec![ben], true));
    let older_reposters = newest.clone().older_than(reposters.older.unwrap());
    is_away(reader.reposters(post, &older_reposters).await);
    let around = reader.conversation(post).await.unwrap();
    assert_eq!(conversation(&around), ([vec![above], vec![there, below]], true));
    // What the archive has nothing of lacks nothing.
    let lower = reader.conversation(below).await.unwrap();
    assert_eq!(lower.ancestors.last().map(|post| post.id), Some(there));
    is_away(reader.conversation(gone).await);
    is_away(reader.likers(gone, &newest).await);

    server.start().await.unwrap();
    eventually("the archive answers again", async || reader.post(gone).await.is_ok()).await;
    assert_eq!(told(&reader.quotes(post, &older).await.unwrap()), (quotes[1..].to_vec(), false));
    let rest = reader.reposters(post, &older_reposters).await.unwrap();
    assert_eq!((who(&rest), rest.lacks_archive), (vec![cora, dan], false));
    let around = reader.conversation(post).await.unwrap();
    let whole = [vec![root, above], vec![gone, below_gone, there, below]];
    assert_eq!(conversation(&around), (whole, false));
}

#[tokio::test]
async fn a_chat_whose_newest_message_that_shows_left_memory_shows_while_the_archive_is_there() {
    let mut server = LocalPostgres::up().await.unwrap();
    let tenant = archived(&server).await;
    let engine = &tenant.engine;
    let [ada, ben, cora] = accounts(engine, 3).await[..] else { panic!("three were made") };
    let (two, three) = (opened(engine, ben, &[ada]).await, opened(engine, cora, &[ada, ben]).await);
    let in_two = said(engine, ben, two, "still here").await;
    a_millisecond(engine).await;
    let in_three = said(engine, ben, three, "long ago").await;
    for _ in 0..40 {
        said(engine, cora, three, "and on").await;
    }
    engine.mute(ada, cora).await.unwrap();
    let list = async || {
        let list = engine.as_reader(ada).chats(&ChatQuery::default()).await.unwrap();
        let chats: Vec<_> = list.chats.iter().map(|chat| (chat.id, last_of(chat))).collect();
        (chats, list.lacks_archive)
    };
    let both = vec![(three, in_three), (two, in_two)];
    assert_eq!(list().await, (both.clone(), false));
    tenant.left_in_memory(12 + 1).await;
    assert_eq!(list().await, (both.clone(), false));
    server.kill().await.unwrap();
    assert_eq!(list().await, (vec![(two, in_two)], true));
    server.start().await.unwrap();
    eventually("the archive answers again", async || list().await == (both.clone(), false)).await;
}
