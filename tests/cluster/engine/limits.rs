//! How often an account may do what others have to put up with: over all instances, and never for what is so already.

use std::time::Duration;

use futures::future::join_all;
use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::registration::{Registration, RegistrationSettings, SignUp};
use tideline::{
    AccountId, AccountKind, AccountLimit, AccountUpdate, ActLimit, ActLimits, Engine, EngineSettings, Error,
    ErrorCode, FollowOutcome, NewAccount, NewReport, OwnLimits, Query, Report, ReportCategory, ReportQuery,
};

use super::super::harness::eventually;
use super::moderation::bare_report;
use super::{accounts, drained, engine_with, small, tenant};

const HOUR: Duration = Duration::from_secs(3_600);

fn settings(limits: ActLimits) -> EngineSettings {
    EngineSettings { limits, ..small() }
}

fn limit(most: u16) -> Option<ActLimit> {
    Some(ActLimit::of(most, HOUR))
}

/// It was refused because of that setting, and is told when it may again.
fn is_too_often<T: std::fmt::Debug>(told: Result<T, Error>, setting: &str, most: u32) {
    let refused = told.unwrap_err();
    let bound = refused.frequency_bound().unwrap_or_else(|| panic!("{refused}"));
    assert_eq!((refused.code(), bound.most), (ErrorCode::TooOften, most), "{refused}");
    // All of it was done within the newest parts of the span: that has to lie behind.
    assert!(bound.again_in <= HOUR / 12 * 13 && bound.again_in > HOUR / 2, "{refused}");
    assert!(refused.to_string().contains(setting), "{refused}");
}

#[tokio::test]
async fn eight_instances_let_through_no_more_than_one_would() {
    const MOST: usize = 20;
    let options = tenant(40);
    let limits = ActLimits { posts: limit(20), ..ActLimits::default() };
    let mut instances = Vec::new();
    for _ in 0..8 {
        instances.push(engine_with(options.clone(), settings(limits)).await);
    }
    let [author, other] = accounts(&instances[0], 2).await[..] else { panic!("two were made") };
    let post = async |engine: &Engine, n: usize| {
        let token = format!("token {n}");
        let draft = Draft::text("x").token(&token);
        (token, engine.publish(author, &draft).await)
    };
    let all = join_all((0..80).map(|n| post(&instances[n % 8], n))).await;
    let (posted, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, told)| told.is_ok());
    assert_eq!((posted.len(), refused.len()), (MOST, 60));
    // H208: what was posted comes again as it was, and costs nothing; what was refused was not posted.
    for (token, told) in posted {
        let again = instances[3].publish(author, &Draft::text("x").token(token)).await.unwrap();
        assert_eq!((again.id, again.is_repeat), (told.unwrap().id, true));
    }
    for (token, told) in refused {
        is_too_often(told, "limits.posts", 20);
        assert_eq!(instances[5].published_as(author, token).await.unwrap(), None);
    }
    let page = instances[1].as_reader(author).read(&Query::profile(author).limit(100)).await.unwrap();
    assert_eq!(page.posts.len(), MOST);
    // Its own affair: deleting gives nothing back, and others have all of theirs.
    instances[2].delete(author, page.posts[0].id).await.unwrap();
    is_too_often(instances[2].publish(author, &Draft::text("x")).await, "limits.posts", 20);
    instances[2].publish(other, &Draft::text("x")).await.unwrap();
}

