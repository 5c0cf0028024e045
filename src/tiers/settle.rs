//! What an archive has forgotten and may have again: it answers before all of its servers know, and one that takes over
//! may lack that. So each deletion and each burial is looked at once more when it should have settled, and is made anew
//! where it was lost.

use super::begin::{Begun, Tiers};
use super::erase::left_of_buried;
use super::mover::{AgendaWork, MoveRound};
use crate::account::AccountState;
use crate::archive::{ChangeRefusal, Owner, OwnerChange, OwnerState, Prerequisite};
use crate::cluster::{Command, Request, Touched};
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::functions::{ArchiveAgain, ArchiveBegunAgain, UnsettledDeletion, archive_settled};
use crate::ids::AccountId;
use crate::meters;
use crate::nonce::draw;
use crate::stored::AgendaEntry;
use crate::tenant::archive_away;

/// Times that one account is begun anew since the archive knows a later token.
const TRIES_MAX: usize = 3;
/// Accounts looked at together.
const AT_ONCE: usize = 1_000;

impl Tiers<'_> {
    /// Looks at what these accounts have had forgotten and should have settled by now.
    pub(super) async fn settle(
        &self,
        accounts: &[AccountId],
        now_ms: u64,
        work: &impl AgendaWork,
        round: &mut MoveRound,
    ) -> Result<()> {
        for accounts in accounts.chunks(AT_ONCE) {
            let record = |account: &AccountId| {
                let [record, ..] = self.keys(*account);
                let fields = Command::new("HMGET").arg(&record).arg(RecordField::STATE);
                Request::read(self.tenant.slot(*account), fields.arg(RecordField::UNSETTLED))
            };
            let records = self.tenant.run_all(accounts.iter().map(record).collect()).await?;
            let owners: Vec<Owner> = accounts.iter().map(|account| self.owner(*account)).collect();
            let states = self.archive.owners(&owners).await.map_err(archive_away)?;
            for ((account, record), state) in accounts.iter().zip(records).zip(states) {
                let [said, noted] = record.ok()?.into_array()?.try_into().map_err(|_| missing())?;
                let is_deleted =
                    !said.is_nil() && AccountState::parse(said.bytes()?) == AccountState::Deleted;
                if is_deleted {
                    self.settle_burial(*account, state, work).await?;
                } else {
                    let noted = UnsettledDeletion::parse_all(&noted)?;
                    self.settle_deletions(*account, &noted, state, (now_ms, round)).await?;
                }
            }
        }
        Ok(())
    }

    /// H187: an archive that has forgotten a burial would take a mover's posts that was frozen, and has those that it
    /// had forgotten.
    async fn settle_burial(
        &self,
        account: AccountId,
        state: Option<OwnerState>,
        work: &impl AgendaWork,
    ) -> Result<()> {
        let is_buried = state.is_some_and(|state| state.is_buried);
        if is_buried && left_of_buried(self.tenant, account).await?.is_empty() {
            return self.strike(account, [AgendaEntry::Unsettled(account)]).await;
        }
        // Looked at once more when that is settled.
        work.bury(account, &[]).await
    }

    async fn settle_deletions(
        &self,
        account: AccountId,
        noted: &[UnsettledDeletion],
        state: Option<OwnerState>,
        (now_ms, round): (u64, &mut MoveRound),
    ) -> Result<()> {
        let due = noted.partition_point(|deletion| deletion.settled_at <= now_ms);
        let knows =
            |deletion: &UnsettledDeletion| state.is_some_and(|state| state.token.number >= deletion.number);
        let is_settled = noted[..due].last().is_none_or(knows);
        if !is_settled {
            return self.forget_again(account, round).await;
        }
        let [record, _, agenda] = self.keys(account);
        let command = archive_settled(&[record, agenda], account, &noted[..due]);
        self.tenant.router().call(Request::write(self.tenant.slot(account), command)).await.map(drop)
    }

    /// H186: has the archive forget once more what it has lost, whatever is settled of it: under a token that memory
    /// knows, so until then nothing deleted shows.
    async fn forget_again(&self, account: AccountId, round: &mut MoveRound) -> Result<()> {
        let mut above = 0;
        for _ in 0..TRIES_MAX {
            let (mut touched, keys) = (Touched::new(), self.keys(account));
            let again = ArchiveAgain {
                keys,
                account,
                nonce: draw(),
                decision: self.decision,
                above,
                settled_at: self.settled_at(),
            };
            let again = Request::write(self.tenant.slot(account), again.command());
            let answer = self.tenant.router().ask(again).await?;
            touched.add(&answer);
            let (begun, needs, ids) = match ArchiveBegunAgain::parse(answer.ok()?)? {
                ArchiveBegunAgain::Begun { token, first, needs, ids } => {
                    (Begun { account, token, first, due: Vec::new() }, needs, ids)
                }
                ArchiveBegunAgain::Nothing => return Ok(()),
                ArchiveBegunAgain::Undecided => {
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
