//! The forms in which public types serialize. Others store them, so they stay: tests/public_types.json keeps some of
//! each, and a public type that isn't there needs a sentence that says why.
//!
//! A form may grow: by fields that may be missing, by variants. `TIDELINE_WRITE_FORMS=1` writes the file anew; look at
//! what changed.

#![cfg(feature = "registration")]

mod without;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::archive::ArchiveName;
use crate::cluster::{Finding, NodeAddr, Replicas, Severity};
use crate::post::{Draft, Edit, Post, PostRef, SearchWords, Tag, Visibility};
use crate::profile::ProfileUpdate;
use crate::registration::RegisteredAccount;
use crate::sharded::Order;
use crate::{
    Account, AccountId, AccountKind, AccountLimit, AccountList, AccountState, AccountUpdate, Acknowledge,
    ArchivedCount, ArchivedNow, ChatList, ChatQuery, ChosenAuthors, ChosenReplies, Conversation, Cursor,
    Decision, Delivery, DeliveryProgress, DeliveryWay, Error, ErrorCode, ErrorKind, FollowOutcome,
    FsckProgress, FsckReport, FurtherTags, GroupRole, Health, HiddenBecause, ImportedEdge, ImportedPost,
    IndexedNow, ListCursor, ListQuery, Mode, ModeState, Moderation, NewAccount, NewReport, Notification,
    NotificationId, NotificationKind, NotificationPage, NotificationQuery, OwnLimits, Page, PagePost,
    PassedOn, PostAck, PostExcerpt, PostId, PostList, PostsById, Profile, PublishedPost, Query, Range,
    RankedCursor, RankedFeed, RankedPage, RankedQuery, ReaderTies, Receipt, Relationship, Report,
    ReportCategory, ReportId, ReportList, ReportQuery, RestoredPosts, ShownChat, SpamJudge, TenantArchive,
    TenantSettings, Timeline,
};
use without::WITHOUT;

/// The files in which public types are named.
const NAMED_IN: [&str; 11] = [
    "src/lib.rs",
    "src/account.rs",
    "src/profile.rs",
    "src/keys.rs",
    "src/post/mod.rs",
    "src/registration/mod.rs",
    "src/sharded/mod.rs",
    "crates/tideline-model/src/ids.rs",
    "crates/tideline-model/src/error.rs",
    "crates/tideline-model/src/bucket.rs",
    "crates/tideline-router/src/lib.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Values by their types' names.
#[derive(Default)]
struct Forms(BTreeMap<String, Vec<Value>>);

impl Forms {
    fn add<T: Serialize>(&mut self, value: &T) {
        let name = std::any::type_name::<T>().split('<').next().unwrap_or_default();
        let name = name.rsplit("::").next().unwrap_or_default().to_owned();
        self.0.entry(name).or_default().push(serde_json::to_value(value).unwrap());
    }

    /// Adds a value that can be read, too, and is the same then.
    fn both<T: Serialize + DeserializeOwned>(&mut self, value: &T) {
        let written = serde_json::to_value(value).unwrap();
        let read: T = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), written);
        self.add(value);
    }

    fn all<T: Serialize + DeserializeOwned>(&mut self, values: impl IntoIterator<Item = T>) {
        values.into_iter().for_each(|value| self.both(&value));
    }
}

fn account_id(id: u64) -> AccountId {
    AccountId::new(id).unwrap()
}

/// No double holds it.
fn post_id() -> PostId {
    PostId::from_u64((1 << 62) + 1).unwrap()
}

fn account() -> Account {
    let mut profile = Profile::default();
    (profile.display_name, profile.bio) = ("Ada L.".into(), "Tides".into());
    profile.fields = vec![("home".into(), "by the sea".into())];
    Account {
        id: account_id(7),
        kind: AccountKind::Person,
        state: AccountState::Active,
        is_locked: true,
        mode: Mode::Pull,
        pushed_since: 5,
        posts: 4,
        following: 3,
        followers: 2,
        login: Some("ada".into()),
        registered_ms: Some(1_700_000_000_000),
        profile: Some(Box::new(profile)),
        uncounted_since: Some(1),
        blocks: 1,
        hides: 1,
    }
}

