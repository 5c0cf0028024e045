//! The task of an account that was unlocked.

use std::sync::Arc;

use crate::error::Result;
use crate::graph::Graph;
use crate::graph::request::look_at_waiting;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Matter, Pool, Run, RunOutcome};

/// An account may be locked no more, and somebody may still wait for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnlockTask {
    pub(crate) account: AccountId,
}

impl Job for UnlockTask {
    type Service = Graph;

    const LETTER: u8 = b'O';
    const LABEL: &'static str = "unlock";
    // All who wait for an answer.
    const IS_QUICK: bool = false;

    fn arguments(&self) -> Arguments {
        Arguments::default().account(self.account)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { account: arguments.account()? })
    }

    fn actor(&self) -> AccountId {
        self.account
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::FollowsOf(self.account)]
    }

    fn describe(&self) -> String {
        format!("let follow who waits for the answer of {}, unless it is locked", self.account)
    }

    fn pool(&self, _: &Graph) -> Result<Pool> {
        Ok(Pool::Slow)
    }

    async fn run(self, graph: &Arc<Graph>, run: &mut Run<'_>) -> Result<RunOutcome> {
        look_at_waiting(graph, self.account, &mut run.touched).await
    }
}
