//! Asking the judge before something is published, and deciding on what was held back.

use super::byline::Byline;
use super::{Engine, PublishedPost};
use crate::cluster::Epoch;
use crate::error::{CallFuture, Error, ErrorCode, ErrorKind, Result};
use crate::functions::{ModerationStamp, TimeLimits};
use crate::graph;
use crate::ids::{AccountId, PostId};
use crate::limits::AccountLimit;
use crate::moderation::{
    self, DraftFacts, Judgement, REPORTS_OPEN_OF_ONE_MAX, Report, ReportCategory, ReportId,
};
use crate::post::{Content, Draft, NamedList, Post, PostHeader, PostRef, Visibility};
use crate::settings::Receipt;

impl Engine {
    /// Decides on a post that was held back: `shows` releases it, and everybody sees it whom it is for; otherwise it is
    /// deleted. Its reports are resolved then, of its edits the earlier ones too. Repeated, it does what is left of
    /// that: what was released stays as moderators have left it since, or is deleted after all.
    ///
    /// [`Conflict`](ErrorKind::Conflict): it was edited since, and is not released by what it said before: a later
    /// report is about that. [`Invalid`](ErrorKind::Invalid): the report is about something else.
    /// [`NotFound`](ErrorKind::NotFound): there is no such report.
    pub fn decide_held(
        &self,
        report: ReportId,
        moderator: AccountId,
        shows: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let Report { report: of, .. } = moderation::get(&self.tenant, report).await?;
            if of.category != ReportCategory::Held {
                return Err(Error::invalid(format!(
                    "report {report} is about account {}: no post of it was held back; `resolve_report` ends it",
                    of.target
                )));
            }
            for id in of.posts {
                let post = PostRef { id, author: of.target };
                let decided = async {
                    if shows {
                        let epoch = moderation::release(&self.tenant, post, report).await?;
                        return self.acknowledged(epoch).await;
                    }
                    self.delete(post.author, id).await
                };
                match decided.await {
                    // Its author has deleted it.
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    decided => drop(decided?),
                }
                for earlier in
                    moderation::held(&self.tenant, post).await?.into_iter().filter(|of| *of < report)
                {
                    moderation::resolve(&self.tenant, earlier, Some(moderator)).await?;
                }
            }
            let epoch = moderation::resolve(&self.tenant, report, Some(moderator)).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Asks the judge about what an account is about to say, and, of an edit, what it says until now. Why it is held
    /// back, if it is; an error, if it is refused.
    pub(super) async fn judged(
        &self,
        author: AccountId,
        (content, before): (&Content, Option<&Content>),
        draft: Option<&Draft>,
    ) -> Result<Option<String>> {
        let Some(judge) =
            self.judge.as_deref().filter(|_| draft.is_none_or(|draft| !draft.is_plain_repost()))
        else {
            return Ok(None);
        };
        let account = self.tenant.existing(author).await?;
        let facts = DraftFacts::of(&self.tenant, &account, (content, before), draft);
        match judge.judge(&facts).await.map_err(|e| e.context("the judge of drafts"))? {
            Judgement::Publish => Ok(None),
            Judgement::Refuse(why) => Err(Error::invalid(format!("this is not published: {why}"))),
            Judgement::Wait(why, bound) => {
                let refused = Error::too_often(bound, format!("this is not published now: {why}"));
                self.tenant.note_refusal(author, &refused);
                Err(refused)
            }
            Judgement::Hold(why) if moderation::has_room_to_hold(&self.tenant, author).await? => {
                Ok(Some(why))
            }
            Judgement::Hold(_) => Err(too_many_held(author)),
        }
    }

    /// The limits that a post counts against.
    pub(super) async fn limits_of_post(&self, author: AccountId, post: &Post) -> Result<TimeLimits> {
        let group = post.group();
        // To name the group is how clients post into it; and of who is in a chat its opener has counted the strangers.
        let is_counted = |account: &AccountId| Some(*account) != group && post.chat().is_none();
        let mentions: Vec<AccountId> = post.content().mentions.iter().copied().filter(is_counted).collect();
        let is_direct = post.header().visibility == Visibility::Direct;
        Ok(self.tenant.limits_of(&[
            (AccountLimit::Posts, 1),
            (AccountLimit::DirectPosts, u16::from(is_direct)),
            (AccountLimit::GroupPosts, u16::from(group.is_some())),
            (AccountLimit::MentionsOfStrangers, self.strangers_among(author, &mentions).await?),
        ]))
    }

    /// The limits that opening a chat counts against: whoever is put into one will be written to, by whom it may not
    /// know. `and_writes`: its first message is counted with it, and both are one direct post (H274).
    pub(super) async fn limits_of_opening(
        &self,
        opener: AccountId,
        members: &[AccountId],
        and_writes: bool,
    ) -> Result<TimeLimits> {
        Ok(self.tenant.limits_of(&[
            (AccountLimit::Posts, u16::from(and_writes)),
            (AccountLimit::DirectPosts, 1),
            (AccountLimit::MentionsOfStrangers, self.strangers_among(opener, members).await?),
        ]))
    }

    /// Counts how many of these don't follow an account, where that is limited.
    async fn strangers_among(&self, account: AccountId, mentions: &[AccountId]) -> Result<u16> {
        match self.tenant.settings.limits.mentions_of_strangers {
            Some(_) => graph::strangers_among(&self.tenant, account, mentions).await,
            None => Ok(0),
        }
    }

    /// Counts whom an edit mentions for the first time and who doesn't follow its writer, once.
    pub(super) async fn count_edit(&self, before: &Post, edited: &Post, is_counted: &mut bool) -> Result<()> {
        let tenant = &self.tenant;
        let is_limited = tenant.settings.limits.mentions_of_strangers.is_some() && edited.chat().is_none();
        if std::mem::replace(is_counted, true) || !is_limited {
            return Ok(());
        }
        let (ever, writer) = (before.lists_ever(tenant.tags()), edited.writer());
        let is_new = |account: &AccountId| {
            Some(*account) != edited.group() && !ever.contains(&NamedList::Mentions(*account))
        };
        let new: Vec<AccountId> = edited.content().mentions.iter().copied().filter(is_new).collect();
        let strangers = graph::strangers_among(tenant, writer, &new).await?;
        let limits = tenant.limits_of(&[(AccountLimit::MentionsOfStrangers, strangers)]);
        tenant.count_act(writer, &limits).await
    }

    /// Publishes a post, unless the judge refuses it; or holds it back.
    pub(super) async fn send_judged(&self, by: Byline, draft: &Draft) -> Result<(PublishedPost, Epoch)> {
        if self.judge.is_none() {
            return self.send(by, draft, false).await;
        }
        // Moderators are told of who wrote it.
        let told = |id| PostRef { id, author: by.writer };
        // A repeat is judged again only if its first sending has not come to telling moderators (H218).
        if let Some((mut before, epoch)) = self.published_before(by.author, draft.token.as_deref()).await? {
            let header = self.tenant.posts().header(before.id).await?.found();
            before.is_held = header.is_some_and(|header| header.is_hidden());
            // H275: what moderators have said since stands, whatever a judge would say of it now.
            let is_decided = header.is_some_and(|header| header.is_moderated());
            if !before.is_held || is_decided || moderation::is_told(&self.tenant, told(before.id)).await? {
                return Ok((before, epoch));
            }
        }
        // Whoever may not post there has said nothing.
        self.allowed_under(by).await?;
        let held = self.judged(by.writer, (&draft.content, None), Some(draft)).await?;
        let (mut published, epoch) = self.send(by, draft, held.is_some()).await?;
        let Some(why) = held else { return Ok((published, epoch)) };
        if published.is_repeat && !self.is_hidden(published.id).await? {
            return Ok((published, epoch));
        }
        match self.hold(told(published.id), &why).await {
            Ok(epoch) => {
                published.is_held = true;
                Ok((published, epoch))
            }
            // Others came first. Nobody would ever look at it.
            Err(e) if e.code() == ErrorCode::LimitReached || e.kind() == ErrorKind::Overloaded => {
                self.delete(by.writer, published.id).await?;
                Err(e)
            }
            Err(e) => Err(e.context(format!(
                "post {} is held back, and moderators may not know it: publish it again with its token, or delete it",
                published.id
            ))),
        }
    }

    /// Asks the judge about an edit, once. One that is held back hides its post before it is made; so is each of a post
    /// that waits for a moderator, or what was looked at would not be what shows. Tells by what it was hidden: that
    /// must stand until the edit does.
    pub(super) async fn judge_edit(
        &self,
        id: PostId,
        (before, edited): (&Post, &Post),
        held: &mut HeldEdit,
    ) -> Result<Option<ModerationStamp>> {
        let post = PostRef { id, author: edited.writer() };
        if !std::mem::replace(&mut held.is_judged, true) {
            held.why = self.judged(post.author, (edited.content(), Some(before.content())), None).await?;
        }
        if held.why.is_none() && !before.header().is_hidden() {
            return Ok(None);
        }
        let newest = moderation::held(&self.tenant, post).await?.into_iter().next();
        let waits = newest.map(|_| "edited while it was held back".to_owned());
        let Some(why) = held.why.clone().or(waits) else { return Ok(None) };
        // H265: the report, then what a moderator compares who is releasing it, then the edit.
        if held.report.is_none() || newest != held.report {
            let reported = moderation::hold_edit(&self.tenant, post, &why).await;
            held.report = Some(reported.map_err(|e| too_many_held_of(e, post.author))?);
        }
        moderation::hide(&self.tenant, id).await.map(Some)
    }

    async fn is_hidden(&self, post: PostId) -> Result<bool> {
        Ok(self.tenant.posts().header(post).await?.found().is_some_and(|header| header.is_hidden()))
    }

    /// Puts a post that is held back into the moderators' queue.
    pub(super) async fn hold(&self, post: PostRef, why: &str) -> Result<Epoch> {
        moderation::hold(&self.tenant, post, why).await.map_err(|e| too_many_held_of(e, post.author))
    }
}

/// Facts of an edit that may be held back, however often it is tried.
#[derive(Debug, Default)]
pub(super) struct HeldEdit {
    is_judged: bool,
    /// What the judge has said, if it holds it back.
    why: Option<String>,
    /// The report of it.
    report: Option<ReportId>,
    /// The revision that showed before this edit has hidden it.
    shown: Option<u32>,
}

impl HeldEdit {
    /// Whether what a post says until now has shown to anybody but its writer.
    pub(super) fn has_shown(&mut self, before: &PostHeader) -> bool {
        if !before.is_hidden() {
            self.shown = Some(before.revision);
        }
        self.shown == Some(before.revision)
    }
}

fn too_many_held_of(error: Error, author: AccountId) -> Error {
    match error.code() {
        ErrorCode::LimitReached => too_many_held(author),
        _ => error,
    }
}

fn too_many_held(author: AccountId) -> Error {
    Error::new(
        ErrorCode::LimitReached,
        format!(
            "{REPORTS_OPEN_OF_ONE_MAX} reports by account {author}, or of its posts that are held back, wait for a \
             moderator already; post again once some of them are decided"
        ),
    )
}
