//! Likes, bookmarks, reposts, conversations: what they show to whom, and that lists and counters say the same.

use futures::future::join_all;
use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::{AccountId, Engine, EngineSettings, ErrorKind, ListQuery, PostId, Query, ReaderTies};

use super::{a_millisecond, accounts, at_bucket_key, drained, engine, engine_with, small, tenant};

async fn text(engine: &Engine, author: AccountId, text: &str) -> PostRef {
    PostRef { id: engine.publish(author, &Draft::text(text)).await.unwrap().id, author }
}

async fn reply(engine: &Engine, author: AccountId, to: PostRef) -> PostRef {
    let draft = Draft::text("so").reply_to(to);
    PostRef { id: engine.publish(author, &draft).await.unwrap().id, author }
}

/// Likes, reposts, replies, quotes.
async fn counts(engine: &Engine, post: PostRef) -> [u32; 4] {
    let header = *engine.stored().post(post.id).await.unwrap().unwrap().header();
    [header.likes, header.reposts, header.replies, header.quotes]
}

async fn likers(engine: &Engine, reader: AccountId, post: PostRef) -> Vec<AccountId> {
    let page = engine.as_reader(reader).likers(post.id, &ListQuery::default().limit(100)).await.unwrap();
    page.accounts.iter().map(|account| account.id).collect()
}

async fn likes(engine: &Engine, account: AccountId) -> Vec<PostId> {
    let page = engine.as_reader(account).likes(&ListQuery::default()).await.unwrap();
    page.posts.iter().map(|post| post.id).collect()
}

#[tokio::test]
async fn likes_and_bookmarks_show_at_once_to_who_made_them_and_are_taken_back() {
    let engine = engine().await;
    let [ada, ben, eve] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let post = text(&engine, ada, "low tide").await;
    engine.like(ben, post.id).await.unwrap();
    engine.like(ben, post.id).await.unwrap();
    engine.bookmark(ben, post.id).await.unwrap();
    let liked = ReaderTies { is_liked: true, is_bookmarked: true, repost: None };
    assert_eq!(engine.as_reader(ben).ties(&[post]).await.unwrap(), [liked]);
    assert_eq!(engine.as_reader(eve).ties(&[post]).await.unwrap(), [ReaderTies::default()]);
    assert_eq!(likes(&engine, ben).await, [post.id]);
    let bookmarks = engine.as_reader(ben).bookmarks(&ListQuery::default()).await.unwrap();
    assert_eq!(bookmarks.posts[0].ties, Some(liked));
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [1, 0, 0, 0]);
    assert_eq!(likers(&engine, eve, post).await, [ben]);
    a_millisecond(&engine).await;
    engine.like(eve, post.id).await.unwrap();
    drained(&engine).await;
    assert_eq!(likers(&engine, ada, post).await, [eve, ben]);

    // An edit keeps the counter.
    engine.edit(ada, post.id, &Edit { text: Some("high tide".into()), ..Edit::default() }).await.unwrap();
    assert_eq!(counts(&engine, post).await, [2, 0, 0, 0]);
    engine.unlike(ben, post.id).await.unwrap();
    engine.unlike(ben, post.id).await.unwrap();
    engine.unbookmark(ben, post.id).await.unwrap();
    assert_eq!(engine.as_reader(ben).ties(&[post]).await.unwrap(), [ReaderTies::default()]);
    assert!(likes(&engine, ben).await.is_empty());
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [1, 0, 0, 0]);
    assert_eq!(likers(&engine, ada, post).await, [eve]);
}

