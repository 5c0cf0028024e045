//! Moderation: what moderators say of posts, and reports that accounts make about others.
//!
//! A report lies in the bucket of the account that it is about; its id says which one that is, and when it came. What
//! state an account is in is in its record, and what shows because of all this is the filter's affair.
//!
//! A post that is held back is one that moderators hide from its first moment on, and a report of its author about
//! itself: so there is one queue, and nobody's posts fill it. Who reaches a limit stands there the same way.

mod excerpt;
mod judge;
mod noted;
mod queue;
mod reports;
mod said;

use crate::change::Tries;
use crate::cluster::Epoch;
use crate::error::Result;
use crate::functions::{self, CompareAnswer, ModerationStamp};
use crate::ids::{AccountId, PostId};
use crate::post::layout::{FLAG_HIDDEN, FLAG_SENSITIVE_SAID};
use crate::post::{PostHeader, PostRef};
use crate::tenant::{Tenant, no_post};
use crate::tiers;

pub use excerpt::{EXCERPT_CHARS_MAX, EXCERPTS_CHARS_MAX, PostExcerpt};
pub use judge::{DraftFacts, DraftJudge, Judgement, SpamJudge};
pub(crate) use noted::{ReachedLimitNotes, has_room_to_hold, held, hold, hold_edit, is_told};
pub(crate) use queue::list;
pub use queue::{ReportList, ReportQuery};
pub use reports::{
    NewReport, REPORT_COMMENT_CHARS_MAX, REPORT_POSTS_MAX, REPORTS_OPEN_MAX, REPORTS_OPEN_OF_ONE_MAX, Report,
    ReportCategory, ReportId,
};
pub(crate) use reports::{add, get, resolve};

/// A moderator's word on a post; `None` stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Moderation {
    /// Whether nobody but its author sees it.
    pub hidden: Option<bool>,
    /// Whether to hide its attachments at first, whatever its author says.
    pub sensitive: Option<bool>,
}

/// Changes what moderators say of a post.
///
/// [`Invalid`](crate::ErrorKind::Invalid): it is to show, and held back.
pub(crate) async fn moderate(tenant: &Tenant, post: PostId, moderation: Moderation) -> Result<Epoch> {
    Ok(moderate_as(tenant, post, moderation, None).await?.0)
}

/// Hides a post whose edit is held back; tells by which bytes.
pub(crate) async fn hide(tenant: &Tenant, post: PostId) -> Result<ModerationStamp> {
    let hidden = Moderation { hidden: Some(true), ..Moderation::default() };
    Ok(moderate_as(tenant, post, hidden, None).await?.1)
}

/// Shows a post that was held back, as it was when that report came; one that was decided on by it stays as it is.
///
/// [`Conflict`](crate::ErrorKind::Conflict): it was edited since, and a later report waits for a moderator.
pub(crate) async fn release(tenant: &Tenant, post: PostRef, report: ReportId) -> Result<Epoch> {
    let shown = Moderation { hidden: Some(false), ..Moderation::default() };
    Ok(moderate_as(tenant, post.id, shown, Some((post.author, report))).await?.0)
}

/// `looked_at`: who wrote the post, and the report that moderators have looked at.
async fn moderate_as(
    tenant: &Tenant,
    post: PostId,
    moderation: Moderation,
    looked_at: Option<(AccountId, ReportId)>,
) -> Result<(Epoch, ModerationStamp)> {
    let (key, buckets) = (tenant.keys().post(post), tenant.keys().buckets());
    let slot = buckets.slot(post.bucket(buckets));
    let tries = &mut Tries::of_post(post);
    loop {
        let once = async {
            let stored = tenant.posts().header_as(post, PostHeader::moderation_in).await?;
            let (said, seen) = stored.readable()?.ok_or_else(|| no_post(post))?;
            // H265: behind what is compared. An edit that is held back after this changes that first.
            let stands = match looked_at {
                Some((author, report)) => !noted::waits(tenant, PostRef { id: post, author }, report).await?,
                None if moderation.hidden == Some(false) => {
                    only_decided(tenant, post).await?;
                    false
                }
                None => false,
            };
            // H271: it was decided on, and what moderators have said since stands.
            let moderation = if stands { Moderation::default() } else { moderation };
            let mut wanted = said;
            for (flag, value) in
                [(FLAG_HIDDEN, moderation.hidden), (FLAG_SENSITIVE_SAID, moderation.sensitive)]
            {
                let [bit, _] = flag.to_be_bytes();
                match value {
                    Some(true) => wanted |= bit,
                    Some(false) => wanted &= !bit,
                    None => {}
                }
            }
            // Also if that is so already: a copy of the opposite that lies in a frozen server's socket is void then.
            let stamp = rand::random();
            let command = functions::post_moderate(key.clone(), seen, stamp, wanted);
            let Some(answer) = tries.send(tenant, slot, command).await? else { return Ok(None) };
            let epoch = answer.epoch.clone();
            let done = CompareAnswer::parse(answer.ok()?)? == CompareAnswer::Done;
            if !done && let Some(header) = tenant.posts().header(post).await?.found() {
                tiers::thaw_of(tenant, PostRef { id: post, author: header.author }).await?;
            }
            Ok(done.then_some((epoch, stamp)))
        };
        let once = once.await;
        if let Some(moderated) = tries.ended(once)? {
            return Ok(moderated);
        }
    }
}

/// Refuses a post that is held back. One that can't be read shows to nobody, whatever is said of it.
async fn only_decided(tenant: &Tenant, id: PostId) -> Result<()> {
    match tenant.posts().get(id).await?.but_for_visibility().found() {
        Some(post) => noted::only_decided(tenant, PostRef { id, author: post.writer() }).await,
        None => Ok(()),
    }
}
