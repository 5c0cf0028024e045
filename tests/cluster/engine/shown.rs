//! Posts by their ids: who may not see one can't tell it from one that isn't there, whatever is asked or tried.

use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::{
    ASKED_MAX, AccountId, AccountKind, AccountState, AccountUpdate, Engine, ErrorKind, Moderation,
    NewAccount, PostId, ReaderTies, Result,
};

use super::groups::{found, posted};
use super::{accounts, drained, engine, never_was};

async fn say(engine: &Engine, author: AccountId, draft: Draft) -> PostId {
    engine.publish(author, &draft).await.unwrap().id
}

async fn set_state(engine: &Engine, account: AccountId, state: AccountState) {
    let update = AccountUpdate { state: Some(state), ..AccountUpdate::default() };
    engine.update_account(account, &update).await.unwrap();
}

async fn shown(engine: &Engine, reader: AccountId, posts: &[PostId]) -> Vec<PostId> {
    engine.as_reader(reader).posts(posts).await.unwrap().posts.iter().map(|post| post.id).collect()
}

/// What an attempt says of a post, without which post that is.
fn said<T>(id: PostId, tried: Result<T>) -> std::result::Result<(), (ErrorKind, String)> {
    tried.map(drop).map_err(|e| (e.kind(), e.to_string().replace(&id.to_string(), "(id)")))
}

#[tokio::test]
async fn posts_by_their_ids_come_as_on_a_page_in_the_order_asked_each_once() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let [me, ada, ben] = people[..] else { unreachable!() };
    let mine = say(&engine, me, Draft::text("mine")).await;
    let first = say(&engine, ada, Draft::text("first")).await;
    let to_first = PostRef { id: first, author: ada };
    let repost = engine.repost(ben, first).await.unwrap().id;
    let quote = say(&engine, ben, Draft::text("look").quoting(to_first)).await;
    let answer = say(&engine, ben, Draft::text("so").reply_to(to_first)).await;
    engine.like(me, first).await.unwrap();
    engine.bookmark(me, quote).await.unwrap();
    let own_repost = engine.repost(me, first).await.unwrap().id;
    drained(&engine).await;
    let asked = [quote, mine, repost, quote, first, answer, own_repost];
    let page = engine.as_reader(me).posts(&asked).await.unwrap().posts;
    let ids: Vec<PostId> = page.iter().map(|post| post.id).collect();
    assert_eq!(ids, [quote, mine, repost, first, answer, own_repost]);
    let of_first = ReaderTies { is_liked: true, is_bookmarked: false, repost: Some(own_repost) };
    let of_quote = ReaderTies { is_bookmarked: true, ..ReaderTies::default() };
    let ties: Vec<ReaderTies> = page.iter().map(|post| post.ties.unwrap()).collect();
    // Of a repost the original's.
    assert_eq!(ties, [of_quote, ReaderTies::default(), of_first, of_first, ReaderTies::default(), of_first]);
    for post in &page {
        assert_eq!(post.account.as_ref().unwrap().id, post.author);
        assert_eq!(post.post.as_ref().unwrap().header().author, post.author);
    }
    assert_eq!(page[2].original.as_ref().unwrap().id, first);
    let header = *page[3].post.as_ref().unwrap().header();
    assert_eq!([header.likes, header.reposts, header.replies, header.quotes], [1, 2, 1, 1]);
    // The same as on a timeline.
    let query = tideline::Query::profile(ben).with_ties();
    let profile = engine.as_reader(me).read(&query).await.unwrap().posts;
    assert_eq!(engine.as_reader(me).posts(&[answer, quote, repost]).await.unwrap().posts, profile);
    assert_eq!(engine.as_reader(me).post(first).await.unwrap(), page[3]);

    assert_eq!(engine.as_reader(me).posts(&[]).await.unwrap().posts, []);
    let many: Vec<PostId> = (0..=ASKED_MAX as u64).map(|n| PostId::from_u64(n + 1).unwrap()).collect();
    assert_eq!(engine.as_reader(me).posts(&many[1..]).await.unwrap().posts, []);
    let refused = engine.as_reader(me).posts(&many).await.unwrap_err();
    assert_eq!(refused.to_string(), "too many posts: 101; at most 100 a call");
    let many = vec![to_first; ASKED_MAX + 1];
    assert_eq!(engine.as_reader(me).ties(&many[1..]).await.unwrap(), [of_first; ASKED_MAX]);
    assert_eq!(engine.as_reader(me).ties(&many).await.unwrap_err().kind(), ErrorKind::Invalid);
    let nobody = engine.as_reader(AccountId::new(1 << 60).unwrap()).posts(&[first]).await.unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::NotFound);
}

