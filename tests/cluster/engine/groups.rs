//! Groups: who may post into one, who sees that, who says who may.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::{
    AccountId, AccountKind, AccountLimit, AccountList, AccountState, AccountUpdate, DeliveryWay, Engine,
    EngineSettings, ErrorCode, ErrorKind, FollowOutcome, FsckOptions, GroupRole, ListQuery, NewAccount,
    NewReport, PostId, Query, ReportCategory, Timeline,
};

use super::{accounts, at_key, drained, engine, engine_with, small, tenant};
use crate::harness::eventually;

const OWNER: Option<GroupRole> = Some(GroupRole::Owner);
const MODERATOR: Option<GroupRole> = Some(GroupRole::Moderator);

pub(super) async fn found(
    engine: &Engine,
    owner: AccountId,
    kind: AccountKind,
    is_locked: bool,
) -> AccountId {
    let new = NewAccount { kind, is_locked, ..NewAccount::default() };
    engine.create_group(owner, new).await.unwrap().value
}

pub(super) async fn posted(engine: &Engine, by: AccountId, group: AccountId, text: &str) -> PostId {
    engine.publish(by, &Draft::text(text).group(group)).await.unwrap().id
}

async fn home(engine: &Engine, reader: AccountId) -> Vec<PostId> {
    let page = engine.as_reader(reader).read(&Query::home().hydrated()).await.unwrap();
    page.posts.iter().map(|post| post.id).collect()
}

async fn profile(engine: &Engine, reader: Option<AccountId>, of: AccountId) -> Vec<PostId> {
    let query = Query::profile(of).hydrated();
    let page = match reader {
        Some(reader) => engine.as_reader(reader).read(&query).await,
        None => engine.as_nobody().read(&query).await,
    };
    page.unwrap().posts.iter().map(|post| post.id).collect()
}

/// Whether somebody may see a post by its id.
async fn sees(engine: &Engine, reader: AccountId, post: PostId) -> bool {
    match engine.as_reader(reader).conversation(post).await {
        Ok(_) => true,
        Err(e) if e.kind() == ErrorKind::NotFound => false,
        Err(e) => panic!("{e}"),
    }
}

fn refused<T: std::fmt::Debug>(outcome: tideline::Result<T>) -> ErrorCode {
    outcome.expect_err("it is refused").code()
}

#[tokio::test]
async fn what_a_member_posts_is_the_groups_and_shows_once_whomever_one_follows() {
    let engine = engine().await;
    let [ada, ben, cy, dee] = accounts(&engine, 4).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    let founded = engine.stored().account(group).await.unwrap().registered_ms;
    assert!(founded.unwrap() > 1_600_000_000_000, "a group tells since when it is there: {founded:?}");
    assert_eq!(engine.join_group(group, ben).await.unwrap().value, FollowOutcome::Following);
    engine.follow(cy, group).await.unwrap();
    engine.follow(cy, ben).await.unwrap();
    drained(&engine).await;
    home(&engine, ben).await;
    home(&engine, cy).await;

    let post = posted(&engine, ben, group, "to all of us").await;
    // Its writer's next read shows it.
    assert_eq!(home(&engine, ben).await, [post]);
    drained(&engine).await;
    for reader in [ada, ben, cy] {
        let page = engine.as_reader(reader).read(&Query::home().hydrated()).await.unwrap();
        let [shown] = &page.posts[..] else { panic!("{page:?}") };
        assert_eq!((shown.id, shown.author), (post, group));
        assert_eq!(shown.writer.as_ref().unwrap().id, ben);
        assert_eq!(shown.account.as_ref().unwrap().id, group);
        let stored = shown.post.as_ref().unwrap();
        assert_eq!((stored.writer(), stored.group()), (ben, Some(group)));
        assert_eq!(stored.header().visibility, Visibility::Public);
    }
    assert_eq!(profile(&engine, None, group).await, [post]);
    assert_eq!(profile(&engine, Some(cy), ben).await, [], "it is the group's, not its writer's");

    // Who is no member posts nothing into it, nor does anybody into what is no group.
    let into = |group| Draft::text("x").group(group);
    assert_eq!(refused(engine.publish(dee, &into(group)).await), ErrorCode::NotAllowed);
    assert_eq!(refused(engine.publish(cy, &into(ben)).await), ErrorCode::Invalid);
    let narrowed = into(group).visibility(Visibility::Unlisted);
    assert_eq!(refused(engine.publish(ben, &narrowed).await), ErrorCode::Invalid);
    engine.leave_group(group, ben).await.unwrap();
    assert_eq!(refused(engine.publish(ben, &into(group)).await), ErrorCode::NotAllowed);
}

