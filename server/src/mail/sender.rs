//! Sending letters: each by itself, a bounded number at once, again for a while where a server is away.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use metrics::{counter, gauge};
use tideline::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use super::letter::Letter;
use super::settings::{MailSettings, MailTls};

/// Letters that were to be sent, by `kind` and `outcome`: `sent`, `refused` (by the mail server, for good), `given_up`,
/// `no_room`.
pub const LETTERS: &str = "tideline_letters_total";
/// Tries to send a letter that came to nothing, and are made again.
pub const LETTERS_RETRIED: &str = "tideline_letters_retried_total";
/// Letters that are being sent, or wait for that.
pub const LETTERS_WAITING: &str = "tideline_letters_waiting";

/// Letters of an instance that are being sent, or wait for that.
const PLACES: usize = 256;
/// Letters that are being sent at once.
const AT_ONCE: usize = 4;
/// The longest that a mail server may take for one command.
const COMMAND_WITHIN: Duration = Duration::from_secs(20);
/// The longest that one try may take.
const TRIES_WITHIN: Duration = Duration::from_secs(60);
/// The first pause between two tries, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);
/// So long after it was asked for a letter is sent no more: whoever waits for it has asked again.
const GIVES_UP_AFTER: Duration = Duration::from_secs(15 * 60);

/// Sends letters.
#[derive(Clone)]
pub(crate) struct Mailer(Arc<MailerParts>);

struct MailerParts {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    places: Arc<Semaphore>,
    sending: Semaphore,
}

