//! Ports for nodes: a pair that is free, and that no other cluster takes while ours starts.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::home::Home;
use super::spec::ClusterSpec;
use tideline_model::error::{Error, Result};

/// Distance from a node's port to its bus port.
const BUS_OFFSET: u16 = 10_000;
/// Ports are given out from here. All of them, bus ports too, lie below the range that systems use for
/// outgoing connections: a killed node finds its port free when it starts again.
const FIRST: u16 = 12_000;
/// Ports are claimed in lanes of this many.
const LANE: u16 = 16;
const LANES: u16 = (22_000 - FIRST) / LANE;
/// Lanes from here on are for clusters with a directory, whose ports must be free again after a pause: the lock file
/// of such a lane names the directory, until somebody empties the folder of the locks.
const LASTING: u16 = LANES / 2;

/// The two ports of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ports {
    /// Where clients connect.
    pub(super) client: u16,
    /// Where the other nodes connect.
    pub(super) bus: u16,
}

impl Ports {
    fn new(client: u16) -> Self {
        let bus = client.checked_add(BUS_OFFSET).unwrap_or_else(|| client - BUS_OFFSET);
        Self { client, bus }
    }

    /// The error that names the first of the two that cannot be listened on now; `None`: both can.
    pub(super) fn taken(self) -> Option<Error> {
        let is_taken = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_err();
        [self.client, self.bus].into_iter().find(is_taken).map(|port| self.error(port))
    }

    /// The error for a port that was taken when the server started, and may be free again.
    pub(super) fn snatched(self) -> Error {
        self.taken().unwrap_or_else(|| self.error(self.client))
    }

    /// The error that names a taken port. Nobody asked for a bus port: what it is for is said too.
    fn error(self, port: u16) -> Error {
        let purpose = match port == self.bus {
            true => format!(
                ", on which the node of port {} talks to the others ({BUS_OFFSET} above its own, or below where ports \
                 end),",
                self.client
            ),
            false => String::new(),
        };
        Error::misconfigured(format!(
            "port {port}{purpose} is taken by another program (`lsof -i :{port}` names it): end that, or choose other \
             ports with --port-base"
        ))
    }
}

/// The pairs `base`, `base + 1` and so on; an error names the first port that is taken.
pub(super) fn fixed(base: u16, count: usize) -> Result<Vec<Ports>> {
    let (first, highest) = (*ClusterSpec::PORTS.start(), *ClusterSpec::PORTS.end());
    let last = usize::from(base) + count - 1;
    if base < first || last > usize::from(highest) {
        return Err(Error::invalid(format!(
            "{count} nodes from port {base} on end at {last}; ports from {first} to {highest} are possible"
        )));
    }
    let pairs: Vec<Ports> = (base..=highest).take(count).map(Ports::new).collect();
    match pairs.iter().find_map(|pair| pair.taken()) {
        Some(taken) => Err(taken),
        None => Ok(pairs),
    }
}

/// Free port pairs, kept from other clusters until this is dropped.
///
/// Each lane of ports has a lock file; the system frees the locks of a process that ends in any way.
#[derive(Debug)]
pub(super) struct PortPool {
    /// The directory of the cluster, if it comes back to its ports.
    dir: Option<PathBuf>,
    /// Where the lock files are, for all clusters of this user.
    folder: PathBuf,
    /// The next one last.
    lanes: Vec<u16>,
    locks: Vec<File>,
    candidates: Vec<u16>,
}

impl PortPool {
    /// Ports for a cluster that keeps none.
    pub(super) fn passing() -> Self {
        Self::with_lanes(None, (0..LASTING).rev().collect())
    }

    /// Ports for the cluster in `dir`, none that a stopped cluster in another directory comes back to. They lie far
    /// from most other directories' ports: whoever empties the folder of the locks forgets whose they are.
    pub(super) fn lasting(dir: &Path) -> Self {
        let mut hasher = DefaultHasher::new();
        dir.hash(&mut hasher);
        let mut lanes: Vec<u16> = (LASTING..LANES).rev().collect();
        let turn = hasher.finish() % lanes.len() as u64;
        lanes.rotate_left(usize::try_from(turn).unwrap_or(0));
        Self::with_lanes(Some(dir.to_owned()), lanes)
    }

    fn with_lanes(dir: Option<PathBuf>, lanes: Vec<u16>) -> Self {
        Self { dir, folder: lock_folder(), lanes, locks: Vec::new(), candidates: Vec::new() }
    }

    /// Says once more whose ports these are, which the cluster has had since an earlier start.
    pub(super) fn keep(&mut self, ports: impl Iterator<Item = Ports>) -> Result<()> {
        let given = FIRST + LASTING * LANE..FIRST + LANES * LANE;
        let mut lanes: Vec<u16> = ports
            .filter(|ports| given.contains(&ports.client))
            .map(|ports| (ports.client - FIRST) / LANE)
            .collect();
        lanes.dedup();
        lanes.into_iter().try_for_each(|lane| self.claim(lane).map(drop))
    }

