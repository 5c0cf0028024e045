//! A client that is just enough: one connection, one request after the other.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection.
pub(crate) struct Client<S> {
    stream: BufReader<S>,
    /// What each answer is held against.
    check: Option<Check>,
    /// What is under way.
    sent: Sent,
}

/// Looks at what came back for a request; fails the test if that may not be.
pub(crate) type Check = fn(&Sent, &Answer);

/// A request as it was sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Sent {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }
}

/// What came back.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// For what may be a picture.
    pub(crate) fn lossy_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream), check: None, sent: Sent::default() }
    }

    /// One whose answers are looked at, whoever reads them.
    pub(crate) fn checked(stream: S, check: Check) -> Self {
        Self { check: Some(check), ..Self::new(stream) }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream.into_inner()
    }

    /// Sends a request; an answer may be there before all of it is.
    pub(crate) async fn begin(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let headers_sent = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let headers_sent = headers_sent.collect();
        self.sent =
            Sent { method: method.into(), path: path.into(), headers: headers_sent, body: body.into() };
        let len = body.len().to_string();
        let has_len = headers.iter().any(|(name, _)| *name == "Content-Length");
        let len = (!has_len).then_some(("Content-Length", len.as_str()));
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers.iter().copied().chain(len) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let _ = self.stream.write_all(format!("{head}\r\n{body}").as_bytes()).await;
        let _ = self.stream.flush().await;
    }

    /// Reads one answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        let answer = self.read_answer().await;
        if let Some(check) = self.check {
            check(&self.sent, &answer);
        }
        answer
    }

    async fn read_answer(&mut self) -> Answer {
        let status = self.line().await;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        while let Some((name, value)) = self.line().await.split_once(": ") {
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if self.sent.method == "HEAD" {
            return answer;
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let len = usize::from_str_radix(&self.line().await, 16).unwrap();
                answer.body.append(&mut self.bytes(len).await);
                self.line().await;
                if len == 0 {
                    break;
                }
            }
        } else {
            let len = answer.header("content-length").map_or(0, |len| len.parse().unwrap());
            answer.body = self.bytes(len).await;
        }
        answer
    }

    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.begin(method, path, headers, body).await;
        self.answer().await
    }

    /// Sends a request; the status, or `None`: the other end closes without a word.
    pub(crate) async fn try_send(&mut self, method: &str, path: &str) -> Option<u16> {
        self.begin(method, path, &[], "").await;
        let mut line = String::new();
        self.stream.read_line(&mut line).await.ok()?;
        line.split(' ').nth(1)?.parse().ok()
    }

    /// Waits for the other end to close; `false`: something came instead.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.stream.read_u8().await.is_err()
    }

    /// Reads whatever comes until the other end closes.
    pub(crate) async fn drain(&mut self) {
        let _ = self.stream.read_to_end(&mut Vec::new()).await;
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    async fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }
}

/// Speaks TLS with a server whose certificate is this one.
pub(crate) async fn with_tls(
    stream: TcpStream,
    certificate: &CertificateDer<'static>,
) -> TlsStream<TcpStream> {
    try_tls(stream, certificate).await.unwrap()
}

/// The same; `None`: its certificate is another one.
pub(crate) async fn try_tls(
    stream: TcpStream,
    certificate: &CertificateDer<'static>,
) -> Option<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()
}
