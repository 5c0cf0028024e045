//! Profiles, and whom posts mention, where they come along with all that a client shows.

use tideline::post::{Draft, PostRef};
use tideline::profile::ProfileUpdate;
use tideline::registration::{Registration, RegistrationSettings};
use tideline::{
    Account, AccountId, Engine, EngineSettings, FindingKind, FsckOptions, ListQuery, PagePost, Query,
};

use super::{accounts, at_key, drained, engine, engine_with, small, tenant};

async fn name(engine: &Engine, accounts: &[AccountId]) {
    let registration = Registration::new(engine, RegistrationSettings::default()).await.unwrap();
    for (account, letter) in accounts.iter().zip('A'..) {
        let update = ProfileUpdate {
            display_name: Some(letter.into()),
            own_fields: Some(vec![("language".into(), "nl".into())]),
            ..ProfileUpdate::default()
        };
        registration.update_profile(*account, &update).await.unwrap();
    }
}

fn shown(account: &Account) -> String {
    let profile = account.profile.as_deref().expect("a profile");
    // What is nobody else's business stays where it is.
    assert_eq!(profile.own_fields, []);
    profile.display_name.clone()
}

fn shown_of<'a>(accounts: impl IntoIterator<Item = &'a std::sync::Arc<Account>>) -> String {
    accounts.into_iter().map(|account| shown(account)).collect()
}

fn author(post: &PagePost) -> String {
    shown(post.account.as_ref().unwrap())
}

#[tokio::test]
async fn everybody_whom_a_client_shows_comes_with_a_profile() {
    let settings = EngineSettings { shows_profiles: true, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let people = accounts(&engine, 7).await;
    let [a, b, c, d, e, f, hiding] = people[..] else { unreachable!() };
    name(&engine, &people).await;
    for (reader, author) in [(a, b), (f, a), (e, a)] {
        engine.follow(reader, author).await.unwrap();
    }
    let publish =
        async |author, draft: Draft| PostRef { id: engine.publish(author, &draft).await.unwrap().id, author };
    engine.hide_from(hiding, a).await.unwrap();
    let quoted = publish(d, Draft::text("first").mentions([e, hiding])).await;
    let quote = publish(c, Draft::text("look").quoting(quoted).mentions([f, hiding])).await;
    let repost = publish(b, Draft::repost(quote)).await;
    let said = publish(b, Draft::text("and you?").mentions([c, d])).await;
    let reply = publish(e, Draft::text("so").reply_to(said).mentions([b])).await;
    engine.like(f, said.id).await.unwrap();
    drained(&engine).await;

    let query = Query::home().hydrated().with_likers(5).with_replies(5);
    let page = engine.as_reader(a).read(&query).await.unwrap().posts;
    let [said_shown, reposted] = &page[..] else { panic!("{page:?}") };
    assert_eq!((said_shown.id, reposted.id), (said.id, repost.id));
    assert_eq!((author(said_shown), shown_of(&said_shown.mentioned)), ("B".into(), "CD".into()));
    assert_eq!(shown_of(&said_shown.likers), "F");
    assert_eq!((said_shown.replies[0].id, author(&said_shown.replies[0])), (reply.id, "E".into()));
    // A repost with what it reposts, and what that quotes.
    let original = reposted.original.as_ref().unwrap();
    assert_eq!((original.id, shown(&original.account)), (quote.id, "C".into()));
    // Who hides from the reader isn't met there either, nor below.
    assert_eq!(shown_of(&original.mentioned), "F");
    let of_quote = original.original.as_ref().unwrap();
    assert_eq!((of_quote.id, shown(&of_quote.account)), (quoted.id, "D".into()));
    assert_eq!((of_quote.post.content().text.as_str(), shown_of(&of_quote.mentioned)), ("first", "E".into()));
    assert_eq!(of_quote.original, None);

    // Lists and conversations too.
    let newest = ListQuery::default();
    // In the order of their own buckets' ticks: within a millisecond these say nothing about each other.
    let followers = shown_of(&engine.as_reader(b).followers(a, &newest).await.unwrap().accounts);
    assert!(["EF", "FE"].contains(&&*followers), "{followers}");
    assert_eq!(shown_of(&engine.as_reader(a).likers(said.id, &newest).await.unwrap().accounts), "F");
    let conversation = engine.as_reader(a).conversation(reply.id).await.unwrap();
    assert_eq!(author(&conversation.post) + &author(&conversation.ancestors[0]), "EB");
    assert_eq!(shown_of(&conversation.post.mentioned), "B");
    assert_eq!(
        shown_of(&engine.as_reader(a).quotes(quoted.id, &newest).await.unwrap().posts[0].mentioned),
        "F"
    );
    assert_eq!(shown(&engine.stored().account(c).await.unwrap()), "C");
    // Without posts there is nobody to show.
    let ids = engine.as_reader(a).read(&Query::home()).await.unwrap().posts;
    assert!(ids.iter().all(|post| post.account.is_none() && post.mentioned.is_empty()));
    assert_eq!(author(&engine.as_reader(a).post(said.id).await.unwrap()), "B");

    // What is changed shows; and an account that never said anything has an empty profile.
    name(&engine, &[c, b]).await;
    let nobody = accounts(&engine, 1).await[0];
    let plain = publish(nobody, Draft::text("hm")).await;
    assert_eq!(author(&engine.as_reader(a).post(repost.id).await.unwrap()), "B");
    assert_eq!(shown(&engine.as_reader(a).post(repost.id).await.unwrap().original.unwrap().account), "A");
    assert_eq!(author(&engine.as_reader(a).post(plain.id).await.unwrap()), "");
}

#[tokio::test]
async fn a_profile_that_cannot_be_read_says_nothing_and_fsck_says_so() {
    let settings = EngineSettings { shows_profiles: true, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let people = accounts(&engine, 1).await;
    name(&engine, &people).await;
    engine.publish(people[0], &Draft::text("hm")).await.unwrap();
    drained(&engine).await;
    at_key(&engine, 'y', people[0], "SET", &["12345678{"]).await;
    let page = engine.as_reader(people[0]).read(&Query::home().hydrated()).await.unwrap();
    assert_eq!(author(&page.posts[0]), "");
    let report = engine.fsck(&FsckOptions::default(), &|_| ()).await.unwrap();
    assert_eq!(report.findings[&FindingKind::Unreadable].found, 1, "{report:?}");
}

#[tokio::test]
async fn who_does_not_ask_for_profiles_pays_for_none() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    name(&engine, &people).await;
    let draft = Draft::text("hello").mentions([people[1]]);
    engine.publish(people[0], &draft).await.unwrap();
    drained(&engine).await;
    let page = engine.as_reader(people[1]).read(&Query::profile(people[0]).hydrated()).await.unwrap();
    assert_eq!(page.posts[0].account.as_ref().unwrap().profile, None);
    assert_eq!(page.posts[0].mentioned, []);
}
