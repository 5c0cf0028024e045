//! Judges of drafts: what is held back only its author sees, moderators find it in their queue, and their word decides.

use std::time::Duration;

use tideline::post::{Draft, Edit, PostRef};
use tideline::{
    AccountId, AccountKind, ActLimit, ActLimits, CallFuture, DraftFacts, DraftJudge, Engine, EngineSettings,
    ErrorCode, ErrorKind, Judgement, Moderation, NewAccount, NewReport, NotificationQuery, PostId, Query,
    REPORTS_OPEN_OF_ONE_MAX, Report, ReportCategory, ReportQuery, SpamJudge,
};

use super::{accounts, at_bucket_key, at_raw, drained, engine_with, small, tenant, walk_home};

const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

/// Holds what says "hold", refuses what says "refuse", and can't say anything of what says "broken".
#[derive(Debug)]
pub(super) struct Words;

impl DraftJudge for Words {
    fn judge<'a>(&'a self, facts: &'a DraftFacts<'a>) -> CallFuture<'a, Judgement> {
        let text = &facts.content.text;
        assert_eq!(facts.author.state, tideline::AccountState::Active);
        Box::pin(async move {
            Ok(match text.split(' ').next() {
                Some("hold") => Judgement::Hold(format!("it says {text:?}")),
                Some("refuse") => Judgement::Refuse("it says so".into()),
                Some("broken") => {
                    return Err(tideline::Error::new(ErrorKind::Unavailable, "the model is away"));
                }
                _ => Judgement::Publish,
            })
        })
    }
}

pub(super) async fn judged(judge: impl DraftJudge + 'static) -> Engine {
    let settings = EngineSettings { keeps_notifications: true, ..small() };
    Engine::builder().store(tenant(40)).settings(settings).judge(judge).start().await.unwrap()
}

async fn queue(engine: &Engine) -> Vec<Report> {
    engine.reports(&ReportQuery::default()).await.unwrap().reports
}

/// As if whoever held a post back had died behind the write: moderators have said nothing of it (H218).
async fn held_and_untold(engine: &Engine, author: AccountId, post: PostId) {
    at_raw(engine, author, 'w', &post.get().to_be_bytes(), "SETRANGE", &["2", "\x01"]).await;
}

async fn is_told(engine: &Engine, account: AccountId) -> Vec<PostId> {
    let page = engine.as_reader(account).notifications(&NotificationQuery::default()).await.unwrap();
    page.notifications.iter().filter_map(|told| told.post.as_ref()).map(|post| post.id).collect()
}

#[tokio::test]
async fn what_is_held_back_shows_to_others_once_a_moderator_says_so() {
    let engine = judged(Words).await;
    let [author, reader, moderator] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    engine.follow(reader, author).await.unwrap();
    drained(&engine).await;
    let plain = engine.publish(author, &Draft::text("plain")).await.unwrap();
    assert!(!plain.is_held);
    let draft = Draft::text("hold this").mentions([reader]).hashtags(["tide"]).token("once");
    let held = engine.publish(author, &draft).await.unwrap();
    assert!(held.is_held && !held.is_repeat);
    let again = engine.publish(author, &draft).await.unwrap();
    assert!((again.id, again.is_repeat) == (held.id, true));
    let gone = engine.publish(author, &Draft::text("hold that")).await.unwrap();
    drained(&engine).await;

    let [second, first] = &queue(&engine).await[..] else { panic!("two wait: {:?}", queue(&engine).await) };
    assert_eq!((&first.report.posts[..], &second.report.posts[..]), (&[held.id][..], &[gone.id][..]));
    assert_eq!((first.report.target, first.report.category), (author, ReportCategory::Held));
    assert_eq!(first.report.comment, "it says \"hold this\"");
    let tagged = Query::tag(tideline::post::Tag::new("tide").unwrap());
    let seen = async || {
        let of = engine.as_reader(reader);
        let mentions = of.read(&Query::mentions()).await.unwrap().ids();
        let profile = of.read(&Query::profile(author)).await.unwrap().ids();
        let tagged = of.read(&tagged).await.unwrap().ids();
        (walk_home(&engine, reader, 10).await, mentions, profile, tagged, is_told(&engine, reader).await)
    };
    assert_eq!(seen().await, (vec![plain.id], vec![], vec![plain.id], vec![], vec![]));
    let own = engine.as_reader(author).read(&Query::profile(author)).await.unwrap();
    assert_eq!(own.ids(), [gone.id, held.id, plain.id]);

    // Its report would wait on, and an edit that came in between would show with it (H265).
    let shown = Moderation { hidden: Some(false), ..Moderation::default() };
    let refused = engine.moderate(held.id, shown).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Invalid && refused.to_string().contains("decide_held"), "{refused}");
    for _ in 0..2 {
        engine.decide_held(first.id, moderator, true).await.unwrap();
        engine.decide_held(second.id, moderator, false).await.unwrap();
    }
    // H271: who releases it once more undoes nothing that was said since.
    engine.moderate(held.id, Moderation { hidden: Some(true), ..shown }).await.unwrap();
    engine.decide_held(first.id, moderator, true).await.unwrap();
    assert!(engine.stored().post(held.id).await.unwrap().unwrap().header().is_hidden());
    assert_eq!(engine.find_report(first.id).await.unwrap().resolved_by, Some(moderator));
    engine.moderate(held.id, shown).await.unwrap();
    drained(&engine).await;
    let both = vec![held.id, plain.id];
    assert_eq!(seen().await, (both.clone(), vec![held.id], both, vec![held.id], vec![held.id]));
    assert_eq!(queue(&engine).await, []);
    assert!(engine.stored().post(gone.id).await.unwrap().is_none());
    // Told again by whoever has not heard of it: it stays as the moderator has decided.
    assert!(!engine.publish(author, &draft).await.unwrap().is_held);
    assert_eq!(queue(&engine).await, []);
}

