//! The judge that is asked before something is published: one of the service's own, or the one that is shipped.

use std::fmt;
use std::time::Duration;

use super::said;
use crate::account::Account;
use crate::error::{CallFuture, ErrorKind, FrequencyBound, Result};
use crate::ids::AccountId;
use crate::post::{Content, Draft};
use crate::tenant::Tenant;

/// A judge's word on a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is published.
    Publish,
    /// It is published, but nobody except its author sees it until a moderator releases it: why, for moderators.
    Hold(String),
    /// It is not published: why, for its author.
    Refuse(String),
    /// It is not published now: why, for its author, how often it may, and when to come again. Moderators hear of it if
    /// that names a setting.
    Wait(String, FrequencyBound),
}

/// A judge of your own: whether what an account is about to say is published.
///
/// It is asked before each post that isn't a plain repost, and before each edit, once the post is known to be well
/// formed; not about imports, nor again about what is repeated with its token. The call waits for it. If it fails, so
/// does the call, and nothing is published.
pub trait DraftJudge: fmt::Debug + Send + Sync {
    /// The judgement of this draft.
    fn judge<'a>(&'a self, facts: &'a DraftFacts<'a>) -> CallFuture<'a, Judgement>;
}

/// The facts that a judge decides by.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct DraftFacts<'a> {
    /// The author.
    pub author: &'a Account,
    /// Whether the author was registered within [`ActLimits::new_for`](crate::ActLimits::new_for).
    pub is_new: bool,
    /// What the post would say.
    pub content: &'a Content,
    /// The whole draft; `None`: it is an edit of a post that is there.
    pub draft: Option<&'a Draft>,
    /// Of an edit, what the post says until now.
    before: Option<&'a Content>,
    tenant: &'a Tenant,
}

impl fmt::Debug for DraftFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { author, is_new, content, draft, before: _, tenant: _ } = self;
        f.debug_struct("DraftFacts")
            .field("author", author)
            .field("is_new", is_new)
            .field("content", content)
            .field("draft", draft)
            .finish_non_exhaustive()
    }
}

impl<'a> DraftFacts<'a> {
    pub(crate) fn of(
        tenant: &'a Tenant,
        author: &'a Account,
        (content, before): (&'a Content, Option<&'a Content>),
        draft: Option<&'a Draft>,
    ) -> Self {
        let new_for = tenant.settings.limits.new_for.as_millis();
        let since = author.registered_ms.map(|at| u128::from(tenant.router().now_ms().saturating_sub(at)));
        Self { author, is_new: since.is_some_and(|since| since < new_for), content, draft, before, tenant }
    }

    /// Counts that the author says this, and tells how often it has within that span, this time too, through whichever
    /// instance. What differs in mentions, numbers, signs and spaces alone is the same text; one of a few letters is
    /// none, and was said once.
    ///
    /// An edit that says what was said before counts nothing, and was said once. A warning belongs to the text.
    ///
    /// The span begins with the first time. Asked twice it counts twice; what is tried again with its token, once.
    pub fn count_same_text(&self, span: Duration) -> CallFuture<'a, u64> {
        let Self { tenant, author, content, draft, before, .. } = *self;
        // Tokens belong to where something is said: the same one elsewhere is another post's.
        let attempt = draft.and_then(|draft| {
            let place = draft.group.or(draft.chat).map_or(0, AccountId::get);
            draft.token.as_ref().map(|token| format!("{place} {token}"))
        });
        Box::pin(async move {
            if before.is_some_and(|before| said::is_same(before, content)) {
                return Ok(1);
            }
            said::count(tenant, author.id, (&said::all_of(content), attempt.as_deref()), span).await
        })
    }

    /// Tells how long it takes until what the author says here counts no more, by
    /// [`count_same_text`](Self::count_same_text).
    pub fn same_text_counts_for(&self) -> CallFuture<'a, Duration> {
        let Self { tenant, author, content, .. } = *self;
        Box::pin(async move { said::counts_for(tenant, author.id, &said::all_of(content)).await })
    }
}

/// The judge that is shipped: holds links of new accounts, and what is said again and again.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpamJudge {
    /// Whether to hold posts with a link of accounts that are [new](DraftFacts::is_new).
    pub holds_links_of_new: bool,
    /// From how often on the same text is held within an hour; 0: never.
    pub holds_same_text_from: u64,
    /// From how often on it is refused; 0: never.
    pub refuses_same_text_from: u64,
}

impl Default for SpamJudge {
    fn default() -> Self {
        Self { holds_links_of_new: true, holds_same_text_from: 3, refuses_same_text_from: 6 }
    }
}

impl SpamJudge {
    /// Holds and refuses nothing.
    pub const OFF: Self =
        Self { holds_links_of_new: false, holds_same_text_from: 0, refuses_same_text_from: 0 };
    /// Within how long the same text counts.
    const SPAN: Duration = Duration::from_secs(3_600);

    /// The judgement of what is said for the nth time within an hour; `None`: nothing speaks against it.
    fn of_same_text(&self, times: u64) -> Option<Judgement> {
        let reaches = |from: u64| from > 0 && times >= from;
        if reaches(self.refuses_same_text_from) {
            let bound = FrequencyBound {
                most: u32::try_from(self.refuses_same_text_from - 1).unwrap_or(u32::MAX),
                again_in: Self::SPAN,
                setting: Some("refuse_same_text_from"),
            };
            return Some(Judgement::Wait("the same text was posted too often within an hour".into(), bound));
        }
        let held = || Judgement::Hold(format!("the same text for the {times}. time within an hour"));
        reaches(self.holds_same_text_from).then(held)
    }

    async fn judged(&self, facts: &DraftFacts<'_>) -> Result<Judgement> {
        if self.holds_same_text_from > 0 || self.refuses_same_text_from > 0 {
            let times = facts.count_same_text(Self::SPAN).await?;
            match self.of_same_text(times) {
                Some(Judgement::Wait(why, bound)) => {
                    let again_in = match facts.same_text_counts_for().await {
                        // Its Redis user may not ask (`+pttl`): it can't be longer.
                        Err(e) if e.kind() == ErrorKind::Misconfigured => Self::SPAN,
                        again_in => again_in?,
                    };
                    return Ok(Judgement::Wait(why, FrequencyBound { again_in, ..bound }));
                }
                Some(judgement) => return Ok(judgement),
                None => {}
            }
        }
        if self.holds_links_of_new && facts.is_new && said::has_link(&said::all_of(facts.content)) {
            return Ok(Judgement::Hold("a link by a new account".into()));
        }
        Ok(Judgement::Publish)
    }
}

impl DraftJudge for SpamJudge {
    fn judge<'a>(&'a self, facts: &'a DraftFacts<'a>) -> CallFuture<'a, Judgement> {
        Box::pin(self.judged(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_held_first_and_refused_then() {
        let judge = SpamJudge::default();
        assert_eq!(judge.of_same_text(2), None);
        for times in [3, 5] {
            assert!(matches!(judge.of_same_text(times), Some(Judgement::Hold(_))), "{times}");
        }
        let bound =
            |refused| if let Some(Judgement::Wait(_, bound)) = refused { Some(bound.most) } else { None };
        assert_eq!(bound(judge.of_same_text(6)), Some(5));
        assert_eq!(SpamJudge::OFF.of_same_text(1_000), None);
    }
}
