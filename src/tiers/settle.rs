//! Posts that an archive has forgotten and may have again: it answers before all of its servers know, and one that
//! takes over may lack that. So each deletion and each burial is looked at until the archive has said twice, with the
//! time between that it needs to settle, that it was made; and is made anew where it was lost.

use super::begin::{Begun, Tiers};
use super::erase::left_of_buried;
use super::mover::{AgendaWork, MoveRound, UnsettledChange};
use crate::account::AccountState;
use crate::archive::{ChangeRefusal, Owner, OwnerChange, Prerequisite};
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::functions::{
    ArchiveAgain, ArchiveAgainAnswer, UnsettledDeletion, archive_settled, burial_settled,
};
use crate::ids::AccountId;
use crate::meters;
use crate::nonce::draw;
use crate::tenant::archive_away;

/// Times that one account is begun anew since the archive knows a later token.
const TRIES_MAX: usize = 3;
/// Accounts looked at together.
const AT_ONCE: usize = 1_000;

/// Posts that an archive says it has forgotten. H240: it may have done so at this moment, whoever asked for it when,
/// and lose it yet; what it says again when that has had its time is for good.
#[derive(Debug)]
pub(super) struct SeenForgotten {
    account: AccountId,
    noted: NotedForgotten,
}

/// A note of an account, until its archive can't lose it any more.
#[derive(Debug)]
enum NotedForgotten {
    /// All that it had, since it was deleted: noted in the agenda for that time.
    Burial { at_ms: f64 },
    /// These deletions.
    Deletions(Vec<UnsettledDeletion>),
}

/// A note that is due: of an account, in the agenda for that time.
pub(super) type DueNote = (AccountId, f64);

