//! Nodes' words on who serves which slot: `CLUSTER NODES` read into a view, several views merged into one.
//!
//! A node that was frozen or cut off still believes what it knew before. Every claim to a slot carries the
//! claimant's configuration epoch, and the cluster itself settles a quarrel by the higher one: so do we.
//! Pure: text in, view out.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::wire::NodeAddr;
use tideline_model::bucket::SLOTS;

/// A primary as some view describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Primary {
    pub(crate) addr: NodeAddr,
    pub(crate) config_epoch: u64,
    /// Replicas that the cluster does not believe dead.
    pub(crate) replicas: Vec<Replica>,
    /// Slots, as inclusive ranges.
    pub(crate) slots: Vec<(u16, u16)>,
}

/// A replica: where clients reach it, and at which address its primary may see it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Replica {
    pub(crate) addr: NodeAddr,
    /// The same without a host name.
    pub(crate) ip: NodeAddr,
}

/// A view of who serves what, by node id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClusterView {
    pub(crate) primaries: BTreeMap<String, Primary>,
    /// Up to which configuration epoch it knows each node, of a replica its primary's.
    pub(crate) epochs: BTreeMap<String, u64>,
}

/// Reads the answer to `CLUSTER NODES`. `asked` stands in for the address that a node doesn't know of itself.
pub(crate) fn parse_nodes(
    text: &str,
    asked: &NodeAddr,
    prefer_hostname: bool,
) -> Result<ClusterView, String> {
    let mut view = ClusterView::default();
    let mut replicas: HashMap<&str, Vec<Replica>> = HashMap::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [id, addr, flags, primary, _, _, epoch, _, slots @ ..] = fields.as_slice() else {
            return Err(format!("CLUSTER NODES: a line with {} fields: {line}", fields.len()));
        };
        let has = |flag: &str| flags.split(',').any(|f| f == flag);
        if has("handshake") || has("noaddr") {
            continue;
        }
        let told = addr;
        let unreadable = || format!("CLUSTER NODES: unreadable address {told}");
        let addr = parse_addr(told, asked, prefer_hostname).ok_or_else(unreadable)?;
        let config_epoch = epoch.parse().map_err(|_| format!("CLUSTER NODES: unreadable epoch {epoch}"))?;
        view.epochs.insert((*id).into(), config_epoch);
        if has("slave") {
            // Not by the link that the asked node has to it: its own primary's link is what counts, and a fence asks.
            if !has("fail") {
                let ip = parse_addr(told, asked, false).ok_or_else(unreadable)?;
                replicas.entry(primary).or_default().push(Replica { addr, ip });
            }
            continue;
        }
        let slots =
            slots.iter().filter(|s| !s.starts_with('[')).map(|s| parse_range(s)).collect::<Result<_, _>>()?;
        view.primaries.insert((*id).into(), Primary { addr, config_epoch, replicas: Vec::new(), slots });
    }
    for (primary, mut addrs) in replicas {
        addrs.sort_unstable();
        if let Some(primary) = view.primaries.get_mut(primary) {
            primary.replicas = addrs;
        }
    }
    Ok(view)
}

/// The addresses of all nodes that the answer to `CLUSTER NODES` knows, whatever they do at the moment.
pub(crate) fn all_addrs(text: &str, asked: &NodeAddr) -> Vec<NodeAddr> {
    text.lines().filter_map(|line| parse_addr(line.split_whitespace().nth(1)?, asked, false)).collect()
}

/// `ip:port@bus[,hostname[,…]]`.
fn parse_addr(text: &str, asked: &NodeAddr, prefer_hostname: bool) -> Option<NodeAddr> {
    let mut parts = text.split(',');
    let addr = NodeAddr::parse(parts.next()?.split('@').next()?)?;
    let hostname = parts.next().filter(|h| !h.is_empty() && !h.contains('='));
    let host = match hostname {
        Some(name) if prefer_hostname || addr.host.is_empty() => name.into(),
        _ if addr.host.is_empty() => asked.host.clone(),
        _ => addr.host,
    };
    Some(NodeAddr { host, port: addr.port })
}