#[tokio::test]
async fn direct_posts_and_mentions_of_strangers_count_besides_and_all_or_none() {
    let limits = ActLimits {
        posts: limit(6),
        direct_posts: limit(2),
        mentions_of_strangers: limit(3),
        ..ActLimits::default()
    };
    let engine = engine_with(tenant(40), settings(limits)).await;
    let people = accounts(&engine, 6).await;
    let [ada, friend, one, two, three, four] = people[..] else { panic!("six were made") };
    engine.follow(friend, ada).await.unwrap();
    let to = |who: &[AccountId]| Draft::text("hey").mentions(who.iter().copied());
    let direct = |who: &[AccountId]| to(who).visibility(Visibility::Direct);
    // Whoever follows it is no stranger, nor is it itself.
    engine.publish(ada, &to(&[friend, ada, one])).await.unwrap();
    engine.publish(ada, &direct(&[friend])).await.unwrap();
    is_too_often(engine.publish(ada, &direct(&[two, three, four])).await, "mentions_of_strangers", 3);
    // That counted nothing: a direct post is left, and two strangers.
    engine.publish(ada, &direct(&[two, three])).await.unwrap();
    is_too_often(engine.publish(ada, &direct(&[friend])).await, "direct_posts", 2);
    is_too_often(engine.publish(ada, &to(&[four])).await, "mentions_of_strangers", 3);
    // What is more by itself is never allowed, and no moderator's affair.
    let refused = engine.publish(friend, &to(&[one, two, three, four])).await.unwrap_err();
    assert_eq!((refused.code(), refused.frequency_bound()), (ErrorCode::LimitReached, None), "{refused}");
    // Reposts are posts; one that is there already is none more.
    let original = engine.publish(one, &Draft::text("x")).await.unwrap().id;
    let repost = Draft::repost(PostRef { id: original, author: one });
    engine.publish(ada, &repost).await.unwrap();
    for _ in 0..3 {
        assert!(engine.publish(ada, &repost).await.unwrap().is_repeat);
    }
    engine.publish(ada, &Draft::text("5")).await.unwrap();
    engine.publish(ada, &Draft::text("6")).await.unwrap();
    is_too_often(engine.publish(ada, &Draft::text("7")).await, "limits.posts", 6);
}

#[tokio::test]
async fn follows_requests_and_reports_count_once_and_what_is_taken_back_never() {
    let limits = ActLimits { follows: limit(3), reports: limit(2), ..ActLimits::default() };
    let engine = engine_with(tenant(40), settings(limits)).await;
    let people = accounts(&engine, 5).await;
    let [ada, one, two, locked, last] = people[..] else { panic!("five were made") };
    let lock = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(locked, &lock).await.unwrap();
    for _ in 0..4 {
        // H209: what is so already.
        assert_eq!(engine.follow(ada, one).await.unwrap().value, FollowOutcome::Following);
        assert_eq!(engine.follow(ada, locked).await.unwrap().value, FollowOutcome::Requested);
    }
    engine.follow(ada, two).await.unwrap();
    is_too_often(engine.follow(ada, last).await, "limits.follows", 3);
    // An approval makes a follow of the request, which has been counted.
    engine.approve(locked, ada).await.unwrap();
    drained(&engine).await;
    assert!(engine.stored().is_following(ada, locked).await.unwrap());
    for other in [one, two, locked] {
        engine.unfollow(ada, other).await.unwrap();
    }
    is_too_often(engine.follow(ada, one).await, "limits.follows", 3);
    engine.mute(ada, one).await.unwrap();
    engine.block(ada, two).await.unwrap();
    engine.unblock(ada, two).await.unwrap();
    let report = |target: AccountId, token: &str| NewReport {
        reporter: ada,
        target,
        posts: Vec::new(),
        category: ReportCategory::Spam,
        comment: String::new(),
        token: Some(token.to_owned()),
    };
    let first = engine.report(&report(one, "a")).await.unwrap().value;
    assert_eq!(engine.report(&report(one, "a")).await.unwrap().value, first);
    engine.report(&report(two, "b")).await.unwrap();
    is_too_often(engine.report(&report(last, "c")).await, "limits.reports", 2);
    assert_eq!(engine.report(&report(one, "a")).await.unwrap().value, first);
}

#[tokio::test]
async fn an_account_that_was_just_registered_may_less_for_a_while() {
    let of_new = Some(ActLimit { most_new: 1, ..ActLimit::of(4, HOUR) });
    let limits = ActLimits { posts: of_new, follows: of_new, ..ActLimits::default() };
    let options = tenant(40);
    let engine = engine_with(options.clone(), settings(limits)).await;
    let cheap = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
    let registration = Registration::new(&engine, cheap).await.unwrap();
    let new = registration.sign_up(&SignUp::new("ada", "correct horse")).await.unwrap().id;
    let [old, other] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    for (who, most) in [(new, 1), (old, 4)] {
        for _ in 0..most {
            engine.publish(who, &Draft::text("x")).await.unwrap();
        }
        is_too_often(engine.publish(who, &Draft::text("x")).await, "limits.posts", most);
    }
    engine.follow(new, old).await.unwrap();
    is_too_often(engine.follow(new, other).await, "limits.follows", 1);
    // Where nobody is new for any time it has what others have, and what it has done counts.
    let limits = ActLimits { new_for: Duration::ZERO, ..limits };
    let engine = engine_with(options, settings(limits)).await;
    for _ in 0..3 {
        engine.publish(new, &Draft::text("x")).await.unwrap();
    }
    is_too_often(engine.publish(new, &Draft::text("x")).await, "limits.posts", 4);
}

