//! Calls that the HTTP API offers, over the wire: to a server on the engine of this instance, in its process, so that
//! whatever befalls the one befalls the other. Whom a call is for is said by the token of a service.
//!
//! What HTTP can't say (attachments of a post, whom else it is for, moderators, what is stored) stays the engine's. Who
//! was refused something over HTTP asks the engine, whose word counts: an answer tells how things stand after what it
//! did, and somebody may have shut the caller out between.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tideline::registration::Registration;
use tideline::{Engine, Error, ErrorKind, PostId, Result};
use tideline_server::config::ServerSettings;
use tideline_server::http::{Listener, Shutdown};

use super::call::{Asked, Call, PostSpec, Reach, Switch, Tie, Which};
use super::content::{SayableParts, sayable_over_http, shown_over_http};
use super::perform::{account, note_on};
use super::told::{Page, Reply, Shown, Ties};
use crate::http::{Answer, Ask, Clients, Method};

/// Connections of an instance to its own server.
const CONNECTIONS: usize = 256;
/// The longest page that clients get.
const PAGE_MAX: usize = 40;
const YEAR_S: u64 = 365 * 24 * 60 * 60;

/// A server of an instance, and its only client.
#[derive(Debug)]
pub(crate) struct Wire {
    clients: Clients,
    token: String,
    engine: Engine,
    /// What posts pass on, which HTTP doesn't tell of what isn't there any more.
    originals: Mutex<HashMap<u64, Option<u64>>>,
}

/// What HTTP made of a call.
pub(super) enum OverHttp {
    Answered(Reply),
    /// It is no call of HTTP's, or was refused there: the engine is asked.
    Engine(Call),
}

