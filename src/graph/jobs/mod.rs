//! The tasks that changes of the graph and of posts leave to do elsewhere: a file for each kind.

mod bury;
mod list;
mod pair;
mod refer;
mod tie;
mod unlist;
mod unlock;

pub(crate) use bury::BuryTask;
pub(crate) use list::ListTask;
pub(crate) use pair::{FollowHint, PairTask};
pub(crate) use refer::ReferTask;
pub(crate) use tie::TieTask;
pub(crate) use unlist::UnlistTask;
pub(crate) use unlock::UnlockTask;

use crate::bucket::Bucket;
use crate::ids::PostId;
use crate::journal::{JournalEntry, Task};
use crate::post::{NamedList, Post, PostRef, Reference};
use crate::search::{IndexTask, is_searched};
use crate::tenant::Tenant;

/// The tasks that a new post, or one that goes, leaves to do about what it refers to. `lists`: whether it is about any
/// lists.
pub(crate) fn tasks_about(tenant: &Tenant, id: PostId, post: &Post, lists: bool) -> Vec<Task> {
    let (of, refers) = (post, Reference::of_post(post));
    let post = PostRef { id, author: post.header().author };
    let refer = |to| ReferTask { post, to }.into();
    let list = lists.then(|| ListTask { post }.into());
    let index = (is_searched(tenant) && !of.is_plain_repost()).then(|| IndexTask { post }.into());
    refers.into_iter().map(refer).chain(list).chain(index).collect()
}

/// The entries for what the deletion of a post leaves to do elsewhere than on its own lists.
pub(crate) fn entries_of_deleted(
    tenant: &Tenant,
    bucket: Bucket,
    id: PostId,
    post: &Post,
) -> Vec<JournalEntry> {
    let (owner, lists) = (tenant.instance, post.lists_of_any_release(tenant.tags()));
    let entry = |task: Task| match task.is_a::<ListTask>() {
        true => JournalEntry {
            payload: NamedList::all_to_bytes(&lists),
            ..JournalEntry::new(bucket, owner, task)
        },
        false => JournalEntry::new(bucket, owner, task),
    };
    tasks_about(tenant, id, post, !lists.is_empty()).into_iter().map(entry).collect()
}
