//! Facts that servers tell of themselves, and what of them does not fit. Pure: replies in, findings out.

use std::fmt;

use super::batch::kind_of;
use super::clock::SKEW_US;
use super::wire::{Command, NodeAddr, Reply, denied};
use tideline_model::error::{Error, ErrorKind, Result};

/// Facts that `INFO server replication` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) run_id: String,
    pub(crate) replication_id: String,
    pub(crate) is_primary: bool,
    /// Up to where the stream of changes has come: a primary's own, or as much of it as a replica has.
    pub(crate) offset: u64,
    pub(crate) attached: AttachedServers,
    pub(crate) version: Version,
}

/// Servers that replicate from it, whether of the cluster or not, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AttachedServers {
    /// Those that get all changes, and spoke lately. A tool that only reads the stream doesn't, nor a server that
    /// hangs.
    pub(crate) online: Vec<NodeAddr>,
    /// Those that load a snapshot, or have just loaded one.
    pub(crate) syncing: Vec<NodeAddr>,
}

/// A server's name and version, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `Redis` or `Valkey`.
    pub product: &'static str,
    /// Major and minor number.
    pub number: (u32, u32),
}

impl Version {
    /// By the fields of `INFO server`: Valkey tells a `redis_version` besides, which it is compatible with.
    pub(crate) fn parse<T: AsRef<str>>(field: impl Fn(&str) -> Option<T>) -> Option<Self> {
        let (product, number) = match field("valkey_version") {
            Some(number) => ("Valkey", number),
            None => ("Redis", field("redis_version")?),
        };
        let mut numbers = number.as_ref().split('.').map(|n| n.parse().unwrap_or(0));
        Some(Self { product, number: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) })
    }

    /// Whether it is one that Tideline supports: Redis from 7.0, Valkey from 7.2.
    pub fn is_supported(&self) -> bool {
        self.number >= if self.product == "Valkey" { (7, 2) } else { (7, 0) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.product, self.number.0, self.number.1)
    }
}

/// Replicas speak each second.
const SILENT_S: u32 = 5;

impl Info {
    pub(crate) fn command() -> Command {
        Command::new("INFO").arg("server").arg("replication")
    }

    pub(crate) fn parse(reply: &Reply) -> Result<Self> {
        if let Some((code, rest)) = reply.error() {
            let said = format!("INFO answered {}", denied(code, rest, "+info"));
            // Who is turned away needs other rights. All else ends by itself: a server that is busy with a script, say.
            let is_denied = kind_of(code, rest) == ErrorKind::Misconfigured;
            return Err(if is_denied { Error::misconfigured(said) } else { Error::unavailable(said) });
        }
        let text = reply.text()?;
        let field = |name: &str| {
            text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).map(|v| v.trim().to_owned())
        };
        let need =
            |name: &str| field(name).ok_or_else(|| Error::internal(format!("INFO has no field {name}")));
        let is_primary = need("role")? == "master";
        let offset = field(if is_primary { "master_repl_offset" } else { "slave_repl_offset" });
        Ok(Self {
            run_id: need("run_id")?,
            replication_id: need("master_replid")?,
            is_primary,
            offset: offset.and_then(|offset| offset.parse().ok()).unwrap_or(0),
            attached: AttachedServers::parse(text),
            version: Version::parse(field)
                .ok_or_else(|| Error::internal("INFO has no field redis_version"))?,
        })
    }
}

impl AttachedServers {
    fn parse(info: &str) -> Self {
        let mut attached = Self::default();
        // `slave0:ip=…,port=…,state=…,offset=…,lag=…`
        let servers = info.lines().filter_map(|line| line.strip_prefix("slave")?.split_once(':'));
        for (_, fields) in servers.filter(|(number, _)| number.parse::<u32>().is_ok()) {
            let field =
                |name: &str| fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            // A port that can't be read is nobody's: it counts, and stands for no replica of the cluster.
            let port = field("port").and_then(|port| port.parse().ok()).unwrap_or(0);
            let addr = NodeAddr::new(field("ip").unwrap_or_default(), port);
            if field("state") == Some("online") {
                let lag_s: Option<u32> = field("lag").and_then(|lag| lag.parse().ok());
                if lag_s.is_some_and(|lag_s| lag_s <= SILENT_S) {
                    attached.online.push(addr);
                }
            } else {
                attached.syncing.push(addr);
            }
        }
        attached
    }
}