impl Wire {
    /// Serves this engine; `token` is a service's.
    pub(crate) async fn serve(engine: &Engine, registration: &Registration, token: String) -> Result<Self> {
        let cannot = |e: std::io::Error| Error::misconfigured(format!("no address to serve at: {e}"));
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), None).await.map_err(cannot)?;
        let address = listener.address().map_err(cannot)?;
        let settings = ServerSettings::default();
        let (served, registration) = (engine.clone(), registration.clone());
        // It ends with the process.
        tokio::spawn(tideline_server::run(
            served,
            registration,
            settings,
            vec![listener],
            Shutdown::default(),
        ));
        Ok(Self {
            clients: Clients::new(address, CONNECTIONS),
            token,
            engine: engine.clone(),
            originals: Mutex::default(),
        })
    }

    async fn ask(&self, as_: u64, ask: Ask<'_>) -> Result<Answer> {
        let as_ = as_.to_string();
        let answer = self.clients.ask(&ask.token(&self.token).acting_as(&as_)).await;
        // Its own process: nothing but a bound of ours can end a connection.
        answer.map_err(|e| Error::new(ErrorKind::Unknown, format!("no whole answer came over HTTP: {e}")))
    }

    /// Carries a call out, if it is one of HTTP's.
    pub(super) async fn perform(&self, call: Call) -> Result<OverHttp> {
        if let Call::Read(asked) = &call {
            let page = self.read(*asked).await?;
            return Ok(page.map_or(OverHttp::Engine(call), |page| OverHttp::Answered(Reply::Page(page))));
        }
        if let Call::Publish { author, post } = &call {
            let published = self.publish(*author, post).await?;
            return Ok(published.map_or(OverHttp::Engine(call), OverHttp::Answered));
        }
        let Some((by, path, body)) = plain(&call) else { return Ok(OverHttp::Engine(call)) };
        let method = if matches!(call, Call::Delete { .. }) { Method::Delete } else { Method::Post };
        let answer = self.ask(by, Ask::new(method, &path).body(body)).await?;
        if !answer.is_success() {
            return match refusal(&answer) {
                // Nobody knows, or it comes again by itself.
                e if e.kind().is_retryable() || e.kind() == ErrorKind::Internal => Err(e),
                _ => Ok(OverHttp::Engine(call)),
            };
        }
        Ok(OverHttp::Answered(match call {
            Call::Follow { .. } => Reply::Flag(answer.json()["following"] == true),
            _ => Reply::Done,
        }))
    }

    /// A post that HTTP can say, with a token or without. `None`: it can't.
    async fn publish(&self, author: u64, post: &PostSpec) -> Result<Option<Reply>> {
        let Some(parts) = sayable(post) else { return Ok(None) };
        let visibility = post.reach.map(|reach| match reach {
            Reach::Public => "public",
            Reach::Unlisted => "unlisted",
            Reach::Followers => "private",
            Reach::Direct => "direct",
        });
        let mut body = json!({
            "status": post.text, "visibility": visibility, "spoiler_text": parts.warning, "language": parts.language,
            "in_reply_to_id": post.parent.map(|(id, _)| id.to_string()),
            "quoted_status_id": post.original.map(|(id, _)| id.to_string()),
        });
        if let Some(body) = body.as_object_mut() {
            body.retain(|_, value| !value.is_null());
        }
        let mut ask = Ask::post("/api/v1/statuses", body);
        if let Some(token) = &post.token {
            ask = ask.key(token);
        }
        let answer = self.ask(author, ask).await?;
        if !answer.is_success() {
            return Err(refusal(&answer));
        }
        let id = id_of(&answer.json()["id"])?;
        // HTTP doesn't tell how far it has got, nor whether the key was known: with one it may have been.
        let is_repeat = post.token.is_some();
        Ok(Some(Reply::Published { id, is_repeat, is_delivered: false, is_replicated: false }))
    }

    /// A page; `None`: HTTP has none such.
    async fn read(&self, asked: Asked) -> Result<Option<Page>> {
        if !is_offered_page(asked) {
            return Ok(None);
        }
        let (path, further) = match asked.which {
            Which::Home => ("/api/v1/timelines/home".to_owned(), String::new()),
            Which::Profile { account, replies, reposts } => (
                format!("/api/v1/accounts/{account}/statuses"),
                format!("&exclude_replies={}&exclude_reblogs={}", !replies, !reposts),
            ),
            Which::Tag(number) => (format!("/api/v1/timelines/tag/tide{number}"), String::new()),
            Which::Mentions | Which::Replies(_) => return Ok(None),
        };
        // Both are above what the page begins with.
        let max = asked.max.into_iter().chain(asked.cursor).min();
        let bounds = [("max_id", max), ("since_id", asked.since), ("min_id", asked.min)];
        let bounds = bounds.into_iter().filter_map(|(name, id)| Some(format!("&{name}={}", id?)));
        let path = format!("{path}?limit={}{further}{}", asked.limit, bounds.collect::<String>());
        let answer = self.ask(asked.reader, Ask::get(&path)).await?;
        if !answer.is_success() {
            return Err(refusal(&answer));
        }
        let page = answer.json();
        let mut posts = Vec::new();
        for status in page.as_array().into_iter().flatten() {
            posts.push(self.shown(status, asked.hydrate).await?);
        }
        let place = |name: &str| linked(answer.link.as_deref().unwrap_or_default(), name);
        let newer = place("min_id").filter(|_| asked.min.is_some());
        Ok(Some(Page { posts, next: place("max_id"), newer, lacks_archive: false }))
    }

    async fn shown(&self, status: &Value, hydrate: bool) -> Result<Shown> {
        let (id, author) = (id_of(&status["id"])?, id_of(&status["account"]["id"])?);
        let mut shown = Shown {
            id,
            author,
            text: None,
            passes_on: None,
            account: None,
            original: None,
            ties: None,
            likers: Vec::new(),
            replies: Vec::new(),
        };
        if !hydrate {
            return Ok(shown);
        }
        let reblog = &status["reblog"];
        let original = if reblog.is_null() { &status["quote"]["quoted_status"] } else { reblog };
        if original.is_null() {
            shown.passes_on = self.original(id).await?;
        } else {
            let passed_on = id_of(&original["id"])?;
            shown.passes_on = Some(passed_on);
            shown.original = Some((passed_on, id_of(&original["account"]["id"])?));
        }
        let text = |name: &str| status[name].as_str().unwrap_or_default();
        // What a plain repost says is what it passes on.
        shown.text = Some(match reblog.is_null() {
            true => shown_over_http(text("content"), text("spoiler_text"), status["language"].as_str()),
            false => String::new(),
        });
        let followers = status["account"]["followers_count"].as_u64();
        shown.account = followers.map(|followers| (author, followers));
        let is = |name: &str| status[name] == true;
        shown.ties = Some(Ties {
            likes: is("favourited"),
            has_bookmarked: is("bookmarked"),
            has_reposted: is("reblogged"),
        });
        Ok(shown)
    }

    /// What a post passes on that shows without it: as it is stored.
    async fn original(&self, post: u64) -> Result<Option<u64>> {
        let known = self.originals.lock().unwrap_or_else(PoisonError::into_inner).get(&post).copied();
        if let Some(original) = known {
            return Ok(original);
        }
        let stored = self.engine.stored().post(PostId::from_u64(post)?).await?;
        let Some(stored) = stored else { return Ok(None) };
        let original = stored.header().original.map(|original| original.id.get());
        self.originals.lock().unwrap_or_else(PoisonError::into_inner).insert(post, original);
        Ok(original)
    }
}