#[tokio::test]
async fn a_post_that_was_held_back_in_vain_is_told_when_it_is_published_again() {
    let options = tenant(40);
    let plain = engine_with(options.clone(), small()).await;
    let judged = Engine::builder().store(options).settings(small()).judge(Words).start().await.unwrap();
    let author = accounts(&plain, 1).await[0];
    let draft = Draft::text("hold this").token("once");
    let post = plain.publish(author, &draft).await.unwrap().id;
    // It shows: whoever published it had no judge, or a moderator has released it.
    let again = judged.publish(author, &draft).await.unwrap();
    assert_eq!((again.id, again.is_held, queue(&judged).await.len()), (post, false, 0));
    held_and_untold(&plain, author, post).await;
    for _ in 0..2 {
        let again = judged.publish(author, &draft).await.unwrap();
        assert_eq!((again.id, again.is_repeat, again.is_held), (post, true, true));
        assert_eq!(queue(&judged).await.len(), 1);
    }
}

/// H275: what a moderator had hidden was judged again, held back once more, and deleted where the queue was full.
#[tokio::test]
async fn what_moderators_have_hidden_or_dropped_is_not_judged_when_it_is_published_again() {
    let options = tenant(40);
    let plain = engine_with(options.clone(), small()).await;
    let judged = Engine::builder().store(options).settings(small()).judge(Words).start().await.unwrap();
    let [author, moderator] = accounts(&plain, 2).await[..] else { panic!("two were made") };
    let group = NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let group = plain.create_group(author, group).await.unwrap().value;
    let named = |text: &str| Draft::text(text).token(text);
    let drafts =
        [named("plain"), named("hold"), named("refuse"), named("broken"), named("hold it").group(group)];
    let mut hidden = Vec::new();
    for draft in &drafts {
        let post = plain.publish(author, draft).await.unwrap().id;
        plain.moderate(post, Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
        hidden.push(post);
    }
    let all_stand = async || {
        for (draft, post) in drafts.iter().zip(&hidden) {
            let again = judged.publish(author, draft).await.unwrap();
            assert_eq!((again.id, again.is_repeat, again.is_held), (*post, true, true), "{draft:?}");
            assert!(plain.stored().post(*post).await.unwrap().unwrap().header().is_hidden(), "{draft:?}");
        }
    };
    all_stand().await;
    assert_eq!(queue(&judged).await, []);
    for n in 0..REPORTS_OPEN_OF_ONE_MAX {
        assert!(judged.publish(author, &named(&format!("hold {n}"))).await.unwrap().is_held);
    }
    all_stand().await;

    let newest = queue(&judged).await.remove(0);
    judged.decide_held(newest.id, moderator, false).await.unwrap();
    let dropped = named(&format!("hold {}", REPORTS_OPEN_OF_ONE_MAX - 1));
    let again = judged.publish(author, &dropped).await.unwrap();
    assert_eq!((again.id, again.is_repeat, again.is_held), (newest.report.posts[0], true, false));
    assert!(plain.stored().post(again.id).await.unwrap().is_none());
    assert!(queue(&judged).await.iter().all(|report| report.report.posts != [again.id]));
}

#[tokio::test]
async fn what_is_held_back_in_a_group_is_never_called_published_where_nobody_hears_of_it() {
    let options = tenant(40);
    let plain = engine_with(options.clone(), small()).await;
    let judged = Engine::builder().store(options).settings(small()).judge(Words).start().await.unwrap();
    let [author, moderator] = accounts(&plain, 2).await[..] else { panic!("two were made") };
    let group = NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let group = plain.create_group(author, group).await.unwrap().value;
    // As many wait as may.
    let draft = Draft::text("hold this").group(group).token("once");
    let post = plain.publish(author, &draft).await.unwrap().id;
    held_and_untold(&plain, group, post).await;
    for n in 0..REPORTS_OPEN_OF_ONE_MAX {
        assert!(judged.publish(author, &Draft::text(format!("hold {n}"))).await.unwrap().is_held);
    }
    let refused = judged.publish(author, &draft).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::LimitReached, "{refused}");
    assert!(judged.publish(author, &Draft::text("refuse").group(group).token("other")).await.is_err());
    judged.decide_held(queue(&judged).await[0].id, moderator, false).await.unwrap();
    let again = judged.publish(author, &draft).await.unwrap();
    assert_eq!((again.id, again.is_repeat, again.is_held), (post, true, true));
    assert_eq!(queue(&judged).await[0].report.posts, [post]);
}

