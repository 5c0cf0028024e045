//! The entries that stand in a home.

/// The bytes of a home's entry.
pub(crate) const HOME_ENTRY_LEN: usize = 16;

/// A post in a home, as stored: id and author, so that whoever reads it knows where to look for both.
pub(crate) fn home_entry(id: u64, author: u64) -> [u8; HOME_ENTRY_LEN] {
    let mut entry = [0; HOME_ENTRY_LEN];
    entry[..8].copy_from_slice(&id.to_be_bytes());
    entry[8..].copy_from_slice(&author.to_be_bytes());
    entry
}
