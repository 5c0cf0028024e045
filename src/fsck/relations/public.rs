//! Posts on the public lists of their buckets. A post that is missing there tells nothing: lists are bounded, and begin
//! when the tenant decides so.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::error::Result;
use crate::fsck::ask::{self, read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit, left_alone};
use crate::functions::public_drop;
use crate::graph::Graph;
use crate::journal::Matter;
use crate::post::{Post, PostRef};
use crate::stored::public_entries;
use crate::tenant::Tenant;

/// Posts looked at in one go.
const POSTS_AT_ONCE: usize = 200;

/// The public posts of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PublicPostsOf(pub(super) Bucket);

/// A post among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PublicListing {
    bucket: Bucket,
    post: PostRef,
}

async fn listed(tenant: &Tenant, bucket: Bucket) -> Result<Vec<PostRef>> {
    let reply = read(tenant, "GETRANGE", &tenant.keys().public_posts(bucket), &[b"0", b"-1"]).await?;
    Ok(public_entries(reply.bytes()?).collect())
}

impl Relation for PublicPostsOf {
    /// Finds the posts that don't seem to belong there: they are looked at.
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let (mut suspects, mut untold) = (Vec::new(), 0);
        for listed in listed(tenant, self.0).await?.chunks(POSTS_AT_ONCE) {
            let posts = ask::posts(tenant, listed).await?;
            untold += posts.untold;
            for (post, stored) in listed.iter().zip(posts.posts) {
                let listing = PublicListing { bucket: self.0, post: *post };
                let Some(stored) = stored else { continue };
                // What can't be read is found for itself.
                let Ok(stored) = stored.known() else { continue };
                suspects.extend((!listing.may_stay(tenant, stored.as_ref())).then_some(listing));
            }
        }
        Ok(Observation::units(suspects).but_for(untold))
    }
}

impl Relation for PublicListing {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let is_listed = listed(tenant, self.bucket).await?.contains(&self.post);
        // After that: who deletes a post takes it off behind that.
        let Ok(stored) = ask::post(tenant, self.post).await?.known() else {
            return Ok(Observation::default());
        };
        let is_needless = is_listed && !self.may_stay(tenant, stored.as_ref());
        Ok(if is_needless { self.found() } else { Observation::default() })
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        let keys = graph.tenant.keys();
        if self.post.id.bucket(keys.buckets()) != self.bucket {
            return Err(left_alone());
        }
        let drop = public_drop(keys, self.bucket, &[self.post]);
        write(&graph.tenant, &keys.public_posts(self.bucket), drop).await.map(|_| Vec::new())
    }
}

impl PublicListing {
    /// Whether the post is there, and belongs where it stands. What it says may change, but not that.
    fn may_stay(&self, tenant: &Tenant, stored: Option<&Post>) -> bool {
        let PostRef { id, author } = self.post;
        let is_there =
            stored.is_some_and(|post| post.header().author == author && post.is_on_public_timeline());
        is_there && id.bucket(tenant.keys().buckets()) == self.bucket
    }

    fn found(self) -> Observation {
        let PostRef { id, author } = self.post;
        let told = format!("post {id} of {author} among the public posts of bucket {}", self.bucket.index());
        let (kind, excused_by) = (FindingKind::PublicNeedless, vec![Matter::Burial(author)]);
        [Deviation { kind, at: Unit::of(self), detail: Vec::new(), told, excused_by }].into()
    }
}
