//! The section `[mail]` of the configuration.

use std::fmt;
use std::path::PathBuf;

use lettre::message::Mailbox;
use tideline::config::{Section, Setting, Value, WordChoice};

use crate::http::is_this_machine;

/// The encryption with which a mail server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// In the clear at first, then with TLS, or not at all.
    StartTls,
    /// With TLS from the first byte on.
    Tls,
    /// In the clear.
    Off,
}

const TLS: [(&str, MailTls); 3] =
    [("starttls", MailTls::StartTls), ("tls", MailTls::Tls), ("off", MailTls::Off)];

/// A password, which nothing prints.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MailSecret(pub String);

impl fmt::Debug for MailSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MailSecret(..)")
    }
}

/// Settings of how letters are sent, if they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailSettings {
    /// The server that takes them: a host, and its port if it isn't the usual one; `""`: no letters are sent.
    pub server: String,
    /// How that is spoken to.
    pub tls: MailTls,
    /// Whom one says to be there; `""`: nobody.
    pub user: String,
    /// The password.
    pub password: MailSecret,
    /// Or a file whose first line it is.
    pub password_file: Option<PathBuf>,
    /// Certificates to trust instead of the system's: a PEM file.
    pub tls_ca: Option<PathBuf>,
    /// Whom letters are from.
    pub from: String,
}

impl Default for MailSettings {
    fn default() -> Self {
        Self {
            server: String::new(),
            tls: MailTls::StartTls,
            user: String::new(),
            password: MailSecret::default(),
            password_file: None,
            tls_ca: None,
            from: String::new(),
        }
    }
}

impl MailSettings {
    /// Whether letters are sent.
    pub(crate) fn is_on(&self) -> bool {
        !self.server.is_empty()
    }

    /// The server's host and port.
    pub(super) fn place(&self) -> (&str, u16) {
        let usual = match self.tls {
            MailTls::StartTls => 587,
            MailTls::Tls => 465,
            MailTls::Off => 25,
        };
        let with_port = |(host, port): (&'_ str, &str)| Some((host.len(), port.parse::<u16>().ok()?));
        let found = self.server.rsplit_once(':').and_then(with_port);
        let (host, port) =
            found.map_or((self.server.as_str(), usual), |(len, port)| (&self.server[..len], port));
        (host.trim_start_matches('[').trim_end_matches(']'), port)
    }

    pub(crate) fn section(&mut self) -> Section<'_> {
        let Self { server, tls, user, password, password_file, tls_ca, from } = self;
        Section::new("mail")
            .with("server", server)
            .with("tls", WordChoice(tls, &TLS))
            .with("tls_ca", tls_ca)
            .with("user", user)
            .with("password", SecretText(password))
            .with("password_file", password_file)
            .with("from", from)
    }

    /// The first rule that these settings break.
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        let (host, _) = self.place();
        let is_here = is_this_machine(host);
        let (has_secret, has_file) = (!self.password.0.is_empty(), self.password_file.is_some());
        let rules = [
            (
                self.is_on() && self.from.parse::<Mailbox>().is_err(),
                "from must be an address where there is a server, as `Tideline <no-reply@social.example>`",
            ),
            (has_secret && has_file, "password and password_file cannot both be set"),
            (
                (has_secret || has_file) == self.user.is_empty(),
                "user and a password must be set both or neither",
            ),
            (
                self.tls == MailTls::Off && !self.user.is_empty() && !is_here,
                "tls must not be off where a user logs in at a server that is not this machine",
            ),
        ];
        rules.into_iter().find(|(is_broken, _)| *is_broken).map(|(_, rule)| rule)
    }
}

/// A password that is written as text, and told to nobody.
struct SecretText<'a>(&'a mut MailSecret);

impl Setting for SecretText<'_> {
    fn allowed(&self) -> String {
        "text, in quotation marks".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        value.text().map(|text| text.clone_into(&mut self.0.0)).is_some()
    }

    fn is_secret(&self) -> bool {
        true
    }

    fn get(&self) -> Value {
        Value::Text(if self.0.0.is_empty() { String::new() } else { "(not shown)".into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(server: &str) -> MailSettings {
        let from = "Tide <no-reply@tide.example>".into();
        MailSettings { server: server.into(), from, ..MailSettings::default() }
    }

    #[test]
    fn a_server_has_the_usual_port_unless_it_names_one() {
        let place = |server: &str, tls| {
            let settings = MailSettings { tls, ..at(server) };
            let (host, port) = settings.place();
            format!("{host} {port}")
        };
        assert_eq!(place("mx.example", MailTls::StartTls), "mx.example 587");
        assert_eq!(place("mx.example", MailTls::Tls), "mx.example 465");
        assert_eq!(place("mx.example:2525", MailTls::Off), "mx.example 2525");
        assert_eq!(place("[::1]:2525", MailTls::Off), "::1 2525");
    }

    #[test]
    fn what_does_not_fit_together_is_told_without_the_password() {
        let secret = || MailSecret("s3cret".into());
        let rule = |settings: MailSettings| settings.broken_rule().unwrap_or_default();
        assert_eq!((rule(MailSettings::default()), rule(at("mx.example"))), ("", ""));
        assert!(rule(MailSettings { from: "nobody".into(), ..at("mx.example") }).starts_with("from "));
        assert!(rule(MailSettings { password: secret(), ..at("mx.example") }).starts_with("user "));
        let with_user = || MailSettings { user: "tide".into(), password: secret(), ..at("mx.example") };
        assert_eq!(rule(with_user()), "");
        assert!(rule(MailSettings { tls: MailTls::Off, ..with_user() }).starts_with("tls "));
        assert_eq!(
            rule(MailSettings { tls: MailTls::Off, server: "127.0.0.1:25".into(), ..with_user() }),
            ""
        );
        let mut settings = with_user();
        assert!(!format!("{settings:?}").contains("s3cret"));
        let shown = settings.section().fields.into_iter().map(|field| field.value.get().to_string());
        assert!(shown.into_iter().all(|value| !value.contains("s3cret")));
    }
}
