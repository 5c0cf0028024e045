//! docker-compose.cluster.yml as data. Keys that are unknown here are refused, so that a misspelt one is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::repository;
use crate::service::time_to_end_s;
use crate::settings::{bytes, written};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compose {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "x-redis")]
    _template: IgnoredAny,
    services: BTreeMap<String, Service>,
    networks: BTreeMap<String, Option<IgnoredAny>>,
    volumes: BTreeMap<String, Option<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    image: String,
    build: Option<String>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    volumes: Vec<String>,
    #[serde(default)]
    depends_on: BTreeMap<String, Dependency>,
    #[serde(default)]
    profiles: Vec<String>,
    networks: Vec<String>,
    restart: String,
    healthcheck: Option<HealthCheck>,
    mem_limit: Option<String>,
    stop_grace_period: Option<String>,
    #[serde(rename = "ulimits")]
    _ulimits: Option<BTreeMap<String, u64>>,
    #[serde(rename = "sysctls")]
    _sysctls: Option<BTreeMap<String, u64>>,
    #[serde(rename = "init")]
    _init: Option<bool>,
    #[serde(rename = "read_only")]
    _read_only: Option<bool>,
    #[serde(rename = "cap_drop")]
    _cap_drop: Option<Vec<String>>,
    #[serde(rename = "security_opt")]
    _security_opt: Option<Vec<String>>,
    #[serde(rename = "extra_hosts")]
    _extra_hosts: Option<Vec<String>>,
    #[serde(default)]
    ports: Vec<String>,
    #[serde(rename = "logging")]
    _logging: Logging,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dependency {
    condition: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HealthCheck {
    test: Vec<String>,
    #[serde(rename = "interval")]
    _interval: String,
    #[serde(rename = "timeout")]
    _timeout: String,
    #[serde(rename = "retries")]
    _retries: u32,
    #[serde(rename = "start_period")]
    _start_period: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Logging {
    #[serde(rename = "driver")]
    _driver: String,
    #[serde(rename = "options")]
    _options: BTreeMap<String, String>,
}

fn compose() -> Compose {
    let text = fs::read_to_string(repository().join("docker-compose.cluster.yml")).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("docker-compose.cluster.yml: {e}"))
}

fn servers(compose: &Compose) -> BTreeMap<&str, &Service> {
    compose
        .services
        .iter()
        .filter(|(name, _)| name.starts_with("redis-"))
        .map(|(n, s)| (n.as_str(), s))
        .collect()
}

fn addresses(compose: &Compose) -> BTreeSet<String> {
    servers(compose).keys().map(|name| format!("{name}:6379")).collect()
}

/// `source:target[:mode]`
fn mounts(service: &Service) -> impl Iterator<Item = (&str, &str)> {
    service.volumes.iter().map(|mount| {
        let mut parts = mount.split(':');
        (parts.next().unwrap(), parts.next().unwrap())
    })
}

#[test]
fn six_servers_run_alike_each_on_a_volume_of_its_own() {
    let compose = compose();
    let servers = servers(&compose);
    assert_eq!(servers.len(), 6);
    for (name, server) in &servers {
        assert_eq!(server.command, ["valkey-server", "/etc/tideline/redis.conf"], "{name}");
        let mounts: BTreeMap<_, _> = mounts(server).collect();
        assert_eq!(mounts.get("./deploy/redis.conf"), Some(&"/etc/tideline/redis.conf"), "{name}");
        assert_eq!(mounts.get(name), Some(&"/data"), "{name}");
        assert!(compose.volumes.contains_key(*name), "{name} is declared");
        let health = server.healthcheck.as_ref().unwrap_or_else(|| panic!("{name} has no health check"));
        assert!(health.test.concat().contains("ping"), "{name}");
        assert_eq!(server.restart, "unless-stopped", "{name}");
    }
    let mut volumes: Vec<&str> = compose.volumes.keys().map(String::as_str).collect();
    volumes.retain(|volume| !servers.contains_key(volume));
    assert_eq!(volumes, ["postgres"], "no volume without a server");
}

#[test]
fn the_archives_server_is_asked_for_and_keeps_what_it_has() {
    let postgres = &compose().services["postgres"];
    assert_eq!(postgres.profiles, ["archive"], "a plain `up` doesn't start it");
    let mounts: BTreeMap<_, _> = mounts(postgres).collect();
    assert_eq!(mounts.get("postgres"), Some(&"/var/lib/postgresql/data"));
    let page = fs::read_to_string(repository().join("docs/archive.md")).unwrap();
    assert!(
        page.contains("--profile archive")
            && page.contains("postgres://tideline:tideline@127.0.0.1/tideline")
    );
    assert_eq!(postgres.restart, "unless-stopped");
}

#[test]
fn the_job_waits_for_all_servers_and_joins_all() {
    let compose = compose();
    let job = &compose.services["cluster-create"];
    let awaited: BTreeSet<_> = job.depends_on.keys().map(|name| format!("{name}:6379")).collect();
    assert_eq!(awaited, addresses(&compose));
    assert!(job.depends_on.values().all(|d| d.condition == "service_healthy"));
    let joined: BTreeSet<_> = job.environment["NODES"].split(' ').map(str::to_owned).collect();
    assert_eq!(joined, addresses(&compose));
    assert_eq!(job.environment["REPLICAS"], "1");
    assert_eq!(mounts(job).next(), Some(("./deploy/create-cluster.sh", job.command[1].as_str())));
    assert_eq!(job.restart, "no");
    assert!(job.profiles.is_empty(), "a plain `up` makes the cluster");
}

#[test]
fn tideline_waits_for_the_cluster_and_knows_every_node() {
    let compose = compose();
    let (demo, server) = (&compose.services["tideline"], &compose.services["server"]);
    let seeds = [
        demo.command.iter().find_map(|word| word.strip_prefix("redis://")).unwrap().to_owned(),
        server.environment["TIDELINE_CLUSTER_SEEDS"].replace("redis://", ""),
    ];
    for (service, seeds) in [demo, server].into_iter().zip(seeds) {
        assert_eq!(service.depends_on["cluster-create"].condition, "service_completed_successfully");
        assert_eq!(seeds.split(',').map(str::to_owned).collect::<BTreeSet<_>>(), addresses(&compose));
        assert_eq!(service.build.as_deref(), Some("."));
    }
}

#[test]
fn the_server_is_asked_for_and_is_where_its_address_says() {
    let compose = compose();
    let server = &compose.services["server"];
    assert_eq!(server.profiles, ["serve"], "a plain `up` doesn't start it");
    assert!(server.command.is_empty(), "the image serves, and says where");
    assert!(server.environment["TIDELINE_SERVER_PUBLIC_URL"].ends_with(":-http://localhost:3000}"));
    assert_eq!(server.ports, ["127.0.0.1:3000:3000"]);
    assert_eq!(server.restart, "unless-stopped");
    let grace = server.stop_grace_period.as_ref().unwrap().strip_suffix('s').unwrap();
    assert!(grace.parse::<u64>().unwrap() > time_to_end_s(), "it is killed while it ends");
    // Each variable is a setting: of one that isn't nobody tells.
    let settings = fs::read_to_string(crate::deployed("tideline.toml")).unwrap();
    for name in server.environment.keys() {
        let of = |section: &str| name.strip_prefix(&format!("TIDELINE_{section}_")).map(str::to_lowercase);
        let setting = of("CLUSTER").or_else(|| of("SERVER")).unwrap_or_else(|| panic!("{name}"));
        assert!(settings.contains(&format!("\n#{setting} = ")), "{name}");
    }
}

#[test]
fn every_service_is_on_a_declared_network() {
    let compose = compose();
    for (name, service) in &compose.services {
        assert!(!service.networks.is_empty(), "{name}");
        assert!(service.networks.iter().all(|network| compose.networks.contains_key(network)), "{name}");
    }
}

#[test]
fn a_server_has_room_and_time_for_what_its_settings_promise() {
    let (compose, settings) = (compose(), written());
    let maxmemory = bytes(&settings["maxmemory"]).unwrap();
    let shutdown_s: u64 = settings["shutdown-timeout"].parse().unwrap();
    for (name, server) in servers(&compose) {
        let limit = bytes(server.mem_limit.as_ref().unwrap()).unwrap();
        assert!(limit >= 2 * maxmemory, "{name}: a rewrite of the file may copy all pages");
        let grace = server.stop_grace_period.as_ref().unwrap().strip_suffix('s').unwrap();
        assert!(
            grace.parse::<u64>().unwrap() > shutdown_s,
            "{name} is killed while it waits for its replicas"
        );
    }
}

#[test]
fn images_are_pinned() {
    let compose = compose();
    let dockerfile = fs::read_to_string(repository().join("Dockerfile")).unwrap();
    let bases = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")?.split(' ').next());
    let pulled = compose.services.values().filter(|s| s.build.is_none()).map(|s| s.image.as_str());
    for image in bases.chain(pulled) {
        let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag);
        let number = tag.strip_prefix('v').unwrap_or(tag);
        let is_release = number.starts_with(|c: char| c.is_ascii_digit()) || tag == "bookworm-slim";
        assert!(is_release, "{image} may be another one tomorrow");
    }
}

