//! The task of an account that was deleted.

use std::sync::Arc;

use crate::error::Result;
use crate::graph::Graph;
use crate::graph::bury::bury;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Matter, Pool, Run, RunOutcome};

/// An account is to go with all its traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuryTask {
    pub(crate) account: AccountId,
}

impl Job for BuryTask {
    type Service = Graph;

    const LETTER: u8 = b'X';
    const LABEL: &'static str = "bury";
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
        vec![Matter::Burial(self.account), Matter::AnyBurial]
    }

    fn describe(&self) -> String {
        format!("take all traces of {} away", self.account)
    }

    fn pool(&self, _: &Graph) -> Result<Pool> {
        Ok(Pool::Slow)
    }

    async fn run(self, graph: &Arc<Graph>, run: &mut Run<'_>) -> Result<RunOutcome> {
        bury(graph, self.account, &mut run.touched).await
    }
}
