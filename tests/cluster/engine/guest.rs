//! Somebody without an account: sees what is for everybody, and nothing else.

use std::str::FromStr as _;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tideline::post::{Draft, PostRef, Tag, Visibility};
use tideline::{
    AccountId, AccountList, AccountState, AccountUpdate, Engine, EngineSettings, ErrorKind, ListCursor,
    ListQuery, Moderation, NewAccount, PostId, Query, Timeline,
};

use super::{a_millisecond, accounts, drained, engine, small, tenant};

async fn say(engine: &Engine, author: AccountId, draft: Draft) -> PostId {
    engine.publish(author, &draft).await.unwrap().id
}

async fn set_state(engine: &Engine, account: AccountId, state: AccountState) {
    let update = AccountUpdate { state: Some(state), ..AccountUpdate::default() };
    engine.update_account(account, &update).await.unwrap();
}

fn ids(list: &AccountList) -> Vec<AccountId> {
    list.accounts.iter().map(|account| account.id).collect()
}

/// Posts of one author: public and unlisted ones, and all that is for fewer.
async fn one_of_each(engine: &Engine, author: AccountId, friend: AccountId) -> ([PostId; 2], Vec<PostId>) {
    let tagged = |text: &str| Draft::text(text).hashtags(["tide"]);
    let public = say(engine, author, tagged("public")).await;
    let unlisted = say(engine, author, tagged("unlisted").visibility(Visibility::Unlisted)).await;
    let direct = tagged("direct").visibility(Visibility::Direct).mentions([friend]);
    let mut unseen = Vec::new();
    for draft in [
        tagged("followers").visibility(Visibility::Followers),
        tagged("followers, and whom it names").visibility(Visibility::Followers).mentions([friend]),
        direct,
        tagged("only to").only_to([friend]),
        // The friend may be the guest.
        tagged("not to").not_to([friend]),
        tagged("hidden"),
        tagged("deleted"),
    ] {
        unseen.push(say(engine, author, draft).await);
    }
    let hidden = Moderation { hidden: Some(true), ..Moderation::default() };
    engine.moderate(unseen[5], hidden).await.unwrap();
    engine.delete(author, unseen[6]).await.unwrap();
    ([public, unlisted], unseen)
}

