//! Each way to be out of step, made on purpose.

use tideline::FindingKind::*;
use tideline::post::{Draft, PostRef};
use tideline::{AccountUpdate, DeliveryWay, HomeStatus, Mode, Query};

use super::*;
use crate::engine::{engine, never_was, walk_home};

const WATERMARK: [u8; 8] = [0xff; 8];

pub(super) fn home_entry(id: u64, author: u64) -> Vec<u8> {
    [id.to_be_bytes(), author.to_be_bytes()].concat()
}

#[tokio::test]
async fn an_edge_that_is_gone_comes_back_with_what_was_posted_meanwhile() {
    // Local, then spread followers.
    for readers in [1, 60] {
        let engine = engine().await;
        let (author, readers) = followed(&engine, readers).await;
        let reader = readers[0];
        let mut posts = vec![post(&engine, author).await];
        drained(&engine).await;
        let followers = engine.store().sets().of_account(author, "followers").unwrap();
        followers.remove(&[reader]).await.unwrap();
        if readers.len() == 1 {
            heals(&engine, &[EdgeMissing, CountWrong]).await;
            followers.remove(&[reader]).await.unwrap();
        }
        posts.insert(0, post(&engine, author).await);
        drained(&engine).await;
        engine.count_now().await;
        heals(&engine, &[EdgeMissing, EntryMissing, CountWrong]).await;
        posts.insert(0, post(&engine, author).await);
        drained(&engine).await;
        assert_eq!(walk_home(&engine, reader, 10).await, posts);
    }
}

#[tokio::test]
async fn edges_that_are_old_or_needless_are_put_right_and_so_is_a_follow_of_nobody() {
    let engine = engine().await;
    let (author, readers) = followed(&engine, 2).await;
    let stranger = accounts(&engine, 1).await[0];
    let followers = engine.store().sets().of_account(author, "followers").unwrap();
    followers.add(&[(readers[0], 1.0)]).await.unwrap();
    heals(&engine, &[EdgeOld]).await;
    followers.add(&[(stranger, 1.0)]).await.unwrap();
    heals(&engine, &[EdgeNeedless, CountWrong]).await;
    assert_eq!(followers.score(&stranger).await.unwrap(), None);
    let nobody = AccountId::new(77).unwrap();
    let following = engine.store().sets().of_account(stranger, "following").unwrap();
    following.add(&[(nobody, 1.0)]).await.unwrap();
    raw_of(&engine, stranger, 'a', "HSET", &[b"nf", b"1"]).await;
    heals(&engine, &[FollowsNobody]).await;
    assert_eq!(engine.stored().account(stranger).await.unwrap().following, 0);
}

#[tokio::test]
async fn marks_that_are_missing_needless_or_left_over_are_put_right() {
    let engine = engine().await;
    let (author, readers) = followed(&engine, 2).await;
    let (reader, stranger) = (readers[0], accounts(&engine, 1).await[0]);
    raw_of(&engine, reader, 'm', "HSET", &[&stranger.to_bytes(), b"12345678"]).await;
    heals(&engine, &[MarkOfStranger]).await;
    raw_of(&engine, reader, 'm', "HSET", &[&author.to_bytes(), b"12345678"]).await;
    assert!(fsck(&engine, false).await.is_clean());
    heals(&engine, &[MarkMayGo]).await;
    engine.set_way(author, Some(DeliveryWay::Pull)).await.unwrap().all().await.unwrap();
    drained(&engine).await;
    raw_of(&engine, reader, 'm', "HDEL", &[&author.to_bytes()]).await;
    let pulled = post(&engine, author).await;
    heals(&engine, &[MarkMissing]).await;
    assert_eq!(walk_home(&engine, reader, 10).await, [pulled]);
    // Nobody is going to ask the author whether it was open; it is locked later: what it says to followers was hidden.
    raw_of(&engine, reader, 'm', "HSET", &[&author.to_bytes(), b"new\0mark"]).await;
    heals(&engine, &[MarkUnasked]).await;
    let update = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(author, &update).await.unwrap();
    let for_followers = post(&engine, author).await;
    assert_eq!(walk_home(&engine, reader, 10).await, [for_followers, pulled]);
    // Asked only now that it is locked, it has not let that reader in.
    raw_of(&engine, reader, 'm', "HSET", &[&author.to_bytes(), b"new\0mark"]).await;
    heals(&engine, &[MarkUnasked]).await;
    let stands = engine.as_reader(reader).relationships(&[author]).await.unwrap();
    assert!(
        stands[0].as_ref().is_some_and(|stands| stands.has_requested && !stands.is_following),
        "{stands:?}"
    );
}

