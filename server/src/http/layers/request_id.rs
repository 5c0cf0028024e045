//! Names of requests: what a log and a client tell each other of one by.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use rand::RngExt as _;

pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Letters of one that a client chooses.
const LEN_MAX: usize = 64;

/// The name of a request: an extension of it, and a header of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The client's, or a proxy's, if it is short and plain: it stands in logs. Else a new one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is_plain = |id: &&HeaderValue| {
            let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_".contains(b);
            (1..=LEN_MAX).contains(&id.len()) && id.as_bytes().iter().all(plain)
        };
        let made = || HeaderValue::from_str(&format!("{:032x}", rand::rng().random::<u128>()));
        match headers.get(HEADER).filter(is_plain) {
            Some(id) => Self(id.clone()),
            None => Self(made().unwrap_or(HeaderValue::from_static("none"))),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(sent: &[u8]) -> String {
        let headers = [(HEADER, HeaderValue::from_bytes(sent).unwrap())].into_iter().collect();
        RequestId::of(&headers).as_str().to_owned()
    }

    #[test]
    fn a_short_and_plain_name_is_kept_and_no_other() {
        assert_eq!(id(b"a-B_9"), "a-B_9");
        for sent in [&b""[..], b"a b", b"a=b", "\u{e9}".as_bytes(), b"a\tb", &[b'a'; LEN_MAX + 1]] {
            let made = id(sent);
            assert!(made.len() == 32 && made.as_bytes() != sent, "{made}");
        }
        assert_ne!(id(b""), id(b""));
    }
}
