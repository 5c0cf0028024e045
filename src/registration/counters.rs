//! Counters: how often something happened within a while, whichever instance saw it. What is counted is never stored: a
//! counter lies under the hash of its name, in the bucket of that hash, and has an end.

use std::time::Duration;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};

use super::Registration;
use crate::error::{CallFuture, Error, Result};

/// Bytes of a counter's name.
pub const COUNTER_NAME_BYTES_MAX: usize = 1_024;
/// The longest that a counter lasts: 31 days.
pub const COUNTER_LASTS_MAX: Duration = Duration::from_secs(31 * 86_400);

/// Stands before all that is hashed, so that no counter has the hash of anything else.
const DOMAIN: &[u8] = b"tideline counter:";

impl Registration {
    /// Counts so many more of something, and tells how many there are then, of all instances. One that isn't there
    /// begins at nothing, and `lasts` so long from then on, however often it is counted up.
    ///
    /// The name says what is counted, of whom, and in which span of time: `log-ins 203.0.113.7 5692111`. It is hashed,
    /// which hides it from who reads the keys, not from who tries all names that there may be: addresses are few.
    /// Bounds: [`COUNTER_NAME_BYTES_MAX`], [`COUNTER_LASTS_MAX`].
    ///
    /// Nothing waits for replicas: what a failover loses was counted for nothing.
    /// [`ErrorKind::Unknown`](crate::ErrorKind::Unknown): it may be counted; whoever sends it again may count it twice.
    pub fn count_up<'a>(&'a self, name: &'a [u8], more: u32, lasts: Duration) -> CallFuture<'a, u64> {
        Box::pin(async move {
            check(name, lasts)?;
            self.tenant().count_up(&hash(name), more, lasts).await
        })
    }
}

fn hash(name: &[u8]) -> [u8; 16] {
    let mut hash = Blake2b::<U16>::new();
    hash.update(DOMAIN);
    hash.update(name);
    hash.finalize().into()
}

/// Refuses what is too long, or lasts too long, as `Invalid`.
fn check(name: &[u8], lasts: Duration) -> Result<()> {
    if name.is_empty() || name.len() > COUNTER_NAME_BYTES_MAX {
        let bytes = name.len();
        return Err(Error::out_of_range(format!(
            "a counter's name: {bytes} bytes; 1 to {COUNTER_NAME_BYTES_MAX} are allowed"
        )));
    }
    if lasts.is_zero() || lasts > COUNTER_LASTS_MAX {
        return Err(Error::out_of_range(format!(
            "a counter lasts {lasts:?}; more than nothing, and at most {COUNTER_LASTS_MAX:?} are allowed"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_counter_lies_under_the_hash_of_its_name() {
        assert_ne!(hash(b"a"), hash(b"b"));
        // Two releases that run side by side count together.
        let stored = hash(b"a").escape_ascii().to_string();
        assert_eq!(stored, r"Z\x05\\\xdbi\x82\x00T^\xd1\xbf\xbd\xa6\xca\xc9\xa3");
    }

    #[test]
    fn what_has_no_bound_is_refused_and_errors_say_no_name() {
        let long = [b"203.0.113.7".as_slice(), &[b'x'; COUNTER_NAME_BYTES_MAX]].concat();
        let day = Duration::from_secs(86_400);
        for name in [b"".as_slice(), &long] {
            let refused = check(name, day).unwrap_err();
            assert!(
                refused.kind() == ErrorKind::Invalid && !refused.to_string().contains("203"),
                "{refused}"
            );
        }
        check(&[b'n'; COUNTER_NAME_BYTES_MAX], COUNTER_LASTS_MAX).unwrap();
        for lasts in [Duration::ZERO, COUNTER_LASTS_MAX + day] {
            check(b"name", lasts).unwrap_err();
        }
    }
}
