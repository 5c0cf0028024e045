//! Calls that change something.

use serde_json::{Value, json};
use tideline::{Error, ErrorKind, Result};

use super::{Wire, refusal};
use crate::http::{Answer, Ask, Method};
use crate::verify::call::{Call, PostSpec, Reach, Switch, Tie};
use crate::verify::content::{Extent, SayableParts, sayable_over_http};
use crate::verify::perform::{account, note_on};
use crate::verify::told::Reply;

use super::pages::id_of;

const YEAR_S: u64 = 365 * 24 * 60 * 60;

/// A request that changes something.
struct Deed {
    by: u64,
    method: Method,
    path: String,
    body: Value,
}

impl Deed {
    fn post(by: u64, path: String, body: Value) -> Self {
        Self { by, method: Method::Post, path, body }
    }
}

impl Wire {
    /// Carries out what changes something; `None`: HTTP can't say it.
    pub(super) async fn deed(&self, call: &Call) -> Result<Option<Reply>> {
        if let Call::Publish { author, post } = call {
            return self.publish(*author, post).await;
        }
        let Some(Deed { by, method, path, body }) = deed_of(call) else { return Ok(None) };
        let answer = self.ask(by, Ask::new(method, &path).body(body)).await?;
        // What is taken back of a post that isn't there, or not for the actor, is taken back: it can't be shown.
        if answer.is_success() || answer.status == 404 && takes_back(call) {
            return told(call, &answer).map(Some);
        }
        Err(refusal(&answer))
    }

    /// A post that HTTP can say, with a token or without. `None`: it can't.
    async fn publish(&self, author: u64, post: &PostSpec) -> Result<Option<Reply>> {
        if let Some(path) = reblog_of(post) {
            let body = json!({ "visibility": post.reach.map(visibility) });
            let answer = self.done(author, Ask::post(&path, body)).await?;
            return published(post, &answer).map(Some);
        }
        let Some(parts) = sayable(post) else { return Ok(None) };
        let mut body = json!({
            "status": post.text, "visibility": post.reach.map(visibility), "spoiler_text": parts.warning,
            "language": parts.language, "in_reply_to_id": post.parent.map(|(id, _)| id.to_string()),
            "quoted_status_id": post.original.map(|(id, _)| id.to_string()),
        });
        if let Some(body) = body.as_object_mut() {
            body.retain(|_, value| !value.is_null());
        }
        let mut ask = Ask::post("/api/v1/statuses", body);
        if let Some(token) = &post.token {
            ask = ask.key(token);
        }
        let answer = self.done(author, ask).await?;
        published(post, &answer).map(Some)
    }
}

/// HTTP doesn't tell how far a post has got, nor whether its key was known: with one it may have been.
fn published(post: &PostSpec, answer: &Answer) -> Result<Reply> {
    let (id, is_repeat) = (id_of(&answer.json()["id"])?, post.token.is_some());
    Ok(Reply::Published { id, is_repeat, is_delivered: false, is_replicated: false })
}

/// A post that was there before.
pub(super) fn published_again(id: u64) -> Reply {
    Reply::Published { id, is_repeat: true, is_delivered: false, is_replicated: false }
}

/// What the answer to a call that was carried out says.
fn told(call: &Call, answer: &Answer) -> Result<Reply> {
    let Call::Follow { .. } = call else { return Ok(Reply::Done) };
    let stands = answer.json();
    match (stands["following"] == true, stands["requested"] == true) {
        (false, false) => {
            // It tells how things stand by then.
            let text = "followed over HTTP, and that was over before the answer";
            Err(Error::new(ErrorKind::Unknown, text))
        }
        (follows, _) => Ok(Reply::Flag(follows)),
    }
}

fn takes_back(call: &Call) -> bool {
    matches!(call, Call::Tie { on: false, .. } | Call::Unrepost { .. })
}

/// Whether HTTP can say a call that changes something.
pub(super) fn is_offered_deed(call: &Call) -> bool {
    match call {
        Call::Publish { post, .. } => reblog_of(post).is_some() || sayable(post).is_some(),
        call => deed_of(call).is_some(),
    }
}

fn visibility(reach: Reach) -> &'static str {
    match reach {
        Reach::Public => "public",
        Reach::Unlisted => "unlisted",
        Reach::Followers => "private",
        Reach::Direct => "direct",
    }
}

/// Whether a post is for whomever its reach names, and says nothing of when it is acknowledged.
fn is_simple(post: &PostSpec) -> bool {
    let is_for_all = post.only_to.is_empty() && post.not_to.is_empty() && post.mentions.is_empty();
    // One with a token is sent again without saying what it waits for, and has to go the same way: the server stores
    // the hash of a key, the engine a token as it is.
    let waits = post.ack.is_some() && post.token.is_none();
    is_for_all && !waits && post.reach != Some(Reach::Direct)
}

/// What comes with a post, if HTTP can say all of it.
fn sayable(post: &PostSpec) -> Option<SayableParts> {
    let has_its_tags = post.tags.is_empty() || Extent::of(&post.text) == Extent::Sayable;
    let says_something = !post.text.is_empty();
    if is_simple(post) && has_its_tags && says_something { sayable_over_http(&post.text) } else { None }
}