#[tokio::test]
async fn where_a_group_is_pulled_who_posts_there_reads_it_next() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, true).await;
    let mut way = engine.set_way(group, Some(DeliveryWay::Pull)).await.unwrap();
    way.value.all().await.unwrap();
    engine.invite_to_group(group, ada, ben, true).await.unwrap();
    engine.join_group(group, ben).await.unwrap();
    drained(&engine).await;
    let post = posted(&engine, ben, group, "pulled").await;
    assert_eq!(home(&engine, ben).await, [post]);
    assert_eq!(home(&engine, ada).await, [post]);
}

#[tokio::test]
async fn only_members_see_what_is_posted_into_a_private_group() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let [ada, ben, cy, dee, eve] = accounts(&engine, 5).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, true).await;
    assert_eq!(engine.join_group(group, ben).await.unwrap().value, FollowOutcome::Requested);
    assert_eq!(refused(engine.publish(ben, &Draft::text("x").group(group)).await), ErrorCode::NotAllowed);
    assert_eq!(refused(engine.answer_group_request(group, cy, ben, true).await), ErrorCode::NotAllowed);
    engine.answer_group_request(group, ada, ben, true).await.unwrap();
    drained(&engine).await;
    // Who is invited waits for nobody; who has said no to that does.
    assert_eq!(refused(engine.invite_to_group(group, ben, cy, true).await), ErrorCode::NotAllowed);
    for invited in [cy, dee] {
        engine.invite_to_group(group, ada, invited, true).await.unwrap();
    }
    engine.invite_to_group(group, dee, dee, false).await.unwrap();
    assert_eq!(engine.join_group(group, cy).await.unwrap().value, FollowOutcome::Following);
    assert_eq!(engine.join_group(group, dee).await.unwrap().value, FollowOutcome::Requested);

    let draft = Draft::text("among us").group(group).mentions([eve, ben]);
    let post = engine.publish(cy, &draft).await.unwrap().id;
    drained(&engine).await;
    for (reader, shows) in [(ada, true), (ben, true), (cy, true), (dee, false), (eve, false)] {
        assert_eq!(sees(&engine, reader, post).await, shows, "{reader}");
        assert_eq!(home(&engine, reader).await.contains(&post), shows, "{reader}");
        assert_eq!(profile(&engine, Some(reader), group).await.contains(&post), shows, "{reader}");
    }
    assert_eq!(profile(&engine, None, group).await, []);
    let mentions = engine.as_reader(eve).read(&Query::mentions()).await.unwrap();
    assert_eq!(mentions.posts, [], "nobody is led into a group by a mention");
    // Nor does it take the place of what they may see (H273).
    for (mentioned, listed) in [(ben, 1), (eve, 0)] {
        let list = engine.store().sets().of_account::<AccountId>(mentioned, "mentions").unwrap();
        assert_eq!(list.len().await.unwrap(), listed, "{mentioned}");
    }
    // Nor does it leave the group.
    let repost = Draft::repost(PostRef { id: post, author: group });
    assert_eq!(refused(engine.publish(cy, &repost).await), ErrorCode::NotAllowed);

    // An invitation lets in once: who was let in otherwise, and is turned out, asks again.
    assert_eq!(engine.join_group(group, eve).await.unwrap().value, FollowOutcome::Requested);
    engine.invite_to_group(group, ada, eve, true).await.unwrap();
    engine.answer_group_request(group, ada, eve, true).await.unwrap();
    engine.invite_to_group(group, ada, eve, true).await.unwrap();
    engine.turn_out(group, ada, eve).await.unwrap();
    assert_eq!(engine.join_group(group, eve).await.unwrap().value, FollowOutcome::Requested);

    // From the answer on, whoever leaves or is turned out sees nothing of it, on any instance.
    let elsewhere = engine_with(options, small()).await;
    assert!(sees(&elsewhere, ben, post).await && sees(&elsewhere, cy, post).await);
    engine.turn_out(group, ada, ben).await.unwrap();
    assert!(!sees(&elsewhere, ben, post).await);
    assert!(!home(&elsewhere, ben).await.contains(&post));
    engine.leave_group(group, cy).await.unwrap();
    assert!(!sees(&elsewhere, cy, post).await, "not even its own");
    assert_eq!(refused(elsewhere.publish(cy, &Draft::text("x").group(group)).await), ErrorCode::NotAllowed);
}

