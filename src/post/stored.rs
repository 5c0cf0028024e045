//! A post as it is stored.

use super::earlier;
use super::layout::{
    HEADER_LEN, TAG_ATTACHMENTS, TAG_CONTENT_WARNING, TAG_EARLIER, TAG_EDITED, TAG_FIELDS, TAG_HASHTAGS,
    TAG_LISTED_BEFORE, TAG_LOCATION, TAG_MENTIONS, TAG_NOT_TO, TAG_ONLY_TO, TAG_TEXT, TAG_WRITER,
};
use super::sections::{self, Sections};
use super::{Audience, Content, Draft, Edit, NamedList, PostHeader, PostRef, Visibility};
use crate::error::{Error, Result};
use crate::ids::AccountId;

/// A whole post: its header, what it says, and who may read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Post {
    #[serde(flatten)]
    header: PostHeader,
    #[serde(flatten)]
    content: Content,
    /// Not empty exactly if the header's flag says so, which it always does for a direct post; the same for `not_to`.
    /// Never both.
    only_to: Vec<AccountId>,
    not_to: Vec<AccountId>,
    #[serde(skip)]
    /// Lists that an earlier revision named, and this one doesn't.
    pub(super) listed_before: Vec<NamedList>,
    /// When it was edited last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edited_ms: Option<u64>,
    #[serde(skip)]
    /// What it said before, as it is stored.
    pub(super) earlier: Vec<u8>,
    /// Of a post into a group or a chat: the member who wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<AccountId>,
    #[serde(skip)]
    /// Sections of a newer release, by tag, in the order in which they were found.
    unknown: Vec<(u8, Vec<u8>)>,
}

impl Post {
    /// A new post of `author`, with revision 0 and nothing counted.
    ///
    /// The mentions of a direct post that names nobody in `only_to` become its only-to list.
    ///
    /// # Panics
    ///
    /// If `draft` would not pass [`Draft::check`] with any limit of the text.
    pub fn new(author: AccountId, draft: &Draft) -> Self {
        if let Err(error) = draft.check(usize::MAX) {
            panic!("a draft is checked before it becomes a post: {error}");
        }
        Self {
            header: PostHeader::new(author, draft),
            content: draft.content.clone(),
            only_to: draft.readers().to_vec(),
            not_to: draft.not_to.clone(),
            listed_before: Vec::new(),
            edited_ms: None,
            earlier: Vec::new(),
            writer: None,
            unknown: Vec::new(),
        }
    }

    /// Has the post, into a group or a chat, be by that member.
    #[must_use]
    pub(crate) fn written_by(self, member: AccountId) -> Self {
        let mut header = self.header;
        header.set_by_member();
        Self { header, writer: Some(member), ..self }
    }

    /// The post after `edit`, one revision later; audience, references, counters and what this release doesn't know
    /// stay. Counters are those that were read: whoever stores the result keeps the ones that are there by then.
    ///
    /// # Panics
    ///
    /// If `edit` would not pass [`Edit::check`] with any limit of the text.
    #[must_use]
    pub fn edited(&self, edit: &Edit) -> Self {
        if let Err(error) = edit.check(self, usize::MAX) {
            panic!("an edit is checked before it is applied: {error}");
        }
        let mut header = self.header;
        header.revision = header.revision.saturating_add(1);
        if let Some(sensitive) = edit.sensitive {
            header.set_sensitive(sensitive);
        }
        if let Some(language) = &edit.language {
            header.set_language(language.as_deref());
        }
        Self { header, content: edit.applied(&self.content), ..self.clone() }
    }

