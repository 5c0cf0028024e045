//! Decides who may see what: one pure function of the reader's state, the post, and what its authors say. Everything
//! that shows a post asks here.

use std::fmt;

use crate::account::{Account, AccountState};
use crate::ids::AccountId;
use crate::post::{Post, Visibility};
use crate::reader::ReaderState;

/// A post with its author, as the reader would meet it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetPost<'a> {
    pub(crate) post: &'a Post,
    pub(crate) author: &'a Account,
    /// Whether the author blocks the reader, or hides from it.
    pub(crate) is_restricted: bool,
    /// Of a post into a group, who wrote it; `author` is the group then.
    pub(crate) writer: Option<MetWriter<'a>>,
}

/// A member of a group who wrote a post.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetWriter<'a> {
    pub(crate) account: &'a Account,
    /// Whether it blocks the reader, or hides from it.
    pub(crate) is_restricted: bool,
}

/// A post with what it passes on, as far as that is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenPost<'a> {
    pub(crate) met: MetPost<'a>,
    /// The post that it reposts or quotes.
    pub(crate) original: Option<MetPost<'a>>,
    /// Of a plain repost: what its original quotes.
    pub(crate) quoted: Option<MetPost<'a>>,
}

/// The facts that a filter of your own decides by.
#[derive(Debug)]
#[non_exhaustive]
pub struct FilterFacts<'a> {
    /// The reader; `None`: a guest.
    pub reader: Option<AccountId>,
    /// The post.
    pub post: &'a Post,
    /// Its author.
    pub author: &'a Account,
    /// The post that it reposts or quotes.
    pub original: Option<&'a Post>,
}

/// A filter of your own: it can hide posts that the engine would show, never show what the engine hides.
///
/// It is called for each post of each page, and for what a plain repost passes on, so it should decide from what it is
/// given; it must not block.
pub trait PostFilter: std::fmt::Debug + Send + Sync {
    /// Whether this post shows on a page of a timeline.
    fn shows(&self, facts: &FilterFacts<'_>) -> bool;
}

/// The reason why a post does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HiddenBecause {
    /// The reader doesn't follow its author (any more).
    NotFollowed,
    /// The reader mutes its author.
    Muted,
    /// The reader leaves its author's reposts out of its home.
    RepostLeftOut,
    /// The reader leaves its author out of its home.
    AuthorLeftOut,
    /// It is in a language in which the reader doesn't want its author's posts.
    LanguageUnwanted,
    /// The reader blocks its author.
    Blocked,
    /// Its author blocks the reader, or hides from it.
    Restricted,
    /// Its author is suspended, or deleted.
    AuthorInactive,
    /// Its author is limited: only followers see its posts.
    AuthorLimited,
    /// It is for others.
    NotInAudience,
    /// A moderator hides it.
    HiddenByModerator,
    /// What it reposts is gone.
    OriginalGone,
    /// The reader mutes the author of what it reposts or quotes.
    OriginalMuted,
    /// The reader may not see what it reposts or quotes.
    OriginalHidden,
    /// It answers an account that the reader mutes or blocks.
    ReplyToMuted,
    /// It mentions an account that the reader mutes or blocks, or what it reposts does.
    MentionsMuted,
    /// It answers an account that the reader doesn't follow, and the settings leave that out.
    ReplyToStranger,
    /// It doesn't say (any more) that it belongs on the list that was read.
    NotListed,
    /// It was deleted, or is not by the author that its entry names.
    Gone,
    /// The query leaves replies, or reposts, out.
    NotAsked,
    /// The service's own [`PostFilter`] hides it.
    Filtered,
    /// Another repost of the same original shows above it.
    RepostedAbove,
}

impl fmt::Display for HiddenBecause {
    /// Its reason in words, as behind "it doesn't show: ".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFollowed => "its author is not followed (any more)",
            Self::Muted => "its author is muted",
            Self::RepostLeftOut => "its author's reposts are left out",
            Self::AuthorLeftOut => "its author is left out of home",
            Self::LanguageUnwanted => "its author is read in other languages",
            Self::Blocked => "its author is blocked",
            Self::Restricted => "its author blocks the reader, or hides from it",
            Self::AuthorInactive => "its author is suspended or deleted",
            Self::AuthorLimited => "its author is limited, and not followed",
            Self::NotInAudience => "it is for others",
            Self::HiddenByModerator => "a moderator hides it",
            Self::OriginalGone => "what it reposts is gone",
            Self::OriginalMuted => "the author of what it reposts or quotes is muted",
            Self::OriginalHidden => "the reader may not see what it reposts or quotes",
            Self::ReplyToMuted => "it answers somebody who is muted or blocked",
            Self::MentionsMuted => "it mentions somebody who is muted or blocked, or what it reposts does",
            Self::ReplyToStranger => "it answers somebody who is not followed",
            Self::NotListed => "it does not say (any more) that it belongs on that list",
            Self::Gone => "it was deleted",
            Self::NotAsked => "the query leaves it out",
            Self::Filtered => "the service's own filter hides it",
            Self::RepostedAbove => "another repost of the same post shows above",
        })
    }
}

