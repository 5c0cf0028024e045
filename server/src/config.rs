//! The sections `[server]` and `[mail]` of the configuration, beside the engine's in the same file.
//!
//! How a file and variables are read, and what is said of what they get wrong, is the engine's.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tideline::config::{FurtherSettings, Section, Setting, Value, WordChoice};
use tideline::{Config, Error, Result, SpamJudge};

use crate::http::{Layers, Listener, ListenerLimits, Network, Tls, TrustedProxies, is_this_machine};
use crate::limits::LimitSettings;
use crate::mail::{MailSettings, Mailer};

/// The people who may make an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registrations {
    /// Anybody.
    Open,
    /// Anybody to whom whoever runs the site says yes.
    Approval,
    /// Whom whoever runs the site has invited.
    Invitation,
    /// Nobody.
    Closed,
}

const REGISTRATIONS: [(&str, Registrations); 4] = [
    ("open", Registrations::Open),
    ("approval", Registrations::Approval),
    ("invitation", Registrations::Invitation),
    ("closed", Registrations::Closed),
];

/// Settings of the server: the sections `[server]` and `[mail]`, or variables `TIDELINE_SERVER_<FIELD>` and
/// `TIDELINE_MAIL_<FIELD>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Addresses without TLS.
    pub listen: Vec<SocketAddr>,
    /// Addresses with TLS.
    pub tls_listen: Vec<SocketAddr>,
    /// The certificates for these: a PEM file.
    pub tls_certificate: Option<PathBuf>,
    /// Their key: a PEM file.
    pub tls_key: Option<PathBuf>,
    /// The site as the world knows it: with its scheme, without a slash behind it.
    pub public_url: String,
    /// What the site is called.
    pub title: String,
    /// What it says of itself.
    pub description: String,
    /// Where one writes to; `""`: nowhere.
    pub contact_email: String,
    /// The login of whom one writes to; `""`: nobody.
    pub contact_account: String,
    /// What holds there.
    pub rules: Vec<String>,
    /// Names that nobody signs up with, nor gives a group: people take their owners for whoever runs the site.
    pub reserved_names: Vec<String>,
    /// Languages that are spoken there.
    pub languages: Vec<String>,
    /// Who may come.
    pub registrations: Registrations,
    /// Whether there is a public timeline.
    pub public_timeline: bool,
    /// Under which title home by importance stands among everybody's lists; `""`: under none.
    pub top_list: String,
    /// What is held back for moderators, or refused: nothing, where nobody looks.
    pub judge: SpamJudge,
    /// Whether applications may take a password for a token.
    pub password_grant: bool,
    /// Letters of a status with its warning.
    pub max_characters: usize,
    /// Addresses at which the program's metrics are served, without any log-in.
    pub metrics_listen: Vec<SocketAddr>,
    /// Proxies that say for whom they speak.
    pub trusted_proxies: Vec<Network>,
    /// How often somebody may do what.
    pub limits: LimitSettings,
    /// Whom no limit holds for: who connects from there, and speaks for nobody else. None are named: this machine, if
    /// the world knows the site by its name alone ([`exempt`](Self::exempt)).
    pub limits_exempt: Vec<Network>,
    /// Connections at a time.
    pub connections_max: usize,
    /// Of these, connections from one address, but for proxies and whom no limit holds for.
    pub address_connections_max: usize,
    /// Requests at a time.
    pub requests_max: usize,
    /// Longest time of a request.
    pub request_time: Duration,
    /// The longest that an answer waits for what its call has left elsewhere: clients look there next.
    pub settle_time: Duration,
    /// Longest time in which a client takes 16 KiB of an answer.
    pub write_time: Duration,
    /// How long requests may go on at the end.
    pub drain_time: Duration,
    /// What takes longer is written to the log.
    pub slow_after: Duration,
    /// How letters are sent.
    pub mail: MailSettings,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let (layers, limits) = (Layers::default(), ListenerLimits::default());
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 3_000))],
            tls_listen: Vec::new(),
            tls_certificate: None,
            tls_key: None,
            public_url: "http://localhost:3000".into(),
            title: "Tideline".into(),
            description: String::new(),
            contact_email: String::new(),
            contact_account: String::new(),
            rules: Vec::new(),
            reserved_names: RESERVED_NAMES.map(str::to_owned).to_vec(),
            languages: vec!["en".into()],
            registrations: Registrations::Closed,
            public_timeline: true,
            top_list: String::new(),
            judge: SpamJudge::OFF,
            password_grant: true,
            max_characters: 5_000,
            metrics_listen: Vec::new(),
            trusted_proxies: Vec::new(),
            limits: LimitSettings::default(),
            limits_exempt: Vec::new(),
            connections_max: limits.connections_max,
            address_connections_max: limits.address_connections_max,
            requests_max: layers.requests_max,
            request_time: layers.request_time,
            settle_time: Duration::from_millis(150),
            write_time: limits.write_time,
            drain_time: limits.drain_time,
            slow_after: layers.slow_after,
            mail: MailSettings::default(),
        }
    }
}

