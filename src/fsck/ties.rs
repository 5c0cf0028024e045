//! What accounts like, have bookmarked and reposted, against the posts' side of it.

use super::deviation::{Deviation, FindingKind};
use super::lists::post;
use super::look::{Seen, is_there};
use super::outboxes::{author_is, header_request};
use super::unit::Unit;
use crate::error::Result;
use crate::graph::likers;
use crate::ids::{AccountId, PostId};
use crate::post::{Post, PostRef};
use crate::reader::Tie;
use crate::sharded::{Member as _, Scored, Spot};
use crate::stored::stored_post;
use crate::tenant::Tenant;

/// Members of a set looked at in one go.
const MEMBERS_AT_ONCE: usize = 500;

fn posts_of(members: &[(Spot, &Scored)]) -> Result<Vec<(PostRef, f64)>> {
    members.iter().map(|(_, entry)| Ok((PostRef::from_bytes(&entry.member)?, entry.score))).collect()
}

/// What an account likes: those that are not on the post's list, or with an older stamp, are looked at.
pub(super) async fn likes(tenant: &Tenant, account: AccountId, members: &[(Spot, &Scored)]) -> Result<Seen> {
    let mut seen = Seen::default();
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let posts = posts_of(members)?;
        let lists = posts.iter().map(|(post, _)| Ok((likers(tenant, post.id)?, account)));
        let listed = tenant.sets().scores_in(&lists.collect::<Result<Vec<_>>>()?).await?;
        for ((post, since), listed) in posts.into_iter().zip(listed) {
            if listed.is_none_or(|listed| listed < since) {
                seen.units.push(Unit::Tie { account, post, what: Tie::Like });
            }
        }
    }
    Ok(seen)
}

/// What an account has bookmarked: posts that are gone are looked at.
pub(super) async fn bookmarks(
    tenant: &Tenant,
    account: AccountId,
    members: &[(Spot, &Scored)],
) -> Result<Seen> {
    let mut seen = Seen::default();
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let posts = posts_of(members)?;
        let headers = posts.iter().map(|(post, _)| header_request(tenant, post.id));
        let answers = tenant.run_all(headers.collect()).await?;
        for ((post, _), answer) in posts.into_iter().zip(answers) {
            if !author_is(answer, post.author)? {
                seen.units.push(Unit::Tie { account, post, what: Tie::Bookmark });
            }
        }
    }
    Ok(seen)
}

/// Who likes a post: those that don't say so are looked at.
pub(super) async fn listed(tenant: &Tenant, post: PostRef, members: &[(Spot, &Scored)]) -> Result<Seen> {
    let mut seen = Seen::default();
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let accounts = members.iter().map(|(_, entry)| AccountId::from_bytes(&entry.member));
        let accounts = accounts.collect::<Result<Vec<_>>>()?;
        let sets = accounts.iter().map(|account| Ok((tenant.likes(*account)?, post)));
        let likes = tenant.sets().scores_in(&sets.collect::<Result<Vec<_>>>()?).await?;
        for (account, likes) in accounts.into_iter().zip(likes) {
            if likes.is_none() {
                seen.units.push(Unit::Tie { account, post, what: Tie::Like });
            }
        }
    }
    Ok(seen)
}

/// Looks at one like or bookmark, from both sides.
pub(super) async fn tie(tenant: &Tenant, account: AccountId, post: PostRef, what: Tie) -> Result<Seen> {
    let is_account = is_there(tenant, account).await?;
    let since = what.set(tenant, account)?.score(&post).await?.filter(|_| is_account);
    let listed = match what {
        Tie::Like => likers(tenant, post.id)?.score(&account).await?,
        Tie::Bookmark => None,
    };
    let is_post = author_is(tenant.router().ask(header_request(tenant, post.id)).await?, post.author)?;
    let of = |kind, stamp: f64| {
        Ok(Seen::of(vec![Deviation::Tie { kind, what, account, post, stamp: stamp.to_bits() }]))
    };
    match (since, listed) {
        (Some(since), _) if !is_post => of(FindingKind::TieOfNothing, since),
        (Some(since), listed) if what == Tie::Like && listed.is_none_or(|listed| listed < since) => {
            of(FindingKind::TieUnlisted, since)
        }
        (None, Some(listed)) if is_post => of(FindingKind::TieNeedless, listed),
        _ => Ok(Seen::default()),
    }
}

/// What an account has reposted: notes of what is no such repost (any more) are looked at.
pub(super) async fn reposts(
    tenant: &Tenant,
    account: AccountId,
    members: &[(Spot, &Scored)],
) -> Result<Seen> {
    let (mut seen, bucket) = (Seen::default(), tenant.bucket(account));
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let noted = posts_of(members)?.into_iter().map(|(original, place)| {
            Ok((original, PostId::at_place(tenant.keys().buckets(), bucket, place)?))
        });
        let noted = noted.collect::<Result<Vec<_>>>()?;
        let reposts = noted.iter().map(|(_, repost)| tenant.post_request(*repost));
        let answers = tenant.run_all(reposts.collect()).await?;
        for ((original, _), answer) in noted.into_iter().zip(answers) {
            // What can't be read is found for itself.
            let may_stay = stored_post(answer)?
                .map_or(true, |post| post.is_some_and(|post| reposts_it(&post, account, original)));
            if !may_stay {
                seen.units.push(Unit::Reposted { account, original });
            }
        }
    }
    Ok(seen)
}

fn reposts_it(post: &Post, account: AccountId, original: PostRef) -> bool {
    post.header().author == account && post.passes_on() == Some(original)
}

/// Looks whether a plain repost is noted as such by its author.
pub(super) async fn noted(tenant: &Tenant, repost: PostId, stored: &Post) -> Result<Seen> {
    let Some(original) = stored.passes_on() else { return Ok(Seen::default()) };
    let account = stored.header().author;
    if tenant.reposts(account)?.score(&original).await?.is_some() {
        // This one, or another one that is looked at for itself.
        return Ok(Seen::default());
    }
    // What was deleted meanwhile is noted no more.
    let stored = post(tenant, repost).await?.ok().flatten();
    if !stored.is_some_and(|post| reposts_it(&post, account, original)) {
        return Ok(Seen::default());
    }
    let kind = FindingKind::RepostUnnoted;
    Ok(Seen::of(vec![Deviation::Reposted { kind, account, original, repost }]))
}

/// Looks at the note of one repost.
pub(super) async fn reposted(tenant: &Tenant, account: AccountId, original: PostRef) -> Result<Seen> {
    let Some(place) = tenant.reposts(account)?.score(&original).await? else { return Ok(Seen::default()) };
    let repost = PostId::at_place(tenant.keys().buckets(), tenant.bucket(account), place)?;
    let Ok(stored) = post(tenant, repost).await? else { return Ok(Seen::default()) };
    if stored.is_some_and(|post| reposts_it(&post, account, original)) {
        return Ok(Seen::default());
    }
    let kind = FindingKind::RepostNoteNeedless;
    Ok(Seen::of(vec![Deviation::Reposted { kind, account, original, repost }]))
}
