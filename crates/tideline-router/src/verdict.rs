//! The meaning of a reply or a broken connection for a command: done, or where and when to try again.
//!
//! Pure: reply in, verdict out. The router acts on it.

use std::fmt;
use std::time::Duration;

use super::wire::{NodeAddr, Reply, WireError};

/// The reason why a command was not finished by one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    Moved,
    Ask,
    TryAgain,
    /// A function has met a key that has just moved; what it wrote before that stands.
    HalfWay,
    ClusterDown,
    Loading,
    ReadOnly,
    Busy,
    NoReplicas,
    NoFunction,
    Unserved,
    NotSent,
    Timeout,
    Dropped,
    Refused,
}

impl Cause {
    pub(crate) const ALL: [Self; 15] = [
        Self::Moved,
        Self::Ask,
        Self::TryAgain,
        Self::HalfWay,
        Self::ClusterDown,
        Self::Loading,
        Self::ReadOnly,
        Self::Busy,
        Self::NoReplicas,
        Self::NoFunction,
        Self::Unserved,
        Self::NotSent,
        Self::Timeout,
        Self::Dropped,
        Self::Refused,
    ];

    /// Its name in metrics and messages.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Ask => "ask",
            Self::TryAgain => "tryagain",
            Self::HalfWay => "half_way",
            Self::ClusterDown => "clusterdown",
            Self::Loading => "loading",
            Self::ReadOnly => "readonly",
            Self::Busy => "busy",
            Self::NoReplicas => "noreplicas",
            Self::NoFunction => "nofunction",
            Self::Unserved => "unserved",
            Self::NotSent => "connect",
            Self::Timeout => "timeout",
            Self::Dropped => "dropped",
            Self::Refused => "refused",
        }
    }

    /// Whether it makes the slot map doubtful.
    pub(crate) fn is_suspect(self) -> bool {
        !matches!(
            self,
            Self::Ask | Self::TryAgain | Self::HalfWay | Self::Busy | Self::NoReplicas | Self::NoFunction
        )
    }

    /// Whether the command may have run, or half of it, or may still run.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Self::HalfWay | Self::Timeout | Self::Dropped)
    }

    /// Whether it says that the server is not there to work, and may not be for long.
    pub(crate) fn is_absence(self) -> bool {
        matches!(
            self,
            Self::Timeout
                | Self::NotSent
                | Self::Unserved
                | Self::Loading
                | Self::NoReplicas
                | Self::ClusterDown
                | Self::Busy
        )
    }

    /// Whether it says that the command needs keys of both sides of a slot that moves, which may stay so for long.
    pub(crate) fn is_half_moved(self) -> bool {
        matches!(self, Self::TryAgain | Self::HalfWay)
    }

    /// Whether another try makes sense at once: the reply itself said where to go or what was missing.
    pub(crate) fn says_what_to_do(self) -> bool {
        matches!(self, Self::Moved | Self::Ask | Self::NoFunction)
    }
}

/// A verdict: what to do with one command after one try.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The reply is for the caller.
    Done,
    /// The slot lives there now.
    Moved(u16, NodeAddr),
    /// This one key lives there already: ask there, once.
    Ask(NodeAddr),
    /// Not now; the same way later.
    Wait(Cause),
}

/// Reads one reply. `from` completes addresses that leave out the host.
pub(crate) fn judge(reply: &Reply, from: &NodeAddr) -> Verdict {
    let Some((code, rest)) = reply.error() else { return Verdict::Done };
    match code {
        "MOVED" | "ASK" => match redirect(rest, from) {
            Some((slot, addr)) if code == "MOVED" => Verdict::Moved(slot, addr),
            Some((_, addr)) => Verdict::Ask(addr),
            // A redirect that we cannot read is a reason to ask for the whole map.
            None => Verdict::Wait(Cause::ClusterDown),
        },
        "TRYAGAIN" => Verdict::Wait(Cause::TryAgain),
        "CLUSTERDOWN" | "MASTERDOWN" => Verdict::Wait(Cause::ClusterDown),
        "LOADING" => Verdict::Wait(Cause::Loading),
        "READONLY" | "UNBLOCKED" => Verdict::Wait(Cause::ReadOnly),
        "BUSY" => Verdict::Wait(Cause::Busy),
        "NOREPLICAS" => Verdict::Wait(Cause::NoReplicas),
        // H150: what it wrote before stands, so nobody may be told that it surely did not run: a deletion had taken
        // the post away, and its author was told that nothing was done.
        "ERR" if rest.contains("non local key") => Verdict::Wait(Cause::HalfWay),
        "ERR" if rest.starts_with("Function not found") => Verdict::Wait(Cause::NoFunction),
        _ => Verdict::Done,
    }
}

