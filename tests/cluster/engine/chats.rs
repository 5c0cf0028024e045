//! Chats: who is in one, who reads it, and what stands on the list of them.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::{
    AccountId, AccountKind, AccountState, AccountUpdate, ChatList, ChatQuery, Engine, EngineSettings,
    ErrorCode, ErrorKind, FsckOptions, NewAccount, NotificationKind, NotificationQuery, PostId, Query,
    ReportQuery, ShownChat, Timeline,
};

use super::judged::{Words, judged};
use super::notifications::LONG;
use super::{a_millisecond, accounts, drained, engine, engine_with, small, tenant};

pub(super) async fn opened(engine: &Engine, by: AccountId, others: &[AccountId]) -> AccountId {
    engine.open_chat(by, others, None).await.unwrap().value
}

pub(super) async fn said(engine: &Engine, by: AccountId, chat: AccountId, text: &str) -> PostId {
    // With what its members are told, which may come later.
    engine.settled(LONG, engine.publish(by, &Draft::text(text).chat(chat))).await.unwrap().id
}

/// The messages of a chat as somebody reads it, the newest first; none: it is in no such chat.
async fn read(engine: &Engine, reader: AccountId, chat: AccountId) -> Option<Vec<PostId>> {
    match engine.as_reader(reader).read(&Query::chat(chat).hydrated()).await {
        Ok(page) => Some(page.posts.iter().map(|post| post.id).collect()),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => panic!("{e}"),
    }
}

async fn list(engine: &Engine, reader: AccountId) -> ChatList {
    engine.as_reader(reader).chats(&ChatQuery::default()).await.unwrap()
}

pub(super) fn last_of(chat: &ShownChat) -> PostId {
    chat.last.as_ref().unwrap().id
}

/// The chats of somebody, with their last messages and how many are unread.
pub(super) async fn chats(engine: &Engine, reader: AccountId) -> Vec<(AccountId, PostId, usize)> {
    list(engine, reader).await.chats.iter().map(|chat| (chat.id, last_of(chat), chat.unread)).collect()
}

