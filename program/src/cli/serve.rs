//! `tideline serve`: clients of Mastodon are served over HTTP.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use tideline::cluster::Seed;
use tideline::registration::Registration;
use tideline::{Engine, EngineSettings, SpamJudge, TenantSettings};
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tideline_server::config::{PUBLIC_URL_RULE, Registrations, ServerSettings, is_public_url};
use tideline_server::http::Shutdown;
use tokio::signal::unix::{SignalKind, signal};

use super::exporter;
use super::neighbours::{self, Neighbours};
use super::progress::Meter;
use super::target::Target;

/// Directory with the data of `--local`, where `tideline cluster` finds it, too.
const LOCAL_DIRECTORY: &str = ".tideline/cluster";
/// Public posts that each bucket of a new tenant keeps, if the configuration says nothing of them.
const PUBLIC_POSTS: u32 = 256;
/// Time that the engine gets for what it has under way at the end.
const ENGINE_SHUTDOWN: Duration = Duration::from_secs(10);

/// The public URL while nobody has said one: no site is there.
const UNSAID_URL: &str = "http://unsaid.invalid";

/// The site to serve, and where.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    target: Target,
    /// Use a cluster on this machine, started if it doesn't run: its data stays in .tideline, and `tideline cluster
    /// down` stops it. It is used also where TIDELINE_CLUSTER names another one. Whoever comes may sign up, unless
    /// there is a file of settings: then as that says.
    #[arg(long)]
    local: bool,
    /// Have so many people live there, who follow each other, write and answer; whoever looks can log in as one of
    /// them.
    #[arg(long, requires = "local", value_name = "PEOPLE", value_parser = clap::value_parser!(u8).range(2..=16))]
    neighbours: Option<u8>,
    /// Addresses to listen at, separated by commas: of a host, or its name, and a port [default: `listen` under
    /// [server], or 127.0.0.1:3000].
    #[arg(long, value_delimiter = ',', value_name = "ADDRESSES", value_parser = address)]
    listen: Vec<SocketAddr>,
    /// The site as the world knows it, without a slash behind it [default: `public_url` under [server], or
    /// http://localhost with the port that it listens at].
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

/// An address to listen at: of a name that has several the first one of version 4, if there is any.
fn address(text: &str) -> Result<SocketAddr, String> {
    let remedy = "write a host and a port, as in 127.0.0.1:3000, localhost:3000 or [::1]:3000";
    let all: Vec<SocketAddr> = text.to_socket_addrs().map_err(|e| format!("{e}; {remedy}"))?.collect();
    let first = all.iter().find(|address| address.is_ipv4()).or(all.first());
    first.copied().ok_or_else(|| format!("no host has that name; {remedy}"))
}

impl Serve {
    /// The server's settings, with what is typed over them.
    fn settings(&self) -> anyhow::Result<ServerSettings> {
        let (_, settings) = self.defaults().overridden(self.target.file())?;
        self.typed_over(settings)
    }

    /// The site's address, if nobody names one: whoever has it listen elsewhere on this machine, and says no more,
    /// opens it there.
    fn usual_url(settings: &ServerSettings) -> String {
        match settings.listen[..] {
            [address, ..] if address.ip().is_loopback() => format!("http://localhost:{}", address.port()),
            _ => ServerSettings::default().public_url,
        }
    }

    /// The settings where neither a file nor a variable says anything.
    fn defaults(&self) -> ServerSettings {
        let mut defaults = ServerSettings::default();
        if self.local && !self.target.has_file() {
            defaults.registrations = Registrations::Open;
        }
        defaults.public_url = UNSAID_URL.into();
        defaults
    }

    fn typed_over(&self, mut settings: ServerSettings) -> anyhow::Result<ServerSettings> {
        if !self.listen.is_empty() {
            settings.listen.clone_from(&self.listen);
        }
        if let Some(url) = &self.public_url {
            anyhow::ensure!(
                is_public_url(url),
                "--public-url is {url:?}; {PUBLIC_URL_RULE}: https://social.example"
            );
            settings.public_url.clone_from(url);
        }
        if settings.public_url == UNSAID_URL {
            settings.public_url = Self::usual_url(&settings);
        }
        Ok(settings)
    }
}

/// The exit code that a wrong argument ends with, too: nothing will be better the next time, so whatever starts
/// services should not start it again.
const WRONG_SETTINGS: u8 = 2;

fn wrong_settings(why: &anyhow::Error) -> ExitCode {
    eprintln!("error: {why:#}");
    ExitCode::from(WRONG_SETTINGS)
}

