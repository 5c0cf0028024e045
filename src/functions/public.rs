//! The newest public posts of a bucket.

use super::fcall;
use crate::bucket::Bucket;
use crate::cluster::Command;
use crate::keys::Keyspace;
use crate::member::Member as _;
use crate::post::PostRef;

/// Cuts a bucket's public posts down to so many, if the bucket knows that decision: answers how many went.
pub(crate) fn public_cut(list: Vec<u8>, most: u32, decision: u32) -> Command {
    fcall("public_cut", &[list]).arg(most).arg(decision)
}

/// Takes posts off a bucket's public posts, all of that bucket, if they are not there: answers how many went.
pub(crate) fn public_drop(keys: &Keyspace, bucket: Bucket, posts: &[PostRef]) -> Command {
    let of = posts.iter().map(|post| keys.post(post.id));
    let of: Vec<Vec<u8>> = std::iter::once(keys.public_posts(bucket)).chain(of).collect();
    posts.iter().fold(fcall("public_drop", &of), |command, post| command.arg(&post.to_bytes()))
}
