//! Storing imported posts, each under an id of its time that no other post has.

use std::collections::HashMap;

use super::super::archive::archived_among;
use super::ImportedPost;
use crate::bucket::Bucket;
use crate::cluster::Batch;
use crate::error::{Error, Result};
use crate::ids::{PostId, sequences};
use crate::post::Post;
use crate::tenant::Tenant;

/// A post, by its number, and the id that it may get.
type Candidate = (usize, PostId);

/// Stores posts. Gives their ids, in their order.
pub(super) async fn posts(tenant: &Tenant, posts: &[ImportedPost]) -> Result<Vec<PostId>> {
    let buckets = tenant.keys().buckets();
    let mut ids: Vec<Option<PostId>> = vec![None; posts.len()];
    let mut open: Vec<usize> = (0..posts.len()).collect();
    // How many ids of each bucket and millisecond were tried: what is full goes over into the next millisecond.
    let mut tried: HashMap<(Bucket, u64), u64> = HashMap::new();
    while !open.is_empty() {
        let mut candidates: Vec<Candidate> = Vec::with_capacity(open.len());
        for n in open {
            let post = &posts[n];
            let bucket = tenant.bucket(post.author);
            let nth = tried.entry((bucket, post.created_ms)).or_default();
            let (over, sequence) = (*nth / sequences(buckets), *nth % sequences(buckets));
            *nth += 1;
            candidates.push((n, PostId::new(buckets, bucket, post.created_ms + over, sequence)?));
        }
        let (free, mut taken) = free_of_old(tenant, candidates).await?;
        let new = |(n, id): &Candidate| {
            let stored = Post::new(posts[*n].author, &posts[*n].draft).encode();
            tenant.posts().new_request(*id, &stored)
        };
        let answers = tenant.run_all(free.iter().map(new).collect()).await?;
        for ((n, id), answer) in free.into_iter().zip(answers) {
            match answer.ok()?.is_nil() {
                true => taken.push(n),
                false => ids[n] = Some(id),
            }
        }
        taken.sort_unstable();
        open = taken;
    }
    ids.into_iter().map(|id| id.ok_or_else(|| Error::internal("a post without an id"))).collect()
}

/// The candidates whose ids no post in the archive has, and the numbers of the others. H222: asked before anything is
/// stored under an id, which would hide the post that has it. Memory is asked first: a mover that has woken may let a
/// post leave at any moment, and the archive has it by then.
async fn free_of_old(tenant: &Tenant, candidates: Vec<Candidate>) -> Result<(Vec<Candidate>, Vec<usize>)> {
    if tenant.archive()?.is_none() {
        return Ok((candidates, Vec::new()));
    }
    let exists: Batch = candidates.iter().map(|(_, id)| tenant.posts().exists_request(*id)).collect();
    let (mut unknown, mut taken) = (Vec::with_capacity(candidates.len()), Vec::new());
    for ((n, id), answer) in candidates.into_iter().zip(tenant.run_all(exists).await?) {
        match answer.ok()?.int()? {
            0 => unknown.push((n, id)),
            _ => taken.push(n),
        }
    }
    let ids: Vec<PostId> = unknown.iter().map(|(_, id)| *id).collect();
    // H220: a post in the archive has an id, too.
    let archived = archived_among(tenant, &ids).await?;
    let (free, old): (Vec<_>, Vec<_>) = unknown.into_iter().partition(|(_, id)| !archived.contains(id));
    taken.extend(old.into_iter().map(|(n, _)| n));
    Ok((free, taken))
}