fn draft() -> Draft {
    let parent = PostRef { id: post_id(), author: account_id(8) };
    let draft = Draft::text("Low tide at noon").content_warning("tides").sensitive().language("en");
    let draft = draft.visibility(Visibility::Unlisted).not_to([account_id(9)]).reply_to(parent);
    let draft = draft.mentions([account_id(8)]).hashtags(["Tide"]).conversation(post_id()).token("form-1");
    draft.attachments([0xff, 1]).location(*b"shore").field("mood", *b"calm")
}

fn page_post() -> PagePost {
    let (post, ada) = (Arc::new(Post::new(account_id(7), &draft())), Arc::new(account()));
    let quoted = PassedOn {
        id: post_id(),
        post: post.clone(),
        account: ada.clone(),
        writer: Some(ada.clone()),
        mentioned: vec![ada.clone()],
        original: None,
    };
    let ties = ReaderTies { is_liked: true, is_bookmarked: false, repost: Some(post_id()) };
    PagePost {
        post: Some(post),
        account: Some(ada.clone()),
        mentioned: vec![ada.clone()],
        original: Some(Box::new(quoted)),
        ties: Some(ties),
        likers: vec![ada],
        replies: vec![PagePost::bare(PostRef { id: post_id(), author: account_id(8) })],
        ..PagePost::bare(PostRef { id: post_id(), author: account_id(7) })
    }
}

fn chats(forms: &mut Forms) {
    forms.all([ChatQuery::default(), ChatQuery { max_id: Some(post_id()), ..ChatQuery::default() }]);
    let (others, last) = (vec![Arc::new(account())], Some(page_post()));
    let chat = ShownChat { id: account_id(9), others, last, unread: 2, is_request: true };
    forms.add(&chat);
    forms.add(&ChatList { chats: vec![chat], older: Some(post_id()), newer: None, lacks_archive: true });
}

fn accounts_and_posts(forms: &mut Forms) {
    forms.all([
        ReportCategory::Spam,
        ReportCategory::Legal,
        ReportCategory::Violation,
        ReportCategory::Held,
        ReportCategory::Limit,
        ReportCategory::Other,
    ]);
    forms.all(AccountLimit::ALL);
    forms.both(&OwnLimits::default());
    forms.both(&OwnLimits { posts: Some(9), followed_accounts: Some(5_000), ..OwnLimits::default() });
    forms.all([account_id(1), account_id(i64::MAX as u64)]);
    forms.both(&post_id());
    forms.all([AccountKind::Person, AccountKind::Group, AccountKind::Announcement, AccountKind::Chat]);
    forms.all([
        AccountState::Active,
        AccountState::Limited,
        AccountState::Suspended,
        AccountState::Deleted,
        AccountState::Unconfirmed,
        AccountState::Waiting,
    ]);
    forms.all([Mode::Push, Mode::Promoting, Mode::Pull]);
    forms.add(&account());
    let id = Some(account_id(7));
    forms.all([
        NewAccount { id, is_locked: true, registered_ms: Some(1_700_000_000_000), ..NewAccount::default() },
        NewAccount::default(),
    ]);
    forms.both(&AccountUpdate { is_locked: Some(false), ..AccountUpdate::default() });
    forms.both(account().profile.as_deref().unwrap());
    forms.both(&ProfileUpdate { bio: Some("Sea".into()), ..ProfileUpdate::default() });
    forms.both(&RegisteredAccount { id: account_id(7), is_repeat: false, reached: Acknowledge::Replicated });
    forms.all([draft(), Draft::repost(PostRef { id: post_id(), author: account_id(7) })]);
    let edit =
        Edit { location: Some(vec![1]), fields: Some(vec![("mood".into(), vec![2])]), ..Edit::default() };
    forms.all([
        Edit::default(),
        Edit { content_warning: Some(None), language: Some(Some("de".into())), ..edit },
    ]);
    forms.add(&Post::new(account_id(7), &draft()));
    forms.both(&PostRef { id: post_id(), author: account_id(7) });
    forms.all([Visibility::Public, Visibility::Unlisted, Visibility::Followers, Visibility::Direct]);
    forms.both(&Tag::new("#Tide").unwrap());
}

