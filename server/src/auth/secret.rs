//! Secrets: drawn here, handed out once, compared without telling how much of them was right.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A secret that somebody is given: 256 random bits, as 43 letters that fit into a URL. Nothing prints it by the way.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// Draws one.
    pub(crate) fn draw() -> Self {
        Self(URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
    }

    /// Letters of one that was drawn.
    pub(crate) const LEN: usize = 43;

    /// One that came back.
    pub(crate) fn of(text: String) -> Self {
        Self(text)
    }

    /// The text that is given to whoever it is for.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The hash of a secret of an application: what is stored of it.
pub(crate) fn hash(secret: &str) -> String {
    hash_of(secret.as_bytes())
}

/// Hashes a key that a client has made up: the token under which the engine has a post that was sent with that
/// `Idempotency-Key`.
pub fn hash_of(key: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, key))
}

/// A number below 2^48 that stands for a public name.
pub(crate) fn number_of(name: &str) -> u64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    digest.as_ref().iter().take(6).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Whether two texts are the same, in a time that tells nothing but whether they are as long.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_not_printed() {
        let (one, other) = (Secret::draw(), Secret::draw());
        assert!(one != other && one.reveal().len() == 43);
        assert!(!format!("{one:?}").contains(one.reveal()));
        assert!(is_same("abc", "abc") && !is_same("abc", "abd") && !is_same("abc", "ab"));
        assert!(hash("a") != hash("b") && hash("a").len() == 43);
    }
}