/// One engine with those limits, and another one of the same tenant.
async fn two_engines(limits: ActLimits) -> [Engine; 2] {
    let options = tenant(40);
    [engine_with(options.clone(), settings(limits)).await, engine_with(options, settings(limits)).await]
}

#[tokio::test]
async fn an_account_has_limits_of_its_own_above_and_below_those_of_all() {
    let limits = ActLimits { posts: limit(3), follows: limit(2), reports: limit(1), ..ActLimits::default() };
    let [engine, other_engine] = two_engines(limits).await;
    let people = accounts(&engine, 6).await;
    let [above, below, usual, one, two, three] = people[..] else { panic!("six were made") };
    let own = engine
        .limit_account(above, &[(AccountLimit::Posts, Some(5)), (AccountLimit::Follows, Some(3))])
        .await
        .unwrap();
    assert_eq!(own.value, OwnLimits { posts: Some(5), follows: Some(3), ..OwnLimits::default() });
    engine.limit_account(below, &[(AccountLimit::Posts, Some(1))]).await.unwrap();
    for (who, most) in [(above, 5), (below, 1), (usual, 3)] {
        // At once on every instance.
        for n in 0..most {
            [&engine, &other_engine][n as usize % 2].publish(who, &Draft::text("x")).await.unwrap();
        }
        is_too_often(other_engine.publish(who, &Draft::text("x")).await, "limits.posts", most);
    }
    for whom in [one, two, three] {
        engine.follow(above, whom).await.unwrap();
    }
    is_too_often(engine.follow(above, usual).await, "limits.follows", 3);
    // What it has nothing of its own for it has as others.
    engine.report(&bare_report(above, one)).await.unwrap();
    is_too_often(engine.report(&bare_report(above, two)).await, "limits.reports", 1);
    // What it has done counts, whatever it may by then.
    engine.limit_account(above, &[(AccountLimit::Posts, Some(6))]).await.unwrap();
    engine.publish(above, &Draft::text("x")).await.unwrap();
    is_too_often(engine.publish(above, &Draft::text("x")).await, "limits.posts", 6);
    engine.limit_account(above, &[(AccountLimit::Posts, None)]).await.unwrap();
    is_too_often(engine.publish(above, &Draft::text("x")).await, "limits.posts", 3);
    assert_eq!(other_engine.own_limits(above).await.unwrap().follows, Some(3));
    for (wrong, most) in [(AccountLimit::Posts, 0), (AccountLimit::FollowedAccounts, 20_001)] {
        let refused = engine.limit_account(above, &[(wrong, Some(most))]).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::OutOfRange, "{refused}");
    }
    let nobody = AccountId::new(77).unwrap();
    assert_eq!(engine.own_limits(nobody).await.unwrap_err().code(), ErrorCode::AccountNotFound);
    let refused = engine.limit_account(nobody, &[(AccountLimit::Posts, Some(1))]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AccountNotFound);
}

#[tokio::test]
async fn an_account_follows_as_many_as_its_own_limit_says() {
    let options = tenant(40);
    let engine = engine_with(options, EngineSettings { following_max: 2, ..small() }).await;
    let people = accounts(&engine, 6).await;
    let (ada, ben, others) = (people[0], people[1], &people[2..]);
    let follows = async |who: AccountId, most: usize| {
        for whom in &others[..most] {
            engine.follow(who, *whom).await.unwrap();
        }
        let refused = engine.follow(who, others[most]).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::LimitReached, "{refused}");
        assert!(refused.to_string().contains(&format!("follows {most} already")), "{refused}");
    };
    let limited = async |who, most| {
        engine.limit_account(who, &[(AccountLimit::FollowedAccounts, most)]).await.unwrap();
    };
    limited(ada, Some(3)).await;
    follows(ada, 3).await;
    limited(ben, Some(1)).await;
    follows(ben, 1).await;
    limited(ben, None).await;
    follows(ben, 2).await;
    // It loses nobody by it, and goes down on its own.
    limited(ada, Some(1)).await;
    engine.unfollow(ada, others[0]).await.unwrap();
    assert!(engine.stored().is_following(ada, others[2]).await.unwrap());
    assert_eq!(engine.follow(ada, others[0]).await.unwrap_err().code(), ErrorCode::LimitReached);
    // Whom it follows already it may follow again.
    assert_eq!(engine.follow(ada, others[1]).await.unwrap().value, FollowOutcome::Following);
}