#[tokio::test]
async fn requests_that_only_one_side_knows_are_put_right() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let [locked, asks, stranger] = people[..] else { panic!("three were made") };
    let update = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(locked, &update).await.unwrap();
    engine.follow(asks, locked).await.unwrap();
    drained(&engine).await;
    raw_of(&engine, locked, 'l', "HDEL", &[&asks.to_bytes()]).await;
    heals(&engine, &[RequestOutOfStep]).await;
    raw_of(&engine, locked, 'l', "HSET", &[&stranger.to_bytes(), b"12345678"]).await;
    heals(&engine, &[RequestOutOfStep]).await;
    assert_eq!(engine.stored().follow_requests(locked).await.unwrap(), [asks]);
}

#[tokio::test]
async fn homes_that_lie_or_lack_something_are_filled_again() {
    let engine = engine().await;
    let (author, readers) = followed(&engine, 1).await;
    let reader = readers[0];
    let mut posts = Vec::new();
    for _ in 0..5 {
        posts.insert(0, post(&engine, author).await);
    }
    drained(&engine).await;
    let fill = async || {
        engine.as_reader(reader).read(&Query::home()).await.unwrap();
        engine.warm(reader).await.unwrap();
        assert_eq!(walk_home(&engine, reader, 3).await, posts);
    };
    let home =
        async |command: &str, arguments: &[&[u8]]| raw_of(&engine, reader, 'h', command, arguments).await;
    home("LREM", &[b"0", &home_entry(posts[2].get(), author.get())]).await;
    heals(&engine, &[EntryMissing]).await;
    fill().await;
    home("RPUSH", &[&[posts[3].get().to_be_bytes(), WATERMARK].concat()]).await;
    heals(&engine, &[WatermarkLies]).await;
    fill().await;
    home("LPOP", &[]).await;
    heals(&engine, &[HomeWithoutFloor]).await;
    fill().await;
    home("RPUSH", &[b"short"]).await;
    heals(&engine, &[HomeWithoutFloor]).await;
    fill().await;
    for _ in 0..150 {
        home("RPUSH", &[&home_entry(posts[0].get(), author.get())]).await;
    }
    heals(&engine, &[HomeTooLong]).await;
    fill().await;
    raw(&engine, bucket_of(&engine, reader), ('d', b""), "ZREM", &[&reader.to_bytes()]).await;
    heals(&engine, &[HomeUnlisted]).await;
    home("DEL", &[]).await;
    home("RPUSH", &[&home_entry(0, 1 << 63 | 7)]).await;
    heals(&engine, &[FillHalted]).await;
    assert_eq!(engine.inspect(reader).await.unwrap().home.status, HomeStatus::Missing);
    fill().await;
}

