//! Posts and their outboxes; and the lists of those that answer or repost a post.

use super::deviation::{Deviation, FindingKind};
use super::key::list_of;
use super::look::{Answers, Seen, is_there};
use super::named;
use super::unit::Unit;
use crate::cluster::{Batch, Command, Reply, Request};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fanout::Reference;
use crate::functions;
use crate::graph::list_of_references;
use crate::ids::{AccountId, PostId};
use crate::post::Header;
use crate::post::layout::HEADER_LEN;
use crate::sharded::{LocalKey, Scored, Spot};

/// Ids of an outbox, members of a list, looked at in one go.
const POSTS_AT_ONCE: usize = 500;

fn header_request(context: &Context, post: PostId) -> Request {
    let buckets = context.keys().buckets();
    let range = Command::new("GETRANGE").arg(&context.keys().post(post)).arg("0").arg(HEADER_LEN - 1);
    Request::read(buckets.slot(post.bucket(buckets)), range)
}

/// A post's header; `None`: there is no such post.
fn header_of(reply: &Reply) -> Result<Option<Header>> {
    let bytes = reply.bytes()?;
    if bytes.is_empty() { Ok(None) } else { Header::parse(bytes).map(Some) }
}

async fn header(context: &Context, post: PostId) -> Result<Option<Header>> {
    header_of(&context.router().call(header_request(context, post)).await?)
}

/// Looks at an outbox: its order, and whether its posts are there.
pub(super) async fn outbox(context: &Context, author: AccountId) -> Result<Seen> {
    let key = context.keys().outbox(author);
    if !is_there(context, author).await? {
        return Ok(Seen::orphan(key, author));
    }
    let (mut seen, mut from, mut before) = (Seen::default(), 0, 0);
    loop {
        let range = Command::new("LRANGE").arg(&key).arg(from).arg(from + POSTS_AT_ONCE - 1);
        let elements =
            context.router().call(Request::read(context.slot(author), range)).await?.into_array()?;
        let mut live = Vec::new();
        for element in &elements {
            let bytes = element.bytes()?;
            if let (true, Some((b'F', _))) = (bytes.len() == 9 && before == 0, bytes.split_first()) {
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
        let answers =
            context.run_all(live.iter().map(|post| header_request(context, *post)).collect()).await?;
        for (post, answer) in live.into_iter().zip(answers) {
            let is_its = answer.ok()?.bytes()?.get(8..16) == Some(author.to_bytes().as_slice());
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

/// Looks at a post: whether its outbox has it, and those that it answers and reposts list it.
pub(super) async fn post(context: &Context, post: PostId) -> Result<Seen> {
    let Some(header) = header(context, post).await? else { return Ok(Seen::default()) };
    let mut seen = listed(context, post, header.author).await?;
    if is_there(context, header.author).await? {
        for to in Reference::all(header.original, header.reply_to) {
            seen = seen.and(listing(context, post, to).await?);
        }
        seen = seen.and(named::of_post(context, post, header.author).await?);
    }
    Ok(seen)
}

/// Whether a post and its author's outbox agree.
pub(super) async fn listed(context: &Context, post: PostId, author: AccountId) -> Result<Seen> {
    let (keys, slot) = (context.keys(), context.slot(author));
    let outbox = keys.outbox(author);
    let mut batch = Batch::new();
    // The post, its place, the post: what is published or deleted between shows.
    batch.push_ordered([
        header_request(context, post),
        Request::read(slot, functions::outbox_page(outbox.clone(), true, post.get() + 1, 1)),
        Request::read(slot, Command::new("LINDEX").arg(&outbox).arg("0")),
        header_request(context, post),
    ]);
    let mut answers = Answers::of(context, batch).await?;
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
        (true, _) if !is_there(context, author).await? => {
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

/// Whether a post is on a list, and whether it should be.
pub(super) async fn listing(context: &Context, post: PostId, to: Reference) -> Result<Seen> {
    let list = list_of_references(context, to.kind, to.post)?;
    let is_on_it = list.score(&AccountId::new(post.get())?).await?.is_some();
    let header = header(context, post).await?;
    let refers = header.as_ref().is_some_and(|header| {
        let all = Reference::all(header.original, header.reply_to);
        all.iter().any(|of| (of.kind, of.post) == (to.kind, to.post))
    });
    let author = header.map_or(to.author, |header| header.author);
    let kind = match (is_on_it, refers) {
        (true, false) => FindingKind::ListingNeedless,
        // A post that is gone itself needs no list.
        (false, true) if self::header(context, to.post).await?.is_some_and(|h| h.author == to.author) => {
            FindingKind::ListingMissing
        }
        _ => return Ok(Seen::default()),
    };
    Ok(Seen::of(vec![Deviation::Listing { kind, post, author, to }]))
}

/// The members of a list, or of a part of one: those that don't answer or repost that post are looked at.
pub(super) async fn listings(context: &Context, set: &LocalKey, members: &[(Spot, &Scored)]) -> Result<Seen> {
    let Some((of, kind)) = list_of(&set.name) else { return Ok(Seen::default()) };
    let mut seen = Seen::default();
    for members in members.chunks(POSTS_AT_ONCE) {
        let post = |(_, entry): &(Spot, &Scored)| {
            let id = AccountId::from_bytes(&entry.member)?;
            PostId::from_u64(id.get())
        };
        let posts = members.iter().map(post).collect::<Result<Vec<_>>>()?;
        let answers =
            context.run_all(posts.iter().map(|post| header_request(context, *post)).collect()).await?;
        for (post, answer) in posts.into_iter().zip(answers) {
            let header = header_of(&answer.ok()?)?;
            let all =
                header.map(|header| Reference::all(header.original, header.reply_to)).unwrap_or_default();
            if !all.iter().any(|to| (to.kind, to.post) == (kind, of)) {
                // Who wrote what it is the list of doesn't matter for a member that goes.
                let to = Reference { kind, post: of, author: AccountId::new(post.get())? };
                seen.units.push(Unit::Listing { post, to });
            }
        }
    }
    Ok(seen)
}
