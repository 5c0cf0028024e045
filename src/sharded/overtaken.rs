//! Changes of lists of posts, which lie in one bucket: additions that count only if nothing was taken off since their
//! caller looked, and removals that say so (H126).

use super::change::{AddGuard, Change};
use super::{Member, SortedSet};
use crate::error::Result;
use crate::functions::LastRemoval;

impl<M: Member> SortedSet<M> {
    /// Sets the scores of members of a pinned set, unless something was taken off lists of its bucket since: `None`.
    pub(crate) async fn add_unless_overtaken(
        &self,
        pairs: &[(M, f64)],
        last: LastRemoval,
    ) -> Result<Option<Change>> {
        let guard = Some(AddGuard::LastRemoval(last));
        self.add_with(pairs, "", |_, new| new, (None, guard)).await
    }

    /// Removes members, and has whatever is on its way to lists of their bucket looked at anew.
    pub(crate) async fn remove_for_good(&self, members: &[M]) -> Result<Change> {
        self.remove_with(&members.iter().map(|m| (m, None)).collect::<Vec<_>>(), None, true).await
    }
}