    /// Tells what it takes in memory, about.
    #[doc(hidden)]
    pub fn held_bytes(&self) -> usize {
        let Content { text, content_warning, mentions, hashtags, attachments, location, fields } =
            &self.content;
        let texts = text.len() + content_warning.as_ref().map_or(0, String::len);
        let hashtags: usize = hashtags.iter().map(|tag| size_of::<String>() + tag.len()).sum();
        let field =
            |(name, value): &(String, Vec<u8>)| size_of::<(String, Vec<u8>)>() + name.len() + value.len();
        let fields: usize = fields.iter().map(field).sum();
        let accounts = (mentions.len() + self.only_to.len() + self.not_to.len()) * size_of::<AccountId>();
        let unknown: usize =
            self.unknown.iter().map(|(_, bytes)| size_of::<(u8, Vec<u8>)>() + bytes.len()).sum();
        let lists = self.listed_before.len() * size_of::<NamedList>();
        let bytes = attachments.len() + location.len() + self.earlier.len();
        size_of::<Self>() + texts + hashtags + fields + accounts + unknown + lists + bytes
    }

    /// Writes the post as the bytes that are stored.
    pub fn encode(&self) -> Vec<u8> {
        let content = &self.content;
        let mut out = Vec::with_capacity(HEADER_LEN + 3 + content.text.len());
        out.extend_from_slice(&self.header.to_bytes());
        sections::put(&mut out, TAG_TEXT, content.text.as_bytes());
        let warning = content.content_warning.as_deref().unwrap_or_default();
        sections::put(&mut out, TAG_CONTENT_WARNING, warning.as_bytes());
        sections::put_accounts(&mut out, TAG_ONLY_TO, &self.only_to);
        sections::put_accounts(&mut out, TAG_NOT_TO, &self.not_to);
        sections::put_accounts(&mut out, TAG_MENTIONS, &content.mentions);
        sections::put_strings(&mut out, TAG_HASHTAGS, &content.hashtags);
        sections::put(&mut out, TAG_ATTACHMENTS, &content.attachments);
        sections::put(&mut out, TAG_LOCATION, &content.location);
        sections::put_fields(&mut out, TAG_FIELDS, &content.fields);
        sections::put(&mut out, TAG_LISTED_BEFORE, &NamedList::all_to_bytes(&self.listed_before));
        let edited = self.edited_ms.map(u64::to_be_bytes);
        sections::put(&mut out, TAG_EDITED, edited.as_ref().map_or(&[], <[u8; 8]>::as_slice));
        sections::put(&mut out, TAG_EARLIER, &self.earlier);
        sections::put_accounts(&mut out, TAG_WRITER, self.writer.as_slice());
        for (tag, bytes) in &self.unknown {
            sections::put_verbatim(&mut out, *tag, bytes);
        }
        out
    }

