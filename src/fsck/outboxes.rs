//! Posts and their outboxes.

use super::deviation::{Deviation, FindingKind};
use super::lists;
use super::look::{Answers, Seen, is_there};
use super::unit::Unit;
use super::{named, ties};
use crate::cluster::{Answer, Batch, Command, Reply, Request};
use crate::error::{Error, Result};
use crate::functions;
use crate::ids::{AccountId, PostId};
use crate::post::layout::HEADER_LEN;
use crate::post::{Header, PostRef, Reference};
use crate::stored::{Unreadable, is_of_another_type, unless_of_another_type};
use crate::tenant::Tenant;

/// Ids of an outbox looked at in one go.
const POSTS_AT_ONCE: usize = 500;

pub(super) fn header_request(tenant: &Tenant, post: PostId) -> Request {
    let buckets = tenant.keys().buckets();
    let range = Command::new("GETRANGE").arg(&tenant.keys().post(post)).arg("0").arg(HEADER_LEN - 1);
    Request::read(buckets.slot(post.bucket(buckets)), range)
}

/// A post's header; `None`: there is no such post.
pub(super) fn header_of(reply: &Reply) -> Result<Option<Header>> {
    let bytes = reply.bytes()?;
    if bytes.is_empty() { Ok(None) } else { Header::parse(bytes).map(Some) }
}

/// Whether a post is that author's, as far as can be told: of one that can't be read it is what its outbox says.
pub(super) fn author_is(answer: Answer, author: AccountId) -> Result<bool> {
    if is_of_another_type(&answer) {
        return Ok(true);
    }
    let header = answer.ok()?;
    let bytes = header.bytes()?;
    Ok(!bytes.is_empty() && Header::parse(bytes).map_or(true, |header| header.author == author))
}

/// Looks at an outbox: its order, and whether its posts are there.
pub(super) async fn outbox(tenant: &Tenant, author: AccountId) -> Result<Seen> {
    let key = tenant.keys().outbox(author);
    if !is_there(tenant, author).await? {
        return Ok(Seen::orphan(key, author));
    }
    let (mut seen, mut from, mut before) = (Seen::default(), 0, 0);
    loop {
        let range = Command::new("LRANGE").arg(&key).arg(from).arg(from + POSTS_AT_ONCE - 1);
        let elements = tenant.router().call(Request::read(tenant.slot(author), range)).await?.into_array()?;
        let mut live = Vec::new();
        for element in &elements {
            let bytes = element.bytes()?;
            if let (true, Some((b'F', _))) = (bytes.len() == 9, bytes.split_first()) {
                continue;
            }
            let id = <[u8; 8]>::try_from(bytes).map(u64::from_be_bytes);
            let id = id.map_err(|_| Error::internal(format!("an outbox holds {}", bytes.escape_ascii())))?;
            let post = PostId::from_u64(id & (u64::MAX >> 1))?;
            if post.get() <= before {
                return Err(Error::internal(format!("the outbox of {author} is out of order at {post}")));
            }
            before = post.get();
            live.extend((id >> 63 == 0).then_some(post));
        }
        let answers = tenant.run_all(live.iter().map(|post| header_request(tenant, *post)).collect()).await?;
        for (post, answer) in live.into_iter().zip(answers) {
            let is_its = match unless_of_another_type(answer)? {
                Some(header) => header.bytes()?.get(8..16) == Some(author.to_bytes().as_slice()),
                None => false,
            };
            if !is_its {
                seen.units.push(Unit::Listed { post, author });
            }
        }
        from += elements.len();
        if elements.len() < POSTS_AT_ONCE {
            return Ok(seen);
        }
    }
}

/// Looks at a post: whether its outbox has it, those that it answers and reposts list it, and it knows how long its own
/// lists are.
pub(super) async fn post(tenant: &Tenant, post: PostId) -> Result<Seen> {
    let stored = lists::post(tenant, post).await?.map_err(Unreadable::error)?;
    let Some(stored) = stored else { return Ok(Seen::default()) };
    let author = stored.header().author;
    let mut seen = listed(tenant, post, author).await?;
    if is_there(tenant, author).await? {
        seen = seen.and(lists::counts(tenant, PostRef { id: post, author }).await?);
        seen = seen.and(ties::noted(tenant, post, &stored).await?);
        for to in Reference::of_post(&stored) {
            seen = seen.and(lists::listing(tenant, PostRef { id: post, author }, to).await?);
        }
        seen = seen.and(named::of_post(tenant, post, author).await?);
    }
    Ok(seen)
}

/// Whether a post and its author's outbox agree.
pub(super) async fn listed(tenant: &Tenant, post: PostId, author: AccountId) -> Result<Seen> {
    let (keys, slot) = (tenant.keys(), tenant.slot(author));
    let outbox = keys.outbox(author);
    let mut batch = Batch::new();
    // The post, its place, the post: what is published or deleted between shows.
    batch.push_ordered([
        header_request(tenant, post),
        Request::read(slot, functions::outbox_page(outbox.clone(), true, post.get() + 1, 1)),
        Request::read(slot, Command::new("LINDEX").arg(&outbox).arg("0")),
        header_request(tenant, post),
    ]);
    let mut answers = Answers::of(tenant, batch).await?;
    let is_its = |header: Option<Header>| header.is_some_and(|header| header.author == author);
    let before = is_its(header_of(&answers.next()?)?);
    let (page, first) = (answers.next()?.into_array()?, answers.next()?);
    let is_its = is_its(header_of(&answers.next()?)?);
    if before != is_its {
        return Ok(Seen::default());
    }
    let number = |reply: &Reply| {
        let bytes = reply.bytes().ok()?.last_chunk::<8>()?;
        Some(u64::from_be_bytes(*bytes))
    };
    let found = page.get(1).filter(|id| id.bytes().is_ok_and(|id| id.len() == 8)).and_then(number);
    let found = found.filter(|id| id & (u64::MAX >> 1) == post.get());
    let floor = number(&first).unwrap_or(0);
    let of = |kind| Ok(Seen::of(vec![Deviation::Outbox { kind, author, post }]));
    match (is_its, found) {
        (true, _) if !is_there(tenant, author).await? => {
            let kind = FindingKind::PostOrphaned;
            let key = Deviation::Key { kind, key: keys.post(post), owner: Some(author), detail: Vec::new() };
            Ok(Seen::of(vec![key]))
        }
        (true, None) if post.get() > floor => of(FindingKind::PostUnlisted),
        (true, Some(id)) if id != post.get() => of(FindingKind::PostAfterDelete),
        (false, Some(id)) if id == post.get() => of(FindingKind::PostGone),
        _ => Ok(Seen::default()),
    }
}
