//! The task of a follow: what is derived from it may not be in line with it.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets};
use crate::cluster::Epoch;
use crate::error::Result;
use crate::graph::Graph;
use crate::graph::complete::Follow;
use crate::graph::pair::{settle_follow, settle_pair};
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Hint, Job, Matter, Run, RunOutcome};

/// A follow that was made just now: what a look at it would see, and whose word that is.
#[derive(Debug)]
pub(crate) struct FollowHint {
    pub(crate) follow: Follow,
    pub(crate) said: Epoch,
}

/// Whether one follows the other may not show in the other's followers, or a pull mark may be needless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairTask {
    pub(crate) reader: AccountId,
    pub(crate) author: AccountId,
    pub(crate) may_drop: bool,
}

impl Job for PairTask {
    type Service = Graph;

    const LETTER: u8 = b'P';
    const LABEL: &'static str = "pair";

    fn arguments(&self) -> Arguments {
        Arguments::default().account(self.reader).account(self.author).bytes(&[u8::from(self.may_drop)])
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        let (reader, author) = (arguments.account()?, arguments.account()?);
        Some(Self { reader, author, may_drop: arguments.byte()? == 1 })
    }

    fn actor(&self) -> AccountId {
        self.reader
    }

    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        [self.reader, self.author].map(|account| buckets.of_account(account.get())).into()
    }

    fn matters(&self) -> Vec<Matter> {
        let Self { reader, author, .. } = *self;
        vec![Matter::Follow { reader, author }, Matter::FollowerCount(author)]
    }

    fn describe(&self) -> String {
        let Self { reader, author, .. } = self;
        format!("bring the followers of {author} and the pull marks of {reader} up to date")
    }

    async fn run(self, graph: &Arc<Graph>, run: &mut Run<'_>) -> Result<RunOutcome> {
        let Self { reader, author, may_drop } = self;
        graph.grown.met(reader, author);
        // Once: if nothing comes of it, it is looked at.
        let hint = run.entry.hint.take();
        let Some(FollowHint { follow, said }) = hint.as_ref().and_then(Hint::says) else {
            return settle_pair(graph, reader, author, may_drop, &mut run.touched).await;
        };
        // H86: as after a look: that it follows must last before what is derived from it counts for good.
        run.touched.add_epoch(said);
        settle_follow(graph, run.entry.id, author, follow, may_drop, &mut run.touched).await
    }
}