    /// Reads what [`encode`](Self::encode) wrote, here or in a newer release with the same format version.
    ///
    /// `Internal` for everything else, saying what is wrong; never panics.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let header = PostHeader::parse(bytes)?;
        let mut post = Self {
            header,
            content: Content::default(),
            only_to: Vec::new(),
            not_to: Vec::new(),
            listed_before: Vec::new(),
            edited_ms: None,
            earlier: Vec::new(),
            writer: None,
            unknown: Vec::new(),
        };
        let what = || format!("stored post of account {}, {} bytes", header.author, bytes.len());
        let mut rest = Sections::new(&bytes[HEADER_LEN..]);
        while let Some((tag, section)) = rest.next().map_err(|error| error.context(what()))? {
            post.take(tag, section)
                .map_err(|error| error.context(format_args!("{}: section {tag}", what())))?;
        }
        if header.has_only_to() == post.only_to.is_empty() || header.has_not_to() == post.not_to.is_empty() {
            return Err(Error::internal(format!(
                "{}: flags say only-to {} and not-to {}, sections name {} and {} accounts",
                what(),
                header.has_only_to(),
                header.has_not_to(),
                post.only_to.len(),
                post.not_to.len()
            )));
        }
        Ok(post)
    }

    fn take(&mut self, tag: u8, bytes: &[u8]) -> Result<()> {
        let content = &mut self.content;
        match tag {
            TAG_TEXT => content.text = sections::text(bytes)?,
            TAG_CONTENT_WARNING => content.content_warning = Some(sections::text(bytes)?),
            TAG_ONLY_TO => self.only_to = sections::accounts(bytes)?,
            TAG_NOT_TO => self.not_to = sections::accounts(bytes)?,
            TAG_MENTIONS => content.mentions = sections::accounts(bytes)?,
            TAG_HASHTAGS => content.hashtags = sections::strings(bytes)?,
            TAG_ATTACHMENTS => content.attachments = bytes.to_vec(),
            TAG_LOCATION => content.location = bytes.to_vec(),
            TAG_FIELDS => content.fields = sections::fields(bytes)?,
            TAG_LISTED_BEFORE => self.listed_before = NamedList::all_from_bytes(bytes)?,
            TAG_EDITED => self.edited_ms = Some(earlier::edited_ms(bytes)?),
            TAG_EARLIER => {
                Self::check_earlier(bytes)?;
                self.earlier = bytes.to_vec();
            }
            TAG_WRITER => match sections::accounts(bytes)?[..] {
                [writer] => self.writer = Some(writer),
                _ => return Err(Error::internal(format!("{} bytes name no writer", bytes.len()))),
            },
            _ => self.unknown.push((tag, bytes.to_vec())),
        }
        Ok(())
    }

    /// The post's fixed part.
    pub fn header(&self) -> &PostHeader {
        &self.header
    }

    /// Tells who wrote it: of a post into a group or a chat the member, of any other its author.
    pub fn writer(&self) -> AccountId {
        self.writer.unwrap_or(self.header.author)
    }

    /// Whether its author is a group or a chat, and a member of that wrote it.
    pub fn is_by_member(&self) -> bool {
        self.writer.is_some()
    }

    /// The group that it was posted into; `None`: into none.
    pub fn group(&self) -> Option<AccountId> {
        (self.is_by_member() && self.header.visibility != Visibility::Direct).then_some(self.header.author)
    }

    /// The group whose members alone see it; `None`: it is in no group, or in a public one.
    pub(crate) fn private_group(&self) -> Option<AccountId> {
        self.group().filter(|_| self.header.visibility == Visibility::Followers)
    }

    /// The chat that it is a message of; `None`: of none. Only these are direct and by a member.
    pub fn chat(&self) -> Option<AccountId> {
        (self.is_by_member() && self.header.visibility == Visibility::Direct).then_some(self.header.author)
    }

    /// Tells when it was edited last, in milliseconds since 1970; `None`: never, or by a release that didn't note it.
    pub fn edited_ms(&self) -> Option<u64> {
        self.edited_ms
    }

    /// Gives what it says.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The accounts that it names to narrow its visibility.
    pub fn audience(&self) -> Audience<'_> {
        if !self.only_to.is_empty() {
            Audience::Only(&self.only_to)
        } else if !self.not_to.is_empty() {
            Audience::Not(&self.not_to)
        } else {
            Audience::Unnamed
        }
    }

    /// Whether it passes another post on and says nothing itself.
    pub fn is_plain_repost(&self) -> bool {
        let content = self.content();
        self.header().is_repost() && content.text.is_empty() && content.attachments.is_empty()
    }

    /// Gives the post behind a plain repost: that is what is liked, answered and passed on.
    pub fn passes_on(&self) -> Option<PostRef> {
        self.header().original.filter(|_| self.is_plain_repost())
    }

    /// Whether everybody may read it, whoever that is.
    pub(crate) fn is_for_all(&self) -> bool {
        let is_open = matches!(self.header.visibility, Visibility::Public | Visibility::Unlisted);
        is_open && self.audience() == Audience::Unnamed
    }

    /// Whether the list lets `account` read it; its author always may. Whether a post for followers goes to
    /// `account` is not known here.
    pub fn admits(&self, account: AccountId) -> bool {
        account == self.header.author || self.audience().admits(account)
    }
}
