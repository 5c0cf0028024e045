//! The program that a server runs, what it costs, and what another would bring. Pure: replies in, findings out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::facts::{Finding, Severity, Version};
use super::wire::{Command, NodeAddr, Reply};

/// The program that a server runs, as far as it matters to what operations cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// Product, major and minor number.
    pub version: Version,
    /// All of the number, as the server tells it: `7.0.15`.
    pub release: String,
    /// The allocator that it takes its memory from.
    pub allocator: Allocator,
}

/// An allocator that servers take their memory from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allocator {
    /// The one that it was built with, by the name that it tells: `jemalloc-5.3.0`.
    BuiltIn(String),
    /// That of the C library, by which operations cost up to twice as much.
    Libc,
    /// It was built with that of the C library; another one was preloaded.
    Preloaded,
}

/// An expense at a server that can be had for less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Expense {
    Allocator,
    Version,
}

/// Blocks of jemalloc, from 128 bytes on, are multiples of this; of glibc's, eight bytes more can be used.
const BLOCK_UNIT: u64 = 16;

impl ServerProgram {
    /// Asks a server what it runs.
    pub fn command() -> Command {
        Command::new("INFO").arg("server").arg("memory")
    }

    /// Gives what to ask those that say [`Allocator::Libc`]. Only those: a user with few rights may not, and servers
    /// note who tries.
    pub fn second_command() -> Command {
        Command::new("CLIENT").arg("INFO")
    }

    /// Reads the reply to [`ServerProgram::command`]. `None`: it doesn't tell.
    pub fn parse(info: &Reply) -> Option<Self> {
        let text = info.text().ok()?;
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let version = Version::parse(field)?;
        let release = field("valkey_version").or_else(|| field("redis_version"))?.to_owned();
        let allocator = match field("mem_allocator")? {
            "libc" => Allocator::Libc,
            other => Allocator::BuiltIn(other.to_owned()),
        };
        Some(Self { version, release, allocator })
    }

    /// Takes in the reply to [`ServerProgram::second_command`], which shows whether another allocator stands before the
    /// C library's.
    ///
    /// INFO names the one that was built in, and what is preloaded shows in no setting. But `rbs`, the size that the
    /// allocator gave a connection's reply buffer, differs. With musl both look the same: nothing is said of a server
    /// that can't be told from a good one.
    pub fn look_again(&mut self, client: &Reply) {
        let size = client.text().ok().and_then(|text| {
            text.split_whitespace().find_map(|field| field.strip_prefix("rbs=")?.parse::<u64>().ok())
        });
        if self.allocator == Allocator::Libc && size.is_some_and(|size| size > 0 && size % BLOCK_UNIT == 0) {
            self.allocator = Allocator::Preloaded;
        }
    }

    fn expenses(&self) -> impl Iterator<Item = Expense> {
        // Only what was measured is named.
        let is_slow = self.version.product == "Redis" && self.version.number < (7, 2);
        let expenses = [
            (self.allocator == Allocator::Libc).then_some(Expense::Allocator),
            is_slow.then_some(Expense::Version),
        ];
        expenses.into_iter().flatten()
    }
}

impl fmt::Display for ServerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} with {}", self.version.product, self.release, self.allocator)
    }
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => f.write_str(name),
            Self::Libc => f.write_str("libc's allocator"),
            Self::Preloaded => f.write_str("a preloaded allocator"),
        }
    }
}

impl Expense {
    /// Tells what it costs, as was measured (docs/benchmarks.md, "Which server"), and what costs less; fits a line.
    fn brief(self) -> &'static str {
        match self {
            Self::Allocator => {
                "libc's allocator doubles the CPU of a delivery: preload jemalloc (LD_PRELOAD=libjemalloc.so.2)"
            }
            Self::Version => {
                "Redis 7.0 takes about one and a half times the CPU for a delivery that Redis 8.2 takes"
            }
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Allocator => ", which Debian's package libjemalloc2 brings, or take a build that has it",
            Self::Version => ": update, or take Valkey 9.1 with jemalloc",
        }
    }
}

/// One finding for each expense, however many servers share it: it is about how they are deployed.
pub(crate) fn judge_programs(programs: &[(NodeAddr, ServerProgram)]) -> Vec<Finding> {
    let mut dear: BTreeMap<Expense, Vec<&NodeAddr>> = BTreeMap::new();
    for (node, program) in programs {
        program.expenses().for_each(|expense| dear.entry(expense).or_default().push(node));
    }
    let finding = |(expense, nodes): (Expense, Vec<&NodeAddr>)| {
        let others = match nodes.len() {
            0 | 1 => String::new(),
            2 => " (so it is with another one)".to_owned(),
            many => format!(" (so it is with {} others)", many - 1),
        };
        let text = format!("{}{}{others}", expense.brief(), expense.remedy());
        Finding { node: nodes.first().map(|node| (*node).clone()), severity: Severity::Warning, text }
    };
    dear.into_iter().map(finding).collect()
}

