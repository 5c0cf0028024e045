//! The second half of a move: what the archive has leaves memory, unless it has changed meanwhile.

use super::begin::Tiers;
use super::bundle::keys_of;
use crate::archive::{Owner, OwnerState};
use crate::cluster::Request;
use crate::error::Result;
use crate::functions::{ArchiveMove, ArchiveMoveAnswer};
use crate::meters;
use crate::tenant::archive_away;

/// Times that a move is sent anew without the posts that have changed.
const TRIES_MAX: usize = 8;

/// The posts that a move has brought to the archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MovedPosts {
    /// Posts that have left memory.
    pub(crate) left: u64,
    /// Posts that the archive has, and that stay in memory for a while.
    pub(crate) warm: u64,
    /// Elements of outboxes, of deleted posts too, that floors have passed.
    pub(crate) passed: u64,
    /// Whether more is due of accounts that these were of.
    pub(crate) has_more: bool,
    /// Whether lists were cut that are too long still. They go on as others come onto them, so no round waits for that.
    pub(crate) has_long_lists: bool,
    /// Whether a server was away, so that what is due there is not among them.
    pub(crate) has_skipped: bool,
}

impl MovedPosts {
    pub(crate) fn add(&mut self, other: Self) {
        self.left += other.left;
        self.warm += other.warm;
        self.passed += other.passed;
        self.has_more |= other.has_more;
        self.has_long_lists |= other.has_long_lists;
        self.has_skipped |= other.has_skipped;
    }
}

impl Tiers<'_> {
    /// Has posts leave memory that were stored long enough ago to be settled.
    pub(super) async fn finish(&self, moves: Vec<ArchiveMove>) -> Result<MovedPosts> {
        let mut open = self.settled(moves).await?;
        let mut moved = MovedPosts::default();
        for _ in 0..TRIES_MAX {
            if open.is_empty() {
                break;
            }
            let request = |plan: &ArchiveMove| {
                let command = plan.command(|post| keys_of(self.tenant, post))?;
                Ok(Request::write(self.tenant.slot(plan.account), command))
            };
            let requests = open.iter().map(request).collect::<Result<_>>()?;
            let answers = self.tenant.router().run(requests).await;
            let mut again = Vec::new();
            for (mut plan, answer) in open.into_iter().zip(answers) {
                // Whose server is away stays as it is, and is begun anew once it is due again.
                let Ok(Ok(moved_now)) = answer.map(|answer| ArchiveMoveAnswer::parse(answer.ok()?)) else {
                    moved.has_skipped = true;
                    continue;
                };
                match moved_now {
                    ArchiveMoveAnswer::Done => {
                        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
                        let left = plan.leaving.iter().filter(|post| post.digest.is_some()).count();
                        let (warm, passed) = (count(plan.warm.len()), count(plan.passed.len()));
                        let has_more = plan.has_more;
                        moved.add(MovedPosts {
                            left: count(left),
                            warm,
                            passed,
                            has_more,
                            ..MovedPosts::default()
                        });
                    }
                    // H163: somebody else is at it. The same where a post was deleted that the floor was to pass.
                    ArchiveMoveAnswer::OtherToken | ArchiveMoveAnswer::OtherOutbox => {}
                    // H162: liked, edited or deleted since: the floor passes it all the same, and it stays.
                    ArchiveMoveAnswer::OtherPosts(changed) => {
                        let mut number = 0..;
                        let (stay, leave) = plan
                            .leaving
                            .into_iter()
                            .partition::<Vec<_>, _>(|_| number.next().is_some_and(|n| changed.contains(&n)));
                        plan.warm.extend(stay.iter().map(|post| post.id));
                        plan.leaving = leave;
                        again.push(plan);
                    }
                }
            }
            open = again;
        }
        meters::archive_moved(moved.left, moved.warm);
        Ok(moved)
    }

    /// The moves whose change the archive still has. H169: a server that has taken over may lack it, and what has left
    /// memory by then would be lost.
    async fn settled(&self, moves: Vec<ArchiveMove>) -> Result<Vec<ArchiveMove>> {
        if self.archive.settles_within().is_zero() || moves.is_empty() {
            return Ok(moves);
        }
        let owners: Vec<Owner> = moves.iter().map(|plan| self.owner(plan.account)).collect();
        let states = self.archive.owners(&owners).await.map_err(archive_away)?;
        let is_there = |(plan, state): &(ArchiveMove, Option<OwnerState>)| {
            state.is_some_and(|state| state.token == plan.token)
        };
        Ok(moves.into_iter().zip(states).filter(is_there).map(|(plan, _)| plan).collect())
    }
}
