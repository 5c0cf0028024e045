//! An instance's memory of readers.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::state::ReaderState;
use super::ties::Ties;
use crate::account::Account;
use crate::error::Result;
use crate::ids::AccountId;
use crate::nonce::Nonce;
use crate::stored::{LeftOutCounter, is_of_another_type, unless_of_another_type};
use crate::tenant::{Answers, Tenant};

/// A memory of readers, and of what could not be shown to them. Bounded.
#[derive(Debug)]
pub(crate) struct Readers {
    pub(super) tenant: Arc<Tenant>,
    /// Good for as long as the stamps say so.
    pub(super) states: Cache<AccountId, Arc<ReaderState>>,
    /// What readers have done with posts: the same.
    pub(super) ties: Cache<AccountId, Arc<Ties>, TiesWeigher>,
    pub(crate) left_out: LeftOutCounter,
}

/// A weigher of ties: they count by the posts that they are about.
#[derive(Debug, Clone)]
pub(crate) struct TiesWeigher;

impl Weighter<AccountId, Arc<Ties>> for TiesWeigher {
    fn weight(&self, _: &AccountId, ties: &Arc<Ties>) -> u64 {
        ties.weight()
    }
}

/// Posts that a reader has liked, bookmarked or reposted, about: for the size of the cache's table.
const TIES_EACH: usize = 50;
impl Readers {
    pub(crate) fn new(tenant: Arc<Tenant>) -> Self {
        let ties = tenant.settings.ties_cached;
        Self {
            states: Cache::new(tenant.settings.states_cached),
            ties: Cache::with_weighter(ties / TIES_EACH, ties as u64, TiesWeigher),
            left_out: LeftOutCounter::default(),
            tenant,
        }
    }

    /// Our own like or bookmark: what was known under the stamp until then, we know under that since.
    pub(crate) fn renew_ties(
        &self,
        reader: AccountId,
        until_then: Option<Nonce>,
        then: impl FnOnce(&Ties) -> Ties,
    ) {
        let Some(known) = self.ties.get(&reader) else { return };
        // Of another stamp, somebody else has changed what is known here.
        if known.stamp() == until_then {
            self.ties.insert(reader, Arc::new(then(&known)));
        }
    }

    /// Gives the next account that was asked about with `shown_requests`; `None`: there is none.
    pub(crate) fn read_shown(&self, id: AccountId, answers: &mut Answers) -> Result<Option<Account>> {
        let account = match unless_of_another_type(answers.answer()?)? {
            Some(record) => Account::parse(id, record)?,
            None => {
                self.left_out.account(id);
                None
            }
        };
        if !self.tenant.settings.shows_profiles {
            return Ok(account);
        }
        let profile = answers.answer()?;
        // One that can't be read says nothing, whatever it is.
        let profile = if is_of_another_type(&profile) { profile.reply } else { profile.ok()? };
        Ok(account.map(|account| account.with_profile(&profile)))
    }
}
