//! Random bytes that are compared for equality only: stamps, pull marks, names of instances and of journal entries.
//! Drawn anew for every sending, so that no two writes write the same.

/// Eight random bytes.
pub(crate) type Nonce = [u8; 8];

/// Draws a new one.
pub(crate) fn draw() -> Nonce {
    rand::random()
}
