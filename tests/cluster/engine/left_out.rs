//! Whom an account leaves out of its home, and conversations that it mutes: two documents that pages go by.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tideline::document::{DOCUMENT_BYTES_MAX, IDS_MAX, IdList, LEFT_OUT, MUTED_CONVERSATIONS};
use tideline::post::{Draft, Edit, PostRef};
use tideline::registration::DocumentChange;
use tideline::{
    AccountId, ChosenAuthors, DeliveryWay, Engine, EngineSettings, ErrorKind, NotificationQuery, PostId,
    Query,
};

use super::documents::registration_of;
use super::{a_millisecond, accounts, drained, engine, engine_with, small, tenant, walk_home};
use crate::harness::seeded;

/// Longer than any test machine stands still.
const LONG: Duration = Duration::from_secs(60);

async fn post(engine: &Engine, author: AccountId) -> PostId {
    engine.publish(author, &Draft::text("hello")).await.unwrap().id
}

#[tokio::test]
async fn whom_one_mutes_or_blocks_is_not_brought_home_by_friends_who_mention_it() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let [me, friend, other, unwanted] = accounts(&engine, 4).await[..] else { unreachable!() };
    for followed in [friend, other] {
        engine.follow(me, followed).await.unwrap();
    }
    let naming = Draft::text("ask @unwanted").mentions([unwanted, me]);
    let named = engine.publish(friend, &naming).await.unwrap().id;
    a_millisecond(&engine).await;
    let passed_on = engine.repost(other, named).await.unwrap().id;
    let plain = post(&engine, friend).await;
    let own = engine.publish(me, &Draft::text("not you").mentions([unwanted])).await.unwrap().id;
    drained(&engine).await;
    // Of two reposts, or a post and its repost, each shows.
    let second = engine_with(options, small()).await;
    let everything: BTreeSet<PostId> = [named, passed_on, plain, own].into();
    let home = async |engine: &Engine| walk_home(engine, me, 10).await.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(home(&second).await, everything);
    for restrict in [true, false] {
        match restrict {
            true => engine.block(me, unwanted).await.unwrap(),
            false => engine.mute(me, unwanted).await.unwrap(),
        };
        let reader = second.as_reader(me);
        for engine in [&engine, &second] {
            assert_eq!(home(engine).await, [plain, own].into());
        }
        let chosen = ChosenAuthors::of([friend, other]);
        assert_eq!(reader.read_chosen(&chosen, &Query::home()).await.unwrap().ids(), [plain]);
        // Where it is looked for, it is there.
        assert_eq!(reader.read(&Query::profile(friend)).await.unwrap().ids(), [plain, named]);
        assert_eq!(reader.read(&Query::mentions()).await.unwrap().ids(), [named]);
        let why = engine.inspect(me).await.unwrap();
        let candidate = why.page.iter().find(|candidate| candidate.id == named).unwrap();
        assert_eq!(format!("{:?}", candidate.verdict), "Hidden(MentionsMuted)");
        engine.unblock(me, unwanted).await.unwrap();
        engine.unmute(me, unwanted).await.unwrap();
        assert_eq!(home(&second).await, everything);
    }
    // An edit takes the name away, and what passes it on comes with it.
    engine.mute(me, unwanted).await.unwrap();
    let edit = Edit { mentions: Some(vec![me]), ..Edit::default() };
    engine.edit(friend, named, &edit).await.unwrap();
    assert_eq!(home(&engine).await, everything);
}

