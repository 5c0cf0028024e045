//! Whether this machine has the memory that a run needs.

use super::args::FanoutArgs;
use super::system::Kind;
use super::world::World;
use crate::systems::home_posts;

/// A member of a follower set, a skiplist's.
const BYTES_PER_EDGE: u64 = 140;
/// About what a full home of ours takes, as measured; a list of others' takes as much.
pub(crate) fn bytes_per_home(entries: u64) -> u64 {
    300 + 21 * entries
}

/// What servers and this program take anyway: buffers, code, numbers of followers.
const BYTES_ANYWAY: u64 = 300 << 20;
/// What allocators lose; also: what the last system took is not given back at once.
const HEADROOM_PERCENT: u64 = 20;

/// What the system that needs most takes at its largest, and its name.
pub(crate) fn needed(args: &FanoutArgs, world: &World) -> (u64, &'static str) {
    let bytes = |kind: Kind, copies| bytes(world.homes * kind.bytes_per_home(args), world.edges(), copies);
    let alone = args.alone().into_iter().map(|kind| (bytes(kind, 1), kind.name()));
    let with_replicas = args.with_replicas().into_iter().map(|kind| (bytes(kind, 2), kind.name()));
    alone.chain(with_replicas).max().unwrap_or_default()
}

fn bytes(of_homes: u64, edges: u64, copies: u64) -> u64 {
    BYTES_ANYWAY + (of_homes + edges * BYTES_PER_EDGE) * copies * (100 + HEADROOM_PERCENT) / 100
}

/// Refuses a run that this machine has no memory for. Where it cannot be known, it is tried.
pub(crate) fn check(args: &FanoutArgs, world: &World) -> anyhow::Result<()> {
    let what_else = ", or --skip-replicas";
    available().map_or(Ok(()), |available| compare(available, needed(args, world), world.homes, what_else))
}

/// The same for homes of the engine alone.
pub(crate) fn check_ours(homes: u64, edges: u64) -> anyhow::Result<()> {
    let needed = bytes(homes * bytes_per_home(home_posts().into()), edges, 1);
    available().map_or(Ok(()), |available| compare(available, (needed, "tideline"), homes, ""))
}

fn compare(available: u64, (needed, name): (u64, &str), homes: u64, what_else: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        needed <= available,
        "{name} with {homes} homes takes about {} MB of memory and {} MB are available: \
         choose fewer --followers, fewer --background-homes{what_else}",
        needed >> 20,
        available >> 20
    );
    Ok(())
}

/// Bytes that can be had without swapping, as Linux estimates it.
pub(crate) fn available() -> Option<u64> {
    std::fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(told_available)
}

fn told_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_what_is_available() {
        let told = "MemTotal:       24681568 kB\nMemFree:  406784 kB\nMemAvailable:   24063488 kB\n";
        assert_eq!(told_available(told), Some(24_063_488 << 10));
        assert_eq!(told_available("MemTotal: 5 kB\n"), None);
    }

    #[test]
    fn posts_of_the_engine_alone_need_memory_for_one_copy() {
        let args = FanoutArgs::of_ours(1_000_000, 50_000, 3).unwrap();
        let world = World::new(&args, 1);
        let once = bytes(world.homes * bytes_per_home(home_posts().into()), world.edges(), 1);
        assert_eq!(needed(&args, &world), (once, "tideline"));
    }

    #[test]
    fn a_refusal_says_how_much_is_missing_and_what_to_do() {
        let told = compare(1 << 30, (2 << 30, "list"), 300_000, "").unwrap_err().to_string();
        assert!(told.contains("list") && told.contains("2048 MB") && told.contains("1024 MB"), "{told}");
        assert!(told.contains("--background-homes"));
        compare(2 << 30, (2 << 30, "list"), 300_000, "").unwrap();
    }
}
