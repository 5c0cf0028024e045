//! The list of chats that an account is in.

use futures::future::join_all;
use tideline::{
    AccountId, AccountState, AccountUpdate, ChatList, ChatQuery, Engine, ErrorCode, Moderation, PostId,
};

use super::chats::{chats, is_clean, last_of, opened, refused, said};
use super::{a_millisecond, accounts, drained, engine};

/// Messages that an account's list of chats keeps, and what more a list has until it is cut: as in docs/keys.md.
const ENTRIES_MAX: usize = 1_000;
const SLACK: usize = ENTRIES_MAX / 2;

type Met = Vec<(AccountId, PostId)>;

fn met(page: &ChatList) -> Met {
    page.chats.iter().map(|chat| (chat.id, last_of(chat))).collect()
}

/// A page of the list of somebody's chats, of so many.
async fn page(engine: &Engine, reader: AccountId, limit: usize, query: ChatQuery) -> ChatList {
    engine.as_reader(reader).chats(&ChatQuery { limit: Some(limit), ..query }).await.unwrap()
}

/// A message that is newer than all that were written before it, in whatever chat.
async fn said_next(engine: &Engine, by: AccountId, chat: AccountId) -> PostId {
    a_millisecond(engine).await;
    said(engine, by, chat, "x").await
}

#[tokio::test]
async fn a_list_of_chats_is_read_page_by_page_both_ways() {
    let engine = engine().await;
    let all = accounts(&engine, 8).await;
    let (ada, others) = (all[0], &all[1..]);
    let mut newest = Vec::new();
    for other in others {
        let chat = opened(&engine, *other, &[ada]).await;
        said_next(&engine, *other, chat).await;
        newest.push((chat, said(&engine, *other, chat, "two").await));
    }
    drained(&engine).await;
    newest.reverse();
    let reader = engine.as_reader(ada);
    let (mut met, mut query) = (Vec::new(), ChatQuery { limit: Some(3), ..ChatQuery::default() });
    loop {
        let page = reader.chats(&query).await.unwrap();
        assert!(page.chats.iter().all(|chat| chat.is_request && chat.unread == 2), "{page:?}");
        met.extend(page.chats.iter().map(|chat| (chat.id, last_of(chat))));
        let Some(older) = page.older else { break };
        query.max_id = Some(older);
    }
    assert_eq!(met, newest);
    let (mut met, mut min) = (Vec::new(), newest[6].1);
    loop {
        let query = ChatQuery { limit: Some(4), min_id: Some(min), ..ChatQuery::default() };
        let page = reader.chats(&query).await.unwrap();
        if page.chats.is_empty() {
            break;
        }
        met.splice(0..0, page.chats.iter().map(|chat| (chat.id, last_of(chat))));
        min = page.newer.unwrap();
    }
    assert_eq!(met, newest[..6]);
    let since = ChatQuery { since_id: Some(newest[2].1), ..ChatQuery::default() };
    let page = reader.chats(&since).await.unwrap();
    assert_eq!(page.chats.iter().map(|chat| chat.id).collect::<Vec<_>>(), [newest[0].0, newest[1].0]);
    // What one reads, answers, or who one follows, is no request.
    engine.read_chat(newest[0].0, ada, None).await.unwrap();
    said(&engine, ada, newest[1].0, "so").await;
    engine.follow(ada, others[4]).await.unwrap();
    let page = reader.chats(&ChatQuery::default()).await.unwrap();
    assert_eq!(page.chats.iter().filter(|chat| !chat.is_request).count(), 3);
    let wrong = ChatQuery { limit: Some(101), ..ChatQuery::default() };
    assert_eq!(refused(reader.chats(&wrong).await), ErrorCode::OutOfRange);
}