/// Two posts of a bucket, and where the next window begins.
const RANKED_CURSOR: &str = "igAAAAAAAAAkEMAAABI0VngAMABQ";

fn chosen_accounts() -> ChosenAuthors {
    ChosenAuthors::of([account_id(7), account_id(8)])
}

fn pages_by_importance(forms: &mut Forms) {
    let ranked: RankedCursor = RANKED_CURSOR.parse().unwrap();
    forms.both(&ranked);
    let of = [RankedFeed::Home, RankedFeed::Profile(account_id(7)), RankedFeed::Chosen(chosen_accounts())];
    forms.all(of.clone());
    forms.all(of.map(RankedQuery::of));
    forms.both(&RankedQuery::default().limit(5).with_ties().after(ranked.clone()));
    forms.add(&RankedPage { posts: vec![page_post()], next: Some(ranked), lacks_archive: false });
}

fn pages_and_lists(forms: &mut Forms) {
    let profile = Timeline::Profile { account: account_id(7), replies: true, reposts: false };
    let tag = Timeline::Tag(Tag::new("tide").unwrap());
    let words = SearchWords::new("high tide").unwrap();
    forms.both(&words);
    let search = Timeline::Search(words);
    let [home, mentions, public] = [Timeline::Home, Timeline::Mentions, Timeline::Public];
    forms.all([home, profile, mentions, tag, public, Timeline::Replies(post_id()), search]);
    forms.both(&Timeline::Chat(account_id(7)));
    let cursor = Cursor::below(post_id().get());
    forms.both(&cursor);
    let range = Range { since_id: Some(post_id()), ..Range::default() };
    forms.both(&range);
    forms.all([Query::default(), Query::home().limit(40).hydrated().with_ties().after(cursor).range(range)]);
    forms.all([ChosenAuthors::default(), chosen_accounts().replies(ChosenReplies::None)]);
    let tag = |name| vec![Tag::new(name).unwrap()];
    let further = FurtherTags { any: tag("ebb"), all: tag("flow"), none: tag("spoiler") };
    forms.all([FurtherTags::default(), further]);
    forms.all([ChosenReplies::Followed, ChosenReplies::Chosen, ChosenReplies::None]);
    forms.add(&page_post());
    forms.add(page_post().original.as_deref().unwrap());
    let ends = (Some(cursor), Some(post_id()));
    forms.add(&Page { posts: vec![page_post()], next: ends.0, newer: ends.1, lacks_archive: false });
    forms.both(&page_post().ties.unwrap());
    let place: ListCursor = "s4278bcfe568000000000000000000007".parse().unwrap();
    forms.both(&place);
    forms.all([ListQuery::default(), ListQuery::default().limit(5).older_than(place.clone())]);
    forms.add(&AccountList {
        accounts: vec![Arc::new(account())],
        older: Some(place.clone()),
        newer: None,
        lacks_archive: false,
    });
    forms.add(&PostList { posts: vec![page_post()], older: None, newer: Some(place), lacks_archive: true });
    forms.add(&PostsById { posts: vec![page_post()], untold: vec![post_id()] });
    let (ancestors, descendants) =
        (Vec::new(), vec![PagePost::bare(PostRef { id: post_id(), author: account_id(8) })]);
    forms.add(&Conversation { ancestors, post: page_post(), descendants, lacks_archive: true });
    let id = NotificationId::from_u64(7 << 8).unwrap();
    forms.both(&id);
    forms.all(NotificationKind::ALL);
    let kinds = Some(vec![NotificationKind::Like]);
    let asked = NotificationQuery { min_id: Some(id), by: Some(account_id(8)), kinds, ..Default::default() };
    forms.all([NotificationQuery::default(), asked]);
    let (kind, account, post) = (NotificationKind::Like, Arc::new(account()), Some(page_post()));
    let told = Notification { id, kind, account, post };
    forms.add(&told);
    let notifications = vec![told];
    forms.add(&NotificationPage { notifications, older: Some(id), newer: None, lacks_archive: false });
    forms.both(&Relationship {
        account: account_id(8),
        is_following: true,
        is_followed: false,
        has_requested: false,
        is_requested: true,
        is_muting: false,
        is_blocking: false,
        is_blocked: true,
        is_hiding: false,
        shows_reposts: true,
        is_told_all_the_same: true,
        muted_until_ms: Some(1_577_836_800_000),
        note: Some("a cousin".into()),
    });
    forms.all([FollowOutcome::Following, FollowOutcome::Requested]);
    forms.all([GroupRole::Moderator, GroupRole::Owner]);
    forms.all([Order::Ascending, Order::Descending]);
    for because in [HiddenBecause::NotFollowed, HiddenBecause::OriginalGone, HiddenBecause::RepostedAbove] {
        forms.add(&because);
    }
}

