//! What moderators get of a report, whatever has become of what it is about, and of the server where that lies.

use tideline::post::{Draft, Edit};
use tideline::sharded::SetSettings;
use tideline::{AccountId, Error, ErrorKind, NewReport, PostExcerpt, ReportQuery};

use super::away::{engine_on, servers, split};
use super::moderation::bare_report;
use super::{accounts, drained, engine};
use crate::harness::eventually;

/// Somebody was reported, and changed or deleted what was said before a moderator looked: nothing spoke against it.
#[tokio::test]
async fn a_report_keeps_what_was_said_whatever_its_author_does_then() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let (ada, ben, moderator) = (people[0], people[1], people[2]);
    let said = async |text: &str| engine.publish(ben, &Draft::text(text)).await.unwrap().id;
    let (changed, gone) = (said("I know where you live").await, said("and when you sleep").await);
    let report = NewReport { posts: vec![changed, gone], ..bare_report(ada, ben) };
    let id = engine.report(&report).await.unwrap().value;
    engine.edit(ben, changed, &Edit { text: Some("kittens".into()), ..Edit::default() }).await.unwrap();
    engine.delete(ben, gone).await.unwrap();
    let excerpt = |post, text: &str| PostExcerpt { post, text: text.into() };
    let kept = [excerpt(changed, "I know where you live"), excerpt(gone, "and when you sleep")];
    assert_eq!(engine.find_report(id).await.unwrap().excerpts, kept);
    // Whoever decides on it, and the account's end, change nothing of that.
    engine.resolve_report(id, moderator).await.unwrap();
    engine.reopen_report(id).await.unwrap();
    engine.delete_account(ben).await.unwrap();
    drained(&engine).await;
    let listed = engine.reports(&ReportQuery::default()).await.unwrap();
    assert_eq!((listed.reports.len(), listed.lacks_some), (1, false));
    assert_eq!(listed.reports[0].excerpts, kept);
}

/// While one server was away moderators saw nothing at all of their queue.
#[tokio::test]
async fn moderators_see_what_waits_while_a_server_is_away() {
    let cluster = servers().await;
    let engine = engine_on(&cluster, SetSettings::default()).await;
    let people = accounts(&engine, 20).await;
    let server = engine.store().router().primaries()[2].clone();
    let (there, living) = split(&engine, &people, &server);
    let there_too = engine.report(&bare_report(living[0], there[0])).await.unwrap().value;
    let seen = engine.report(&bare_report(living[0], living[1])).await.unwrap().value;
    let list = async |target: Option<AccountId>| {
        let page = engine.reports(&ReportQuery { target, ..ReportQuery::default() }).await?;
        let mut ids: Vec<_> = page.reports.iter().map(|report| report.id).collect();
        ids.sort_unstable();
        Ok::<_, Error>((ids, page.lacks_some))
    };
    let mut both = vec![there_too, seen];
    both.sort_unstable();
    assert_eq!(list(None).await.unwrap(), (both.clone(), false));
    cluster.node(&server).unwrap().freeze().unwrap();
    assert_eq!(list(None).await.unwrap(), (vec![seen], true));
    assert_eq!(list(Some(living[1])).await.unwrap(), (vec![seen], false));
    assert_eq!(list(Some(there[0])).await.unwrap_err().kind(), ErrorKind::Unavailable);
    engine.resolve_report(seen, living[2]).await.unwrap();
    // Nothing that shows is not nothing that waits.
    assert_eq!(list(None).await.unwrap_err().kind(), ErrorKind::Unavailable);
    cluster.node(&server).unwrap().thaw().unwrap();
    // It is asked again once it has answered somebody.
    eventually("the list is whole again", async || {
        list(None).await.is_ok_and(|list| list == (vec![there_too], false))
    })
    .await;
}