#[tokio::test]
async fn counts_modes_and_burials_are_brought_to_their_end() {
    let engine = engine().await;
    let (author, readers) = followed(&engine, 3).await;
    post(&engine, author).await;
    drained(&engine).await;
    for (account, field) in [(readers[0], "nf"), (readers[0], "nb"), (readers[1], "nh"), (author, "p")] {
        raw_of(&engine, account, 'a', "HSET", &[field.as_bytes(), b"9"]).await;
    }
    heals(&engine, &[CountWrong]).await;
    assert_eq!(engine.stored().account(readers[0]).await.unwrap().following, 1);
    assert_eq!(engine.stored().account(author).await.unwrap().posts, 1);
    raw_of(&engine, author, 'a', "HSET", &[b"m", b"Q12345678"]).await;
    heals(&engine, &[ModeStuck]).await;
    assert_eq!(engine.stored().account(author).await.unwrap().mode, Mode::Pull);
    for reader in &readers {
        assert_eq!(engine.inspect(*reader).await.unwrap().pulls, [author]);
    }
    let gone = accounts(&engine, 1).await[0];
    raw_of(&engine, gone, 'a', "HSET", &[b"s", b"d"]).await;
    heals(&engine, &[BurialStuck]).await;
    // With all that an account can have.
    raw_of(&engine, author, 'a', "HSET", &[b"s", b"d"]).await;
    let report = fsck(&engine, true).await;
    assert!(report.findings.contains_key(&BurialStuck) && report.is_clean(), "{report:#?}");
    drained(&engine).await;
    assert!(fsck(&engine, false).await.findings.is_empty());
}

#[tokio::test]
async fn posts_and_outboxes_are_brought_in_line() {
    let engine = engine().await;
    let (author, readers) = followed(&engine, 1).await;
    let posts = [post(&engine, author).await, post(&engine, author).await, post(&engine, author).await];
    drained(&engine).await;
    let bucket = bucket_of(&engine, author);
    let minus_one = async || raw_of(&engine, author, 'a', "HINCRBY", &[b"p", b"-1"]).await;
    raw(&engine, bucket, ('w', &posts[0].get().to_be_bytes()), "DEL", &[]).await;
    heals(&engine, &[PostGone]).await;
    raw_of(&engine, author, 'o', "LREM", &[b"0", &posts[1].get().to_be_bytes()]).await;
    minus_one().await;
    raw_of(&engine, readers[0], 'h', "LREM", &[b"0", &home_entry(posts[1].get(), author.get())]).await;
    heals(&engine, &[PostUnlisted]).await;
    assert_eq!(walk_home(&engine, readers[0], 10).await, [posts[2], posts[1]]);
    raw_of(&engine, author, 'o', "LSET", &[b"-1", &(posts[2].get() | 1 << 63).to_be_bytes()]).await;
    minus_one().await;
    heals(&engine, &[PostAfterDelete]).await;
    assert_eq!(walk_home(&engine, readers[0], 10).await, [posts[1]]);
    assert_eq!(engine.stored().account(author).await.unwrap().posts, 1);
}

#[tokio::test]
async fn lists_of_replies_and_reposts_are_brought_in_line() {
    let engine = engine().await;
    let [author, stranger] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let parent = PostRef { id: post(&engine, author).await, author };
    let other = post(&engine, author).await;
    let reply = engine.publish(author, &Draft::text("so").reply_to(parent)).await.unwrap().id;
    let repost = engine.publish(author, &Draft::repost(parent)).await.unwrap().id;
    drained(&engine).await;
    let list = |what: &str| engine.store().sets().of_post::<PostRef>(parent.id, what).unwrap();
    let member = |id: PostId| PostRef { id, author };
    let key = |id: PostId| id.get().to_be_bytes();
    let bucket = bucket_of(&engine, author);
    list("replies").remove(&[member(reply)]).await.unwrap();
    heals(&engine, &[ListingMissing, PostCountWrong]).await;
    list("reposts").add(&[(member(other), 1.0)]).await.unwrap();
    heals(&engine, &[ListingNeedless, PostCountWrong]).await;
    // By an author who hasn't written it.
    list("replies").add(&[(PostRef { id: reply, author: stranger }, 1.0)]).await.unwrap();
    heals(&engine, &[ListingNeedless, PostCountWrong]).await;
    raw(&engine, bucket, ('w', &key(other)), "DEL", &[]).await;
    list("quotes").add(&[(member(other), 1.0)]).await.unwrap();
    heals(&engine, &[PostGone, ListingNeedless, PostCountWrong]).await;
    assert_eq!(list("replies").len().await.unwrap(), 1);
    assert!(list("reposts").score(&member(repost)).await.unwrap().is_some());
    let counts = async || {
        let header = *engine.stored().post(parent.id).await.unwrap().unwrap().header();
        (header.replies, header.reposts, header.quotes, header.likes)
    };
    assert_eq!(counts().await, (1, 1, 0, 0));
    raw(&engine, bucket, ('w', &key(parent.id)), "SETRANGE", &[b"64", &[9; 16]]).await;
    heals(&engine, &[PostCountWrong]).await;
    assert_eq!(counts().await, (1, 1, 0, 0));
}