#[tokio::test]
async fn only_what_somebody_may_see_can_be_liked_and_nothing_leaks_afterwards() {
    let engine = engine().await;
    let [ada, ben, eve] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    engine.follow(ben, ada).await.unwrap();
    let draft = Draft::text("for followers").visibility(Visibility::Followers);
    let post = PostRef { id: engine.publish(ada, &draft).await.unwrap().id, author: ada };
    for refused in [
        engine.like(eve, post.id).await.map(drop),
        engine.bookmark(eve, post.id).await.map(drop),
        engine.as_reader(eve).likers(post.id, &ListQuery::default()).await.map(drop),
        engine.as_reader(eve).conversation(post.id).await.map(drop),
        engine.publish(eve, &Draft::text("so").reply_to(post)).await.map(drop),
        engine.repost(ben, post.id).await.map(drop).map_err(|e| {
            // He may see it, but not pass it on.
            assert_eq!(e.kind(), ErrorKind::Invalid, "{e}");
            tideline::Error::new(ErrorKind::NotFound, "")
        }),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    }
    engine.like(ben, post.id).await.unwrap();
    engine.bookmark(ben, post.id).await.unwrap();
    drained(&engine).await;
    assert_eq!(likes(&engine, ben).await, [post.id]);
    let shown = async |on: bool| {
        let bookmarks = engine.as_reader(ben).bookmarks(&ListQuery::default()).await.unwrap();
        assert_eq!(bookmarks.posts.len(), usize::from(on));
        assert_eq!(likes(&engine, ben).await.len(), usize::from(on));
    };
    engine.unfollow(ben, ada).await.unwrap();
    shown(false).await;
    engine.follow(ben, ada).await.unwrap();
    shown(true).await;
    engine.block(ada, ben).await.unwrap();
    drained(&engine).await;
    shown(false).await;
    assert_eq!(engine.like(ben, post.id).await.unwrap_err().kind(), ErrorKind::NotFound);
    // Who is blocked is not met on lists either; taking back is allowed.
    assert!(likers(&engine, ada, post).await.is_empty());
    engine.unlike(ben, post.id).await.unwrap();
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_repost_is_made_once_is_found_by_its_original_and_stands_for_it() {
    let engine = engine().await;
    let [ada, ben, eve] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let post = text(&engine, ada, "low tide").await;
    let (one, other) = futures::join!(engine.repost(ben, post.id), engine.repost(ben, post.id));
    let (repost, again) = (one.unwrap().id, other.unwrap().id);
    assert_eq!(repost, again);
    assert!(engine.repost(ben, post.id).await.unwrap().is_repeat);
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [0, 1, 0, 0]);
    // A repost, a like, an answer of the repost: all are the original's.
    let second = engine.repost(eve, repost).await.unwrap().id;
    engine.like(eve, repost).await.unwrap();
    let answer = reply(&engine, eve, PostRef { id: repost, author: ben }).await;
    let quote = Draft::text("look").quoting(PostRef { id: second, author: eve });
    let quote = PostRef { id: engine.publish(ben, &quote).await.unwrap().id, author: ben };
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [1, 2, 1, 1]);
    assert_eq!(engine.stored().post(second).await.unwrap().unwrap().header().original, Some(post));
    assert_eq!(engine.stored().post(answer.id).await.unwrap().unwrap().header().reply_to, Some(post));
    let reposters = engine.as_reader(ada).reposters(second, &ListQuery::default()).await.unwrap();
    assert_eq!(reposters.accounts.iter().map(|a| a.id).collect::<Vec<_>>(), [eve, ben]);
    let quotes = engine.as_reader(ada).quotes(post.id, &ListQuery::default()).await.unwrap();
    assert_eq!(quotes.posts.iter().map(|p| p.id).collect::<Vec<_>>(), [quote.id]);
    // A quote has likes of its own, and is no repost to be undone.
    engine.like(eve, quote.id).await.unwrap();
    drained(&engine).await;
    assert_eq!(counts(&engine, quote).await, [1, 0, 0, 0]);
    let ties = engine.as_reader(ben).ties(&[post, quote]).await.unwrap();
    assert_eq!(ties.iter().map(|m| m.repost).collect::<Vec<_>>(), [Some(repost), None]);

    assert_eq!(engine.undo_repost(ben, second).await.unwrap().value, Some(repost));
    assert_eq!(engine.undo_repost(ben, post.id).await.unwrap().value, None);
    assert_eq!(engine.as_reader(ben).ties(&[post]).await.unwrap(), [ReaderTies::default()]);
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [1, 1, 1, 1]);
    let anew = engine.repost(ben, post.id).await.unwrap();
    assert!(!anew.is_repeat && anew.id > repost);
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [1, 2, 1, 1]);
    // Reposts of what is gone don't show; quotes and answers do.
    engine.delete(ada, post.id).await.unwrap();
    drained(&engine).await;
    let profile = engine.as_reader(ada).read(&Query::profile(ben)).await.unwrap();
    assert_eq!(profile.ids(), [quote.id]);
    assert!(likes(&engine, eve).await == [quote.id]);
    assert_eq!(engine.undo_repost(ben, post.id).await.unwrap().value, Some(anew.id));
    assert_eq!(engine.undo_repost(ben, post.id).await.unwrap().value, None);
}