#[tokio::test]
async fn only_members_see_who_is_in_a_private_group() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let private = found(&engine, ada, AccountKind::Group, true).await;
    let public = found(&engine, ada, AccountKind::Group, false).await;
    for group in [private, public] {
        engine.invite_to_group(group, ada, ben, true).await.unwrap();
        engine.join_group(group, ben).await.unwrap();
    }
    drained(&engine).await;
    let query = ListQuery::default();
    let ids = |list: AccountList| -> BTreeSet<AccountId> { list.accounts.iter().map(|of| of.id).collect() };
    let staff = vec![(ada, GroupRole::Owner)];
    for (viewer, is_in) in [
        (*engine.as_reader(ada), true),
        (*engine.as_reader(ben), true),
        (*engine.as_reader(private), true),
        (*engine.as_reader(cy), false),
        (engine.as_nobody(), false),
    ] {
        let members = ids(viewer.followers(private, &query).await.unwrap());
        assert_eq!(members, if is_in { BTreeSet::from([ada, ben]) } else { BTreeSet::new() }, "{viewer:?}");
        assert_eq!(ids(viewer.followers(public, &query).await.unwrap()), BTreeSet::from([ada, ben]));
        let groups = ids(viewer.following(ada, &query).await.unwrap());
        assert_eq!(groups.contains(&private), is_in, "{viewer:?}");
        assert!(groups.contains(&public));
        match viewer.group_staff(private).await {
            Ok(seen) => assert!(is_in && seen == staff, "{viewer:?}: {seen:?}"),
            Err(e) => assert!(!is_in && e.code() == ErrorCode::NotAllowed, "{viewer:?}: {e}"),
        }
        assert_eq!(viewer.group_staff(public).await.unwrap(), staff);
    }
    // Whom it has not let in yet it shows nothing either.
    engine.join_group(private, cy).await.unwrap();
    drained(&engine).await;
    assert_eq!(ids(engine.as_reader(cy).followers(private, &query).await.unwrap()), BTreeSet::new());
}

