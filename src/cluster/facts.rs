//! What servers tell of themselves, and what of it does not fit. Pure: replies in, findings out.

use std::fmt;

use super::wire::{Command, NodeAddr, Reply, denied};
use crate::error::{Error, Result};

/// What `INFO server replication` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) run_id: String,
    pub(crate) replication_id: String,
    pub(crate) is_primary: bool,
    pub(crate) attached: Attached,
    pub(crate) version: Version,
}

/// Servers that replicate from it, whether of the cluster or not, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Attached {
    /// Those that get all changes, and spoke lately. A tool that only reads the stream doesn't, nor a server that hangs.
    pub(crate) online: usize,
    /// Those that load a snapshot, or have just loaded one.
    pub(crate) syncing: Vec<NodeAddr>,
}

/// Which server, as it calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `Redis` or `Valkey`.
    pub product: &'static str,
    /// Major and minor number.
    pub number: (u32, u32),
}

impl Version {
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
            return Err(Error::misconfigured(format!("INFO answered {}", denied(code, rest, "+info"))));
        }
        let text = reply.text()?;
        let field = |name: &str| {
            text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).map(|v| v.trim().to_owned())
        };
        let need =
            |name: &str| field(name).ok_or_else(|| Error::internal(format!("INFO has no field {name}")));
        let (product, number) = match field("valkey_version") {
            Some(number) => ("Valkey", number),
            None => ("Redis", need("redis_version")?),
        };
        let mut numbers = number.split('.').map(|n| n.parse().unwrap_or(0));
        let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Ok(Self {
            run_id: need("run_id")?,
            replication_id: need("master_replid")?,
            is_primary: need("role")? == "master",
            attached: Attached::parse(text),
            version: Version { product, number },
        })
    }
}

impl Attached {
    fn parse(info: &str) -> Self {
        let mut attached = Self::default();
        // `slave0:ip=…,port=…,state=…,offset=…,lag=…`
        let servers = info.lines().filter_map(|line| line.strip_prefix("slave")?.split_once(':'));
        for (_, fields) in servers.filter(|(number, _)| number.parse::<u32>().is_ok()) {
            let field =
                |name: &str| fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            if field("state") == Some("online") {
                let lag_s: Option<u32> = field("lag").and_then(|lag| lag.parse().ok());
                attached.online += usize::from(lag_s.is_some_and(|lag_s| lag_s <= SILENT_S));
            } else if let (Some(ip), Some(port)) =
                (field("ip"), field("port").and_then(|port| port.parse().ok()))
            {
                attached.syncing.push(NodeAddr::new(ip, port));
            }
        }
        attached
    }
}

/// The settings that we read from every primary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Config {
    /// False where the server forbids CONFIG, as managed services do; the defaults are assumed then.
    readable: bool,
    eviction: Option<String>,
    full_coverage: Option<bool>,
    zset_entries: Option<u32>,
    zset_value: Option<u32>,
    list_size: Option<i64>,
}

impl Config {
    pub(crate) fn command() -> Command {
        // `zset-max-listpack-*` and `list-max-listpack-size` are the names since 7.0.
        ["maxmemory-policy", "cluster-require-full-coverage", "zset-max-listpack-entries"]
            .into_iter()
            .chain(["zset-max-listpack-value", "list-max-listpack-size"])
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
                _ => {}
            }
        }
        config
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

/// How bad a [`Finding`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Works, but costs memory, speed or availability.
    Warning,
    /// Data would be lost or cannot be served: Tideline refuses to start.
    Refusal,
}

/// Something about a server that does not fit, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which server.
    pub node: NodeAddr,
    /// How bad it is.
    pub severity: Severity,
    /// What it is, and what to do.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.text)
    }
}