fn parse_range(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last && last < SLOTS => Ok((first, last)),
        _ => Err(format!("CLUSTER NODES: unreadable slots {text}")),
    }
}

/// Merges views: for every slot the claim with the highest configuration epoch wins.
pub(crate) fn merge(views: Vec<ClusterView>) -> ClusterView {
    let mut claims: Vec<Option<(u64, String)>> = vec![None; usize::from(SLOTS)];
    let mut merged = ClusterView::default();
    for view in views {
        for (id, epoch) in view.epochs {
            let known = merged.epochs.entry(id).or_default();
            *known = epoch.max(*known);
        }
        for (id, primary) in view.primaries {
            for slot in primary.slots.iter().flat_map(|(first, last)| *first..=*last) {
                let claim = &mut claims[usize::from(slot)];
                if claim.as_ref().is_none_or(|(epoch, _)| *epoch < primary.config_epoch) {
                    *claim = Some((primary.config_epoch, id.clone()));
                }
            }
            match merged.primaries.get_mut(&id) {
                // A replica that only one of them knows must be waited for too.
                Some(known) if known.config_epoch == primary.config_epoch => {
                    known.replicas.extend(primary.replicas);
                    known.replicas.sort_unstable();
                    known.replicas.dedup();
                }
                Some(known) if known.config_epoch > primary.config_epoch => {}
                _ => drop(merged.primaries.insert(id, primary)),
            }
        }
    }
    merged.primaries.values_mut().for_each(|p| p.slots.clear());
    for (slot, claim) in (0..SLOTS).zip(claims) {
        let Some((_, id)) = claim else { continue };
        let Some(primary) = merged.primaries.get_mut(&id) else { continue };
        match primary.slots.last_mut() {
            Some((_, last)) if *last + 1 == slot => *last = slot,
            _ => primary.slots.push((slot, slot)),
        }
    }
    merged.primaries.retain(|_, p| !p.slots.is_empty());
    merged
}

/// The time for which claims are kept that no look has confirmed or taken back.
pub(crate) const CLAIMS_KEPT: Duration = Duration::from_secs(30);

/// Knowledge of who serves what, over all looks.
///
/// Each look asks a few nodes, and of those that answer soon one may be a primary that was deposed and cut off: by its
/// word alone the map would go back to it. So a claim stays against lower ones, until a look that knows its node as it
/// was then, or later, says otherwise. A node that nobody knows any more (forgotten, or the cluster was made anew)
/// can't be told from one that those who answer have not heard of yet: what it claimed is given up after
/// [`CLAIMS_KEPT`].
#[derive(Debug, Default)]
pub(crate) struct KnownServers {
    view: ClusterView,
    behind_since: Option<Instant>,
}

impl KnownServers {
    /// Takes in what a look has seen; gives what is to be believed, and whether the look was behind.
    pub(crate) fn learn(&mut self, seen: ClusterView, now: Instant) -> (ClusterView, bool) {
        let kept = keep_newer(&self.view, &seen);
        let is_behind = !serves_alike(&kept, &seen);
        let since = is_behind.then(|| self.behind_since.unwrap_or(now));
        let is_over = since.is_some_and(|since| now.duration_since(since) >= CLAIMS_KEPT);
        self.behind_since = since.filter(|_| !is_over);
        self.view = if is_over { seen } else { kept };
        (self.view.clone(), is_behind && !is_over)
    }
}

/// Merges what a look has seen with what was known of nodes that it doesn't know as far; the higher claim wins.
fn keep_newer(known: &ClusterView, seen: &ClusterView) -> ClusterView {
    let is_newer = |id: &str, epoch: u64| seen.epochs.get(id).is_none_or(|seen| *seen < epoch);
    let newer = known.primaries.iter().filter(|(id, p)| is_newer(id, p.config_epoch));
    let primaries: BTreeMap<String, Primary> = newer.map(|(id, p)| (id.clone(), p.clone())).collect();
    let epochs = primaries.iter().map(|(id, p)| (id.clone(), p.config_epoch)).collect();
    merge(vec![seen.clone(), ClusterView { primaries, epochs }])
}