impl ServerSettings {
    /// Reads the configuration: the engine's, and the server's.
    ///
    /// # Errors
    ///
    /// Those of [`Config::load`]. The message names the file and the line, or the variable; the setting, its value, and
    /// what may stand there.
    pub fn load(path: Option<&Path>) -> Result<(Config, Self)> {
        Self::default().overridden(path)
    }

    /// Loads the configuration over other defaults.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load).
    pub fn overridden(mut self, path: Option<&Path>) -> Result<(Config, Self)> {
        let config = Config::load_with(path, &mut self)?;
        Ok((config, self))
    }

    /// The site's name in the net, with a port that isn't the usual one: `localhost:3000`.
    pub fn domain(&self) -> &str {
        self.public_url.split_once("://").map_or(self.public_url.as_str(), |(_, domain)| domain)
    }

    /// Tells whom no limit holds for. A proxy on the same machine may say nothing of those it speaks for: where there
    /// may be one, since the world knows the site by another name, nobody is exempt who isn't named.
    pub fn exempt(&self) -> Vec<Network> {
        let domain = self.domain();
        let host = match domain.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => domain.split(':').next().unwrap_or_default(),
        };
        match self.limits_exempt.is_empty() && is_this_machine(host) {
            true => Network::loopback().into(),
            false => self.limits_exempt.clone(),
        }
    }

    /// Tells how the layers around all routes are set.
    pub fn layers(&self) -> Layers {
        Layers {
            trusted_proxies: TrustedProxies(self.trusted_proxies.clone()),
            requests_max: self.requests_max,
            exempt: self.exempt(),
            request_time: self.request_time,
            slow_after: self.slow_after,
        }
    }

    /// Bounds of listeners and their connections.
    pub fn listener_limits(&self) -> ListenerLimits {
        ListenerLimits {
            connections_max: self.connections_max,
            address_connections_max: self.address_connections_max,
            // A proxy's are those of all who come by it.
            exempt: [self.exempt(), self.trusted_proxies.clone()].concat(),
            write_time: self.write_time,
            drain_time: self.drain_time,
            ..ListenerLimits::default()
        }
    }

    /// Whether nobody may take that name by itself.
    pub(crate) fn reserves(&self, login: &str) -> bool {
        self.reserved_names.iter().any(|name| name.eq_ignore_ascii_case(login))
    }

    /// Reads the files that these settings name, and forgets them: whoever starts a service hears of a wrong one before
    /// anything else.
    ///
    /// # Errors
    ///
    /// [`Invalid`](tideline::ErrorKind::Invalid): one can't be read, or holds something else.
    pub fn check_files(&self) -> Result<()> {
        if let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) {
            Tls::from_files(certificate, key)?;
        }
        Mailer::new(&self.mail).map(|_| ())
    }

    /// Listens at all addresses.
    ///
    /// # Errors
    ///
    /// [`Misconfigured`](tideline::ErrorKind::Misconfigured): an address cannot be had.
    /// [`Invalid`](tideline::ErrorKind::Invalid): the certificate or its key can't be read.
    pub async fn listeners(&self) -> Result<Vec<Listener>> {
        let tls = match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::from_files(certificate, key)?),
            _ => None,
        };
        let plain = self.listen.iter().map(|address| (*address, None));
        let all = plain.chain(self.tls_listen.iter().map(|address| (*address, tls.clone())));
        let mut listeners = Vec::new();
        for (address, tls) in all {
            let listener = Listener::bind(address, tls).await;
            listeners.push(listener.map_err(|e| {
                Error::misconfigured(format!(
                    "{address} cannot be had: {e}; `listen` names others, and --listen"
                ))
            })?);
        }
        Ok(listeners)
    }
}

/// Names that are reserved unless the settings say otherwise.
const RESERVED_NAMES: [&str; 10] = [
    "abuse",
    "admin",
    "administrator",
    "help",
    "mod",
    "moderator",
    "postmaster",
    "root",
    "support",
    "webmaster",
];

/// The rule that [`is_public_url`] checks.
pub const PUBLIC_URL_RULE: &str = "public_url must be http:// or https:// and a host in lower case, with a port unless \
                                   it is the usual one (80, 443), nothing behind it";

