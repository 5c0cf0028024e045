//! A tenant that the program before the crates wrote (6492ae9): `tests/fixtures/tenant-0.1.dump` holds the DUMP of each
//! key, `tenant-0.1.txt` what could be seen of it then. It is read, changed, checked, and read again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use tideline::cluster::{Command, Request, Router};
use tideline::keys::slot_of_key;
use tideline::post::{Draft, Edit, Tag};
use tideline::registration::{Name, Registration, RegistrationSettings};
use tideline::sharded::SetSettings;
use tideline::{
    AccountId, AccountList, DeliveryWay, Engine, EngineSettings, FsckOptions, ListQuery, PagePost, Query,
    Report, ReportQuery, StoreOptions,
};

use super::{drained, engine_with, small};
use crate::harness::{options, shared};

/// Accounts by their ids: these do things, those of 100 and more follow.
const ADA: u64 = 1;
const BEN: u64 = 2;
const CY: u64 = 3;
/// Locked.
const DEE: u64 = 4;
/// Pulled.
const EVE: u64 = 5;
const ALL: [u64; 5] = [ADA, BEN, CY, DEE, EVE];

fn id(n: u64) -> AccountId {
    AccountId::new(n).unwrap()
}

fn old() -> (StoreOptions, EngineSettings) {
    let sets = SetSettings { piece_limit: Some(16), spread_at: Some(20), ..SetSettings::default() };
    let store = StoreOptions { prefix: "old:".to_owned(), sets, ..options(shared()) };
    (store, EngineSettings { mentions_max: 20, ..small() })
}

fn cheap() -> RegistrationSettings {
    RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() }
}

fn texts(posts: &[PagePost]) -> Vec<String> {
    let text = |post: &PagePost| {
        let Some(full) = &post.post else { return format!("bare by {}", post.author) };
        let (header, content) = (full.header(), full.content());
        let original = post.original.as_ref().map(|passed| format!(" [{}]", passed.post.content().text));
        format!(
            "{}{} by {} {:?} rev{} likes{} reposts{} replies{} quotes{}{}",
            content.text,
            original.unwrap_or_default(),
            post.author,
            header.visibility,
            header.revision,
            header.likes,
            header.reposts,
            header.replies,
            header.quotes,
            post.ties.map(|ties| format!(" {ties:?}")).unwrap_or_default(),
        )
    };
    posts.iter().map(text).collect()
}

/// All that can be seen of the tenant, in words.
async fn look(engine: &Engine) -> String {
    let mut seen = String::new();
    let registration = Registration::new(engine, cheap()).await.unwrap();
    let people = |list: AccountList| {
        let mut ids: Vec<u64> = list.accounts.iter().map(|account| account.id.get()).collect();
        ids.sort_unstable();
        ids
    };
    let all = ListQuery::default().limit(80);
    for n in ALL {
        let (account, say) = (id(n), &mut seen);
        let reader = engine.as_reader(account);
        let record = engine.stored().account(account).await.unwrap();
        writeln!(
            say,
            "account {n}: {:?} {:?} locked {} {:?}",
            record.kind, record.state, record.is_locked, record.mode
        )
        .unwrap();
        let counts = (record.posts, record.following, record.followers, record.blocks, record.hides);
        writeln!(say, "  counts {counts:?} login {:?}", record.login).unwrap();
        for (name, query) in [
            ("home", Query::home()),
            ("mentions", Query::mentions()),
            ("profile of 1", Query::profile(id(ADA))),
            ("profile of 4", Query::profile(id(DEE))),
            ("profile of 5", Query::profile(id(EVE))),
            ("tag", Query::tag(Tag::new("tide").unwrap())),
        ] {
            let page = reader.read(&query.limit(40).hydrated().with_ties()).await.unwrap();
            writeln!(say, "  {name}: {:#?}", texts(&page.posts)).unwrap();
        }
        writeln!(say, "  follows {:?}", people(reader.following(account, &all).await.unwrap())).unwrap();
        writeln!(say, "  followed by {:?}", people(reader.followers(account, &all).await.unwrap())).unwrap();
        writeln!(say, "  mutes {:?}", people(reader.mutes(&all).await.unwrap())).unwrap();
        writeln!(say, "  blocks {:?}", people(reader.blocks(&all).await.unwrap())).unwrap();
        writeln!(say, "  hides from {:?}", people(reader.hides(&all).await.unwrap())).unwrap();
        writeln!(say, "  asked by {:?}", people(reader.follow_requests(&all).await.unwrap())).unwrap();
        writeln!(say, "  asks {:?}", people(reader.requested(&all).await.unwrap())).unwrap();
        writeln!(say, "  likes {:#?}", texts(&reader.likes(&all).await.unwrap().posts)).unwrap();
        writeln!(say, "  keeps {:#?}", texts(&reader.bookmarks(&all).await.unwrap().posts)).unwrap();
    }
    let names = [Name::Login("ADA".into()), Name::Email("ada@example.org".into()), Name::Login("ben".into())];
    let found = registration.find(&names).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|found| found.map(|account| account.id)).collect();
    writeln!(seen, "names {found:?}").unwrap();
    let ada = registration.check("ada", "correct horse").await.unwrap().map(|account| account.id);
    let profile = format!("{:?}", registration.profile(ada.unwrap()).await.unwrap());
    // It is newer than that release.
    let profile = profile.replace(" shown_fields: [],", "");
    writeln!(seen, "password of {ada:?}; profile {profile}").unwrap();
    for resolved in [false, true] {
        let list = engine.reports(&ReportQuery { resolved, ..ReportQuery::default() }).await.unwrap();
        let told = |report: &Report| {
            format!(
                "{:?} about {} by {}",
                report.report.category, report.report.target, report.report.reporter
            )
        };
        writeln!(
            seen,
            "reports, resolved {resolved}: {:?}",
            list.reports.iter().map(told).collect::<Vec<_>>()
        )
        .unwrap();
    }
    seen
}