fn moderation_and_operation(forms: &mut Forms) {
    forms.both(&Moderation { hidden: Some(true), sensitive: None });
    let report = NewReport {
        reporter: account_id(8),
        target: account_id(7),
        posts: vec![post_id()],
        category: ReportCategory::Spam,
        comment: "again".into(),
        token: Some("form-2".into()),
    };
    forms.both(&report);
    let id = ReportId::from_u64(post_id().get()).unwrap();
    forms.both(&id);
    let report = NewReport { token: None, ..report };
    let excerpt = PostExcerpt { post: post_id(), text: "Buy".into() };
    forms.both(&excerpt);
    let excerpts = vec![excerpt];
    let report = Report { id, report, excerpts, resolved_by: Some(account_id(1)), stamp: [0; 8] };
    forms.add(&report);
    forms.add(&ReportList { reports: vec![report], older: Some(id), lacks_some: false });
    forms.both(&SpamJudge::default());
    forms.both(&ReportQuery { target: Some(account_id(7)), before: Some(id), ..ReportQuery::default() });
    forms.all([PostAck::Accepted, PostAck::Replicated, PostAck::First, PostAck::Delivered]);
    forms.add(&PublishedPost {
        id: post_id(),
        is_repeat: true,
        is_held: false,
        reached: PostAck::First,
        delivery: Delivery::over(true),
    });
    forms.all([Acknowledge::Accepted, Acknowledge::Replicated]);
    forms.both(&Receipt { value: account_id(7), reached: Acknowledge::Accepted });
    forms.both(&DeliveryProgress { delivered: 3, skipped: 1, is_done: true, ..DeliveryProgress::default() });
    forms.all([DeliveryWay::Push, DeliveryWay::Pull]);
    forms.both(&ModeState { mode: Mode::Promoting, forced: Some(DeliveryWay::Pull), progress: Some(0.5) });
    forms.both(&ImportedEdge { reader: account_id(8), author: account_id(7), since_ms: 1_577_836_800_000 });
    forms.both(&ImportedPost { author: account_id(7), created_ms: 1_577_836_900_000, draft: draft() });
    let archived = Some(ArchivedCount { owners: 1, posts: 3, bytes: 600 });
    forms.add(&FsckReport { keys: 10, accounts: 2, archived, ..FsckReport::default() });
    forms.add(&ArchivedCount { owners: 1, posts: 3, bytes: 600 });
    forms.add(&RestoredPosts { back: 2, were_there: 1, missing: vec![post_id()] });
    let node = Some(NodeAddr::new("::1", 6379));
    let finding = Finding { node, severity: Severity::Warning, text: "it keeps nothing on disk".into() };
    forms.add(&NodeAddr::new("127.0.0.1", 6379));
    forms.all([Replicas::Required, Replicas::Preferred, Replicas::Absent]);
    forms.all([Severity::Warning, Severity::Loss, Severity::Refusal]);
    forms.add(&finding);
    forms.add(&Health {
        is_well: true,
        findings: vec![finding, Finding { node: None, severity: Severity::Loss, text: "a clock".into() }],
        tasks: 3,
        journal_entries: 4,
        journals_unknown: 0,
    });
    forms.add(&FsckProgress { keys: 10, of: 20, suspects: 1, found: 0 });
    forms.all([
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Conflict,
        ErrorKind::Overloaded,
        ErrorKind::Unavailable,
        ErrorKind::Unknown,
        ErrorKind::Misconfigured,
        ErrorKind::Internal,
    ]);
    ErrorCode::ALL.iter().for_each(|code| forms.add(code));
    forms.add(&Error::out_of_range("the limit of a page is 0; 1 to 100 are allowed"));
}

