//! Reports that nobody has made: of posts that are held back, and of who reaches a limit of what an account may do.
//! They name the account itself as the reporter, so that they take its own room.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::reports::{self, NewReport, REPORT_COMMENT_CHARS_MAX, REPORTS_OPEN_OF_ONE_MAX, ReportCategory};
use crate::cluster::{Command, Epoch, Request, impatiently};
use crate::error::{FrequencyBound, Result};
use crate::ids::AccountId;
use crate::journal::{Journal, Recurring};
use crate::post::PostRef;
use crate::tenant::Tenant;

/// How often what was refused is brought to moderators: a client that tries again and again is one note.
const NOTE_EVERY: Duration = Duration::from_secs(2);
/// Accounts and limits that wait for it in this instance; further ones are refused without a note.
const NOTES_MAX: usize = 1_000;
/// An account of which so many reports are open gets no note of a limit: there is room for posts that are held back.
const LIMIT_NOTES_MAX: u64 = REPORTS_OPEN_OF_ONE_MAX as u64 / 2;
/// What the settings of such limits begin with. What comes back from an archive is limited too, and is nobody's fault.
const OF_ACTS: &str = "limits.";

/// The report of a revision of a post that is held back, by its author about itself. Made again it is the same one.
pub(crate) async fn hold(tenant: &Tenant, post: PostRef, revision: u32, why: &str) -> Result<Epoch> {
    let report = of_held(post, revision, why);
    if let Some((_, epoch)) = reports::added_before(tenant, &report).await? {
        return Ok(epoch);
    }
    Ok(reports::store(tenant, &report).await?.1)
}

/// Whether there has been a report of a new post that is held back, as long as anybody can publish it again.
pub(crate) async fn is_told(tenant: &Tenant, post: PostRef) -> Result<bool> {
    Ok(reports::added_before(tenant, &of_held(post, 0, "")).await?.is_some())
}

fn of_held(post: PostRef, revision: u32, why: &str) -> NewReport {
    NewReport {
        reporter: post.author,
        target: post.author,
        posts: vec![post.id],
        category: ReportCategory::Held,
        comment: why.chars().take(REPORT_COMMENT_CHARS_MAX).collect(),
        token: Some(format!("held {} {revision}", post.id)),
    }
}

/// Notes that an account has reached a limit, unless that is noted already.
async fn note_limit(tenant: &Tenant, account: AccountId, setting: &str, refusals: Refusals) -> Result<()> {
    let report = NewReport {
        reporter: account,
        target: account,
        posts: Vec::new(),
        category: ReportCategory::Limit,
        comment: refusals.comment(setting),
        token: Some(format!("reached {setting}")),
    };
    if reports::added_before(tenant, &report).await?.is_some()
        || open_of(tenant, account).await? >= LIMIT_NOTES_MAX
    {
        return Ok(());
    }
    reports::store(tenant, &report).await.map(drop)
}

/// Whether one more post of an account may be held back, as far as it can be told before.
pub(crate) async fn has_room_to_hold(tenant: &Tenant, author: AccountId) -> Result<bool> {
    Ok(open_of(tenant, author).await? < u64::from(REPORTS_OPEN_OF_ONE_MAX))
}

/// How many open reports about accounts of its own bucket an account has made, or stands in.
async fn open_of(tenant: &Tenant, reporter: AccountId) -> Result<u64> {
    let key = tenant.keys().reporters(tenant.bucket(reporter));
    let command = Command::new("HGET").arg(&key).arg(&reporter.to_bytes());
    let open = tenant.router().call(Request::read(tenant.slot(reporter), command)).await?;
    if open.is_nil() { Ok(0) } else { open.count() }
}

/// Who has reached which limit of late.
#[derive(Debug, Default)]
pub(crate) struct ReachedLimits(Mutex<HashMap<(AccountId, &'static str), Refusals>>);

/// What was refused for one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusals {
    /// How often the account may.
    most: u32,
    times: u32,
}

impl ReachedLimits {
    /// An account was refused something.
    pub(crate) fn note(&self, account: AccountId, bound: FrequencyBound) {
        let Some(setting) = bound.setting.filter(|setting| setting.starts_with(OF_ACTS)) else { return };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.len() < NOTES_MAX;
        match waiting.entry((account, setting)) {
            Entry::Occupied(mut seen) => {
                seen.get_mut().most = bound.most;
                seen.get_mut().times = seen.get().times.saturating_add(1);
            }
            Entry::Vacant(new) if has_room => drop(new.insert(Refusals { most: bound.most, times: 1 })),
            Entry::Vacant(_) => {}
        }
    }

    fn take(&self) -> HashMap<(AccountId, &'static str), Refusals> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Refusals {
    /// What moderators read.
    fn comment(self, setting: &str) -> String {
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        format!(
            "has reached `{setting}`, which is {} for it: refused {times} before this was noted",
            self.most
        )
    }
}

/// Brings to moderators who has reached a limit, again and again. What an instance that dies has not brought comes with
/// the next refusal.
#[derive(Debug)]
pub(crate) struct ReachedLimitNotes(pub(crate) Arc<ReachedLimits>);

impl Recurring for ReachedLimitNotes {
    type Owner = Journal;

    fn pause(&mut self, _: &Journal) -> Duration {
        NOTE_EVERY
    }

    async fn round(&mut self, journal: &Arc<Journal>) {
        for ((account, setting), refusals) in self.0.take() {
            let noted = impatiently(note_limit(journal, account, setting, refusals)).await;
            if let Err(e) = noted {
                tracing::debug!("moderators don't hear that account {account} has reached `{setting}`: {e}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(setting: Option<&'static str>) -> FrequencyBound {
        FrequencyBound { most: 3, again_in: Duration::from_secs(1), setting }
    }

    #[test]
    fn what_is_refused_again_and_again_is_one_note() {
        let (limits, id) = (ReachedLimits::default(), |n| AccountId::new(n).unwrap());
        for _ in 0..5 {
            limits.note(id(1), bound(Some("limits.posts")));
        }
        limits.note(id(1), bound(Some("brought_back_max")));
        limits.note(id(1), bound(None));
        let waiting = limits.take();
        assert_eq!(waiting.len(), 1);
        let comment = waiting[&(id(1), "limits.posts")].comment("limits.posts");
        assert_eq!(
            comment,
            "has reached `limits.posts`, which is 3 for it: refused 5 times before this was noted"
        );
        assert!(limits.take().is_empty());
    }

    #[test]
    fn no_more_wait_than_may() {
        let limits = ReachedLimits::default();
        for n in 1..=2 * NOTES_MAX as u64 {
            limits.note(AccountId::new(n).unwrap(), bound(Some("limits.follows")));
        }
        limits.note(AccountId::new(1).unwrap(), bound(Some("limits.follows")));
        let waiting = limits.take();
        assert_eq!(waiting.len(), NOTES_MAX);
        assert_eq!(waiting[&(AccountId::new(1).unwrap(), "limits.follows")].times, 2);
    }
}