impl Tiers<'_> {
    /// Looks at what these accounts have had forgotten. What the archive has lost of it is forgotten anew; what it says
    /// that it has forgotten is looked at once more in this round.
    pub(super) async fn settle(
        &self,
        due: &[DueNote],
        now_ms: u64,
        work: &impl AgendaWork,
        round: &mut MoveRound<'_>,
    ) -> Result<()> {
        for due in due.chunks(AT_ONCE) {
            let record = |(account, _): &DueNote| {
                let [record, ..] = self.keys(*account);
                let fields = Command::new("HMGET").arg(&record).arg(RecordField::STATE);
                Request::read(self.tenant.slot(*account), fields.arg(RecordField::UNSETTLED))
            };
            let records = self.tenant.run_all(due.iter().map(record).collect()).await?;
            let mut all = Vec::with_capacity(due.len());
            for ((account, at_ms), record) in due.iter().zip(records) {
                let [said, noted] = record.ok()?.into_array()?.try_into().map_err(|_| missing())?;
                let is_deleted =
                    !said.is_nil() && AccountState::parse(said.bytes()?) == AccountState::Deleted;
                let noted = if is_deleted {
                    NotedForgotten::Burial { at_ms: *at_ms }
                } else {
                    let mut noted = UnsettledDeletion::parse_all(&noted)?;
                    noted.truncate(noted.partition_point(|deletion| deletion.looked_at <= now_ms));
                    NotedForgotten::Deletions(noted)
                };
                all.push(SeenForgotten { account: *account, noted });
            }
            let mut forgotten = Vec::new();
            for (seen, is_forgotten) in self.are_forgotten(all).await? {
                round.noted.insert(seen.account);
                let again = match &seen.noted {
                    _ if is_forgotten => {
                        forgotten.push(seen);
                        continue;
                    }
                    NotedForgotten::Burial { .. } => work.bury(seen.account, &[]).await,
                    NotedForgotten::Deletions(_) => self.forget_again(seen.account, round).await,
                };
                // H260: an account of which something can't be read keeps no others waiting.
                if let Err(e) = again
                    && !round.fails(e, [seen.account])
                {
                    return Ok(());
                }
            }
            round.waits(self.archive.settles_within(), UnsettledChange::Forgotten(forgotten));
        }
        Ok(())
    }

    /// Strikes what the archive says again; what it has lost meanwhile stays noted.
    pub(super) async fn strike_forgotten(&self, seen: Vec<SeenForgotten>) -> Result<()> {
        for (SeenForgotten { account, noted }, is_forgotten) in self.are_forgotten(seen).await? {
            if !is_forgotten {
                continue;
            }
            let [record, _, agenda] = self.keys(account);
            let strike = match &noted {
                NotedForgotten::Burial { at_ms } => burial_settled(&[record, agenda], account, *at_ms),
                NotedForgotten::Deletions(noted) => archive_settled(&[record, agenda], account, noted),
            };
            self.tenant.router().call(Request::write(self.tenant.slot(account), strike)).await?;
        }
        Ok(())
    }

    /// Tells which of these the archive says that it has forgotten.
    async fn are_forgotten(&self, all: Vec<SeenForgotten>) -> Result<Vec<(SeenForgotten, bool)>> {
        let owners: Vec<Owner> = all.iter().map(|seen| self.owner(seen.account)).collect();
        let states = self.archive.owners(&owners).await.map_err(archive_away)?;
        let mut told = Vec::with_capacity(all.len());
        for (seen, state) in all.into_iter().zip(states) {
            let is_forgotten = match &seen.noted {
                // H187: one that has forgotten a burial would take a mover's posts that was frozen, and has those that
                // it had forgotten.
                NotedForgotten::Burial { .. } => {
                    state.is_some_and(|state| state.is_buried)
                        && left_of_buried(self.tenant, seen.account).await.is_ok_and(|left| left.is_empty())
                }
                NotedForgotten::Deletions(noted) => {
                    let knows = |last: &UnsettledDeletion| {
                        state.is_some_and(|state| state.token.number >= last.number)
                    };
                    noted.last().is_none_or(knows)
                }
            };
            told.push((seen, is_forgotten));
        }
        Ok(told)
    }

    /// H186: has the archive forget once more what it has lost, whatever is settled of it: under a token that memory
    /// knows, so until then nothing deleted shows.
    async fn forget_again(&self, account: AccountId, round: &mut MoveRound<'_>) -> Result<()> {
        let mut above = 0;
        for _ in 0..TRIES_MAX {
            let (mut touched, keys) = (TouchedServers::new(), self.keys(account));
            let again = ArchiveAgain {
                keys,
                account,
                nonce: draw(),
                decision: self.decision,
                above,
                looked_at: self.looked_at(),
            };
            let again = Request::write(self.tenant.slot(account), again.command());
            let answer = self.tenant.router().ask(again).await?;
            touched.add(&answer);
            let (begun, needs, ids) = match ArchiveAgainAnswer::parse(answer.ok()?)? {
                ArchiveAgainAnswer::Begun { token, first, needs, ids } => {
                    (Begun { account, token, first, due: Vec::new() }, needs, ids)
                }
                ArchiveAgainAnswer::Nothing => return Ok(()),
                ArchiveAgainAnswer::Undecided => {
                    round.refused.insert(account);
                    return Ok(());
                }
            };
            let exists = |id| self.tenant.posts().exists_request(id);
            let mut erased = Vec::new();
            let there = self.tenant.run_all(ids.iter().copied().map(exists).collect()).await?;
            for (id, there) in ids.into_iter().zip(there) {
                touched.add(&there);
                // H175: a deletion that failed once it was noted; the archive has it again.
                if there.ok()?.int()? == 0 {
                    erased.push(id);
                }
            }
            // H163: who says so must be the one whose word lasts.
            self.tenant.router().fence(&touched).await?;
            let change = self.change_under(&begun)?;
            let needs = Prerequisite { token_number: needs, ..change.needs };
            let change = OwnerChange { needs, erased, ..change };
            match self.archive.change(&[change]).await.map_err(archive_away)?.pop() {
                Some(Ok(()) | Err(ChangeRefusal::Buried)) => return Ok(()),
                Some(Err(ChangeRefusal::Passed(number))) => above = number,
                Some(Err(ChangeRefusal::Behind(_))) => {
                    meters::archive_behind();
                    return Ok(());
                }
                None => return Err(missing()),
            }
        }
        Ok(())
    }
}

fn missing() -> Error {
    Error::internal("an answer is missing")
}