/// `1234 host:port`; the host may be left out.
fn redirect(rest: &str, from: &NodeAddr) -> Option<(u16, NodeAddr)> {
    let (slot, addr) = rest.split_once(' ')?;
    let mut addr = NodeAddr::parse(addr.trim())?;
    if addr.host.is_empty() {
        addr.host = from.host.clone();
    }
    Some((slot.parse().ok().filter(|s| *s < tideline_model::bucket::SLOTS)?, addr))
}

pub(crate) fn cause_of(error: &WireError) -> Cause {
    match error {
        WireError::NotSent(_) => Cause::NotSent,
        WireError::Refused(_) => Cause::Refused,
        WireError::Timeout => Cause::Timeout,
        WireError::Dropped(_) => Cause::Dropped,
    }
}

/// The tries so far, for the error that says so.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrailOfTries {
    tries: u32,
    counts: [u32; Cause::ALL.len()],
    last: String,
}

impl TrailOfTries {
    pub(crate) fn note(&mut self, cause: Cause, node: &dyn fmt::Display, detail: &dyn fmt::Display) {
        self.tries += 1;
        self.counts[cause as usize] += 1;
        self.last = format!("{node}: {detail}");
    }

    /// Whether some try may have had its effect.
    pub(crate) fn is_unknown(&self) -> bool {
        Cause::ALL.iter().any(|c| c.is_unknown() && self.counts[*c as usize] > 0)
    }
}

impl fmt::Display for TrailOfTries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tries (", self.tries)?;
        let tried = Cause::ALL.iter().filter(|c| self.counts[**c as usize] > 0);
        for (i, cause) in tried.enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{} x {}", self.counts[*cause as usize], cause.label())?;
        }
        write!(f, "); last: {}", self.last)
    }
}

/// The pause before try number `tries` + 1: doubling, capped, drawn from its upper half by `random` in 0..1.
pub(crate) fn pause(tries: u32, (first, longest): (Duration, Duration), random: f64) -> Duration {
    let full = first.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(longest);
    full.mul_f64(0.5 + 0.5 * random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from() -> NodeAddr {
        NodeAddr::new("10.0.0.1", 7000)
    }

    #[test]
    fn redirects_say_where_to_go() {
        let to = NodeAddr::new("10.0.0.2", 7001);
        assert_eq!(
            judge(&Reply::server_error("MOVED 12 10.0.0.2:7001"), &from()),
            Verdict::Moved(12, to.clone())
        );
        assert_eq!(judge(&Reply::server_error("ASK 12 10.0.0.2:7001"), &from()), Verdict::Ask(to));
        let here = NodeAddr::new("10.0.0.1", 7001);
        assert_eq!(judge(&Reply::server_error("MOVED 12 :7001"), &from()), Verdict::Moved(12, here));
        let six = NodeAddr::new("fe80::1", 7001);
        assert_eq!(judge(&Reply::server_error("MOVED 12 fe80::1:7001"), &from()), Verdict::Moved(12, six));
    }

    #[test]
    fn what_cannot_be_read_or_served_waits_and_what_is_the_callers_is_done() {
        let wait = |line: &str| judge(&Reply::server_error(line), &from());
        for line in
            ["MOVED", "MOVED 99999 h:1", "MOVED x h:1", "ASK 1 nowhere", "CLUSTERDOWN The cluster is down"]
        {
            assert_eq!(wait(line), Verdict::Wait(Cause::ClusterDown), "{line}");
        }
        assert_eq!(wait("TRYAGAIN Multiple keys"), Verdict::Wait(Cause::TryAgain));
        let half = "ERR Script attempted to access a non local key in a cluster node";
        assert_eq!(wait(half), Verdict::Wait(Cause::HalfWay));
        assert_eq!(wait("ERR Function not found"), Verdict::Wait(Cause::NoFunction));
        assert_eq!(wait("WRONGTYPE Operation against a key"), Verdict::Done);
        assert_eq!(wait("ERR syntax error"), Verdict::Done);
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_never_vanish() {
        let range = (Duration::from_millis(2), Duration::from_millis(200));
        assert_eq!(pause(1, range, 0.0), Duration::from_millis(1));
        assert_eq!(pause(3, range, 1.0), Duration::from_millis(8));
        assert_eq!(pause(60, range, 1.0), Duration::from_millis(200));
    }

    #[test]
    fn the_trail_names_what_was_tried() {
        let mut trail = TrailOfTries::default();
        trail.note(Cause::Timeout, &"10.0.0.1:7000", &"no answer");
        trail.note(Cause::Moved, &"10.0.0.1:7000", &"MOVED 5 10.0.0.2:7000");
        trail.note(Cause::Timeout, &"10.0.0.2:7000", &"no answer");
        assert!(trail.is_unknown());
        assert_eq!(trail.to_string(), "3 tries (1 x moved, 2 x timeout); last: 10.0.0.2:7000: no answer");
    }
}