/// Posts that `me` may not see, each for another reason, and one that never was.
async fn unseen(engine: &Engine, me: AccountId) -> Vec<(&'static str, PostId)> {
    let people = accounts(engine, 11).await;
    let [ada, ben, blocking, blocked, hiding, suspended, limited, buried, passing, gone, many] = people[..]
    else {
        unreachable!()
    };
    let followers = say(engine, ada, Draft::text("f").visibility(Visibility::Followers)).await;
    let direct = Draft::text("d").visibility(Visibility::Direct).mentions([ben]);
    let direct = say(engine, ada, direct).await;
    let only_to = say(engine, ada, Draft::text("o").only_to([ben])).await;
    let not_to = say(engine, ada, Draft::text("n").not_to([me])).await;
    let moderated = say(engine, ada, Draft::text("m")).await;
    let hidden = Moderation { hidden: Some(true), ..Moderation::default() };
    engine.moderate(moderated, hidden).await.unwrap();
    let deleted = say(engine, ada, Draft::text("g")).await;
    engine.delete(ada, deleted).await.unwrap();
    let mut unseen = vec![
        ("for followers", followers),
        ("direct", direct),
        ("only to", only_to),
        ("not to", not_to),
        ("hidden by a moderator", moderated),
        ("deleted", deleted),
        ("never", never_was(deleted)),
    ];
    for (why, author) in [
        ("blocks", blocking),
        ("blocked", blocked),
        ("hides", hiding),
        ("suspended", suspended),
        ("limited", limited),
        ("buried", buried),
        ("blocks many", many),
    ] {
        unseen.push((why, say(engine, author, Draft::text(why)).await));
    }
    // What passes something on that may not be seen any more.
    let original = say(engine, gone, Draft::text("original")).await;
    unseen.push(("repost of what is gone", engine.repost(passing, original).await.unwrap().id));
    let quoted = PostRef { id: unseen[7].1, author: blocking };
    let quote = say(engine, passing, Draft::text("q").quoting(quoted)).await;
    unseen.push(("quote of who blocks", quote));
    let [other] = accounts(engine, 1).await[..] else { unreachable!("one account was asked for") };
    unseen.push(("repost of a quote of who blocks", engine.repost(other, quote).await.unwrap().id));
    let blocks = unseen[7].1;
    unseen.push(("repost of who blocks", engine.repost(passing, blocks).await.unwrap().id));
    engine.block(blocking, me).await.unwrap();
    // More than one piece holds.
    for stranger in accounts(engine, 130).await.into_iter().chain([me]) {
        engine.block(many, stranger).await.unwrap();
    }
    engine.block(me, blocked).await.unwrap();
    engine.hide_from(hiding, me).await.unwrap();
    set_state(engine, suspended, AccountState::Suspended).await;
    set_state(engine, limited, AccountState::Limited).await;
    engine.delete_account(buried).await.unwrap();
    engine.delete(gone, original).await.unwrap();
    unseen
}

#[tokio::test]
async fn what_a_reader_may_not_see_is_absent_whatever_is_asked() {
    let engine = engine().await;
    let me = accounts(&engine, 1).await[0];
    let unseen = unseen(&engine, me).await;
    let mine = say(&engine, me, Draft::text("mine")).await;
    for is_drained in [false, true] {
        if is_drained {
            drained(&engine).await;
        }
        let all: Vec<PostId> = unseen.iter().map(|(_, id)| *id).chain([mine]).collect();
        assert_eq!(shown(&engine, me, &all).await, [mine]);
        let edit = Edit { text: Some("mine now".into()), ..Edit::default() };
        let list = tideline::ListQuery::default();
        for (why, id) in &unseen {
            let id = *id;
            let nothing = Err((ErrorKind::NotFound, "there is no post (id)".to_owned()));
            let tries = [
                said(id, engine.as_reader(me).post(id).await),
                said(id, engine.like(me, id).await),
                said(id, engine.bookmark(me, id).await),
                said(id, engine.as_reader(me).likers(id, &list).await),
                said(id, engine.as_reader(me).conversation(id).await),
                said(id, engine.as_reader(me).read(&tideline::Query::replies(id)).await),
                said(id, engine.edit(me, id, &edit).await),
                said(id, engine.delete(me, id).await),
            ];
            for (number, tried) in tries.into_iter().enumerate() {
                assert_eq!(tried, nothing, "{why}, try {number}");
            }
        }
    }
    // Nothing has changed by being tried.
    for (why, id) in &unseen {
        let is_gone = matches!(*why, "deleted" | "never" | "buried");
        assert_eq!(engine.stored().post(*id).await.unwrap().is_none(), is_gone, "{why}");
    }
    // What somebody muted says can be asked for; it only stays off timelines.
    let muted = accounts(&engine, 1).await[0];
    let quiet = say(&engine, muted, Draft::text("quiet")).await;
    engine.mute(me, muted).await.unwrap();
    assert_eq!(shown(&engine, me, &[quiet]).await, [quiet]);
}