#[tokio::test]
async fn who_changes_one_of_an_accounts_limits_takes_no_others_back() {
    // H263. Each moderator has read what there was, and writes all of it.
    let [engine, other_engine] = two_engines(ActLimits::default()).await;
    let ada = accounts(&engine, 1).await[0];
    for round in 1..=12 {
        let changes: Vec<[(AccountLimit, Option<u32>); 1]> =
            AccountLimit::ALL.into_iter().map(|limit| [(limit, Some(round))]).collect();
        let all = changes.iter().enumerate();
        let changed = all.map(|(n, change)| [&engine, &other_engine][n % 2].limit_account(ada, change));
        for told in join_all(changed).await {
            told.unwrap();
        }
        let own = engine.own_limits(ada).await.unwrap();
        assert!(AccountLimit::ALL.iter().all(|limit| own.of(*limit) == Some(round)), "{round}: {own:?}");
    }
}

async fn open_about(engine: &Engine, target: AccountId) -> Vec<Report> {
    engine.reports(&ReportQuery { target: Some(target), ..ReportQuery::default() }).await.unwrap().reports
}

#[tokio::test]
async fn moderators_hear_once_who_reaches_which_limit() {
    let limits = ActLimits { posts: limit(1), follows: limit(1), ..ActLimits::default() };
    let [engine, other_engine] = two_engines(limits).await;
    let [ada, ben, cleo] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    engine.publish(ada, &Draft::text("x")).await.unwrap();
    engine.follow(ada, ben).await.unwrap();
    for _ in 0..3 {
        for engine in [&engine, &other_engine] {
            is_too_often(engine.publish(ada, &Draft::text("x")).await, "limits.posts", 1);
        }
    }
    eventually("a limit is noted", async || !open_about(&engine, ada).await.is_empty()).await;
    let noted = open_about(&engine, ada).await.remove(0);
    assert_eq!((noted.report.category, noted.report.reporter), (ReportCategory::Limit, ada));
    assert!(noted.report.comment.contains("`limits.posts`, which is 1 for it"), "{noted:?}");
    // Another limit is another note. Those before it are brought by then, or with it.
    is_too_often(engine.follow(ada, cleo).await, "limits.follows", 1);
    let about = async |setting: &str| {
        let open = open_about(&engine, ada).await;
        open.iter().filter(|report| report.report.comment.contains(setting)).count()
    };
    eventually("the other one is noted", async || about("limits.follows").await == 1).await;
    assert_eq!(about("limits.posts").await, 1);
    // Whoever has resolved it isn't told the same again for a while.
    engine.resolve_report(noted.id, cleo).await.unwrap();
    is_too_often(engine.publish(ada, &Draft::text("x")).await, "limits.posts", 1);
    // What this instance notes later comes no earlier.
    let group = || NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    engine.create_group(ben, group()).await.unwrap();
    let other = engine.create_group(cleo, group()).await.unwrap().value;
    is_too_often(engine.join_group(other, ben).await, "limits.follows", 1);
    eventually("who joins is noted, too", async || !open_about(&engine, ben).await.is_empty()).await;
    assert_eq!(about("limits.posts").await, 0);
    // Nobody reports so, and nothing was held back.
    let by_hand = NewReport { category: ReportCategory::Limit, ..bare_report(ben, ada) };
    assert_eq!(engine.report(&by_hand).await.unwrap_err().code(), ErrorCode::Invalid);
    let open = open_about(&engine, ada).await;
    let refused = engine.decide_held(open[0].id, cleo, true).await.unwrap_err();
    assert!(refused.to_string().contains("resolve_report"), "{refused}");
}