#[tokio::test]
async fn an_edit_is_judged_like_a_post() {
    let engine = judged(Words).await;
    let [author, reader, moderator] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let post = engine.publish(author, &Draft::text("plain")).await.unwrap().id;
    let says = async |text: &str| {
        let edit = Edit { text: Some(text.into()), ..Edit::default() };
        engine.edit(author, post, &edit).await
    };
    let shown = async || engine.as_reader(reader).read(&Query::profile(author)).await.unwrap().ids();
    assert!(says("refuse it").await.unwrap_err().to_string().contains("not published: it says so"));
    assert_eq!(says("broken").await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!((shown().await, queue(&engine).await), (vec![post], vec![]));
    // Each time anew, also once the one before was released; an edit that takes it back releases nothing.
    for text in ["hold it", "hold it again"] {
        says(text).await.unwrap();
        assert_eq!(shown().await, []);
        says("plain").await.unwrap();
        assert_eq!(shown().await, []);
        let [now, before] = &queue(&engine).await[..] else { panic!("two wait: {:?}", queue(&engine).await) };
        assert_eq!((&now.report.posts, &before.report.posts), (&vec![post], &vec![post]));
        // H265: a moderator has looked at what it said before.
        let refused = engine.decide_held(before.id, moderator, true).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        assert!(refused.to_string().contains(&now.id.to_string()), "{refused}");
        for report in [now, before] {
            let refused = engine.resolve_report(report.id, moderator).await.unwrap_err();
            assert!(refused.to_string().contains("decide_held"), "nobody would look at it again: {refused}");
        }
        assert_eq!(shown().await, []);
        engine.decide_held(now.id, moderator, true).await.unwrap();
        assert_eq!((shown().await, queue(&engine).await), (vec![post], vec![]));
        engine.resolve_report(before.id, moderator).await.unwrap();
    }
    // H268: what was held back, and is no more, shows in no history either.
    let earlier = engine.stored().post(post).await.unwrap().unwrap().earlier();
    assert!(earlier.iter().all(|revision| revision.text == "plain"), "{earlier:?}");
    // What a moderator hides by himself is no affair of the queue.
    engine.moderate(post, Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
    says("still plain").await.unwrap();
    assert_eq!((shown().await, queue(&engine).await), (vec![], vec![]));
}

/// H267: its report was decided on, and there is no other one; it was hidden for good, and nobody heard of that.
#[tokio::test]
async fn an_edit_that_failed_once_it_was_held_back_waits_again_when_it_is_made_again() {
    const ENTRIES: u32 = 100;
    let settings = EngineSettings { journal_max: ENTRIES, ..small() };
    let engine = Engine::builder().store(tenant(40)).settings(settings).judge(Words).start().await.unwrap();
    let [author, reader, moderator] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let post = engine.publish(author, &Draft::text("plain")).await.unwrap().id;
    drained(&engine).await;
    let edit = Edit { text: Some("hold it".into()), mentions: Some(vec![reader]), ..Edit::default() };
    let names: Vec<String> = (0..ENTRIES).map(|n| format!("entry-{n}")).collect();
    let entries: Vec<&str> = names.iter().flat_map(|name| [name.as_str(), "nobody..?"]).collect();
    at_bucket_key(&engine, 'j', author, "HSET", &entries).await;
    assert_eq!(engine.edit(author, post, &edit).await.unwrap_err().kind(), ErrorKind::Overloaded);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    at_bucket_key(&engine, 'j', author, "HDEL", &names).await;
    let shown = async || engine.as_reader(reader).read(&Query::profile(author)).await.unwrap().ids();
    engine.decide_held(queue(&engine).await[0].id, moderator, true).await.unwrap();
    assert_eq!((shown().await, queue(&engine).await), (vec![post], vec![]));

    engine.edit(author, post, &edit).await.unwrap();
    assert_eq!(shown().await, []);
    let [waits] = &queue(&engine).await[..] else { panic!("one waits: {:?}", queue(&engine).await) };
    engine.decide_held(waits.id, moderator, true).await.unwrap();
    assert_eq!((shown().await, queue(&engine).await), (vec![post], vec![]));
}

#[tokio::test]
async fn an_edit_of_nothing_that_is_said_counts_as_nothing_and_a_warning_says_as_much_as_a_text() {
    let engine = judged(SpamJudge::default()).await;
    let author = accounts(&engine, 1).await[0];
    let pills = |n: u32| format!("Buy these cheap pills at https://x.example/{n}");
    let warned = async |n: u32| engine.publish(author, &Draft::text("ok").content_warning(pills(n))).await;
    let [first, second] = [warned(1).await.unwrap(), warned(2).await.unwrap()];
    assert!(!first.is_held && !second.is_held);
    for n in 0..5 {
        let edit = Edit { text: Some(format!("ok, {n}!")), ..Edit::default() };
        engine.edit(author, first.id, &edit).await.unwrap();
    }
    assert_eq!(queue(&engine).await, [], "it says what it said");
    assert!(warned(3).await.unwrap().is_held);
}

#[tokio::test]
async fn who_may_not_post_into_a_group_has_said_nothing() {
    let engine = judged(SpamJudge::default()).await;
    let [owner, other] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let group = NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let group = engine.create_group(owner, group).await.unwrap().value;
    let draft = Draft::text("Who of you sails tomorrow?").group(group);
    for _ in 0..7 {
        assert_eq!(engine.publish(other, &draft).await.unwrap_err().code(), ErrorCode::NotAllowed);
    }
    engine.join_group(group, other).await.unwrap();
    assert!(!engine.publish(other, &draft).await.unwrap().is_held);
}

#[tokio::test]
async fn what_is_refused_or_cannot_be_judged_is_not_there_and_the_queue_has_bounds() {
    let engine = judged(Words).await;
    let [author, other, moderator] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    for (text, kind) in [("refuse", ErrorKind::Invalid), ("broken", ErrorKind::Unavailable)] {
        let error = engine.publish(author, &Draft::text(text)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    let held = async |by| engine.publish(by, &Draft::text("hold")).await;
    for _ in 1..REPORTS_OPEN_OF_ONE_MAX {
        assert!(held(author).await.unwrap().is_held);
    }
    let last = Draft::text("hold").token("last");
    let first_time = engine.publish(author, &last).await.unwrap();
    // Said again it is there, though there is room for no other.
    let again = engine.publish(author, &last).await.unwrap();
    assert_eq!((again.id, again.is_repeat, again.is_held), (first_time.id, true, true));
    let error = held(author).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::LimitReached, "{error}");
    let own = engine.as_reader(author).read(&Query::profile(author)).await.unwrap();
    assert_eq!(
        own.ids().len(),
        REPORTS_OPEN_OF_ONE_MAX as usize,
        "nothing was written that nobody will look at"
    );
    // Nobody else's affair; nor is what says nothing.
    let post = PostRef { id: held(other).await.unwrap().id, author: other };
    let plain = engine.publish(author, &Draft::text("plain")).await.unwrap().id;
    assert!(!engine.publish(other, &Draft::repost(PostRef { id: plain, author })).await.unwrap().is_held);
    // Its author takes one back: the report ends all the same.
    engine.delete(other, post.id).await.unwrap();
    let reports =
        engine.reports(&ReportQuery { target: Some(other), ..ReportQuery::default() }).await.unwrap();
    engine.decide_held(reports.reports[0].id, moderator, true).await.unwrap();
    // Reports are something else.
    let report = |category| NewReport {
        reporter: other,
        target: author,
        posts: vec![plain],
        category,
        comment: String::new(),
        token: None,
    };
    let error = engine.report(&report(ReportCategory::Held)).await.unwrap_err();
    assert!(error.to_string().contains("only the engine makes such reports"), "{error}");
    let spam = engine.report(&report(ReportCategory::Spam)).await.unwrap().value;
    let error = engine.decide_held(spam, moderator, false).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("resolve_report"), "{error}");
}

/// Counts what is said, for half an hour.
#[derive(Debug)]
struct HalfAnHour;

impl DraftJudge for HalfAnHour {
    fn judge<'a>(&'a self, facts: &'a DraftFacts<'a>) -> CallFuture<'a, Judgement> {
        Box::pin(async move {
            facts.count_same_text(HALF_AN_HOUR).await?;
            Ok(Judgement::Publish)
        })
    }
}

