//! Posts and the outboxes of their authors.

use std::sync::Arc;

use super::ownerless::OwnerlessKey;
use crate::cluster::{Command, Reply, Request};
use crate::delivery::DeliverTask;
use crate::error::{Error, Result};
use crate::fsck::ask::{self, is_there, leave, range, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, ReadData, Relation, Unit, left_alone};
use crate::functions;
use crate::graph;
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::journal::{Journal, Matter};
use crate::post::{PostHeader, PostRef};
use crate::stored::{AgendaEntry, ArchiveFloor, StoredPost, Unreadable};
use crate::tenant::{Answers, Tenant};
use crate::tiers::recover;

/// Ids of an outbox looked at in one go.
const POSTS_AT_ONCE: usize = 500;
/// The highest bit of an id in an outbox says that its post was deleted.
const ID_BITS: u64 = u64::MAX >> 1;

/// An outbox: its order, and whether its posts are there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OutboxOf(pub(super) AccountId);

/// A post, with all that is derived from it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PostAt(pub(super) PostId);

/// Only where a post lies, and whether its author's outbox says so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PostPlace(pub(super) PostId);

/// Whether a post and its author's outbox agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OutboxEntry(PostRef);

impl Relation for OutboxOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(author) = *self;
        let key = tenant.keys().outbox(author);
        if !is_there(tenant, author).await? {
            return Ok(OwnerlessKey::orphan(key, author));
        }
        let (mut suspects, mut untold, mut from, mut before) = (Vec::new(), 0, 0, 0);
        loop {
            let elements = range(tenant, &key, from, POSTS_AT_ONCE).await?;
            let mut live = Vec::new();
            for element in &elements {
                let bytes = element.bytes()?;
                if matches!((bytes.len(), bytes.first()), (9, Some(b'F')) | (17, Some(b'A'))) {
                    continue;
                }
                let id = <[u8; 8]>::try_from(bytes).map(u64::from_be_bytes);
                let id =
                    id.map_err(|_| Error::internal(format!("an outbox holds {}", bytes.escape_ascii())))?;
                let post = PostId::from_u64(id & ID_BITS)?;
                if post.get() <= before {
                    return Err(Error::internal(format!("the outbox of {author} is out of order at {post}")));
                }
                before = post.get();
                live.extend((id & !ID_BITS == 0).then_some(PostRef { id: post, author }));
            }
            let headers = ask::headers(tenant, &live).await?;
            untold += headers.untold;
            for (post, header) in live.into_iter().zip(headers.posts) {
                let Some(header) = header else { continue };
                let is_its = match header {
                    StoredPost::There(header) => header.author == author,
                    StoredPost::Gone => false,
                    StoredPost::Unreadable(unreadable) => unreadable.author() == Some(author),
                };
                suspects.extend((!is_its).then_some(OutboxEntry(post)));
            }
            from += elements.len();
            if elements.len() < POSTS_AT_ONCE {
                return Ok(Observation::units(suspects).but_for(untold));
            }
        }
    }
}

impl Relation for PostAt {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(id) = *self;
        let Some(post) = tenant.posts().get(id).await?.readable()? else {
            return Ok(Observation::default());
        };
        let author = post.header().author;
        let mut seen = OutboxEntry(PostRef { id, author }).look(tenant).await?;
        if is_there(tenant, author).await? {
            seen.read = Some(ReadData::Post { id, post: Box::new(post) });
        }
        Ok(seen)
    }
}

impl Relation for PostPlace {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(id) = *self;
        let header = tenant.router().ask(tenant.posts().header_request(id)).await?;
        let header = StoredPost::read_head_as(header, PostHeader::parse)?.found();
        Ok(Observation::units(header.map(|header| OutboxEntry(PostRef { id, author: header.author }))))
    }
}

