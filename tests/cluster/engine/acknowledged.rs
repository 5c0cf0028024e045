//! What an acknowledgement says is true: of a post's delivery the post itself too, and nothing is called replicated
//! that no replica has.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tideline::cluster::{NodeAddr, Replicas, RouterSettings};
use tideline::keys::slot_of_key;
use tideline::post::{Draft, Edit};
use tideline::profile::ProfileUpdate;
use tideline::registration::{DocumentChange, Registration, RegistrationSettings, SignUp, TicketKind};
use tideline::{
    AccountId, AccountKind, AccountLimit, AccountUpdate, Acknowledge, DeliveryWay, Engine, EngineSettings,
    ErrorKind, FollowOutcome, GroupRole, Moderation, NewAccount, NotificationId, PostAck, Receipt,
    ReportCategory, ReportQuery, StoreOptions,
};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use super::super::harness::{
    PATIENCE, eventually, impatient, options, own, patient_with_replicas, replicated,
};
use super::super::sources::sources;
use super::judged::Words;
use super::moderation::bare_report;
use super::tickets::ticket_keys;
use super::{accounts, drained, small};

async fn engine_on(cluster: &LocalCluster, replicas: Replicas, acknowledge: Acknowledge) -> Engine {
    engine_with_router(cluster, RouterSettings { replicas, ..impatient() }, acknowledge).await
}

async fn engine_with_router(
    cluster: &LocalCluster,
    router: RouterSettings,
    acknowledge: Acknowledge,
) -> Engine {
    let settings = EngineSettings { acknowledge, keeps_notifications: true, ..small() };
    let store = StoreOptions { router, ..options(cluster.urls()) };
    Engine::builder().store(store).settings(settings).judge(Words).start().await.unwrap()
}

fn server_of(engine: &Engine, account: AccountId) -> NodeAddr {
    let keys = engine.store().keys();
    engine.store().router().owner(keys.buckets().slot(keys.buckets().of_account(account.get()))).unwrap()
}

/// Accounts that live on this server, and some that don't.
async fn here_and_elsewhere(engine: &Engine, server: &NodeAddr) -> (Vec<AccountId>, Vec<AccountId>) {
    // So many that a dozen lie there, whatever their ids.
    accounts(engine, 100).await.into_iter().partition(|id| server_of(engine, *id) == *server)
}

/// An author of each kind on that server: whose homes all lie elsewhere, local and spread; whom nobody follows; who is
/// pulled.
async fn authors_of_all_kinds(
    engine: &Engine,
    here: &[AccountId],
    elsewhere: &[AccountId],
) -> Vec<AccountId> {
    let authors = here[..4].to_vec();
    for author in [authors[0], authors[1], authors[3]] {
        for reader in &elsewhere[..5] {
            engine.follow(*reader, author).await.unwrap();
            engine.warm(*reader).await.unwrap();
        }
    }
    let of_second = engine.store().sets().of_account::<AccountId>(authors[1], "followers").unwrap();
    of_second.spread().await.unwrap();
    engine.set_way(authors[3], Some(DeliveryWay::Pull)).await.unwrap();
    drained(engine).await;
    authors
}

