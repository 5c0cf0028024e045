use std::collections::HashMap;

use super::*;
use crate::view::NodeView;

const THREE: Shape = Shape { primaries: 3, replicas: 0 };
const PAIR: Shape = Shape { primaries: 1, replicas: 1 };

fn node(lines: &str) -> Live {
    let view = NodeView::parse(lines).unwrap();
    Live { is_ok: true, view, info: HashMap::new() }
}

fn steps(shape: Shape, nodes: &[Live]) -> Vec<PlanStep> {
    next_steps(shape, &nodes.iter().collect::<Vec<_>>())
}

fn set(range: std::ops::RangeInclusive<u16>) -> SlotSet {
    let mut set = SlotSet::new();
    set.insert_all(range);
    set
}

/// The views of nodes that know each other; each line without the flag `myself`.
fn acquainted(lines: &[&str]) -> Vec<Live> {
    let view = |me: usize| {
        let line = |(i, line): (usize, &&str)| {
            if i == me {
                line.replacen(" master", " myself,master", 1).replacen(" slave", " myself,slave", 1)
            } else {
                (*line).to_owned()
            }
        };
        lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    };
    (0..lines.len()).map(|me| node(&view(me))).collect()
}

#[test]
fn new_nodes_get_epochs_slots_and_introductions_in_this_order() {
    let nodes: Vec<_> =
        (0..3).map(|i| node(&format!("n{i} :700{i}@1700{i} myself,master - 0 0 0 connected"))).collect();
    let claim =
        |node, slots| PlanStep::Claim { node, slots: set(slots), outdated: SlotSet::new(), must_win: false };
    assert_eq!(
        steps(THREE, &nodes),
        [
            PlanStep::SetEpoch { node: 0, epoch: 1 },
            PlanStep::SetEpoch { node: 1, epoch: 2 },
            PlanStep::SetEpoch { node: 2, epoch: 3 },
            claim(0, 0..=5461),
            claim(1, 5462..=10_922),
            claim(2, 10_923..=16_383),
            PlanStep::Meet { at: 0, whom: 1 },
            PlanStep::Meet { at: 0, whom: 2 },
            PlanStep::Meet { at: 1, whom: 2 },
        ]
    );
}

#[test]
fn a_whole_cluster_needs_nothing() {
    let nodes = acquainted(&[
        "a :7000@17000 master - 0 0 1 connected 0-9000",
        "b :7001@17001 master - 0 0 2 connected 9001-16383",
        "c :7002@17002 slave a 0 0 1 connected",
        "d :7003@17003 slave b 0 0 2 connected",
    ]);
    assert_eq!(steps(Shape { primaries: 2, replicas: 1 }, &nodes), []);
}

#[test]
fn an_introduction_under_way_is_not_repeated() {
    let nodes = [
        node(
            "a :7000@17000 myself,master - 0 0 1 connected 0-16383\nx1 :7001@17001 handshake - 0 0 0 disconnected",
        ),
        node("b :7001@17001 myself,master - 0 0 2 connected"),
    ];
    assert_eq!(steps(PAIR, &nodes), []);
}

#[test]
fn news_travel_with_another_introduction() {
    let nodes = [
        node("a :7000@17000 myself,master - 0 0 1 connected 0-16383\nb :7001@17001 slave a 0 0 1 connected"),
        node("b :7001@17001 myself,slave a 0 0 1 connected\na :7000@17000 master - 0 0 1 connected"),
    ];
    assert_eq!(steps(PAIR, &nodes), [PlanStep::Meet { at: 0, whom: 1 }]);
}

#[test]
fn an_empty_primary_follows_whoever_has_fewest_replicas() {
    let nodes = acquainted(&[
        "a :7000@17000 master - 0 0 1 connected 0-9000",
        "b :7001@17001 master - 0 0 2 connected 9001-16383",
        "c :7002@17002 slave a 0 0 1 connected",
        "d :7003@17003 master - 0 0 4 connected",
    ]);
    assert_eq!(
        steps(Shape { primaries: 2, replicas: 1 }, &nodes),
        [PlanStep::Replicate { node: 3, primary: 1 }]
    );
}

#[test]
fn a_node_that_joined_later_is_left_empty() {
    let nodes = acquainted(&[
        "a :7000@17000 master - 0 0 1 connected 0-16383",
        "b :7001@17001 slave a 0 0 1 connected",
        "c :7002@17002 master - 0 0 3 connected",
    ]);
    assert_eq!(steps(PAIR, &nodes), []);
}

#[test]
fn slots_that_their_owner_dropped_return_to_it_although_others_still_name_it() {
    let nodes = [
        node("a :7000@17000 myself,master - 0 0 1 connected 0-99 200-16383"),
        node("b :7001@17001 myself,slave a 0 0 1 connected\na :7000@17000 master - 0 0 1 connected 0-16383"),
    ];
    let claim = PlanStep::Claim { node: 0, slots: set(100..=199), outdated: SlotSet::new(), must_win: false };
    assert_eq!(steps(PAIR, &nodes)[0], claim);
}

#[test]
fn an_outdated_owner_is_struck_out_before_slots_are_claimed() {
    // a dropped its slots and came to follow b, which never claimed them and still believes a has them.
    let nodes = acquainted(&[
        "a :7000@17000 slave b 0 0 1 connected",
        "b :7001@17001 master - 0 0 2 connected 100-16383",
    ]);
    let mut nodes = nodes;
    nodes[1].view.others[0].slots = set(0..=99);
    let claim = PlanStep::Claim { node: 1, slots: set(0..=99), outdated: set(0..=99), must_win: true };
    assert!(steps(PAIR, &nodes).contains(&claim));
}

#[test]
fn a_replica_inherits_from_a_primary_that_came_back_empty_and_nobody_claims_before() {
    // The primary's directory was lost: it is n now, at a's port. b has the data.
    let nodes = [
        node("n :7000@17000 myself,master - 0 0 1 connected\nb :7001@17001 slave a 0 0 1 connected"),
        node(
            "b :7001@17001 myself,slave a 0 0 1 connected\nn :7000@17000 master - 0 0 0 connected\n\
             a :7000@17000 master,fail? - 0 0 1 disconnected 0-16383",
        ),
    ];
    let planned = steps(PAIR, &nodes);
    assert!(planned.contains(&PlanStep::TakeOver { node: 1 }), "{planned:?}");
    assert!(!planned.iter().any(|step| matches!(step, PlanStep::Claim { .. })), "{planned:?}");
}

#[test]
fn a_node_that_no_longer_exists_is_forgotten_and_a_foreign_one_is_not() {
    let nodes = [node(
        "a :7000@17000 myself,master - 0 0 1 connected 0-9000\nold :0@0 master,noaddr - 0 0 1 disconnected\n\
         foreign 127.0.0.1:9000@19000 master - 0 0 9 connected 9001-16383",
    )];
    let shape = Shape { primaries: 1, replicas: 0 };
    assert_eq!(steps(shape, &nodes), [PlanStep::Forget { at: 0, id: "old".into() }]);
}
