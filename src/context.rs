//! What the parts of an engine share beside the tenant; it goes as its parts get owners.

use std::ops::Deref;
use std::sync::Arc;

use crate::account::Account;
use crate::cluster::Answer;
use crate::error::{Error, Result};
use crate::graph::{FillsSeen, Uncounted};
use crate::ids::AccountId;
use crate::journal::Journal;
use crate::modes::{Judge, Policy, Traffic};
use crate::stored::{LeftOut, is_of_another_type, unless_of_another_type};
use crate::tenant::Tenant;
use crate::timeline::{Caches, Fills, OwnCaches};

/// What the parts of an engine share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) caches: Caches,
    pub(crate) journal: Arc<Journal>,
    pub(crate) fills_seen: FillsSeen,
    pub(crate) uncounted: Uncounted,
    pub(crate) traffic: Traffic,
    pub(crate) judge: Judge,
    pub(crate) fills: Fills,
    pub(crate) left_out: LeftOut,
}

impl Deref for Context {
    type Target = Tenant;

    fn deref(&self) -> &Tenant {
        &self.tenant
    }
}

impl Context {
    pub(crate) fn new(tenant: Arc<Tenant>, own: OwnCaches, policy: Arc<dyn Policy>) -> Arc<Self> {
        let settings = &tenant.settings;
        let caches = Caches::new(settings, own);
        let journal = Journal::new(tenant.clone());
        let judge = Judge::new(policy, settings.modes.decide_every);
        Arc::new(Self {
            tenant,
            caches,
            journal,
            fills_seen: FillsSeen::new(),
            uncounted: Uncounted::default(),
            fills: Fills::default(),
            left_out: LeftOut::default(),
            traffic: Traffic::default(),
            judge,
        })
    }

    /// The next account that was asked about with [`shown_requests`](Self::shown_requests); `None`: there is none.
    pub(crate) fn read_shown(
        &self,
        id: AccountId,
        answers: &mut impl Iterator<Item = Answer>,
    ) -> Result<Option<Account>> {
        let mut next = || answers.next().ok_or_else(|| Error::internal("an answer is missing"));
        let account = match unless_of_another_type(next()?)? {
            Some(record) => Account::parse(id, record)?,
            None => {
                self.left_out.account(id);
                None
            }
        };
        if !self.settings.shows_profiles {
            return Ok(account);
        }
        let profile = next()?;
        // One that can't be read says nothing, whatever it is.
        let profile = if is_of_another_type(&profile) { profile.reply } else { profile.ok()? };
        Ok(account.map(|account| account.with_profile(&profile)))
    }
}