#[tokio::test]
async fn a_group_is_left_neither_to_who_may_not_act_nor_to_nobody() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    engine.join_group(group, ben).await.unwrap();
    engine.set_group_role(group, ada, ben, OWNER).await.unwrap();
    let set = |state| AccountUpdate { state: Some(state), ..AccountUpdate::default() };
    engine.update_account(ben, &set(AccountState::Suspended)).await.unwrap();
    assert_eq!(refused(engine.leave_group(group, ada).await), ErrorCode::NotAllowed);
    engine.update_account(ben, &set(AccountState::Active)).await.unwrap();
    engine.leave_group(group, ada).await.unwrap();

    // Who may follow nobody further founds none, and leaves none behind.
    engine.limit_account(cy, &[(AccountLimit::FollowedAccounts, Some(1))]).await.unwrap();
    engine.follow(cy, ada).await.unwrap();
    let id = AccountId::new(7_000_000).unwrap();
    let new = NewAccount { id: Some(id), kind: AccountKind::Group, ..NewAccount::default() };
    assert_eq!(refused(engine.create_group(cy, new).await), ErrorCode::LimitReached);
    assert_eq!(engine.stored().account(id).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn owners_say_who_is_on_the_staff_and_one_of_them_stays() {
    let engine = engine().await;
    let [ada, ben, cy, dee] = accounts(&engine, 4).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    for member in [ben, cy, dee] {
        engine.join_group(group, member).await.unwrap();
    }
    let give = async |by, to, role| engine.set_group_role(group, by, to, role).await;
    assert_eq!(refused(give(ben, ben, OWNER).await), ErrorCode::NotAllowed);
    give(ada, ben, MODERATOR).await.unwrap();
    assert_eq!(refused(give(ben, cy, MODERATOR).await), ErrorCode::NotAllowed);
    assert_eq!(refused(give(ben, ada, None).await), ErrorCode::NotAllowed);
    assert_eq!(engine.stored().group_staff(group).await.unwrap().len(), 2);

    // A moderator turns out who is on no staff, and nobody who ranks as high.
    assert_eq!(refused(engine.turn_out(group, ben, ada).await), ErrorCode::NotAllowed);
    assert_eq!(refused(engine.turn_out(group, dee, cy).await), ErrorCode::NotAllowed);
    engine.turn_out(group, ben, cy).await.unwrap();
    assert_eq!(refused(give(ada, cy, MODERATOR).await), ErrorCode::NotAllowed, "it is no member any more");

    // The last owner stays, until there is another one.
    for outcome in [give(ada, ada, None).await, engine.leave_group(group, ada).await] {
        assert_eq!(refused(outcome), ErrorCode::NotAllowed);
    }
    give(ada, ben, OWNER).await.unwrap();
    // Both at once: one of them has to stay.
    let left = join_all([ada, ben].map(|owner| engine.leave_group(group, owner))).await;
    assert_eq!(left.iter().filter(|left| left.is_ok()).count(), 1, "{left:?}");
    let staff = engine.stored().group_staff(group).await.unwrap();
    let [(owner, GroupRole::Owner)] = staff[..] else { panic!("{staff:?}") };

    // The service may all that an owner may, and so it gives one to a group whose owner has unfollowed it: no role
    // counts of who is no member.
    engine.unfollow(owner, group).await.unwrap();
    assert_eq!(engine.stored().group_staff(group).await.unwrap(), []);
    for outcome in [engine.ban_from_group(group, owner, dee, true).await, give(owner, dee, MODERATOR).await] {
        assert_eq!(refused(outcome), ErrorCode::NotAllowed);
    }
    give(group, dee, OWNER).await.unwrap();
    give(dee, owner, None).await.unwrap();
    assert_eq!(engine.stored().group_staff(group).await.unwrap(), [(dee, GroupRole::Owner)]);
    assert_eq!(engine.stored().group_staff(ada).await.unwrap_err().code(), ErrorCode::Invalid);
}

#[tokio::test]
async fn owners_alone_make_a_group_private_and_delete_it() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, true).await;
    engine.join_group(group, ben).await.unwrap();
    engine.answer_group_request(group, ada, ben, true).await.unwrap();
    engine.set_group_role(group, ada, ben, MODERATOR).await.unwrap();
    for other in [ben, cy] {
        assert_eq!(refused(engine.set_group_privacy(group, other, false).await), ErrorCode::NotAllowed);
        assert_eq!(refused(engine.delete_group(group, other).await), ErrorCode::NotAllowed);
    }
    assert_eq!(engine.join_group(group, cy).await.unwrap().value, FollowOutcome::Requested);
    engine.set_group_privacy(group, ada, false).await.unwrap();
    drained(&engine).await;
    assert!(engine.posts_into(group, cy).await.unwrap(), "who has asked is in");
    let said = engine.publish(cy, &Draft::text("here").group(group)).await.unwrap().id;
    engine.set_group_privacy(group, ada, true).await.unwrap();
    assert!(engine.posts_into(group, cy).await.unwrap(), "and stays");
    // Giving up what one doesn't have, again and again, holds nobody up whose post is compared by the group's stamp.
    let stamp = async || at_key(&engine, 'a', group, "HGET", &["g"]).await.bytes().unwrap().to_vec();
    let before = stamp().await;
    engine.set_group_role(group, cy, cy, None).await.unwrap();
    engine.invite_to_group(group, cy, cy, false).await.unwrap();
    assert_eq!(stamp().await, before);
    assert_eq!(refused(engine.delete_group(ada, ada).await), ErrorCode::Invalid, "it is no group");
    engine.delete_group(group, ada).await.unwrap();
    drained(&engine).await;
    assert!(engine.stored().post(said).await.unwrap().is_none());
}