#[tokio::test]
async fn whoever_is_left_out_of_a_home_shows_everywhere_else_and_comes_back() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let registration = registration_of(&engine).await;
    let [me, author, other] = accounts(&engine, 3).await[..] else { unreachable!() };
    for followed in [author, other] {
        engine.follow(me, followed).await.unwrap();
    }
    let first = post(&engine, author).await;
    a_millisecond(&engine).await;
    let passed_on = engine.repost(other, first).await.unwrap().id;
    let reply = Draft::text("so it is").reply_to(PostRef { id: first, author });
    let reply = engine.publish(other, &reply).await.unwrap().id;
    drained(&engine).await;
    // On an instance that remembers the reader, too.
    let second = engine_with(options, small()).await;
    assert_eq!(walk_home(&second, me, 10).await, [reply, passed_on, first]);
    registration.leave_out(me, author, true).await.unwrap();
    let own = engine.repost(author, reply).await.unwrap().id;
    let last = post(&engine, author).await;
    drained(&engine).await;
    let reader = second.as_reader(me);
    for engine in [&engine, &second] {
        // What it answers, and what others pass on of it, is theirs.
        assert_eq!(walk_home(engine, me, 10).await, [reply, passed_on]);
    }
    assert_eq!(reader.read(&Query::profile(author)).await.unwrap().ids(), [last, own, first]);
    let chosen = reader.read_chosen(&ChosenAuthors::of([author]), &Query::home()).await.unwrap();
    assert_eq!(chosen.ids(), [last, own, first]);
    let why = engine.inspect(me).await.unwrap();
    assert_eq!(why.says_of_others["left_out"], 1);
    let verdict = |id| format!("{:?}", why.page.iter().find(|candidate| candidate.id == id).unwrap().verdict);
    assert_eq!(verdict(last), "Hidden(AuthorLeftOut)");
    assert_eq!(verdict(passed_on), "Shown");

    // Those of an author that is pulled, and it is nobody else's affair.
    engine.set_way(author, Some(DeliveryWay::Pull)).await.unwrap();
    drained(&engine).await;
    let pulled = post(&engine, author).await;
    assert_eq!(walk_home(&second, me, 10).await, [reply, passed_on]);
    engine.follow(other, author).await.unwrap();
    assert_eq!(walk_home(&second, other, 1).await[0], pulled);
    // A follow is another matter: it is left out until its reader says otherwise.
    engine.unfollow(me, author).await.unwrap();
    engine.follow(me, author).await.unwrap();
    assert_eq!(walk_home(&second, me, 10).await, [reply, passed_on]);
    registration.leave_out(me, author, false).await.unwrap();
    for engine in [&engine, &second] {
        assert_eq!(walk_home(engine, me, 10).await[0], pulled);
    }
    assert_eq!(registration.document(me, LEFT_OUT).await.unwrap(), None, "nothing is kept of nobody");
    // Its own posts nobody leaves out.
    registration.leave_out(me, me, true).await.unwrap();
    let mine = post(&engine, me).await;
    assert_eq!(walk_home(&second, me, 10).await[0], mine);
}

#[tokio::test]
async fn lists_of_ids_are_bounded_and_one_of_another_form_says_nothing() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let [me, author] = accounts(&engine, 2).await[..] else { unreachable!() };
    engine.follow(me, author).await.unwrap();
    let post = post(&engine, author).await;
    drained(&engine).await;
    let put = async |bytes: &[u8]| {
        let seen = registration.document(me, LEFT_OUT).await.unwrap().map(|seen| seen.version);
        registration.change_document(me, LEFT_OUT, seen.as_ref(), Some(bytes)).await.unwrap();
    };
    put(b"\x02what").await;
    assert_eq!(walk_home(&engine, me, 10).await, [post]);
    let full = IdList::of([author.get()].into_iter().chain(1_000_000..1_000_000 + IDS_MAX as u64 - 1));
    assert_eq!(full.ids().len(), IDS_MAX);
    put(&full.to_bytes()).await;
    assert_eq!(walk_home(&engine, me, 10).await, []);
    // One more, and the first makes room.
    registration.leave_out(me, AccountId::new(77).unwrap(), true).await.unwrap();
    assert_eq!(walk_home(&engine, me, 10).await, [post]);
    let kept = registration.document(me, LEFT_OUT).await.unwrap().unwrap();
    assert_eq!(IdList::from_bytes(&kept.bytes).unwrap().ids().len(), IDS_MAX);
    let nobody = AccountId::new(4_711).unwrap();
    let refused = registration.leave_out(nobody, me, true).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused}");
}

