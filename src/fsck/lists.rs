//! The lists of a post: whether what refers to it is on them and nothing else, whether their lengths stand in it, and
//! whether it is there at all.

use super::deviation::{Deviation, FindingKind};
use super::key::list_of;
use super::look::{Answers, Seen};
use super::outboxes::{author_is, header_of, header_request};
use super::ties;
use super::unit::Unit;
use crate::cluster::{Batch, Command, Request};
use crate::error::Result;
use crate::functions;
use crate::graph::{LIKES, LISTS, list};
use crate::ids::{AccountId, PostId};
use crate::post::{Header, Post, PostRef, Reference};
use crate::sharded::{LocalKey, Member as _, Scored, Spot};
use crate::stored::{StoredPost, stored_post};
use crate::tenant::Tenant;

/// Members of a list looked at in one go.
const MEMBERS_AT_ONCE: usize = 500;

/// A whole post: only its text tells a quote from a repost.
pub(super) async fn post(tenant: &Tenant, post: PostId) -> Result<StoredPost> {
    stored_post(tenant.router().ask(tenant.post_request(post)).await?)
}

fn told(header: &Header, kind: u8) -> u32 {
    match kind {
        Reference::REPLY => header.replies,
        Reference::REPOST => header.reposts,
        Reference::QUOTE => header.quotes,
        _ => header.likes,
    }
}

/// Whether a post knows how long its lists are.
pub(super) async fn counts(tenant: &Tenant, post: PostRef) -> Result<Seen> {
    let slot = tenant.keys().buckets().slot(post.id.bucket(tenant.keys().buckets()));
    let mut requests = vec![header_request(tenant, post.id)];
    for (_, name, _) in LISTS {
        let set = tenant.sets().of_post::<AccountId>(post.id, name)?;
        requests.push(Request::read(slot, functions::count(set.root_key())));
    }
    // What changes between shows.
    requests.push(header_request(tenant, post.id));
    let mut batch = Batch::new();
    batch.push_ordered(requests);
    let mut answers = Answers::of(tenant, batch).await?;
    let before = header_of(&answers.next()?)?;
    let mut lengths = Vec::with_capacity(LISTS.len());
    for (kind, ..) in LISTS {
        lengths.push((kind, functions::parse_count(answers.next()?)?.0));
    }
    let after = header_of(&answers.next()?)?;
    let Some(header) = after.filter(|after| before == Some(*after) && after.author == post.author) else {
        return Ok(Seen::default());
    };
    let wrong = lengths.into_iter().filter_map(|(list, members)| {
        let told = u64::from(told(&header, list));
        let PostRef { id: post, author } = post;
        (told != members).then_some(Deviation::PostCount { post, author, list, told, members })
    });
    Ok(Seen::of(wrong.collect()))
}

/// Whether a post is on a list, and whether it should be.
pub(super) async fn listing(tenant: &Tenant, listed: PostRef, to: Reference) -> Result<Seen> {
    // What can't be read is found for itself.
    let Ok(stored) = post(tenant, listed.id).await? else { return Ok(Seen::default()) };
    let refers = stored.is_some_and(|post| refers(&post, listed, to.kind, to.post));
    let is_on_it = list(tenant, to.kind, to.post)?.score(&listed).await?.is_some();
    let PostRef { id: post, author } = listed;
    let of = |kind| Ok(Seen::of(vec![Deviation::Listing { kind, post, author, to }]));
    match (is_on_it, refers) {
        (true, false) => of(FindingKind::ListingNeedless),
        // A post that is gone itself needs no list.
        (false, true) if is_there(tenant, to.target()).await? => of(FindingKind::ListingMissing),
        _ => Ok(Seen::default()),
    }
}

/// Whether what is listed is that post, by that author, and refers to another one in that way.
fn refers(post: &Post, listed: PostRef, kind: u8, to: PostId) -> bool {
    let is_its = post.header().author == listed.author;
    is_its && Reference::of_post(post).iter().any(|of| (of.kind, of.post) == (kind, to))
}

/// Whether a post is there, by that author.
async fn is_there(tenant: &Tenant, post: PostRef) -> Result<bool> {
    author_is(tenant.router().ask(header_request(tenant, post.id)).await?, post.author)
}

/// The members of a list: those that don't refer to its post, as the list says they do, are looked at.
pub(super) async fn members(tenant: &Tenant, set: &LocalKey, members: &[(Spot, &Scored)]) -> Result<Seen> {
    let Some((of, kind)) = list_of(&set.name) else { return Ok(Seen::default()) };
    let mut seen = Seen::default();
    let header = tenant.router().ask(header_request(tenant, of)).await?;
    let Some(header) = header_of(&header.reply).ok().flatten() else { return Ok(seen) };
    if kind == LIKES {
        return ties::listed(tenant, PostRef { id: of, author: header.author }, members).await;
    }
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let listed = members.iter().map(|(_, entry)| PostRef::from_bytes(&entry.member));
        let listed = listed.collect::<Result<Vec<_>>>()?;
        let posts = listed.iter().map(|listed| tenant.post_request(listed.id));
        let answers = tenant.run_all(posts.collect()).await?;
        for (listed, answer) in listed.into_iter().zip(answers) {
            // What can't be read is found for itself.
            let may_stay = stored_post(answer)?
                .map_or(true, |post| post.is_some_and(|post| refers(&post, listed, kind, of)));
            if !may_stay {
                let to = Reference { kind, post: of, author: header.author };
                seen.units.push(Unit::Listing { post: listed, to });
            }
        }
    }
    Ok(seen)
}

/// Whether the post of a list is there: one that isn't has none.
pub(super) async fn is_orphaned(tenant: &Tenant, set: &LocalKey) -> Result<bool> {
    let Some((of, _)) = list_of(&set.name) else { return Ok(false) };
    let slot = tenant.keys().buckets().slot(set.bucket);
    let exists = |key: &[u8]| Request::read(slot, Command::new("EXISTS").arg(key));
    let mut batch = Batch::new();
    batch.push_ordered([exists(&tenant.sets().key(set)), exists(&tenant.keys().post(of))]);
    let mut answers = Answers::of(tenant, batch).await?;
    Ok(answers.next()?.int()? == 1 && answers.next()?.int()? == 0)
}