/// Each compares what the others renew: that must not keep them from being made.
#[tokio::test]
async fn of_many_reposts_at_once_all_are_made_and_all_are_taken_back() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let posts = join_all((0..30).map(|_| text(&engine, ada, "low tide"))).await;
    let made = join_all(posts.iter().map(|post| engine.repost(ben, post.id))).await;
    let made: Vec<PostId> = made.into_iter().map(|repost| repost.unwrap().id).collect();
    let ties = engine.as_reader(ben).ties(&posts).await.unwrap();
    assert!(ties.iter().map(|ties| ties.repost).eq(made.iter().copied().map(Some)));
    let (own, others) = made.split_at(15);
    let deleted = own.iter().map(|repost| engine.delete(ben, *repost));
    let undone = posts[15..].iter().map(|post| engine.undo_repost(ben, post.id));
    let (deleted, undone) = futures::join!(join_all(deleted), join_all(undone));
    deleted.into_iter().for_each(|deleted| assert!(deleted.is_ok()));
    assert!(undone.into_iter().map(|undone| undone.unwrap().value).eq(others.iter().copied().map(Some)));
    assert_eq!(engine.as_reader(ben).ties(&posts).await.unwrap(), [ReaderTies::default(); 30]);
    drained(&engine).await;
    for post in posts {
        assert_eq!(counts(&engine, post).await, [0; 4]);
    }
}

#[tokio::test]
async fn who_has_reposted_shows_to_whom_the_repost_does() {
    let engine = engine().await;
    let [ada, ben, eve, zoe] = accounts(&engine, 4).await[..] else { panic!("four were made") };
    engine.follow(ada, ben).await.unwrap();
    let post = text(&engine, ada, "low tide").await;
    for (by, visibility) in [(ben, Visibility::Followers), (eve, Visibility::Public)] {
        engine.publish(by, &Draft::repost(post).visibility(visibility)).await.unwrap();
        a_millisecond(&engine).await;
    }
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await, [0, 2, 0, 0]);
    let shown = async |reader: AccountId| {
        let page = engine.as_reader(reader).reposters(post.id, &ListQuery::default()).await.unwrap();
        page.accounts.iter().map(|account| account.id).collect::<Vec<_>>()
    };
    assert_eq!(shown(ada).await, [eve, ben]);
    assert_eq!(shown(ben).await, [eve, ben]);
    assert_eq!(shown(zoe).await, [eve]);
}

#[tokio::test]
async fn lists_that_have_split_are_paged_both_ways_and_go_with_their_post() {
    let engine = engine().await;
    let people = accounts(&engine, 90).await;
    let post = text(&engine, people[0], "everybody likes it").await;
    for reader in &people {
        engine.like(*reader, post.id).await.unwrap();
    }
    drained(&engine).await;
    assert_eq!(counts(&engine, post).await[0], 90);
    let (mut down, mut cursor) = (Vec::new(), None);
    let mut first = None;
    loop {
        let query = ListQuery { limit: Some(7), older_than: cursor, ..ListQuery::default() };
        let page = engine.as_reader(people[1]).likers(post.id, &query).await.unwrap();
        down.extend(page.accounts.iter().map(|account| account.id));
        first = first.or(page.newer);
        cursor = page.older.map(|cursor| cursor.to_string().parse().unwrap());
        if cursor.is_none() {
            break;
        }
    }
    let mut sorted = down.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!((down.len(), sorted.len()), (90, 90));
    // Up from the middle: those next to it.
    let middle = ListQuery::default().limit(45);
    let half = engine.as_reader(people[1]).likers(post.id, &middle).await.unwrap();
    let above = ListQuery { limit: Some(10), newer_than: half.older, ..ListQuery::default() };
    let above = engine.as_reader(people[1]).likers(post.id, &above).await.unwrap();
    assert_eq!(above.accounts.iter().map(|a| a.id).collect::<Vec<_>>(), down[34..44]);
    let newest = ListQuery { newer_than: first, ..ListQuery::default() };
    assert!(engine.as_reader(people[1]).likers(post.id, &newest).await.unwrap().accounts.is_empty());

    engine.delete(people[0], post.id).await.unwrap();
    drained(&engine).await;
    let list = engine.store().sets().of_post::<AccountId>(post.id, "likes").unwrap();
    assert_eq!(list.len().await.unwrap(), 0);
    assert!(likes(&engine, people[3]).await.is_empty());
}