/// A place among the letters that wait to be sent.
#[derive(Debug)]
pub(crate) struct LetterPlace(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

impl Drop for LetterPlace {
    fn drop(&mut self) {
        gauge!(LETTERS_WAITING).decrement(1.0);
    }
}

impl Mailer {
    /// Sends as the settings say; `None`: no letters are sent.
    ///
    /// # Errors
    ///
    /// [`Invalid`](tideline::ErrorKind::Invalid): a file that they name can't be read.
    pub(crate) fn new(settings: &MailSettings) -> Result<Option<Self>> {
        if !settings.is_on() {
            return Ok(None);
        }
        let from: Mailbox =
            settings.from.parse().map_err(|_| Error::invalid("[mail] from is no address of a mailbox"))?;
        let (host, port) = settings.place();
        let tls = match settings.tls {
            MailTls::Off => Tls::None,
            MailTls::StartTls => Tls::Required(parameters(settings, host)?),
            MailTls::Tls => Tls::Wrapper(parameters(settings, host)?),
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(port)
            .tls(tls)
            .timeout(Some(COMMAND_WITHIN))
            .hello_name(ClientId::Domain(from.email.domain().to_owned()));
        if !settings.user.is_empty() {
            transport = transport.credentials(Credentials::new(settings.user.clone(), password(settings)?));
        }
        let (transport, places) = (transport.build(), Arc::new(Semaphore::new(PLACES)));
        Ok(Some(Self(Arc::new(MailerParts { transport, from, places, sending: Semaphore::new(AT_ONCE) }))))
    }

    /// A place for a letter that is about to be written; `None`: so many wait that there is none.
    pub(crate) fn place(&self) -> Option<LetterPlace> {
        let place = Arc::clone(&self.0.places).try_acquire_owned().ok()?;
        gauge!(LETTERS_WAITING).increment(1.0);
        Some(LetterPlace(place))
    }

    /// Sends a letter, beside whoever asks for it.
    pub(crate) fn send(&self, letter: Letter, place: LetterPlace) {
        let mailer = self.clone();
        tokio::spawn(async move {
            let outcome = mailer.deliver(&letter).await;
            counter!(LETTERS, "kind" => letter.kind.as_str(), "outcome" => outcome).increment(1);
            drop(place);
        });
    }

    /// Sends a letter if there is a place; otherwise it is counted, and not sent.
    pub(crate) fn send_if_room(&self, letter: Letter) {
        match self.place() {
            Some(place) => self.send(letter, place),
            None => {
                counter!(LETTERS, "kind" => letter.kind.as_str(), "outcome" => "no_room").increment(1);
                tracing::warn!(kind = letter.kind.as_str(), "a letter is not sent: {PLACES} wait already");
            }
        }
    }

    /// Waits until all letters are sent, but not for long.
    pub(crate) async fn drain(&self, within: Duration) {
        let all = u32::try_from(PLACES).unwrap_or(u32::MAX);
        if timeout(within, self.0.places.acquire_many(all)).await.is_err() {
            let left = PLACES - self.0.places.available_permits();
            tracing::warn!(left, "letters are not sent: the server goes down");
        }
    }

    async fn deliver(&self, letter: &Letter) -> &'static str {
        let kind = letter.kind.as_str();
        let Some(message) = letter.message(&self.0.from) else {
            tracing::warn!(kind, "a letter is not sent: its address is none");
            return "refused";
        };
        let (begun, mut pause) = (Instant::now(), PAUSE_FIRST);
        loop {
            // What a mail server says may name the address: only what kind of failure it is gets into the log.
            let why = match self.try_once(message.clone()).await {
                Ok(()) => return "sent",
                Err(MailFailure::ForGood(why)) => {
                    tracing::warn!(kind, why, "a letter was refused by the mail server");
                    return "refused";
                }
                Err(MailFailure::ForNow(why)) => why,
            };
            if begun.elapsed() + pause > GIVES_UP_AFTER {
                tracing::warn!(kind, why, "a letter is given up");
                return "given_up";
            }
            tracing::info!(kind, why, "a letter could not be sent, and is tried again");
            counter!(LETTERS_RETRIED).increment(1);
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }

    async fn try_once(&self, message: Message) -> std::result::Result<(), MailFailure> {
        let Ok(_sending) = self.0.sending.acquire().await else {
            return Err(MailFailure::ForNow("closed".into()));
        };
        match timeout(TRIES_WITHIN, self.0.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(MailFailure::of(&error)),
            Err(_) => Err(MailFailure::ForNow("it took too long".into())),
        }
    }
}

/// The reason why a letter was not sent, in words that name nobody.
enum MailFailure {
    ForNow(String),
    ForGood(String),
}

impl MailFailure {
    fn of(error: &SmtpError) -> Self {
        let why = match error.status() {
            Some(status) => format!("the mail server answers {status}"),
            None if error.is_timeout() => "the mail server doesn't answer".into(),
            None if error.is_tls() => "TLS with the mail server fails".into(),
            None if error.is_client() => "the mail server can't do what is needed".into(),
            None => "the mail server can't be reached".into(),
        };
        if error.is_permanent() { Self::ForGood(why) } else { Self::ForNow(why) }
    }
}

fn parameters(settings: &MailSettings, host: &str) -> Result<TlsParameters> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if let Some(path) = &settings.tls_ca {
        let shown = path.display();
        let pem = std::fs::read(path)
            .map_err(|e| Error::invalid(format!("[mail] tls_ca {shown} can't be read: {e}")))?;
        let certificate = Certificate::from_pem(&pem)
            .map_err(|_| Error::invalid(format!("[mail] tls_ca {shown} has no certificates")))?;
        parameters = parameters.certificate_store(CertificateStore::None).add_root_certificate(certificate);
    }
    let built = parameters.build_rustls();
    built.map_err(|e| Error::invalid(format!("[mail] TLS with {host} can't be set up: {e}")))
}

fn password(settings: &MailSettings) -> Result<String> {
    let Some(path) = &settings.password_file else { return Ok(settings.password.0.clone()) };
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|e| Error::invalid(format!("[mail] password_file {shown} can't be read: {e}")))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

impl fmt::Debug for Mailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailer").finish_non_exhaustive()
    }
}