#[tokio::test]
async fn a_post_is_delivered_only_once_the_post_itself_is_on_replicas() {
    // H70. Homes' servers were fenced by the fan-out, the author's by nobody: with the default settings `Delivered` was
    // said, the author's server failed over, and a thousand homes named a post that was gone. Of whoever has no
    // followers, or is pulled, no server at all was fenced.
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(PATIENCE * 10)).await;
    for replicas in [Replicas::Preferred, Replicas::Required] {
        let engine = engine_on(&cluster, replicas, Acknowledge::Accepted).await;
        let server = cluster.nodes()[0].addr();
        let (here, elsewhere) = here_and_elsewhere(&engine, &server).await;
        let authors = authors_of_all_kinds(&engine, &here, &elsewhere).await;
        let replica = cluster.replica_of(&server).await.unwrap();
        replica.freeze().unwrap();
        for (n, author) in authors.iter().enumerate() {
            let draft = Draft::text("promised").token("t");
            for ack in [PostAck::Replicated, PostAck::Delivered] {
                let refused = engine.publish_with(*author, &draft, ack).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Unknown, "author {n}: {refused}");
            }
            // It is there, and its fan-out needs nothing of the author's server.
            assert_eq!(engine.publish(*author, &draft).await.unwrap().reached, PostAck::Accepted);
        }
        replica.thaw().unwrap();
        for author in &authors {
            eventually("replicas have it", async || {
                let draft = Draft::text("delivered");
                let published = engine.publish_with(*author, &draft, PostAck::Delivered).await;
                published.is_ok_and(|published| published.reached == PostAck::Delivered)
            })
            .await;
        }
    }
}

#[tokio::test]
async fn without_a_replica_an_answer_names_the_moment_that_was_reached() {
    // H71. With the default setting `Preferred` a fence goes on without replicas, and what was asked for was said.
    let cluster = own(replicated()).await;
    // What is replicated is told so on a slow machine, too.
    let patient = RouterSettings { replicas: Replicas::Preferred, ..patient_with_replicas() };
    let engine = engine_with_router(&cluster, patient, Acknowledge::Replicated).await;
    let required = engine_on(&cluster, Replicas::Required, Acknowledge::Accepted).await;
    let server = cluster.nodes()[0].addr();
    let (here, elsewhere) = here_and_elsewhere(&engine, &server).await;
    let (author, away) = (here[0], elsewhere[0]);
    engine.follow(here[1], away).await.unwrap();
    engine.warm(here[1]).await.unwrap();
    let (strict, _) = here_and_elsewhere(&required, &server).await;
    drained(&engine).await;
    let text = || Draft::text("promised");
    for (ack, by) in [(PostAck::Replicated, author), (PostAck::Delivered, author), (PostAck::Delivered, away)]
    {
        assert_eq!(engine.publish_with(by, &text(), ack).await.unwrap().reached, ack);
    }
    let of_post = engine.publish_with(here[4], &text(), PostAck::Replicated).await.unwrap();
    all_calls_say(Acknowledge::Replicated, &engine, &here[4..], of_post.id).await;
    let replica = cluster.replica_of(&server).await.unwrap();
    replica.kill().unwrap();
    // Silent, but not known to be dead: refused. Then known to be dead.
    eventually("the cluster calls it dead", async || {
        let told = engine.publish_with(author, &text(), PostAck::Replicated).await;
        told.is_ok_and(|told| told.reached == PostAck::Accepted)
    })
    .await;
    let of_post = engine.publish_with(author, &text(), PostAck::Delivered).await.unwrap();
    assert_eq!(of_post.reached, PostAck::First);
    // The post is on replicas, a home that has it isn't.
    let of_home = engine.publish_with(away, &text(), PostAck::Delivered).await.unwrap();
    assert_eq!((of_home.reached, of_home.delivery.progress().is_replicated), (PostAck::First, false));
    assert_eq!(engine.publish(away, &text()).await.unwrap().reached, PostAck::Replicated);
    all_calls_say(Acknowledge::Accepted, &engine, &here, of_post.id).await;
    // Of what needs a replica it is said that nobody knows.
    let refused = required.publish_with(strict[0], &text(), PostAck::Replicated).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unknown, "{refused}");
    let refused = required.publish_with(strict[0], &text(), PostAck::Delivered).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unknown, "{refused}");
    cluster.restart(replica.index).await.unwrap();
    eventually("a replica again", async || {
        let told = engine.publish_with(author, &text(), PostAck::Delivered).await;
        told.is_ok_and(|told| told.reached == PostAck::Delivered)
    })
    .await;
}