#[tokio::test]
async fn only_the_staff_posts_announcements_and_who_is_banned_posts_nothing() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let news = found(&engine, ada, AccountKind::Announcement, false).await;
    engine.join_group(news, ben).await.unwrap();
    let says = async |by| engine.publish(by, &Draft::text("news").group(news)).await;
    assert_eq!(refused(says(ben).await), ErrorCode::NotAllowed);
    engine.set_group_role(news, ada, ben, MODERATOR).await.unwrap();
    says(ben).await.unwrap();
    engine.set_group_role(news, ada, ben, None).await.unwrap();
    assert_eq!(refused(says(ben).await), ErrorCode::NotAllowed);

    let group = found(&engine, ada, AccountKind::Group, false).await;
    for member in [ben, cy] {
        engine.join_group(group, member).await.unwrap();
    }
    assert_eq!(refused(engine.ban_from_group(group, cy, ben, true).await), ErrorCode::NotAllowed);
    let before = posted(&engine, ben, group, "before").await;
    engine.ban_from_group(group, ada, ben, true).await.unwrap();
    // Neither by a new post nor by an old one that becomes another.
    let edit = Edit { text: Some("after".into()), ..Edit::default() };
    assert_eq!(refused(engine.edit(ben, before, &edit).await), ErrorCode::NotAllowed);
    assert_eq!(refused(engine.publish(ben, &Draft::text("x").group(group)).await), ErrorCode::NotAllowed);
    assert_eq!(refused(engine.join_group(group, ben).await), ErrorCode::Blocked);
    engine.ban_from_group(group, ada, ben, false).await.unwrap();
    engine.join_group(group, ben).await.unwrap();
    posted(&engine, ben, group, "again").await;
}

#[tokio::test]
async fn whom_a_reader_does_not_want_it_does_not_meet_in_a_group_either() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    for member in [ben, cy] {
        engine.join_group(group, member).await.unwrap();
    }
    let post = posted(&engine, ben, group, "here I am").await;
    drained(&engine).await;
    let shows = async || (home(&engine, cy).await.contains(&post), sees(&engine, cy, post).await);
    assert_eq!(shows().await, (true, true));
    engine.mute(cy, ben).await.unwrap();
    assert_eq!(shows().await, (false, true), "as whom one mutes: not at home");
    let page = async || engine.as_reader(cy).read(&Query::profile(group)).await.unwrap().ids();
    assert_eq!(page().await, [], "nor on the group's page");
    engine.unmute(cy, ben).await.unwrap();
    engine.block(cy, ben).await.unwrap();
    assert_eq!(shows().await, (false, false));
    engine.unblock(cy, ben).await.unwrap();
    assert_eq!(shows().await, (true, true));
    for restricts in [true, false] {
        if restricts {
            engine.block(ben, cy).await.unwrap();
        } else {
            engine.unblock(ben, cy).await.unwrap();
        }
        // What others did shows after `visible_within`.
        eventually("it is so for the reader", async || shows().await == (!restricts, !restricts)).await;
    }
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(ben, &suspended).await.unwrap();
    eventually("who is suspended shows nowhere", async || shows().await == (false, false)).await;
    assert_eq!(refused(engine.edit(ben, post, &Edit::default()).await), ErrorCode::NotActive);
    assert_eq!(refused(engine.publish(ben, &Draft::text("x").group(group)).await), ErrorCode::NotActive);
}

#[tokio::test]
async fn who_wrote_a_post_changes_it_and_the_staff_takes_it_away() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    for member in [ben, cy] {
        engine.join_group(group, member).await.unwrap();
    }
    // Sent again it is the same, and another member's with the same token is another one.
    let draft = Draft::text("first").group(group).token("once and for all".repeat(4));
    let first = engine.publish(ben, &draft).await.unwrap();
    let again = engine.publish(ben, &draft).await.unwrap();
    assert_eq!((again.id, again.is_repeat), (first.id, true));
    assert_ne!(engine.publish(cy, &draft).await.unwrap().id, first.id);
    engine.leave_group(group, ben).await.unwrap();
    assert_eq!(engine.publish(ben, &draft).await.unwrap().id, first.id);
    engine.join_group(group, ben).await.unwrap();

    let edit = Edit { text: Some("second".into()), ..Edit::default() };
    assert_eq!(refused(engine.edit(cy, first.id, &edit).await), ErrorCode::PostNotFound);
    engine.edit(ben, first.id, &edit).await.unwrap();
    let shown = engine.as_reader(cy).conversation(first.id).await.unwrap().post;
    let stored = shown.post.unwrap();
    assert_eq!((stored.content().text.as_str(), stored.writer()), ("second", ben));

    assert_eq!(refused(engine.delete(cy, first.id).await), ErrorCode::PostNotFound);
    engine.delete(ben, first.id).await.unwrap();
    assert!(!sees(&engine, cy, first.id).await);
    let another = posted(&engine, cy, group, "spam").await;
    engine.set_group_role(group, ada, ben, MODERATOR).await.unwrap();
    engine.delete(ben, another).await.unwrap();
    assert!(!sees(&engine, cy, another).await);
}