#[tokio::test]
async fn what_answers_or_passes_on_a_post_stands_above_it() {
    let engine = engine().await;
    let [ada, ben, eve] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    // As by an instance whose clock is ahead of ours.
    let ahead = engine.store().router().now_ms() + 900;
    at_bucket_key(&engine, 'c', ada, "SET", &[&format!("{ahead} 0 {ahead}")]).await;
    let root = text(&engine, ada, "root").await;
    let answer = reply(&engine, ben, root).await;
    let repost = engine.repost(eve, root.id).await.unwrap().id;
    assert!(
        root.id.unix_ms() >= ahead && answer.id > root.id && repost > root.id,
        "{root:?}, {answer:?}, {repost:?}"
    );
}

#[tokio::test]
async fn a_conversation_shows_what_its_reader_may_see_in_the_order_of_reading() {
    let engine = engine().await;
    let [ada, ben, eve, stranger] = accounts(&engine, 4).await[..] else { panic!("four were made") };
    let root = text(&engine, ada, "root").await;
    // Posts of one millisecond are in the order of their buckets.
    let first = reply(&engine, ben, root).await;
    a_millisecond(&engine).await;
    let second = reply(&engine, eve, root).await;
    let under_first = reply(&engine, ada, first).await;
    let deep = reply(&engine, eve, under_first).await;
    a_millisecond(&engine).await;
    let draft = Draft::text("psst").reply_to(under_first).visibility(Visibility::Direct).only_to([ada]);
    let secret = PostRef { id: engine.publish(ben, &draft).await.unwrap().id, author: ben };
    drained(&engine).await;
    let shown = async |reader: AccountId, of: PostRef| {
        let found = engine.as_reader(reader).conversation(of.id).await.unwrap();
        let ids = |posts: &[tideline::PagePost]| posts.iter().map(|post| post.id).collect::<Vec<_>>();
        (ids(&found.ancestors), found.post.id, ids(&found.descendants))
    };
    let all = vec![first.id, under_first.id, deep.id, second.id];
    assert_eq!(shown(stranger, root).await, (vec![], root.id, all));
    let around = (vec![root.id, first.id], under_first.id, vec![deep.id, secret.id]);
    assert_eq!(shown(ada, under_first).await, around);
    assert_eq!(engine.stored().post(deep.id).await.unwrap().unwrap().header().conversation, Some(root.id));
    engine.mute(stranger, eve).await.unwrap();
    engine.block(ben, stranger).await.unwrap();
    assert_eq!(shown(stranger, root).await, (vec![], root.id, vec![under_first.id]));
    assert_eq!(shown(stranger, under_first).await, (vec![root.id], under_first.id, vec![]));
    // What is gone leaves the list, and its counter with it.
    engine.delete(eve, second.id).await.unwrap();
    drained(&engine).await;
    assert_eq!(counts(&engine, root).await, [0, 0, 1, 0]);
    let all = vec![first.id, under_first.id, deep.id, secret.id];
    assert_eq!(shown(ben, root).await, (vec![], root.id, all));
}