    /// A pair that is free now.
    pub(super) fn take(&mut self) -> Result<Ports> {
        loop {
            while let Some(port) = self.candidates.pop() {
                let ports = Ports::new(port);
                if ports.taken().is_none() {
                    return Ok(ports);
                }
            }
            self.claim_lane()?;
        }
    }

    fn claim_lane(&mut self) -> Result<()> {
        while let Some(lane) = self.lanes.pop() {
            if self.claim(lane)? {
                let first = FIRST + lane * LANE;
                self.candidates.extend((first..first + LANE).rev());
                return Ok(());
            }
        }
        Err(Error::unavailable(format!("no free ports between {FIRST} and {}", FIRST + LANES * LANE)))
    }

    fn claim(&mut self, lane: u16) -> Result<bool> {
        let path = self.folder.join(format!("lane-{lane}"));
        let open = || {
            fs::create_dir_all(&self.folder)?;
            let file = File::options().create(true).read(true).append(true).open(&path)?;
            Ok((file.try_lock().is_ok() && self.moves_in(&file)?).then_some(file))
        };
        let claimed = open()
            .map_err(|e: io::Error| Error::misconfigured(format!("port lock {}: {e}", path.display())))?;
        let is_ours = claimed.is_some();
        self.locks.extend(claimed);
        Ok(is_ours)
    }

    /// Writes down whose lane it is from now on; false if it is that of a cluster elsewhere, stopped or not. History:
    /// a cluster was stopped; another one started in its lane, on its ports; the first one never came up again.
    fn moves_in(&self, mut lock: &File) -> io::Result<bool> {
        let Some(dir) = &self.dir else { return Ok(true) };
        let mut owner = Vec::new();
        lock.read_to_end(&mut owner)?;
        let owner = Path::new(OsStr::from_bytes(&owner));
        if owner == dir {
            return Ok(true);
        }
        if !owner.as_os_str().is_empty() && !matches!(Home::new(owner).load(), Ok(None)) {
            return Ok(false);
        }
        lock.set_len(0)?;
        lock.write_all(dir.as_os_str().as_bytes())?;
        Ok(true)
    }
}

fn lock_folder() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("tideline-ports-{user}"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::home::ClusterNotes;

    #[test]
    fn two_pools_never_give_out_the_same_port() {
        let (mut one, mut other) = (PortPool::passing(), PortPool::passing());
        let mut given = Vec::new();
        for _ in 0..20 {
            given.push(one.take().unwrap().client);
            given.push(other.take().unwrap().client);
        }
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), 40);
    }

    #[test]
    fn a_stopped_cluster_comes_back_to_its_ports_unless_its_directory_is_empty() {
        let scratch = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| scratch.path().join(name));
        let pool = |dir: &Path| PortPool {
            folder: scratch.path().join("locks"),
            ..PortPool::with_lanes(Some(dir.to_owned()), vec![LANES - 1])
        };
        let take = |dir: &Path| pool(dir).take();
        // A lock that was given back stays for a moment with a process that another test starts just then, until that
        // has become another program.
        let take_in_the_end = |dir: &Path| {
            let since = Instant::now();
            loop {
                match take(dir) {
                    Err(_) if since.elapsed() < Duration::from_secs(60) => {}
                    taken => return taken.unwrap(),
                }
            }
        };
        let ports = take_in_the_end(&one);
        assert_eq!(take_in_the_end(&other), ports, "nothing was written down in the first directory");
        fs::create_dir(&other).unwrap();
        Home::new(&other).save(&ClusterNotes::new(ClusterSpec::default(), Vec::new())).unwrap();
        let error = take(&one).unwrap_err().to_string();
        assert!(error.starts_with("no free ports"), "{error}");
        assert_eq!(take_in_the_end(&other), ports);
        // Whoever comes back says whose they are where nobody has written it down, or where nobody does any more.
        fs::remove_dir_all(scratch.path().join("locks")).unwrap();
        pool(&other).keep([ports].into_iter()).unwrap();
        take(&one).unwrap_err();
        fs::remove_dir_all(&other).unwrap();
        assert_eq!(take_in_the_end(&one), ports);
    }

    #[test]
    fn bus_ports_exist_for_high_ports_too() {
        assert_eq!(Ports::new(7000).bus, 17_000);
        assert_eq!(Ports::new(60_000).bus, 50_000);
    }

    #[test]
    fn a_taken_port_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = fixed(port, 1).unwrap_err();
        assert!(error.to_string().contains(&format!("port {port} is taken")), "{error}");
    }

    #[test]
    fn a_taken_bus_port_is_told_with_what_it_is_for() {
        let error = Ports::new(60_004).error(50_004).to_string();
        assert!(error.contains("port 50004, on which the node of port 60004 talks to the others"), "{error}");
    }

    #[test]
    fn ports_that_there_are_not_are_refused_with_those_that_there_are() {
        for (base, count) in [(65_530, 9), (1_023, 1)] {
            let error = fixed(base, count).unwrap_err().to_string();
            assert!(error.contains("ports from 1024 to 65535 are possible"), "{error}");
        }
    }
}