/// Each kind of write of accounts of one server says so, whose first one is the post's author.
async fn all_calls_say(reached: Acknowledge, engine: &Engine, here: &[AccountId], post: tideline::PostId) {
    let [one, other, third, fourth] = here[..4] else { unreachable!() };
    let (of_post, above, [login, other_login]) = match reached {
        Acknowledge::Replicated => (PostAck::Replicated, 1_000, ["ada", "bea"]),
        _ => (PostAck::Accepted, 1_000_000, ["cleo", "dora"]),
    };
    let registration = Registration::new(engine, RegistrationSettings::default()).await.unwrap();
    let locked = |is_locked| AccountUpdate { is_locked: Some(is_locked), ..AccountUpdate::default() };
    let edit = Edit { text: Some("edited".into()), ..Edit::default() };
    let profile = ProfileUpdate { bio: Some("Tides".into()), ..ProfileUpdate::default() };
    let followed = async |reader| engine.follow(reader, other).await.unwrap();
    let of_open = followed(one).await;
    engine.update_account(other, &locked(true)).await.unwrap();
    let told = [of_open, followed(third).await];
    assert_eq!(told.map(|told| told.value), [FollowOutcome::Following, FollowOutcome::Requested]);
    assert_eq!(told.map(|told| told.reached), [reached; 2]);
    followed(fourth).await;
    let made = free_id(engine, one, above);
    let new = NewAccount { id: Some(made), ..NewAccount::default() };
    let report = engine.report(&bare_report(one, other)).await.unwrap();
    let repost = engine.repost(third, post).await.unwrap();
    assert_eq!((report.reached, repost.reached), (reached, of_post));
    let hour = Duration::from_secs(3_600);
    let told = [
        engine.create_account(new).await.unwrap().reached,
        engine.limit_account(other, &[(AccountLimit::Posts, Some(9))]).await.unwrap().reached,
        engine.update_account(other, &locked(true)).await.unwrap().reached,
        engine.approve(other, third).await.unwrap().reached,
        engine.reject(other, fourth).await.unwrap().reached,
        engine.mute(one, other).await.unwrap().reached,
        engine.mute_for(one, third, hour).await.unwrap().reached,
        engine.mute_posts(one, third, None).await.unwrap().reached,
        engine.unmute(one, other).await.unwrap().reached,
        engine.hide_reposts(one, other).await.unwrap().reached,
        engine.show_reposts(one, other).await.unwrap().reached,
        engine.set_note(one, other, "tall").await.unwrap().reached,
        engine.hide_from(one, other).await.unwrap().reached,
        engine.show_to(one, other).await.unwrap().reached,
        engine.unfollow(one, other).await.unwrap().reached,
        engine.block(one, fourth).await.unwrap().reached,
        engine.unblock(one, fourth).await.unwrap().reached,
        engine.edit(one, post, &edit).await.unwrap().reached,
        engine.moderate(post, Moderation { hidden: None, sensitive: Some(true) }).await.unwrap().reached,
        engine.like(one, post).await.unwrap().reached,
        engine.unlike(one, post).await.unwrap().reached,
        engine.bookmark(one, post).await.unwrap().reached,
        engine.unbookmark(one, post).await.unwrap().reached,
        engine.undo_repost(third, post).await.unwrap().reached,
        engine.resolve_report(report.value, third).await.unwrap().reached,
        engine.reopen_report(report.value).await.unwrap().reached,
        engine.delete(one, post).await.unwrap().reached,
        engine.set_way(one, Some(DeliveryWay::Pull)).await.unwrap().reached,
        registration.set_login(one, login).await.unwrap().reached,
        registration.set_email(one, Some(&format!("{login}@example.org"))).await.unwrap().reached,
        registration.set_password(one, "correct horse").await.unwrap().reached,
        registration.update_profile(one, &profile).await.unwrap().reached,
        registration.leave_out(one, other, true).await.unwrap().reached,
        registration.want_languages(one, other, &["en".to_owned()]).await.unwrap().reached,
        registration.mute_conversation(one, post, false).await.unwrap().reached,
        engine.delete_account(fourth).await.unwrap().reached,
    ];
    assert_eq!(told, [reached; 36]);
    let group = free_id(engine, one, made.get());
    rarer_calls_say(reached, (engine, &registration), group, [one, other, third]).await;
    let mut sign_up = SignUp::new(other_login, "correct horse");
    sign_up.account.id = Some(free_id(engine, one, group.get()));
    assert_eq!(registration.sign_up(&sign_up).await.unwrap().reached, reached);
    deletion_of_who_waits_says(reached, (engine, &registration), (one, third), sign_up).await;
}