#[tokio::test]
async fn likes_bookmarks_and_notes_of_reposts_are_brought_in_line() {
    let engine = engine().await;
    let [author, reader, stranger] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let liked = PostRef { id: post(&engine, author).await, author };
    engine.like(reader, liked.id).await.unwrap();
    let repost = engine.repost(reader, liked.id).await.unwrap().id;
    drained(&engine).await;
    assert!(fsck(&engine, false).await.findings.is_empty());
    let sets = engine.store().sets();
    let list = sets.of_post::<AccountId>(liked.id, "likes").unwrap();
    let since = list.score(&reader).await.unwrap();
    list.remove(&[reader]).await.unwrap();
    heals(&engine, &[PostCountWrong, TieUnlisted]).await;
    // An old like of that account.
    list.add(&[(reader, 1.0)]).await.unwrap();
    heals(&engine, &[TieUnlisted]).await;
    assert_eq!(list.score(&reader).await.unwrap(), since);
    list.add(&[(stranger, 5.0)]).await.unwrap();
    heals(&engine, &[PostCountWrong, TieNeedless]).await;
    assert_eq!(list.score(&stranger).await.unwrap(), None);
    // Of a post that never was: harmless.
    let never = PostRef { id: never_was(liked.id), author };
    for what in ["likes", "bookmarks"] {
        sets.of_account::<PostRef>(stranger, what).unwrap().add(&[(never, 5.0)]).await.unwrap();
    }
    assert!(fsck(&engine, false).await.is_clean());
    heals(&engine, &[TieOfNothing]).await;
    let noted = sets.of_account::<PostRef>(reader, "reposts").unwrap();
    let place = noted.score(&liked).await.unwrap().unwrap();
    noted.remove(&[liked]).await.unwrap();
    heals(&engine, &[RepostUnnoted]).await;
    assert_eq!(engine.as_reader(reader).ties(&[liked]).await.unwrap()[0].repost, Some(repost));
    noted.add(&[(never, place)]).await.unwrap();
    heals(&engine, &[RepostNoteNeedless]).await;
    assert_eq!(noted.len().await.unwrap(), 1);
}

#[tokio::test]
async fn lists_of_posts_that_are_gone_go() {
    let engine = engine().await;
    let author = accounts(&engine, 1).await[0];
    let gone = post(&engine, author).await;
    engine.delete(author, gone).await.unwrap();
    drained(&engine).await;
    // A small one, and one with a tree.
    let replies = engine.store().sets().of_post::<PostRef>(gone, "replies").unwrap();
    replies.add(&[(PostRef { id: gone, author }, 1.0)]).await.unwrap();
    let likes = engine.store().sets().of_post::<AccountId>(gone, "likes").unwrap();
    let likers: Vec<_> = (1..200).map(|n| (AccountId::new(n).unwrap(), 1.0)).collect();
    likes.add(&likers).await.unwrap();
    heals(&engine, &[ListOrphaned]).await;
    assert_eq!((replies.len().await.unwrap(), likes.len().await.unwrap()), (0, 0));
}

