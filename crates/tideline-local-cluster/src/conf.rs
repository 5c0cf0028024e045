//! The redis.conf of a node, each setting with its reason.

use std::fmt::Write as _;
use std::path::Path;

use super::ports::Ports;
use super::spec::{ClusterSpec, TlsServerFiles};

/// Names inside a node's directory.
pub(super) const CONF: &str = "redis.conf";
pub(super) const LOG: &str = "server.log";
pub(super) const PID: &str = "redis.pid";

/// The configuration of node `index`, which lives in `home`.
pub(super) fn render(spec: &ClusterSpec, index: usize, ports: Ports, home: &Path) -> String {
    let mut conf = Conf::default();
    conf.place(home);
    match &spec.tls {
        None => conf.set("port", &ports.client.to_string(), "Stays the same for the life of the directory."),
        Some(files) => conf.tls(ports, files),
    }
    conf.cluster(spec, ports);
    conf.storage(spec.is_ephemeral());
    conf.set("enable-debug-command", "local", "Tests hold a server up with DEBUG SLEEP; only loopback may.");
    if let Some(password) = &spec.password {
        let password = quote(password);
        conf.set("requirepass", &password, "Clients need this password …");
        conf.set("masterauth", &password, "… and replicas send it to their primary.");
    }
    let single =
        spec.node_config.iter().filter(|(node, ..)| *node == index).map(|(_, key, value)| (key, value));
    for (key, value) in spec.config.iter().map(|(key, value)| (key, value)).chain(single) {
        conf.set(key, value, "Asked for by whoever started the cluster.");
    }
    conf.0
}

#[derive(Default)]
struct Conf(String);

impl Conf {
    fn set(&mut self, key: &str, value: &str, why: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# {why}\n{key} {value}");
    }

    fn place(&mut self, home: &Path) {
        self.0.push_str("# Written by `tideline cluster up` at every start: changes here are lost.\n");
        self.set("bind", "127.0.0.1", "Nobody outside this machine reaches these servers.");
        self.set(
            "protected-mode",
            "yes",
            "The second lock, should `bind` ever be loosened: loopback needs no password.",
        );
        self.set(
            "dir",
            &path(home),
            "All files of a node lie in its own directory, which also tells its process.",
        );
        self.set(
            "logfile",
            "\"\"",
            "The log goes to standard output, and so to server.log with the loader's messages.",
        );
        self.set("pidfile", &path(&home.join(PID)), "Finds the server again after an interrupted `up`.");
        self.set("daemonize", "no", "The starter must see a server that ends at once.");
        self.set(
            "proc-title-template",
            "\"{title} {listen-addr} {server-mode} {config-file}\"",
            "`ps` names the directory: where there is no /proc, that is how a server is told from a recycled pid.",
        );
    }

    fn cluster(&mut self, spec: &ClusterSpec, ports: Ports) {
        let timeout_ms = spec.node_timeout.as_millis().to_string();
        self.set("cluster-enabled", "yes", "That is what we are here for.");
        self.set("cluster-config-file", "nodes.conf", "The node's own memory of the cluster.");
        self.set(
            "cluster-port",
            &ports.bus.to_string(),
            "The bus port, written out: high ports have no port + 10000.",
        );
        self.set("cluster-announce-ip", "127.0.0.1", "Known before the first node is met.");
        self.set(
            "cluster-node-timeout",
            &timeout_ms,
            "A silent node counts as failed after this many milliseconds.",
        );
        self.set(
            "cluster-require-full-coverage",
            "no",
            "A failed primary must not stop the slots of all others: Tideline degrades slot by slot.",
        );
        self.set("repl-diskless-sync", "yes", "Replicas are filled through the socket …");
        self.set("repl-diskless-sync-delay", "0", "… at once: none other will come to share the transfer.");
        if spec.tls.is_some() {
            self.set("tls-cluster", "yes", "TLS between the nodes …");
            self.set("tls-replication", "yes", "… and from primary to replica.");
        }
    }

    fn tls(&mut self, ports: Ports, files: &TlsServerFiles) {
        self.set("port", "0", "No connection without TLS.");
        self.set(
            "tls-port",
            &ports.client.to_string(),
            "The one port; stays the same for the life of the directory.",
        );
        self.set("tls-cert-file", &path(&files.certificate), "Shown to clients and to other nodes.");
        self.set("tls-key-file", &path(&files.key), "The key of that certificate.");
        self.set("tls-ca-cert-file", &path(&files.ca), "Who signs the certificates of nodes and clients.");
        self.set(
            "tls-auth-clients",
            "optional",
            "Clients may come without a certificate; a wrong one is refused.",
        );
    }

    fn storage(&mut self, is_ephemeral: bool) {
        self.set(
            "maxmemory-policy",
            "noeviction",
            "An evicted piece of a set or a home would be silent loss.",
        );
        self.set("list-max-listpack-size", "-2", "8 KiB a list node: homes and logs are sized by it.");
        self.set("zset-max-listpack-entries", "128", "Pieces of sharded sets stay listpacks up to here.");
        self.set(
            "save",
            "\"\"",
            "No snapshots: the append-only file holds the data, and forks disturb measurements.",
        );
        if is_ephemeral {
            self.set("appendonly", "no", "Nothing of this cluster is meant to survive.");
        } else {
            self.set("appendonly", "yes", "Data survives a restart …");
            self.set("appendfsync", "everysec", "… but for the last second of a machine that loses power.");
        }
    }
}

fn path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// A value as redis.conf quotes it.
fn quote(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_settings_come_last_and_only_where_they_belong() {
        let spec =
            ClusterSpec::ephemeral().config("hz", "50").node_config(1, "hz", "100").password("a \"b\\");
        let ports = Ports { client: 7000, bus: 17_000 };
        let one = render(&spec, 1, ports, Path::new("/tmp/with space"));
        assert!(one.find("hz 50").unwrap() < one.find("hz 100").unwrap());
        assert!(one.contains("dir \"/tmp/with space\"\n"));
        assert!(one.contains(r#"requirepass "a \"b\\""#));
        assert!(!render(&spec, 0, ports, Path::new("/tmp/x")).contains("hz 100"));
    }
}