fn serves_alike(one: &ClusterView, other: &ClusterView) -> bool {
    let slots = |view: &'_ ClusterView| -> Vec<(String, Vec<(u16, u16)>)> {
        view.primaries.iter().map(|(id, p)| (id.clone(), p.slots.clone())).collect()
    };
    slots(one) == slots(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NODES: &str = "\
aaaa 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460 [93-<-bbbb] [77->-bbbb]
bbbb 127.0.0.1:7001@17001,shard-b.example master - 0 1 2 connected 5461-10922 16000
cccc :7002@17002,,shard-id=x master - 0 1 3 connected 10923-15999 16001-16383
dddd 127.0.0.1:7003@17003 slave aaaa 0 1 1 connected
eeee 127.0.0.1:7004@17004 slave,fail aaaa 0 1 1 disconnected
ffff 127.0.0.1:7005@17005 handshake - 0 0 0 connected
";

    fn asked() -> NodeAddr {
        NodeAddr::new("10.0.0.9", 7002)
    }

    #[test]
    fn reads_primaries_their_slots_and_their_living_replicas() {
        let view = parse_nodes(NODES, &asked(), false).unwrap();
        assert_eq!(view.primaries.len(), 3);
        assert_eq!(view.primaries["aaaa"].slots, [(0, 5460)]);
        let replica = NodeAddr::new("127.0.0.1", 7003);
        assert_eq!(view.primaries["aaaa"].replicas, [Replica { addr: replica.clone(), ip: replica }]);
        assert_eq!(view.primaries["bbbb"].slots, [(5461, 10_922), (16_000, 16_000)]);
        assert_eq!(view.primaries["cccc"].addr, NodeAddr::new("10.0.0.9", 7002));
        let named = parse_nodes(NODES, &asked(), true).unwrap();
        assert_eq!(named.primaries["bbbb"].addr, NodeAddr::new("shard-b.example", 7001));
        assert_eq!(named.primaries["aaaa"].addr, NodeAddr::new("127.0.0.1", 7000));
    }

    #[test]
    fn knows_all_nodes_dead_ones_among_them() {
        let addrs = all_addrs(NODES, &asked());
        assert_eq!(addrs.len(), 6);
        assert!(
            addrs.contains(&NodeAddr::new("127.0.0.1", 7004))
                && addrs.contains(&NodeAddr::new("10.0.0.9", 7002))
        );
        assert!(all_addrs("-ERR", &asked()).is_empty());
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for text in [
            "aaaa 127.0.0.1:7000@17000 master",
            "a x@1 master - 0 0 1 connected",
            "a h:1@2 master - 0 0 1 connected 5-3",
        ] {
            assert!(parse_nodes(text, &asked(), false).is_err(), "{text}");
        }
    }

    #[test]
    fn a_primary_that_slept_through_its_failover_loses_its_slots_to_the_promoted_replica() {
        let old = parse_nodes(NODES, &asked(), false).unwrap();
        let promoted = "dddd 127.0.0.1:7003@17003 master - 0 1 9 connected 0-5460\n\
                        aaaa 127.0.0.1:7000@17000 master,fail - 0 0 1 connected\n";
        let new = parse_nodes(promoted, &asked(), false).unwrap();
        for views in [vec![old.clone(), new.clone()], vec![new, old]] {
            let merged = merge(views);
            assert_eq!(merged.primaries["dddd"].slots, [(0, 5460)]);
            assert!(!merged.primaries.contains_key("aaaa"));
            assert_eq!(merged.primaries["bbbb"].slots, [(5461, 10_922), (16_000, 16_000)]);
        }
    }

    const PROMOTED: &str = "\
aaaa 127.0.0.1:7000@17000 master,fail - 0 0 1 connected
bbbb 127.0.0.1:7001@17001 master - 0 1 2 connected 5461-10922 16000
cccc 127.0.0.1:7002@17002 master - 0 1 3 connected 10923-15999 16001-16383
dddd 127.0.0.1:7003@17003 master - 0 1 9 connected 0-5460
";

    fn view(text: &str) -> ClusterView {
        merge(vec![parse_nodes(text, &asked(), false).unwrap()])
    }

    #[test]
    fn the_word_of_a_deposed_primary_alone_takes_nothing_back_but_not_for_ever() {
        // The map was what the last look said. Whoever answered first was believed, and 40 ms later the look was over:
        // when that was a primary that the others had deposed and cut off, clients went back to it.
        let (mut known, start) = (KnownServers::default(), Instant::now());
        known.learn(view(NODES), start);
        assert!(!known.learn(view(PROMOTED), start).1);
        let just_before = start + CLAIMS_KEPT - Duration::from_millis(1);
        for now in [start, just_before] {
            let (map, is_behind) = known.learn(view(NODES), now);
            assert!(is_behind);
            assert_eq!(map.primaries["dddd"].slots, [(0, 5460)]);
            assert!(!map.primaries.contains_key("aaaa"));
        }
        // Confirmed once, it is kept for as long again.
        assert!(!known.learn(view(PROMOTED), just_before).1);
        assert!(known.learn(view(NODES), start + CLAIMS_KEPT).1);
        let (map, is_behind) = known.learn(view(NODES), start + CLAIMS_KEPT * 2);
        assert!(!is_behind);
        assert_eq!(map.primaries["aaaa"].slots, [(0, 5460)]);
    }

    #[test]
    fn slots_go_to_a_lower_epoch_at_once_where_the_look_knows_who_had_them() {
        // Taken from `dddd` by hand (DELSLOTS, ADDSLOTS); then it is gone, by a failover with a higher epoch.
        let (mut known, now) = (KnownServers::default(), Instant::now());
        known.learn(view(PROMOTED), now);
        let given = PROMOTED.replace("0-5460", "0-5000").replace("5461-10922", "5001-10922");
        let (map, is_behind) = known.learn(view(&given), now);
        assert_eq!((map.primaries["bbbb"].slots[0], is_behind), ((5001, 10_922), false));
        let back = "aaaa 127.0.0.1:7000@17000 master - 0 0 12 connected 0-5000\n\
                    dddd 127.0.0.1:7003@17003 slave aaaa 0 1 12 connected\n";
        let (map, _) = known.learn(view(back), now);
        assert_eq!(map.primaries["aaaa"].slots, [(0, 5000)]);
        // Those that this look does not know at all are kept.
        assert_eq!(map.primaries["cccc"].slots.len(), 2);
    }

    proptest! {
        /// Histories of claims, each with a higher epoch, seen late and in any order: no slot goes back.
        #[test]
        fn no_slot_goes_back_to_a_lower_claim(
            takes in proptest::collection::vec((0usize..4, 0u16..40, 1u16..40), 1..12),
            looks in proptest::collection::vec(0usize..12, 1..20),
        ) {
            // States of the cluster, one after each take: who claims what, by which epoch.
            let mut epochs = [1u64, 2, 3, 4];
            let mut owners = [0usize; 80];
            let mut states = Vec::new();
            let state = |epochs: &[u64; 4], owners: &[usize; 80]| {
                let lines = (0..4).map(|n| {
                    let slots: Vec<String> = (0..80).filter(|s| owners[*s] == n).map(|s| s.to_string()).collect();
                    format!("n{n} 127.0.0.1:{}@1 master - 0 0 {} connected {}", 7000 + n, epochs[n], slots.join(" "))
                });
                lines.collect::<Vec<_>>().join("\n")
            };
            states.push(state(&epochs, &owners));
            for (highest, (who, first, count)) in (5..).zip(&takes) {
                epochs[*who] = highest;
                (*first..(first + count).min(80)).for_each(|slot| owners[usize::from(slot)] = *who);
                states.push(state(&epochs, &owners));
            }
            let (mut known, now) = (KnownServers::default(), Instant::now());
            let mut newest = 0;
            for look in looks {
                newest = newest.max(look.min(states.len() - 1));
                let (map, _) = known.learn(view(&states[look.min(states.len() - 1)]), now);
                let expected = view(&states[newest]);
                prop_assert!(serves_alike(&map, &expected), "{look} {newest}: {map:?}");
            }
        }
    }
}
