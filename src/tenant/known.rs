//! What an instance knows of its tenant's decision, and how it hears of the next one.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use super::decision::{Decision, TenantSettings};
use super::record::{found, remind_buckets, told};
use crate::cluster::{Finding, Severity};
use crate::context::Context;
use crate::error::Result;
use crate::rules;
use crate::settings::EngineSettings;
use crate::store::Store;

/// How often the tenant's record is looked at; and after how many looks buckets are told again, whatever they know: one may
/// have lost it.
const PERIOD: Duration = Duration::from_secs(5);
const TOLD_AGAIN: u32 = 720;

/// What an instance knows of its tenant's decision.
#[derive(Debug)]
pub(crate) struct Known {
    /// What its own settings say.
    own: TenantSettings,
    /// Whether those are to be told where they differ: a tool has none that mean anything.
    has_own: bool,
    state: RwLock<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    decision: Decision,
    /// Whether the record was there at the last look.
    is_there: bool,
}

impl Known {
    pub(crate) fn new(own: TenantSettings, has_own: bool, decision: Decision) -> Self {
        let known = Self { own, has_own, state: RwLock::new(State { decision, is_there: true }) };
        known.tell_differences();
        known
    }

    fn state(&self) -> State {
        *self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// What the tenant has decided, as far as is known here.
    pub(crate) fn decision(&self) -> Decision {
        let decision = self.state().decision;
        match rules::holds("tenants_settings") {
            true => decision,
            false => Decision { settings: self.own, ..decision },
        }
    }

    /// Goes by a decision from now on, if it is newer than what is known.
    pub(crate) fn learn(&self, decision: Decision) -> bool {
        let is_newer = decision.number > self.decision().number;
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

    /// Where our own settings say something else than the tenant's.
    fn differing(&self) -> Option<String> {
        let Decision { number, settings } = self.decision();
        let differing = self.own.differences(&settings);
        let each: Vec<String> = differing
            .iter()
            .map(|(name, own, tenants)| format!("{name} is {own} here and {tenants} with the tenant"))
            .collect();
        (self.has_own && number > 0 && !each.is_empty()).then(|| {
            format!(
                "settings that differ from the tenant's, which count (decision {number}): {}; make them the same, or change \
                 the tenant's with `tideline tenant set`",
                each.join("; ")
            )
        })
    }

    fn tell_differences(&self) {
        if let Some(text) = self.differing() {
            tracing::warn!("{text}");
        }
    }

    /// What health says of it.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let lost = (!self.state().is_there).then(|| (Severity::Refusal, LOST.to_owned()));
        let differing = self.differing().map(|text| (Severity::Warning, text));
        let findings = lost.into_iter().chain(differing);
        findings.map(|(severity, text)| Finding { node: None, severity, text }).collect()
    }
}

fn own_of(store: &Store, settings: &EngineSettings) -> TenantSettings {
    TenantSettings::of(settings, store.router().settings().replicas)
}

/// What an instance that starts is to know. Where nothing has been decided yet, its own settings are the tenant's from now on.
pub(crate) async fn known_to_an_instance(store: &Store, settings: &EngineSettings) -> Result<Known> {
    let own = own_of(store, settings);
    let (decision, is_new) = found(store, own).await?;
    if is_new {
        tracing::info!(
            "nothing was decided yet under prefix `{}`, so this instance's settings are the tenant's from now on: {}",
            store.keys().prefix(),
            decision.settings
        );
    }
    Ok(Known::new(own, true, decision))
}

/// What a tool is to know, which brings no settings.
pub(crate) async fn known_to_a_tool(store: &Store, settings: &EngineSettings) -> Result<Known> {
    let own = own_of(store, settings);
    let decision = Decision::parse(&told(store).await?, own)?;
    Ok(Known::new(own, false, decision.unwrap_or(Decision::none(own))))
}

/// What is said of a record that is gone while instances run.
const LOST: &str = "the tenant's record is gone (its slot is slot 0): instances that start now would not know its layout; bring \
                    it back with `tideline tenant restore`";

/// Looks at the record now and then, until the engine is gone or stopped, and goes by what it says.
pub(crate) async fn keep_to_the_tenant(context: Weak<Context>) {
    let (mut told_of, mut looks) = (None, 0);
    loop {
        {
            let Some(context) = context.upgrade() else { return };
            if context.tasks.is_stopping() {
                return;
            }
            if looks % TOLD_AGAIN == 0 {
                told_of = None;
            }
            if let Err(e) = look(&context, &mut told_of).await {
                tracing::warn!("what the tenant has decided could not be looked at: {e}");
            }
        }
        looks += 1;
        tokio::time::sleep(rules::size(PERIOD, Duration::from_millis(90))).await;
    }
}

/// One look. `told_of`: the decision that all buckets know.
async fn look(context: &Arc<Context>, told_of: &mut Option<u32>) -> Result<()> {
    let known = &context.tenant;
    let decision = Decision::parse(&told(&context.store).await?, known.own)?;
    let was_there = known.state().is_there;
    // Nobody has decided anything for a tool that is the first one here: that is no loss.
    let is_there = decision.is_some() || known.decision().number == 0;
    known.change(|state| state.is_there = is_there);
    if was_there && !is_there {
        tracing::error!("{LOST}");
    }
    let Some(decision) = decision else { return Ok(()) };
    if known.learn(decision) {
        context.router().learn_replicas(decision.settings.replicas);
    }
    if *told_of != Some(decision.number) {
        remind_buckets(&context.store, &decision).await?.1?;
        *told_of = Some(decision.number);
    }
    Ok(())
}
