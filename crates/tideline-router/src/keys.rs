//! Keys, as far as the router has to know them: their prefix, and the one key that it writes itself. All others are
//! spelled in `src/keys.rs` of the crate `tideline`.

use tideline_model::bucket::tag_of_slot;
use tideline_model::error::{Error, Result};

/// Longest key prefix of a tenant.
pub const PREFIX_LEN_MAX: usize = 32;

/// Gives the key that a fence writes before it waits for the replicas: any slot of the node will do, also one without a
/// bucket.
#[doc(hidden)]
pub fn fence(prefix: &str, slot: u16) -> Vec<u8> {
    format!("{prefix}{{{}}}f", tag_of_slot(slot)).into_bytes()
}

/// Refuses a prefix with braces (they would be the hash tag), of control characters, or over the length.
#[doc(hidden)]
pub fn check_prefix(prefix: &str) -> Result<()> {
    if prefix.len() > PREFIX_LEN_MAX || prefix.contains(['{', '}']) || prefix.contains(char::is_control) {
        return Err(Error::invalid(format!(
            "key prefix `{}`: at most {PREFIX_LEN_MAX} bytes, no braces, no control characters",
            prefix.escape_default()
        )));
    }
    Ok(())
}
