//! Having the archive forget posts: one that its author deletes, all those of an account that is deleted.

use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::{sleep, timeout};

use super::begin::{Begun, Tiers, TokenAsk};
use crate::archive::{
    ArchiveToken, ArchivedPost, ChangeRefusal, OwnerChange, PageAsk, PageContent, PageOrder, Prerequisite,
};
use crate::cluster::TouchedServers;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{ErasedUnder, TokenCase};
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::stored::behind;
use crate::tenant::{Tenant, account_changed_always, archive_away, changed_always};
use crate::turns::Turns;

/// Tries of one change while somebody else changes what the archive has of the account.
const TRIES_MAX: usize = 16;
/// The time for which a deletion waits for those before it, of the same account.
const TURN_WITHIN: Duration = Duration::from_secs(10);
/// The pause before the archive is asked again, times how often that was, squared.
const PAUSE: Duration = Duration::from_millis(10);
/// And at most so many of it.
const PAUSES_MAX: u32 = 200;
/// Posts of a deleted account that are taken away at once.
const BURIED_AT_ONCE: usize = 24;

/// A deletion of a post that the archive has too, over all its tries.
#[derive(Debug, Default)]
pub(crate) struct PostErasure {
    under: Option<ErasedUnder>,
    /// H255: each has the archive forget its post under a token of its own, which voids the one that others of that
    /// account hold: two that take turns would do so for ever.
    turn: Option<OwnedMutexGuard<()>>,
    tries: u32,
}

impl PostErasure {
    /// Tells under which token the archive has forgotten it.
    pub(crate) fn under(&self) -> Option<ErasedUnder> {
        self.under
    }

    /// Has the archive forget it, for the first time or because somebody has taken another token since: nobody of this
    /// instance, since whoever deletes has the turn at its author; of others, each waits longer every time, and none as
    /// long as another.
    pub(crate) async fn go_on(
        &mut self,
        tenant: &Tenant,
        turns: &Turns<AccountId>,
        post: PostRef,
    ) -> Result<()> {
        if self.turn.is_none() {
            let turn = timeout(TURN_WITHIN, turns.of(post.author).lock_owned()).await;
            self.turn = Some(turn.map_err(|_| too_many_deletions(post.author))?);
        } else {
            self.tries += 1;
            let longer = f64::from(self.tries.pow(2).min(PAUSES_MAX));
            sleep(PAUSE.mul_f64(longer * (0.5 + f64::from(tenant.instance[0]) / 255.0))).await;
        }
        self.under = erase(tenant, post).await?;
        Ok(())
    }
}

fn too_many_deletions(account: AccountId) -> Error {
    Error::new(
        ErrorKind::Overloaded,
        format!("posts of account {account} are being deleted one after the other: try again in a moment"),
    )
}

/// Has the archive forget a post that is in memory too, and tells under which token it did. It is on disk then. `None`:
/// it has left memory since, or lies above the floor.
async fn erase(tenant: &Tenant, post: PostRef) -> Result<Option<ErasedUnder>> {
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(None) };
    let token = tiers.forget(post.author, TokenCase::Always, &[post.id], &mut TouchedServers::new()).await?;
    Ok(token.map(|token| ErasedUnder { token, looked_at: tiers.looked_at() }))
}

/// Has the archive forget posts of an account that was deleted, and take nothing of it any more. H170: first with none,
/// so that no mover that was frozen brings anything in; also where nothing was ever moved.
pub(crate) async fn forget_buried(
    tenant: &Tenant,
    account: AccountId,
    posts: &[PostId],
    touched: &mut TouchedServers,
) -> Result<()> {
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(()) };
    tiers.forget(account, TokenCase::Burial, posts, touched).await.map(drop)
}

/// Some posts that the archive has of an account that was deleted; empty: none are left.
pub(crate) async fn left_of_buried(tenant: &Tenant, account: AccountId) -> Result<Vec<ArchivedPost>> {
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(Vec::new()) };
    let ask = PageAsk { owner: tiers.owner(account), edge: PostId::from_u64(0)?, most: BURIED_AT_ONCE };
    let page = tiers.archive.pages(&[ask], PageOrder::OldestFirst, PageContent::Posts).await?.pop();
    Ok(page.map(|page| page.posts).unwrap_or_default())
}

impl Tiers<'_> {
    /// Has the archive forget posts of an account. `None`: there is no such account any more.
    async fn forget(
        &self,
        account: AccountId,
        case: TokenCase,
        erased: &[PostId],
        touched: &mut TouchedServers,
    ) -> Result<Option<ArchiveToken>> {
        let mut above = 0;
        for _ in 0..TRIES_MAX {
            let deleted = erased.first().copied().filter(|_| case == TokenCase::Always);
            let ask = TokenAsk { account, case, above, erased: deleted, warm: Vec::new() };
            let begun = self.token(ask, touched).await?;
            let Some(begun) = begun else { return Ok(None) };
            let change = self.forgetting(&begun, case, erased)?;
            match self.archive.change(&[change]).await.map_err(archive_away)?.pop() {
                Some(Ok(())) => return Ok(Some(begun.token)),
                Some(Err(ChangeRefusal::Passed(number))) => above = number,
                Some(Err(ChangeRefusal::Behind(_))) => return Err(behind(account)),
                Some(Err(ChangeRefusal::Buried)) | None => return Err(account_changed_always(account)),
            }
        }
        Err(changed_always(ErrorKind::Unavailable, format_args!("the archive's posts of account {account}")))
    }

    fn forgetting(&self, begun: &Begun, case: TokenCase, erased: &[PostId]) -> Result<OwnerChange> {
        let change = OwnerChange { erased: erased.to_vec(), ..self.change_under(begun)? };
        Ok(match case {
            // What an archive that is behind has of a deleted account goes as well.
            TokenCase::Burial => OwnerChange { needs: Prerequisite::default(), buries: true, ..change },
            _ => change,
        })
    }
}
