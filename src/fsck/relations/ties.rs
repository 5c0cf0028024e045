//! What accounts like and have bookmarked, and the lists of who likes a post.

use std::sync::Arc;

use crate::error::Result;
use crate::fsck::ask::{is_there, leave, members_of};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::graph::Graph;
use crate::graph::{TieTask, likers, set_tie};
use crate::ids::{AccountId, PostId};
use crate::journal::Matter;
use crate::post::PostRef;
use crate::reader::Tie;
use crate::sharded::Scored;
use crate::tenant::Tenant;

/// Members of a set looked at in one go.
const MEMBERS_AT_ONCE: usize = 500;

/// One like or bookmark, from both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TieListing {
    account: AccountId,
    post: PostRef,
    what: Tie,
}

/// What an account likes: those that are not on the post's list, or with an older stamp, are looked at.
pub(super) async fn likes(tenant: &Tenant, account: AccountId, members: &[&Scored]) -> Result<Observation> {
    let mut suspects = Vec::new();
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let posts = members_of::<PostRef>(members)?;
        let lists = posts.iter().map(|post| Ok((likers(tenant, post.id)?, account)));
        let listed = tenant.sets().scores_in(&lists.collect::<Result<Vec<_>>>()?).await?;
        for ((post, since), listed) in posts.into_iter().zip(members).zip(listed) {
            if listed.is_none_or(|listed| listed < since.score) {
                suspects.push(TieListing { account, post, what: Tie::Like });
            }
        }
    }
    Ok(Observation::units(suspects))
}

/// What an account has bookmarked: posts that are gone are looked at.
pub(super) async fn bookmarks(
    tenant: &Tenant,
    account: AccountId,
    members: &[&Scored],
) -> Result<Observation> {
    let mut suspects = Vec::new();
    for members in members.chunks(MEMBERS_AT_ONCE) {
        let posts = members_of::<PostRef>(members)?;
        let headers = tenant.posts().headers(posts.iter().map(|post| post.id)).await?;
        for (post, header) in posts.into_iter().zip(headers) {
            if !header.may_be_of(post.author) {
                suspects.push(TieListing { account, post, what: Tie::Bookmark });
            }
        }
    }
    Ok(Observation::units(suspects))
}

/// Who likes a post: those that don't say so are looked at.
pub(super) async fn on_list(tenant: &Tenant, id: PostId, members: &[&Scored]) -> Result<Observation> {
    let mut suspects = Vec::new();
    let Some(header) = tenant.posts().header(id).await?.found() else { return Ok(Observation::default()) };
    let post = PostRef { id, author: header.author };
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
    async fn look(&self, graph: &Arc<Graph>) -> Result<Observation> {
        let Self { account, post, what } = *self;
        let is_account = is_there(graph, account).await?;
        let since = what.set(graph, account)?.score(&post).await?.filter(|_| is_account);
        let listed = match what {
            Tie::Like => likers(graph, post.id)?.score(&account).await?,
            Tie::Bookmark => None,
        };
        let is_post = graph.posts().header(post.id).await?.may_be_of(post.author);
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
            leave(graph, graph.bucket(account), TieTask { account, post }).await?;
        }
        Ok(Vec::new())
    }
}

impl TieListing {
    /// `stamp`: the score that it has where it is.
    fn found(self, kind: FindingKind, stamp: f64) -> Observation {
        let Self { account, post, what } = self;
        let told = format!("the {what:?} of post {} by account {account}", post.id);
        let tie = Matter::Tie { account, post };
        let excused_by =
            vec![Matter::Burial(account), Matter::Burial(post.author), tie, Matter::ListsOf(post.id)];
        [Deviation { kind, at: Unit::of(self), detail: stamp.to_be_bytes().into(), told, excused_by }].into()
    }
}
