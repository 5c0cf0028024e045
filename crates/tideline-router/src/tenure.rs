//! The processes of primaries, each with the claim under which it serves: so that one that restarted in place is told,
//! loudly. Pure.
//!
//! A primary that restarts within `cluster-node-timeout` keeps its slots: no replica takes over. What its disk had not
//! yet is gone, whatever a fence had proved, for its replicas copy the older data; nobody notices but by the process's
//! new name.

use std::collections::HashMap;

use super::facts::{Finding, Severity};
use super::wire::NodeAddr;

/// The servers at each address.
#[derive(Debug, Default)]
pub(crate) struct Tenures {
    by_addr: HashMap<NodeAddr, Tenure>,
    /// Of those that restarted in place, how often.
    restarts: HashMap<NodeAddr, u32>,
}

/// A process that serves under a claim.
#[derive(Debug)]
struct Tenure {
    config_epoch: u64,
    run_id: String,
    /// Another one that was seen once. It may have been replaced while it was away, and not have heard of that yet, nor
    /// we.
    suspected: Option<String>,
}

impl Tenures {
    /// Takes in who serves there as primary by now. True: another process than before, and no other primary in between,
    /// for that would have raised the epoch of the claim. Only what two looks in a row say is believed.
    pub(crate) fn observe(&mut self, addr: &NodeAddr, config_epoch: u64, run_id: &str) -> bool {
        let fresh = || Tenure { config_epoch, run_id: run_id.into(), suspected: None };
        let tenure = self.by_addr.entry(addr.clone()).or_insert_with(fresh);
        if tenure.config_epoch != config_epoch || tenure.run_id == run_id {
            *tenure = fresh();
            return false;
        }
        if tenure.suspected.as_deref() != Some(run_id) {
            tenure.suspected = Some(run_id.into());
            return false;
        }
        *tenure = fresh();
        *self.restarts.entry(addr.clone()).or_default() += 1;
        true
    }

    /// Forgets who is no primary any more; not that it restarted.
    pub(crate) fn retain(&mut self, is_primary: impl Fn(&NodeAddr) -> bool) {
        self.by_addr.retain(|addr, _| is_primary(addr));
    }

    /// Tells what is to be done about those that restarted, for as long as this lives.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut restarts: Vec<_> = self.restarts.iter().collect();
        restarts.sort_unstable();
        let finding = |(addr, times): (&NodeAddr, &u32)| Finding {
            node: Some(addr.clone()),
            severity: Severity::Loss,
            text: text(*times),
        };
        restarts.into_iter().map(finding).collect()
    }
}

fn text(times: u32) -> String {
    let times = if times == 1 { String::new() } else { format!(" {times} times") };
    format!(
        "restarted in place{times}, and no replica took over: what it had acknowledged last and not yet on disk is \
         gone, also what was on replicas, and with it perhaps deliveries and edges that nobody makes again. Run \
         `tideline fsck --repair`. Before a primary is restarted let a replica take over (CLUSTER FAILOVER). This \
         stays until this process ends"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_process_under_the_same_claim_has_restarted_in_place() {
        let (mut tenures, addr) = (Tenures::default(), NodeAddr::new("127.0.0.1", 7000));
        let mut sees = |epoch, run: &str| tenures.observe(&addr, epoch, run);
        assert!(!sees(1, "a") && !sees(1, "a"));
        assert!(!sees(1, "b"), "once may be from before a failover that we have not heard of");
        assert!(!sees(1, "c") && sees(1, "c"), "and then nobody else came");
        assert!(!sees(1, "c"));
        // Others took over in between.
        assert!(!sees(7, "d") && !sees(7, "d"));
        assert!(!sees(7, "e") && !sees(9, "e") && !sees(9, "e"));
        assert!(!sees(9, "f") && sees(9, "f"));
        let told = tenures.findings();
        assert_eq!(told.len(), 1);
        assert!(told[0].text.contains("2 times") && told[0].severity == Severity::Loss, "{}", told[0]);
        tenures.retain(|_| false);
        assert_eq!(tenures.findings().len(), 1);
    }
}