/// The rules that apply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) replies_to_strangers: bool,
    /// Whether whom the reader leaves out of its home stays out.
    pub(crate) leaves_out: bool,
}

/// Whether a post shows in the reader's home timeline, or why not.
pub(crate) fn shown_at_home(
    rules: Rules,
    reader: AccountId,
    state: &ReaderState,
    seen: SeenPost<'_>,
) -> Result<(), HiddenBecause> {
    let (met, author) = (seen.met, seen.met.author.id);
    unmuted(reader, state, met)?;
    if author != reader {
        refuse(!state.follows(author.get()), HiddenBecause::NotFollowed)?;
        refuse(state.mutes(author.get()), HiddenBecause::Muted)?;
        refuse(rules.leaves_out && state.leaves_out(author.get()), HiddenBecause::AuthorLeftOut)?;
        let is_left_out = met.post.is_plain_repost() && state.hides_reposts(author.get());
        refuse(is_left_out, HiddenBecause::RepostLeftOut)?;
        refuse(!state.wants_language(author.get(), met.post), HiddenBecause::LanguageUnwanted)?;
    }
    shown_on_profile(reader, state, seen)?;
    if author == reader {
        return Ok(());
    }
    names_no_unwanted(reader, state, met.post)?;
    if let Some(original) = seen.original.filter(|_| met.post.is_plain_repost()) {
        names_no_unwanted(reader, state, original.post)?;
    }
    let Some(parent) = met.post.header().reply_to else { return Ok(()) };
    let to = parent.author.get();
    refuse(state.mutes(to) || state.blocks(to), HiddenBecause::ReplyToMuted)?;
    let is_known = parent.author == author || parent.author == reader || state.follows(to);
    refuse(!is_known && !rules.replies_to_strangers, HiddenBecause::ReplyToStranger)
}

/// Whether a post that others bring home mentions nobody of whom the reader doesn't want to hear: whoever blocks
/// somebody isn't led to them by friends. Of what the reader wrote itself nothing is kept from it.
fn names_no_unwanted(reader: AccountId, state: &ReaderState, post: &Post) -> Result<(), HiddenBecause> {
    let is_unwanted = |named: &AccountId| state.mutes(named.get()) || state.blocks(named.get());
    let names_one = post.writer() != reader && post.content().mentions.iter().any(is_unwanted);
    refuse(names_one, HiddenBecause::MentionsMuted)
}

/// Whether a post shows to the reader on its author's own page, or why not.
pub(crate) fn shown_on_profile(
    reader: AccountId,
    state: &ReaderState,
    SeenPost { met, original, quoted }: SeenPost<'_>,
) -> Result<(), HiddenBecause> {
    shown_to(reader, state, met)?;
    original_shown(reader, state, met, original)?;
    match original {
        // It shows as it would by itself.
        Some(original) if met.post.is_plain_repost() => original_shown(reader, state, original, quoted),
        _ => Ok(()),
    }
}

/// Whether a post shows to the reader among all that stand on its author's page: it looks for that account, and of a
/// group not for each member whom it mutes.
pub(crate) fn shown_on_page(
    reader: AccountId,
    state: &ReaderState,
    seen: SeenPost<'_>,
) -> Result<(), HiddenBecause> {
    unmuted(reader, state, seen.met)?;
    shown_on_profile(reader, state, seen)
}

/// Tells why no post of an author shows to the reader on a list of posts by anybody, if that is so: such posts needn't
/// be loaded.
pub(crate) fn unwanted_on_lists(
    reader: AccountId,
    state: &ReaderState,
    author: AccountId,
) -> Option<HiddenBecause> {
    let is_others = author != reader;
    let muted = (is_others && state.mutes(author.get())).then_some(HiddenBecause::Muted);
    muted.or_else(|| (is_others && state.blocks(author.get())).then_some(HiddenBecause::Blocked))
}

/// Whether a post shows to the reader on a list of posts by anybody, or why not.
pub(crate) fn shown_on_list(
    reader: AccountId,
    state: &ReaderState,
    seen: SeenPost<'_>,
) -> Result<(), HiddenBecause> {
    unwanted_on_lists(reader, state, seen.met.author.id).map_or(Ok(()), Err)?;
    unmuted(reader, state, seen.met)?;
    shown_on_profile(reader, state, seen)
}

/// Whether the service's own filter, if there is one, lets a post show too.
pub(crate) fn passes(
    filter: Option<&dyn PostFilter>,
    reader: AccountId,
    SeenPost { met, original, quoted }: SeenPost<'_>,
) -> Result<(), HiddenBecause> {
    let Some(filter) = filter else { return Ok(()) };
    let shows = |met: MetPost<'_>, original: Option<MetPost<'_>>| {
        let original = original.map(|original| original.post);
        let reader = Some(reader).filter(|reader| !reader.is_nobody());
        filter.shows(&FilterFacts { reader, post: met.post, author: met.author, original })
    };
    // A plain repost shows what its original would by itself.
    let reposted = original.filter(|_| met.post.is_plain_repost());
    let is_shown = shows(met, original) && reposted.is_none_or(|reposted| shows(reposted, quoted));
    refuse(!is_shown, HiddenBecause::Filtered)
}

