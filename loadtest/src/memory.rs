//! Whether this machine has the memory that a run needs: asked before anything is started.

/// About what a full home of that many entries takes, as measured; a list of others' takes as much.
pub(crate) fn bytes_per_home(entries: u64) -> u64 {
    300 + 21 * entries
}

/// What servers and this program take anyway: buffers, code, numbers of followers.
const BYTES_ANYWAY: u64 = 300 << 20;
/// What allocators lose; also: what the last system took is not given back at once.
const HEADROOM_PERCENT: u64 = 20;

/// Refuses what this machine has no memory for, with what to choose instead. Where it cannot be known, it is tried.
pub(crate) fn check(bytes: u64, what: &str, choose: &str) -> anyhow::Result<()> {
    let told = std::fs::read_to_string("/proc/meminfo").ok();
    let available = told.as_deref().and_then(told_available);
    available.map_or(Ok(()), |available| compare(available, bytes, what, choose))
}

fn compare(available: u64, bytes: u64, what: &str, choose: &str) -> anyhow::Result<()> {
    let needed = BYTES_ANYWAY + bytes / 100 * (100 + HEADROOM_PERCENT);
    anyhow::ensure!(
        needed <= available,
        "{what} about {} MB of memory, and {} MB are available: choose {choose}",
        needed >> 20,
        available >> 20
    );
    Ok(())
}

/// Bytes that can be had without swapping, as Linux estimates it.
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
    fn a_refusal_says_how_much_is_missing_and_what_to_do() {
        let told = compare(1 << 30, 2 << 30, "list with 300000 homes takes", "fewer --background-homes");
        assert_eq!(
            told.unwrap_err().to_string(),
            "list with 300000 homes takes about 2757 MB of memory, and 1024 MB are available: choose fewer \
             --background-homes"
        );
        compare(3 << 30, 2 << 30, "list", "").unwrap();
    }
}
