//! A mail server that a test has started: it takes letters, or says that it doesn't.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;
use tideline_server::http::Tls;
use tideline_server::mail::{MailSettings, MailTls};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::served::URL;

/// A letter that has come.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedLetter {
    /// Whom the mail server was told that it goes to.
    pub(crate) to: String,
    /// Its head and its text, with whatever encoding taken off.
    pub(crate) text: String,
}

#[derive(Default)]
struct PostboxState {
    letters: Vec<ReceivedLetter>,
    /// What the next letters are answered with instead of being taken.
    refusals: VecDeque<&'static str>,
    /// Letters that somebody has tried to bring.
    tries: usize,
    /// What clients have logged in with.
    log_ins: Vec<String>,
}

type SharedState = Arc<Mutex<PostboxState>>;

pub(crate) struct Postbox {
    address: SocketAddr,
    state: SharedState,
    tls: MailTls,
    /// With the certificate.
    folder: TempDir,
}

impl Postbox {
    /// Without TLS.
    pub(crate) async fn open() -> Self {
        Self::open_with(MailTls::Off).await
    }

    pub(crate) async fn open_with(tls: MailTls) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let acceptor = Tls::from_files(&certificate, &key).unwrap().acceptor().clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, state) = (listener.local_addr().unwrap(), SharedState::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(take(stream, tls, acceptor.clone(), Arc::clone(&shared)));
            }
        });
        Self { address, state, tls, folder }
    }

    /// How a site sends its letters here.
    pub(crate) fn settings(&self) -> MailSettings {
        MailSettings {
            server: self.address.to_string(),
            tls: self.tls,
            tls_ca: Some(self.folder.path().join("cert.pem")),
            from: "Tide <no-reply@tide.example>".into(),
            ..MailSettings::default()
        }
    }

    /// A file in a folder that goes with it.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// What clients have logged in with: name and password.
    pub(crate) fn log_ins(&self) -> Vec<String> {
        self.state.lock().unwrap().log_ins.clone()
    }

    /// Answers the next letters so.
    pub(crate) fn refuse(&self, answers: &[&'static str]) {
        self.state.lock().unwrap().refusals.extend(answers);
    }

    /// Letters that somebody has tried to bring.
    pub(crate) fn tries(&self) -> usize {
        self.state.lock().unwrap().tries
    }

    /// Waits for letters to somebody: so many, and gives them.
    pub(crate) async fn letters(&self, to: &str, many: usize) -> Vec<ReceivedLetter> {
        for _ in 0..600 {
            let found = self.now(to);
            if found.len() >= many {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{many} letters to {to} were expected: {:?}", self.now(to));
    }

    /// Those that are there now.
    pub(crate) fn now(&self, to: &str) -> Vec<ReceivedLetter> {
        self.state.lock().unwrap().letters.iter().filter(|letter| letter.to == to).cloned().collect()
    }

    /// The link in the newest letter to somebody who got so many.
    pub(crate) async fn link(&self, to: &str, many: usize) -> String {
        self.letters(to, many).await[many - 1].link()
    }
}

impl ReceivedLetter {
    /// The link in it.
    pub(crate) fn link(&self) -> String {
        let at = self.text.find(URL).unwrap_or_else(|| panic!("no link: {}", self.text));
        self.text[at..].split_whitespace().next().unwrap().to_owned()
    }
}

async fn take(stream: TcpStream, tls: MailTls, acceptor: TlsAcceptor, state: SharedState) -> Option<()> {
    match tls {
        MailTls::Off => serve(stream, state, true).await,
        MailTls::Tls => serve(acceptor.accept(stream).await.ok()?, state, true).await,
        MailTls::StartTls => {
            let mut stream = BufReader::new(stream);
            stream.write_all(b"220 postbox\r\n").await.ok()?;
            let mut line = String::new();
            while !line.starts_with("STARTTLS") {
                line.clear();
                stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
                let answer =
                    if line.starts_with("STARTTLS") { "220 go on" } else { "250-postbox\r\n250 STARTTLS" };
                stream.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
            }
            serve(acceptor.accept(stream.into_inner()).await.ok()?, state, false).await
        }
    }
}

async fn serve<S>(stream: S, state: SharedState, greets: bool) -> Option<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stream = BufReader::new(stream);
    let (mut to, mut line) = (String::new(), String::new());
    if greets {
        stream.write_all(b"220 postbox\r\n").await.ok()?;
    }
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let said = line.trim_end().to_owned();
        let answer = match said.get(..4).unwrap_or_default().to_ascii_uppercase().as_str() {
            "EHLO" => "250-postbox\r\n250-8BITMIME\r\n250 AUTH PLAIN".to_owned(),
            "AUTH" => {
                let said = STANDARD.decode(said.split(' ').next_back().unwrap_or_default()).ok()?;
                state.lock().unwrap().log_ins.push(String::from_utf8(said).ok()?.replace('\0', " "));
                "235 welcome".to_owned()
            }
            "MAIL" => {
                let mut state = state.lock().unwrap();
                state.tries += 1;
                state.refusals.pop_front().unwrap_or("250 ok").to_owned()
            }
            "RCPT" => {
                to = said.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
                "250 ok".to_owned()
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await.ok()?;
                let text = data(&mut stream).await?;
                state.lock().unwrap().letters.push(ReceivedLetter { to: to.clone(), text: decoded(&text) });
                "250 taken".to_owned()
            }
            "QUIT" => "221 bye".to_owned(),
            _ => "250 ok".to_owned(),
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
    }
}

async fn data<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Option<String> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == ".\r\n" {
            return Some(text);
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}

/// Without `quoted-printable`, if it is that.
fn decoded(text: &str) -> String {
    if !text.contains("quoted-printable") {
        return text.to_owned();
    }
    let joined = text.replace("=\r\n", "");
    let mut parts = joined.split('=');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[2..]);
            }
            None => plain.push_str(part),
        }
    }
    plain
}