#[tokio::test]
async fn a_guest_sees_what_is_for_everybody_and_nothing_else() {
    let engine = engine().await;
    let [ada, ben, limited, suspended] = accounts(&engine, 4).await[..] else { panic!("four were made") };
    engine.follow(ben, ada).await.unwrap();
    let ([public, unlisted], mut unseen) = one_of_each(&engine, ada, ben).await;
    for (account, state) in [(limited, AccountState::Limited), (suspended, AccountState::Suspended)] {
        unseen.push(say(&engine, account, Draft::text("x").hashtags(["tide"])).await);
        set_state(&engine, account, state).await;
    }
    drained(&engine).await;
    let guest = engine.as_nobody();
    let page = guest.read(&Query::profile(ada).hydrated().with_ties()).await.unwrap();
    assert_eq!(page.ids(), [unlisted, public]);
    assert!(page.posts.iter().all(|post| post.ties == Some(tideline::ReaderTies::default())));
    assert_eq!(guest.read(&Query::profile(limited)).await.unwrap().ids(), []);
    assert_eq!(guest.read(&Query::profile(suspended)).await.unwrap().ids(), []);
    assert_eq!(guest.read(&Query::tag(Tag::new("tide").unwrap())).await.unwrap().ids(), [public]);
    assert_eq!(guest.post(unlisted).await.unwrap().account.unwrap().id, ada);
    let all: Vec<PostId> = unseen.iter().copied().chain([public]).collect();
    assert_eq!(
        guest.posts(&all).await.unwrap().posts.iter().map(|post| post.id).collect::<Vec<_>>(),
        [public]
    );
    for post in unseen {
        assert_eq!(guest.post(post).await.unwrap_err().kind(), ErrorKind::NotFound, "{post}");
        assert_eq!(guest.conversation(post).await.unwrap_err().kind(), ErrorKind::NotFound, "{post}");
    }
    for timeline in [Timeline::Home, Timeline::Mentions] {
        let query = Query { timeline, ..Query::default() };
        assert_eq!(guest.read(&query).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn a_guest_sees_of_conversations_and_lists_what_is_for_everybody() {
    let engine = engine().await;
    let [ada, ben, eve, gone] = accounts(&engine, 4).await[..] else { panic!("four were made") };
    for reader in [ben, eve, gone] {
        a_millisecond(&engine).await;
        engine.follow(reader, ada).await.unwrap();
    }
    let post = say(&engine, ada, Draft::text("first")).await;
    let to = PostRef { id: post, author: ada };
    let open = say(&engine, ben, Draft::text("so").reply_to(to)).await;
    let closed = Draft::text("between us").reply_to(to).visibility(Visibility::Followers);
    let closed = say(&engine, eve, closed).await;
    let behind = PostRef { id: closed, author: eve };
    a_millisecond(&engine).await;
    let behind = say(&engine, eve, Draft::text("to that").reply_to(behind)).await;
    let quote = say(&engine, ben, Draft::text("look").quoting(to)).await;
    let few = Draft::text("look, you few").quoting(to).visibility(Visibility::Followers);
    say(&engine, eve, few).await;
    for liker in [ben, gone] {
        engine.like(liker, post).await.unwrap();
    }
    engine.repost(ben, post).await.unwrap();
    engine.bookmark(ben, post).await.unwrap();
    drained(&engine).await;
    set_state(&engine, gone, AccountState::Suspended).await;

    let (guest, list) = (engine.as_nobody(), ListQuery::default());
    let around = guest.conversation(post).await.unwrap();
    let below: Vec<PostId> = around.descendants.iter().map(|post| post.id).collect();
    assert_eq!(below, [open, behind]);
    let around = guest.conversation(behind).await.unwrap();
    assert_eq!(around.ancestors.iter().map(|post| post.id).collect::<Vec<_>>(), [post]);
    assert_eq!(guest.read(&Query::replies(post)).await.unwrap().ids(), [open]);
    assert_eq!(ids(&guest.likers(post, &list).await.unwrap()), [ben]);
    assert_eq!(ids(&guest.reposters(post, &list).await.unwrap()), [ben]);
    assert_eq!(
        guest.quotes(post, &list).await.unwrap().posts.iter().map(|p| p.id).collect::<Vec<_>>(),
        [quote]
    );
    assert_eq!(ids(&guest.followers(ada, &list).await.unwrap()), [eve, ben]);
    assert_eq!(ids(&guest.following(ben, &list).await.unwrap()), [ada]);
    assert_eq!(ids(&guest.followers(gone, &list).await.unwrap()), []);
}

#[tokio::test]
async fn who_is_blocked_sees_less_than_a_guest_and_a_follower_of_a_locked_account_more() {
    let engine = engine().await;
    let shy = NewAccount { is_locked: true, ..NewAccount::default() };
    let shy = engine.create_account(shy).await.unwrap().value;
    let [friend, blocked] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    engine.follow(friend, shy).await.unwrap();
    drained(&engine).await;
    engine.approve(shy, friend).await.unwrap();
    engine.block(shy, blocked).await.unwrap();
    let for_followers = say(&engine, shy, Draft::text("a locked account's")).await;
    let public = say(&engine, shy, Draft::text("for all").visibility(Visibility::Public)).await;
    drained(&engine).await;
    let query = Query::profile(shy);
    assert_eq!(engine.as_reader(friend).read(&query).await.unwrap().ids(), [public, for_followers]);
    assert_eq!(engine.as_reader(blocked).read(&query).await.unwrap().ids(), []);
    assert_eq!(engine.as_nobody().read(&query).await.unwrap().ids(), [public]);
    let list = ListQuery::default();
    assert_eq!(ids(&engine.as_reader(blocked).followers(shy, &list).await.unwrap()), []);
    assert_eq!(ids(&engine.as_nobody().followers(shy, &list).await.unwrap()), [friend]);
}

/// Commands sent since the last call.
fn commands(snapshotter: &Snapshotter) -> u64 {
    let sent = snapshotter.snapshot().into_vec().into_iter();
    let sent = sent.filter(|(key, ..)| key.key().name() == "tideline_redis_commands_total");
    sent.map(|(.., value)| if let DebugValue::Counter(sent) = value { sent } else { 0 }).sum()
}

/// Beside an engine that only looks nothing is sent: each command is the page's.
#[tokio::test]
async fn nobody_is_asked_who_a_guest_is() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let options = tenant(40);
    let settings = EngineSettings { visible_within: Duration::from_secs(600), ..small() };
    let builder = Engine::builder().store(options.clone()).settings(settings.clone());
    let engine = builder.start().await.unwrap();
    let [ada, ben] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let post = say(&engine, ada, Draft::text("x")).await;
    // Who blocks anybody is looked at once more by each reader; a guest has nothing to look at.
    engine.block(ada, ben).await.unwrap();
    drained(&engine).await;
    engine.shutdown(Duration::from_secs(10)).await.unwrap();
    let observer = Engine::builder().store(options).settings(settings).observe().await.unwrap();
    let guest = observer.as_nobody();
    guest.post(post).await.unwrap();
    commands(&snapshotter);
    guest.post(post).await.unwrap();
    assert_eq!(commands(&snapshotter), 1, "the post itself, and nothing of a reader");
    let _ = observer.as_reader(ben).post(post).await;
    assert!(commands(&snapshotter) > 1);
}

/// All pages of a list, two accounts on each, from the newest down and from the oldest up: who is on them, and where
/// they say that the list goes on.
async fn page_by_page(
    read: impl AsyncFn(&ListQuery) -> AccountList,
) -> ([Vec<AccountId>; 2], Vec<ListCursor>) {
    let oldest = ListCursor::from_str("s00000000000000000000000000000001").unwrap();
    let (down, mut places) = pages_from(&read, None).await;
    let (up, more) = pages_from(&read, Some(oldest)).await;
    places.extend(more);
    ([down, up], places)
}

async fn pages_from(
    read: impl AsyncFn(&ListQuery) -> AccountList,
    from_below: Option<ListCursor>,
) -> (Vec<AccountId>, Vec<ListCursor>) {
    let (mut all, mut places) = (Vec::new(), Vec::new());
    let is_up = from_below.is_some();
    let mut query = ListQuery { newer_than: from_below, ..ListQuery::default().limit(2) };
    loop {
        let page = read(&query).await;
        let shown = ids(&page);
        assert!(places.len() < 500, "there is no end to it");
        if is_up {
            all.extend(shown.into_iter().rev())
        } else {
            all.extend(shown)
        }
        places.extend([&page.older, &page.newer].into_iter().flatten().cloned());
        query = match (is_up, page.older, page.newer) {
            (true, _, on) if on != query.newer_than => ListQuery { newer_than: on, ..query },
            (false, Some(on), _) => query.older_than(on),
            _ => return (all, places),
        };
    }
}

/// H294: a page ends at an entry, and its links name it: who had reposted for its followers alone, who blocks the
/// reader.
#[tokio::test]
async fn where_a_list_goes_on_names_nobody_who_does_not_show_on_it() {
    let engine = engine().await;
    let people = accounts(&engine, 60).await;
    let [ada, reader, first, last, hidden @ ..] = &people[..] else { panic!("60 were made") };
    let post = say(&engine, *ada, Draft::text("low tide")).await;
    // More in a row than a page looks at.
    for by in [first].into_iter().chain(hidden).chain([last]) {
        engine.like(*by, post).await.unwrap();
        a_millisecond(&engine).await;
    }
    for blocker in hidden {
        engine.block(*blocker, *reader).await.unwrap();
    }
    let repost = Draft::repost(PostRef { id: post, author: *ada });
    for by in [hidden[0], *first, hidden[1]] {
        let visibility = if by == *first { Visibility::Public } else { Visibility::Followers };
        engine.publish(by, &repost.clone().visibility(visibility)).await.unwrap();
        a_millisecond(&engine).await;
    }
    drained(&engine).await;

    let likers = async |query: &ListQuery| engine.as_reader(*reader).likers(post, query).await.unwrap();
    let (shown, mut places) = page_by_page(likers).await;
    assert_eq!(shown, [[*last, *first], [*first, *last]]);
    let seen = engine.as_nobody().reposters(post, &ListQuery::default()).await.unwrap();
    assert_eq!(ids(&seen), [*first]);
    places.extend(seen.newer);
    // Followers that were imported may all have one time, and more in a row don't show than any page looks at.
    let mut by_id = hidden.to_vec();
    by_id.sort_unstable();
    let [lowest, hidden @ .., highest] = &by_id[..] else { panic!("56 are there") };
    for account in [lowest, highest] {
        engine.unblock(*account, *reader).await.unwrap();
    }
    drained(&engine).await;
    let followers = engine.store().sets().of_account::<AccountId>(*ada, "followers").unwrap();
    let all: Vec<(AccountId, f64)> = by_id.iter().map(|account| (*account, 5_000.0)).collect();
    followers.add(&all).await.unwrap();
    let read = async |query: &ListQuery| engine.as_reader(*reader).followers(*ada, query).await.unwrap();
    let (shown, more) = page_by_page(read).await;
    assert_eq!(shown, [[*highest, *lowest], [*lowest, *highest]]);
    places.extend(more);
    for place in places {
        let text = place.to_string();
        let named = hidden.iter().find(|account| text.contains(&format!("{:016x}", account.get())));
        assert!(named.is_none(), "{text} names {named:?}");
    }
}