#[tokio::test]
async fn one_account_that_opens_chat_upon_chat_pushes_out_only_its_own() {
    let engine = engine().await;
    let [ada, ben, spam] = accounts(&engine, 3).await[..] else { unreachable!() };
    let friends = opened(&engine, ben, &[ada]).await;
    let kept = said(&engine, ben, friends, "see you").await;
    for n in 0..=(ENTRIES_MAX + SLACK) / 50 {
        let many = (0..50).map(|m| {
            let (engine, token) = (&engine, format!("{n} {m}"));
            async move {
                let chat = engine.open_chat(spam, &[ada, ben], Some(&token)).await.unwrap().value;
                said(engine, spam, chat, "buy").await;
            }
        });
        join_all(many).await;
    }
    drained(&engine).await;
    let reader = engine.as_reader(ada);
    let (mut met, mut query) = (Met::new(), ChatQuery { limit: Some(100), ..ChatQuery::default() });
    loop {
        let page = reader.chats(&query).await.unwrap();
        met.extend(self::met(&page));
        let Some(older) = page.older else { break };
        query.max_id = Some(older);
    }
    assert_eq!(met.last(), Some(&(friends, kept)), "the oldest of all is still there");
    assert!((ENTRIES_MAX..=ENTRIES_MAX + SLACK).contains(&met.len()), "{}", met.len());
    is_clean(&engine).await;

    // Of who is blocked nothing shows, and one page finds what does.
    engine.block(ada, spam).await.unwrap();
    let page = page(&engine, ada, 20, ChatQuery::default()).await;
    assert_eq!((self::met(&page), page.older), (vec![(friends, kept)], None));
}

/// A chat stood where its newest message did, shown or not. Clients that page by the last status of a page skipped all
/// between, and everybody saw that something hidden was said.
#[tokio::test]
async fn a_chat_stands_where_its_newest_message_does_that_shows() {
    let engine = engine().await;
    let [ada, ben, cy, dee, eve] = accounts(&engine, 5).await[..] else { unreachable!() };
    let low = opened(&engine, cy, &[ada, ben]).await;
    let by_ben = said_next(&engine, ben, low).await;
    let mut shown = vec![(low, by_ben)];
    for other in [dee, eve] {
        let chat = opened(&engine, other, &[ada]).await;
        shown.insert(0, (chat, said_next(&engine, other, chat).await));
    }
    // Of this one what shows is the newest of all, below much that doesn't.
    let high = opened(&engine, cy, &[ada, ben]).await;
    shown.insert(0, (high, said_next(&engine, ben, high).await));
    for chat in [low, high].repeat(12) {
        said_next(&engine, cy, chat).await;
    }
    engine.mute(ada, cy).await.unwrap();
    drained(&engine).await;
    // As many on a page as there are, or fewer: each begins where the last one's last message stands.
    for limit in 1..=4 {
        let (mut all, mut query) = (Met::new(), ChatQuery::default());
        loop {
            let page = page(&engine, ada, limit, query.clone()).await;
            all.extend(met(&page));
            assert_eq!(page.older, met(&page).last().map(|(_, last)| *last).filter(|_| all.len() < 4));
            let Some(older) = page.older else { break };
            query.max_id = Some(older);
        }
        assert_eq!(all, shown, "{limit}");
        let (mut all, mut min) = (vec![shown[3]], by_ben);
        loop {
            let page =
                page(&engine, ada, limit, ChatQuery { min_id: Some(min), ..ChatQuery::default() }).await;
            all.splice(0..0, met(&page));
            assert_eq!(page.newer, met(&page).first().map(|(_, last)| *last));
            // At the top it ends: the same `min_id` was named again for good.
            assert_eq!(page.older.is_some(), page.newer.is_some());
            let Some(newer) = page.newer else { break };
            min = newer;
        }
        assert_eq!(all, shown, "{limit}");
    }
    let between = ChatQuery { max_id: Some(shown[0].1), min_id: Some(by_ben), ..ChatQuery::default() };
    assert_eq!(met(&page(&engine, ada, 20, between).await), shown[1..3]);
    let since = ChatQuery { since_id: Some(by_ben), ..ChatQuery::default() };
    assert_eq!(met(&page(&engine, ada, 20, since).await), shown[..3]);
}