/// The same of calls that note something of an account's own, or of nobody's.
async fn what_is_noted_says(
    reached: Acknowledge,
    (engine, registration): (&Engine, &Registration),
    one: AccountId,
) {
    let first = registration.change_document(one, "filters", None, Some(b"one")).await.unwrap();
    let change = DocumentChange { name: "filters", seen: first.value, new: None };
    let notified = NotificationId::MAX;
    let told = [
        first.reached,
        registration.change_documents(one, &[change]).await.unwrap().reached,
        engine.dismiss_notification(one, notified).await.unwrap().reached,
        engine.clear_notifications(one).await.unwrap().reached,
    ];
    assert_eq!(told, [reached; 4]);

    // Where a ticket lies its secret says: one on that server.
    let (kind, hour) = (TicketKind::new('c').unwrap(), Duration::from_secs(3_600));
    let (server, mut known) = (server_of(engine, one), ticket_keys(engine).await);
    for n in 0.. {
        let secret = format!("{n} {reached:?}").into_bytes();
        let put = registration.put_ticket(kind, &secret, b"x", hour).await.unwrap();
        let all = ticket_keys(engine).await;
        let key = all.iter().find(|key| !known.contains(key)).expect("it has a key");
        if engine.store().router().owner(slot_of_key(key)).unwrap() != server {
            known = all;
            continue;
        }
        let told = [
            put.reached,
            registration.replace_ticket(kind, &secret, b"x", b"y", hour).await.unwrap().reached,
            registration.drop_ticket(kind, &secret).await.unwrap().reached,
        ];
        assert_eq!(told, [reached; 3]);
        break;
    }
}

/// The same of what a moderator decides of posts that were held back.
async fn what_was_held_back_says(reached: Acknowledge, engine: &Engine, [author, moderator]: [AccountId; 2]) {
    for shows in [true, false] {
        assert!(engine.publish(author, &Draft::text("hold this")).await.unwrap().is_held);
        let waiting = engine.reports(&ReportQuery::default()).await.unwrap().reports;
        let mut held = waiting.iter().filter(|report| report.report.category == ReportCategory::Held);
        let of_post = held.next().expect("it waits");
        assert_eq!(engine.decide_held(of_post.id, moderator, shows).await.unwrap().reached, reached);
    }
}

/// The same of calls of few accounts, or about few.
async fn rarer_calls_say(
    reached: Acknowledge,
    (engine, registration): (&Engine, &Registration),
    group: AccountId,
    [one, other, third]: [AccountId; 3],
) {
    what_is_noted_says(reached, (engine, registration), one).await;
    what_was_held_back_says(reached, engine, [one, third]).await;
    group_calls_say(reached, engine, group, [one, other, third]).await;
    chat_calls_say(reached, engine, [one, other]).await;
}

/// The same of the call that deletes who waits to be let in, and nobody else (H272).
async fn deletion_of_who_waits_says(
    reached: Acknowledge,
    (engine, registration): (&Engine, &Registration),
    (one, third): (AccountId, AccountId),
    last: SignUp,
) {
    let (login, after) = (last.login, last.account.id.unwrap());
    let mut waits = SignUp::new(format!("{login}-waits"), "correct horse").waiting();
    waits.account.id = Some(free_id(engine, one, after.get()));
    let waits = registration.sign_up(&waits).await.unwrap().id;
    assert_eq!(engine.delete_waiting(waits).await.unwrap().reached, reached);
    // Nobody else is deleted so (H272).
    let refused = engine.delete_waiting(third).await.unwrap_err();
    assert!(
        refused.kind() == ErrorKind::Invalid && refused.to_string().contains("it is active"),
        "{refused}"
    );
}

