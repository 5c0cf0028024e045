//! What nodes say about who serves which slot: `CLUSTER NODES` read into a view, several views merged into one.
//!
//! A node that was frozen or cut off still believes what it knew before. Every claim to a slot carries the
//! claimant's configuration epoch, and the cluster itself settles a quarrel by the higher one: so do we.
//! Pure: text in, view out.

use std::collections::{BTreeMap, HashMap};

use super::wire::NodeAddr;
use crate::bucket::SLOTS;

/// A primary as some view describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Primary {
    pub(crate) addr: NodeAddr,
    pub(crate) config_epoch: u64,
    /// Replicas that the cluster does not believe dead.
    pub(crate) replicas: Vec<NodeAddr>,
    /// Slots, as inclusive ranges.
    pub(crate) slots: Vec<(u16, u16)>,
}

/// Who serves what, by node id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) primaries: BTreeMap<String, Primary>,
}

/// Reads the answer to `CLUSTER NODES`. `asked` stands in for the address that a node doesn't know of itself.
pub(crate) fn parse_nodes(text: &str, asked: &NodeAddr, prefer_hostname: bool) -> Result<View, String> {
    let mut view = View::default();
    let mut replicas: HashMap<&str, Vec<NodeAddr>> = HashMap::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [id, addr, flags, primary, _, _, epoch, _, slots @ ..] = fields.as_slice() else {
            return Err(format!("CLUSTER NODES: a line with {} fields: {line}", fields.len()));
        };
        let has = |flag: &str| flags.split(',').any(|f| f == flag);
        if has("handshake") || has("noaddr") {
            continue;
        }
        let addr = parse_addr(addr, asked, prefer_hostname)
            .ok_or_else(|| format!("CLUSTER NODES: unreadable address {addr}"))?;
        if has("slave") {
            // Not by the link that the asked node has to it: its own primary's link is what counts, and a fence asks.
            if !has("fail") {
                replicas.entry(primary).or_default().push(addr);
            }
            continue;
        }
        let config_epoch = epoch.parse().map_err(|_| format!("CLUSTER NODES: unreadable epoch {epoch}"))?;
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

/// Where all nodes are that the answer to `CLUSTER NODES` knows, whatever they do at the moment.
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
pub(crate) fn merge(views: Vec<View>) -> View {
    let mut claims: Vec<Option<(u64, String)>> = vec![None; usize::from(SLOTS)];
    let mut merged = View::default();
    for view in views {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(view.primaries["aaaa"].replicas, [NodeAddr::new("127.0.0.1", 7003)]);
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
}