/// Whether a text can be a site's `public_url`: as browsers write where a form comes from, since it is compared with
/// that letter by letter.
pub fn is_public_url(url: &str) -> bool {
    let (rest, usual) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, 443),
        (None, Some(rest)) => (rest, 80),
        (None, None) => return false,
    };
    // The colons of an IPv6 address stand in brackets.
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match in_brackets {
        Some(address) => address.parse::<Ipv6Addr>().is_ok_and(|parsed| parsed.to_string() == address),
        None => !host.is_empty() && host.bytes().all(is_plain),
    };
    let number = |port: &str| port.parse::<u16>().ok().filter(|number| number.to_string() == port);
    is_host && port.is_none_or(|port| number(port).is_some_and(|number| number != 0 && number != usual))
}

/// Several things that are written as texts.
struct TextList<'a, T>(&'a mut Vec<T>, &'static str);

impl<T: FromStr + ToString> Setting for TextList<'_, T> {
    fn allowed(&self) -> String {
        self.1.into()
    }

    fn set(&mut self, value: &Value) -> bool {
        let list = value.list().and_then(|items| items.iter().map(|item| item.parse().ok()).collect());
        list.map(|list| *self.0 = list).is_some()
    }

    fn get(&self) -> Value {
        Value::List(self.0.iter().map(T::to_string).collect())
    }
}

impl FurtherSettings for ServerSettings {
    /// All of them, in the order of the example.
    fn sections(&mut self) -> Vec<Section<'_>> {
        let Self {
            listen,
            tls_listen,
            tls_certificate,
            tls_key,
            public_url,
            title,
            description,
            contact_email,
            contact_account,
            rules,
            reserved_names,
            languages,
            registrations,
            public_timeline,
            top_list,
            judge,
            password_grant,
            max_characters,
            metrics_listen,
            trusted_proxies,
            limits,
            limits_exempt,
            connections_max,
            address_connections_max,
            requests_max,
            request_time,
            settle_time,
            write_time,
            drain_time,
            slow_after,
            mail,
        } = self;
        let addresses = "a list of addresses with ports, as \"127.0.0.1:3000\" or \"[::]:3000\"";
        let networks = "a list of networks, as \"10.0.0.0/8\", \"fd00::/8\" or one address";
        let section = Section::new("server")
            .with("listen", TextList(listen, addresses))
            .with("public_url", public_url)
            .with("tls_listen", TextList(tls_listen, addresses))
            .with("tls_certificate", tls_certificate)
            .with("tls_key", tls_key)
            .with("metrics_listen", TextList(metrics_listen, addresses))
            .with("trusted_proxies", TextList(trusted_proxies, networks))
            .with("title", title)
            .with("description", description)
            .with("contact_email", contact_email)
            .with("contact_account", contact_account)
            .with("rules", rules)
            .with("reserved_names", reserved_names)
            .with("languages", languages)
            .with("registrations", WordChoice(registrations, &REGISTRATIONS))
            .with("public_timeline", public_timeline)
            .with("top_list", top_list)
            .with("hold_links_of_new", &mut judge.holds_links_of_new)
            .number("hold_same_text_from", &mut judge.holds_same_text_from)
            .number("refuse_same_text_from", &mut judge.refuses_same_text_from)
            .with("password_grant", password_grant)
            .number("max_characters", max_characters)
            .number("connections_max", connections_max)
            .number("address_connections_max", address_connections_max)
            .number("requests_max", requests_max)
            .time("request_time_s", request_time)
            .time("settle_time_ms", settle_time)
            .time("write_time_s", write_time)
            .time("drain_time_s", drain_time)
            .time("slow_after_ms", slow_after)
            .with("limits_exempt", TextList(limits_exempt, networks));
        vec![limits.in_section(section), mail.section()]
    }

    fn broken_rules(&self) -> Vec<(&'static str, String)> {
        let has_tls = self.tls_certificate.is_some();
        let rules = [
            (
                self.listen.is_empty() && self.tls_listen.is_empty(),
                "listen or tls_listen must name an address",
            ),
            (!is_public_url(&self.public_url), PUBLIC_URL_RULE),
            (has_tls != self.tls_key.is_some(), "tls_certificate and tls_key must be set both or neither"),
            (!self.tls_listen.is_empty() && !has_tls, "tls_listen needs a tls_certificate"),
            (self.languages.is_empty(), "languages must name one at least"),
            (self.max_characters == 0, "max_characters must be at least 1"),
            (self.connections_max == 0, "connections_max must be at least 1"),
            (self.address_connections_max == 0, "address_connections_max must be at least 1"),
            (self.requests_max == 0, "requests_max must be at least 1"),
            (self.request_time.is_zero(), "request_time must be at least 1"),
            (self.write_time.is_zero(), "write_time must be at least 1"),
        ];
        let broken = rules.into_iter().find(|(is_broken, _)| *is_broken).map(|(_, rule)| ("server", rule));
        let of_mail = self.mail.broken_rule().map(|rule| ("mail", rule));
        broken.into_iter().chain(of_mail).map(|(section, rule)| (section, rule.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests;