#[tokio::test]
async fn documents_change_together_or_not_at_all() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let ada = accounts(&engine, 1).await[0];
    let change = |name, seen, new| DocumentChange { name, seen, new };
    let both = [change("a", None, Some(&b"1"[..])), change("b", None, Some(b"2"))];
    let version = Some(registration.change_documents(ada, &both).await.unwrap().value);
    let stored = async || {
        let all = registration.documents(ada).await.unwrap();
        all.into_iter().map(|(name, of)| (name, of.bytes)).collect::<Vec<_>>()
    };
    let first = [("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())];
    assert_eq!(stored().await, first);
    // One of them is another one than was seen, whichever.
    for changes in [
        [change("a", version, Some(b"3")), change("c", version, Some(b"4"))],
        [change("b", None, None), change("a", version, None)],
        [change("c", None, Some(b"4")), change("b", None, Some(b"3"))],
    ] {
        let refused = registration.change_documents(ada, &changes).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{changes:?}: {refused}");
        assert_eq!(stored().await, first);
    }
    let changes =
        [change("a", version, None), change("b", version, Some(b"5")), change("c", None, Some(b""))];
    registration.change_documents(ada, &changes).await.unwrap();
    assert_eq!(stored().await, [("b".into(), b"5".to_vec()), ("c".into(), vec![])]);
    // No document twice, none of no name, and not more than eight.
    let names: Vec<String> = (0..9).map(|n| n.to_string()).collect();
    let many: Vec<_> = names.iter().map(|name| change(name, None, Some(&b""[..]))).collect();
    for changes in [&many[..], &[], &[many[0], many[0]], &[change("\n", None, None)]] {
        let refused = registration.change_documents(ada, changes).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    registration.change_documents(ada, &many[..8]).await.unwrap();

    // Bounds count what all of them add: there is room for one more of these, and not for two.
    let text = vec![b'x'; DOCUMENT_BYTES_MAX - 8];
    let names: Vec<String> = (0..15).map(|n| format!("long {n}")).collect();
    let long: Vec<_> = names.iter().map(|name| change(name, None, Some(text.as_slice()))).collect();
    registration.change_documents(ada, &long[..6]).await.unwrap();
    registration.change_documents(ada, &long[6..12]).await.unwrap();
    registration.change_documents(ada, &[long[12], long[13], long[14], many[8]]).await.unwrap();
    let half = ["x", "y"].map(|name| change(name, None, Some(&text[..8_192])));
    let refused = registration.change_documents(ada, &half).await.unwrap_err();
    assert!(refused.to_string().contains("262144 bytes"), "{refused}");
    registration.change_documents(ada, &half[..1]).await.unwrap();
}

#[tokio::test]
async fn nothing_is_told_of_a_conversation_that_is_muted_until_that_ends() {
    let options = tenant(40);
    let keeping = EngineSettings { keeps_notifications: true, ..small() };
    let engine = engine_with(options.clone(), keeping.clone()).await;
    let second = engine_with(options, keeping).await;
    let registration = registration_of(&engine).await;
    let [me, ben, cy] = accounts(&engine, 3).await[..] else { unreachable!() };
    let publish = async |author: AccountId, draft: Draft| {
        engine.settled(LONG, engine.publish(author, &draft)).await.unwrap().id
    };
    let told = async || {
        let reader = second.as_reader(me);
        let query = NotificationQuery::default();
        let page = reader.notifications(&query).await.unwrap();
        let shown: Vec<PostId> =
            page.notifications.iter().filter_map(|of| of.post.as_ref()).map(|post| post.id).collect();
        assert_eq!(reader.count_notifications(&query).await.unwrap(), page.notifications.len());
        shown
    };
    let root = publish(ben, Draft::text("low tide")).await;
    let mine = publish(me, Draft::text("so it is").reply_to(PostRef { id: root, author: ben })).await;
    let to_me = |text: &str| Draft::text(text).mentions([me]);
    let answer = publish(cy, to_me("is it?").reply_to(PostRef { id: mine, author: me })).await;
    let elsewhere = publish(cy, to_me("hey")).await;
    engine.settled(LONG, engine.like(ben, mine)).await.unwrap();
    assert_eq!(told().await, [mine, elsewhere, answer]);

    let shows = async |id: PostId| second.as_reader(me).post(id).await.unwrap();
    assert_eq!(shows(answer).await.conversation(), Some(root));
    assert_eq!(shows(root).await.conversation(), Some(root));
    registration.mute_conversation(me, root, true).await.unwrap();
    let later = publish(ben, to_me("yes").reply_to(PostRef { id: answer, author: cy })).await;
    let quote = PostRef { id: mine, author: me };
    let quote = publish(cy, Draft { repost_of: Some(quote), ..Draft::text("look") }).await;
    // A quote begins another one.
    assert_eq!(told().await, [quote, elsewhere]);
    for id in [root, mine, answer, later] {
        assert!(shows(id).await.is_conversation_muted, "{id}");
    }
    assert!(!shows(elsewhere).await.is_conversation_muted);
    let of_cy = second.as_reader(cy).post(root).await.unwrap();
    assert!(!of_cy.is_conversation_muted, "it is the reader's own affair");
    // Of a repost its original's, and timelines say so too.
    engine.follow(me, cy).await.unwrap();
    let repost = engine.repost(cy, root).await.unwrap().id;
    drained(&engine).await;
    let home = second.as_reader(me).read(&Query::home().hydrated()).await.unwrap();
    let on_page = |id| home.posts.iter().find(|post| post.id == id).unwrap();
    assert!(on_page(repost).is_conversation_muted && !on_page(quote).is_conversation_muted);
    assert!(on_page(mine).is_conversation_muted);

    registration.mute_conversation(me, root, false).await.unwrap();
    assert_eq!(told().await, [quote, later, mine, elsewhere, answer]);
    assert!(!shows(answer).await.is_conversation_muted);
    assert_eq!(registration.document(me, MUTED_CONVERSATIONS).await.unwrap(), None);
}

/// What a reader's home shows is told by looking at every post that was written.
struct Model {
    posts: BTreeMap<PostId, AccountId>,
    follows: BTreeSet<(AccountId, AccountId)>,
    left_out: BTreeSet<(AccountId, AccountId)>,
}

impl Model {
    fn home(&self, reader: AccountId) -> Vec<PostId> {
        let shows = |author: AccountId| {
            let pair = (reader, author);
            author == reader || (self.follows.contains(&pair) && !self.left_out.contains(&pair))
        };
        self.posts.iter().rev().filter(|(_, author)| shows(**author)).map(|(id, _)| *id).collect()
    }
}

#[tokio::test]
async fn homes_show_what_a_look_at_every_post_would() {
    let options = tenant(40);
    let engines = [engine_with(options.clone(), small()).await, engine_with(options, small()).await];
    let registration = registration_of(&engines[0]).await;
    let people = accounts(&engines[0], 6).await;
    let mut random = StdRng::seed_from_u64(seeded("left out").random());
    let mut model = Model { posts: BTreeMap::new(), follows: BTreeSet::new(), left_out: BTreeSet::new() };
    engines[0].set_way(people[5], Some(DeliveryWay::Pull)).await.unwrap();
    drained(&engines[0]).await;
    for _ in 0..30 {
        for _ in 0..6 {
            let engine = engines.choose(&mut random).unwrap();
            let [one, other] = [(); 2].map(|()| *people.choose(&mut random).unwrap());
            match random.random_range(0..7) {
                _ if one == other => {}
                0..=1 => {
                    engine.follow(one, other).await.unwrap();
                    model.follows.insert((one, other));
                }
                2 => {
                    engine.unfollow(one, other).await.unwrap();
                    model.follows.remove(&(one, other));
                }
                3..=4 => {
                    let is_left_out = !model.left_out.remove(&(one, other));
                    registration.leave_out(one, other, is_left_out).await.unwrap();
                    model.left_out.extend(is_left_out.then_some((one, other)));
                }
                _ => _ = model.posts.insert(post(engine, one).await, one),
            }
        }
        for engine in &engines {
            drained(engine).await;
        }
        let reader = *people.choose(&mut random).unwrap();
        let limit = random.random_range(1..9);
        for engine in &engines {
            assert_eq!(walk_home(engine, reader, limit).await, model.home(reader), "{reader}");
        }
    }
    assert!(model.posts.len() > 30 && !model.left_out.is_empty());
}
