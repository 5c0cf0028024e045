//! The reasons why a timeline by importance looks as it does.

use serde::Serialize;

use super::Engine;
use crate::error::CallFuture;
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::timeline::{self, HiddenBecause, RankedFeed, RankedQuery, ScoredPost};

/// A look at how the newest posts of a home are scored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankingInspection {
    /// The newest 120 that show, the most important first, with the terms of their scores.
    pub posts: Vec<ScoredPost>,
    /// Those that were met among them and don't show.
    pub hidden: Vec<HiddenPost>,
}

/// A post that doesn't show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HiddenPost {
    /// Its id.
    pub id: PostId,
    /// Its author, as its entry says.
    pub author: AccountId,
    /// Why.
    pub because: HiddenBecause,
}

impl Engine {
    /// Tells how the newest posts of an account's home are scored, term by term, in the order in which
    /// [`read_ranked`](crate::Viewer::read_ranked) shows them now. Changes nothing: it notes no read, and fills no
    /// home.
    pub fn inspect_ranking(&self, account: AccountId) -> CallFuture<'_, RankingInspection> {
        Box::pin(async move {
            let by = self.as_reader(account).viewpoint();
            let query = RankedQuery::of(RankedFeed::Home);
            let (posts, judged) = timeline::explain_ranked(by, &*self.scorer, &query).await?;
            let hidden = |(PostRef { id, author }, verdict): (PostRef, Result<(), HiddenBecause>)| {
                Some(HiddenPost { id, author, because: verdict.err()? })
            };
            Ok(RankingInspection { posts, hidden: judged.into_iter().filter_map(hidden).collect() })
        })
    }
}