/// The same of the calls of chats.
async fn chat_calls_say(reached: Acknowledge, engine: &Engine, [one, other]: [AccountId; 2]) {
    // Where a chat lies its members' ids say: one on their server.
    let server = server_of(engine, one);
    let (mut third, mut chat) = (other, None);
    while chat.as_ref().is_none_or(|chat: &Receipt<AccountId>| server_of(engine, chat.value) != server) {
        third = free_id(engine, one, third.get());
        let new = NewAccount { id: Some(third), ..NewAccount::default() };
        engine.create_account(new).await.unwrap();
        chat = Some(engine.open_chat(third, &[other], None).await.unwrap());
    }
    let (one, chat) = (third, chat.unwrap());
    assert_eq!(chat.reached, reached);
    let chat = chat.value;
    // Whoever opens it again comes back into it.
    assert_eq!(engine.open_chat(other, &[one], None).await.unwrap().reached, reached);
    engine.publish(one, &Draft::text("x").chat(chat)).await.unwrap();
    for receipt in [
        engine.read_chat(chat, other, None).await.unwrap().reached,
        engine.hide_chat(chat, other).await.unwrap().reached,
        engine.leave_chat(chat, other).await.unwrap().reached,
    ] {
        assert_eq!(receipt, reached);
    }
}

/// The same of the calls of groups.
async fn group_calls_say(
    reached: Acknowledge,
    engine: &Engine,
    group: AccountId,
    [one, other, third]: [AccountId; 3],
) {
    let new =
        NewAccount { id: Some(group), kind: AccountKind::Group, is_locked: true, ..NewAccount::default() };
    let told = [
        engine.create_group(one, new).await.unwrap().reached,
        engine.invite_to_group(group, one, third, true).await.unwrap().reached,
        engine.join_group(group, third).await.unwrap().reached,
        engine.join_group(group, other).await.unwrap().reached,
        engine.answer_group_request(group, one, other, true).await.unwrap().reached,
        engine.set_group_privacy(group, one, true).await.unwrap().reached,
        engine.set_group_role(group, one, third, Some(GroupRole::Moderator)).await.unwrap().reached,
        engine.turn_out(group, one, other).await.unwrap().reached,
        engine.ban_from_group(group, one, other, true).await.unwrap().reached,
        engine.leave_group(group, third).await.unwrap().reached,
        engine.delete_group(group, one).await.unwrap().reached,
    ];
    assert_eq!(told, [reached; 11]);
}

/// Whoever adds a call that says which moment was reached has to say here that it is true.
#[test]
fn every_call_that_says_which_moment_was_reached_is_among_them() {
    let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &["rs"]);
    let sources: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let functions = sources.iter().flat_map(|source| source.split("pub fn ").skip(1));
    let mut named = 0;
    for function in functions {
        let (head, _) = function.split_once(" {").unwrap_or((function, ""));
        let end = head.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap();
        let name = &head[..end];
        // The second is for tests alone: somebody dies on the way.
        if head.contains("Receipt") && !name.ends_with("_until") {
            assert!(include_str!("acknowledged.rs").contains(&format!(".{name}(")), "{name} is not called");
            named += 1;
        }
    }
    assert!(named > 50, "{named}");
}

/// An id above that one in the bucket of that account, that nobody has yet.
fn free_id(engine: &Engine, beside: AccountId, above: u64) -> AccountId {
    let buckets = engine.store().keys().buckets();
    let bucket = buckets.of_account(beside.get());
    AccountId::new((above + 1..).find(|id| buckets.of_account(*id) == bucket).unwrap()).unwrap()
}