/// The settings that we read from every server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NodeSettings {
    /// False where the server forbids CONFIG, as managed services do; the defaults are assumed then.
    readable: bool,
    eviction: Option<String>,
    full_coverage: Option<bool>,
    zset_entries: Option<u32>,
    zset_value: Option<u32>,
    list_size: Option<i64>,
    reads_when_down: Option<bool>,
    validity_factor: Option<u32>,
    appendonly: Option<bool>,
    /// When it writes snapshots; empty: never.
    save: Option<String>,
}

impl NodeSettings {
    pub(crate) fn command() -> Command {
        // `zset-max-listpack-*` and `list-max-listpack-size` are the names since 7.0.
        ["maxmemory-policy", "cluster-require-full-coverage", "zset-max-listpack-entries"]
            .into_iter()
            .chain(["zset-max-listpack-value", "list-max-listpack-size", "cluster-allow-reads-when-down"])
            .chain(["cluster-replica-validity-factor", "appendonly", "save"])
            .fold(Command::new("CONFIG").arg("GET"), Command::arg)
    }

    pub(crate) fn parse(reply: Reply) -> Self {
        let mut config = Self::default();
        let Ok(items) = reply.into_array() else { return config };
        config.readable = true;
        for pair in items.chunks_exact(2) {
            let (Ok(name), Ok(value)) = (pair[0].text(), pair[1].text()) else { continue };
            match name {
                "maxmemory-policy" => config.eviction = Some(value.to_owned()),
                "cluster-require-full-coverage" => config.full_coverage = Some(value == "yes"),
                "zset-max-listpack-entries" => config.zset_entries = value.parse().ok(),
                "zset-max-listpack-value" => config.zset_value = value.parse().ok(),
                "list-max-listpack-size" => config.list_size = value.parse().ok(),
                "cluster-allow-reads-when-down" => config.reads_when_down = Some(value == "yes"),
                "cluster-replica-validity-factor" => config.validity_factor = value.parse().ok(),
                "appendonly" => config.appendonly = Some(value == "yes"),
                "save" => config.save = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        config
    }

    /// Whether what it holds is gone after a restart.
    fn keeps_nothing(&self) -> bool {
        self.appendonly == Some(false) && self.save.as_deref() == Some("")
    }
}

/// Up to which sizes every primary keeps sets and lists in their compact form: the smallest of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListpackLimits {
    /// Entries of a sorted set (`zset-max-listpack-entries`).
    pub zset_entries: u32,
    /// Bytes of a member of a sorted set (`zset-max-listpack-value`).
    pub zset_value: u32,
    /// `list-max-listpack-size`: below 0 a size class of a list's nodes (-2: 8 kB), above 0 a number of entries.
    pub list_size: i64,
}

impl Default for ListpackLimits {
    /// The servers' own defaults.
    fn default() -> Self {
        Self { zset_entries: 128, zset_value: 64, list_size: -2 }
    }
}

/// The severity of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Works, but costs memory, speed or availability, or what a fault loses.
    Warning,
    /// Data that was acknowledged may be gone already: look through it with fsck.
    Loss,
    /// Data would be lost or cannot be served: Tideline refuses to start.
    Refusal,
}

/// Something about a server, or this instance, that does not fit, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The server; `None`: this instance itself.
    pub node: Option<NodeAddr>,
    /// The severity.
    pub severity: Severity,
    /// A sentence on what is wrong, and what to do.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(f, "{node}: {}", self.text),
            None => write!(f, "this instance: {}", self.text),
        }
    }
}