#[tokio::test]
async fn what_one_does_in_a_group_shows_at_once_also_where_caches_stand_between() {
    let settings = EngineSettings { visible_within: Duration::from_secs(600), ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    engine.join_group(group, ben).await.unwrap();
    drained(&engine).await;
    let post = posted(&engine, ben, group, "first").await;
    drained(&engine).await;
    let text = async |reader| {
        let page = engine.as_reader(reader).read(&Query::home().hydrated()).await.unwrap();
        page.posts.first().map(|post| post.post.as_ref().unwrap().content().text.clone())
    };
    assert_eq!((text(ada).await.as_deref(), text(ben).await.as_deref()), (Some("first"), Some("first")));
    let edit = Edit { text: Some("second".into()), ..Edit::default() };
    engine.edit(ben, post, &edit).await.unwrap();
    assert_eq!(text(ben).await.as_deref(), Some("second"));
    engine.delete(ben, post).await.unwrap();
    assert_eq!(text(ben).await, None);
}

#[tokio::test]
async fn an_answer_in_a_group_is_no_post_of_its_own_and_a_report_is_about_who_wrote_it() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, false).await;
    engine.join_group(group, ben).await.unwrap();
    let first = posted(&engine, ada, group, "first").await;
    let to = PostRef { id: first, author: group };
    let answer = engine.publish(ben, &Draft::text("second").group(group).reply_to(to)).await.unwrap().id;
    drained(&engine).await;
    assert_eq!(profile(&engine, None, group).await, [answer, first]);
    let mut query = Query::profile(group);
    query.timeline = Timeline::Profile { account: group, replies: false, reposts: true };
    let page = engine.as_nobody().read(&query).await.unwrap();
    assert_eq!(page.posts.iter().map(|post| post.id).collect::<Vec<_>>(), [first]);
    let replies = engine.as_nobody().read(&Query::replies(first)).await.unwrap();
    assert_eq!(replies.posts.iter().map(|post| post.id).collect::<Vec<_>>(), [answer]);

    let report = NewReport {
        reporter: ada,
        target: ben,
        posts: vec![answer],
        category: ReportCategory::Spam,
        comment: String::new(),
        token: None,
    };
    engine.report(&report).await.unwrap();
    assert_eq!(refused(engine.report(&NewReport { posts: vec![first], ..report }).await), ErrorCode::Invalid);
}

#[tokio::test]
async fn of_a_deleted_member_no_post_is_left_in_any_group_and_fsck_finds_nothing() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let mut posts = Vec::new();
    for is_locked in [false, true] {
        let group = found(&engine, ada, AccountKind::Group, is_locked).await;
        for member in [ben, cy] {
            engine.invite_to_group(group, ada, member, true).await.unwrap();
            engine.join_group(group, member).await.unwrap();
        }
        for text in ["one", "two"] {
            posts.push((posted(&engine, ben, group, text).await, group));
        }
        posted(&engine, cy, group, "stays").await;
    }
    drained(&engine).await;
    let fsck = async || engine.fsck(&FsckOptions::default(), &|_| {}).await.unwrap().findings;
    assert!(fsck().await.is_empty(), "{:?}", fsck().await);
    engine.delete_account(ben).await.unwrap();
    drained(&engine).await;
    for (post, group) in posts {
        assert!(engine.stored().post(post).await.unwrap().is_none());
        assert_eq!(profile(&engine, Some(cy), group).await.len(), 1);
    }
    drained(&engine).await;
    assert!(fsck().await.is_empty(), "{:?}", fsck().await);
}