#[test]
fn the_servers_are_of_a_release_that_the_tests_run_with() {
    // What it costs was measured with that one: docs/decisions/0046-which-server.md.
    let fetched = fs::read_to_string(repository().join("scripts/fetch-servers.sh")).unwrap();
    let compose = compose();
    let images = compose.services.values().map(|s| s.image.as_str()).filter(|image| image.contains("valkey"));
    let images: BTreeSet<&str> = images.collect();
    assert_eq!(images.len(), 1, "servers and the job that joins them: {images:?}");
    let release = images.first().unwrap().split_once(':').unwrap().1.split('-').next().unwrap();
    assert!(fetched.contains(&format!("binary=valkey-server version={release} ")), "{release}");
}

#[test]
fn what_opens_a_port_opens_it_for_this_machine_alone() {
    let compose = compose();
    let ports: Vec<&String> = compose.services.values().flat_map(|service| &service.ports).collect();
    assert!(!ports.is_empty() && ports.iter().all(|port| port.starts_with("127.0.0.1:")), "{ports:?}");
    let outside: BTreeSet<&str> = ports.iter().filter_map(|port| port.rsplit(':').nth(1)).collect();
    assert_eq!(outside.len(), ports.len(), "all of them may run together: {ports:?}");
}

#[test]
fn prometheus_scrapes_where_tideline_serves_and_grafana_asks_prometheus() {
    let compose = compose();
    let deployed = |name: &str| fs::read_to_string(crate::deployed(name)).unwrap();
    let (scraped, asked) = (deployed("prometheus.yml"), deployed("grafana/datasources.yml"));
    let demo = compose.services["tideline"].command.last().unwrap();
    let server = &compose.services["server"].environment["TIDELINE_SERVER_METRICS_LISTEN"];
    for (name, listens) in [("tideline", demo), ("server", server)] {
        let (_, port) = listens.rsplit_once(':').unwrap();
        assert!(scraped.contains(&format!("- {name}:{port}\n")), "{scraped}");
    }
    assert!(asked.contains("http://prometheus:9090"), "{asked}");
    let provider = deployed("grafana/dashboards.yml");
    let folder = provider.lines().find_map(|line| line.trim().strip_prefix("path: ")).unwrap();
    let dashboard = format!("{folder}/tideline.json");
    assert!(mounts(&compose.services["grafana"]).any(|(_, target)| target == dashboard), "{dashboard}");
    // A plain `up` starts neither.
    for name in ["prometheus", "grafana"] {
        assert_eq!(compose.services[name].profiles, ["metrics"]);
    }
}

#[test]
fn everything_that_is_mounted_or_built_exists() {
    let compose = compose();
    for (name, service) in &compose.services {
        for (source, _) in mounts(service).filter(|(source, _)| source.starts_with("./")) {
            assert!(repository().join(source).is_file(), "{name} mounts {source}");
        }
        if let Some(folder) = &service.build {
            assert!(repository().join(folder).join("Dockerfile").is_file(), "{name} is built from {folder}");
        }
    }
}
