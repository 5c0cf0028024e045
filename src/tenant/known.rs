//! The tenant's decision, as an instance knows it, and how that instance hears of the next one.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use super::Tenant;
use crate::charter::{Decision, TenantSettings, found, remind_buckets, told};
use crate::cluster::{Finding, Severity};
use crate::error::Result;
use crate::functions::Grounds;
use crate::settings::EngineSettings;
use crate::store::Store;

/// The time between two looks at the tenant's record; and the number of looks after which buckets are told again,
/// whatever they know: one may have lost it.
const PERIOD: Duration = Duration::from_secs(5);
const TOLD_AGAIN: u32 = 720;

/// A tenant's decision, as an instance knows it.
#[derive(Debug)]
pub(crate) struct KnownDecision {
    /// What its own settings say.
    own: TenantSettings,
    /// Whether those are to be told where they differ: a tool has none that mean anything.
    has_own: bool,
    state: RwLock<KnownState>,
}

#[derive(Debug, Clone, Copy)]
struct KnownState {
    decision: Decision,
    record: RecordFound,
}

/// The record, as the last look found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordFound {
    There,
    /// It is not there.
    Gone,
    /// It says an older decision, of this number, than this instance knows.
    Behind(u32),
}

impl KnownDecision {
    pub(crate) fn new(own: TenantSettings, has_own: bool, decision: Decision) -> Self {
        let known =
            Self { own, has_own, state: RwLock::new(KnownState { decision, record: RecordFound::There }) };
        known.tell_differences();
        known
    }

    fn state(&self) -> KnownState {
        *self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut KnownState)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// The tenant's decision, as far as it is known here.
    pub(crate) fn decision(&self) -> Decision {
        // H65: not this instance's own settings.
        self.state().decision
    }

    /// On what grounds homes are cut and dropped by that decision.
    pub(crate) fn grounds(&self, number: u32) -> Grounds {
        match number {
            0 if self.has_own => Grounds::Own,
            0 => Grounds::Nothing,
            number => Grounds::Decision(number),
        }
    }

    /// Goes by a decision from now on, if it is newer than what is known. H142: or another one of that number, which
    /// was lost, with all that buckets knew of it, before somebody decided anew.
    pub(crate) fn learn(&self, decision: Decision) -> bool {
        let known = self.state().decision;
        let is_newer = decision.number > known.number || decision.number == known.number && decision != known;
        if is_newer {
            self.change(|state| state.decision = decision);
            tracing::info!(
                "decision {} of the tenant counts from now on: {}",
                decision.number,
                decision.settings
            );
            self.tell_differences();
        }
        is_newer
    }

    /// Tells where our own settings say something else than the tenant's, or that the tenant has none.
    fn differing(&self) -> Option<String> {
        let Decision { number, settings, .. } = self.decision();
        if self.has_own && number == 0 {
            return Some(format!(
                "nothing was decided yet for data that is there, so no posts leave outboxes, mentions and hashtags, \
                 however many there are, and each instance cuts homes to its own `home_posts`. To decide for all \
                 instances of the tenant what this one's settings say: `tideline tenant set {}`, which tells first \
                 what that removes, and only that with --dry-run",
                self.own
            ));
        }
        let differing = self.own.differences(&settings);
        let each: Vec<String> = differing
            .iter()
            .map(|(name, own, tenants)| format!("{name} is {own} here and {tenants} with the tenant"))
            .collect();
        (self.has_own && !each.is_empty()).then(|| {
            format!(
                "settings that differ from the tenant's, which count (decision {number}): {}; make them the same, or \
                 change the tenant's with `tideline tenant set`",
                each.join("; ")
            )
        })
    }

    fn tell_differences(&self) {
        if let Some(text) = self.differing() {
            tracing::warn!("{text}");
        }
    }