/// Brings the keys back, on whichever servers.
async fn restore(router: &Router) -> BTreeSet<char> {
    let mut rest = &include_bytes!("../../fixtures/tenant-0.1.dump")[..];
    let mut part = || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (part, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
        rest = behind;
        Some(part)
    };
    let mut letters = BTreeSet::new();
    while let (Some(key), Some(dump)) = (part(), part()) {
        let (letter, _) = super::letter_and_name(key);
        // A DUMP doesn't say until when: tokens and what fences write end after a day.
        let ttl = if "kKf".contains(letter) { "86400000" } else { "0" };
        let command = Command::new("RESTORE").arg(key).arg(ttl).arg(dump).arg("REPLACE");
        router.call(Request::write(slot_of_key(key), command)).await.unwrap();
        letters.insert(letter);
    }
    letters
}

/// Kinds of keys that it knows nothing of: what doesn't last, remarks, the archive's agenda, documents, tickets,
/// counters, inboxes, public posts, lists of names, roles and invitations of groups.
const NEWER: &str = "gjuvRMNFVXCGIQWJ";

#[tokio::test]
async fn a_tenant_of_the_release_before_is_read_changed_checked_and_read_again() {
    let (options, settings) = old();
    let router =
        Router::connect(&options.seeds, &options.prefix, options.router.clone(), None).await.unwrap();
    let letters = restore(&router).await;
    // All but what stands there only while something is under way (copies, tasks, approvals, who lives), and
    // newer kinds.
    let page = include_str!("../../../docs/keys.md");
    let all: BTreeSet<char> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `P{"))
        .flat_map(|line| line.split('`').next().unwrap_or_default().chars().skip_while(|c| *c != '}').nth(1))
        .collect();
    let lasting: BTreeSet<char> = all.difference(&NEWER.chars().collect()).copied().collect();
    assert!(lasting.len() > 20 && lasting.is_subset(&letters), "{lasting:?}, {letters:?}");

    let engine = engine_with(options, settings).await;
    let late = async || {
        let query = Query::profile(id(ADA)).limit(40).hydrated();
        let page = engine.as_reader(id(BEN)).read(&query).await.unwrap();
        let is_late = |post: &&PagePost| post.post.as_ref().unwrap().content().text.starts_with("late ");
        page.posts.iter().filter(is_late).map(|post| post.id).collect::<Vec<_>>()
    };
    let posts = late().await;
    assert_eq!(posts.len(), 20);
    // What came after the look that is written down goes, and what was so comes back.
    for post in posts {
        engine.delete(id(ADA), post).await.unwrap();
    }
    engine.unfollow(id(CY), id(EVE)).await.unwrap();
    drained(&engine).await;
    assert_eq!(late().await, []);
    let seen = look(&engine).await;
    let before = include_str!("../../fixtures/tenant-0.1.txt");
    for (n, (before, now)) in before.lines().zip(seen.lines()).enumerate() {
        assert_eq!(before, now, "line {}", n + 1);
    }
    assert_eq!(before.lines().count(), seen.lines().count(), "{seen}");
    let is_clean = async || {
        let fsck = FsckOptions { pause: Duration::from_millis(50), ..FsckOptions::default() };
        let report = engine.fsck(&fsck, &|_| {}).await.unwrap();
        assert!(report.is_clean(), "{report:#?}");
    };
    is_clean().await;

    // Each kind of change, on top of what is there.
    let first = engine.as_reader(id(BEN)).bookmarks(&ListQuery::default()).await.unwrap().posts[0].id;
    engine.unlike(id(BEN), first).await.unwrap();
    engine.unbookmark(id(BEN), first).await.unwrap();
    engine.undo_repost(id(BEN), first).await.unwrap();
    engine.unmute(id(BEN), id(CY)).await.unwrap();
    engine.approve(id(DEE), id(BEN)).await.unwrap();
    engine.unfollow(id(CY), id(ADA)).await.unwrap();
    engine.set_way(id(EVE), Some(DeliveryWay::Push)).await.unwrap();
    engine
        .edit(id(ADA), first, &Edit { text: Some("first, edited".into()), ..Edit::default() })
        .await
        .unwrap();
    let registration = Registration::new(&engine, cheap()).await.unwrap();
    let ada = registration.id_of("ada").await.unwrap();
    registration.set_login(ada, "countess").await.unwrap();
    engine.publish(id(DEE), &Draft::text("now you see me")).await.unwrap();
    drained(&engine).await;
    engine.count_now().await;
    is_clean().await;
    let home = engine.as_reader(id(BEN)).read(&Query::home().hydrated()).await.unwrap();
    let home = texts(&home.posts).concat();
    assert!(home.contains("now you see me") && home.contains("hey 25"), "{home}");
    let post = engine.stored().post(first).await.unwrap().unwrap();
    let counts = (post.header().likes, post.header().reposts, post.header().replies, post.header().quotes);
    assert_eq!((post.content().text.as_str(), counts), ("first, edited", (40, 0, 1, 1)));
    assert_eq!(registration.id_of("countess").await.unwrap(), ada);
    assert!(!engine.stored().is_following(id(CY), id(ADA)).await.unwrap());
}