fn tenants(forms: &mut Forms) {
    let engine = crate::EngineSettings::default();
    let settings = TenantSettings::of(&engine, Replicas::Required);
    forms.both(&settings);
    let archive = TenantArchive {
        name: ArchiveName([7; 16]),
        hot_posts: 200,
        hot_days: 30,
        left_after_days: 30,
        search: false,
    };
    forms.both(&archive);
    forms.both(&TenantArchive { search: true, ..archive });
    forms.both(&Decision { number: 1, settings, archive: None });
    forms.both(&Decision { number: 2, settings, archive: Some(archive) });
    forms.add(&ArchivedNow { left: 3, warm: 1 });
    forms.add(&IndexedNow { posts: 4 });
}

fn forms() -> Forms {
    let mut forms = Forms::default();
    tenants(&mut forms);
    accounts_and_posts(&mut forms);
    pages_and_lists(&mut forms);
    pages_by_importance(&mut forms);
    chats(&mut forms);
    moderation_and_operation(&mut forms);
    forms
}

#[test]
fn public_types_keep_their_forms() {
    let file = root().join("tests/public_types.json");
    let found = serde_json::to_string_pretty(&forms().0).unwrap() + "\n";
    if std::env::var_os("TIDELINE_WRITE_FORMS").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let kept: BTreeMap<String, Vec<Value>> = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let found: BTreeMap<String, Vec<Value>> = serde_json::from_str(&found).unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
    for (name, forms) in kept {
        assert_eq!(found[&name], forms, "{name}");
    }
}

/// All Rust files below a folder.
fn sources(folder: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// The names behind `pub struct` and `pub enum`.
fn defined(text: &str) -> impl Iterator<Item = String> + '_ {
    let lines = text.lines().map(str::trim_start);
    let types = lines.filter_map(|l| l.strip_prefix("pub struct ").or_else(|| l.strip_prefix("pub enum ")));
    types.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric()).collect())
}

/// The names in `pub use` of a file.
fn exported(text: &str) -> BTreeSet<String> {
    let statements = text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let words = statements.flat_map(|used| used.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.map(str::to_owned).collect()
}

#[test]
fn every_public_type_has_a_form_that_is_kept_or_a_reason() {
    let folders =
        ["src", "crates/tideline-model/src", "crates/tideline-router/src"].map(|folder| root().join(folder));
    let all: BTreeSet<String> = folders
        .into_iter()
        .flat_map(sources)
        .flat_map(|path| defined(&fs::read_to_string(path).unwrap()).collect::<Vec<_>>())
        .collect();
    let mut public = BTreeSet::new();
    for file in NAMED_IN {
        let text = fs::read_to_string(root().join(file)).unwrap();
        public.extend(exported(&text).into_iter().chain(defined(&text)).filter(|name| all.contains(name)));
    }
    assert!(public.len() > 100, "{public:?}");
    let kept: BTreeSet<String> = forms().0.into_keys().collect();
    let without: BTreeSet<String> =
        WITHOUT.iter().flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned())).collect();
    let open: Vec<&String> = public.iter().filter(|n| !kept.contains(*n) && !without.contains(*n)).collect();
    assert!(open.is_empty(), "no form is kept of {open:?}: see this file's head");
    let stale: Vec<&String> = without.iter().filter(|n| kept.contains(*n) || !public.contains(*n)).collect();
    assert!(stale.is_empty(), "{stale:?} are listed without need");
}
