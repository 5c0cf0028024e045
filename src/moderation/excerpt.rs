//! Excerpts of what is reported: its author may change or delete it before a moderator looks.

use serde::{Deserialize, Serialize};

use super::said;
use crate::ids::PostId;
use crate::post::Post;

/// Characters that a report keeps of what one of its posts said.
pub const EXCERPT_CHARS_MAX: usize = 500;
/// Characters that a report keeps of all its posts, the first ones first.
pub const EXCERPTS_CHARS_MAX: usize = 1_500;

/// An excerpt of a post that was reported: how it began then, whatever has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostExcerpt {
    /// The post.
    pub post: PostId,
    /// What it said: its warning, if it had one, and its text.
    pub text: String,
}

/// Takes excerpts of posts that are about to be reported, as far as there is room.
pub(super) fn of_posts<'a>(posts: impl Iterator<Item = (PostId, &'a Post)>) -> Vec<PostExcerpt> {
    let (mut excerpts, mut room) = (Vec::new(), EXCERPTS_CHARS_MAX);
    for (post, said) in posts {
        let text: String =
            said::all_of(said.content()).trim().chars().take(room.min(EXCERPT_CHARS_MAX)).collect();
        room -= text.chars().count();
        // A plain repost says nothing itself.
        if !text.is_empty() {
            excerpts.push(PostExcerpt { post, text });
        }
    }
    excerpts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AccountId;
    use crate::post::{Draft, PostRef};

    #[test]
    fn excerpts_are_bounded_each_and_together() {
        let id = |n| PostId::from_u64(n << 16).unwrap();
        let author = AccountId::new(1).unwrap();
        let long = "é".repeat(EXCERPT_CHARS_MAX + 1);
        let text = |text: &str| Draft::text(text);
        let repost = Draft::repost(PostRef { id: id(9), author });
        let drafts = [text("short"), repost, text(&long), text(&long), text(&long), text(&long)];
        let posts = drafts.map(|draft| Post::new(author, &draft));
        let kept = of_posts(posts.iter().enumerate().map(|(n, post)| (id(n as u64 + 1), post)));
        let chars: Vec<(PostId, usize)> = kept.iter().map(|of| (of.post, of.text.chars().count())).collect();
        assert_eq!(chars, [(id(1), 5), (id(3), 500), (id(4), 500), (id(5), 495)]);
        let warned = Post::new(author, &Draft::text("text").content_warning("warning"));
        assert_eq!(of_posts([(id(1), &warned)].into_iter())[0].text, "warning\ntext");
    }
}
