//! The lists beside a post: who likes it, what answers, reposts, quotes it.

use super::layout::{LIKES_OFFSET, QUOTES_OFFSET, REPLIES_OFFSET, REPOSTS_OFFSET};
use super::reference::Reference;

/// The list of who likes a post, beside those of [`Reference`].
pub(crate) const LIKES: u8 = b'l';
/// Every list: its letter, its name, and where its length stands in the post.
pub(crate) const LISTS: [(u8, &str, usize); 4] = [
    (Reference::REPLY, "replies", REPLIES_OFFSET),
    (Reference::REPOST, "reposts", REPOSTS_OFFSET),
    (Reference::QUOTE, "quotes", QUOTES_OFFSET),
    (LIKES, "likes", LIKES_OFFSET),
];
