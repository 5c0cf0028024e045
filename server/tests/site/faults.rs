//! What goes wrong in a store, made by hand: quick, and for as long as a test wants.

use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::LocalCluster;

/// Where tokens lie.
pub(crate) const TOKENS: &str = "site:{*}Xt*";

/// A key that is broken: something else stands in its place that no call can read.
pub(crate) struct BrokenKey<'c> {
    cluster: &'c LocalCluster,
    node: NodeAddr,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// The keys that a pattern names, each with its server.
pub(crate) async fn keys(cluster: &LocalCluster, pattern: &str) -> Vec<(NodeAddr, Vec<u8>)> {
    let mut keys = Vec::new();
    for node in cluster.nodes() {
        let found = cluster.ask(&node.addr(), Command::new("KEYS").arg(pattern)).await.unwrap();
        let found = found.into_array().unwrap();
        keys.extend(found.iter().map(|key| (node.addr(), key.bytes().unwrap().to_vec())));
    }
    keys
}

impl<'c> BrokenKey<'c> {
    pub(crate) async fn new(cluster: &'c LocalCluster, (node, key): (NodeAddr, Vec<u8>)) -> Self {
        let value = cluster.ask(&node, Command::new("GET").arg(&key)).await.unwrap();
        let broken = Self { cluster, node, key, value: value.bytes().unwrap().to_vec() };
        broken.set(b"nonsense").await;
        broken
    }

    pub(crate) async fn mend(self) {
        self.set(&self.value).await;
    }

    async fn set(&self, value: &[u8]) {
        let set = Command::new("SET").arg(&self.key).arg(value);
        self.cluster.ask(&self.node, set).await.unwrap();
    }
}

/// Has no server take any writes, for lack of memory; or has all take them again.
pub(crate) async fn fill(cluster: &LocalCluster, is_full: bool) {
    let most = if is_full { "1" } else { "0" };
    for node in cluster.nodes() {
        let set = Command::new("CONFIG").arg("SET").arg("maxmemory").arg(most);
        cluster.ask(&node.addr(), set).await.unwrap();
    }
}
