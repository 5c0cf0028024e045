//! Replies, reposts and quotes on the list of what they refer to.

use std::sync::Arc;

use crate::error::Result;
use crate::fsck::ask::{self, leave, members_of};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::graph::Graph;
use crate::graph::{self, ReferTask};
use crate::ids::PostId;
use crate::journal::Matter;
use crate::post::{Post, PostRef, Reference};
use crate::sharded::{Member as _, ScoredMember};
use crate::tenant::Tenant;
use crate::tiers::{self, MembershipQuestion};

/// Members of a list looked at in one go.
const MEMBERS_AT_ONCE: usize = 500;

/// A post on the list of what it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ReferenceListing {
    post: PostRef,
    to: Reference,
}

/// Whether what is listed is that post, by that author, and refers to another one in that way.
fn refers(post: &Post, listed: PostRef, kind: u8, to: PostId) -> bool {
    let is_its = post.header().author == listed.author;
    is_its && Reference::of_post(post).iter().any(|of| (of.kind, of.to.id) == (kind, to))
}

fn listings(id: PostId, post: &Post) -> impl Iterator<Item = ReferenceListing> {
    let listed = PostRef { id, author: post.header().author };
    Reference::of_post(post).into_iter().map(move |to| ReferenceListing { post: listed, to })
}

/// The references of a post.
pub(super) fn of_post(id: PostId, post: &Post) -> Observation {
    Observation::units(listings(id, post))
}

/// The references of posts that have left memory: those that neither memory nor the archive lists are looked at.
pub(super) async fn of_archived(tenant: &Tenant, posts: &[(PostId, Post)]) -> Result<Observation> {
    let all: Vec<ReferenceListing> = posts.iter().flat_map(|(id, post)| listings(*id, post)).collect();
    let lists = all.iter().map(|of| Ok((graph::list(tenant, of.to.kind, of.to.to.id)?, of.post)));
    let listed = tenant.sets().scores_in(&lists.collect::<Result<Vec<_>>>()?).await?;
    let missing = all.into_iter().zip(listed).filter(|(_, listed)| listed.is_none());
    let missing: Vec<ReferenceListing> = missing.map(|(of, _)| of).collect();
    let targets: Vec<PostRef> = missing.iter().map(|of| of.to.to).collect();
    let targets = ask::headers(tenant, &targets).await?;
    // A list of what is gone nobody needs.
    let there = missing
        .into_iter()
        .zip(targets.posts)
        .filter(|(of, target)| target.as_ref().is_some_and(|target| target.may_be_of(of.to.to.author)));
    let there: Vec<ReferenceListing> = there.map(|(of, _)| of).collect();
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
    let place = |of: &ReferenceListing| {
        let list = (of.to.to.id, of.to.kind);
        MembershipQuestion::new(list, &of.post.to_bytes(), of.post.id.unix_ms() as f64)
    };
    let are_listed = tiers::are_listed(tenant, there.iter().map(place).collect()).await?;
    let suspects = there.into_iter().zip(are_listed).filter(|(_, is)| !is).map(|(of, _)| of);
    Ok(Observation::units(suspects).but_for(targets.untold))
}

/// Finds the posts on a list of a post that don't refer to it, as the list says they do: they are looked at.
pub(super) async fn on_list(
    tenant: &Tenant,
    of: PostId,
    kind: u8,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let Some(target) = tenant.posts().header(of).await?.found() else { return Ok(Observation::default()) };
    on_list_of(tenant, PostRef { id: of, author: target.author }, kind, members).await
}

/// Looks at members of a post's list, where it is known whose post it is.
pub(super) async fn on_list_of(
    tenant: &Tenant,
    of: PostRef,
    kind: u8,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let (mut suspects, mut untold) = (Vec::new(), 0);
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let listed = members_of::<PostRef>(members)?;
        let posts = ask::posts(tenant, &listed).await?;
        untold += posts.untold;
        for (post, stored) in listed.into_iter().zip(posts.posts) {
            let Some(stored) = stored else { continue };
            // What can't be read is found for itself.
            let may_stay =
                stored.known().map_or(true, |stored| stored.is_some_and(|s| refers(&s, post, kind, of.id)));
            let to = Reference { kind, to: of };
            suspects.extend((!may_stay).then_some(ReferenceListing { post, to }));
        }
    }
    Ok(Observation::units(suspects).but_for(untold))
}

impl Relation for ReferenceListing {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { post, to } = *self;
        // What can't be read is found for itself.
        let Ok(stored) = ask::post(tenant, post).await?.known() else {
            return Ok(Observation::default());
        };
        let refers = stored.is_some_and(|stored| refers(&stored, post, to.kind, to.to.id));
        let is_listed = match graph::list(tenant, to.kind, to.to.id)?.score(&post).await? {
            Some(_) => true,
            // A post that is gone itself needs no list.
            None if !ask::is_post(tenant, to.to).await? => return Ok(Observation::default()),
            // One that has left memory has its lists where it is.
            None => {
                let of = (to.to.id, to.kind);
                tiers::archived_score(tenant, of, &post.to_bytes()).await?.is_some()
            }
        };
        Ok(match (refers, is_listed) {
            (true, false) => self.found(FindingKind::ListingMissing),
            (false, true) => self.found(FindingKind::ListingNeedless),
            _ => Observation::default(),
        })
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let (Self { post, to }, keys) = (*self, tenant.keys());
        if found.kind == FindingKind::ListingNeedless && ask::is_post(tenant, post).await? {
            // It refers to something else, and always will.
            graph::unlist(tenant, to, post).await?;
        } else {
            let task = ReferTask { post, to };
            leave(&graph.journal, post.id.bucket(keys.buckets()), task).await?;
        }
        Ok(Vec::new())
    }
}

impl ReferenceListing {
    fn found(self, kind: FindingKind) -> Observation {
        let Self { post, to: Reference { to, .. } } = self;
        let told = format!("post {} on the list of post {}", post.id, to.id);
        let work = Matter::Reference { post, to };
        let excused_by = vec![Matter::Burial(post.author), Matter::Burial(to.author), work];
        [Deviation { kind, at: Unit::of(self), detail: Vec::new(), told, excused_by }].into()
    }
}
