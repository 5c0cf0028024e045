//! Who may see what: one pure function of the reader's state, the post, and what its authors say. Everything that
//! shows a post asks here.

use super::state::ReaderState;
use crate::account::Account;
use crate::ids::AccountId;
use crate::post::{Post, Visibility};

/// A post with its author, as the reader would meet it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met<'a> {
    pub(crate) post: &'a Post,
    pub(crate) author: &'a Account,
    /// Whether the author blocks the reader, or hides from it.
    pub(crate) is_restricted: bool,
}

/// What a filter of your own decides by.
#[derive(Debug)]
#[non_exhaustive]
pub struct FilterFacts<'a> {
    /// Who reads.
    pub reader: AccountId,
    /// The post.
    pub post: &'a Post,
    /// Its author.
    pub author: &'a Account,
    /// What it reposts or quotes.
    pub original: Option<&'a Post>,
}

/// A filter of your own: it can hide posts that the engine would show, never show what the engine hides.
///
/// It is called for each post of each page, so it should decide from what it is given; it must not block.
pub trait PostFilter: std::fmt::Debug + Send + Sync {
    /// Whether this post shows on a page of a timeline.
    fn shows(&self, facts: &FilterFacts<'_>) -> bool;
}

/// Which rules apply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) replies_to_strangers: bool,
}

/// Whether a post shows in the reader's home timeline. `original`: what it reposts or quotes, if that is there.
pub(crate) fn shows_at_home(
    rules: Rules,
    reader: AccountId,
    state: &ReaderState,
    met: Met<'_>,
    original: Option<Met<'_>>,
) -> bool {
    let author = met.author.id;
    if author != reader && (!state.follows(author.get()) || state.mutes(author.get())) {
        return false;
    }
    if !shows_to(reader, state, met) || !shows_original(reader, state, met, original) {
        return false;
    }
    let Some(parent) = met.post.header().reply_to.filter(|_| author != reader) else { return true };
    let to = parent.author.get();
    if state.mutes(to) || state.blocks(to) {
        return false;
    }
    let is_known = parent.author == author || parent.author == reader || state.follows(to);
    is_known || rules.replies_to_strangers
}

/// Whether a post shows to the reader on its author's own page.
pub(crate) fn shows_on_profile(
    reader: AccountId,
    state: &ReaderState,
    met: Met<'_>,
    original: Option<Met<'_>>,
) -> bool {
    shows_to(reader, state, met) && shows_original(reader, state, met, original)
}

/// Whether the reader may see a post at all.
fn shows_to(reader: AccountId, state: &ReaderState, met: Met<'_>) -> bool {
    let author = met.author.id;
    if author == reader {
        return met.author.is_active();
    }
    if met.is_restricted || state.blocks(author.get()) || !met.author.is_active() {
        return false;
    }
    if !met.post.admits(reader) {
        return false;
    }
    match met.post.header().visibility {
        Visibility::Public | Visibility::Unlisted => {
            !matches!(met.author.state, crate::account::AccountState::Limited) || state.follows(author.get())
        }
        Visibility::Followers => state.follows(author.get()),
        // It admits the reader by name.
        Visibility::Direct => true,
    }
}

/// A repost shows if what it reposts is there, and shows too; muting its author hides it as well.
fn shows_original(reader: AccountId, state: &ReaderState, met: Met<'_>, original: Option<Met<'_>>) -> bool {
    if met.post.header().original.is_none() {
        return true;
    }
    let Some(original) = original else {
        // A comment stands for itself when what it quotes is gone.
        return !met.post.is_plain_repost();
    };
    shows_to(reader, state, original) && (met.author.id == reader || !state.mutes(original.author.id.get()))
}
