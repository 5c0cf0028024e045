//! The public posts of a bucket: entries one behind the other, as they came.

use crate::ids::{AccountId, PostId};
use crate::post::PostRef;

/// Bytes of an entry: a post and its author.
pub(crate) const PUBLIC_ENTRY_LEN: usize = 16;

/// Reads the end of a list. An entry that makes no sense is one missing entry.
pub(crate) fn public_entries(bytes: &[u8]) -> impl Iterator<Item = PostRef> + '_ {
    let (_, entries) = bytes.as_rchunks::<PUBLIC_ENTRY_LEN>();
    entries.iter().filter_map(|entry| {
        let (id, author) = entry.split_first_chunk::<8>()?;
        let id = PostId::from_u64(u64::from_be_bytes(*id)).ok()?;
        Some(PostRef { id, author: AccountId::from_bytes(author).ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::Member as _;

    #[test]
    fn entries_are_read_from_the_end() {
        let post = |id, author| PostRef {
            id: PostId::from_u64(id).unwrap(),
            author: AccountId::new(author).unwrap(),
        };
        let posts = [post(7, 1), post(9, 2)];
        let torn = [&[1, 2, 3][..], &posts[0].to_bytes(), &[0; 16], &posts[1].to_bytes()].concat();
        assert_eq!(public_entries(&torn).collect::<Vec<_>>(), posts);
    }
}
