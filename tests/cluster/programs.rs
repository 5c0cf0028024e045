//! What is said of the programs that servers run.

use tideline::Store;
use tideline::cluster::Command;
use tideline_local_cluster::ClusterSpec;

use super::harness::{costs_much, options, own};

#[tokio::test]
async fn a_server_that_costs_much_by_its_allocator_or_its_version_is_named_and_no_other() {
    // INFO calls a preloaded allocator "libc" too: what is true is seen in the process. One server of three is left
    // without jemalloc, where the program has none of its own and this machine has it.
    let cluster = own(ClusterSpec::ephemeral().node_env(0, "TIDELINE_WITHOUT_JEMALLOC", "1")).await;
    let (mut libc, mut old) = (Vec::new(), Vec::new());
    for node in cluster.nodes() {
        let info = cluster.ask(&node.addr(), Command::new("INFO")).await.unwrap();
        let info = info.text().unwrap();
        let loaded =
            std::fs::read_to_string(format!("/proc/{}/maps", node.pid().unwrap())).unwrap_or_default();
        if info.contains("mem_allocator:libc") && !loaded.contains("libjemalloc") {
            libc.push(node.addr());
        }
        if info.contains("redis_version:7.0.") && !info.contains("valkey_version") {
            old.push(node.addr());
        }
    }
    let store = Store::open(options(cluster.urls())).await.unwrap();
    let mut findings = store.router().findings();
    findings.retain(costs_much);
    for (dear, part) in [(libc, "LD_PRELOAD=libjemalloc.so.2"), (old, "Redis 8.2")] {
        let told: Vec<_> = findings.iter().filter(|f| f.text.contains(part)).collect();
        // One finding for all that share it.
        assert_eq!(told.len(), usize::from(!dear.is_empty()), "{dear:?}: {findings:?}");
        for finding in told {
            assert!(dear.contains(finding.node.as_ref().unwrap()), "{dear:?}: {findings:?}");
            let others = match dear.len() {
                1 => "",
                2 => "another one)",
                _ => "2 others)",
            };
            assert!(finding.text.ends_with(others), "{dear:?}: {findings:?}");
            assert_eq!(finding.text.contains("(so it is"), dear.len() > 1, "{dear:?}: {findings:?}");
        }
    }
}
