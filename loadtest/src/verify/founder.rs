//! Carries calls about groups out on an engine.

use std::time::Duration;

use tideline::post::Draft;
use tideline::{
    AccountKind, AccountLimit, CallFuture, DraftFacts, DraftJudge, ErrorCode, ErrorKind, FollowOutcome,
    GroupRole, Judgement, NewAccount, Query, Report, ReportCategory, ReportQuery,
};

use super::group_call::{GroupCall, LetIn};
use super::groups::{GroupKind, POSTED, is_held};
use super::perform::{Performer, account, id_of};
use super::told::Reply;
use super::written::no_of;

/// Between looks at whether somebody who was let in is a member by now.
const PAUSE: Duration = Duration::from_millis(20);
const TRIES: usize = 200;

/// Holds every fifth post into a group back.
#[derive(Debug)]
pub(super) struct EveryFifth;

impl DraftJudge for EveryFifth {
    fn judge<'a>(&'a self, facts: &'a DraftFacts<'a>) -> CallFuture<'a, Judgement> {
        let is_held = no_of(POSTED, &facts.content.text).is_some_and(is_held);
        let held = || Judgement::Hold("every fifth".to_owned());
        Box::pin(async move { Ok(if is_held { held() } else { Judgement::Publish }) })
    }
}

impl Performer {
    pub(super) async fn gather(&self, call: GroupCall) -> tideline::Result<Reply> {
        let engine = &self.engine;
        match call {
            GroupCall::Found { group, owner, kind } => self.found(group, owner, kind).await?,
            GroupCall::Enter { by, group, let_in } => return self.enter(by, group, let_in).await,
            GroupCall::Exit { by, group } => drop(engine.leave_group(account(group)?, account(by)?).await?),
            GroupCall::TurnOut { group, by, member } => {
                engine.turn_out(account(group)?, account(by)?, account(member)?).await?;
            }
            GroupCall::Ban { group, by, member, on } => {
                engine.ban_from_group(account(group)?, account(by)?, account(member)?, on).await?;
            }
            GroupCall::Promote { group, by, member, on } => {
                let (by, role) = (account(by)?, on.then_some(GroupRole::Moderator));
                engine.set_group_role(account(group)?, by, account(member)?, role).await?;
            }
            GroupCall::Staff { group } => {
                let staff = engine.stored().group_staff(account(group)?).await?;
                return Ok(Reply::Ids(staff.into_iter().map(|(of, _)| of.get()).collect()));
            }
            GroupCall::Limit { account: of, most } => {
                let limits = [AccountLimit::Posts, AccountLimit::GroupPosts].map(|limit| (limit, Some(most)));
                engine.limit_account(account(of)?, &limits).await?;
            }
            GroupCall::Post { by, group, text } => return self.post(by, group, text).await,
            // Over HTTP only who has written a post deletes it as any other one.
            GroupCall::Remove { by, post } => drop(engine.delete(account(by)?, id_of(post)?).await?),
            GroupCall::Release { by, writer, post } => self.release(by, writer, post).await?,
            GroupCall::Posted { reader, group } => {
                let query = group.map(account).transpose()?.map_or_else(Query::home, Query::profile);
                return Ok(Reply::Messages(self.read_whole(reader, query).await?));
            }
        }
        Ok(Reply::Done)
    }

    async fn enter(&self, by: u64, group: u64, let_in: Option<LetIn>) -> tideline::Result<Reply> {
        let (engine, group, by) = (&self.engine, account(group)?, account(by)?);
        if let Some(LetIn::Invited(inviter)) = let_in {
            engine.invite_to_group(group, account(inviter)?, by, true).await?;
        }
        let joined = engine.join_group(group, by).await?.value;
        let Some(LetIn::Answered(staff)) = let_in.filter(|_| joined == FollowOutcome::Requested) else {
            return Ok(Reply::Flag(joined == FollowOutcome::Following));
        };
        engine.answer_group_request(group, account(staff)?, by, true).await?;
        // It is a member a little later, where a server of its own is away just then.
        match engine.join_group(group, by).await?.value {
            FollowOutcome::Following => Ok(Reply::Flag(true)),
            FollowOutcome::Requested => Err(tideline::Error::unavailable("the answer isn't carried out yet")),
        }
    }

    async fn post(&self, by: u64, group: Option<u64>, text: String) -> tideline::Result<Reply> {
        let draft = Draft::text(text.clone()).token(text);
        let draft = match group {
            Some(group) => draft.group(account(group)?),
            None => draft,
        };
        match self.engine.publish(account(by)?, &draft).await {
            Err(e) if e.code() == ErrorCode::TooOften => Ok(Reply::TooOften),
            posted => Ok(Reply::Said { id: posted?.id.get(), chat: group.unwrap_or(by) }),
        }
    }

    /// Releases a post that was held back: its author's report about itself names it. Where none is open any more an
    /// earlier try has resolved it, or the post is gone.
    async fn release(&self, by: u64, writer: u64, post: u64) -> tideline::Result<()> {
        let query =
            ReportQuery { target: Some(account(writer)?), limit: Some(100), ..ReportQuery::default() };
        let (open, post) = (self.engine.reports(&query).await?.reports, id_of(post)?);
        let of_it =
            |of: &&Report| of.report.category == ReportCategory::Held && of.report.posts.contains(&post);
        let Some(report) = open.iter().find(of_it) else { return Ok(()) };
        self.engine.decide_held(report.id, account(by)?, true).await.map(drop)
    }

    /// An earlier try may have come half-way.
    async fn found(&self, group: u64, owner: u64, kind: GroupKind) -> tideline::Result<()> {
        let (engine, group, owner) = (&self.engine, account(group)?, account(owner)?);
        let of = match kind {
            GroupKind::Announcement => AccountKind::Announcement,
            GroupKind::Public | GroupKind::Private => AccountKind::Group,
        };
        let is_locked = kind == GroupKind::Private;
        let new = NewAccount { id: Some(group), kind: of, is_locked, ..NewAccount::default() };
        match engine.create_group(owner, new).await {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            created => return created.map(drop),
        }
        // Whoever is let in is a member a little later, where servers are away.
        for _ in 0..TRIES {
            if engine.join_group(group, owner).await?.value == FollowOutcome::Following {
                break;
            }
            match engine.answer_group_request(group, group, owner, true).await {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                answered => drop(answered?),
            }
            tokio::time::sleep(PAUSE).await;
        }
        engine.set_group_role(group, group, owner, Some(GroupRole::Owner)).await.map(drop)
    }
}
