//! How accounts stand to each other, many at once; and lists of people, page by page.

use futures::future::join_all;
use tideline::{
    ASKED_MAX, AccountId, AccountState, AccountUpdate, Engine, ErrorKind, FollowOutcome, ListQuery,
    NewAccount, Relationship,
};

use super::{accounts, at_key, drained, engine};

async fn lock(engine: &Engine, account: AccountId) {
    let update = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(account, &update).await.unwrap();
}

async fn suspend(engine: &Engine, account: AccountId) {
    let update = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(account, &update).await.unwrap();
}

/// An account that stands to another one in no way.
fn stranger(account: AccountId) -> Relationship {
    Relationship {
        account,
        is_following: false,
        is_followed: false,
        has_requested: false,
        is_requested: false,
        is_muting: false,
        is_blocking: false,
        is_blocked: false,
        is_hiding: false,
        shows_reposts: false,
        is_told_all_the_same: false,
        muted_until_ms: None,
        note: None,
    }
}

/// One that it follows.
fn follows(account: AccountId) -> Relationship {
    Relationship { is_following: true, shows_reposts: true, ..stranger(account) }
}

async fn between(engine: &Engine, account: AccountId, other: AccountId) -> Relationship {
    engine.as_reader(account).relationships(&[other]).await.unwrap().remove(0).unwrap()
}

#[tokio::test]
async fn how_an_account_stands_to_others_is_told_at_once_for_all_of_them() {
    let engine = engine().await;
    let people = accounts(&engine, 9).await;
    let [me, followed, follower, muted, blocked, blocking, hidden, locked, asking] = people[..] else {
        unreachable!()
    };
    lock(&engine, locked).await;
    engine.follow(me, followed).await.unwrap();
    engine.follow(follower, me).await.unwrap();
    engine.mute(me, muted).await.unwrap();
    engine.follow(me, muted).await.unwrap();
    engine.block(me, blocked).await.unwrap();
    engine.block(blocking, me).await.unwrap();
    engine.hide_from(me, hidden).await.unwrap();
    // What others do about somebody is theirs, but for what ends follows.
    engine.hide_from(followed, me).await.unwrap();
    engine.mute(follower, me).await.unwrap();
    engine.follow(me, locked).await.unwrap();
    lock(&engine, me).await;
    assert_eq!(engine.follow(asking, me).await.unwrap().value, FollowOutcome::Requested);
    drained(&engine).await;
    let (gone, never) = (accounts(&engine, 1).await[0], AccountId::new(1 << 60).unwrap());
    engine.delete_account(gone).await.unwrap();
    let expected = [
        Some(follows(followed)),
        Some(Relationship { is_followed: true, ..stranger(follower) }),
        Some(Relationship { is_muting: true, ..follows(muted) }),
        Some(Relationship { is_blocking: true, ..stranger(blocked) }),
        Some(Relationship { is_blocked: true, ..stranger(blocking) }),
        Some(Relationship { is_hiding: true, ..stranger(hidden) }),
        Some(Relationship { has_requested: true, shows_reposts: true, ..stranger(locked) }),
        Some(Relationship { is_requested: true, ..stranger(asking) }),
        None,
        None,
        // Again, and itself.
        Some(follows(followed)),
        Some(stranger(me)),
    ];
    let asked: Vec<AccountId> = people[1..].iter().copied().chain([gone, never, followed, me]).collect();
    assert_eq!(engine.as_reader(me).relationships(&asked).await.unwrap(), expected);
    // The other way round.
    assert_eq!(
        between(&engine, followed, me).await,
        Relationship { is_followed: true, is_hiding: true, ..stranger(me) }
    );
    assert_eq!(between(&engine, locked, me).await, Relationship { is_requested: true, ..stranger(me) });

    assert_eq!(engine.as_reader(me).relationships(&[]).await.unwrap(), []);
    let refused = engine.as_reader(never).relationships(&[me]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused}");
    let many = vec![followed; ASKED_MAX + 1];
    assert_eq!(engine.as_reader(me).relationships(&many[1..]).await.unwrap().len(), ASKED_MAX);
    let refused = engine.as_reader(me).relationships(&many).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_eq!(refused.to_string(), "too many accounts: 101; at most 100 a call");
}

