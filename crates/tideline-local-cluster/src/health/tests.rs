use std::collections::HashMap;

use super::*;
use crate::view::NodeView;

const PAIR: Shape = Shape { primaries: 1, replicas: 1 };
const A: &str =
    "a :7000@17000 myself,master - 0 0 1 connected 0-16383\nb :7001@17001 slave a 0 0 1 connected";
const B: &str =
    "b :7001@17001 myself,slave a 0 0 1 connected\na :7000@17000 master - 0 0 1 connected 0-16383";
const FEEDS: (&str, &str) = ("slave0", "ip=127.0.0.1,port=7001,state=online,offset=0,lag=0");
const FOLLOWS: [(&str, &str); 2] = [("master_link_status", "up"), ("master_sync_in_progress", "0")];

fn live(lines: &str, info: &[(&str, &str)]) -> Facts {
    let info: HashMap<_, _> =
        info.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Facts::Live(Box::new(Live { is_ok: true, view: NodeView::parse(lines).unwrap(), info }))
}

fn problems(facts: &[Facts]) -> Vec<String> {
    judge(facts).problems.into_iter().map(|problem| problem.what).collect()
}

fn judge(facts: &[Facts]) -> ClusterHealth {
    let addrs: Vec<_> = (7000..).map(|port| NodeAddr::new("127.0.0.1", port)).take(facts.len()).collect();
    ClusterHealth::judge(PAIR, "tideline cluster up --dir D".into(), &addrs, facts)
}

#[test]
fn a_primary_with_a_replica_in_sync_is_healthy() {
    assert_eq!(problems(&[live(A, &[FEEDS]), live(B, &FOLLOWS)]), [""; 0]);
}

#[test]
fn a_replica_that_only_one_side_calls_in_sync_is_not() {
    let behind = ["the replica 127.0.0.1:7001 is not in sync with its primary"];
    assert_eq!(problems(&[live(A, &[]), live(B, &FOLLOWS)]), behind);
    assert_eq!(problems(&[live(A, &[FEEDS]), live(B, &[("master_link_status", "down")])]), behind);
}

#[test]
fn slots_that_nobody_serves_are_counted() {
    let text = problems(&[live(&A.replace("0-16383", "10-16383"), &[FEEDS]), live(B, &FOLLOWS)]).join("\n");
    assert!(text.contains("127.0.0.1:7000 knows nobody who serves 10 of 16384 slots"), "{text}");
    assert!(text.contains("disagree on the latter's slots"), "{text}");
}

#[test]
fn a_missing_replica_is_a_problem_although_every_node_is_well() {
    let text = problems(&[live("a :7000@17000 myself,master - 0 0 1 connected 0-16383", &[])]);
    assert_eq!(text, ["0 of 1 replicas"]);
}

#[test]
fn nodes_that_do_not_answer_are_named() {
    let facts = [Facts::Silent("no answer".into()), Facts::Stopped];
    assert_eq!(
        problems(&facts),
        ["127.0.0.1:7000 does not answer: no answer", "127.0.0.1:7001 does not run"]
    );
    assert_eq!(problems(&[Facts::Stopped, Facts::Stopped]), ["none of the 2 servers runs"]);
}

#[test]
fn a_remedy_names_the_directory() {
    for facts in [[Facts::Stopped, Facts::Stopped], [Facts::Silent("no answer".into()), Facts::Stopped]] {
        let problem = &judge(&facts).problems[0];
        assert!(problem.remedy.starts_with("`tideline cluster up --dir D` "), "{problem}");
    }
}