/// Whether HTTP has such a page.
fn is_offered_page(asked: Asked) -> bool {
    // Of two bounds below HTTP goes by one.
    let is_plain = !asked.around && (asked.since.is_none() || asked.min.is_none());
    let has_path = !matches!(asked.which, Which::Mentions | Which::Replies(_));
    is_plain && has_path && (1..=PAGE_MAX).contains(&asked.limit)
}

/// What comes with a post, if HTTP can say all of it.
fn sayable(post: &PostSpec) -> Option<SayableParts> {
    let is_for_all = post.only_to.is_empty() && post.not_to.is_empty() && post.mentions.is_empty();
    // One with a token is sent again without saying what it waits for, and has to go the same way: the server stores
    // the hash of a key, the engine a token as it is.
    let waits = post.ack.is_some() && post.token.is_none();
    let is_plain = post.tags.is_empty() && !waits && post.reach != Some(Reach::Direct);
    // A repost has a call of its own, without a token.
    let says_something = !post.text.is_empty();
    if is_for_all && is_plain && says_something { sayable_over_http(&post.text) } else { None }
}

/// Whether a call goes over HTTP.
pub(super) fn is_offered(call: &Call) -> bool {
    match call {
        Call::Read(asked) => is_offered_page(*asked),
        Call::Publish { post, .. } => sayable(post).is_some(),
        call => plain(call).is_some(),
    }
}

/// Who asks what, of calls whose answer says no more than that they are done.
fn plain(call: &Call) -> Option<(u64, String, Value)> {
    let of =
        |by: u64, other: u64, deed: &str| Some((by, format!("/api/v1/accounts/{other}/{deed}"), json!({})));
    let post =
        |by: u64, post: u64, deed: &str| Some((by, format!("/api/v1/statuses/{post}/{deed}"), json!({})));
    match *call {
        Call::Follow { reader, author } => of(reader, author, "follow"),
        Call::Unfollow { reader, author } => of(reader, author, "unfollow"),
        Call::Switch { account: by, other, what: Switch::Mute, on: true } => {
            let seconds = if other.is_multiple_of(2) { YEAR_S } else { 0 };
            Some((by, format!("/api/v1/accounts/{other}/mute"), json!({ "duration": seconds })))
        }
        Call::Switch { account: by, other, what: Switch::Mute, on: false } => of(by, other, "unmute"),
        Call::Switch { account: by, other, what: Switch::Block, on } => {
            of(by, other, if on { "block" } else { "unblock" })
        }
        Call::Switch { account: by, other, what: Switch::Note, on } => {
            let note = if on { note_on(account(other).ok()?) } else { String::new() };
            Some((by, format!("/api/v1/accounts/{other}/note"), json!({ "comment": note })))
        }
        Call::Approve { account, requester } => {
            Some((account, format!("/api/v1/follow_requests/{requester}/authorize"), json!({})))
        }
        Call::Reject { account, requester } => {
            Some((account, format!("/api/v1/follow_requests/{requester}/reject"), json!({})))
        }
        Call::Delete { author, post } => Some((author, format!("/api/v1/statuses/{post}"), Value::Null)),
        Call::Tie { account, post: id, what: Tie::Like, on } => {
            post(account, id, if on { "favourite" } else { "unfavourite" })
        }
        Call::Tie { account, post: id, what: Tie::Bookmark, on } => {
            post(account, id, if on { "bookmark" } else { "unbookmark" })
        }
        Call::Unrepost { account, post: id } => post(account, id, "unreblog"),
        _ => None,
    }
}

fn id_of(id: &Value) -> Result<u64> {
    let id = id.as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Error::internal("an answer over HTTP without an id"))
}

/// The id in a link of a page's header: `max_id` is where the next one begins, `min_id` where the one before ends.
fn linked(header: &str, name: &str) -> Option<u64> {
    let (_, behind) = header.split_once(&format!("{name}="))?;
    let digits = behind.find(|c: char| !c.is_ascii_digit()).map_or(behind, |end| &behind[..end]);
    digits.parse().ok()
}

/// What a refusal says, as the engine would have said it.
fn refusal(answer: &Answer) -> Error {
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    let kind = match answer.status {
        400 | 401 | 403 | 422 => ErrorKind::Invalid,
        404 | 410 => ErrorKind::NotFound,
        409 => ErrorKind::Conflict,
        // It may have been done, or not.
        503 => ErrorKind::Unknown,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, format!("over HTTP: {} {said}", answer.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_pages_are_read_from_their_links() {
        let url = "http://localhost:3000/a";
        let header =
            format!("<{url}?limit=2&max_id=17>; rel=\"next\", <{url}?min_id=30&limit=2>; rel=\"prev\"");
        assert_eq!([linked(&header, "max_id"), linked(&header, "min_id")], [Some(17), Some(30)]);
        assert_eq!(linked("", "max_id"), None);
    }
}