#[tokio::test]
async fn an_account_of_which_much_is_open_gets_no_note_more() {
    let limits = ActLimits { posts: limit(1), ..ActLimits::default() };
    let [engine, _] = two_engines(limits).await;
    let all = accounts(&engine, 400).await;
    let bucket = |id: &AccountId| engine.store().keys().buckets().of_account(id.get());
    let (ada, last) = (all[0], all[1]);
    let neighbours: Vec<AccountId> =
        all[2..].iter().copied().filter(|id| bucket(id) == bucket(&ada)).collect();
    for neighbour in neighbours.iter().take(5) {
        engine.report(&bare_report(ada, *neighbour)).await.unwrap();
    }
    for who in [ada, last] {
        engine.publish(who, &Draft::text("x")).await.unwrap();
        is_too_often(engine.publish(who, &Draft::text("x")).await, "limits.posts", 1);
        // One round at least brings both.
        is_too_often(engine.publish(who, &Draft::text("x")).await, "limits.posts", 1);
    }
    eventually("the other one is noted", async || !open_about(&engine, last).await.is_empty()).await;
    assert!(open_about(&engine, ada).await.is_empty());
}

#[tokio::test]
async fn an_edit_counts_whom_it_mentions_anew_and_a_group_only_who_may_post_there() {
    let limits = ActLimits {
        posts: limit(3),
        group_posts: limit(1),
        mentions_of_strangers: limit(3),
        ..ActLimits::default()
    };
    let [engine, _] = two_engines(limits).await;
    let people = accounts(&engine, 7).await;
    let (ada, owner, others) = (people[0], people[1], &people[2..]);
    let post = engine.publish(ada, &Draft::text("x").mentions([others[0]])).await.unwrap().id;
    let naming = |who: &[AccountId]| Edit { mentions: Some(who.to_vec()), ..Edit::default() };
    engine.edit(ada, post, &naming(&others[..3])).await.unwrap();
    // Whom it has mentioned already it may again.
    engine.edit(ada, post, &naming(&others[1..3])).await.unwrap();
    engine.edit(ada, post, &naming(&others[..2])).await.unwrap();
    is_too_often(engine.edit(ada, post, &naming(&others[2..4])).await, "mentions_of_strangers", 3);
    let own = engine.as_reader(others[3]).read(&Query::mentions()).await.unwrap();
    assert!(own.posts.is_empty());

    let group = NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let group = engine.create_group(owner, group).await.unwrap().value;
    let into = Draft::text("y").group(group);
    for _ in 0..3 {
        assert_eq!(engine.publish(ada, &into).await.unwrap_err().code(), ErrorCode::NotAllowed);
    }
    engine.join_group(group, ada).await.unwrap();
    drained(&engine).await;
    engine.publish(ada, &into).await.unwrap();
    is_too_often(engine.publish(ada, &into).await, "limits.group_posts", 1);
    engine.publish(ada, &Draft::text("z")).await.unwrap();
    is_too_often(engine.publish(ada, &Draft::text("z")).await, "limits.posts", 3);
}

/// H274: opening their chat took the only permit, the message was refused, and whoever tried again opened another chat.
#[tokio::test]
async fn a_direct_post_with_the_chat_that_it_opens_is_one_direct_post() {
    let [engine, other] = two_engines(ActLimits { direct_posts: limit(1), ..ActLimits::default() }).await;
    let [ada, ben, cy, dee] = accounts(&engine, 4).await[..] else { panic!("four were made") };
    let hey = Draft::text("hey").token("once");
    let sent = engine.publish_direct(ada, &[ben, cy], &hey).await.unwrap();
    let again = other.publish_direct(ada, &[ben, cy], &hey).await.unwrap();
    assert_eq!((again.id, again.is_repeat), (sent.id, true));
    // What is refused has opened nothing.
    is_too_often(other.publish_direct(ada, &[dee], &Draft::text("x")).await, "limits.direct_posts", 1);
    assert_eq!(engine.find_chat(ada, &[dee], None).await.unwrap(), None);
    // In a chat that is there each message counts, and so does a chat that nobody has written to.
    let chat = engine.find_chat(ada, &[ben, cy], Some("once")).await.unwrap().unwrap();
    engine.publish(ben, &Draft::text("x").chat(chat)).await.unwrap();
    is_too_often(engine.publish(ben, &Draft::text("x").chat(chat)).await, "limits.direct_posts", 1);
    let empty = engine.open_chat(cy, &[dee], None).await.unwrap().value;
    is_too_often(engine.open_chat(cy, &[ben], None).await, "limits.direct_posts", 1);
    is_too_often(engine.publish_direct(cy, &[dee], &Draft::text("x")).await, "limits.direct_posts", 1);
    engine.publish_direct(dee, &[cy], &Draft::text("x")).await.unwrap();
    assert_eq!(engine.as_reader(cy).read(&Query::chat(empty)).await.unwrap().posts.len(), 1);
    // What nobody may publish opens nothing either.
    let empty = engine.publish_direct(ben, &[dee], &Draft::text("")).await.unwrap_err();
    assert_eq!(
        (empty.code(), engine.find_chat(ben, &[dee], None).await.unwrap()),
        (ErrorCode::Invalid, None)
    );
}

