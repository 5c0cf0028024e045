//! Posts as they are stored, whoever may see them.

use tideline::post::Post;
use tideline::{Engine, ErrorKind, PostId};

/// Reads a post as it is stored; none, too, where it can't be read, and so shows to nobody.
///
/// # Errors
///
/// [`Unavailable`](ErrorKind::Unavailable): nobody can tell now.
pub async fn readable(engine: &Engine, id: PostId) -> tideline::Result<Option<Post>> {
    match engine.stored().post(id).await {
        Err(e) if e.kind() == ErrorKind::Internal => Ok(None),
        stored => stored,
    }
}
