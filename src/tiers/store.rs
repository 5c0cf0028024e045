//! The first half of a move: posts that are due are stored in the archive, with all that lies beside them.

use std::slice;

use super::begin::{Begun, Tiers, TokenAsk};
use super::bundle::{Bundle, read};
use super::due::DueAccount;
use super::mover::MoveRound;
use crate::archive::{BYTES_MAX, ChangeOutcome, ChangeRefusal, OwnerChange};
use crate::cluster::TouchedServers;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{ArchiveBeginAnswer, ArchiveMove, LeavingPost, MOVED_MAX, TokenCase};
use crate::ids::PostId;
use crate::meters;
use crate::stored::DELETED;
use crate::tenant::{archive_away, unread};

/// Bytes of one account's posts in one move; one post more than fits goes all the same.
const BYTES_OF_ONE: usize = BYTES_MAX / 64;
/// Members of lists of one account's posts in one move, which its server reads in one go, a microsecond for each; one
/// post more than fits goes all the same.
const MEMBERS_OF_ONE: usize = 1_024;
/// Times that an account is begun anew since the archive knows a later token.
const TRIES_MAX: usize = 3;

impl Tiers<'_> {
    /// Stores what is due of these accounts: no more than one call of the archive takes. `moves`: what may leave memory
    /// then.
    pub(super) async fn store(
        &self,
        due: Vec<DueAccount>,
        moves: &mut Vec<ArchiveMove>,
        round: &mut MoveRound<'_>,
    ) -> Result<()> {
        let mut open: Vec<(DueAccount, u64)> = due.into_iter().map(|due| (due, 0)).collect();
        let (mut fence_tries, mut failure) = (self.tenant.router().fence_tries(), None);
        for _ in 0..TRIES_MAX {
            if open.is_empty() {
                break;
            }
            failure = match self.store_once(open.clone(), moves, round).await {
                Ok(again) => {
                    open = again;
                    None
                }
                Err(e) => {
                    fence_tries.after(e.clone()).await?;
                    Some(e)
                }
            };
        }
        failure.map_or(Ok(()), Err)
    }

    /// Tries once. Gives those of whom the archive knows a later token, and its number.
    async fn store_once(
        &self,
        open: Vec<(DueAccount, u64)>,
        moves: &mut Vec<ArchiveMove>,
        round: &mut MoveRound<'_>,
    ) -> Result<Vec<(DueAccount, u64)>> {
        let mut touched = TouchedServers::new();
        let case = |due: &DueAccount| if due.warm.is_empty() { TokenCase::Due } else { TokenCase::Always };
        let ask = |(due, above): &(DueAccount, u64)| TokenAsk {
            account: due.account,
            case: case(due),
            above: *above,
            erased: None,
            warm: due.warm.clone(),
        };
        let begun = self.begin(open.iter().map(ask), &mut touched).await?;
        let mut parts = Vec::with_capacity(open.len());
        for ((mut due, _), begun) in open.into_iter().zip(begun) {
            let account = due.account;
            let (token, first, elements) = match begun {
                ArchiveBeginAnswer::Begun { token, first, due } => (token, first, due),
                ArchiveBeginAnswer::Undecided | ArchiveBeginAnswer::Moving => {
                    // H179: it stays due.
                    round.refused.insert(account);
                    continue;
                }
                ArchiveBeginAnswer::Deleted => {
                    round.deleted.push(due);
                    continue;
                }
                ArchiveBeginAnswer::Nothing
                | ArchiveBeginAnswer::NoAccount
                | ArchiveBeginAnswer::Cold
                | ArchiveBeginAnswer::Unsettled => continue,
            };
            // fsck may have noted one that a failover has put above the floor again.
            due.warm.retain(|id| elements.iter().all(|element| element & !DELETED != id.get()));
            parts.push((due, Begun { account, token, first, due: elements }));
        }
        let mut wanted = Vec::new();
        for (due, begun) in &parts {
            let live = begun.due.iter().filter(|id| *id & DELETED == 0);
            let live = live.filter_map(|id| PostId::from_u64(*id).ok());
            wanted.extend(live.chain(due.warm.iter().copied()).map(|id| (id, begun.account)));
        }
        let mut found = read(self.tenant, &wanted, &mut touched).await?.into_iter();
        let mut planned = Vec::with_capacity(parts.len());
        for (due, begun) in parts {
            planned.push((self.plan(&due, begun, &mut found)?, due));
        }
        // H163: who says so must be the one whose word lasts.
        self.tenant.router().fence(&touched).await?;
        let (plans, due): (Vec<_>, Vec<_>) = planned.into_iter().unzip();
        let (changes, plans): (Vec<OwnerChange>, Vec<ArchiveMove>) = plans.into_iter().unzip();
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let outcomes = self.changed(&changes).await?;
        let mut again = Vec::new();
        for ((plan, due), outcome) in plans.into_iter().zip(due).zip(outcomes) {
            match outcome {
                Some(Ok(())) => moves.push(plan),
                Some(Err(ChangeRefusal::Passed(number))) => again.push((due, number)),
                None | Some(Err(ChangeRefusal::Buried)) => {}
                Some(Err(ChangeRefusal::Behind(state))) => {
                    meters::archive_behind();
                    tracing::error!(
                        "the archive lacks posts of account {} that it once had ({state:?}): none of it leaves \
                         memory until it has them again",
                        due.account
                    );
                }
            }
        }
        Ok(again)
    }

    /// Makes changes: together, or one by one where something is wrong with one of them, which keeps nobody else's
    /// posts in memory. `None`: it is that one.
    async fn changed(&self, changes: &[OwnerChange]) -> Result<Vec<Option<ChangeOutcome>>> {
        match self.archive.change(changes).await {
            Ok(outcomes) => return Ok(outcomes.into_iter().map(Some).collect()),
            Err(e) if !is_of_one(&e) => return Err(archive_away(e)),
            Err(_) => {}
        }
        let (mut outcomes, mut failures) = (Vec::with_capacity(changes.len()), Vec::new());
        for change in changes {
            outcomes.push(match self.archive.change(slice::from_ref(change)).await {
                Ok(mut outcome) => outcome.pop(),
                Err(e) if is_of_one(&e) => {
                    failures.push((change.owner.account, e));
                    None
                }
                Err(e) => return Err(archive_away(e)),
            });
        }
        // H252: what all of them fail for is wrong with none of them.
        if failures.len() > 1
            && failures.len() == changes.len()
            && let Some((_, failure)) = failures.pop()
        {
            return Err(unread(failure));
        }
        for (account, e) in failures {
            tracing::error!("no post of account {account} leaves memory, the archive takes none: {e}");
        }
        Ok(outcomes)
    }

    /// Plans what is stored of an account, and what leaves memory once that is done.
    fn plan(
        &self,
        due: &DueAccount,
        begun: Begun,
        found: &mut impl Iterator<Item = Option<Bundle>>,
    ) -> Result<(OwnerChange, ArchiveMove)> {
        let account = due.account;
        let mut change = self.change_under(&begun)?;
        let mut plan = ArchiveMove {
            keys: self.keys(account),
            account,
            token: begun.token,
            first: begun.first,
            passed: Vec::new(),
            stays: self.stays,
            warm: Vec::new(),
            warm_at: self.warm_until(),
            leaving: Vec::new(),
            has_more: begun.due.len() >= MOVED_MAX,
        };
        let (mut room, mut is_full) = (MoveRoom::default(), false);
        for element in begun.due {
            let Ok(id) = PostId::from_u64(element & !DELETED) else { continue };
            // H172: of a post that was deleted the archive may have what an earlier move has stored.
            let post = if element & DELETED == 0 { found.next().flatten() } else { None };
            if is_full {
                continue;
            }
            plan.passed.push(element);
            change.upto = id;
            match post {
                Some(bundle) => {
                    room.take(&bundle);
                    self.take(&bundle, &mut change, &mut plan)?;
                }
                None => change.erased.push(id),
            }
            is_full = room.is_full();
        }
        plan.has_more |= is_full;
        for id in &due.warm {
            match found.next().flatten() {
                // The agenda has it looked at later.
                Some(_) if room.is_full() => {}
                Some(bundle) => {
                    room.take(&bundle);
                    self.take(&bundle, &mut change, &mut plan)?;
                }
                None => plan.leaving.push(LeavingPost {
                    id: *id,
                    piece_keys: Vec::new(),
                    pieces: [0; 4],
                    digest: None,
                }),
            }
        }
        Ok((change, plan))
    }

    fn take(&self, bundle: &Bundle, change: &mut OwnerChange, plan: &mut ArchiveMove) -> Result<()> {
        change.posts.push(bundle.archived(plan.account)?);
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this time are exact in doubles")]
        let touched_since = (plan.warm_at.saturating_sub(2 * self.touched_ms())) as f64;
        let is_quiet = self.touched_ms() == 0 || bundle.listed_ms() < touched_since;
        match bundle.leaving().filter(|_| is_quiet) {
            Some(leaving) => plan.leaving.push(leaving),
            None => plan.warm.push(bundle.id),
        }
        Ok(())
    }
}

/// The room that one move of an account has taken so far.
#[derive(Debug, Default)]
struct MoveRoom {
    bytes: usize,
    members: usize,
}

impl MoveRoom {
    fn take(&mut self, bundle: &Bundle) {
        self.bytes += bundle.len();
        self.members += bundle.members();
    }

    fn is_full(&self) -> bool {
        self.bytes >= BYTES_OF_ONE || self.members >= MEMBERS_OF_ONE
    }
}

/// Whether an archive says so of something that it was told of one account.
fn is_of_one(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Internal | ErrorKind::Invalid)
}