#[tokio::test]
async fn eight_instances_open_no_more_chats_and_write_no_more_messages_than_one_would() {
    const MOST: usize = 6;
    let options = tenant(40);
    let limits = ActLimits { direct_posts: limit(6), ..ActLimits::default() };
    let mut instances = Vec::new();
    for _ in 0..8 {
        instances.push(engine_with(options.clone(), settings(limits)).await);
    }
    let people = accounts(&instances[0], 3).await;
    let (ada, others) = (people[0], &people[1..]);
    let send = async |n: usize| {
        let (engine, token) = (&instances[n % 8], format!("token {n}"));
        // Every third one opens an empty chat.
        let told = match n % 3 {
            0 => engine.open_chat(ada, others, Some(&token)).await.map(drop),
            _ => engine.publish_direct(ada, others, &Draft::text("x").token(&token)).await.map(drop),
        };
        (token, told)
    };
    let all = join_all((0..24).map(send)).await;
    let (done, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, told)| told.is_ok());
    assert_eq!((done.len(), refused.len()), (MOST, 18));
    for (token, told) in refused {
        is_too_often(told, "limits.direct_posts", 6);
        assert_eq!(instances[5].find_chat(ada, others, Some(&token)).await.unwrap(), None);
    }
}

/// Of a large chat each member was a stranger to the others, and whoever answered there for the first time was refused
/// for good. It is the opener who brings strangers together.
#[tokio::test]
async fn who_opens_a_chat_mentions_the_strangers_in_it_and_who_answers_there_nobody() {
    let limits = ActLimits { mentions_of_strangers: limit(3), ..ActLimits::default() };
    let [engine, _] = two_engines(limits).await;
    let people = accounts(&engine, 8).await;
    let (ada, friends, strangers) = (people[0], &people[1..5], &people[5..]);
    for friend in friends {
        engine.follow(*friend, ada).await.unwrap();
    }
    let hey = Draft::text("hey").token("all");
    engine.publish_direct(ada, friends, &hey).await.unwrap();
    let chat = engine.find_chat(ada, friends, Some("all")).await.unwrap().unwrap();
    for _ in 0..2 {
        engine.publish(friends[0], &Draft::text("yes").chat(chat)).await.unwrap();
    }
    // It has mentioned nobody by that, and opens none for as many.
    let refused = engine.open_chat(friends[0], &people[2..6], None).await.unwrap_err();
    assert_eq!((refused.code(), refused.frequency_bound()), (ErrorCode::LimitReached, None), "{refused}");
    engine.open_chat(friends[0], strangers, None).await.unwrap();
    is_too_often(engine.open_chat(friends[0], &[friends[1]], None).await, "mentions_of_strangers", 3);
    let naming = Draft::text("x").mentions([friends[1]]);
    is_too_often(engine.publish(friends[0], &naming).await, "mentions_of_strangers", 3);
    // Whoever it opened one for answers there all the same.
    let of_two = engine.open_chat(ada, &[strangers[0]], None).await.unwrap().value;
    engine.publish(ada, &Draft::text("a").chat(of_two)).await.unwrap();
    engine.publish(strangers[0], &Draft::text("b").chat(of_two)).await.unwrap();
    engine.publish_direct(ada, &strangers[1..], &hey.clone().token("both")).await.unwrap();
    is_too_often(engine.open_chat(ada, &strangers[..2], None).await, "mentions_of_strangers", 3);
}