#[tokio::test]
async fn lists_of_mentions_and_hashtags_are_brought_in_line() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let [author, named] = people[..] else { panic!("two were made") };
    let draft = Draft::text("@named #tide").mentions([named]).hashtags(["tide"]);
    let posts = [(); 2].map(async |()| engine.publish(author, &draft).await.unwrap().id);
    let [first, second] = futures::future::join_all(posts).await[..] else { panic!("two were published") };
    let plain = post(&engine, author).await;
    drained(&engine).await;
    let tag = tideline::post::Tag::new("tide").unwrap();
    let shown = async || {
        let mut pages = Vec::new();
        for query in [Query::mentions(), Query::tag(tag)] {
            pages.push(engine.as_reader(named).read(&query).await.unwrap().ids());
        }
        pages
    };
    let newest = {
        let mut ids = vec![first, second];
        ids.sort_unstable();
        ids.reverse();
        ids
    };
    let lists = [set_of_mentions(&engine, named), set_of_tag(&engine, &[first, second]).await];
    for (bucket, name) in &lists {
        let (bucket, name) = (*bucket, name.as_slice());
        let member = |post: PostId| home_entry(post.get(), author.get());
        let ms = |post: PostId| post.unix_ms().to_string().into_bytes();
        // Missing; at a wrong place; there, and not named; there, and gone.
        raw(&engine, bucket, ('s', name), "ZREM", &[&member(first)]).await;
        heals(&engine, &[ListingMissing]).await;
        raw(&engine, bucket, ('s', name), "ZADD", &[b"5", &member(second)]).await;
        heals(&engine, &[ListingMissing]).await;
        raw(&engine, bucket, ('s', name), "ZADD", &[&ms(plain), &member(plain)]).await;
        heals(&engine, &[ListingNeedless]).await;
        let never = never_was(plain);
        raw(&engine, bucket, ('s', name), "ZADD", &[&ms(never), &member(never)]).await;
        heals(&engine, &[ListingNeedless]).await;
        assert_eq!(shown().await, [newest.clone(), newest.clone()]);
        // What has left it for its age is not missing.
        raw(&engine, bucket, ('s', name), "ZREM", &[&member(newest[1])]).await;
        raw(&engine, bucket, ('s', name), "ZADD", &[&ms(newest[1]), b"F"]).await;
        if newest[0].unix_ms() > newest[1].unix_ms() {
            assert!(fsck(&engine, false).await.is_clean());
        }
        raw(&engine, bucket, ('s', name), "ZREM", &[b"F"]).await;
        heals(&engine, &[ListingMissing]).await;
    }
    // Nobody's list.
    let nobody = AccountId::new(77).unwrap();
    let (bucket, name) = set_of_mentions(&engine, nobody);
    raw(&engine, bucket, ('s', &name), "ZADD", &[b"5", &home_entry(first.get(), author.get())]).await;
    heals(&engine, &[KeyOrphaned]).await;
}

fn set_of_mentions(engine: &Engine, account: AccountId) -> (u16, Vec<u8>) {
    (bucket_of(engine, account), set_name("mentions", account))
}

/// The key of the one hashtag that these posts bear: it is found by what it holds.
async fn set_of_tag(engine: &Engine, posts: &[PostId]) -> (u16, Vec<u8>) {
    let keys = engine.store().keys();
    for bucket in keys.buckets().all() {
        let head = format!("{}{{{}}}s#", keys.prefix(), keys.buckets().tag(bucket));
        let scan =
            Command::new("SCAN").arg("0").arg("MATCH").arg(&*format!("{head}*")).arg("COUNT").arg("1000000");
        let request = Request::read(keys.buckets().slot(bucket), scan);
        let found = engine.store().router().call(request).await.unwrap().into_array().unwrap();
        for key in found[1].clone().into_array().unwrap() {
            let key = key.bytes().unwrap();
            let count = Command::new("ZCARD").arg(key);
            let count = engine.store().router().call(Request::read(keys.buckets().slot(bucket), count)).await;
            if count.unwrap().count().unwrap() == posts.len() as u64 {
                return (bucket.index(), key[head.len() - 1..].to_vec());
            }
        }
    }
    panic!("no list of a hashtag")
}