/// Judges all primaries together, and what of their replicas matters once these are promoted.
pub(crate) fn judge(
    nodes: &[(NodeAddr, Version, NodeSettings)],
    replicas: &[(NodeAddr, NodeSettings)],
) -> (ListpackLimits, Vec<Finding>) {
    let defaults = ListpackLimits::default();
    let of = |get: fn(&NodeSettings) -> Option<u32>| nodes.iter().filter_map(|(_, _, c)| get(c)).min();
    let limits = ListpackLimits {
        zset_entries: of(|c| c.zset_entries).unwrap_or(defaults.zset_entries),
        zset_value: of(|c| c.zset_value).unwrap_or(defaults.zset_value),
        list_size: smallest_list_size(nodes.iter().filter_map(|(_, _, c)| c.list_size))
            .unwrap_or(defaults.list_size),
    };
    let all =
        || nodes.iter().map(|(addr, _, config)| (addr, config)).chain(replicas.iter().map(|(a, c)| (a, c)));
    let mut findings: Vec<Finding> =
        nodes.iter().flat_map(|(addr, version, config)| judge_one(addr, version, config)).collect();
    findings.extend(all().flat_map(|(addr, config)| judge_in_faults(addr, config)));
    findings.extend(judge_disks(all()));
    (limits, findings)
}

/// Finds settings that cost nothing until something fails.
fn judge_in_faults(addr: &NodeAddr, config: &NodeSettings) -> Vec<Finding> {
    let reads = config.reads_when_down == Some(true);
    let factor = config.validity_factor == Some(0);
    let texts = [
        reads.then_some(
            "cluster-allow-reads-when-down is yes: a primary that was replaced and is cut off from the others goes on \
             answering, and pages lack what was published since; set it to no",
        ),
        factor.then_some(
            "cluster-replica-validity-factor is 0: a replica that was away for long may be promoted with what it had \
             then; set 10, the servers' default",
        ),
    ];
    let finding =
        |text: &str| Finding { node: Some(addr.clone()), severity: Severity::Warning, text: text.into() };
    texts.into_iter().flatten().map(finding).collect()
}

/// One finding for all servers that keep nothing on disk: it is about how they are deployed.
fn judge_disks<'a>(nodes: impl Iterator<Item = (&'a NodeAddr, &'a NodeSettings)>) -> Option<Finding> {
    let empty: Vec<&NodeAddr> =
        nodes.filter(|(_, config)| config.keeps_nothing()).map(|(addr, _)| addr).collect();
    let others = match empty.len() {
        0 | 1 => String::new(),
        many => format!(" (so do {} others)", many - 1),
    };
    let text = format!(
        "neither appendonly nor save is set: it keeps nothing on disk{others}. A primary that is restarted in place \
         comes back empty, and its replicas empty themselves; set appendonly yes"
    );
    Some(Finding { node: Some((*empty.first()?).clone()), severity: Severity::Warning, text })
}

/// Size classes -1 to -5 are 4 to 64 kB; a positive number counts entries, which for small records is smaller.
fn smallest_list_size(sizes: impl Iterator<Item = i64>) -> Option<i64> {
    sizes.min_by_key(|size| if *size > 0 { (0, *size) } else { (1, -size) })
}

fn judge_one(addr: &NodeAddr, version: &Version, config: &NodeSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find =
        |severity, text: String| findings.push(Finding { node: Some(addr.clone()), severity, text });
    if !version.is_supported() {
        find(
            Severity::Refusal,
            format!("{version} is too old: Redis 7.0 or Valkey 7.2 is needed (functions, listpacks)"),
        );
    }
    if !config.readable {
        find(Severity::Warning, "CONFIG GET is forbidden here: assuming the servers' default limits".into());
    }
    match config.eviction.as_deref() {
        Some(policy) if policy.starts_with("allkeys-") => find(
            Severity::Refusal,
            format!(
                "maxmemory-policy {policy} would evict edges and outboxes, which makes holes in timelines: set \
                 noeviction"
            ),
        ),
        Some(policy) if policy != "noeviction" => find(
            Severity::Warning,
            format!(
                "maxmemory-policy {policy} evicts keys with a TTL: leases and tokens; noeviction is safer"
            ),
        ),
        _ => {}
    }
    if config.full_coverage == Some(true) {
        find(
            Severity::Warning,
            "cluster-require-full-coverage is yes: while one primary is down, living ones refuse too; set it to \
             no".into(),
        );
    }
    let defaults = ListpackLimits::default();
    if let Some(n) = config.zset_entries.filter(|n| *n < defaults.zset_entries) {
        find(
            Severity::Warning,
            format!(
                "zset-max-listpack-entries {n}: pieces of sets hold only {n} entries and cost more memory; set 128"
            ),
        );
    }
    if let Some(n) = config.zset_value.filter(|n| *n < defaults.zset_value) {
        find(
            Severity::Warning,
            format!("zset-max-listpack-value {n}: longer members cost five times the memory; set 64"),
        );
    }
    if let Some(n) = config.list_size.filter(|n| *n == -1 || (0..448).contains(n)) {
        find(
            Severity::Warning,
            format!("list-max-listpack-size {n}: a home timeline of 400 entries takes several nodes; set -2"),
        );
    }
    findings
}

