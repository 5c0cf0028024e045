//! The list of chats that an account is in.

use futures::future::join_all;
use tideline::{ChatQuery, ErrorCode};

use super::chats::{is_clean, last_of, opened, refused, said};
use super::{accounts, drained, engine};

/// Messages that an account's list of chats keeps, and what more a list has until it is cut: as in docs/keys.md.
const ENTRIES_MAX: usize = 1_000;
const SLACK: usize = ENTRIES_MAX / 2;

/// Pages in which so many chats are looked at, if none shows.
fn met_at_most(chats: usize) -> usize {
    chats / 400 + 2
}

#[tokio::test]
async fn a_list_of_chats_is_read_page_by_page_both_ways() {
    let engine = engine().await;
    let all = accounts(&engine, 8).await;
    let (ada, others) = (all[0], &all[1..]);
    let mut newest = Vec::new();
    for other in others {
        let chat = opened(&engine, *other, &[ada]).await;
        said(&engine, *other, chat, "one").await;
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
    let (mut met, mut query) = (Vec::new(), ChatQuery { limit: Some(100), ..ChatQuery::default() });
    loop {
        let page = reader.chats(&query).await.unwrap();
        met.extend(page.chats.iter().map(|chat| (chat.id, last_of(chat))));
        let Some(older) = page.older else { break };
        query.max_id = Some(older);
    }
    assert_eq!(met.last(), Some(&(friends, kept)), "the oldest of all is still there");
    assert!((ENTRIES_MAX..=ENTRIES_MAX + SLACK).contains(&met.len()), "{}", met.len());
    is_clean(&engine).await;

    // Of who is blocked nothing shows, and a page looks at so many: it ends, and says where it goes on.
    engine.block(ada, spam).await.unwrap();
    let (mut met, mut pages, mut query) = (Vec::new(), 0, ChatQuery::default());
    loop {
        let page = reader.chats(&query).await.unwrap();
        pages += 1;
        met.extend(page.chats.iter().map(|chat| (chat.id, last_of(chat))));
        let Some(older) = page.older else { break };
        assert!(query.max_id.is_none_or(|before| older < before), "it goes on");
        query.max_id = Some(older);
    }
    assert_eq!(met, [(friends, kept)]);
    assert!(pages <= met_at_most(ENTRIES_MAX + SLACK), "{pages}");
}
