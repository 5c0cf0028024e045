//! Reading lists of names, and taking off what isn't called so any more.

use super::letters::Beginning;
use super::list::{list_at, rank_in};
use crate::cluster::{Command, Reply, Request};
use crate::error::{Error, Result};
use crate::functions;
use crate::journal::Journal;
use crate::tenant::Tenant;

/// A name on a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedName {
    /// The account, or the hashtag.
    pub(crate) member: Vec<u8>,
    /// By what it is kept.
    pub(super) score: u64,
}

impl ListedName {
    /// In how many bits its followers, or posts, were counted when it was put there.
    pub(crate) fn rank(&self) -> u64 {
        rank_in(self.score)
    }
}

/// Reads the list of a beginning, those first that are kept longest.
pub(crate) async fn listed(tenant: &Tenant, beginning: &Beginning) -> Result<Vec<ListedName>> {
    let (list, slot) = list_at(tenant, beginning);
    let all = Command::new("ZRANGE").arg(&list).arg("0").arg("-1").arg("WITHSCORES");
    let reply = tenant.router().call(Request::read(slot, all)).await?.into_array()?;
    let (pairs, _) = reply.as_chunks::<2>();
    let named = |[member, score]: &[Reply; 2]| {
        let score = read_score(score.text()?)?;
        Ok(ListedName { member: member.bytes()?.to_vec(), score })
    };
    pairs.iter().rev().map(named).collect()
}

/// Reads a score of a list of names.
pub(super) fn read_score(text: &str) -> Result<u64> {
    text.parse().map_err(|_| {
        Error::internal(format!(
            "a list of names is damaged: it has the score {text:?}, which is no whole number"
        ))
    })
}

/// Takes names off a list that aren't called so, or are gone: beside, for nobody waits for it. One that was put there
/// anew meanwhile stays.
pub(crate) fn drop_needless(journal: &Journal, beginning: &Beginning, needless: Vec<ListedName>) {
    if needless.is_empty() {
        return;
    }
    let (tenant, (list, slot)) = (journal.tenant.clone(), list_at(&journal.tenant, beginning));
    journal.tasks.beside(async move {
        let dropped = |name: &ListedName| {
            Request::write(slot, functions::names_drop(list.clone(), name.score, &name.member))
        };
        drop(tenant.router().run(needless.iter().map(dropped).collect()).await);
    });
}
