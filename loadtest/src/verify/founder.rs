//! Carries calls about groups out on an engine.

use tideline::post::Draft;
use tideline::{
    AccountKind, CallFuture, DraftFacts, DraftJudge, ErrorKind, Followed, GroupRole, Judgement, NewAccount,
    Query, Report, ReportCategory, ReportQuery,
};

use super::call::GroupCall;
use super::groups::{POSTED, is_held};
use super::perform::{Performer, account, id_of};
use super::told::Reply;
use super::written::no_of;

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
            GroupCall::Found { group, owner, is_private } => self.found(group, owner, is_private).await?,
            GroupCall::Enter { by, group, inviter } => {
                let (group, by) = (account(group)?, account(by)?);
                if let Some(inviter) = inviter {
                    engine.invite_to_group(group, account(inviter)?, by, true).await?;
                }
                let joined = engine.join_group(group, by).await?.value;
                return Ok(Reply::Flag(joined == Followed::Following));
            }
            GroupCall::Exit { by, group } => drop(engine.leave_group(account(group)?, account(by)?).await?),
            GroupCall::TurnOut { group, by, member } => {
                engine.turn_out(account(group)?, account(by)?, account(member)?).await?;
            }
            GroupCall::Post { by, group, text } => {
                let draft = Draft::text(text.clone()).group(account(group)?).token(text);
                let id = engine.publish(account(by)?, &draft).await?.id.get();
                return Ok(Reply::Said { id, chat: group });
            }
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
    async fn found(&self, group: u64, owner: u64, is_private: bool) -> tideline::Result<()> {
        let (engine, group, owner) = (&self.engine, account(group)?, account(owner)?);
        let new = NewAccount {
            id: Some(group),
            kind: AccountKind::Group,
            is_locked: is_private,
            ..NewAccount::default()
        };
        match engine.create_group(owner, new).await {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            created => return created.map(drop),
        }
        if engine.join_group(group, owner).await?.value == Followed::Requested {
            engine.answer_group_request(group, group, owner, true).await?;
        }
        engine.set_group_role(group, group, owner, Some(GroupRole::Owner)).await.map(drop)
    }
}
