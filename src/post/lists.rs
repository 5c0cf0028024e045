//! Lists that posts are brought onto by what they say: what mentions an account, what bears a hashtag.
//!
//! Once on such a list, a post stays until it is deleted, or the list lets it go for its age: an edit that takes a
//! mention or a hashtag away only stops it from showing there. So nothing ever has to be taken off that might be wanted
//! back, and no order that comes late makes a hole. The post remembers the lists that it no longer names; whoever
//! deletes it finds them all.

use std::fmt;

use super::{Audience, Draft, Edit, EditMoment, LISTED_BEFORE_MAX, Post, Tag, TagKey, Visibility};
use crate::error::{Error, ErrorCode, Result};
use crate::ids::AccountId;

/// A list that posts are brought onto by what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum NamedList {
    /// What mentions this account.
    Mentions(AccountId),
    /// What bears a hashtag of this number.
    Tagged(u64),
    /// What this account has posted into groups and chats: whoever deletes it finds that here.
    Written(AccountId),
    /// Messages of the chats that this account is in.
    Chats(AccountId),
}

impl NamedList {
    /// Bytes of one in stored form.
    pub(crate) const LEN: usize = 9;

    /// Its stored form.
    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let (letter, number) = match self {
            Self::Mentions(account) => (b'm', account.get()),
            Self::Tagged(number) => (b't', number),
            Self::Written(account) => (b'w', account.get()),
            Self::Chats(account) => (b'c', account.get()),
        };
        let mut bytes = [letter; Self::LEN];
        bytes[1..].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) gave.
    pub(crate) fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self> {
        let [letter, number @ ..] = *bytes;
        match letter {
            b'm' => AccountId::from_bytes(&number).map(Self::Mentions),
            b't' => Ok(Self::Tagged(u64::from_be_bytes(number))),
            b'w' => AccountId::from_bytes(&number).map(Self::Written),
            b'c' => AccountId::from_bytes(&number).map(Self::Chats),
            _ => Err(Error::internal(format!("a list {} is none", bytes.escape_ascii()))),
        }
    }

    /// The account whose list it is; `None`: it is a hashtag's.
    pub(crate) fn account(self) -> Option<AccountId> {
        match self {
            Self::Mentions(account) | Self::Written(account) | Self::Chats(account) => Some(account),
            Self::Tagged(_) => None,
        }
    }

    /// The account whose list this is, if it goes by this name in a set's name.
    pub(crate) fn of_account(what: &[u8], account: AccountId) -> Option<Self> {
        match what {
            b"mentions" => Some(Self::Mentions(account)),
            b"written" => Some(Self::Written(account)),
            b"chats" => Some(Self::Chats(account)),
            _ => None,
        }
    }

    /// Whether what leaves it goes on in the archive, where there is one. Of chats the messages do.
    pub(crate) fn is_archived(self) -> bool {
        matches!(self, Self::Mentions(_) | Self::Tagged(_))
    }

    /// Several, one behind the other.
    pub(crate) fn all_from_bytes(bytes: &[u8]) -> Result<Vec<Self>> {
        let (lists, rest) = bytes.as_chunks::<{ Self::LEN }>();
        if !rest.is_empty() {
            return Err(Error::internal(format!(
                "{} bytes are no lists, of {} bytes each",
                bytes.len(),
                Self::LEN
            )));
        }
        lists.iter().map(Self::from_bytes).collect()
    }

    pub(crate) fn all_to_bytes(lists: &[Self]) -> Vec<u8> {
        lists.iter().flat_map(|list| list.to_bytes()).collect()
    }
}

impl fmt::Display for NamedList {
    /// Names what it holds, as behind "the list of".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mentions(account) => write!(f, "mentions of {account}"),
            Self::Tagged(number) => write!(f, "hashtag number {number:016x}"),
            Self::Written(account) => write!(f, "what {account} has posted into groups and chats"),
            Self::Chats(account) => write!(f, "chats of {account}"),
        }
    }
}

impl Post {
    /// The lists that it belongs on. Mentions lead only to whom it admits, which never changes, and hashtags only there
    /// where everybody may look; whoever mentions itself knows.
    pub(crate) fn lists(&self, tags: TagKey) -> Vec<NamedList> {
        // H61: a post goes on the mentions of whom it admits only.
        let admits = |list: &NamedList| self.admits_on(*list);
        let mut lists = self.lists_named(tags);
        lists.retain(admits);
        lists
    }

    /// Whether whoever owns a list may see it there.
    fn admits_on(&self, list: NamedList) -> bool {
        match list {
            NamedList::Mentions(account) => self.admits(account),
            NamedList::Tagged(_) | NamedList::Written(_) | NamedList::Chats(_) => true,
        }
    }

