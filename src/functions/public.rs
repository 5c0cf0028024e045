//! The newest public posts of a bucket.

use super::fcall;
use crate::cluster::Command;
use crate::member::Member as _;
use crate::post::PostRef;

/// Cuts a bucket's public posts down to so many, if the bucket knows that decision: answers how many went.
pub(crate) fn public_cut(list: Vec<u8>, most: u32, decision: u32) -> Command {
    fcall("public_cut", &[list]).arg(most).arg(decision)
}

/// Takes posts that are gone off a bucket's public posts: answers how many went.
pub(crate) fn public_drop(list: Vec<u8>, posts: &[PostRef]) -> Command {
    posts.iter().fold(fcall("public_drop", &[list]), |command, post| command.arg(&post.to_bytes()))
}
