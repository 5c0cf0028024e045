//! Calls that show something: pages of timelines, lists page by page, conversations, posts by their ids, and how
//! accounts stand to each other.

use std::collections::HashMap;
use std::sync::PoisonError;

use serde_json::Value;
use tideline::{Error, NotificationKind, PostId, Result};

use super::{Wire, is_of_suspended};
use crate::http::Ask;
use crate::verify::answers::PAGES_MAX;
use crate::verify::call::{Asked, List, People, Switch, Tie, Which};
use crate::verify::content::shown_over_http;
use crate::verify::perform::{account, note_on};
use crate::verify::told::{Notice, Page, Relation, Reply, Shown, Ties, Told};

/// The longest page of posts that clients get, of accounts, and most posts by their ids.
const PAGE_MAX: usize = 40;
const ACCOUNTS_MAX: usize = 80;
const BY_IDS_MAX: usize = 20;
/// Notifications that are counted, at most.
const COUNTED_MAX: usize = 1_000;

impl Wire {
    /// A page; `None`: HTTP has none such.
    pub(super) async fn read(&self, asked: Asked) -> Result<Option<Page>> {
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
            Which::Public => ("/api/v1/timelines/public".to_owned(), String::new()),
            Which::Mentions | Which::Replies(_) => return Ok(None),
        };
        // Both are above what the page begins with.
        let max = asked.max.into_iter().chain(asked.cursor).min();
        let bounds = [("max_id", max), ("since_id", asked.since), ("min_id", asked.min)];
        let bounds = bounds.into_iter().filter_map(|(name, id)| Some(format!("&{name}={}", id?)));
        let path = format!("{path}?limit={}{further}{}", asked.limit, bounds.collect::<String>());
        let answer = self.done(asked.reader, Ask::get(&path)).await?;
        let posts = self.all_shown(&answer.json(), asked.hydrate).await?;
        let link = answer.link.unwrap_or_default();
        let place = |name: &str| linked(&link, name).and_then(|place| place.parse().ok());
        let newer = place("min_id").filter(|_| asked.min.is_some());
        Ok(Some(Page { posts, next: place("max_id"), newer, lacks_archive: false }))
    }

    /// A list, page by page by the links, to the one without: on others there may be nothing either. `None`: HTTP has
    /// none such.
    pub(super) async fn list(&self, reader: u64, of: List, limit: usize) -> Result<Option<Reply>> {
        let Some(path) = path_of_list(of) else { return Ok(None) };
        let limit = limit.clamp(1, if of.is_of_posts() { PAGE_MAX } else { ACCOUNTS_MAX });
        let (mut accounts, mut posts, mut place) = (Vec::new(), Vec::new(), String::new());
        let path = format!("{path}{}limit={limit}", if path.contains('?') { '&' } else { '?' });
        for _ in 0..PAGES_MAX {
            let answer = self.done(reader, Ask::get(&format!("{path}{place}"))).await?;
            let page = answer.json();
            if of.is_of_posts() {
                posts.extend(self.all_shown(&page, true).await?);
            } else {
                let ids = page.as_array().into_iter().flatten().map(|account| id_of(&account["id"]));
                accounts.extend(ids.collect::<Result<Vec<_>>>()?);
            }
            match linked(answer.link.as_deref().unwrap_or_default(), "max_id") {
                Some(older) => place = format!("&max_id={older}"),
                None => break,
            }
        }
        let page = Page { posts, ..Page::default() };
        Ok(Some(if of.is_of_posts() { Reply::Page(page) } else { Reply::Ids(accounts) }))
    }

    /// A conversation: what stands around a post, and the post.
    pub(super) async fn conversation(&self, reader: u64, post: u64) -> Result<Reply> {
        let path = format!("/api/v1/statuses/{post}");
        let context = self.done(reader, Ask::get(&format!("{path}/context"))).await?.json();
        let itself = self.done(reader, Ask::get(&path)).await?.json();
        let mut posts = self.all_shown(&context["ancestors"], true).await?;
        posts.push(self.shown(&itself, true).await?);
        posts.extend(self.all_shown(&context["descendants"], true).await?);
        Ok(Reply::Page(Page { posts, ..Page::default() }))
    }

    /// Posts by their ids, some at a time.
    pub(super) async fn by_ids(&self, reader: u64, posts: &[u64]) -> Result<Reply> {
        let mut asked: Vec<u64> = Vec::with_capacity(posts.len());
        for post in posts {
            if !asked.contains(post) {
                asked.push(*post);
            }
        }
        let mut shown = Vec::new();
        for some in asked.chunks(BY_IDS_MAX) {
            let path = format!("/api/v1/statuses?{}", ids(some));
            let answer = self.done(reader, Ask::get(&path)).await?;
            shown.extend(self.all_shown(&answer.json(), true).await?);
        }
        Ok(Reply::Page(Page { posts: shown, ..Page::default() }))
    }

    /// All that an account is told, page by page, from the newest on; from the oldest on, and counted, it is the same.
    pub(super) async fn notices(&self, reader: u64, limit: usize) -> Result<Reply> {
        let limit = limit.clamp(1, PAGE_MAX);
        let down = self.notices_along(reader, limit, ("max_id", None)).await?;
        let mut up = self.notices_along(reader, limit, ("min_id", Some("0"))).await?;
        up.reverse();
        let count = format!("/api/v1/notifications/unread_count?limit={COUNTED_MAX}");
        let counted = self.done(reader, Ask::get(&count)).await?.json()["count"].as_u64();
        if up != down || counted != u64::try_from(down.len().min(COUNTED_MAX)).ok() {
            let text = format!("over HTTP {counted:?} notifications are counted; down: {down:?}, up: {up:?}");
            return Err(Error::internal(text));
        }
        Ok(Reply::Notices(down))
    }

    /// All notifications that links lead to under that name.
    async fn notices_along(
        &self,
        reader: u64,
        limit: usize,
        (name, from): (&str, Option<&str>),
    ) -> Result<Vec<Notice>> {
        let (mut all, mut place) = (Vec::new(), from.map(str::to_owned));
        for _ in 0..PAGES_MAX {
            let from = place.map(|place| format!("&{name}={place}")).unwrap_or_default();
            let path = format!("/api/v1/notifications?limit={limit}{from}");
            let answer = self.done(reader, Ask::get(&path)).await?;
            let page = answer.json();
            let mut page = page.as_array().into_iter().flatten().map(notice).collect::<Result<Vec<_>>>()?;
            if name == "min_id" {
                page.reverse();
            }
            place = linked(answer.link.as_deref().unwrap_or_default(), name).map(str::to_owned);
            let is_over = page.is_empty() || place.is_none();
            all.extend(page);
            if is_over {
                break;
            }
        }
        Ok(all)
    }

    /// How an account stands to others: what HTTP tells of it, and of the rest what the engine has told.
    pub(in crate::verify) async fn relations(
        &self,
        of: u64,
        others: &[u64],
        told: Vec<Option<Relation>>,
    ) -> Result<Vec<Option<Relation>>> {
        let path = format!("/api/v1/accounts/relationships?{}", ids(others));
        let answer = match self.done(of, Ask::get(&path)).await {
            Err(e) if is_of_suspended(&e) => return Ok(told),
            answer => answer?.json(),
        };
        let mut stands = HashMap::new();
        for relation in answer.as_array().into_iter().flatten() {
            stands.insert(id_of(&relation["id"])?, relation);
        }
        let relation = |(other, told): (&u64, Option<Relation>)| match (stands.get(other), told) {
            (Some(stands), Some(told)) => over_http(*other, stands, told).map(Some),
            // Whether it is there may have changed between the two; here nothing does.
            (Some(_), None) => Err(Error::internal(format!("over HTTP account {other} is there, else not"))),
            (None, _) => Ok(None),
        };
        others.iter().zip(told).map(relation).collect()
    }

    async fn all_shown(&self, statuses: &Value, hydrate: bool) -> Result<Vec<Shown>> {
        let mut all = Vec::new();
        for status in statuses.as_array().into_iter().flatten() {
            all.push(self.shown(status, hydrate).await?);
        }
        Ok(all)
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
pub(super) fn is_offered_page(asked: Asked) -> bool {
    // Of two bounds below HTTP goes by one.
    let is_plain = !asked.around && (asked.since.is_none() || asked.min.is_none());
    let has_path = !matches!(asked.which, Which::Mentions | Which::Replies(_));
    is_plain && has_path && (1..=PAGE_MAX).contains(&asked.limit)
}

/// The path of a list that HTTP has.
pub(super) fn path_of_list(of: List) -> Option<String> {
    Some(match of {
        List::People(People::Followers(account)) => format!("/api/v1/accounts/{account}/followers"),
        List::People(People::Following(account)) => format!("/api/v1/accounts/{account}/following"),
        List::People(People::Own(Switch::Mute)) => "/api/v1/mutes".to_owned(),
        List::People(People::Own(Switch::Block)) => "/api/v1/blocks".to_owned(),
        List::People(People::Requests) => "/api/v1/follow_requests".to_owned(),
        List::People(People::Own(_) | People::Requested) => return None,
        List::Likers(post) => format!("/api/v1/statuses/{post}/favourited_by"),
        List::Reposters(post) => format!("/api/v1/statuses/{post}/reblogged_by"),
        List::Quotes(post) => format!("/api/v1/statuses/{post}/quotes"),
        List::Tied(Tie::Like) => "/api/v1/favourites".to_owned(),
        List::Tied(Tie::Bookmark) => "/api/v1/bookmarks".to_owned(),
        List::Ranked => "/api/v1/timelines/home?order=importance".to_owned(),
    })
}

fn ids(of: &[u64]) -> String {
    of.iter().map(|id| format!("id[]={id}")).collect::<Vec<_>>().join("&")
}

/// What HTTP tells of a relation, and the rest as it was told.
fn over_http(other: u64, stands: &Value, told: Relation) -> Result<Relation> {
    let is = |name: &str| stands[name] == true;
    // A remark of a follow or a request.
    let remarks = is("following") || is("requested");
    let note = stands["note"].as_str().filter(|note| !note.is_empty());
    let noted = note_on(account(other)?);
    Ok(Relation {
        follows: is("following"),
        is_followed: is("followed_by"),
        is_requested: is("requested_by"),
        mutes: is("muting"),
        blocks: is("blocking"),
        is_blocked: is("blocked_by"),
        notes: note.map(|note| note == noted),
        hides_reposts: remarks.then(|| !is("showing_reblogs")),
        ..told
    })
}

/// Reads a notification, by the names that clients know.
fn notice(of: &Value) -> Result<Notice> {
    let kind = match of["type"].as_str().unwrap_or_default() {
        "mention" => NotificationKind::Mention,
        "follow" => NotificationKind::Follow,
        "follow_request" => NotificationKind::FollowRequest,
        "favourite" => NotificationKind::Like,
        "reblog" => NotificationKind::Repost,
        "quote" => NotificationKind::Quote,
        other => return Err(Error::internal(format!("over HTTP a notification of the type {other:?}"))),
    };
    let status = &of["status"];
    let post = if status.is_null() { None } else { Some(id_of(&status["id"])?) };
    Ok(Notice { id: id_of(&of["id"])?, told: Told { kind, by: id_of(&of["account"]["id"])?, post } })
}

pub(super) fn id_of(id: &Value) -> Result<u64> {
    let id = id.as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Error::internal("an answer over HTTP without an id"))
}

/// The place in a link of a page's header: `max_id` is where the next one begins, `min_id` where the one before ends.
fn linked<'h>(header: &'h str, name: &str) -> Option<&'h str> {
    let (_, behind) = header.split_once(&format!("{name}="))?;
    Some(&behind[..behind.find(['&', '>'])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_pages_are_read_from_their_links() {
        let url = "http://localhost:3000/a";
        let header =
            format!("<{url}?limit=2&max_id=17-a%3A>; rel=\"next\", <{url}?min_id=30&limit=2>; rel=\"prev\"");
        assert_eq!([linked(&header, "max_id"), linked(&header, "min_id")], [Some("17-a%3A"), Some("30")]);
        assert_eq!(linked("", "max_id"), None);
    }
}