/// The path of a repost that HTTP has: it knows no token of one.
fn reblog_of(post: &PostSpec) -> Option<String> {
    let is_plain = post.text.is_empty() && post.token.is_none() && is_simple(post);
    let (original, _) = post.original.filter(|_| is_plain && post.reach.is_some())?;
    Some(format!("/api/v1/statuses/{original}/reblog"))
}

/// Who asks what, of calls whose answer says little more than that they are done.
fn deed_of(call: &Call) -> Option<Deed> {
    let of = |by: u64, other: u64, deed: &str| {
        Some(Deed::post(by, format!("/api/v1/accounts/{other}/{deed}"), json!({})))
    };
    let on = |by: u64, post: u64, deed: &str| {
        Some(Deed::post(by, format!("/api/v1/statuses/{post}/{deed}"), json!({})))
    };
    match *call {
        Call::Follow { reader, author } => of(reader, author, "follow"),
        Call::Unfollow { reader, author } => of(reader, author, "unfollow"),
        Call::Switch { account: by, other, what, on } => switch(by, other, what, on),
        Call::Approve { account, requester } => {
            Some(Deed::post(account, format!("/api/v1/follow_requests/{requester}/authorize"), json!({})))
        }
        Call::Reject { account, requester } => {
            Some(Deed::post(account, format!("/api/v1/follow_requests/{requester}/reject"), json!({})))
        }
        Call::SetLock { account, is_locked } => Some(Deed {
            by: account,
            method: Method::Patch,
            path: "/api/v1/accounts/update_credentials".to_owned(),
            body: json!({ "locked": is_locked }),
        }),
        Call::Edit { author, post, ref text, ref mentions, .. } => {
            edit((author, post), text, mentions.as_deref())
        }
        Call::Delete { author, post } => Some(Deed {
            by: author,
            method: Method::Delete,
            path: format!("/api/v1/statuses/{post}"),
            body: Value::Null,
        }),
        Call::Tie { account, post: id, what: Tie::Like, on: is } => {
            on(account, id, if is { "favourite" } else { "unfavourite" })
        }
        Call::Tie { account, post: id, what: Tie::Bookmark, on: is } => {
            on(account, id, if is { "bookmark" } else { "unbookmark" })
        }
        Call::Unrepost { account, post: id } => on(account, id, "unreblog"),
        _ => None,
    }
}

fn switch(by: u64, other: u64, what: Switch, on: bool) -> Option<Deed> {
    let (deed, body) = match (what, on) {
        (Switch::Mute, true) => {
            ("mute", json!({ "duration": if other.is_multiple_of(2) { YEAR_S } else { 0 } }))
        }
        (Switch::Mute, false) => ("unmute", json!({})),
        (Switch::Block, true) => ("block", json!({})),
        (Switch::Block, false) => ("unblock", json!({})),
        (Switch::Note, on) => {
            let note = if on { note_on(account(other).ok()?) } else { String::new() };
            ("note", json!({ "comment": note }))
        }
        // To leave reposts out is said with a follow there, and hiding isn't known.
        (Switch::Reposts | Switch::Hide | Switch::LeftOut, _) => return None,
    };
    Some(Deed::post(by, format!("/api/v1/accounts/{other}/{deed}"), body))
}

/// An edit: over HTTP a post mentions whom its text names, and here that is nobody.
fn edit((author, post): (u64, u64), text: &str, mentions: Option<&[u64]>) -> Option<Deed> {
    if Extent::of(text) != Extent::Sayable || mentions.is_none_or(|mentions| !mentions.is_empty()) {
        return None;
    }
    let parts = sayable_over_http(text)?;
    let warning = parts.warning.unwrap_or_default();
    let body = json!({ "status": text, "spoiler_text": warning, "language": parts.language });
    Some(Deed { by: author, method: Method::Put, path: format!("/api/v1/statuses/{post}"), body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::content::text_of;

    #[test]
    fn only_what_http_can_say_goes_over_it() {
        let post = |extent, tags: &[u8]| PostSpec {
            text: text_of(0, 0, extent, tags),
            reach: Some(Reach::Public),
            only_to: Vec::new(),
            not_to: Vec::new(),
            original: None,
            parent: None,
            mentions: Vec::new(),
            tags: tags.to_vec(),
            token: Some("token".to_owned()),
            ack: None,
        };
        let goes = |post: PostSpec| is_offered_deed(&Call::Publish { author: 1, post });
        assert!(goes(post(Extent::Sayable, &[])) && goes(post(Extent::Sayable, &[2, 4])));
        assert!(!goes(post(Extent::Bare, &[2])) && goes(post(Extent::Bare, &[])));
        assert!(!goes(PostSpec { only_to: vec![2], ..post(Extent::Sayable, &[]) }));
        assert!(!goes(PostSpec { mentions: vec![2], ..post(Extent::Sayable, &[]) }));
        let repost = PostSpec { text: String::new(), original: Some((9, 2)), ..post(Extent::Bare, &[]) };
        assert!(!goes(repost.clone()) && goes(PostSpec { token: None, ..repost }));
        let edit = |extent, mentions: Option<Vec<u64>>| {
            let text = text_of(0, 1, extent, &[]);
            is_offered_deed(&Call::Edit { author: 1, post: 9, text, tags: Vec::new(), mentions })
        };
        assert!(edit(Extent::Sayable, Some(Vec::new())) && !edit(Extent::Sayable, None));
        assert!(!edit(Extent::Sayable, Some(vec![2])) && !edit(Extent::Whole, Some(Vec::new())));
    }
}