#[tokio::test]
async fn a_page_carries_ties_likers_and_replies() {
    let engine = engine().await;
    let people = accounts(&engine, 40).await;
    let [ada, ben, eve] = people[..3] else { panic!("more were made") };
    engine.follow(ben, ada).await.unwrap();
    engine.follow(ben, eve).await.unwrap();
    let (one, other) = (text(&engine, ada, "one").await, text(&engine, ada, "other").await);
    engine.repost(eve, one.id).await.unwrap();
    for liker in &people[2..] {
        engine.like(*liker, one.id).await.unwrap();
        a_millisecond(&engine).await;
    }
    engine.like(ben, other.id).await.unwrap();
    engine.bookmark(ben, one.id).await.unwrap();
    let mut replies = Vec::new();
    for who in [eve, people[5], ben] {
        replies.push(reply(&engine, who, one).await);
        a_millisecond(&engine).await;
    }
    engine.like(ben, replies[0].id).await.unwrap();
    engine.block(ben, people[5]).await.unwrap();
    drained(&engine).await;
    let query = Query::home().with_ties().with_likers(3).with_replies(2);
    let page = engine.as_reader(ben).read(&query).await.unwrap();
    let repost = page.posts.iter().find(|post| (post.author, post.subject()) == (eve, one)).unwrap();
    assert_eq!(repost.subject(), one);
    assert_eq!(repost.ties, Some(ReaderTies { is_bookmarked: true, ..ReaderTies::default() }));
    let newest: Vec<_> = people[37..].iter().rev().copied().collect();
    assert_eq!(repost.likers.iter().map(|a| a.id).collect::<Vec<_>>(), newest);
    // The newest two, without the one whom the reader blocks.
    assert_eq!(repost.replies.iter().map(|p| p.id).collect::<Vec<_>>(), [replies[2].id]);
    let plain = page.posts.iter().find(|post| post.id == other.id).unwrap();
    assert_eq!(plain.ties, Some(ReaderTies { is_liked: true, ..ReaderTies::default() }));
    assert!(plain.replies.is_empty() && plain.likers.iter().map(|a| a.id).eq([ben]));
    let all = engine.as_reader(ben).read(&Query::home().with_ties().with_replies(20)).await.unwrap();
    let repost = all.posts.iter().find(|post| (post.author, post.subject()) == (eve, one)).unwrap();
    let of = |n: usize| (repost.replies[n].id, repost.replies[n].ties.unwrap().is_liked);
    assert_eq!((of(0), of(1)), ((replies[2].id, false), (replies[0].id, true)));
    assert_eq!(
        engine.as_reader(ben).read(&query.with_likers(41)).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[tokio::test]
async fn likes_bookmarks_and_reposts_have_a_bound_and_a_suspended_account_only_takes_back() {
    let settings = EngineSettings { likes_max: 3, bookmarks_max: 1, reposts_max: 2, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let mut posts = Vec::new();
    for n in 0..4 {
        posts.push(text(&engine, ada, &format!("post {n}")).await.id);
    }
    for post in &posts[..3] {
        engine.like(ben, *post).await.unwrap();
    }
    assert_eq!(engine.like(ben, posts[3]).await.unwrap_err().kind(), ErrorKind::Invalid);
    engine.bookmark(ben, posts[0]).await.unwrap();
    assert_eq!(engine.bookmark(ben, posts[1]).await.unwrap_err().kind(), ErrorKind::Invalid);
    let first = engine.repost(ben, posts[0]).await.unwrap().id;
    engine.repost(ben, posts[1]).await.unwrap();
    assert_eq!(engine.repost(ben, posts[2]).await.unwrap_err().kind(), ErrorKind::Invalid);
    // What it has reposted is there still, and one that it takes back makes room; quotes are posts like others.
    assert_eq!(engine.repost(ben, posts[0]).await.unwrap().id, first);
    engine.undo_repost(ben, posts[1]).await.unwrap();
    engine.repost(ben, posts[2]).await.unwrap();
    let of = PostRef { id: posts[3], author: ada };
    engine.publish(ben, &Draft::text("look").quoting(of)).await.unwrap();
    let suspended = tideline::AccountUpdate {
        state: Some(tideline::AccountState::Suspended),
        ..tideline::AccountUpdate::default()
    };
    engine.update_account(ben, &suspended).await.unwrap();
    engine.unlike(ben, posts[0]).await.unwrap();
    assert_eq!(engine.like(ben, posts[3]).await.unwrap_err().kind(), ErrorKind::Invalid);
    drained(&engine).await;
    assert_eq!(counts(&engine, PostRef { id: posts[0], author: ada }).await[0], 0);
}

#[tokio::test]
async fn a_deleted_account_leaves_the_lists_of_what_it_liked() {
    let engine = engine().await;
    let [ada, gone, eve] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let mut posts = Vec::new();
    for n in 0..40 {
        posts.push(text(&engine, ada, &format!("post {n}")).await);
    }
    for liked in join_all(posts.iter().map(|post| engine.like(gone, post.id))).await {
        liked.unwrap();
    }
    engine.like(eve, posts[0].id).await.unwrap();
    engine.bookmark(gone, posts[1].id).await.unwrap();
    engine.repost(gone, posts[2].id).await.unwrap();
    let own = text(&engine, gone, "mine").await;
    engine.like(eve, own.id).await.unwrap();
    drained(&engine).await;
    engine.delete_account(gone).await.unwrap();
    drained(&engine).await;
    for post in &posts {
        let left = u32::from(post.id == posts[0].id);
        assert_eq!(counts(&engine, *post).await, [left, 0, 0, 0]);
    }
    assert_eq!(likes(&engine, eve).await, [posts[0].id]);
    assert_eq!(engine.like(gone, posts[0].id).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn what_is_gone_is_taken_back_by_its_id_alone_and_leaves_the_bound_with_a_page() {
    let settings = EngineSettings { likes_max: 40, bookmarks_max: 2, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let mut posts = Vec::new();
    for n in 0..41 {
        posts.push(text(&engine, ada, &format!("post {n}")).await);
    }
    for post in &posts[..40] {
        engine.like(ben, post.id).await.unwrap();
    }
    for post in &posts[..2] {
        engine.bookmark(ben, post.id).await.unwrap();
    }
    for post in &posts[..2] {
        engine.delete(ada, post.id).await.unwrap();
    }
    assert_eq!(engine.like(ben, posts[40].id).await.unwrap_err().kind(), ErrorKind::Invalid);
    engine.unlike(ben, posts[0].id).await.unwrap();
    engine.unlike(ben, posts[0].id).await.unwrap();
    engine.like(ben, posts[40].id).await.unwrap();
    assert_eq!(
        engine.as_reader(ben).ties(&posts[..2]).await.unwrap().iter().filter(|m| m.is_liked).count(),
        1
    );
    // Bookmarks that nobody takes back.
    assert_eq!(engine.bookmark(ben, posts[2].id).await.unwrap_err().kind(), ErrorKind::Invalid);
    drained(&engine).await;
    let gone =
        async || engine.as_reader(ben).bookmarks(&ListQuery::default()).await.unwrap().posts.is_empty();
    assert!(gone().await);
    let left = engine.store().sets().of_account::<PostRef>(ben, "bookmarks").unwrap();
    assert_eq!(left.len().await.unwrap(), 0);
    engine.bookmark(ben, posts[2].id).await.unwrap();
    assert!(!gone().await);
}

#[tokio::test]
async fn replies_to_a_plain_repost_are_those_to_its_original() {
    #[derive(Debug)]
    struct Hides;
    impl tideline::PostFilter for Hides {
        fn shows(&self, facts: &tideline::FilterFacts<'_>) -> bool {
            facts.post.content().text != "not here"
        }
    }
    let engine = Engine::builder().store(tenant(40)).settings(small()).filter(Hides).start().await.unwrap();
    let [ada, ben, eve] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let post = text(&engine, ada, "low tide").await;
    let repost = engine.repost(ben, post.id).await.unwrap().id;
    let first = reply(&engine, ben, post).await;
    a_millisecond(&engine).await;
    let answers = [first, reply(&engine, ada, post).await];
    drained(&engine).await;
    let replies =
        async |reader: AccountId, to: PostId| engine.as_reader(reader).read(&Query::replies(to)).await;
    let newest = [answers[1].id, answers[0].id];
    assert_eq!(replies(eve, post.id).await.unwrap().ids(), newest);
    assert_eq!(replies(eve, repost).await.unwrap().ids(), newest);
    // What hides the original hides its reposts.
    engine.block(ada, eve).await.unwrap();
    drained(&engine).await;
    for to in [post.id, repost] {
        assert_eq!(replies(eve, to).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let filtered = text(&engine, ada, "not here").await;
    assert_eq!(replies(ben, filtered.id).await.unwrap_err().kind(), ErrorKind::NotFound);
    engine.delete(ada, post.id).await.unwrap();
    assert_eq!(replies(ben, repost).await.unwrap_err().kind(), ErrorKind::NotFound);
}
