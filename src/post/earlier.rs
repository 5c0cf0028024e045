//! Revisions of a post: what it said before it was edited. They stand in the post itself, so they go wherever that
//! goes.

use super::layout::{LANGUAGE_OFFSET, LIKES_OFFSET};
use super::sections::{self, SectionReader};
use super::{EARLIER_BYTES_MAX, EARLIER_MAX, Post};
use crate::error::{Error, Result};

/// Bytes of a revision, besides what it said: when, flags, language, three lengths.
const FIXED_LEN: usize = 8 + 1 + LANGUAGE_LEN + 3 * 2;
const LANGUAGE_LEN: usize = LIKES_OFFSET - LANGUAGE_OFFSET;

/// A revision of a post: what it said until it was edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// When it began to say so, in milliseconds since 1970.
    pub since_ms: u64,
    /// The text.
    pub text: String,
    /// The warning before the text.
    pub content_warning: Option<String>,
    /// Whether the attachments were hidden at first.
    pub sensitive: bool,
    /// The language of the text.
    pub language: Option<String>,
    /// The caller's description of attachments.
    pub attachments: Vec<u8>,
}

impl Revision {
    /// Makes a revision of what a post says now, since its last edit, or since it was written at `posted_ms`.
    fn of(post: &Post, posted_ms: u64) -> Self {
        let (header, content) = (post.header(), post.content());
        Self {
            since_ms: post.edited_ms().unwrap_or(posted_ms),
            text: content.text.clone(),
            content_warning: content.content_warning.clone(),
            sensitive: header.asks_sensitive(),
            language: header.language().map(str::to_owned),
            attachments: content.attachments.clone(),
        }
    }

    fn says_the_same_as(&self, other: &Self) -> bool {
        Self { since_ms: 0, ..self.clone() } == Self { since_ms: 0, ..other.clone() }
    }

    fn stored(&self) -> Vec<u8> {
        let warning = self.content_warning.as_deref().unwrap_or_default();
        let parts = [self.text.as_bytes(), warning.as_bytes(), &self.attachments];
        let mut out = Vec::with_capacity(FIXED_LEN + parts.iter().map(|part| part.len()).sum::<usize>());
        out.extend(self.since_ms.to_be_bytes());
        out.push(u8::from(self.sensitive));
        let mut language = [0; LANGUAGE_LEN];
        let said = self.language.as_deref().unwrap_or_default().as_bytes();
        language[..said.len()].copy_from_slice(said);
        out.extend(language);
        parts.iter().for_each(|part| sections::put_long(&mut out, part));
        out
    }

    fn read(reader: &mut SectionReader<'_>) -> Result<Self> {
        let since_ms = u64::from_be_bytes(reader.array()?);
        let [sensitive] = reader.array()?;
        let language: [u8; LANGUAGE_LEN] = reader.array()?;
        let language = language.split(|byte| *byte == 0).next().unwrap_or_default();
        let (language, text) = (sections::text(language)?, sections::text(reader.long()?)?);
        let warning = sections::text(reader.long()?)?;
        Ok(Self {
            since_ms,
            text,
            content_warning: Some(warning).filter(|warning| !warning.is_empty()),
            sensitive: sensitive != 0,
            language: Some(language).filter(|language| !language.is_empty()),
            attachments: reader.long()?.to_vec(),
        })
    }
}

/// All revisions that are kept, the first first.
fn all(stored: &[u8]) -> Result<Vec<Revision>> {
    let (mut reader, mut revisions) = (SectionReader::new(stored), Vec::new());
    while !reader.is_empty() {
        revisions.push(Revision::read(&mut reader)?);
    }
    Ok(revisions)
}

/// As many as are kept: the first, for that is what people have seen first, and as many of the last as there is room
/// for.
fn kept(mut revisions: Vec<Revision>) -> Vec<u8> {
    let mut stored: Vec<Vec<u8>> = revisions.drain(..).map(|revision| revision.stored()).collect();
    while stored.len() > EARLIER_MAX || stored.iter().map(Vec::len).sum::<usize>() > EARLIER_BYTES_MAX {
        stored.remove(usize::from(stored.len() > 1));
    }
    stored.concat()
}

/// The circumstances of an edit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EditMoment {
    pub(crate) posted_ms: u64,
    pub(crate) now_ms: u64,
    /// Whether what the post says until now has shown to anybody but its writer.
    pub(crate) has_shown: bool,
}

impl Post {
    /// Gives what it said before it was edited, and since when, the first first. Kept are the first and the last, up to
    /// [`EARLIER_MAX`] of together [`EARLIER_BYTES_MAX`] bytes; of edits by a release before this nothing is known.
    pub fn earlier(&self) -> Vec<Revision> {
        all(&self.earlier).unwrap_or_default()
    }

    /// Refuses bytes that are no revisions.
    pub(super) fn check_earlier(stored: &[u8]) -> Result<()> {
        all(stored).map(drop)
    }

