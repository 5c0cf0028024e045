//! Notes of accounts on their plain reposts.

use std::sync::Arc;

use crate::error::Result;
use crate::fsck::ask::{self, members_of};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::graph;
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::journal::Matter;
use crate::post::{Post, PostRef};
use crate::sharded::ScoredMember;
use crate::tenant::Tenant;

/// Notes looked at in one go.
const NOTES_AT_ONCE: usize = 500;

/// A plain repost, and the note that its author keeps of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RepostNote {
    account: AccountId,
    original: PostRef,
    repost: PostId,
}

/// Whether a post, if it is a plain repost, is noted as such by its author.
pub(super) async fn of_post(tenant: &Tenant, repost: PostId, post: &Post) -> Result<Observation> {
    let Some(original) = post.passes_on() else { return Ok(Observation::default()) };
    let account = post.header().author;
    let is_noted = tenant.reposts(account)?.score(&original).await?.is_some();
    Ok(Observation::units((!is_noted).then_some(RepostNote { account, original, repost })))
}

/// Plain reposts that have left memory: those that their authors' lists don't name are looked at.
pub(super) async fn of_archived(tenant: &Tenant, posts: &[(PostId, Post)]) -> Result<Observation> {
    let (mut notes, mut asked) = (Vec::new(), Vec::new());
    for (repost, post) in posts {
        let Some(original) = post.passes_on() else { continue };
        let account = post.header().author;
        asked.push((tenant.reposts(account)?, original));
        notes.push(RepostNote { account, original, repost: *repost });
    }
    let noted = tenant.sets().scores_in(&asked).await?;
    let unnoted = notes.into_iter().zip(noted).filter(|(_, noted)| noted.is_none());
    Ok(Observation::units(unnoted.map(|(note, _)| note)))
}

/// Goes through what an account has noted: what is no such repost (any more) is looked at.
pub(super) async fn notes(
    tenant: &Tenant,
    account: AccountId,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let (mut suspects, mut untold) = (Vec::new(), 0);
    for members in members.chunks(NOTES_AT_ONCE) {
        let notes = members_of::<PostRef>(members)?.into_iter().zip(members).map(|(original, entry)| {
            Ok(RepostNote { account, original, repost: repost_at(tenant, account, entry.score)? })
        });
        let notes = notes.collect::<Result<Vec<_>>>()?;
        let reposts = notes.iter().map(|note| PostRef { id: note.repost, author: account });
        let posts = ask::posts(tenant, &reposts.collect::<Vec<_>>()).await?;
        untold += posts.untold;
        for (note, stored) in notes.into_iter().zip(posts.posts) {
            let Some(stored) = stored else { continue };
            // What can't be read is found for itself.
            let may_stay = stored.known().map_or(true, |post| post.is_some_and(|post| note.is_true(&post)));
            suspects.extend((!may_stay).then_some(note));
        }
    }
    Ok(Observation::units(suspects).but_for(untold))
}

fn repost_at(tenant: &Tenant, account: AccountId, place: f64) -> Result<PostId> {
    PostId::at_place(tenant.keys().buckets(), tenant.bucket(account), place)
}

impl Relation for RepostNote {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let noted = tenant.reposts(self.account)?.score(&self.original).await?;
        let noted = noted.map(|place| repost_at(tenant, self.account, place)).transpose()?;
        // After that: what was deleted meanwhile is noted no more. What can't be read is found for itself.
        let repost = PostRef { id: self.repost, author: self.account };
        let Ok(stored) = ask::post(tenant, repost).await?.known() else {
            return Ok(Observation::default());
        };
        Ok(match (noted, stored.is_some_and(|post| self.is_true(&post))) {
            (None, true) => self.found(FindingKind::RepostUnnoted),
            (Some(noted), false) if noted == self.repost => self.found(FindingKind::RepostNoteNeedless),
            // Another repost's note is looked at for itself.
            _ => Observation::default(),
        })
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let Self { account, original, repost } = *self;
        let (noted, place) = (tenant.reposts(account)?, repost.place(tenant.keys().buckets()));
        match found.kind {
            FindingKind::RepostUnnoted => noted.add_greater(&[(original, place)]).await?,
            // Only this note: the next repost of the same has a higher place.
            _ => noted.remove_below(&[(original, place + 1.0)]).await?,
        };
        // So that no instance goes on with what it remembers.
        graph::renew_ties(tenant, account).await?;
        Ok(Vec::new())
    }
}

impl RepostNote {
    fn is_true(&self, post: &Post) -> bool {
        post.header().author == self.account && post.passes_on() == Some(self.original)
    }

    fn found(self, kind: FindingKind) -> Observation {
        let Self { account, original, repost } = self;
        let told = format!("repost {repost} of post {} by account {account}", original.id);
        let excused_by = vec![Matter::Burial(account)];
        [Deviation { kind, at: Unit::of(self), detail: Vec::new(), told, excused_by }].into()
    }
}