    fn lists_named(&self, key: TagKey) -> Vec<NamedList> {
        let content = self.content();
        let (author, writer) = (self.header().author, self.writer());
        let mut lists: Vec<NamedList> = match self.chat() {
            // Whom a message names besides is in the chat, or nobody to whom it is said.
            Some(_) => self.readers().iter().map(|member| NamedList::Chats(*member)).collect(),
            None => {
                let others = content.mentions.iter().filter(|account| ![author, writer].contains(account));
                others.map(|account| NamedList::Mentions(*account)).collect()
            }
        };
        if self.is_listed_by_tags() {
            let tags = content.hashtags.iter().filter_map(|tag| Tag::new(tag).ok());
            lists.extend(tags.map(|tag| NamedList::Tagged(tag.number(key))));
        }
        lists.extend(self.is_by_member().then_some(NamedList::Written(writer)));
        lists.sort_unstable();
        lists.dedup();
        lists
    }

    /// The lists that it may be on: those that it names, and those that an earlier revision named.
    pub(crate) fn lists_ever(&self, tags: TagKey) -> Vec<NamedList> {
        let mut lists = self.lists(tags);
        let before = self.listed_before.iter().filter(|list| self.admits_on(**list));
        lists.extend(before);
        lists
    }

    /// The lists that it may be on, and those of whom it mentions without admitting them: an earlier release brought
    /// posts there.
    pub(crate) fn lists_of_any_release(&self, tags: TagKey) -> Vec<NamedList> {
        let mut lists = self.lists_named(tags);
        lists.extend(&self.listed_before);
        lists
    }

    /// Whether lists of hashtags may have it.
    pub(crate) fn is_listed_by_tags(&self) -> bool {
        self.header().visibility == Visibility::Public && !matches!(self.audience(), Audience::Only(_))
    }

    /// Whether it belongs on the public timeline: a public post that names no readers, and neither passes another one
    /// on without a word nor answers somebody else's.
    pub fn is_on_public_timeline(&self) -> bool {
        let header = self.header();
        let is_answer = self.answers_others();
        header.visibility == Visibility::Public
            && self.audience() == Audience::Unnamed
            && !is_answer
            && !self.is_plain_repost()
    }

    /// Whether it answers somebody else. In a group nobody knows who has written what it answers.
    pub(crate) fn answers_others(&self) -> bool {
        let header = self.header();
        header.reply_to.is_some_and(|parent| parent.author != header.author || self.is_by_member())
    }

    /// Whether it shows on the timeline of a hashtag.
    pub fn bears(&self, tag: &Tag) -> bool {
        self.is_listed_by_tags() && self.says(tag)
    }

    /// Whether a hashtag stands in it, whomever it is for.
    pub(crate) fn says(&self, tag: &Tag) -> bool {
        let is_it = |written: &String| Tag::new(written).is_ok_and(|written| written == *tag);
        self.content().hashtags.iter().any(is_it)
    }

    /// Whether it shows on an account's list of mentions.
    pub fn mentions(&self, account: AccountId) -> bool {
        account != self.header().author
            && account != self.writer()
            && self.content().mentions.contains(&account)
    }

    /// The accounts that it is for alone, where it names them.
    fn readers(&self) -> &[AccountId] {
        match self.audience() {
            Audience::Only(readers) => readers,
            Audience::Unnamed | Audience::Not(_) => &[],
        }
    }

    /// Whether it is said to an account: it names it, or is a message of a chat that it is in.
    pub(crate) fn is_said_to(&self, account: AccountId) -> bool {
        match self.chat() {
            Some(_) => account != self.writer() && self.admits(account),
            None => self.content().mentions.contains(&account),
        }
    }

    /// The post after an edit that was checked, one revision later, with the lists that it has named and no longer
    /// does, and with what it said before.
    ///
    /// Refuses one after which nobody could tell any more which lists the post is on.
    pub(crate) fn edited_on_lists(&self, edit: &Edit, tags: TagKey, now: EditMoment) -> Result<Self> {
        let mut edited = self.edited(edit).remembering(self, now);
        let named = edited.lists_named(tags);
        // Of whom it doesn't admit as well: an earlier release may have brought it there, and a deletion must find it.
        edited.listed_before = self.lists_of_any_release(tags);
        edited.listed_before.retain(|list| !named.contains(list));
        let lists = edited.listed_before.len();
        if lists > LISTED_BEFORE_MAX && (edit.mentions.is_some() || edit.hashtags.is_some()) {
            return Err(Error::new(
                ErrorCode::LimitReached,
                format!(
                    "edits have taken {lists} mentions and hashtags away from this post; at most {LISTED_BEFORE_MAX} \
                     are allowed: write a new one"
                ),
            ));
        }
        Ok(edited)
    }
}

