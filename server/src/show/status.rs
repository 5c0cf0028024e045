//! Posts as clients get them: statuses. Pure.

use std::sync::Arc;

use tideline::post::{MentionedName, Post, Visibility};
use tideline::{Account, AccountId, PagePost, PassedOn, PostId, ReaderTies};

use super::account::account;
use super::html::{MentionLink, html};
use super::site::{Site, login};
use crate::entity::{Id, Mention, Quote, Status, StatusEdit, StatusSource, StatusTag};
use crate::http::Timestamp;
use crate::http::escape::push_percent;

/// The word for a quote that may be shown.
pub(super) const QUOTE_STATE: &str = "accepted";

/// A reader, with what only it sees of its own posts.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusReader<'a> {
    /// Who reads; `None`: a guest.
    pub account: Option<AccountId>,
    /// What it has pinned.
    pub pins: &'a [PostId],
}

/// A reader's acts on a post, or with its conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadersOwn {
    pub(super) ties: ReaderTies,
    pub(super) is_muted: bool,
}

impl ReadersOwn {
    /// Of a post on a page; of a plain repost with its original.
    pub(super) fn of(shown: &PagePost) -> Self {
        Self { ties: shown.ties.unwrap_or_default(), is_muted: shown.is_conversation_muted }
    }
}

/// Makes the status of a post on a page; `None`: the page has only its id.
pub fn status(site: Site<'_>, reader: StatusReader<'_>, shown: &PagePost) -> Option<Status> {
    let own = ReadersOwn::of(shown);
    let mut status = reader.with_own(shared(site, shown)?, (shown.id, shown.author), own);
    let Some(original) = shown.original.as_deref() else { return Some(status) };
    let passed_on = (original.id, original.account.id);
    if passes_on(shown) {
        let mut inner = reader.with_own(shared_original(site, original), passed_on, own);
        inner.quote = original.original.as_deref().map(|quoted| quote(site, reader, quoted));
        status.reblog = Some(Box::new(inner));
    } else {
        status.quote = Some(quote(site, reader, original));
    }
    Some(status)
}

/// Shows a post that another one quotes.
fn quote(site: Site<'_>, reader: StatusReader<'_>, quoted: &PassedOn) -> Quote {
    let of = (quoted.id, quoted.account.id);
    let quoted = reader.with_own(shared_original(site, quoted), of, ReadersOwn::default());
    Quote { state: QUOTE_STATE.into(), quoted_status: Box::new(quoted) }
}

/// Whether a post on a page says nothing itself: what it passes on stands in it.
pub(super) fn passes_on(shown: &PagePost) -> bool {
    shown.post.as_deref().is_some_and(Post::is_plain_repost)
}

/// A post on a page as everybody gets it, without what it passes on; `None`: the page has only its id.
pub(super) fn shared(site: Site<'_>, shown: &PagePost) -> Option<Status> {
    let (post, author) = (shown.post.as_deref()?, shown.account.as_deref()?);
    let mut status = one(site, (shown.id, post, author), shown.writer.as_deref(), &shown.mentioned);
    if let Some(original) = shown.original.as_deref().filter(|_| post.is_plain_repost()) {
        // What it says is what the original says.
        let inner = shared_original(site, original);
        (status.content, status.spoiler_text) = (inner.content, inner.spoiler_text);
        (status.language, status.sensitive) = (inner.language, inner.sensitive);
    }
    Some(status)
}

/// Shows what a post passes on.
pub(super) fn shared_original(site: Site<'_>, original: &PassedOn) -> Status {
    let of = (original.id, &*original.post, &*original.account);
    one(site, of, original.writer.as_deref(), &original.mentioned)
}

impl StatusReader<'_> {
    /// A status with what this reader alone gets.
    fn with_own(&self, status: Status, (id, author): (PostId, AccountId), own: ReadersOwn) -> Status {
        let ReadersOwn { ties, is_muted } = own;
        Status {
            favourited: ties.is_liked,
            reblogged: ties.repost.is_some(),
            muted: is_muted,
            bookmarked: ties.is_bookmarked,
            pinned: self.pinned(id, author),
            ..status
        }
    }

    /// Whether it has pinned a post; `None`: it isn't its own.
    pub(super) fn pinned(&self, id: PostId, author: AccountId) -> Option<bool> {
        (self.account == Some(author)).then(|| self.pins.contains(&id))
    }
}