pub(super) async fn is_clean(engine: &Engine) {
    let findings = engine.fsck(&FsckOptions::default(), &|_| {}).await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

pub(super) fn refused<T: std::fmt::Debug>(outcome: tideline::Result<T>) -> ErrorCode {
    outcome.expect_err("it is refused").code()
}

/// H270: who may not see what a message quotes missed the message; whoever is quoted could block one of the members.
#[tokio::test]
async fn all_members_see_a_message_whatever_becomes_of_what_it_quotes() {
    let engine = engine().await;
    let [ada, ben, cy, dee] = accounts(&engine, 4).await[..] else { unreachable!() };
    engine.follow(ben, ada).await.unwrap();
    drained(&engine).await;
    let chat = opened(&engine, ada, &[ben, cy]).await;
    let own = engine.publish(ada, &Draft::text("for few").visibility(Visibility::Followers)).await.unwrap();
    let others = engine.publish(dee, &Draft::text("for all")).await.unwrap();
    let mut messages = Vec::new();
    for quoted in [PostRef { id: own.id, author: ada }, PostRef { id: others.id, author: dee }] {
        let draft = Draft::text("look").chat(chat).quoting(quoted);
        messages.insert(0, engine.publish(ada, &draft).await.unwrap().id);
    }
    let quoted_to = async |reader: AccountId| {
        let page = engine.as_reader(reader).read(&Query::chat(chat).hydrated()).await.unwrap();
        assert_eq!(page.posts.iter().map(|post| post.id).collect::<Vec<_>>(), messages, "{reader}");
        page.posts.iter().map(|post| post.original.is_some()).collect::<Vec<_>>()
    };
    assert_eq!((quoted_to(ben).await, quoted_to(cy).await), (vec![true, true], vec![true, false]));
    engine.block(dee, cy).await.unwrap();
    assert_eq!((quoted_to(ben).await, quoted_to(cy).await), (vec![true, true], vec![false, false]));
    assert_eq!(last_of(&list(&engine, cy).await.chats[0]), messages[0]);
    let by_id = engine.as_reader(cy).post(messages[0]).await.unwrap();
    assert!(by_id.original.is_none());
}

#[tokio::test]
async fn two_write_to_each_other_and_nobody_else_sees_that() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    // They follow each other, and somebody both: what they write to each other is in no home.
    for (reader, author) in [(ada, ben), (ben, ada), (cy, ada), (cy, ben)] {
        engine.follow(reader, author).await.unwrap();
    }
    let chat = opened(&engine, ada, &[ben]).await;
    assert_eq!(opened(&engine, ben, &[ada]).await, chat, "of two there is one, whoever opens it");
    assert_ne!(opened(&engine, ada, &[cy]).await, chat);
    let first = said(&engine, ada, chat, "low tide?").await;
    let second = said(&engine, ben, chat, "at noon").await;
    drained(&engine).await;
    for reader in [ada, ben] {
        assert_eq!(read(&engine, reader, chat).await, Some(vec![second, first]));
        let home = engine.as_reader(reader).read(&Query::home()).await.unwrap();
        assert_eq!(home.posts, []);
    }
    assert_eq!(chats(&engine, ada).await, [(chat, second, 1)]);
    assert_eq!(chats(&engine, ben).await, [(chat, second, 0)], "who writes has read what stands above");
    let shown = list(&engine, ada).await.chats.remove(0);
    assert_eq!(shown.others.iter().map(|other| other.id).collect::<Vec<_>>(), [ben]);
    let last = shown.last.as_ref().unwrap();
    let post = last.post.as_ref().unwrap();
    assert_eq!((last.said_by(), last.author, post.chat(), post.group()), (ben, chat, Some(chat), None));
    assert_eq!(post.header().visibility, Visibility::Direct);

    // Whoever isn't in it learns nothing of it, whatever it asks for.
    for id in [first, second] {
        let by_id = engine.as_reader(cy).conversation(id).await.unwrap_err();
        assert_eq!(by_id.kind(), ErrorKind::NotFound);
        assert_eq!(engine.like(cy, id).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(read(&engine, cy, chat).await, None);
    // It has no page of an account, and nobody follows it.
    let page = engine.as_reader(ada).read(&Query::profile(chat)).await;
    assert_eq!(page.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(engine.follow(ada, chat).await.unwrap_err().kind(), ErrorKind::NotFound);
    for outcome in [
        engine.publish(cy, &Draft::text("x").chat(chat)).await.map(drop),
        engine.chat_members(chat, cy).await.map(drop),
        engine.read_chat(chat, cy, None).await.map(drop),
        engine.hide_chat(chat, cy).await.map(drop),
        engine.leave_chat(chat, cy).await.map(drop),
        engine.publish(ada, &Draft::text("x").chat(ben)).await.map(drop),
        // Nor does what names oneself go anywhere.
        engine.publish(ada, &Draft::text("x").chat(ada)).await.map(drop),
        engine.block(ada, chat).await.map(drop),
        engine.unblock(ada, chat).await.map(drop),
        engine.mute(ada, chat).await.map(drop),
    ] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(refused(engine.as_nobody().read(&Query::chat(chat)).await), ErrorCode::AccountRequired);
    // It goes to its members, and says so by itself.
    let narrowed = Draft::text("x").chat(chat).only_to([cy]);
    assert_eq!(refused(engine.publish(ada, &narrowed).await), ErrorCode::Invalid);
    assert_eq!(
        refused(engine.publish(ada, &Draft::text("x").chat(chat).group(ben)).await),
        ErrorCode::Invalid
    );
    engine.repost(ben, first).await.unwrap_err();
}

#[tokio::test]
async fn a_message_is_answered_edited_liked_and_taken_back_by_who_wrote_it() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let chat = opened(&engine, ada, &[ben, cy]).await;
    let draft = Draft::text("first").chat(chat).token("once");
    let first = engine.publish(ada, &draft).await.unwrap();
    let again = engine.publish(ada, &draft).await.unwrap();
    assert_eq!((again.id, again.is_repeat), (first.id, true));
    // Another one's token is another one's.
    assert_ne!(engine.publish(ben, &draft).await.unwrap().id, first.id);
    let parent = engine.as_reader(cy).posts(&[first.id]).await.unwrap().posts.remove(0).subject();
    let answer = Draft::text("answer").chat(chat).reply_to(parent);
    let answer = engine.publish(cy, &answer).await.unwrap().id;
    engine.like(ben, first.id).await.unwrap();
    drained(&engine).await;
    let conversation = engine.as_reader(ben).conversation(first.id).await.unwrap();
    assert_eq!(conversation.descendants.iter().map(|post| post.id).collect::<Vec<_>>(), [answer]);

    let edit = Edit { text: Some("better".into()), ..Edit::default() };
    assert_eq!(engine.edit(ben, first.id, &edit).await.unwrap_err().kind(), ErrorKind::NotFound);
    engine.edit(ada, first.id, &edit).await.unwrap();
    assert_eq!(engine.delete(ben, answer).await.unwrap_err().kind(), ErrorKind::NotFound);
    engine.delete(cy, answer).await.unwrap();
    drained(&engine).await;
    let page = engine.as_reader(cy).read(&Query::chat(chat).hydrated()).await.unwrap();
    let texts: Vec<_> =
        page.posts.iter().map(|post| post.post.as_ref().unwrap().content().text.clone()).collect();
    assert_eq!(texts, ["first", "better"]);
    // What is gone is on no list: the one before is the last.
    let last = list(&engine, ada).await.chats.remove(0).last.unwrap();
    assert_eq!(last.said_by(), ben);
    is_clean(&engine).await;
}

#[tokio::test]
async fn who_leaves_reads_and_writes_nothing_more_on_any_instance() {
    // H247, H248: also an instance that remembers for long who blocks whom.
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let slow = EngineSettings { visible_within: Duration::from_secs(600), ..small() };
    let other = engine_with(options, slow).await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let chat = opened(&engine, ada, &[ben, cy]).await;
    let first = said(&engine, ada, chat, "all three").await;
    drained(&engine).await;
    assert_eq!(read(&other, ben, chat).await, Some(vec![first]));
    assert_eq!(chats(&other, ben).await.len(), 1);

    engine.leave_chat(chat, ben).await.unwrap();
    let second = said(&engine, cy, chat, "without ben").await;
    drained(&engine).await;
    for instance in [&engine, &other] {
        assert_eq!(read(instance, ben, chat).await, None);
        assert_eq!(chats(instance, ben).await, []);
        for id in [first, second] {
            let by_id = instance.as_reader(ben).conversation(id).await;
            assert_eq!(by_id.unwrap_err().kind(), ErrorKind::NotFound);
        }
        let written = instance.publish(ben, &Draft::text("x").chat(chat)).await;
        assert_eq!(written.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(read(instance, ada, chat).await, Some(vec![second, first]));
    }
    // It is no affair of people whom one blocks, and what was left is left.
    assert_eq!(engine.as_reader(ben).blocks(&tideline::ListQuery::default()).await.unwrap().accounts, []);
    engine.leave_chat(chat, ben).await.unwrap();
    is_clean(&engine).await;

    // Of two one comes back, and finds what was said meanwhile.
    let of_two = opened(&engine, ada, &[ben]).await;
    let one = said(&engine, ada, of_two, "one").await;
    engine.leave_chat(of_two, ben).await.unwrap();
    let two = said(&engine, ada, of_two, "two").await;
    assert_eq!(read(&other, ben, of_two).await, None);
    assert_eq!(opened(&other, ada, &[ben]).await, of_two, "nobody brings another one back");
    assert_eq!(read(&other, ben, of_two).await, None);
    assert_eq!(opened(&other, ben, &[ada]).await, of_two);
    drained(&engine).await;
    assert_eq!(read(&engine, ben, of_two).await, Some(vec![two, one]));
}

#[tokio::test]
async fn of_two_a_block_ends_writing_and_in_a_larger_one_it_hides_the_other_from_who_blocks_alone() {
    let engine = engine().await;
    let [ada, ben, cy, dee] = accounts(&engine, 4).await[..] else { unreachable!() };
    let (two, three) = (opened(&engine, ada, &[ben]).await, opened(&engine, ada, &[ben, cy]).await);
    let [by_ada, by_ben, by_cy] = [
        said(&engine, ada, three, "a").await,
        said(&engine, ben, three, "b").await,
        said(&engine, cy, three, "c").await,
    ];
    a_millisecond(&engine).await;
    let before = said(&engine, ada, two, "before").await;
    drained(&engine).await;
    engine.block(ben, ada).await.unwrap();
    drained(&engine).await;
    for by in [ada, ben] {
        assert_eq!(refused(engine.publish(by, &Draft::text("x").chat(two)).await), ErrorCode::Blocked);
    }
    assert_eq!(refused(engine.open_chat(ada, &[ben], None).await), ErrorCode::Blocked);
    assert_eq!(read(&engine, ben, two).await, Some(vec![]));
    assert_eq!(read(&engine, ada, two).await, Some(vec![before]), "one's own one sees");
    // What somebody else blocks hides nothing from her.
    assert_eq!(read(&engine, ada, three).await, Some(vec![by_cy, by_ben, by_ada]));
    assert_eq!(read(&engine, ben, three).await, Some(vec![by_cy, by_ben]));
    assert_eq!(read(&engine, cy, three).await, Some(vec![by_cy, by_ben, by_ada]));
    assert_eq!(chats(&engine, ben).await, [(three, by_cy, 1)], "one where nothing shows stands on no list");
    // Who is muted is passed over, also as the last.
    engine.unblock(ben, ada).await.unwrap();
    engine.mute(ada, cy).await.unwrap();
    assert_eq!(read(&engine, ada, three).await, Some(vec![by_ben, by_ada]));
    assert_eq!(chats(&engine, ada).await, [(two, before, 0), (three, by_ben, 1)]);

    // Nobody writes for who is suspended, or to who is gone.
    let set = |state| AccountUpdate { state: Some(state), ..AccountUpdate::default() };
    engine.update_account(cy, &set(AccountState::Suspended)).await.unwrap();
    assert_eq!(refused(engine.publish(cy, &Draft::text("x").chat(three)).await), ErrorCode::NotActive);
    assert_eq!(read(&engine, ben, three).await, Some(vec![by_ben, by_ada]));
    let with_dee = opened(&engine, ada, &[dee]).await;
    engine.delete_account(dee).await.unwrap();
    let gone = engine.publish(ada, &Draft::text("x").chat(with_dee)).await;
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(engine.open_chat(ada, &[dee], None).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn marks_never_go_back_and_a_hidden_chat_comes_back_with_a_newer_message() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let chat = opened(&engine, ada, &[ben]).await;
    engine.read_chat(chat, ben, None).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(said(&engine, ada, chat, &n.to_string()).await);
    }
    drained(&engine).await;
    assert_eq!(chats(&engine, ben).await, [(chat, ids[3], 4)]);
    engine.read_chat(chat, ben, Some(ids[2])).await.unwrap();
    // H249: one that comes late.
    engine.read_chat(chat, ben, Some(ids[0])).await.unwrap();
    assert_eq!(chats(&engine, ben).await, [(chat, ids[3], 1)]);
    // Nobody has read what isn't written yet.
    let ahead = PostId::from_u64(ids[3].get() + (1 << 40)).unwrap();
    engine.read_chat(chat, ben, Some(ahead)).await.unwrap();
    assert_eq!(chats(&engine, ben).await, [(chat, ids[3], 0)]);
    let next = said(&engine, ada, chat, "next").await;
    drained(&engine).await;
    assert_eq!(chats(&engine, ben).await, [(chat, next, 1)]);

    engine.hide_chat(chat, ben).await.unwrap();
    assert_eq!(chats(&engine, ben).await, []);
    assert_eq!(chats(&engine, ada).await, [(chat, next, 0)], "it is hidden from nobody else");
    assert_eq!(read(&engine, ben, chat).await.unwrap().len(), 5);
    let newest = said(&engine, ada, chat, "newest").await;
    drained(&engine).await;
    assert_eq!(chats(&engine, ben).await, [(chat, newest, 2)]);
    // The newest is gone: what stands below it was put aside.
    engine.delete(ada, newest).await.unwrap();
    drained(&engine).await;
    assert_eq!(chats(&engine, ben).await, []);
    is_clean(&engine).await;
}

/// The marker went up to the newest message there was: what was held back was read, or put aside, before anybody saw
/// it.
#[tokio::test]
async fn what_did_not_show_yet_is_neither_read_nor_put_aside() {
    let engine = judged(Words).await;
    let [ada, ben, cy, moderator] = accounts(&engine, 4).await[..] else { unreachable!() };
    let (two, three) = (opened(&engine, ben, &[ada]).await, opened(&engine, cy, &[ada, ben]).await);
    let release = async || {
        let held = engine.reports(&ReportQuery::default()).await.unwrap().reports.remove(0).id;
        engine.decide_held(held, moderator, true).await.unwrap();
        drained(&engine).await;
    };
    // Nothing shows: nothing is read.
    let first = said(&engine, ben, two, "hold one").await;
    engine.read_chat(two, ada, None).await.unwrap();
    engine.hide_chat(two, ada).await.unwrap();
    release().await;
    assert_eq!(chats(&engine, ada).await, [(two, first, 1)]);
    assert!(list(&engine, ada).await.chats[0].is_request);
    let second = said(&engine, ben, two, "hold two").await;
    engine.read_chat(two, ada, None).await.unwrap();
    drained(&engine).await;
    assert_eq!(chats(&engine, ada).await, [(two, first, 0)]);
    release().await;
    assert_eq!(chats(&engine, ada).await, [(two, second, 1)]);
    let third = said(&engine, ben, two, "hold three").await;
    engine.hide_chat(two, ada).await.unwrap();
    assert_eq!(chats(&engine, ada).await, []);
    release().await;
    assert_eq!(chats(&engine, ada).await, [(two, third, 2)]);
    engine.hide_chat(two, ada).await.unwrap();
    // Nor is what somebody says whom one mutes.
    let by_ben = said(&engine, ben, three, "b").await;
    engine.mute(ada, cy).await.unwrap();
    let by_cy = said(&engine, cy, three, "c").await;
    drained(&engine).await;
    engine.read_chat(three, ada, None).await.unwrap();
    assert_eq!(chats(&engine, ada).await, [(three, by_ben, 0)]);
    engine.unmute(ada, cy).await.unwrap();
    assert_eq!(chats(&engine, ada).await, [(three, by_cy, 1)]);
}

#[tokio::test]
async fn several_that_open_a_chat_of_two_at_once_open_one() {
    // H253.
    let options = tenant(40);
    let engines = [engine_with(options.clone(), small()).await, engine_with(options, small()).await];
    let all = accounts(&engines[0], 6).await;
    for pair in all.chunks(2) {
        let at_once = (0..8).map(|n| {
            let (engine, pair) = (&engines[n % 2], [pair[n % 2], pair[1 - n % 2]]);
            async move { opened(engine, pair[0], &[pair[1]]).await }
        });
        let opened: BTreeSet<AccountId> = join_all(at_once).await.into_iter().collect();
        assert_eq!(opened.len(), 1);
    }
    let engine = &engines[0];
    // Of more, each call opens another one, but for who says that it is the same.
    assert_ne!(opened(engine, all[0], &all[1..3]).await, opened(engine, all[0], &all[1..3]).await);
    let named = engine.open_chat(all[0], &all[1..3], Some("call")).await.unwrap().value;
    assert_eq!(engine.open_chat(all[0], &all[1..3], Some("call")).await.unwrap().value, named);
    assert_ne!(engine.open_chat(all[1], &all[1..3], Some("call")).await.unwrap().value, named);
    let of_others = engine.open_chat(all[0], &all[1..4], Some("call")).await;
    assert_eq!(of_others.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(engine.find_chat(all[0], &all[1..3], Some("call")).await.unwrap(), Some(named));
    assert_eq!(engine.find_chat(all[0], &all[1..3], None).await.unwrap(), None);
    assert_eq!(engine.chat_members(named, all[2]).await.unwrap(), all[..3]);
    // With oneself one is alone; beyond fifty is too many.
    let own = opened(engine, all[0], &[]).await;
    let note = said(engine, all[0], own, "remember").await;
    drained(engine).await;
    assert_eq!(chats(engine, all[0]).await, [(own, note, 0)]);
    // Nobody reads messages where several are.
    let new = NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let group = engine.create_group(all[0], new).await.unwrap().value;
    assert_eq!(refused(engine.open_chat(all[0], &[group], None).await), ErrorCode::Invalid);
    let many: Vec<AccountId> = (1..=50).map(|n| AccountId::new(n).unwrap()).collect();
    let too_many = engine.open_chat(all[0], &many, None).await.unwrap_err();
    assert!(too_many.to_string().contains("51 members; at most 50"), "{too_many}");
}

#[tokio::test]
async fn a_chat_is_no_account_that_others_make() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let new = NewAccount { kind: AccountKind::Chat, ..NewAccount::default() };
    assert_eq!(refused(engine.create_account(new).await), ErrorCode::Invalid);
    let chat = opened(&engine, ada, &[ben]).await;
    for (id, kind) in [(ada, AccountKind::Chat), (chat, AccountKind::Person)] {
        let update = AccountUpdate { kind: Some(kind), ..AccountUpdate::default() };
        assert_eq!(refused(engine.update_account(id, &update).await), ErrorCode::Invalid);
    }
    assert_eq!(refused(engine.join_group(chat, ada).await), ErrorCode::Invalid);
    assert!(!engine.posts_into(chat, ada).await.unwrap());
    assert_eq!(refused(engine.publish(ada, &Draft::text("x").group(chat)).await), ErrorCode::Invalid);
}

#[tokio::test]
async fn of_who_is_deleted_no_message_is_left() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let chat = opened(&engine, ada, &[ben, cy]).await;
    let (first, gone) = (said(&engine, ada, chat, "stays").await, said(&engine, ben, chat, "goes").await);
    drained(&engine).await;
    engine.delete_account(ben).await.unwrap();
    drained(&engine).await;
    assert_eq!(read(&engine, ada, chat).await, Some(vec![first]));
    assert!(engine.stored().post(gone).await.unwrap().is_none());
    assert_eq!(chats(&engine, cy).await, [(chat, first, 1)]);
    let others = |chats: ChatList| chats.chats[0].others.iter().map(|other| other.id).collect::<Vec<_>>();
    assert_eq!(others(list(&engine, cy).await), [ada]);
    is_clean(&engine).await;
    // The chat itself, by a service.
    engine.delete_account(chat).await.unwrap();
    drained(&engine).await;
    assert_eq!(read(&engine, ada, chat).await, None);
    assert_eq!(chats(&engine, cy).await, []);
    is_clean(&engine).await;
}

#[tokio::test]
async fn all_members_but_its_writer_are_told_of_a_message() {
    let engine = engine_with(tenant(40), EngineSettings { keeps_notifications: true, ..small() }).await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let (two, three) = (opened(&engine, ada, &[ben]).await, opened(&engine, ada, &[ben, cy]).await);
    let message = said(&engine, ada, two, "hello").await;
    let to_all = said(&engine, ada, three, "hello all").await;
    drained(&engine).await;
    let told = async |reader| {
        let page = engine.as_reader(reader).notifications(&NotificationQuery::default()).await.unwrap();
        assert!(
            page.notifications.iter().all(|of| of.kind == NotificationKind::Mention && of.account.id == ada)
        );
        page.notifications.iter().map(|of| of.post.as_ref().unwrap().id).collect::<BTreeSet<_>>()
    };
    assert_eq!(told(ben).await, [message, to_all].into());
    assert_eq!((told(ada).await, told(cy).await), (BTreeSet::new(), [to_all].into()));
    // As all read it, so all are told: nobody learns by that who blocks it.
    engine.block(ada, cy).await.unwrap();
    assert_eq!(told(cy).await, [to_all].into());
    engine.mute(ben, ada).await.unwrap();
    assert_eq!(told(ben).await, BTreeSet::new());
    engine.unmute(ben, ada).await.unwrap();
    engine.leave_chat(two, ben).await.unwrap();
    assert_eq!(told(ben).await, [to_all].into());
}

#[tokio::test]
async fn whoever_scrolls_through_a_chat_meets_each_message_once_in_the_order_that_all_see() {
    let options = tenant(40);
    let engines = [engine_with(options.clone(), small()).await, engine_with(options, small()).await];
    let members = accounts(&engines[0], 4).await;
    let chat = opened(&engines[0], members[0], &members[1..]).await;
    for n in 0..30 {
        let at_once = members.iter().enumerate().map(|(m, member)| {
            let engine = &engines[(n + m) % 2];
            async move { said(engine, *member, chat, &format!("{n}")).await }
        });
        join_all(at_once).await;
    }
    let mut walks = Vec::new();
    for (n, member) in members.iter().enumerate() {
        let (mut met, mut query) = (Vec::new(), Query::chat(chat).limit(7));
        loop {
            let page = engines[n % 2].as_reader(*member).read(&query).await.unwrap();
            met.extend(page.posts.iter().map(|post| post.id));
            let Some(next) = page.next else { break };
            query = query.after(next);
        }
        walks.push(met);
    }
    assert_eq!(walks[0].len(), 120);
    assert!(walks[0].is_sorted_by(|one, next| one > next));
    assert!(walks.iter().all(|walk| *walk == walks[0]));
    assert_eq!(Query::chat(chat).timeline, Timeline::Chat(chat));
}
