//! Posts as clients get them: statuses. Pure.

use std::sync::Arc;

use tideline::post::{MentionedName, Post, Visibility};
use tideline::{Account, AccountId, Marks, PagePost, PassedOn, PostId};

use super::account::account;
use super::html::{MentionLink, html};
use super::site::{Site, login};
use crate::entity::{Id, Mention, Status, StatusEdit, StatusSource, StatusTag};
use crate::http::Timestamp;
use crate::http::escape::push_percent;

/// A reader, with what only it sees of its own posts.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusReader<'a> {
    /// Who reads; `None`: a guest.
    pub account: Option<AccountId>,
    /// What it has pinned.
    pub pins: &'a [PostId],
}

/// Makes the status of a post on a page; `None`: the page has only its id.
pub fn status(site: Site<'_>, reader: StatusReader<'_>, shown: &PagePost) -> Option<Status> {
    let (post, author) = (shown.post.as_deref()?, shown.account.as_deref()?);
    let marks = shown.marks.unwrap_or_default();
    let mut status = one(site, reader, (shown.id, post, author), &shown.mentioned, marks);
    let Some(original) = shown.original.as_deref() else { return Some(status) };
    if post.is_plain_repost() {
        let inner = passed_on(site, reader, original, marks);
        // What it says is what the original says.
        status.content.clone_from(&inner.content);
        status.spoiler_text.clone_from(&inner.spoiler_text);
        status.language.clone_from(&inner.language);
        status.sensitive = inner.sensitive;
        status.reblog = Some(Box::new(inner));
    } else {
        let quoted = passed_on(site, reader, original, Marks::default());
        status.quote = Some(serde_json::json!({ "state": "accepted", "quoted_status": quoted }));
    }
    Some(status)
}

fn passed_on(site: Site<'_>, reader: StatusReader<'_>, original: &PassedOn, marks: Marks) -> Status {
    one(site, reader, (original.id, &original.post, &original.account), &original.mentioned, marks)
}

fn one(
    site: Site<'_>,
    reader: StatusReader<'_>,
    (id, post, author): (PostId, &Post, &Account),
    mentioned: &[Arc<Account>],
    marks: Marks,
) -> Status {
    let (header, content) = (post.header(), post.content());
    let is_own = reader.account == Some(author.id);
    Status {
        id: Id::from(id),
        created_at: Timestamp(id.unix_ms()),
        in_reply_to_id: header.reply_to.map(|to| Id::from(to.id)),
        in_reply_to_account_id: header.reply_to.map(|to| Id::from(to.author)),
        sensitive: header.is_sensitive(),
        spoiler_text: content.content_warning.clone().unwrap_or_default(),
        visibility: visibility_name(header.visibility).into(),
        language: header.language().map(str::to_owned),
        uri: site.at(&format!("/users/{}/statuses/{}", login(author), id.get())),
        url: Some(site.post(author, id)),
        replies_count: header.replies.into(),
        reblogs_count: header.reposts.into(),
        favourites_count: header.likes.into(),
        quotes_count: header.quotes.into(),
        edited_at: post.edited_ms().map(Timestamp),
        content: html(&content.text, site.url, |name| link(site, mentioned, name)),
        reblog: None,
        application: None,
        account: account(site, author),
        media_attachments: Vec::new(),
        mentions: mentioned.iter().map(|account| mention(site, account)).collect(),
        tags: content.hashtags.iter().map(|tag| hashtag(site, tag)).collect(),
        emojis: Vec::new(),
        card: None,
        poll: None,
        quote: None,
        favourited: marks.is_liked,
        reblogged: marks.repost.is_some(),
        muted: false,
        bookmarked: marks.is_bookmarked,
        pinned: is_own.then(|| reader.pins.contains(&id)),
        filtered: Vec::new(),
        text: None,
    }
}

/// Whom a name in a text means, of those whom the post mentions.
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
    let (post, author) = (shown.post.as_deref()?, shown.account.as_deref()?);
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
