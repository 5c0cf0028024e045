//! Posts that have left memory: whether what they name has them on its lists, and whether who stands on their own lists
//! says so.

use super::outboxes::PostAt;
use super::{named_lists, post_counts, references, reposts, ties};
use crate::archive::ListMember;
use crate::error::Result;
use crate::fsck::seen::{Observation, Relation};
use crate::graph::{LIKES, LISTS};
use crate::ids::PostId;
use crate::post::{Post, PostRef};
use crate::sharded::ScoredMember;
use crate::stored::StoredPost;
use crate::tenant::{Answers, MissingPost, Tenant};
use crate::tiers;

/// Posts that a step through the archive has met, as many as are looked at in one go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ContentInArchive(pub(crate) Vec<PostRef>);

/// A list of a post that has left memory, of which that says that it has so many members: these, and how many there
/// are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ListInArchive {
    of: PostRef,
    list: u8,
    told: u64,
}

impl Relation for ContentInArchive {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let left = only_archived(tenant, &self.0).await?;
        let missing: Vec<MissingPost> = left.iter().map(|post| (post.id, Some(post.author))).collect();
        let (found, untold) = tenant.posts().archived(&missing).await?;
        let (mut posts, mut unreadable) = (Vec::new(), Vec::new());
        for (post, stored) in left.into_iter().zip(found) {
            match stored.map(|stored| StoredPost::of_bytes(&stored, Post::parse)) {
                Some(StoredPost::There(stored)) if stored.header().author == post.author => {
                    posts.push((post.id, stored));
                }
                Some(StoredPost::Unreadable(_)) => unreadable.push(PostAt(post.id)),
                _ => {}
            }
        }
        let named = references::of_archived(tenant, &posts).await?;
        let listed = named_lists::of_archived(tenant, &posts).await?;
        let noted = reposts::of_archived(tenant, &posts).await?;
        let lists = Observation::units(posts.iter().flat_map(|(id, post)| lists_of(*id, post)));
        let seen = named.and(listed).and(noted).and(lists).and(Observation::units(unreadable));
        Ok(seen.and(Observation::default().but_for(untold.posts.len() as u64)))
    }
}

/// The posts among these that are not in memory: what is there is met there.
async fn only_archived(tenant: &Tenant, posts: &[PostRef]) -> Result<Vec<PostRef>> {
    let exist = posts.iter().map(|post| tenant.posts().exists_request(post.id)).collect();
    let mut exist = Answers::of(tenant, exist).await?;
    let mut left = Vec::new();
    for post in posts {
        left.extend((exist.next()?.int()? == 0).then_some(*post));
    }
    Ok(left)
}

/// The lists of a post that it says have members.
fn lists_of(id: PostId, post: &Post) -> impl Iterator<Item = ListInArchive> {
    let (of, header) = (PostRef { id, author: post.header().author }, *post.header());
    let told = LISTS.into_iter().map(move |(list, ..)| (list, post_counts::told(&header, list)));
    told.filter(|(_, told)| *told > 0).map(move |(list, told)| ListInArchive { of, list, told })
}

impl Relation for ListInArchive {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { of, list, told } = *self;
        let members = tiers::stored_list(tenant, (of.id, list)).await?;
        let is_off = told != members.len() as u64;
        let scored = |member: ListMember| ScoredMember { score: member.score, member: member.bytes };
        let members: Vec<ScoredMember> = members.into_iter().map(scored).collect();
        let members: Vec<&ScoredMember> = members.iter().collect();
        let seen = match list {
            LIKES => ties::on_list_of(tenant, of, &members).await?,
            kind => references::on_list_of(tenant, of, kind, &members).await?,
        };
        Ok(seen.and(Observation::units(is_off.then_some(post_counts::PostCounts(of)))))
    }
}
