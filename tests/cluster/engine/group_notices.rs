//! What members of groups and chats are told of that others did with what they wrote there.

use tideline::post::{Draft, PostRef};
use tideline::{
    AccountId, AccountKind, AccountState, AccountUpdate, Engine, NotificationKind, NotificationQuery, PostId,
};

use super::chats::{is_clean, opened, said};
use super::groups::{found, posted};
use super::notifications::{LONG, Told, engine, entries, publish, quote, told};
use super::{accounts, drained};

async fn group_of(engine: &Engine, owner: AccountId, members: &[AccountId], is_private: bool) -> AccountId {
    let group = found(engine, owner, AccountKind::Group, is_private).await;
    for member in members {
        engine.invite_to_group(group, owner, *member, true).await.unwrap();
        engine.join_group(group, *member).await.unwrap();
    }
    drained(engine).await;
    group
}

async fn liked(engine: &Engine, by: AccountId, post: PostId) {
    engine.settled(LONG, engine.like(by, post)).await.unwrap();
}

/// H278: among others, a like that was taken back, whose entry nothing takes off.
#[tokio::test]
async fn who_wrote_a_post_in_a_group_is_told_what_others_do_with_it() {
    use NotificationKind::{Like, Quote, Repost};
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let group = group_of(&engine, ada, &[ben, cy], false).await;
    let post = posted(&engine, ben, group, "low tide").await;
    let of = PostRef { id: post, author: group };
    // What it does itself is told to nobody, nor what others do to the group.
    liked(&engine, ben, post).await;
    engine.settled(LONG, engine.repost(ben, post)).await.unwrap();
    publish(&engine, ben, quote(of, "so it was")).await;
    publish(&engine, ben, quote(of, "once more").group(group)).await;
    assert_eq!(told(&engine, ben).await, []);
    for _ in 0..2 {
        liked(&engine, cy, post).await;
        engine.settled(LONG, engine.repost(cy, post)).await.unwrap();
    }
    let outside = publish(&engine, cy, quote(of, "look")).await;
    let inside = publish(&engine, cy, quote(of, "look again").group(group)).await;
    let wanted: [Told; 4] = [
        (Quote, cy, Some(inside)),
        (Quote, cy, Some(outside)),
        (Repost, cy, Some(post)),
        (Like, cy, Some(post)),
    ];
    assert_eq!(told(&engine, ben).await, wanted);
    assert!(
        entries(&engine, group).await.iter().all(|entry| entry[0] == b'f'),
        "it is told of members alone"
    );
    let reader = engine.as_reader(ben);
    let page = reader.notifications(&NotificationQuery::default()).await.unwrap();
    for shown in &page.notifications {
        assert_eq!(reader.notification(shown.id).await.unwrap(), *shown);
    }
    let by = NotificationQuery { by: Some(cy), ..NotificationQuery::default() };
    assert_eq!(reader.count_notifications(&by).await.unwrap(), 4);

    // What is taken back shows no more, what comes again does, once.
    for _ in 0..2 {
        engine.settled(LONG, engine.unlike(cy, post)).await.unwrap();
        engine.settled(LONG, engine.undo_repost(cy, post)).await.unwrap();
        assert_eq!(told(&engine, ben).await, wanted[..2]);
        liked(&engine, cy, post).await;
        engine.settled(LONG, engine.repost(cy, post)).await.unwrap();
        assert_eq!(told(&engine, ben).await, wanted);
    }
    let like = page.notifications[3].id;
    assert!(engine.dismiss_notification(ben, like).await.unwrap().value);
    assert_eq!(told(&engine, ben).await, wanted[..3]);
    engine.settled(LONG, engine.delete(cy, inside)).await.unwrap();
    assert_eq!(told(&engine, ben).await, wanted[1..3]);

    // What the group says in its own name is its own affair.
    let own = publish(&engine, group, Draft::text("we meet at low tide")).await;
    liked(&engine, cy, own).await;
    assert_eq!(told(&engine, group).await[0], (Like, cy, Some(own)));
    drained(&engine).await;
    // The quote that is gone is left, and shows no more.
    assert_eq!(engine.inspect(ben).await.unwrap().notifications, 3);
    engine.settled(LONG, engine.delete(ada, post)).await.unwrap();
    // A quote is a post of its own.
    assert_eq!(told(&engine, ben).await, wanted[1..2]);
}

