//! Looking people up by how their names begin.

use std::cmp::Reverse;

use super::{Name, Registration};
use crate::account::{Account, AccountState};
use crate::beginnings::{self, Beginning, ListedName, TypedName};
use crate::error::{CallFuture, Result};
use crate::ids::AccountId;

impl Registration {
    /// Looks people up by how their names begin, with their profiles: every word of `typed` is how a word of the login
    /// or the display name begins, without regard to case and accents. Those whom most follow come first.
    ///
    /// Of each beginning the engine knows a hundred people, whom most follow, and of equals who came last: whoever
    /// looks for somebody by the whole login asks [`find`](Self::find), too. Who has a new name is found by it within
    /// moments. Accounts that are suspended or limited aren't found, nor are those without login and display name.
    /// Nothing is found by what has no letter or digit.
    pub fn find_beginning<'a>(&'a self, typed: &'a str) -> CallFuture<'a, Vec<Account>> {
        Box::pin(async move {
            let Some(typed) = TypedName::new(typed) else { return Ok(Vec::new()) };
            let is_meant = |account: &Account| {
                account.state == AccountState::Active && typed.is_of(&beginnings::words_of(account))
            };
            for beginning in typed.beginnings() {
                let mut found = self.called(&beginning).await?;
                found.retain(is_meant);
                if !found.is_empty() {
                    found.sort_by_key(|account| (Reverse(account.followers), account.id));
                    return Ok(found);
                }
            }
            Ok(Vec::new())
        })
    }

    /// The accounts that are on the list of a beginning, and are called so.
    async fn called(&self, beginning: &Beginning) -> Result<Vec<Account>> {
        let journal = &self.graph().journal;
        let listed = beginnings::listed(&journal.tenant, beginning).await?;
        let id = |listed: &ListedName| AccountId::from_bytes(&listed.member).map(Name::Id);
        let ids: Vec<Name> = listed.iter().map(id).collect::<Result<_>>()?;
        let (mut called, mut needless) = (Vec::new(), Vec::new());
        for (account, listed) in self.find(&ids).await?.into_iter().zip(listed) {
            match account.filter(|account| beginnings::words_of(account).begin_with(beginning)) {
                Some(account) => called.push(account),
                None => needless.push(listed),
            }
        }
        beginnings::drop_needless(journal, beginning, needless);
        Ok(called)
    }
}