impl Draft {
    /// Whether it will belong on the public timeline, if its author isn't locked or it says how far it goes.
    pub(crate) fn may_be_public(&self, author: AccountId) -> bool {
        let is_answer = self.reply_to.is_some_and(|parent| parent.author != author || self.group.is_some());
        self.visibility.is_none_or(|visibility| visibility == Visibility::Public)
            && self.only_to.is_empty()
            && self.not_to.is_empty()
            && !is_answer
            && !self.is_plain_repost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::Draft;
    use proptest::prelude::*;

    const KEY: TagKey = TagKey::NONE;
    const NOW: EditMoment = EditMoment { posted_ms: 0, now_ms: 1, has_shown: true };

    fn account(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    fn tagged(name: &str) -> NamedList {
        NamedList::Tagged(Tag::new(name).unwrap().number(KEY))
    }

    fn mentions(id: u64) -> NamedList {
        NamedList::Mentions(account(id))
    }

    fn sorted(lists: impl IntoIterator<Item = NamedList>) -> Vec<NamedList> {
        let mut lists: Vec<NamedList> = lists.into_iter().collect();
        lists.sort_unstable();
        lists
    }

    #[test]
    fn a_post_is_listed_by_what_it_says_and_who_may_see_it() {
        let draft = || Draft::text("x").mentions([2, 3, 1].map(account)).hashtags(["Tide", "tide", "sea"]);
        let lists = |draft: Draft| Post::new(account(1), &draft).lists(KEY);
        let both = sorted([mentions(2), mentions(3), tagged("tide"), tagged("sea")]);
        assert_eq!(lists(draft()), both);
        assert_eq!(lists(draft().not_to([account(9)])), both);
        let names = vec![mentions(2), mentions(3)];
        for visibility in [Visibility::Unlisted, Visibility::Followers, Visibility::Direct] {
            assert_eq!(lists(draft().visibility(visibility)), names);
        }
        // Whom it doesn't admit has nothing of it.
        assert_eq!(lists(draft().only_to([account(3), account(9)])), [mentions(3)]);
        assert_eq!(lists(draft().visibility(Visibility::Direct).only_to([account(9)])), []);
        let but_one = sorted([mentions(2), tagged("tide"), tagged("sea")]);
        assert_eq!(lists(draft().not_to([account(3)])), but_one);
        let post = Post::new(account(1), &draft().only_to([account(9)]));
        assert_eq!(post.lists_ever(KEY), []);
        assert_eq!(post.lists_of_any_release(KEY), names);
        // Nor does an edit forget where an earlier release brought it.
        let edit = Edit { mentions: Some(vec![account(3)]), ..Edit::default() };
        let edited = post.edited_on_lists(&edit, KEY, NOW).unwrap();
        assert_eq!(edited.lists_ever(KEY), []);
        assert_eq!(sorted(edited.lists_of_any_release(KEY)), names);
    }

    #[test]
    fn it_remembers_the_lists_that_it_no_longer_names() {
        let post = Post::new(account(1), &Draft::text("x").mentions([account(2)]).hashtags(["a", "b"]));
        let tags = |tags: &[&str]| Edit {
            hashtags: Some(tags.iter().map(ToString::to_string).collect()),
            ..Edit::default()
        };
        let edited = post.edited_on_lists(&tags(&["b", "c"]), KEY, NOW).unwrap();
        assert_eq!(edited.lists(KEY), sorted([mentions(2), tagged("b"), tagged("c")]));
        assert_eq!(edited.listed_before, [tagged("a")]);
        let stored = Post::parse(&edited.encode()).unwrap();
        assert_eq!(stored, edited);
        let back = stored.edited_on_lists(&tags(&["a"]), KEY, NOW).unwrap();
        assert_eq!(sorted(back.listed_before.clone()), sorted([tagged("b"), tagged("c")]));
        assert_eq!(
            sorted(back.lists_ever(KEY)),
            sorted([mentions(2), tagged("a"), tagged("b"), tagged("c")])
        );
        assert!(!back.bears(&Tag::new("b").unwrap()) && back.bears(&Tag::new("A").unwrap()));
        assert!(back.mentions(account(2)) && !back.mentions(account(1)));
    }

    #[test]
    fn refuses_an_edit_after_which_the_lists_could_not_be_told() {
        let mut post = Post::new(account(1), &Draft::text("x"));
        let edit = |n: usize| Edit {
            hashtags: Some((0..20).map(|i| format!("t{n}x{i}")).collect()),
            ..Edit::default()
        };
        for n in 0..6 {
            post = post.edited_on_lists(&edit(n), KEY, NOW).unwrap();
        }
        assert_eq!(post.listed_before.len(), LISTED_BEFORE_MAX);
        let error = post.edited_on_lists(&edit(6), KEY, NOW).unwrap_err();
        assert!(error.to_string().contains("120"), "{error}");
        post.edited_on_lists(&Edit { text: Some("y".into()), ..Edit::default() }, KEY, NOW).unwrap();
        post.edited_on_lists(&edit(4), KEY, NOW).unwrap();
    }

    proptest! {
        #[test]
        fn a_list_survives_its_bytes(number in 1..i64::MAX.unsigned_abs()) {
            for list in [NamedList::Mentions(account(number)), NamedList::Tagged(number)] {
                prop_assert_eq!(NamedList::all_from_bytes(&list.to_bytes()).unwrap(), vec![list]);
            }
        }

        #[test]
        fn reading_never_panics(bytes: Vec<u8>) {
            let _ = NamedList::all_from_bytes(&bytes);
        }
    }
}