/// Whether the reader doesn't mute the member of a group who wrote a post.
fn unmuted(reader: AccountId, state: &ReaderState, met: MetPost<'_>) -> Result<(), HiddenBecause> {
    let writer = met.writer.map(|writer| writer.account.id).filter(|writer| *writer != reader);
    refuse(writer.is_some_and(|writer| state.mutes(writer.get())), HiddenBecause::Muted)
}

fn refuse(is_hidden: bool, because: HiddenBecause) -> Result<(), HiddenBecause> {
    if is_hidden { Err(because) } else { Ok(()) }
}

/// Whether the reader may see a post at all.
pub(super) fn shown_to(
    reader: AccountId,
    state: &ReaderState,
    met: MetPost<'_>,
) -> Result<(), HiddenBecause> {
    let author = met.author.id;
    if let Some(writer) = met.writer {
        written_for(reader, state, writer, met.post.chat().is_some())?;
    }
    if author == reader {
        return refuse(!met.author.is_active(), HiddenBecause::AuthorInactive);
    }
    refuse(met.is_restricted, HiddenBecause::Restricted)?;
    refuse(state.blocks(author.get()), HiddenBecause::Blocked)?;
    match open_to(reader, met.author, met.post)? {
        None => Ok(()),
        Some(because) => refuse(!state.is_let_in(met.author), because),
    }
}

/// Whether a reader may see what a member posts into a group, as far as the two are concerned. In a chat all members
/// see the same, but for whom they don't want to hear themselves: nobody talks to some of it behind others' backs.
fn written_for(
    reader: AccountId,
    state: &ReaderState,
    MetWriter { account, is_restricted }: MetWriter<'_>,
    is_in_chat: bool,
) -> Result<(), HiddenBecause> {
    refuse(!account.is_active(), HiddenBecause::AuthorInactive)?;
    if account.id == reader {
        return Ok(());
    }
    refuse(is_restricted && !is_in_chat, HiddenBecause::Restricted)?;
    refuse(state.blocks(account.id.get()), HiddenBecause::Blocked)?;
    let is_limited = account.state == AccountState::Limited;
    refuse(is_limited && !state.is_let_in(account), HiddenBecause::AuthorLimited)
}

/// Whether a post is for somebody else than its author, as far as it and its author tell. Some: for followers only, and
/// why others don't see it.
pub(crate) fn open_to(
    reader: AccountId,
    author: &Account,
    post: &Post,
) -> Result<Option<HiddenBecause>, HiddenBecause> {
    refuse(!author.is_active(), HiddenBecause::AuthorInactive)?;
    refuse(post.header().is_hidden() && post.writer() != reader, HiddenBecause::HiddenByModerator)?;
    refuse(!post.admits(reader), HiddenBecause::NotInAudience)?;
    // Anybody may be the guest: also whom the author has left out.
    refuse(reader.is_nobody() && !post.is_for_all(), HiddenBecause::NotInAudience)?;
    // For followers, and for whom it mentions as of now: what is said to somebody reaches them; but nobody leads others
    // into a group.
    let is_said_to = post.group().is_none() && post.mentions(reader);
    let is_for_followers = post.header().visibility == Visibility::Followers && !is_said_to;
    Ok(match author.state {
        _ if is_for_followers => Some(HiddenBecause::NotInAudience),
        // Also what it says to somebody by name.
        AccountState::Limited => Some(HiddenBecause::AuthorLimited),
        _ => None,
    })
}

/// A repost shows if what it reposts is there, and shows too; muting its author hides it as well.
fn original_shown(
    reader: AccountId,
    state: &ReaderState,
    met: MetPost<'_>,
    original: Option<MetPost<'_>>,
) -> Result<(), HiddenBecause> {
    if met.post.header().original.is_none() {
        return Ok(());
    }
    let Some(original) = original else {
        // A comment stands for itself when what it quotes is gone.
        return refuse(met.post.is_plain_repost(), HiddenBecause::OriginalGone);
    };
    // H270: so does a message. Else whoever is quoted, and blocks one of the members, has it show to the others alone.
    if met.post.chat().is_some() {
        return Ok(());
    }
    shows_with(reader, state, met, original)
}

/// Whether a post shows to who reads another one that passes it on.
pub(super) fn shows_with(
    reader: AccountId,
    state: &ReaderState,
    met: MetPost<'_>,
    original: MetPost<'_>,
) -> Result<(), HiddenBecause> {
    shown_to(reader, state, original).map_err(|_| HiddenBecause::OriginalHidden)?;
    let is_muted = met.author.id != reader && state.mutes(original.author.id.get());
    let is_writer_muted = unmuted(reader, state, original).is_err();
    refuse(is_muted || is_writer_muted, HiddenBecause::OriginalMuted)
}

#[cfg(test)]
mod tests;