    /// The findings that health reports of it.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let KnownState { decision, record } = self.state();
        let lost = lost(record, decision.number).map(|text| (Severity::Refusal, text));
        let differing = self.differing().map(|text| (Severity::Warning, text));
        let findings = lost.into_iter().chain(differing);
        findings.map(|(severity, text)| Finding { node: None, severity, text }).collect()
    }
}

fn own_of(store: &Store, settings: &EngineSettings) -> TenantSettings {
    TenantSettings::of(settings, store.router().settings().replicas)
}

/// The decision, as an instance that starts is to know it.
pub(crate) async fn known_to_an_instance(store: &Store, settings: &EngineSettings) -> Result<KnownDecision> {
    known(store, settings, true).await
}

/// The decision, as it is to be known to a tool, which brings no settings.
pub(crate) async fn known_to_a_tool(store: &Store, settings: &EngineSettings) -> Result<KnownDecision> {
    known(store, settings, false).await
}

async fn known(store: &Store, settings: &EngineSettings, has_own: bool) -> Result<KnownDecision> {
    let own = own_of(store, settings);
    let decision = found(store.router(), store.keys(), own).await?;
    Ok(KnownDecision::new(own, has_own, decision.unwrap_or(Decision::none(own))))
}

/// The text on a record that has lost something while instances run.
fn lost(record: RecordFound, known: u32) -> Option<String> {
    match record {
        RecordFound::There => None,
        RecordFound::Gone => Some(
            "the tenant's record is gone (its slot is slot 0): instances that start now would not know its layout; \
             bring it back with `tideline tenant restore`"
                .into(),
        ),
        RecordFound::Behind(number) => Some(format!(
            "the tenant's record says decision {number}, and decision {known} was made: its slot, slot 0, has lost \
             data; bring it back with `tideline tenant restore`. Instances that start now go by the older one, and \
             remove nothing"
        )),
    }
}

/// The looks at the tenant's record, one after the other.
#[derive(Debug, Default)]
pub(crate) struct RecordLooks {
    /// The decision that all buckets know.
    told_of: Option<u32>,
    count: u32,
}

impl RecordLooks {
    /// Tells how long to wait before the next one; not before the first.
    pub(crate) fn pause(&self) -> Duration {
        if self.count == 0 { Duration::ZERO } else { PERIOD }
    }

    /// Looks at the record, and goes by what it says.
    pub(crate) async fn look(&mut self, tenant: &Tenant) {
        if self.count.is_multiple_of(TOLD_AGAIN) {
            self.told_of = None;
        }
        self.count += 1;
        if let Err(e) = look(tenant, &mut self.told_of).await {
            tracing::warn!("what the tenant has decided could not be looked at: {e}");
        }
    }
}

/// One look. `told_of`: the decision that all buckets know.
async fn look(tenant: &Tenant, told_of: &mut Option<u32>) -> Result<()> {
    let known = &tenant.known;
    // Before the record: what is decided meanwhile it says, and this doesn't know.
    let KnownState { decision: ours, record: before } = known.state();
    let fields = told(tenant.router(), tenant.keys()).await?;
    let decision = Decision::parse(&fields, known.own)?;
    let record = match decision {
        None if ours.is_made() || fields.is_empty() => RecordFound::Gone,
        Some(decision) if decision.number < ours.number => RecordFound::Behind(decision.number),
        _ => RecordFound::There,
    };
    known.change(|state| state.record = record);
    if let Some(text) = lost(record, ours.number).filter(|_| record != before) {
        tracing::error!("{text}");
    }
    if record == RecordFound::Gone {
        return Ok(());
    }
    let decision = decision.unwrap_or(Decision::none(known.own));
    if decision.is_made() && known.learn(decision) {
        tenant.router().learn_replicas(decision.settings.replicas);
    }
    if *told_of != Some(decision.number) {
        remind_buckets(tenant.router(), tenant.keys(), &decision).await?.1?;
        *told_of = Some(decision.number);
    }
    Ok(())
}
