//! Changes of lists of posts, which lie in one bucket: additions that count only if nothing was taken off since their
//! caller looked, and removals that say so (H126).

use super::change::{AddGuard, AddTerms, Change};
use super::{Member, SortedSet};
use crate::error::Result;
use crate::functions::LastRemoval;
use crate::inbox::Notice;

impl<M: Member> SortedSet<M> {
    /// Sets the score of a member of a pinned set, unless something was taken off lists of its bucket since: `None`.
    /// `last`: none, whatever was. `told`: the inbox of an account in that bucket, and what it is told if the member is
    /// new.
    pub(crate) async fn add_unless_overtaken(
        &self,
        member: (M, f64),
        last: Option<LastRemoval>,
        told: Option<(&[u8], Notice)>,
    ) -> Result<Option<Change>> {
        let guard = last.map(AddGuard::LastRemoval);
        let terms = AddTerms { guard, told, decision: None };
        self.add_with(&[member], "", |_, new| new, terms).await
    }

    /// Removes members, and has whatever is on its way to lists of their bucket looked at anew.
    pub(crate) async fn remove_for_good(&self, members: &[M]) -> Result<Change> {
        self.remove_with(&members.iter().map(|m| (m, None)).collect::<Vec<_>>(), None, true).await
    }
}