#[tokio::test]
async fn what_one_did_oneself_about_others_shows_before_anything_has_followed_from_it() {
    let engine = engine().await;
    let people = accounts(&engine, 4).await;
    let [me, welcome, unwelcome, unloved] = people[..] else { unreachable!() };
    engine.follow(me, unloved).await.unwrap();
    engine.follow(unloved, me).await.unwrap();
    lock(&engine, me).await;
    for asking in [welcome, unwelcome] {
        assert_eq!(engine.follow(asking, me).await.unwrap().value, FollowOutcome::Requested);
    }
    drained(&engine).await;
    let waiting =
        async || ids(&engine.as_reader(me).follow_requests(&ListQuery::default()).await.unwrap().accounts);
    let mut both = vec![welcome, unwelcome];
    both.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(waiting().await, both);
    // A page on which all stand is the last one.
    let page = ListQuery::default().limit(2);
    assert_eq!(engine.as_reader(me).follow_requests(&page).await.unwrap().older, None);
    assert!(engine.as_reader(me).follow_requests(&page.limit(1)).await.unwrap().older.is_some());
    // What follows from each of these crosses buckets, and is not waited for.
    engine.approve(me, welcome).await.unwrap();
    assert_eq!(between(&engine, me, welcome).await, Relationship { is_followed: true, ..stranger(welcome) });
    engine.reject(me, unwelcome).await.unwrap();
    assert_eq!(between(&engine, me, unwelcome).await, stranger(unwelcome));
    assert!(waiting().await.is_empty());
    engine.block(me, unloved).await.unwrap();
    let apart = Relationship { is_blocking: true, ..stranger(unloved) };
    assert_eq!(between(&engine, me, unloved).await, apart);
    let apart = Relationship { is_blocked: true, ..stranger(me) };
    assert_eq!(between(&engine, unloved, me).await, apart);
    let followers = ids(&engine.as_reader(me).followers(me, &ListQuery::default()).await.unwrap().accounts);
    assert!(!followers.contains(&unloved));
    drained(&engine).await;
    assert!(between(&engine, me, welcome).await.is_followed);
    assert_eq!(between(&engine, welcome, me).await, follows(me));
    assert_eq!(between(&engine, unloved, me).await, apart);
}

#[tokio::test]
async fn among_many_followers_that_are_spread_each_is_found() {
    let engine = engine().await;
    let people = accounts(&engine, 61).await;
    let star = people[0];
    for reader in &people[1..=50] {
        engine.follow(*reader, star).await.unwrap();
    }
    // More than fit one piece, on the side of the follower too.
    for author in &people[1..=30] {
        engine.follow(star, *author).await.unwrap();
    }
    drained(&engine).await;
    let told = engine.as_reader(star).relationships(&people[1..]).await.unwrap();
    let told: Vec<(bool, bool)> = told.iter().flatten().map(|r| (r.is_following, r.is_followed)).collect();
    let expected: Vec<_> = (1..=60).map(|n| (n <= 30, n <= 50)).collect();
    assert_eq!(told, expected);
}

fn ids(accounts: &[std::sync::Arc<tideline::Account>]) -> Vec<AccountId> {
    accounts.iter().map(|account| account.id).collect()
}