/// A post as everybody gets it. `writer`: of one into a group, who wrote it; `author` is the group then.
fn one(
    site: Site<'_>,
    (id, post, author): (PostId, &Post, &Account),
    writer: Option<&Account>,
    mentioned: &[Arc<Account>],
) -> Status {
    let (header, content) = (post.header(), post.content());
    // A chat is no account that clients could ask for, and a group not who wrote what is answered in it.
    let (by, chat, place) = (writer.unwrap_or(author), post.chat(), post.chat().or(post.group()));
    let group = writer.filter(|_| chat.is_none()).map(|_| account(site, author));
    Status {
        id: Id::from(id),
        created_at: Timestamp(id.unix_ms()),
        in_reply_to_id: header.reply_to.map(|to| Id::from(to.id)),
        in_reply_to_account_id: header
            .reply_to
            .filter(|to| Some(to.author) != place)
            .map(|to| Id::from(to.author)),
        sensitive: header.is_sensitive(),
        spoiler_text: content.content_warning.clone().unwrap_or_default(),
        visibility: visibility_name(header.visibility).into(),
        language: header.language().map(str::to_owned),
        uri: site.at(&format!("/users/{}/statuses/{}", login(by), id.get())),
        url: Some(site.post(by, id)),
        replies_count: header.replies.into(),
        reblogs_count: header.reposts.into(),
        favourites_count: header.likes.into(),
        quotes_count: header.quotes.into(),
        edited_at: post.edited_ms().map(Timestamp),
        content: html(&content.text, site.url, |name| link(site, mentioned, name)),
        reblog: None,
        application: None,
        account: account(site, by),
        group,
        media_attachments: Vec::new(),
        mentions: mentioned.iter().map(|account| mention(site, account)).collect(),
        tags: content.hashtags.iter().map(|tag| hashtag(site, tag)).collect(),
        emojis: Vec::new(),
        card: None,
        poll: None,
        quote: None,
        favourited: false,
        reblogged: false,
        muted: false,
        bookmarked: false,
        pinned: None,
        filtered: Vec::new(),
        text: None,
    }
}

/// The link to whom a name in a text means, of those whom the post mentions.
fn link(site: Site<'_>, mentioned: &[Arc<Account>], name: &MentionedName) -> Option<MentionLink> {
    if name.host.as_deref().is_some_and(|host| !site.is_host(host)) {
        return None;
    }
    let account = mentioned.iter().find(|account| login(account).eq_ignore_ascii_case(&name.name))?;
    Some(MentionLink { name: login(account), url: site.account(account) })
}

fn mention(site: Site<'_>, account: &Account) -> Mention {
    let login = login(account);
    Mention { id: Id::from(account.id), username: login.clone(), url: site.account(account), acct: login }
}

fn hashtag(site: Site<'_>, tag: &str) -> StatusTag {
    let mut url = site.at("/tags/");
    push_percent(&mut url, tag);
    StatusTag { name: tag.to_owned(), url }
}

/// Names a visibility as clients do.
pub fn visibility_name(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Public => "public",
        Visibility::Unlisted => "unlisted",
        Visibility::Followers => "private",
        Visibility::Direct => "direct",
    }
}

/// Finds the visibility that clients name so.
pub fn visibility_named(name: &str) -> Option<Visibility> {
    Some(match name {
        "public" => Visibility::Public,
        "unlisted" => Visibility::Unlisted,
        "private" => Visibility::Followers,
        "direct" => Visibility::Direct,
        _ => return None,
    })
}

/// Tells what a post said before each of its edits, and what it says now; `None`: the page has only its id.
pub fn history(site: Site<'_>, shown: &PagePost) -> Option<Vec<StatusEdit>> {
    let (post, author) = (shown.post.as_deref()?, shown.writer.as_deref().or(shown.account.as_deref())?);
    let edit = |since_ms, text: &str, warning: &Option<String>, sensitive| StatusEdit {
        content: html(text, site.url, |name| link(site, &shown.mentioned, name)),
        spoiler_text: warning.clone().unwrap_or_default(),
        sensitive,
        created_at: Timestamp(since_ms),
        account: account(site, author),
        poll: None,
        media_attachments: Vec::new(),
        emojis: Vec::new(),
    };
    let earlier = post.earlier();
    let before = earlier.iter().map(|of| edit(of.since_ms, &of.text, &of.content_warning, of.sensitive));
    let (header, content) = (post.header(), post.content());
    let since_ms = post.edited_ms().unwrap_or(shown.id.unix_ms());
    let now = edit(since_ms, &content.text, &content.content_warning, header.is_sensitive());
    Some(before.chain([now]).collect())
}

/// Tells what a post says as it was written.
pub fn source(id: PostId, post: &Post) -> StatusSource {
    let content = post.content();
    StatusSource {
        id: Id::from(id),
        text: content.text.clone(),
        spoiler_text: content.content_warning.clone().unwrap_or_default(),
    }
}
