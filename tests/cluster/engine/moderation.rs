//! Locked accounts that open up, what moderators say of posts, reports.

use std::time::Duration;

use tideline::cluster::{Command, Request};
use tideline::post::{Draft, Edit, PostRef, Visibility};
use tideline::{
    AccountId, AccountState, AccountUpdate, Engine, ErrorCode, ErrorKind, FollowOutcome, HiddenBecause,
    HomeVerdict, Moderation, NewAccount, NewReport, Query, REPORTS_OPEN_MAX, REPORTS_OPEN_OF_ONE_MAX,
    ReportCategory, ReportQuery,
};

use super::{a_millisecond, accounts, drained, engine, engine_with, small, tenant, walk_home};

async fn lock(engine: &Engine, account: AccountId, is_locked: bool) {
    let update = AccountUpdate { is_locked: Some(is_locked), ..AccountUpdate::default() };
    engine.update_account(account, &update).await.unwrap();
}

#[tokio::test]
async fn what_a_locked_account_posts_is_for_followers_unless_it_says_otherwise() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let (author, other) = (people[0], people[1]);
    let said = async |draft: Draft| {
        let id = engine.publish(author, &draft).await.unwrap().id;
        engine.stored().post(id).await.unwrap().unwrap().header().visibility
    };
    let seen = async || engine.as_reader(other).read(&Query::profile(author)).await.unwrap().posts.len();
    assert_eq!(said(Draft::text("open")).await, Visibility::Public);
    lock(&engine, author, true).await;
    assert_eq!(said(Draft::text("for followers")).await, Visibility::Followers);
    assert_eq!(said(Draft::text("all the same").visibility(Visibility::Public)).await, Visibility::Public);
    assert_eq!(said(Draft::text("quietly").visibility(Visibility::Unlisted)).await, Visibility::Unlisted);
    assert_eq!(seen().await, 3);
    lock(&engine, author, false).await;
    assert_eq!(said(Draft::text("open again")).await, Visibility::Public);
    assert_eq!(seen().await, 4);
}

#[tokio::test]
async fn whoever_waits_follows_once_the_account_opens_up_also_when_the_instance_is_killed() {
    let options = tenant(1_000);
    let engine = engine_with(options.clone(), small()).await;
    let people = accounts(&engine, 40).await;
    let shy =
        engine.create_account(NewAccount { is_locked: true, ..NewAccount::default() }).await.unwrap().value;
    for reader in &people {
        assert_eq!(engine.follow(*reader, shy).await.unwrap().value, FollowOutcome::Requested);
    }
    drained(&engine).await;
    assert_eq!(engine.stored().follow_requests(shy).await.unwrap().len(), people.len());
    assert_eq!(engine.stored().account(shy).await.unwrap().followers, 0);
    engine.unfollow(people[0], shy).await.unwrap();
    engine.reject(shy, people[1]).await.unwrap();
    // A change of something else lets nobody in.
    engine.update_account(shy, &AccountUpdate::default()).await.unwrap();
    lock(&engine, shy, true).await;
    drained(&engine).await;
    assert_eq!(engine.stored().account(shy).await.unwrap().followers, 0);
    lock(&engine, shy, false).await;
    // Whatever it was about to do.
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop(engine);

    let engine = engine_with(options, small()).await;
    drained(&engine).await;
    assert_eq!(engine.stored().follow_requests(shy).await.unwrap(), []);
    for (n, reader) in people.iter().enumerate() {
        assert_eq!(engine.stored().is_following(*reader, shy).await.unwrap(), n > 1, "{n}");
    }
    assert_eq!(engine.stored().account(shy).await.unwrap().followers, people.len() as u64 - 2);
    assert_eq!(engine.follow(people[0], shy).await.unwrap().value, FollowOutcome::Following);
}