/// Describes the programs that serve, each with how many servers run it; on a line of its own for each what another
/// would bring.
pub fn describe_programs<'a>(programs: impl IntoIterator<Item = &'a ServerProgram>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut expenses = BTreeSet::new();
    for program in programs {
        *counts.entry(program.to_string()).or_default() += 1;
        expenses.extend(program.expenses());
    }
    let counts: Vec<String> = counts.iter().map(|(program, count)| format!("{count} x {program}")).collect();
    let advice: String = expenses.into_iter().map(|expense| format!(".\n{}", expense.brief())).collect();
    format!("{}{advice}", counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT_OF_GLIBC: &str = "id=3 qbuf=0 argv-mem=10 rbs=16392 rbp=16392 obl=0";
    const CLIENT_OF_JEMALLOC: &str = "id=3 qbuf=0 argv-mem=10 rbs=16384 rbp=16384 obl=0";
    const VALKEY: &str =
        "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nmem_allocator:libc\r\n";
    const REDIS: &str = "redis_version:7.0.15\r\nmem_allocator:jemalloc-5.3.0\r\n";

    fn program(info: &str, client: &Reply) -> ServerProgram {
        let mut program = ServerProgram::parse(&Reply::text_of(info)).unwrap();
        program.look_again(client);
        program
    }

    #[test]
    fn a_preloaded_allocator_is_told_from_the_c_librarys() {
        let allocator = |client: &Reply| program(VALKEY, client).allocator;
        assert_eq!(allocator(&Reply::text_of(CLIENT_OF_GLIBC)), Allocator::Libc);
        assert_eq!(allocator(&Reply::text_of(CLIENT_OF_JEMALLOC)), Allocator::Preloaded);
        // Who may not ask sees what was built in.
        assert_eq!(allocator(&Reply::server_error("NOPERM no")), Allocator::Libc);
        assert_eq!(allocator(&Reply::text_of("id=3 qbuf=0")), Allocator::Libc);
        let built_in = program(REDIS, &Reply::text_of(CLIENT_OF_GLIBC));
        assert_eq!(built_in.to_string(), "Redis 7.0.15 with jemalloc-5.3.0");
    }

    #[test]
    fn a_server_that_doesnt_tell_is_not_judged() {
        assert_eq!(ServerProgram::parse(&Reply::text_of("redis_version:7.0.15\r\n")), None);
        assert_eq!(ServerProgram::parse(&Reply::text_of("mem_allocator:libc\r\n")), None);
        assert_eq!(ServerProgram::parse(&Reply::server_error("NOPERM no")), None);
    }

    #[test]
    fn each_expense_is_one_finding_that_names_a_server_and_counts_the_others() {
        let node = |port| NodeAddr::new("h", port);
        let libc = program(VALKEY, &Reply::text_of(CLIENT_OF_GLIBC));
        let preloaded = program(VALKEY, &Reply::text_of(CLIENT_OF_JEMALLOC));
        let old = program(REDIS, &Reply::text_of(CLIENT_OF_JEMALLOC));
        let new = program(&REDIS.replace("7.0.15", "8.2.3"), &Reply::text_of(CLIENT_OF_JEMALLOC));
        let findings = judge_programs(&[
            (node(1), preloaded.clone()),
            (node(2), old.clone()),
            (node(3), libc.clone()),
            (node(4), libc.clone()),
            (node(5), new.clone()),
        ]);
        let told: Vec<_> = findings.iter().map(|f| (f.node.clone().unwrap().port, &f.text)).collect();
        let [(3, allocator), (2, version)] = told[..] else { panic!("{findings:?}") };
        assert!(allocator.contains("LD_PRELOAD=libjemalloc.so.2"), "{allocator}");
        assert!(allocator.ends_with("(so it is with another one)"), "{allocator}");
        assert!(version.contains("Redis 8.2") && !version.contains("others"), "{version}");
        assert!(findings.iter().all(|f| f.severity == Severity::Warning));
        assert_eq!(judge_programs(&[(node(1), preloaded.clone()), (node(5), new)]), []);
        let described = describe_programs([&libc, &old, &preloaded, &libc]);
        let lines: Vec<&str> = described.lines().collect();
        let servers = "1 x Redis 7.0.15 with jemalloc-5.3.0, 1 x Valkey 9.1.2 with a preloaded allocator, \
                       2 x Valkey 9.1.2 with libc's allocator.";
        assert_eq!((lines.len(), lines[0]), (3, servers));
        assert!(lines[1..].iter().all(|line| line.len() <= 100), "{described}");
        assert_eq!(describe_programs([&preloaded]), "1 x Valkey 9.1.2 with a preloaded allocator");
    }

    #[test]
    fn only_releases_that_were_measured_are_called_dear() {
        let advice = |release: &str| {
            program(&REDIS.replace("7.0.15", release), &Reply::text_of(CLIENT_OF_JEMALLOC)).expenses().count()
        };
        assert_eq!(["7.0.0", "7.0.15", "7.2.0", "8.2.3"].map(advice), [1, 1, 0, 0]);
    }
}
