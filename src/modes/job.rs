//! The task of a change of mode.

use std::sync::Arc;

use crate::error::Result;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Matter, Pool, Run, RunOutcome, Task};
use crate::nonce::Nonce;

/// Followers may not know yet that an account is pulled, or pushed again. Stands for the change of mode that wrote
/// these random bytes; after another one there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModeTask {
    pub(crate) author: AccountId,
    pub(crate) random: Nonce,
}

impl ModeTask {
    /// Whether a task carries out the change of mode that wrote these random bytes.
    pub(crate) fn carries_out(task: &Task, change: Option<Nonce>) -> bool {
        task.as_a::<Self>().is_some_and(|task| Some(task.random) == change)
    }
}

impl Job for ModeTask {
    type Service = Graph;

    const LETTER: u8 = b'M';
    const LABEL: &'static str = "mode";
    const IS_QUICK: bool = false;

    fn arguments(&self) -> Arguments {
        Arguments::default().account(self.author).bytes(&self.random)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { author: arguments.account()?, random: arguments.nonce()? })
    }

    fn actor(&self) -> AccountId {
        self.author
    }

    fn matters(&self) -> Vec<Matter> {
        let author = self.author;
        vec![Matter::FollowsOf(author), Matter::FollowerCount(author), Matter::Mode(author)]
    }

    fn describe(&self) -> String {
        format!("tell the followers of {} whether they must pull it", self.author)
    }

    fn pool(&self, _: &Graph) -> Result<Pool> {
        Ok(Pool::Slow)
    }

    async fn run(self, graph: &Arc<Graph>, run: &mut Run<'_>) -> Result<RunOutcome> {
        super::settle(graph, run.entry, self.author, self.random, run.reporter, &mut run.touched).await
    }
}