#[tokio::test]
async fn who_says_the_same_too_often_is_told_when_that_counts_no_more() {
    let options = tenant(40);
    let instance = || Engine::builder().store(options.clone()).settings(small());
    let counts = instance().judge(HalfAnHour).start().await.unwrap();
    let refuses = instance().judge(SpamJudge::default()).start().await.unwrap();
    let author = accounts(&counts, 1).await[0];
    for _ in 0..5 {
        counts.publish(author, &Draft::text("buy these fine shoes")).await.unwrap();
    }
    let refused = refuses.publish(author, &Draft::text("Buy these fine shoes!")).await.unwrap_err();
    let again_in = refused.frequency_bound().unwrap().again_in;
    // The judge that refuses would have counted for an hour; the first that counts says for how long.
    assert!(!again_in.is_zero() && again_in <= HALF_AN_HOUR, "{again_in:?}");
}

#[tokio::test]
async fn what_is_tried_again_with_its_token_was_said_once() {
    let limits = ActLimits { posts: Some(ActLimit::of(1, 2 * HALF_AN_HOUR)), ..ActLimits::default() };
    let settings = EngineSettings { limits, ..small() };
    let builder = Engine::builder().store(tenant(40)).settings(settings);
    let engine = builder.judge(SpamJudge::default()).start().await.unwrap();
    let author = accounts(&engine, 1).await[0];
    engine.publish(author, &Draft::text("the one that it may")).await.unwrap();
    let says = async |token: &str| {
        let draft = Draft::text("buy these fine shoes").token(token);
        engine.publish(author, &draft).await.unwrap_err().to_string()
    };
    for n in 0..8 {
        // It is refused by the limit, behind the judge.
        let error = says("once").await;
        assert!(error.contains("limits.posts"), "{n}: {error}");
    }
    for n in 2..6 {
        let error = says(&format!("{n}")).await;
        assert!(error.contains("limits.posts"), "{n}: {error}");
    }
    let error = says("6").await;
    assert!(error.contains("the same text"), "{error}");
}

