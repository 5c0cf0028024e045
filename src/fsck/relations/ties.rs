//! Likes and bookmarks of accounts, and the lists of who likes a post.

use std::sync::Arc;

use crate::error::Result;
use crate::fsck::ask::{self, is_there, leave, members_of};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::graph::Graph;
use crate::graph::{LIKES, TieTask, likers, set_tie};
use crate::ids::{AccountId, PostId};
use crate::journal::Matter;
use crate::post::PostRef;
use crate::reader::Tie;
use crate::sharded::ScoredMember;
use crate::tenant::Tenant;
use crate::tiers::{self, MembershipQuestion};

/// Members of a set looked at in one go.
const MEMBERS_AT_ONCE: usize = 500;

/// One like or bookmark, from both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TieListing {
    account: AccountId,
    post: PostRef,
    what: Tie,
}

/// Goes through the likes of an account: those that are not on the post's list, or with an older tick, are looked at.
pub(super) async fn likes(
    tenant: &Tenant,
    account: AccountId,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let (mut suspects, mut untold) = (Vec::new(), 0);
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let posts = members_of::<PostRef>(members)?;
        let lists = posts.iter().map(|post| Ok((likers(tenant, post.id)?, account)));
        let listed = tenant.sets().scores_in(&lists.collect::<Result<Vec<_>>>()?).await?;
        let missing = posts.into_iter().zip(members).zip(listed).filter_map(|((post, since), listed)| {
            listed.is_none_or(|listed| listed < since.score).then_some((post, since.score))
        });
        let missing: Vec<(PostRef, f64)> = missing.collect();
        let not_archived = unlisted(tenant, account, &missing, &mut untold).await?;
        suspects.extend(not_archived.into_iter().map(|post| TieListing { account, post, what: Tie::Like }));
    }
    Ok(Observation::units(suspects).but_for(untold))
}

/// Takes posts on whose lists memory doesn't have an account that likes them, and finds those where the archive hasn't
/// either.
async fn unlisted(
    tenant: &Tenant,
    account: AccountId,
    missing: &[(PostRef, f64)],
    untold: &mut u64,
) -> Result<Vec<PostRef>> {
    let posts: Vec<PostRef> = missing.iter().map(|(post, _)| *post).collect();
    if tenant.archive()?.is_none() || posts.is_empty() {
        return Ok(posts);
    }
    let told = ask::headers(tenant, &posts).await?;
    *untold += told.untold;
    let (mut suspects, mut asks) = (Vec::new(), Vec::new());
    for ((post, since), header) in missing.iter().zip(told.posts) {
        match header {
            Some(header) if header.may_be_of(post.author) => {
                asks.push((*post, MembershipQuestion::new((post.id, LIKES), &account.to_bytes(), *since)));
            }
            Some(_) => suspects.push(*post),
            None => {}
        }
    }
    let (posts, asks): (Vec<PostRef>, Vec<MembershipQuestion>) = asks.into_iter().unzip();
    let are_listed = tiers::are_listed(tenant, asks).await?;
    suspects.extend(posts.into_iter().zip(are_listed).filter(|(_, is)| !is).map(|(post, _)| post));
    Ok(suspects)
}

/// Goes through the bookmarks of an account: posts that are gone are looked at.
pub(super) async fn bookmarks(
    tenant: &Tenant,
    account: AccountId,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let (mut suspects, mut untold) = (Vec::new(), 0);
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let posts = members_of::<PostRef>(members)?;
        let headers = ask::headers(tenant, &posts).await?;
        untold += headers.untold;
        for (post, header) in posts.into_iter().zip(headers.posts) {
            if header.is_some_and(|header| !header.may_be_of(post.author)) {
                suspects.push(TieListing { account, post, what: Tie::Bookmark });
            }
        }
    }
    Ok(Observation::units(suspects).but_for(untold))
}

/// Goes through the accounts that like a post: those that don't say so are looked at.
pub(super) async fn on_list(tenant: &Tenant, id: PostId, members: &[&ScoredMember]) -> Result<Observation> {
    let Some(header) = tenant.posts().header(id).await?.found() else { return Ok(Observation::default()) };
    on_list_of(tenant, PostRef { id, author: header.author }, members).await
}

/// Looks at members of a post's list, where it is known whose post it is.
pub(super) async fn on_list_of(
    tenant: &Tenant,
    post: PostRef,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let mut suspects = Vec::new();
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let accounts = members_of::<AccountId>(members)?;
        let sets = accounts.iter().map(|account| Ok((tenant.likes(*account)?, post)));
        let likes = tenant.sets().scores_in(&sets.collect::<Result<Vec<_>>>()?).await?;
        let silent = accounts.into_iter().zip(likes).filter(|(_, likes)| likes.is_none());
        suspects.extend(silent.map(|(account, _)| TieListing { account, post, what: Tie::Like }));
    }
    Ok(Observation::units(suspects))
}

impl Relation for TieListing {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { account, post, what } = *self;
        let is_account = is_there(tenant, account).await?;
        let since = what.set(tenant, account)?.score(&post).await?.filter(|_| is_account);
        let listed = match what {
            Tie::Like => likers(tenant, post.id)?.score(&account).await?,
            Tie::Bookmark => None,
        };
        let is_post = ask::is_post(tenant, post).await?;
        let listed = match listed {
            // It may have left memory, and its list with it.
            None if is_post && what == Tie::Like => {
                tiers::archived_score(tenant, (post.id, LIKES), &account.to_bytes()).await?
            }
            listed => listed,
        };
        Ok(match (since, listed) {
            (Some(since), _) if !is_post => self.found(FindingKind::TieOfNothing, since),
            (Some(since), listed) if what == Tie::Like && listed.is_none_or(|listed| listed < since) => {
                self.found(FindingKind::TieUnlisted, since)
            }
            (None, Some(listed)) if is_post => self.found(FindingKind::TieNeedless, listed),
            _ => Observation::default(),
        })
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let Self { account, post, what } = *self;
        if found.kind == FindingKind::TieOfNothing {
            set_tie(graph, account, post, what, false).await?;
        } else {
            leave(&graph.journal, graph.tenant.bucket(account), TieTask { account, post }).await?;
        }
        Ok(Vec::new())
    }
}

impl TieListing {
    /// `tick`: the score that it has where it is.
    fn found(self, kind: FindingKind, tick: f64) -> Observation {
        let Self { account, post, what } = self;
        let told = format!("the {what:?} of post {} by account {account}", post.id);
        let tie = Matter::Tie { account, post };
        let excused_by =
            vec![Matter::Burial(account), Matter::Burial(post.author), tie, Matter::ListsOf(post.id)];
        [Deviation { kind, at: Unit::of(self), detail: tick.to_be_bytes().into(), told, excused_by }].into()
    }
}
