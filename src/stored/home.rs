//! The records that stand in a home.

/// The bytes of a home's record.
pub(crate) const RECORD_LEN: usize = 16;

/// A post in a home, as stored: id and author, so that whoever reads it knows where to look for both.
pub(crate) fn record_of(id: u64, author: u64) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..8].copy_from_slice(&id.to_be_bytes());
    record[8..].copy_from_slice(&author.to_be_bytes());
    record
}