#[tokio::test]
async fn what_a_moderator_hides_only_its_author_sees_and_no_edit_brings_it_back() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let (author, reader, other) = (people[0], people[1], people[2]);
    for followed in [author, other] {
        engine.follow(reader, followed).await.unwrap();
    }
    drained(&engine).await;
    let bad = engine.publish(author, &Draft::text("bad")).await.unwrap().id;
    let fine = engine.publish(author, &Draft::text("fine")).await.unwrap().id;
    a_millisecond(&engine).await;
    let repost = engine.publish(other, &Draft::repost(PostRef { id: bad, author })).await.unwrap().id;
    drained(&engine).await;
    assert_eq!(walk_home(&engine, reader, 10).await, [repost, fine, bad]);
    engine.moderate(bad, Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
    assert_eq!(walk_home(&engine, reader, 10).await, [fine]);
    assert_eq!(engine.as_reader(reader).read(&Query::profile(author)).await.unwrap().ids(), [fine]);
    assert_eq!(walk_home(&engine, author, 10).await, [fine, bad]);
    let verdicts = engine.inspect(reader).await.unwrap().page;
    assert!(
        verdicts.iter().any(|entry| entry.verdict == HomeVerdict::Hidden(HiddenBecause::HiddenByModerator))
    );
    let refused =
        engine.publish(reader, &Draft::text("so").reply_to(PostRef { id: bad, author })).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);

    engine.edit(author, bad, &Edit { text: Some("good".into()), ..Edit::default() }).await.unwrap();
    assert_eq!(walk_home(&engine, reader, 10).await, [fine]);
    engine.moderate(bad, Moderation { hidden: Some(false), sensitive: Some(true) }).await.unwrap();
    assert_eq!(walk_home(&engine, reader, 10).await, [repost, fine, bad]);
    let edit = Edit { sensitive: Some(false), ..Edit::default() };
    engine.edit(author, bad, &edit).await.unwrap();
    let post = engine.stored().post(bad).await.unwrap().unwrap();
    assert!(post.header().is_sensitive() && !post.header().is_hidden());
    assert_eq!(post.content().text, "good");
    engine.delete(author, bad).await.unwrap();
    let gone = engine.moderate(bad, Moderation::default()).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn reports_are_listed_newest_first_and_resolved() {
    let engine = engine().await;
    let people = accounts(&engine, 12).await;
    let moderator = people[0];
    let mut posts = Vec::new();
    for author in &people[..3] {
        posts.push(engine.publish(*author, &Draft::text("bad")).await.unwrap().id);
    }
    let report = |reporter: usize, target: usize| NewReport {
        reporter: people[reporter],
        target: people[target],
        posts: vec![posts[target]],
        category: ReportCategory::Spam,
        comment: format!("number {reporter}"),
        token: None,
    };
    let mut ids = Vec::new();
    for n in 2..12 {
        ids.insert(0, engine.report(&report(n, 1 + n % 2)).await.unwrap().value);
        // Ids of several buckets are ordered by their milliseconds.
        a_millisecond(&engine).await;
    }
    let list = async |query: ReportQuery| engine.reports(&query).await.unwrap().reports;
    let all = list(ReportQuery::default()).await;
    assert_eq!(all.iter().map(|report| report.id).collect::<Vec<_>>(), ids);
    assert_eq!((&all[0].report, all[0].resolved_by), (&report(11, 2), None));
    let mut paged = Vec::new();
    let mut query = ReportQuery { limit: Some(3), ..ReportQuery::default() };
    loop {
        let page = engine.reports(&query).await.unwrap();
        paged.extend(page.reports.into_iter().map(|report| report.id));
        query.before = page.older;
        if query.before.is_none() {
            break;
        }
    }
    assert_eq!(paged, ids);
    let about = list(ReportQuery { target: Some(people[1]), ..ReportQuery::default() }).await;
    assert!(about.len() == 5 && about.iter().all(|report| report.report.target == people[1]));

    for _ in 0..2 {
        engine.resolve_report(ids[4], moderator).await.unwrap();
    }
    assert_eq!(list(ReportQuery::default()).await.len(), 9);
    let resolved = list(ReportQuery { resolved: true, ..ReportQuery::default() }).await;
    assert_eq!((resolved.len(), resolved[0].id, resolved[0].resolved_by), (1, ids[4], Some(moderator)));
    engine.reopen_report(ids[4]).await.unwrap();
    let open = list(ReportQuery::default()).await;
    let told = |reports: &[tideline::Report]| -> Vec<_> {
        reports.iter().map(|report| (report.id, report.report.clone(), report.resolved_by)).collect()
    };
    assert_eq!(told(&open), told(&all));
    assert!(list(ReportQuery { resolved: true, ..ReportQuery::default() }).await.is_empty());

    let nobody = NewReport { target: AccountId::new(4_711).unwrap(), ..report(2, 1) };
    assert_eq!(engine.report(&nobody).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(engine.report(&report(1, 1)).await.unwrap_err().kind(), ErrorKind::Invalid);
    // Moderators go by what is reported: it is the target's.
    let of_another = NewReport { posts: vec![posts[1], posts[2]], ..report(3, 1) };
    assert_eq!(engine.report(&of_another).await.unwrap_err().kind(), ErrorKind::Invalid);
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(people[3], &suspended).await.unwrap();
    assert_eq!(engine.report(&report(3, 1)).await.unwrap_err().kind(), ErrorKind::Invalid);
}

/// An answer got lost, and the report was made again: it stood there twice.
#[tokio::test]
async fn a_report_that_is_made_again_with_its_token_is_one_report() {
    let engine = engine().await;
    let people = accounts(&engine, 4).await;
    let post = engine.publish(people[1], &Draft::text("bad")).await.unwrap().id;
    let of = |reporter: usize, target: usize, token: Option<&str>| NewReport {
        reporter: people[reporter],
        target: people[target],
        posts: Vec::new(),
        category: ReportCategory::Spam,
        comment: String::new(),
        token: token.map(str::to_owned),
    };
    let with_post = NewReport { posts: vec![post], ..of(0, 1, Some("form")) };
    let id = engine.report(&with_post).await.unwrap().value;
    assert_eq!(engine.report(&with_post).await.unwrap().value, id);
    // At the same time, here and there.
    let again = futures::future::join_all((0..8).map(|_| engine.report(&with_post))).await;
    assert!(again.into_iter().all(|again| again.unwrap().value == id));
    let raced = of(2, 1, Some("race"));
    let at_once = futures::future::join_all((0..8).map(|_| engine.report(&raced))).await;
    let ids: std::collections::BTreeSet<_> = at_once.into_iter().map(|one| one.unwrap().value).collect();
    assert_eq!(ids.len(), 1);
    // Another token, another reporter, another target, no token: another report.
    let mut all: std::collections::BTreeSet<_> = ids.into_iter().chain([id]).collect();
    for other in [of(0, 1, Some("other")), of(2, 1, Some("form")), of(0, 2, Some("form")), of(0, 1, None)] {
        assert!(all.insert(engine.report(&other).await.unwrap().value), "{other:?}");
    }
    assert!(all.insert(engine.report(&of(0, 1, None)).await.unwrap().value));
    let listed = engine.reports(&ReportQuery::default()).await.unwrap();
    assert_eq!((listed.reports.len(), listed.older), (all.len(), None));

    // A repeat doesn't depend on what has become of anything since.
    engine.resolve_report(id, people[3]).await.unwrap();
    engine.delete(people[1], post).await.unwrap();
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(people[0], &suspended).await.unwrap();
    engine.delete_account(people[1]).await.unwrap();
    drained(&engine).await;
    assert_eq!(engine.report(&with_post).await.unwrap().value, id);
    assert_eq!(engine.report(&of(0, 1, Some("new"))).await.unwrap_err().kind(), ErrorKind::Invalid);
    let left = engine.reports(&ReportQuery::default()).await.unwrap().reports;
    assert!(left.len() == all.len() - 1 && left.iter().all(|report| report.id != id), "{left:?}");
    for token in ["", &"t".repeat(65)] {
        let error = engine.report(&of(2, 3, Some(token))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

/// Of an account whose bucket had many newer reports about others no page ever showed one: pages were filtered after
/// they were cut, and an empty one was the end.
#[tokio::test]
async fn a_page_of_reports_is_full_or_says_where_older_ones_are() {
    let engine = engine().await;
    let moderator = accounts(&engine, 1).await[0];
    let keys = engine.store().keys();
    let (buckets, mut ids) = (keys.buckets(), 5_000_000..);
    let bucket = buckets.get(3).unwrap();
    let mut beside = async || {
        let id = ids.find(|id| buckets.of_account(*id) == bucket).map(|id| AccountId::new(id).unwrap());
        let new = NewAccount { id, ..NewAccount::default() };
        engine.create_account(new).await.unwrap();
        id.unwrap()
    };
    let (quiet, loud) = (beside().await, beside().await);
    let of = |target| NewReport {
        reporter: moderator,
        target,
        posts: Vec::new(),
        category: ReportCategory::Other,
        comment: String::new(),
        token: None,
    };
    let mut wanted = Vec::new();
    for _ in 0..3 {
        wanted.insert(0, engine.report(&of(quiet)).await.unwrap().value);
    }
    let first = engine.report(&of(loud)).await.unwrap().value;
    let key = format!("{}{{{}}}b", keys.prefix(), buckets.tag(bucket));
    let slot = buckets.slot(bucket);
    let get = Command::new("HGET").arg(&key).arg(&first.get().to_be_bytes());
    let stored = engine.store().router().call(Request::read(slot, get)).await.unwrap();
    let stored = stored.bytes().unwrap();
    // More than may be open, as many as moderators have opened again.
    let add_newer = async |from: u64, many: u64| {
        let add = (from..from + many).fold(Command::new("HSET").arg(&key), |command, n| {
            // A millisecond apart.
            command.arg(&(first.get() + (n << 16)).to_be_bytes()).arg(stored)
        });
        engine.store().router().call(Request::write(slot, add)).await.unwrap();
    };
    add_newer(1, 600).await;
    let page = async |before, limit| {
        let query = ReportQuery { target: Some(quiet), before, limit: Some(limit), ..ReportQuery::default() };
        let list = engine.reports(&query).await.unwrap();
        (list.reports.iter().map(|report| report.id).collect::<Vec<_>>(), list.older)
    };
    let (found, older) = page(None, 2).await;
    assert_eq!((found.as_slice(), older), (&wanted[..2], Some(wanted[1])));
    assert_eq!(page(older, 2).await, (wanted[2..].to_vec(), None));
    assert_eq!(page(None, 3).await, (wanted.clone(), None));

    // So many that no page goes through all of them: it says where to go on.
    add_newer(601, 2_000).await;
    let (mut found, mut older) = page(None, 2).await;
    assert!(found.is_empty() && older.is_some(), "{found:?}, {older:?}");
    while older.is_some() {
        let (more, next) = page(older, 2).await;
        assert!(next < older, "{next:?} is not below {older:?}");
        (older, found) = (next, [found, more].concat());
    }
    assert_eq!(found, wanted);
}

/// One reporter doesn't fill the list; one report that is resolved makes room for another.
#[tokio::test]
async fn open_reports_are_bounded_and_so_are_those_of_one_reporter() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let mut open = Vec::new();
    let (moderator, target) = (people[0], people[1]);
    let report = async |reporter| engine.report(&bare_report(reporter, target)).await.map(|made| made.value);
    for _ in 0..REPORTS_OPEN_OF_ONE_MAX {
        open.push(report(people[0]).await.unwrap());
    }
    for _ in 0..2 {
        let one = open[0];
        assert_eq!(report(people[0]).await.unwrap_err().code(), ErrorCode::LimitReached);
        engine.resolve_report(one, moderator).await.unwrap();
        open.push(report(people[0]).await.unwrap());
        assert_eq!(report(people[0]).await.unwrap_err().code(), ErrorCode::LimitReached);
        engine.reopen_report(one).await.unwrap();
        // One too many, for a moderator has said so; two that are resolved make room for one.
        for id in open.drain(1..3) {
            engine.resolve_report(id, moderator).await.unwrap();
        }
        open.push(report(people[0]).await.unwrap());
    }
}

/// Fifty accounts had everybody else refused (H159).
#[tokio::test]
async fn many_accounts_keep_nobody_else_from_reporting() {
    let engine = engine().await;
    let full = REPORTS_OPEN_MAX as usize;
    let people = accounts(&engine, 2 + full / REPORTS_OPEN_OF_ONE_MAX as usize).await;
    let (newcomer, target, crowd) = (people[0], people[1], &people[2..]);
    let report = async |reporter| engine.report(&bare_report(reporter, target)).await.map(|made| made.value);
    for reporter in crowd {
        for _ in 0..REPORTS_OPEN_OF_ONE_MAX {
            report(*reporter).await.unwrap();
        }
    }
    let open = async || {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let query =
                ReportQuery { target: Some(target), before, limit: Some(100), ..ReportQuery::default() };
            let page = engine.reports(&query).await.unwrap();
            all.extend(page.reports.into_iter().map(|report| (report.id, report.report.reporter)));
            before = page.older;
            if before.is_none() {
                return all;
            }
        }
    };
    let before = open().await;
    assert_eq!(before.len(), full);
    let made = report(newcomer).await.unwrap();
    // The newest of all, whose reporter had as many as every other one.
    let mut after = vec![(made, newcomer)];
    after.extend_from_slice(&before[1..]);
    assert_eq!(open().await, after);
    // Its reporter's number is right: it has room for one, if there is any.
    engine.resolve_report(before[1].0, newcomer).await.unwrap();
    report(before[0].1).await.unwrap();
    // Until they are about even: then somebody who has as many is refused, and somebody who has fewer is not.
    let refused = loop {
        if let Err(refused) = report(newcomer).await {
            break refused;
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
    let has = open().await.iter().filter(|(_, reporter)| *reporter == newcomer).count();
    assert_eq!(has, REPORTS_OPEN_OF_ONE_MAX as usize - 1);
    report(accounts(&engine, 1).await[0]).await.unwrap();
    assert_eq!(open().await.len(), full);
}

/// As many newer ones are resolved as there may be: the one that is resolved now stays, though it is the oldest.
#[tokio::test]
async fn what_is_resolved_last_stays_however_old_it_is() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let report = async || engine.report(&bare_report(people[0], people[1])).await.unwrap().value;
    let oldest = report().await;
    for _ in 0..REPORTS_OPEN_MAX {
        let id = report().await;
        engine.resolve_report(id, people[1]).await.unwrap();
    }
    engine.resolve_report(oldest, people[1]).await.unwrap();
    engine.reopen_report(oldest).await.unwrap();
}

pub(super) fn bare_report(reporter: AccountId, target: AccountId) -> NewReport {
    NewReport {
        reporter,
        target,
        posts: Vec::new(),
        category: ReportCategory::Spam,
        comment: String::new(),
        token: None,
    }
}

/// Where nothing was to change nothing was written: a copy of the opposite that lay in a frozen server's socket was run
/// after that was acknowledged.
#[tokio::test]
async fn what_is_so_already_is_written_again() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let post = engine.publish(people[1], &Draft::text("fine")).await.unwrap().id;
    let report = engine.report(&bare_report(people[0], people[1])).await.unwrap().value;
    let keys = engine.store().keys();
    let bucket = keys.buckets().of_account(people[1].get());
    let tag = format!("{}{{{}}}", keys.prefix(), keys.buckets().tag(bucket));
    let ask = async |command: Command| {
        let request = Request::read(keys.buckets().slot(bucket), command);
        engine.store().router().call(request).await.unwrap().bytes().unwrap().to_vec()
    };
    let stamp_of_post = async || {
        let key = [format!("{tag}w").as_bytes(), &post.get().to_be_bytes()].concat();
        ask(Command::new("GETRANGE").arg(&key).arg("80").arg("83")).await
    };
    let before = stamp_of_post().await;
    engine.moderate(post, Moderation { hidden: Some(false), sensitive: None }).await.unwrap();
    assert_ne!(stamp_of_post().await, before);

    for (letter, is_resolved) in [('b', false), ('B', true)] {
        let change = async || match is_resolved {
            true => engine.resolve_report(report, people[0]).await.unwrap(),
            false => engine.reopen_report(report).await.unwrap(),
        };
        let stamp = async || {
            let key = format!("{tag}{letter}");
            ask(Command::new("HGET").arg(&key).arg(&report.get().to_be_bytes())).await[..8].to_vec()
        };
        change().await;
        let before = stamp().await;
        change().await;
        assert_ne!(stamp().await, before, "{letter}");
    }
}

/// An edit could still be made while its author's posts were taken off the lists that they had been read to be on.
#[tokio::test]
async fn whoever_may_not_post_may_not_edit() {
    let engine = engine().await;
    let author = accounts(&engine, 1).await[0];
    let post = engine.publish(author, &Draft::text("one")).await.unwrap().id;
    let edit = async || {
        let edit = Edit { hashtags: Some(vec!["new".into()]), ..Edit::default() };
        engine.edit(author, post, &edit).await.map(drop).map_err(|e| e.kind())
    };
    let is = async |state| {
        let update = AccountUpdate { state: Some(state), ..AccountUpdate::default() };
        engine.update_account(author, &update).await.unwrap();
    };
    is(AccountState::Suspended).await;
    assert_eq!(edit().await, Err(ErrorKind::Invalid));
    is(AccountState::Limited).await;
    assert_eq!(edit().await, Ok(()));
    drained(&engine).await;
}

#[tokio::test]
async fn an_error_tells_nothing_of_a_post_that_is_hidden() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let secret = Draft::text("s").visibility(Visibility::Direct).mentions([people[2]]);
    let secret = engine.publish(people[0], &secret).await.unwrap().id;
    let gone = engine.publish(people[0], &Draft::text("g")).await.unwrap().id;
    engine.delete(people[0], gone).await.unwrap();
    let said = async |post| {
        let like = engine.like(people[1], post).await.unwrap_err();
        let edit = engine.edit(people[1], post, &Edit::default()).await.unwrap_err();
        let replies = engine.as_reader(people[1]).read(&Query::replies(post)).await.unwrap_err();
        [like, edit, replies].map(|e| e.to_string().replace(&post.to_string(), "_"))
    };
    let of_secret = said(secret).await;
    assert_eq!(of_secret, said(gone).await);
    assert!(of_secret.iter().all(|text| *text == of_secret[0]), "{of_secret:?}");
}
