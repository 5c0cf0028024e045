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
use crate::sharded::{Member as _, Scored};
use crate::tenant::Tenant;
use crate::tiers;

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

/// What a post refers to.
pub(super) fn of_post(id: PostId, post: &Post) -> Observation {
    let listed = PostRef { id, author: post.header().author };
    Observation::units(Reference::of_post(post).into_iter().map(|to| ReferenceListing { post: listed, to }))
}

/// Those on a list of a post that don't refer to it, as the list says they do, are looked at.
pub(super) async fn on_list(
    tenant: &Tenant,
    of: PostId,
    kind: u8,
    members: &[&Scored],
) -> Result<Observation> {
    let (mut suspects, mut untold) = (Vec::new(), 0);
    let Some(target) = tenant.posts().header(of).await?.found() else { return Ok(Observation::default()) };
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let listed = members_of::<PostRef>(members)?;
        let posts = ask::posts(tenant, &listed).await?;
        untold += posts.untold;
        for (post, stored) in listed.into_iter().zip(posts.posts) {
            let Some(stored) = stored else { continue };
            // What can't be read is found for itself.
            let may_stay =
                stored.known().map_or(true, |stored| stored.is_some_and(|s| refers(&s, post, kind, of)));
            let to = Reference { kind, to: PostRef { id: of, author: target.author } };
            suspects.extend((!may_stay).then_some(ReferenceListing { post, to }));
        }
    }
    Ok(Observation::units(suspects).but_for(untold))
}

impl Relation for ReferenceListing {
    async fn look(&self, graph: &Arc<Graph>) -> Result<Observation> {
        let Self { post, to } = *self;
        // What can't be read is found for itself.
        let Ok(stored) = ask::post(graph, post).await?.known() else { return Ok(Observation::default()) };
        let refers = stored.is_some_and(|stored| refers(&stored, post, to.kind, to.to.id));
        let is_on_it = graph::list(graph, to.kind, to.to.id)?.score(&post).await?.is_some();
        if is_on_it == refers {
            return Ok(Observation::default());
        }
        if is_on_it {
            return Ok(self.found(FindingKind::ListingNeedless));
        }
        // A post that is gone itself needs no list.
        let is_target = ask::is_post(graph, to.to).await?;
        let of = (to.to.id, to.kind);
        // One that has left memory has its lists where it is.
        if is_target && tiers::archived_score(graph, of, &post.to_bytes()).await?.is_some() {
            return Ok(Observation::default());
        }
        Ok(if is_target { self.found(FindingKind::ListingMissing) } else { Observation::default() })
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let (Self { post, to }, keys) = (*self, graph.keys());
        if found.kind == FindingKind::ListingNeedless && graph.posts().exists(post.id).await? {
            // It refers to something else, and always will.
            graph::unlist(graph, to, post).await?;
        } else {
            let task = ReferTask { post, to };
            leave(graph, post.id.bucket(keys.buckets()), task).await?;
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
