//! Records of accounts against their journal: a change of mode that has begun, a burial that has not ended.

use std::sync::Arc;

use crate::account::{AccountState, Mode};
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::fsck::ask::{leave, read};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, ReadData, Relation, Unit};
use crate::graph::BuryTask;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::Matter;
use crate::journal::Task;
use crate::modes::ModeTask;
use crate::nonce::Nonce;
use crate::tenant::Tenant;

/// The record of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RecordOf(pub(super) AccountId);

impl Relation for RecordOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(account) = *self;
        let fields = [
            RecordField::STATE,
            RecordField::MODE,
            RecordField::KIND,
            RecordField::LOGIN,
            RecordField::GRAPH_STAMP,
            RecordField::MARKS_STAMP,
        ]
        .map(str::as_bytes);
        let fields = read(tenant, "HMGET", &tenant.keys().account(account), &fields).await?;
        let [state, mode, kind, login, stamps @ ..] = fields.into_values::<6>()?;
        if state.is_nil() {
            return Err(Error::internal(format!("the record of account {account} has no state")));
        }
        let state = AccountState::parse(state.bytes()?);
        if state == AccountState::Deleted {
            // Its burial takes the other fields away last.
            return Ok((!kind.is_nil()).then(|| self.found(None)).into());
        }
        let is_unconfirmed = state == AccountState::Unconfirmed;
        let mut seen = Observation::default();
        if !is_unconfirmed {
            if stamps.iter().any(|stamp| stamp.bytes().map_or(true, |stamp| stamp.len() != 8)) {
                return Err(Error::internal(format!("the record of account {account} lacks a stamp")));
            }
            let mode = mode.bytes().unwrap_or_default();
            if mode.first().map(|letter| Mode::from_letter(*letter)) == Some(Mode::Promoting) {
                // While it is carried out, the journal says so.
                let random: Nonce = mode[1..].try_into().unwrap_or_default();
                seen.deviations.push(self.found(Some(random)));
            }
        }
        seen.read = Some(ReadData::Record { account, is_unconfirmed, has_login: !login.is_nil() });
        Ok(seen)
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let Self(account) = *self;
        let task: Task = match Nonce::try_from(found.detail.as_slice()) {
            Ok(random) => ModeTask { author: account, random }.into(),
            Err(_) => BuryTask { account }.into(),
        };
        leave(&graph.journal, graph.tenant.bucket(account), task).await.map(|()| Vec::new())
    }
}

impl RecordOf {
    /// `change`: the random bytes of a change of mode that has begun; `None`: it is a burial.
    fn found(self, change: Option<Nonce>) -> Deviation {
        let Self(account) = self;
        let kind = if change.is_some() { FindingKind::ModeStuck } else { FindingKind::BurialStuck };
        let mode = change.map(|_| Matter::Mode(account));
        let excused_by = mode.into_iter().chain([Matter::Burial(account)]).collect();
        let detail = change.map(Vec::from).unwrap_or_default();
        Deviation { kind, at: Unit::of(self), detail, told: format!("account {account}"), excused_by }
    }
}