/// Six chats of three with nine messages each left nothing on the first page, for whoever blocks their writer.
#[tokio::test]
async fn whoever_is_blocked_empties_no_page_of_chats() {
    let engine = engine().await;
    let [ada, ben, spam] = accounts(&engine, 3).await[..] else { unreachable!() };
    let friends = opened(&engine, ben, &[ada]).await;
    let kept = said(&engine, ben, friends, "see you").await;
    a_millisecond(&engine).await;
    let many = (0..50).map(|n| {
        let (engine, token) = (&engine, format!("{n}"));
        async move {
            let chat = engine.open_chat(spam, &[ada, ben], Some(&token)).await.unwrap().value;
            for _ in 0..9 {
                said(engine, spam, chat, "buy").await;
            }
        }
    });
    join_all(many).await;
    drained(&engine).await;
    engine.block(ada, spam).await.unwrap();
    let page = page(&engine, ada, 1, ChatQuery::default()).await;
    assert_eq!((met(&page), page.older), (vec![(friends, kept)], None));
}

#[tokio::test]
async fn a_chat_that_one_knows_is_found_by_messages_that_have_left_the_list() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let three = opened(&engine, cy, &[ada, ben]).await;
    let left = said_next(&engine, ben, three).await;
    engine.read_chat(three, ada, None).await.unwrap();
    said_next(&engine, cy, three).await;
    let two = opened(&engine, ben, &[ada]).await;
    for _ in 0..=(ENTRIES_MAX + SLACK) / 50 {
        join_all((0..50).map(|_| said(&engine, ben, two, "more"))).await;
    }
    let last = said_next(&engine, ben, two).await;
    drained(&engine).await;
    engine.mute(ada, cy).await.unwrap();
    let page = async |limit, query| page(&engine, ada, limit, query).await;
    assert_eq!(met(&page(20, ChatQuery::default()).await), [(two, last), (three, left)]);
    let first = page(1, ChatQuery::default()).await;
    assert_eq!((met(&first), first.older), (vec![(two, last)], Some(last)));
    let second = page(1, ChatQuery { max_id: Some(last), ..ChatQuery::default() }).await;
    assert_eq!((met(&second), second.older), (vec![(three, left)], None));
    // One that she has put aside stays there.
    engine.hide_chat(three, ada).await.unwrap();
    assert_eq!(met(&page(20, ChatQuery::default()).await), [(two, last)]);
}

#[tokio::test]
async fn what_is_counted_as_unread_shows() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let chat = opened(&engine, ada, &[ben, cy]).await;
    engine.block(cy, ben).await.unwrap();
    let first = said(&engine, ada, chat, "a").await;
    for text in ["b", "c"] {
        said(&engine, ben, chat, text).await;
    }
    drained(&engine).await;
    assert_eq!(chats(&engine, cy).await, [(chat, first, 1)]);
    let last = said(&engine, ada, chat, "d").await;
    drained(&engine).await;
    assert_eq!(chats(&engine, cy).await, [(chat, last, 2)]);
    assert_eq!(engine.as_reader(cy).chat(chat).await.unwrap().unread, 2);
    assert_eq!(chats(&engine, ben).await, [(chat, last, 1)], "it has written itself meanwhile");
}

/// Whoever counts what moderators hide learns how much that is.
#[tokio::test]
async fn hidden_messages_and_those_of_the_limited_count_for_nobody() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let chat = opened(&engine, ada, &[ben, cy]).await;
    let hidden = said(&engine, ben, chat, "a").await;
    said(&engine, ben, chat, "b").await;
    let last = said(&engine, ada, chat, "c").await;
    drained(&engine).await;
    assert_eq!(chats(&engine, cy).await, [(chat, last, 3)]);
    engine.moderate(hidden, Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
    assert_eq!(chats(&engine, cy).await, [(chat, last, 2)]);
    let limited = AccountUpdate { state: Some(AccountState::Limited), ..AccountUpdate::default() };
    engine.update_account(ben, &limited).await.unwrap();
    assert_eq!(chats(&engine, cy).await, [(chat, last, 1)]);
}