#[tokio::test]
async fn who_wrote_a_message_is_told_who_likes_it_as_long_as_it_reads_the_chat() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let chat = opened(&engine, ada, &[ben, cy]).await;
    let message = said(&engine, ben, chat, "low tide").await;
    liked(&engine, ada, message).await;
    liked(&engine, ben, message).await;
    let like: [Told; 1] = [(NotificationKind::Like, ada, Some(message))];
    assert_eq!(told(&engine, ben).await, like);
    assert_eq!(told(&engine, ada).await, [(NotificationKind::Mention, ben, Some(message))]);
    engine.mute(ben, ada).await.unwrap();
    assert_eq!(told(&engine, ben).await, []);
    engine.unmute(ben, ada).await.unwrap();
    assert_eq!(told(&engine, ben).await, like);
    drained(&engine).await;
    is_clean(&engine).await;
    engine.leave_chat(chat, ben).await.unwrap();
    assert_eq!(told(&engine, ben).await, []);
    // What others go on saying takes no place in its inbox.
    let before = entries(&engine, ben).await;
    said(&engine, cy, chat, "high tide").await;
    liked(&engine, cy, message).await;
    drained(&engine).await;
    assert_eq!((entries(&engine, ben).await, told(&engine, ada).await.len()), (before, 2));
}

#[tokio::test]
async fn who_has_left_a_private_group_is_told_nothing_of_it() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let group = group_of(&engine, ada, &[ben], true).await;
    let post = posted(&engine, ben, group, "low tide").await;
    let later = posted(&engine, ben, group, "high tide").await;
    liked(&engine, ada, post).await;
    assert_eq!(told(&engine, ben).await, [(NotificationKind::Like, ada, Some(post))]);
    engine.settled(LONG, engine.leave_group(group, ben)).await.unwrap();
    assert_eq!(told(&engine, ben).await, []);
    let before = entries(&engine, ben).await;
    liked(&engine, ada, later).await;
    assert_eq!(
        (entries(&engine, ben).await, engine.stored().post(later).await.unwrap().unwrap().header().likes),
        (before, 1)
    );
}

/// H279: each group would be an account more that has a part of others' inboxes.
#[tokio::test]
async fn who_founds_group_upon_group_pushes_out_only_what_it_did_itself() {
    let engine = engine().await;
    let people = accounts(&engine, 12).await;
    let [ada, eve] = people[..2] else { unreachable!() };
    let post = publish(&engine, ada, Draft::text("low tide")).await;
    let mut wanted = Vec::new();
    for other in &people[2..] {
        for _ in 0..10 {
            wanted.push(publish(&engine, *other, Draft::text("hey").mentions([ada])).await);
        }
    }
    for n in 0..24 {
        let group = found(&engine, eve, AccountKind::Group, n % 3 == 0).await;
        let mention = if n % 3 == 0 { vec![] } else { vec![ada] };
        for _ in 0..10 {
            publish(&engine, eve, Draft::text("me").mentions(mention.clone()).group(group)).await;
            publish(&engine, eve, quote(PostRef { id: post, author: ada }, "look").group(group)).await;
        }
    }
    let told = told(&engine, ada).await;
    // They stand in the order in which they came, in which two of one author may overtake each other: all are there.
    let of_others = told.iter().filter(|(_, by, _)| *by != eve).filter_map(|(.., post)| *post);
    let mut of_others: Vec<PostId> = of_others.collect();
    of_others.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(of_others, wanted);
    assert!(told.len() > wanted.len(), "what is visible of hers shows");
}

#[tokio::test]
async fn a_quote_in_a_group_that_is_deleted_leaves_nothing_in_an_inbox() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let post = publish(&engine, ada, Draft::text("low tide")).await;
    let group = group_of(&engine, ben, &[], false).await;
    let of = PostRef { id: post, author: ada };
    let quotes = [
        publish(&engine, ben, quote(of, "look").group(group)).await,
        publish(&engine, ben, quote(of, "look again").group(group)).await,
    ];
    assert_eq!(entries(&engine, ada).await.len(), 2);
    engine.settled(LONG, engine.delete(ben, quotes[0])).await.unwrap();
    assert_eq!(told(&engine, ada).await, [(NotificationKind::Quote, ben, Some(quotes[1]))]);
    assert_eq!(entries(&engine, ada).await.len(), 1);
    is_clean(&engine).await;
}

/// Somebody who was limited brought its name to strangers by what it did with their posts.
#[tokio::test]
async fn who_is_limited_tells_those_alone_who_follow_it() {
    let engine = engine().await;
    let [ada, eve] = accounts(&engine, 2).await[..] else { unreachable!() };
    let limited = AccountUpdate { state: Some(AccountState::Limited), ..AccountUpdate::default() };
    engine.update_account(eve, &limited).await.unwrap();
    let post = publish(&engine, ada, Draft::text("low tide")).await;
    liked(&engine, eve, post).await;
    engine.settled(LONG, engine.repost(eve, post)).await.unwrap();
    engine.settled(LONG, engine.follow(eve, ada)).await.unwrap();
    drained(&engine).await;
    assert_eq!(told(&engine, ada).await, []);
    engine.follow(ada, eve).await.unwrap();
    let kinds: Vec<NotificationKind> = told(&engine, ada).await.into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds.len(), 3, "{kinds:?}");
}