/// Judges clocks by the median of the primaries' clocks: offsets in microseconds, of each primary and of our own.
pub(crate) fn judge_clocks(median: i64, primaries: &[(NodeAddr, i64)], own: i64) -> Vec<Finding> {
    let find = |node: Option<&NodeAddr>, offset: i64, then: &str| {
        let off = offset - median;
        let way = if off > 0 { "ahead of" } else { "behind" };
        let text = format!(
            "its clock is {}.{:03} s {way} the median of the primaries' clocks: {then}; run a time daemon on every \
             machine",
            off.abs() / 1_000_000,
            off.abs() / 1_000 % 1_000
        );
        (off.abs() > SKEW_US).then(|| Finding { node: node.cloned(), severity: Severity::Warning, text })
    };
    let then = match primaries.len() {
        0..=2 => "fewer than three primaries don't outvote it, so ids of posts may follow it",
        _ => "ids of posts follow the median; ticks and the end of tokens are told by it",
    };
    let servers = primaries.iter().filter_map(|(node, offset)| find(Some(node), *offset, then));
    servers.chain(find(None, own, "no timeline depends on it; certificates are judged by it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(config: NodeSettings) -> (NodeAddr, Version, NodeSettings) {
        (NodeAddr::new("127.0.0.1", 7000), Version { product: "Redis", number: (7, 0) }, config)
    }

    fn defaults() -> NodeSettings {
        NodeSettings {
            readable: true,
            eviction: Some("noeviction".into()),
            full_coverage: Some(false),
            zset_entries: Some(128),
            zset_value: Some(64),
            list_size: Some(-2),
            reads_when_down: Some(false),
            validity_factor: Some(10),
            appendonly: Some(false),
            save: Some("3600 1".into()),
        }
    }

    /// An instance that started while a script kept a server busy ended with "misconfigured" (a run of `verify`).
    #[test]
    fn only_who_is_turned_away_needs_another_configuration() {
        let kind = |code: &str| Info::parse(&Reply::server_error(code)).unwrap_err().kind();
        assert_eq!(kind("NOPERM"), ErrorKind::Misconfigured);
        assert_eq!(kind("BUSY"), ErrorKind::Unavailable);
    }

    #[test]
    fn who_replicates_and_speaks_is_attached() {
        let attached = |lines: &str| {
            let AttachedServers { online, syncing } = AttachedServers::parse(lines);
            (online.len(), syncing.iter().map(NodeAddr::to_string).collect::<Vec<_>>().join(" "))
        };
        let nobody = "connected_slaves:1\r\nslave_repl_offset:14\r\nslave_expires_tracked_keys:0\r\n";
        assert_eq!(attached(nobody), (0, String::new()));
        let of = |rest: &str| attached(&format!("slave0:ip=::1,port=7003,{rest}\r\n"));
        assert_eq!(of("state=online,offset=14,lag=0"), (1, String::new()));
        assert_eq!(of("state=online,offset=14,lag=5,type=main-channel"), (1, String::new()));
        assert_eq!(of("state=online,offset=14,lag=6"), (0, String::new()));
        assert_eq!(of("state=wait_bgsave,offset=0,lag=0"), (0, "[::1]:7003".into()));
        let both = of("state=send_bulk,offset=0,lag=0\r\nslave12:ip=h,port=1,state=online,offset=1,lag=1");
        assert_eq!(both, (1, "[::1]:7003".into()));
    }

    #[test]
    fn a_fitting_server_gives_no_finding() {
        let (limits, findings) = judge(&[node(defaults())], &[(NodeAddr::new("h", 1), defaults())]);
        assert_eq!((limits, findings), (ListpackLimits::default(), vec![]));
    }

    #[test]
    fn the_smallest_limit_of_all_primaries_counts() {
        let small = NodeSettings { zset_entries: Some(32), list_size: Some(100), ..defaults() };
        let (limits, findings) = judge(&[node(defaults()), node(small), node(NodeSettings::default())], &[]);
        assert_eq!(limits, ListpackLimits { zset_entries: 32, zset_value: 64, list_size: 100 });
        let said: Vec<_> = findings.iter().map(|f| f.text.split(' ').next().unwrap()).collect();
        assert_eq!(said, ["zset-max-listpack-entries", "list-max-listpack-size", "CONFIG"]);
    }

    #[test]
    fn eviction_of_anything_and_old_servers_are_refused() {
        let evicting = NodeSettings { eviction: Some("allkeys-lru".into()), ..defaults() };
        assert_eq!(judge(&[node(evicting)], &[]).1[0].severity, Severity::Refusal);
        let (addr, _, config) = node(defaults());
        let old = Version { product: "Redis", number: (6, 2) };
        assert_eq!(judge(&[(addr, old, config)], &[]).1[0].severity, Severity::Refusal);
        let volatile =
            NodeSettings { eviction: Some("volatile-ttl".into()), full_coverage: Some(true), ..defaults() };
        assert!(judge(&[node(volatile)], &[]).1.iter().all(|f| f.severity == Severity::Warning));
    }

    #[test]
    fn what_only_a_fault_shows_is_found_on_replicas_too() {
        let risky = NodeSettings { reads_when_down: Some(true), validity_factor: Some(0), ..defaults() };
        let replica = NodeAddr::new("127.0.0.1", 7003);
        let (_, findings) = judge(&[node(defaults())], &[(replica.clone(), risky)]);
        let said: Vec<_> = findings.iter().map(|f| f.text.split(' ').next().unwrap()).collect();
        assert_eq!(said, ["cluster-allow-reads-when-down", "cluster-replica-validity-factor"]);
        assert!(
            findings.iter().all(|f| f.node.as_ref() == Some(&replica) && f.severity == Severity::Warning)
        );
        // Where CONFIG is forbidden nobody knows.
        assert_eq!(judge(&[], &[(replica.clone(), NodeSettings::default())]).1, []);
        let diskless = || NodeSettings { save: Some(String::new()), ..defaults() };
        let (_, findings) = judge(&[node(diskless())], &[(replica, diskless())]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].text.contains("so do 1 others"), "{}", findings[0]);
        let kept = NodeSettings { appendonly: Some(true), ..diskless() };
        assert_eq!(judge(&[node(kept)], &[]).1, []);
    }

    #[test]
    fn a_clock_that_is_off_is_named_with_how_far() {
        let nodes =
            |third| [(7000, 10), (7001, 20), (7002, third)].map(|(p, us)| (NodeAddr::new("h", p), us));
        assert_eq!(judge_clocks(20, &nodes(900_000), -900_000), []);
        let said = |third, own| {
            let said =
                judge_clocks(20, &nodes(third), own).iter().map(ToString::to_string).collect::<Vec<_>>();
            said.into_iter()
                .map(|text| text.split(" the median").next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(said(-3_599_999_980, 0), ["h:7002: its clock is 3600.000 s behind"]);
        assert_eq!(said(0, 2_500_020), ["this instance: its clock is 2.500 s ahead of"]);
    }

    #[test]
    fn info_tells_product_and_version() {
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nrun_id:aa\r\nrole:slave\r\n\
                      master_replid:bb\r\n";
        let info = Info::parse(&Reply::text_of(valkey)).unwrap();
        assert_eq!(info.version.to_string(), "Valkey 9.1");
        assert!(!info.is_primary);
        assert!(Info::parse(&Reply::text_of("role:master")).is_err());
        assert!(Info::parse(&Reply::server_error("NOPERM no")).is_err());
    }
}