/// All of a list, in pages of two, down and up again.
async fn walk(read: impl AsyncFn(ListQuery) -> tideline::Result<tideline::AccountList>) -> Vec<AccountId> {
    let (mut all, mut query) = (Vec::new(), ListQuery::default().limit(2));
    let mut last = None;
    for _ in 0..1_000 {
        let page = read(query.clone()).await.unwrap();
        all.extend(ids(&page.accounts));
        last = page.newer.clone().or(last);
        match page.older {
            // As text, as it stands in a URL.
            Some(place) => {
                query = ListQuery::default().limit(2).older_than(place.to_string().parse().unwrap())
            }
            None => break,
        }
    }
    let Some(mut place) = last else { return all };
    // Up from where the last page began: the pages above it, the lowest first.
    let mut above = Vec::new();
    loop {
        let page = read(ListQuery::default().limit(2).newer_than(place.clone())).await.unwrap();
        let newer = page.newer.unwrap();
        if newer == place {
            break;
        }
        above.splice(0..0, ids(&page.accounts));
        place = newer;
    }
    assert!(all.starts_with(&above), "{above:?} is above the last page of {all:?}");
    all
}

#[tokio::test]
async fn an_accounts_own_lists_are_paged_and_show_all_that_are_there() {
    let engine = engine().await;
    let people = accounts(&engine, 30).await;
    let (me, others) = (people[0], &people[1..]);
    for other in others {
        engine.mute(me, *other).await.unwrap();
        engine.hide_from(me, *other).await.unwrap();
        engine.block(me, *other).await.unwrap();
    }
    // One that blocks back, or hides, can be taken off the list all the same.
    engine.block(others[3], me).await.unwrap();
    engine.hide_from(others[4], me).await.unwrap();
    let latest: Vec<AccountId> = others.iter().rev().copied().collect();
    assert_eq!(walk(async |query| engine.as_reader(me).mutes(&query).await).await, latest);
    assert_eq!(walk(async |query| engine.as_reader(me).blocks(&query).await).await, latest);
    assert_eq!(walk(async |query| engine.as_reader(me).hides(&query).await).await, latest);
    engine.unmute(me, others[5]).await.unwrap();
    suspend(&engine, others[6]).await;
    engine.delete_account(others[7]).await.unwrap();
    let left: Vec<_> = latest.iter().copied().filter(|id| !others[5..8].contains(id)).collect();
    assert_eq!(walk(async |query| engine.as_reader(me).mutes(&query).await).await, left);
    // Nobody else's lists are touched by that; and who is not there has none.
    assert!(engine.as_reader(others[0]).mutes(&ListQuery::default()).await.unwrap().accounts.is_empty());
    let nobody =
        engine.as_reader(AccountId::new(1 << 60).unwrap()).blocks(&ListQuery::default()).await.unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::NotFound);
    let too_many = engine.as_reader(me).blocks(&ListQuery::default().limit(101)).await.unwrap_err();
    assert_eq!(too_many.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn requests_are_listed_page_by_page_on_both_sides() {
    let engine = engine().await;
    let shy = NewAccount { is_locked: true, ..NewAccount::default() };
    let shy = join_all((0..7).map(|_| engine.create_account(shy.clone()))).await;
    let shy: Vec<AccountId> = shy.into_iter().map(|made| made.unwrap().value).collect();
    let people = accounts(&engine, 9).await;
    for reader in &people {
        engine.follow(*reader, shy[0]).await.unwrap();
    }
    for author in &shy {
        engine.follow(people[0], *author).await.unwrap();
    }
    drained(&engine).await;
    let sorted = |ids: &[AccountId]| {
        let mut ids = ids.to_vec();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids
    };
    let waiting = async || walk(async |query| engine.as_reader(shy[0]).follow_requests(&query).await).await;
    let asked = async || walk(async |query| engine.as_reader(people[0]).requested(&query).await).await;
    assert_eq!(waiting().await, sorted(&people));
    assert_eq!(engine.stored().follow_requests(shy[0]).await.unwrap().len(), people.len());
    assert_eq!(asked().await, sorted(&shy));
    // Who is muted may ask; who is suspended waits unseen; who is blocked has no request any more.
    engine.mute(shy[0], people[1]).await.unwrap();
    suspend(&engine, people[2]).await;
    engine.block(shy[0], people[3]).await.unwrap();
    // Hidden from: it asks all the same, and can be answered.
    engine.hide_from(people[4], shy[0]).await.unwrap();
    engine.unfollow(people[5], shy[0]).await.unwrap();
    engine.delete_account(people[6]).await.unwrap();
    let left = sorted(&[people[0], people[1], people[4], people[7], people[8]]);
    assert_eq!(waiting().await, left);
    drained(&engine).await;
    assert_eq!(waiting().await, left);
    engine.approve(shy[1], people[0]).await.unwrap();
    engine.reject(shy[2], people[0]).await.unwrap();
    drained(&engine).await;
    assert_eq!(asked().await, sorted(&[shy[0], shy[3], shy[4], shy[5], shy[6]]));
    assert!(engine.as_reader(people[1]).requested(&ListQuery::default()).await.unwrap().accounts.len() == 1);
}

#[tokio::test]
async fn all_who_wait_are_listed_also_when_one_look_is_not_enough() {
    let engine = engine().await;
    let busy = accounts(&engine, 1).await[0];
    // As `pair` would have written them; ids whose bytes are letters.
    let waiting: Vec<AccountId> =
        (0..1_500).map(|n| AccountId::new(((n / 100) << 8) | (n % 100 + 1)).unwrap()).collect();
    let names: Vec<String> =
        waiting.iter().map(|id| String::from_utf8(id.to_bytes().into()).unwrap()).collect();
    let pairs: Vec<&str> = names.iter().flat_map(|name| [name, "marked.."]).collect();
    at_key(&engine, 'l', busy, "HSET", &pairs).await;
    assert_eq!(engine.stored().follow_requests(busy).await.unwrap(), waiting);
}

#[tokio::test]
async fn who_follows_whom_is_shown_to_those_who_may_meet_them() {
    let engine = engine().await;
    let people = accounts(&engine, 60).await;
    let [star, me, muted, blocked, blocking, hiding, suspended, gone] = people[..8] else { unreachable!() };
    let fans = &people[2..];
    for fan in fans {
        engine.follow(*fan, star).await.unwrap();
    }
    engine.follow(star, people[10]).await.unwrap();
    engine.follow(star, muted).await.unwrap();
    engine.follow(star, me).await.unwrap();
    engine.mute(me, muted).await.unwrap();
    engine.block(me, blocked).await.unwrap();
    engine.block(blocking, me).await.unwrap();
    engine.hide_from(hiding, me).await.unwrap();
    suspend(&engine, suspended).await;
    engine.delete_account(gone).await.unwrap();
    drained(&engine).await;
    let followers = async |reader| {
        let mut all = walk(async |query| engine.as_reader(reader).followers(star, &query).await).await;
        all.sort_unstable();
        all
    };
    let sorted = |mut ids: Vec<AccountId>| {
        ids.sort_unstable();
        ids
    };
    assert_eq!(followers(me).await, sorted(fans[6..].to_vec()));
    let without =
        |left_out: &[AccountId]| sorted(fans.iter().copied().filter(|id| !left_out.contains(id)).collect());
    assert_eq!(followers(star).await, without(&[suspended, gone]));
    assert_eq!(followers(blocked).await, without(&[suspended, gone]));
    let following = async |reader| {
        ids(&engine.as_reader(reader).following(star, &ListQuery::default()).await.unwrap().accounts)
    };
    assert_eq!(following(me).await, [me, people[10]]);
    assert_eq!(following(star).await, [me, muted, people[10]]);
    // Whose own account one may not meet, of that one nothing is told, not even that there is a next page.
    engine.block(star, me).await.unwrap();
    let none = engine.as_reader(me).followers(star, &ListQuery::default().limit(2)).await.unwrap();
    assert_eq!(none, tideline::AccountList::default());
    engine.unblock(star, me).await.unwrap();
    suspend(&engine, star).await;
    assert!(followers(me).await.is_empty());
    engine.delete_account(star).await.unwrap();
    let refused = engine.as_reader(me).followers(star, &ListQuery::default()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
}