    /// Has the post remember what `before` said, whose edit it is; one that says the same wasn't edited.
    #[must_use]
    pub(super) fn remembering(mut self, before: &Self, edited: EditMoment) -> Self {
        let said = Revision::of(before, edited.posted_ms);
        if Revision::of(&self, edited.posted_ms).says_the_same_as(&said) {
            return self;
        }
        let edited_ms = edited.now_ms.max(said.since_ms + 1);
        let mut revisions = before.earlier();
        // H268: what a moderator has hidden, or nobody has looked at, would show with what is released.
        if edited.has_shown {
            revisions.push(said);
        }
        (self.edited_ms, self.earlier) = (Some(edited_ms), kept(revisions));
        self
    }
}

const _: () = assert!(EARLIER_BYTES_MAX <= super::TEXT_BYTES_MAX);

/// The error for a section that should say when a post was edited.
pub(super) fn edited_ms(bytes: &[u8]) -> Result<u64> {
    let ms = bytes.try_into().map(u64::from_be_bytes);
    ms.map_err(|_| Error::internal(format!("{} bytes are no time, which has 8", bytes.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::AccountId;
    use crate::post::{Draft, Edit, TagKey};

    fn text(text: impl Into<String>) -> Edit {
        Edit { text: Some(text.into()), ..Edit::default() }
    }

    fn first() -> Post {
        Post::new(AccountId::new(1).unwrap(), &Draft::text("first"))
    }

    fn edited(post: &Post, edit: &Edit, now_ms: u64) -> Post {
        edited_beside(post, edit, EditMoment { posted_ms: 1_000, now_ms, has_shown: true })
    }

    fn edited_beside(post: &Post, edit: &Edit, now: EditMoment) -> Post {
        let edited = post.edited_on_lists(edit, TagKey::NONE, now).unwrap();
        let read = Post::parse(&edited.encode()).unwrap();
        assert_eq!(read, edited);
        read
    }

    #[test]
    fn a_post_tells_what_it_said_and_since_when() {
        let post = first();
        assert_eq!((post.edited_ms(), post.earlier()), (None, vec![]));
        let warned =
            Edit { content_warning: Some(Some("sea".into())), sensitive: Some(true), ..text("second") };
        let warned = edited(&post, &Edit { language: Some(Some("en".into())), ..warned }, 2_000);
        // The clock was set back meanwhile.
        let last = edited(&warned, &text("third"), 1_500);
        assert_eq!((warned.edited_ms(), last.edited_ms()), (Some(2_000), Some(2_001)));
        let told: Vec<_> =
            last.earlier().into_iter().map(|of| (of.since_ms, of.text, of.sensitive)).collect();
        assert_eq!(told, [(1_000, "first".into(), false), (2_000, "second".into(), true)]);
        let second = &last.earlier()[1];
        assert_eq!(
            (second.content_warning.as_deref(), second.language.as_deref()),
            (Some("sea"), Some("en"))
        );
        // An edit that was sent twice, or changes nothing that is kept.
        let again = edited(&last, &text("third"), 9_000);
        assert_eq!((again.edited_ms(), again.earlier()), (last.edited_ms(), last.earlier()));
    }

    #[test]
    fn the_first_and_the_last_are_kept_as_far_as_there_is_room() {
        let mut post = first();
        for n in 0..100 {
            post = edited(&post, &text(format!("{n}")), 2_000 + n);
        }
        let kept = post.earlier();
        assert_eq!((kept.len(), kept[0].text.as_str()), (EARLIER_MAX, "first"));
        assert_eq!((kept[1].text.as_str(), kept[EARLIER_MAX - 1].text.as_str()), ("68", "98"));
        for n in 0..10 {
            post = edited(&post, &text(format!("{n}").repeat(4_000)), 3_000 + n);
        }
        let kept = post.earlier();
        assert!(kept.len() < 6 && kept[0].text == "first" && kept[kept.len() - 1].text.starts_with('8'));
        assert!(post.encode().len() < EARLIER_BYTES_MAX + 5_000);
        // One that has no room at all is forgotten, and what follows isn't.
        let large = edited(&first(), &text("x".repeat(60_000)), 2_000);
        let small = edited(&edited(&large, &text("small"), 3_000), &text("last"), 4_000);
        let kept: Vec<_> = small.earlier().into_iter().map(|of| of.text).collect();
        assert_eq!(kept, ["first", "small"]);
    }

    #[test]
    fn what_nobody_was_shown_is_not_remembered() {
        let unseen = EditMoment { posted_ms: 1_000, now_ms: 3_000, has_shown: false };
        let spam = edited(&first(), &text("spam"), 2_000);
        let post = edited_beside(&spam, &text("last"), unseen);
        let kept: Vec<_> = post.earlier().into_iter().map(|of| of.text).collect();
        assert_eq!((kept, post.edited_ms()), (vec!["first".to_owned()], Some(3_000)));
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes: Vec<u8>) {
            let _ = all(&bytes);
            let _ = edited_ms(&bytes);
        }
    }
}
