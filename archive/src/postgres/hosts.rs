//! Connecting to one of several servers: the one that takes changes, whoever else is there, dead or silent.
//!
//! The client tries one host after the other too, but waits for one that says nothing for as long as a call may take in
//! all: while the first machine was dead no page came from the second one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The least and the most time for a host, with all that is said until it takes calls.
const HOST_TIMEOUTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3));

/// The hosts of an address, each by itself.
pub(super) struct Hosts {
    all: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    /// Where the last connection came from, or the one behind the last that was away: it is tried first.
    good: AtomicUsize,
    /// How long one is waited for while others are left.
    patience: Duration,
}

impl Hosts {
    /// The hosts of this address, of which one is to answer within `deadline`, if any does.
    pub(super) fn new(config: &Config, tls: Option<MakeRustlsConnect>, deadline: Duration) -> Self {
        let many = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
        // One part is left for what the connection is wanted for, unless they are too small for anything.
        let patience = (deadline / many.saturating_add(1)).clamp(HOST_TIMEOUTS.0, HOST_TIMEOUTS.1);
        let all = (0..config.get_hosts().len()).map(|n| alone(config, n, patience)).collect();
        Self { all, tls, good: AtomicUsize::new(0), patience }
    }

    /// Connects to the first one that takes changes.
    pub(super) async fn connect(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let (many, first) = (self.all.len(), self.good.load(Ordering::Relaxed));
        let mut left = (0..many).map(|n| (first + n) % many).peekable();
        loop {
            // An address has a host at least.
            let host = left.next().unwrap_or(0);
            let connecting = connect(&self.all[host], self.tls.as_ref());
            let connected = match left.peek() {
                None => connecting.await,
                Some(_) => match timeout(self.patience, connecting).await {
                    Ok(Ok(connected)) => Ok(connected),
                    // It is away, or a standby: the last one's error is told, and who comes next begins behind it,
                    // also where the time was up before all were tried.
                    Ok(Err(_)) | Err(_) => {
                        self.good.store((host + 1) % many, Ordering::Relaxed);
                        continue;
                    }
                },
            };
            if connected.is_ok() {
                self.good.store(host, Ordering::Relaxed);
            }
            return connected;
        }
    }
}

impl Connect for Hosts {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(self.connect())
    }
}

async fn connect(
    config: &Config,
    tls: Option<&MakeRustlsConnect>,
) -> Result<(Client, JoinHandle<()>), Error> {
    let told = |error: Error| tracing::debug!("a connection to the archive has ended: {error}");
    match tls {
        Some(tls) => {
            let (client, connection) = config.connect(tls.clone()).await?;
            Ok((client, tokio::spawn(async move { connection.await.unwrap_or_else(told) })))
        }
        None => {
            let (client, connection) = config.connect(NoTls).await?;
            Ok((client, tokio::spawn(async move { connection.await.unwrap_or_else(told) })))
        }
    }
}

/// The nth host of an address, with all else that it says.
fn alone(config: &Config, n: usize, patience: Duration) -> Config {
    let mut one = Config::new();
    match &config.get_hosts()[n] {
        Host::Tcp(name) => one.host(name.as_str()),
        Host::Unix(path) => one.host_path(path),
    };
    config.get_hostaddrs().get(n).map(|address| one.hostaddr(*address));
    let ports = config.get_ports();
    ports.get(n).or(ports.first()).map(|port| one.port(*port));
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_tcp_user_timeout().map(|most| one.tcp_user_timeout(*most));
    config.get_keepalives_interval().map(|every| one.keepalives_interval(every));
    config.get_keepalives_retries().map(|many| one.keepalives_retries(many));
    one.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .load_balance_hosts(config.get_load_balance_hosts())
        .connect_timeout(patience);
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_what_the_address_says_of_all() {
        let address = "host=one,two hostaddr=192.0.2.1,192.0.2.2 port=1,2 user=ada password=secret dbname=site \
                       options='-c geqo=off' application_name=x sslmode=require sslnegotiation=direct \
                       channel_binding=disable keepalives_idle=7 keepalives_interval=8 keepalives_retries=9 \
                       tcp_user_timeout=10 target_session_attrs=read-write load_balance_hosts=random connect_timeout=3";
        let config: Config = address.parse().unwrap();
        let hosts = Hosts::new(&config, None, Duration::from_secs(15));
        assert_eq!(hosts.patience, Duration::from_secs(3));
        for (n, host) in hosts.all.iter().enumerate() {
            let (name, number) = (["one", "two"][n], n + 1);
            let wanted = address
                .replace("one,two", name)
                .replace("192.0.2.1,192.0.2.2", &format!("192.0.2.{number}"))
                .replace("port=1,2", &format!("port={number}"));
            assert_eq!(*host, wanted.parse::<Config>().unwrap());
        }
        let one_port: Config = "host=one,two port=7 user=ada dbname=site".parse().unwrap();
        let hosts = Hosts::new(&one_port, None, Duration::from_secs(2));
        assert!(hosts.all.iter().all(|host| host.get_ports() == [7]));
        assert_eq!(hosts.patience, Duration::from_secs(1));
    }
}