/// Judges all primaries together.
pub(crate) fn judge(nodes: &[(NodeAddr, Version, Config)]) -> (ListpackLimits, Vec<Finding>) {
    let defaults = ListpackLimits::default();
    let of = |get: fn(&Config) -> Option<u32>| nodes.iter().filter_map(|(_, _, c)| get(c)).min();
    let limits = ListpackLimits {
        zset_entries: of(|c| c.zset_entries).unwrap_or(defaults.zset_entries),
        zset_value: of(|c| c.zset_value).unwrap_or(defaults.zset_value),
        list_size: smallest_list_size(nodes.iter().filter_map(|(_, _, c)| c.list_size))
            .unwrap_or(defaults.list_size),
    };
    let findings =
        nodes.iter().flat_map(|(addr, version, config)| judge_one(addr, version, config)).collect();
    (limits, findings)
}

/// Size classes -1 to -5 are 4 to 64 kB; a positive number counts entries, which for small records is smaller.
fn smallest_list_size(sizes: impl Iterator<Item = i64>) -> Option<i64> {
    sizes.min_by_key(|size| if *size > 0 { (0, *size) } else { (1, -size) })
}

fn judge_one(addr: &NodeAddr, version: &Version, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |severity, text: String| findings.push(Finding { node: addr.clone(), severity, text });
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
                "maxmemory-policy {policy} would evict edges and outboxes, which makes holes in timelines: set noeviction"
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
            "cluster-require-full-coverage is yes: while one primary is down, living ones refuse too; set it to no".into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn node(config: Config) -> (NodeAddr, Version, Config) {
        (NodeAddr::new("127.0.0.1", 7000), Version { product: "Redis", number: (7, 0) }, config)
    }

    fn defaults() -> Config {
        Config {
            readable: true,
            eviction: Some("noeviction".into()),
            full_coverage: Some(false),
            zset_entries: Some(128),
            zset_value: Some(64),
            list_size: Some(-2),
        }
    }

    #[test]
    fn who_replicates_and_speaks_is_attached() {
        let attached = |lines: &str| {
            let Attached { online, syncing } = Attached::parse(lines);
            (online, syncing.iter().map(NodeAddr::to_string).collect::<Vec<_>>().join(" "))
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
        let (limits, findings) = judge(&[node(defaults())]);
        assert_eq!((limits, findings), (ListpackLimits::default(), vec![]));
    }

    #[test]
    fn the_smallest_limit_of_all_primaries_counts() {
        let small = Config { zset_entries: Some(32), list_size: Some(100), ..defaults() };
        let (limits, findings) = judge(&[node(defaults()), node(small), node(Config::default())]);
        assert_eq!(limits, ListpackLimits { zset_entries: 32, zset_value: 64, list_size: 100 });
        let said: Vec<_> = findings.iter().map(|f| f.text.split(' ').next().unwrap()).collect();
        assert_eq!(said, ["zset-max-listpack-entries", "list-max-listpack-size", "CONFIG"]);
    }

    #[test]
    fn eviction_of_anything_and_old_servers_are_refused() {
        let evicting = Config { eviction: Some("allkeys-lru".into()), ..defaults() };
        assert_eq!(judge(&[node(evicting)]).1[0].severity, Severity::Refusal);
        let (addr, _, config) = node(defaults());
        let old = Version { product: "Redis", number: (6, 2) };
        assert_eq!(judge(&[(addr, old, config)]).1[0].severity, Severity::Refusal);
        let volatile =
            Config { eviction: Some("volatile-ttl".into()), full_coverage: Some(true), ..defaults() };
        assert!(judge(&[node(volatile)]).1.iter().all(|f| f.severity == Severity::Warning));
    }

    #[test]
    fn info_tells_product_and_version() {
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nrun_id:aa\r\nrole:slave\r\nmaster_replid:bb\r\n";
        let info = Info::parse(&Reply::text_of(valkey)).unwrap();
        assert_eq!(info.version.to_string(), "Valkey 9.1");
        assert!(!info.is_primary);
        assert!(Info::parse(&Reply::text_of("role:master")).is_err());
        assert!(Info::parse(&Reply::server_error("NOPERM no")).is_err());
    }
}