pub(crate) async fn run(serve: Serve) -> anyhow::Result<ExitCode> {
    let settings = serve.settings().and_then(|settings| serve.target.check_archive().map(|()| settings));
    let mut settings = match settings {
        Ok(settings) => settings,
        Err(e) => return Ok(wrong_settings(&e)),
    };
    // Somebody wants to look around.
    if serve.neighbours.is_some() && settings.top_list.is_empty() {
        settings.top_list = "Top".into();
    }
    // Before anything is started: files may be missing, and somebody may be there already.
    settings.check_files()?;
    let listeners = settings.listeners().await?;
    if serve.local && serve.target.names_cluster() {
        eprintln!(
            "The cluster that TIDELINE_CLUSTER or --cluster names is left alone: --local has one of its own."
        );
    }
    let target = if serve.local { serve.target.at(local_cluster().await?) } else { serve.target };
    exporter::serve(&settings.metrics_listen)?;
    let mut config = match target.config() {
        Ok(config) => config,
        Err(e) => {
            return Ok(wrong_settings(&anyhow!("{e}; or give --local, which starts one on this machine")));
        }
    };
    let (most, stored) = (settings.max_characters, config.engine.text_chars);
    // Clients would be told of a bound that the engine doesn't keep.
    if most > stored {
        return Ok(wrong_settings(&anyhow!(
            "max_characters under [server] is {most}; text_chars under [engine] allows {stored} letters: raise that, \
             or lower this"
        )));
    }
    // What clients show of everybody.
    config.engine.shows_profiles = true;
    // Of a new tenant alone: one that is there goes by what it has decided, and the log says where that differs.
    keep_public_posts(&mut config.engine, &settings);
    config.engine.keeps_notifications = true;
    let mut registration = config.registration.clone();
    // A core stays for timelines, however many log in.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    registration.hashes_at_once.get_or_insert(cores.saturating_sub(1).max(1));
    let mut builder = Engine::builder().config(config);
    if settings.judge != SpamJudge::OFF {
        builder = builder.judge(settings.judge.clone());
    }
    let engine = match target.archive().await? {
        Some(archive) => builder.archive(archive).start().await?,
        None => builder.start().await?,
    };
    let registration = Registration::new(&engine, registration).await?;
    let shutdown = Shutdown::default();
    end_on_signals(&shutdown)?;
    tell_start(&settings);
    let neighbours = match serve.neighbours {
        Some(many) => Some(tokio::spawn(neighbours(&engine, &registration, many).await?.live())),
        None => None,
    };
    let served = tideline_server::run(engine.clone(), registration, settings, listeners, shutdown).await;
    neighbours.inspect(|living| living.abort());
    let left = engine.shutdown(ENGINE_SHUTDOWN).await?;
    served?;
    println!("It has ended.");
    if left > 0 {
        println!("{left} tasks are left for other instances.");
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_start(settings: &ServerSettings) {
    println!("Serving {} at {}; ctrl-C ends it.", settings.public_url, addresses(settings));
    if settings.registrations == Registrations::Closed {
        println!(
            "Nobody may sign up: `registrations` under [server] says who may; `tideline account create` makes accounts."
        );
    }
}

/// Has a site with a public timeline keep posts for it, where nobody says how many.
fn keep_public_posts(engine: &mut EngineSettings, settings: &ServerSettings) {
    if settings.public_timeline && engine.public_posts == 0 {
        engine.public_posts = PUBLIC_POSTS;
    }
}

/// The tenant's settings that a service with this configuration would begin with: where that speaks of the server,
/// `serve` is the service.
pub(crate) fn configured(target: &Target) -> anyhow::Result<TenantSettings> {
    let mut config = target.config()?;
    let text = target.file().map(std::fs::read_to_string).transpose()?.unwrap_or_default();
    let has_section = text.lines().any(|line| line.trim_start().starts_with("[server]"));
    let is_variable = |(name, value): (OsString, OsString)| {
        name.to_string_lossy().starts_with("TIDELINE_SERVER_") && !value.is_empty()
    };
    if has_section || std::env::vars_os().any(is_variable) {
        let (_, settings) = ServerSettings::default().overridden(target.file())?;
        keep_public_posts(&mut config.engine, &settings);
    }
    Ok(config.tenant_settings())
}

/// Addresses at which clients are served, for whoever has started it.
fn addresses(settings: &ServerSettings) -> String {
    let plain = settings.listen.iter().map(ToString::to_string);
    let with_tls = settings.tls_listen.iter().map(|address| format!("{address} (TLS)"));
    plain.chain(with_tls).collect::<Vec<_>>().join(", ")
}

async fn neighbours(engine: &Engine, registration: &Registration, many: u8) -> anyhow::Result<Neighbours> {
    let neighbours = Neighbours::move_in(engine, registration, many.into()).await?;
    println!(
        "{many} people live here: log in as ada or ben, with the password \"{}\".",
        neighbours::PASSWORD
    );
    Ok(neighbours)
}

/// Has a cluster run on this machine; its addresses.
async fn local_cluster() -> anyhow::Result<Vec<Seed>> {
    let dir = PathBuf::from(LOCAL_DIRECTORY);
    let spec = ClusterSpec::stored(&dir)?.unwrap_or_default().dir(dir);
    let meter = Meter::new();
    let cluster = LocalCluster::up_with(spec, &|progress| meter.show(progress)).await?;
    meter.finish();
    println!(
        "A Redis Cluster runs in {LOCAL_DIRECTORY}; `tideline cluster down` stops it. For other commands: export \
         TIDELINE_CLUSTER={}",
        cluster.urls().join(",")
    );
    Ok(cluster.urls().into_iter().map(Seed::from).collect())
}

/// Begins the end with the first signal; the second one ends at once.
fn end_on_signals(shutdown: &Shutdown) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if shutdown.has_begun() {
                std::process::exit(1);
            }
            shutdown.begin();
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tideline::Config;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        serve: Serve,
    }

    fn settings(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<ServerSettings> {
        let serve = Typed::parse_from(["serve"].iter().chain(arguments)).serve;
        let mut settings = serve.defaults();
        Config::of_texts("", variables, &mut settings)?;
        serve.typed_over(settings)
    }

    /// With `--local`, everybody could sign up even where it was set that nobody may.
    #[test]
    fn on_this_machine_anybody_may_sign_up_unless_a_variable_says_otherwise() {
        let of = |arguments: &[&str], variables: &[(&str, &str)]| {
            settings(arguments, variables).unwrap().registrations
        };
        let closed = [("TIDELINE_SERVER_REGISTRATIONS", "closed")];
        assert_eq!(of(&["--local"], &[]), Registrations::Open);
        assert_eq!(of(&["--local"], &closed), Registrations::Closed);
        assert_eq!(of(&["--cluster", "redis://10.0.0.1"], &[]), Registrations::Closed);
    }

    /// Log-ins were refused: their pages' forms come from where the browser is, links led to port 3000.
    #[test]
    fn whoever_has_it_listen_at_another_port_of_this_machine_finds_it_there() {
        assert_eq!(address("localhost:3055"), Ok(SocketAddr::from(([127, 0, 0, 1], 3_055))));
        for wrong in ["3055", "localhost", "[::1"] {
            assert!(address(wrong).unwrap_err().contains("as in 127.0.0.1:3000"), "{wrong}");
        }
        let of = |arguments: &[&str], variables: &[(&str, &str)]| {
            settings(arguments, variables).unwrap().public_url
        };
        let listen = ["--local", "--listen", "127.0.0.1:3055"];
        assert_eq!(of(&listen, &[]), "http://localhost:3055");
        assert_eq!(of(&["--local", "--listen", "0.0.0.0:3055"], &[]), "http://localhost:3000");
        let variable = [("TIDELINE_SERVER_LISTEN", "127.0.0.1:3066")];
        assert_eq!(of(&["--local"], &variable), "http://localhost:3066");
        assert_eq!(of(&["--local"], &[]), "http://localhost:3000");
        let url = "https://social.example";
        assert_eq!(of(&listen, &[("TIDELINE_SERVER_PUBLIC_URL", url)]), url);
        assert_eq!(of(&[&listen[..], &["--public-url", url]].concat(), &[]), url);
    }

    /// With TLS alone it said "at ;".
    #[test]
    fn whoever_starts_it_is_told_all_addresses() {
        let mut settings = ServerSettings { listen: Vec::new(), ..ServerSettings::default() };
        settings.tls_listen = vec!["[::1]:443".parse().unwrap()];
        assert_eq!(addresses(&settings), "[::1]:443 (TLS)");
        settings.listen = vec!["127.0.0.1:80".parse().unwrap()];
        assert_eq!(addresses(&settings), "127.0.0.1:80, [::1]:443 (TLS)");
    }

    #[test]
    fn a_public_url_is_a_scheme_and_a_host_wherever_it_is_said() {
        let of = |url: &str| settings(&["--local", "--public-url", url], &[]);
        assert_eq!(of("https://social.example:8443").unwrap().public_url, "https://social.example:8443");
        for url in ["https://", "https://a/b", "https://a/", "https://A", "https://a?b", "social.example"] {
            let told = of(url).unwrap_err().to_string();
            assert!(told.contains("http:// or https:// and a host"), "{url}: {told}");
        }
    }
}