impl Relation for OutboxEntry {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let PostRef { id: post, author } = self.0;
        let outbox = tenant.keys().outbox(author);
        // The post, its place, the post: what is published or deleted between shows.
        let page = functions::outbox_page(outbox.clone(), true, post.get() + 1, 1);
        let asked = [
            tenant.posts().header_request(post),
            Request::read(tenant.slot(author), page),
            ask::request("LINDEX", &outbox, &[b"0"]),
            ask::request(
                "ZSCORE",
                &tenant.keys().agenda(tenant.bucket(author)),
                &[&AgendaEntry::Post(self.0).to_bytes()],
            ),
            tenant.posts().header_request(post),
        ];
        let mut answers = Answers::ordered(tenant, asked).await?;
        let is_its = |answer| {
            let header = StoredPost::read_head_as(answer, PostHeader::parse)?.readable()?;
            Ok::<_, Error>(header.is_some_and(|header| header.author == author))
        };
        let before = is_its(answers.answer()?)?;
        let (page, first, noted) = (answers.next()?.into_array()?, answers.next()?, answers.next()?);
        let is_its = is_its(answers.answer()?)?;
        if before != is_its {
            return Ok(Observation::default());
        }
        let number = |reply: &Reply| {
            let bytes = reply.bytes().ok()?.last_chunk::<8>()?;
            Some(u64::from_be_bytes(*bytes))
        };
        let found = page.get(1).filter(|id| id.bytes().is_ok_and(|id| id.len() == 8)).and_then(number);
        let found = found.filter(|id| id & ID_BITS == post.get());
        let floor = number(&first).unwrap_or(0);
        let archived = ArchiveFloor::read(&first)?;
        let is_below = archived.is_some_and(|floor| post <= floor.upto);
        match (is_its, found) {
            (true, _) if !is_there(tenant, author).await? => {
                Ok(OwnerlessKey::post_orphan(tenant.keys().post(post), author))
            }
            (true, None) if is_below && noted.is_nil() || post.get() > floor => {
                // H224: on two outboxes it would hide the other one's for good.
                let is_twice = tenant.posts().is_archived_of_other(self.0).await?;
                Ok(self.found(match is_below {
                    _ if is_twice => FindingKind::IdTwice,
                    // Nobody would look at it again.
                    true => FindingKind::PostUnnoted,
                    false => FindingKind::PostUnlisted,
                }))
            }
            (true, Some(id)) if id != post.get() => Ok(self.found(FindingKind::PostAfterDelete)),
            (false, Some(id)) if id == post.get() => {
                let is_archived = tenant.posts().has_row(self.0, archived).await?;
                Ok(self.found(if is_archived { FindingKind::FloorLies } else { FindingKind::PostGone }))
            }
            _ => Ok(Observation::default()),
        }
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let (keys, PostRef { id: post, author }) = (tenant.keys(), self.0);
        match found.kind {
            FindingKind::PostUnnoted => {
                let (agenda, now_ms) = (keys.agenda(tenant.bucket(author)), tenant.router().now_ms());
                // Of one that has left meanwhile the entry goes when it is looked at.
                let note = Command::new("ZADD").arg(&agenda).arg("NX").arg(now_ms);
                write(tenant, &agenda, note.arg(&AgendaEntry::Post(self.0).to_bytes())).await?;
                return Ok(Vec::new());
            }
            FindingKind::FloorLies => {
                recover(tenant, self.0).await?;
                return Ok(Vec::new());
            }
            FindingKind::IdTwice => return Err(left_alone()),
            _ => {}
        }
        let of = [keys.post(post), keys.outbox(author), keys.account(author)];
        let mended = write(tenant, &of[1], functions::outbox_mend(&of, author, post.get())).await?;
        if mended.int()? == 1 {
            leave(&graph.journal, tenant.bucket(author), DeliverTask { post: self.0 }).await?;
        }
        Ok(Vec::new())
    }
}

impl OutboxEntry {
    fn found(self, kind: FindingKind) -> Observation {
        let PostRef { id, author } = self.0;
        let (told, excused_by) =
            (format!("post {id} in the outbox of {author}"), vec![Matter::Burial(author)]);
        [Deviation { kind, at: Unit::of(self), detail: Vec::new(), told, excused_by }].into()
    }
}

/// Deletes a post that still can't be read: of the account whose outbox has it, or of whom the archive has it; else of
/// whoever it says that it is.
pub(super) async fn drop_unreadable(journal: &Arc<Journal>, unit: &Unit) -> Result<Vec<Unit>> {
    let (post, listed_by) = if let Some(PostAt(post)) = unit.downcast() {
        (*post, None)
    } else if let Some(OutboxEntry(post)) = unit.downcast() {
        (post.id, Some(post.author))
    } else {
        return Err(left_alone());
    };
    let (tenant, buckets) = (&journal.tenant, journal.tenant.keys().buckets());
    let stored = tenant.posts().get(post).await?;
    if let StoredPost::Unreadable(unreadable) = &stored {
        let author = match listed_by {
            None => tenant.posts().archived_author(post).await?.or(unreadable.author()),
            listed_by => listed_by,
        };
        // What it says may be anything.
        match author.filter(|author| tenant.bucket(*author) == post.bucket(buckets)) {
            // H43: its id was given twice.
            Some(author) if unreadable.is_anothers(author) => return Err(left_alone()),
            Some(author) => {
                graph::delete_found(journal, PostRef { id: post, author }, stored).await?;
            }
            None => drop_unowned(tenant, post, unreadable).await?,
        }
    }
    Ok(Vec::new())
}

/// Drops what can't be read, and of which nothing says whose it is, if it still is that.
async fn drop_unowned(tenant: &Tenant, post: PostId, unreadable: &Unreadable) -> Result<()> {
    let key = tenant.keys().post(post);
    let drop = match unreadable.bytes() {
        Some(bytes) => functions::string_drop(key.clone(), bytes),
        // Of another type: no id is given twice while something stands there.
        None => Command::new("UNLINK").arg(&key),
    };
    write(tenant, &key, drop).await.map(|_| ())
}
