//! Lists of mentions and hashtags, and the posts that name them.

use std::collections::HashMap;

use super::deviation::{Deviation, FindingKind};
use super::look::Seen;
use super::unit::Unit;
use crate::error::Result;
use crate::graph::{Listed, Standing, list_score, standing};
use crate::ids::{AccountId, PostId};
use crate::post::PostList;
use crate::sharded::{Member as _, Scored, Spot};
use crate::stored::{StoredPost, stored_post};
use crate::tenant::Tenant;

/// Posts looked at in one go.
const POSTS_AT_ONCE: usize = 200;

async fn posts_at(tenant: &Tenant, posts: &[PostId]) -> Result<Vec<StoredPost>> {
    let answers = tenant.run_all(posts.iter().map(|post| tenant.post_request(*post)).collect()).await?;
    answers.into_iter().map(stored_post).collect()
}

/// The same for one; what can't be read is found for itself.
async fn post_at(tenant: &Tenant, post: PostId) -> Result<StoredPost> {
    Ok(posts_at(tenant, &[post]).await?.pop().unwrap_or(Ok(None)))
}

/// Whether the lists that a post names have it.
pub(super) async fn of_post(tenant: &Tenant, post: PostId, author: AccountId) -> Result<Seen> {
    let stored = post_at(tenant, post).await?.ok().flatten();
    let lists =
        stored.filter(|stored| stored.header().author == author).map(|stored| stored.lists(tenant.tags()));
    let mut seen = Seen::default();
    for list in lists.unwrap_or_default() {
        seen = seen.and(entry(tenant, post, author, list).await?);
    }
    Ok(seen)
}

/// Whether a post is on a list, and should be. One that an earlier revision named may be.
pub(super) async fn entry(tenant: &Tenant, post: PostId, author: AccountId, list: PostList) -> Result<Seen> {
    let Standing { score: on, has_left } = standing(tenant, list, post, author).await?;
    // After that: a post that was deleted meanwhile is taken off by whoever deleted it.
    let Ok(stored) = post_at(tenant, post).await? else { return Ok(Seen::default()) };
    let stored = stored.filter(|stored| stored.header().author == author);
    let names = stored.as_ref().is_some_and(|stored| stored.lists(tenant.tags()).contains(&list));
    let may_be_on = stored.is_some_and(|stored| stored.lists_ever(tenant.tags()).contains(&list));
    let is_right = on == Some(list_score(post));
    let kind = if on.is_some() && !may_be_on {
        FindingKind::ListingNeedless
    } else if names && !is_right && !has_left && is_for_somebody(tenant, list).await? {
        FindingKind::ListingMissing
    } else {
        return Ok(Seen::default());
    };
    Ok(Seen::of(vec![Deviation::ListEntry { kind, post, author, list }]))
}

/// Whether a list has an owner: nobody keeps the mentions of who isn't there.
async fn is_for_somebody(tenant: &Tenant, list: PostList) -> Result<bool> {
    match list {
        PostList::Mentions(account) => {
            Ok(tenant.account(account).await?.is_some_and(|account| account.is_there()))
        }
        PostList::Tagged(_) => Ok(true),
    }
}

/// The members of a list: those that don't seem to belong there are looked at.
pub(super) async fn members(tenant: &Tenant, list: PostList, members: &[(Spot, &Scored)]) -> Result<Seen> {
    let mut listed: Vec<(PostId, AccountId, bool)> = Vec::with_capacity(members.len());
    let mut seen = Seen::default();
    for (_, scored) in members {
        match Listed::from_bytes(&scored.member)? {
            Listed::Floor => {}
            Listed::Post(post, author) => {
                let is_in_place = scored.score.total_cmp(&list_score(post)).is_eq();
                listed.push((post, author, is_in_place));
            }
            Listed::Id(post) => {
                return Err(crate::Error::internal(format!("a list names post {post} without its author")));
            }
        }
    }
    for some in listed.chunks(POSTS_AT_ONCE) {
        let ids: Vec<PostId> = some.iter().map(|(post, ..)| *post).collect();
        let posts: HashMap<PostId, StoredPost> =
            ids.iter().copied().zip(posts_at(tenant, &ids).await?).collect();
        for (post, author, is_in_place) in some {
            let Some(Ok(stored)) = posts.get(post) else { continue };
            let stored = stored.as_ref();
            let stored = stored.filter(|stored| stored.header().author == *author);
            if !is_in_place || !stored.is_some_and(|stored| stored.lists_ever(tenant.tags()).contains(&list))
            {
                seen.units.push(Unit::ListEntry { post: *post, author: *author, list });
            }
        }
    }
    Ok(seen)
}