#[tokio::test]
async fn the_same_text_again_and_again_is_held_and_then_refused_by_all_instances() {
    let options = tenant(40);
    let instance = || Engine::builder().store(options.clone()).settings(small());
    let [first, second] = [
        instance().judge(SpamJudge::default()).start().await.unwrap(),
        instance().judge(SpamJudge::default()).start().await.unwrap(),
    ];
    let [author, other] = accounts(&first, 2).await[..] else { panic!("two were made") };
    let says = async |engine: &Engine, by: AccountId, n: u32| {
        let text = format!("@ada buy these shoes: https://x.example/{n}");
        engine.publish(by, &Draft::text(text)).await.map(|published| published.is_held)
    };
    for (n, held) in [(1, false), (2, false), (3, true), (4, true), (5, true)] {
        let engine = if n % 2 == 0 { &first } else { &second };
        assert_eq!(says(engine, author, n).await.unwrap(), held, "{n}");
    }
    let error = says(&first, author, 6).await.unwrap_err();
    assert!(error.to_string().contains("the same text"), "{error}");
    assert_eq!(error.code(), ErrorCode::TooOften, "it may come again later");
    assert!(!says(&second, other, 7).await.unwrap(), "it is nobody else's text");
    let plain = engine_with(options.clone(), small()).await;
    assert!(!says(&plain, author, 8).await.unwrap(), "who has no judge asks none");
}
