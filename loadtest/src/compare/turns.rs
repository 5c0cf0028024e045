//! What one system's turns have shown.

use std::time::Duration;

use crate::bench::Used;
use crate::cpu;
use crate::lookups::Lookups;
use crate::report::count;
use crate::session::Counted;
use crate::systems::Contestant;

/// One round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) operations_per_second: f64,
    pub(crate) server_us: Option<f64>,
    pub(crate) client_us: Option<f64>,
    /// Of an operation, as the servers received and sent it.
    pub(crate) wire_bytes: Option<f64>,
}

impl Sample {
    pub(crate) fn new(operations: u64, wall: Duration, used: &Used) -> Self {
        let Used { cpu, wire_bytes } = used;
        Self {
            operations_per_second: count(operations) / wall.as_secs_f64(),
            server_us: cpu::us_each(cpu.server, operations),
            client_us: cpu::us_each(cpu.client, operations),
            wire_bytes: (operations > 0).then(|| count(*wire_bytes) / count(operations)),
        }
    }

    /// CPU time of an operation, servers and client together.
    pub(crate) fn cpu_us(&self) -> Option<f64> {
        Some(self.server_us? + self.client_us?)
    }
}

/// All rounds of a system.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) contestant: Contestant,
    pub(crate) samples: Vec<Sample>,
    pub(crate) counted: Option<Counted>,
    /// Operations before that, to warm up.
    pub(crate) warm_up_operations: u64,
    /// Operations of the open loop that left late, and that did not leave at all because they were overdue.
    pub(crate) late: u64,
    pub(crate) overdue: u64,
    /// Bytes of all its keys; nothing, where servers didn't tell, or not in time.
    pub(crate) memory: Option<u64>,
    /// Accounts that are pulled.
    pub(crate) pulled: u64,
    /// Accounts that read.
    pub(crate) readers: u64,
    /// What its caches were asked.
    pub(crate) lookups: Lookups,
}

impl Measured {
    pub(crate) fn new(contestant: Contestant) -> Self {
        Self {
            contestant,
            samples: Vec::new(),
            counted: None,
            warm_up_operations: 0,
            late: 0,
            overdue: 0,
            memory: None,
            pulled: 0,
            readers: 0,
            lookups: Lookups::default(),
        }
    }

    /// Another round, with all that was counted until its end.
    pub(crate) fn add(&mut self, sample: Sample, counted: Counted) {
        self.samples.push(sample);
        self.counted = Some(counted);
    }

    /// A figure of each round; nothing, if some round could not measure it.
    pub(crate) fn rounds(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        self.samples.iter().map(figure).collect::<Option<Vec<f64>>>().unwrap_or_default()
    }
}

/// A figure of each round of one system by that of another.
pub(crate) fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}