#[tokio::test]
async fn a_reader_sees_what_is_for_it() {
    let engine = engine().await;
    let people = accounts(&engine, 4).await;
    let [me, ada, limited, stranger] = people[..] else { unreachable!() };
    engine.follow(me, ada).await.unwrap();
    engine.follow(me, limited).await.unwrap();
    let direct = Draft::text("d").visibility(Visibility::Direct).mentions([me]);
    let for_me = [
        say(&engine, ada, Draft::text("f").visibility(Visibility::Followers)).await,
        say(&engine, ada, direct).await,
        say(&engine, ada, Draft::text("o").only_to([me])).await,
        say(&engine, limited, Draft::text("l")).await,
    ];
    set_state(&engine, limited, AccountState::Limited).await;
    let mine = say(&engine, me, Draft::text("mine")).await;
    engine.moderate(mine, Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
    let all: Vec<PostId> = for_me.into_iter().chain([mine]).collect();
    assert_eq!(shown(&engine, me, &all).await, all);
    assert_eq!(shown(&engine, stranger, &all).await, []);
    engine.unfollow(me, ada).await.unwrap();
    engine.unfollow(me, limited).await.unwrap();
    assert_eq!(shown(&engine, me, &all).await, [for_me[1], for_me[2], mine]);
}

#[tokio::test]
async fn deleting_tells_nothing_of_posts_of_others_and_is_the_same_again_for_ones_own() {
    let engine = engine().await;
    let buckets = engine.store().keys().buckets();
    // In one bucket, where ids alone don't tell whose a post is.
    let alike: Vec<AccountId> = (1_000..)
        .map(|id| AccountId::new(id).unwrap())
        .filter(|id| buckets.of_account(id.get()) == buckets.of_account(1_000))
        .take(2)
        .collect();
    for id in &alike {
        engine.create_account(NewAccount { id: Some(*id), ..NewAccount::default() }).await.unwrap();
    }
    let [me, other] = alike[..] else { unreachable!() };
    let (kept, gone) =
        (say(&engine, other, Draft::text("k")).await, say(&engine, other, Draft::text("g")).await);
    engine.delete(other, gone).await.unwrap();
    let never = never_was(kept);
    let nothing = Err((ErrorKind::NotFound, "there is no post (id)".to_owned()));
    for id in [kept, gone, never] {
        assert_eq!(said(id, engine.delete(me, id).await), nothing);
        assert_eq!(said(id, engine.edit(me, id, &Edit::default()).await), nothing);
    }
    assert!(engine.stored().post(kept).await.unwrap().is_some());
    // One's own is remembered, so that a lost answer may be asked for again; also when others came after it.
    let mine: Vec<PostId> =
        [say(&engine, me, Draft::text("1")).await, say(&engine, me, Draft::text("2")).await].into();
    for id in &mine {
        engine.delete(me, *id).await.unwrap();
        engine.delete(me, *id).await.unwrap();
    }
    assert_eq!(engine.stored().account(me).await.unwrap().posts, 0);
    assert_eq!(said(never, engine.delete(me, never).await), nothing);
    assert_eq!(said(never, engine.inspect_post(never).await), nothing);
}

/// H295: it said in a message, or to everybody, which post of which group or chat it answers.
#[tokio::test]
async fn what_answers_a_post_of_a_private_group_elsewhere_tells_nobody_of_it() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let group = found(&engine, ada, AccountKind::Group, true).await;
    let among_us = PostRef { id: posted(&engine, ada, group, "among us").await, author: group };
    let sent = engine.publish_direct(ada, &[cy], &Draft::text("between us")).await.unwrap().id;
    let message = engine.as_reader(cy).post(sent).await.unwrap().subject();
    let answered = async |reader: AccountId, id: PostId| {
        let shown = engine.as_reader(reader).post(id).await.unwrap();
        let header = *shown.post.unwrap().header();
        (header.reply_to, header.conversation)
    };
    for of in [among_us, message] {
        let answer = Draft::text("so").reply_to(of);
        let inside =
            if of == among_us { answer.clone().group(group) } else { answer.clone().chat(of.author) };
        let inside = engine.publish(ada, &inside).await.unwrap().id;
        assert_eq!(answered(ada, inside).await, (Some(of), Some(of.id)));
        let direct = engine.publish_direct(ada, &[ben], &answer).await.unwrap().id;
        let aside = answer.visibility(Visibility::Unlisted);
        let aside = engine.publish(ada, &aside).await.unwrap().id;
        for id in [direct, aside] {
            assert_eq!(answered(ben, id).await, (None, None));
        }
    }
}
