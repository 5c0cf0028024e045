//! One connection.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Bytes that are read at once.
const READ: usize = 64 << 10;
/// Longest head of an answer, and longest answer.
const HEAD_MAX: usize = 64 << 10;
const BODY_MAX: usize = 64 << 20;

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether it says when one may come again.
    pub(crate) has_retry_after: bool,
    /// What it says of the pages beside it.
    #[cfg(feature = "verify")]
    pub(crate) link: Option<String>,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What it says as JSON; null, if it says none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A connection that stays open.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// What has come, up to `filled`.
    buffer: Vec<u8>,
    filled: usize,
    /// When it was used last.
    pub(super) used: Instant,
    /// Which of the addresses it goes to: those that came before are gone.
    pub(super) generation: u64,
}

/// What stands above an answer.
#[derive(Debug, Default)]
struct Head {
    status: u16,
    /// Its own length.
    bytes: usize,
    /// Of the body; `None`: it comes in pieces.
    length: Option<usize>,
    has_retry_after: bool,
    #[cfg(feature = "verify")]
    link: Option<String>,
    closes: bool,
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl Head {
    /// `None`: not all of it is there yet.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Error> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| broken("a head that is no text"))?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let mut head = Self { bytes: end + 4, length: Some(0), ..Self::default() };
        head.status = status.ok_or_else(|| broken("no answer of HTTP/1.1"))?;
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| broken("a header without a name"))?;
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if is("content-length") {
                let length = value.trim().parse().map_err(|_| broken("a length that is no number"))?;
                head.length = Some(length);
            } else if is("transfer-encoding") {
                head.length = None;
            } else if is("retry-after") {
                head.has_retry_after = true;
            } else if is("link") {
                #[cfg(feature = "verify")]
                {
                    head.link = Some(value.trim().to_owned());
                }
            } else if is("connection") {
                head.closes = value.trim().eq_ignore_ascii_case("close");
            }
        }
        Ok(Some(head))
    }
}

impl Connection {
    pub(super) async fn open(address: SocketAddr, generation: u64) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; READ], filled: 0, used: Instant::now(), generation })
    }

    /// Sends a request and reads its answer; gives the connection back, if it can be used again.
    pub(super) async fn ask(mut self, request: &[u8]) -> Result<(Answer, Option<Self>), Error> {
        self.stream.write_all(request).await?;
        let head = loop {
            if let Some(head) = Head::parse(&self.buffer[..self.filled])? {
                break head;
            }
            if self.filled > HEAD_MAX {
                return Err(broken("a head without an end"));
            }
            self.more().await?;
        };
        self.take(head.bytes);
        let body = match head.length {
            Some(length) => self.exactly(length).await?,
            None => self.pieces().await?,
        };
        self.used = Instant::now();
        let again = (!head.closes && self.filled == 0).then_some(self);
        let answer = Answer {
            status: head.status,
            body,
            has_retry_after: head.has_retry_after,
            #[cfg(feature = "verify")]
            link: head.link,
        };
        Ok((answer, again))
    }

    /// Reads what comes next.
    async fn more(&mut self) -> Result<(), Error> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.filled + READ, 0);
        }
        match self.stream.read(&mut self.buffer[self.filled..]).await? {
            0 => Err(Error::new(ErrorKind::UnexpectedEof, "the server has closed the connection")),
            read => {
                self.filled += read;
                Ok(())
            }
        }
    }

    /// Takes so many bytes, which have come, out of the buffer.
    fn take(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
    }

    async fn exactly(&mut self, length: usize) -> Result<Vec<u8>, Error> {
        if length > BODY_MAX {
            return Err(broken("a body that is far too long"));
        }
        let here = length.min(self.filled);
        let mut body = vec![0; length];
        body[..here].copy_from_slice(&self.buffer[..here]);
        self.take(here);
        self.stream.read_exact(&mut body[here..]).await?;
        Ok(body)
    }

    async fn pieces(&mut self) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let length = line
                .split(|byte| *byte == b';')
                .next()
                .and_then(|digits| usize::from_str_radix(std::str::from_utf8(digits).ok()?.trim(), 16).ok());
            let length = length.ok_or_else(|| broken("a piece without its length"))?;
            body.extend(self.exactly(length).await?);
            self.line().await?;
            if length == 0 {
                return Ok(body);
            }
            if body.len() > BODY_MAX {
                return Err(broken("a body that is far too long"));
            }
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            if let Some(end) = self.buffer[..self.filled].windows(2).position(|two| two == b"\r\n") {
                let line = self.buffer[..end].to_vec();
                self.take(end + 2);
                return Ok(line);
            }
            if self.filled > HEAD_MAX {
                return Err(broken("a line without an end"));
            }
            self.more().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// What a connection makes of these bytes, sent one after the other.
    async fn answered(pieces: &'static [&'static [u8]]) -> Result<(Answer, bool), Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4];
            stream.read_exact(&mut request).await.unwrap();
            for piece in pieces {
                stream.write_all(piece).await.unwrap();
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
            request
        });
        let connection = Connection::open(address, 0).await.unwrap();
        let answer = connection.ask(b"ask!").await;
        assert_eq!(&server.await.unwrap(), b"ask!");
        answer.map(|(answer, again)| (answer, again.is_some()))
    }

    #[tokio::test]
    async fn answers_come_whole_however_they_are_cut() {
        let whole: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"];
        let cut: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 5\r\n\r", b"\nhel", b"lo"];
        for pieces in [whole, cut] {
            let (answer, again) = answered(pieces).await.unwrap();
            assert_eq!((answer.status, answer.body.as_slice(), again), (200, &b"hello"[..], true));
        }
        let chunked: &[&[u8]] = &[
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            b"lo\r\n1;x\r\n!\r\n0\r\n\r\n",
        ];
        assert_eq!(answered(chunked).await.unwrap().0.body, b"hello!");
    }

    #[tokio::test]
    async fn what_is_no_whole_answer_is_an_error() {
        let broken: [&[&[u8]]; 4] = [
            &[b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell"],
            &[b"HTTP/1.1 200 OK\r\n"],
            &[b"SSH-2.0\r\n\r\n"],
            &[],
        ];
        for pieces in broken {
            assert!(answered(pieces).await.is_err(), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_ends_is_not_given_back() {
        let told = answered(&[b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"]).await;
        let (answer, again) = told.unwrap();
        assert_eq!((answer.status, answer.has_retry_after, again), (503, true, false));
    }
}
