//! A node's view of its cluster: `CLUSTER NODES`, read.

use super::slots::SlotSet;
use tideline_model::error::{Error, Result};

/// A node's view of its cluster.
#[derive(Clone)]
pub(super) struct NodeView {
    /// The node itself.
    pub(super) me: NodeLine,
    /// All others, those still shaking hands included.
    pub(super) others: Vec<NodeLine>,
}

/// One line of `CLUSTER NODES`.
#[derive(Clone)]
pub(super) struct NodeLine {
    pub(super) id: String,
    pub(super) port: u16,
    pub(super) is_primary: bool,
    /// Marked `fail`, or `fail?` by this node alone.
    pub(super) is_failing: bool,
    /// Met, but not yet known by its true id.
    pub(super) is_handshake: bool,
    /// Its address turned out to be another node's.
    pub(super) has_no_address: bool,
    pub(super) is_connected: bool,
    pub(super) primary_id: Option<String>,
    pub(super) epoch: u64,
    pub(super) slots: SlotSet,
    /// Slots that are on their way from or to this node.
    pub(super) open_slots: Vec<u16>,
}

impl NodeView {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (mut me, mut others) = (None, Vec::new());
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (is_me, peer) = parse_line(line).ok_or_else(|| {
                Error::internal(format!("CLUSTER NODES holds a line we cannot read: {line}"))
            })?;
            if is_me { me = Some(peer) } else { others.push(peer) }
        }
        let me = me.ok_or_else(|| Error::internal("CLUSTER NODES does not name the node itself"))?;
        Ok(Self { me, others })
    }

    /// The line of another node, once it is known by its id.
    pub(super) fn other(&self, id: &str) -> Option<&NodeLine> {
        self.others.iter().find(|peer| peer.id == id && !peer.is_handshake)
    }

    /// The owner of `slot`, in this node's eyes.
    pub(super) fn owner(&self, slot: u16) -> Option<&str> {
        std::iter::once(&self.me).chain(&self.others).find(|p| p.slots.contains(slot)).map(|p| p.id.as_str())
    }
}

impl NodeLine {
    /// Whether this is what `me`, the node itself, says of itself.
    pub(super) fn agrees_with(&self, me: &NodeLine) -> bool {
        self.slots == me.slots && self.primary_id == me.primary_id
    }
}

fn parse_line(line: &str) -> Option<(bool, NodeLine)> {
    let mut words = line.split(' ');
    let id = words.next()?.to_owned();
    // `host:port@bus-port`, then names and labels by version.
    let address = words.next()?.split('@').next()?;
    let port = address.rsplit_once(':')?.1.parse().ok()?;
    let flags: Vec<&str> = words.next()?.split(',').collect();
    let primary_id = Some(words.next()?).filter(|id| *id != "-").map(str::to_owned);
    let (_ping, _pong) = (words.next()?, words.next()?);
    let epoch = words.next()?.parse().ok()?;
    let is_connected = words.next()? == "connected";
    let (mut slots, mut open_slots) = (SlotSet::new(), Vec::new());
    for word in words {
        if let Some(open) = word.strip_prefix('[') {
            open_slots.push(open.split('-').next()?.parse().ok()?);
        } else {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            slots.insert_all(first.parse().ok()?..=last.parse().ok()?);
        }
    }
    let has = |flag: &str| flags.contains(&flag);
    let peer = NodeLine {
        id,
        port,
        is_primary: has("master"),
        is_failing: has("fail") || has("fail?"),
        is_handshake: has("handshake"),
        has_no_address: has("noaddr"),
        is_connected,
        primary_id,
        epoch,
        slots,
        open_slots,
    };
    Some((has("myself"), peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_redis_7_and_later_are_read() {
        let text = "\
aa 127.0.0.1:12000@22000,,tls-port=0,shard-id=5f myself,master - 0 0 2 connected 0-5460 7000 [93-<-bb]
bb 127.0.0.1:12001@22001,host slave,fail? aa 0 1 2 connected
cc :0@0 master,noaddr - 1 1 0 disconnected
";
        let view = NodeView::parse(text).unwrap();
        assert_eq!((view.me.id.as_str(), view.me.slots.len(), view.me.epoch), ("aa", 5_462, 2));
        assert_eq!(view.me.open_slots, [93]);
        let replica = view.other("bb").unwrap();
        assert_eq!(
            (replica.primary_id.as_deref(), replica.is_failing, replica.port),
            (Some("aa"), true, 12_001)
        );
        assert!(view.other("cc").unwrap().has_no_address);
        assert_eq!((view.owner(7000), view.owner(7001)), (Some("aa"), None));
    }

    #[test]
    fn lines_that_are_no_lines_of_cluster_nodes_are_an_error() {
        assert!(NodeView::parse("ERR unknown command").is_err());
        assert!(NodeView::parse("").is_err());
    }
}
