//! Mentions and hashtags in a text, by the rules that people know from Mastodon and Twitter. Pure.
//!
//! A sign counts where a word could begin: not inside one (so no e-mail address mentions anybody), nor inside a URL.

use std::ops::Range;

use super::tag::{is_sign, is_word, len_at_start};
use super::{Draft, Edit, HASHTAGS_MAX, MENTIONS_MAX, Tag};
use crate::error::Result;
use crate::ids::AccountId;

/// Bytes of a name after `@`.
pub const NAME_LEN_MAX: usize = 64;
/// Bytes of a host after `@name@`: the longest name that there is in the DNS.
const HOST_LEN_MAX: usize = 253;

/// A name that a text mentions: `@name`, or `@name@host`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MentionedName {
    /// The name as it is written, without its sign: ASCII letters, digits and underscores, dots and hyphens between
    /// them.
    pub name: String,
    /// Somebody of another site: who knows no other sites leaves it as text.
    pub host: Option<String>,
    /// The bytes of the text where it stands, its signs included.
    pub at: Range<usize>,
}

/// A hashtag in a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WrittenTag {
    /// The hashtag.
    pub tag: Tag,
    /// The bytes of the text where it stands, its sign included.
    pub at: Range<usize>,
}

/// The accounts and hashtags that a text names, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextNames {
    /// Names, each place of each. Of different ones the first [`MENTIONS_MAX`].
    pub mentions: Vec<MentionedName>,
    /// Hashtags, each place of each. Of different ones the first [`HASHTAGS_MAX`].
    pub hashtags: Vec<WrittenTag>,
    /// Different ones, in the order of their first places.
    tags: Vec<Tag>,
    /// The same for names: which of the mentions has each first.
    names: Vec<usize>,
}

impl TextNames {
    /// Finds what `text` names. Takes any text; one pass.
    pub fn of(text: &str) -> Self {
        let (mut parsed, mut at, mut before) = (Self::default(), 0, None);
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at + c.len_utf8()..];
            let mut len = c.len_utf8();
            if is_sign(c) && may_precede_tag(before) {
                len += parsed.take_tag(at, len, rest);
            } else if c == '@' && may_precede_name(before) {
                len += parsed.take_name(at, rest);
            } else if c == ':' && rest.starts_with("//") && before.is_some_and(|c| c.is_ascii_alphanumeric())
            {
                len += rest.find(char::is_whitespace).unwrap_or(rest.len());
            }
            at += len;
            before = text[..at].chars().next_back();
        }
        parsed
    }

    /// Takes the tag behind a sign of `sign` bytes that stands at `at`; gives its length.
    fn take_tag(&mut self, at: usize, sign: usize, rest: &str) -> usize {
        let len = len_at_start(rest);
        let Ok(tag) = Tag::new(&rest[..len]) else { return len };
        if !self.tags.contains(&tag) {
            if self.tags.len() == HASHTAGS_MAX {
                return len;
            }
            self.tags.push(tag);
        }
        self.hashtags.push(WrittenTag { tag, at: at..at + sign + len });
        len
    }

    /// Takes the name behind the sign that stands at `at`; gives its length, with its host.
    fn take_name(&mut self, at: usize, rest: &str) -> usize {
        let name = dotted(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        // Inside a word no name ends: it would be the beginning of another one, and somebody else's.
        if name.is_empty() || name.len() > NAME_LEN_MAX || rest[name.len()..].starts_with(is_word) {
            return name.len();
        }
        let host = rest[name.len()..].strip_prefix('@').map(|rest| dotted(rest, is_word));
        let host = host.filter(|host| !host.is_empty());
        let len = name.len() + host.map_or(0, |host| 1 + host.len());
        if host.is_some_and(|host| host.len() > HOST_LEN_MAX) {
            return len;
        }
        if !self.names().any(|known| known.name == name && known.host.as_deref() == host) {
            if self.names.len() == MENTIONS_MAX {
                return len;
            }
            self.names.push(self.mentions.len());
        }
        let (name, host) = (name.to_owned(), host.map(str::to_owned));
        self.mentions.push(MentionedName { name, host, at: at..at + 1 + len });
        len
    }

    /// Different hashtags, in the order of their first places.
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Different names, in the order of their first places.
    pub fn names(&self) -> impl Iterator<Item = &MentionedName> {
        self.names.iter().map(|first| &self.mentions[*first])
    }

    fn tag_strings(&self) -> Vec<String> {
        self.tags.iter().map(Tag::to_string).collect()
    }
}

impl Draft {
    /// A public post with this text, and with the mentions and hashtags in it.
    ///
    /// `accounts_of` is told all different names at once and gives an account for each, or `None` for what stays
    /// text: who it is that a name means only the caller knows.
    ///
    /// ```
    /// # use tideline::AccountId;
    /// # use tideline::post::Draft;
    /// # fn main() -> tideline::Result<()> {
    /// # futures::executor::block_on(async {
    /// let ben = AccountId::new(2)?;
    /// let text = "@ben look, low tide! #Beach";
    /// let draft = Draft::parsed(text, async |names| {
    ///     Ok(names.iter().map(|name| (name.name == "ben").then_some(ben)).collect())
    /// });
    /// let draft = draft.await?;
    /// assert_eq!(draft.content.mentions, [ben]);
    /// assert_eq!(draft.content.hashtags, ["beach"]);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn parsed(
        text: impl Into<String>,
        accounts_of: impl AsyncFnOnce(&[&MentionedName]) -> Result<Vec<Option<AccountId>>>,
    ) -> Result<Self> {
        let SaidText { text, mentions, hashtags } = said(text.into(), accounts_of).await?;
        Ok(Self::text(text).mentions(mentions).hashtags(hashtags))
    }
}

impl Edit {
    /// Another text, with the mentions and hashtags in it; see [`Draft::parsed`].
    pub async fn parsed(
        text: impl Into<String>,
        accounts_of: impl AsyncFnOnce(&[&MentionedName]) -> Result<Vec<Option<AccountId>>>,
    ) -> Result<Self> {
        let SaidText { text, mentions, hashtags } = said(text.into(), accounts_of).await?;
        Ok(Self { text: Some(text), mentions: Some(mentions), hashtags: Some(hashtags), ..Self::default() })
    }
}

/// A text, and what it says about others.
struct SaidText {
    text: String,
    mentions: Vec<AccountId>,
    hashtags: Vec<String>,
}

/// Reads a text. Accounts that are named come once each: two names may mean the same one.
async fn said(
    text: String,
    accounts_of: impl AsyncFnOnce(&[&MentionedName]) -> Result<Vec<Option<AccountId>>>,
) -> Result<SaidText> {
    let parsed = TextNames::of(&text);
    let names: Vec<&MentionedName> = parsed.names().collect();
    let mut mentions = Vec::with_capacity(names.len());
    if !names.is_empty() {
        for account in accounts_of(&names).await?.into_iter().take(names.len()).flatten() {
            if !mentions.contains(&account) {
                mentions.push(account);
            }
        }
    }
    let hashtags = parsed.tag_strings();
    Ok(SaidText { text, mentions, hashtags })
}

/// The longest run of such characters at the beginning, with single or several dots and hyphens between them.
fn dotted(text: &str, is_in: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_in(c) && c != '.' && c != '-').unwrap_or(text.len());
    let run = text[..end].trim_end_matches(['.', '-']);
    if run.starts_with(['.', '-']) { "" } else { run }
}

/// Whether a tag may begin behind this: `&#39;` is none, nor is the fragment of a URL without a scheme.
fn may_precede_tag(before: Option<char>) -> bool {
    before.is_none_or(|c| !is_word(c) && !is_sign(c) && !matches!(c, '/' | '=' | '&' | '@'))
}

/// Whether a mention may begin behind this: an e-mail address may end its name with a plus.
fn may_precede_name(before: Option<char>) -> bool {
    before.is_none_or(|c| !is_word(c) && !is_sign(c) && !matches!(c, '/' | '=' | '+' | '@'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tags(text: &str) -> Vec<String> {
        TextNames::of(text).tag_strings()
    }

    fn names(text: &str) -> Vec<String> {
        let shown = |name: &MentionedName| match &name.host {
            Some(host) => format!("{}@{host}", name.name),
            None => name.name.clone(),
        };
        TextNames::of(text).names().map(shown).collect()
    }

    #[test]
    fn finds_hashtags_where_people_mean_them() {
        let cases: &[(&str, &[&str])] = &[
            ("low tide #Beach", &["beach"]),
            ("#one,#two;(#three) \"#four\"\n#five", &["one", "two", "three", "four", "five"]),
            ("\u{3053}\u{308c}\u{ff03}\u{6d77}\u{3067}\u{3059}", &[]),
            ("\u{3053}\u{308c} \u{ff03}\u{6d77}", &["\u{6d77}"]),
            (
                "#\u{43c}\u{43e}\u{440}\u{435}! #\u{914}\u{928}\u{93e}\u{930}",
                &["\u{43c}\u{43e}\u{440}\u{435}", "\u{914}\u{928}\u{93e}\u{930}"],
            ),
            (
                "#\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
                &["\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}"],
            ),
            ("#paral\u{b7}lel #end\u{b7}", &["paral\u{b7}lel", "end"]),
            ("#2026 #y2k #_ #_a #a_", &["y2k", "_a", "a_"]),
            ("we're #1", &[]),
            ("it's #don't stop", &["don"]),
            ("#low-tide", &["low"]),
            ("a#b ##c &#39; x/#y ?q=#z @#w", &[]),
            ("https://example.com/#top and #after", &["after"]),
            ("(see HTTP://example.com/a-#frag\u{2003}#after)", &["after"]),
            ("\u{23}\u{fe0f}\u{20e3} keycap, #\u{1f30a} wave", &[]),
            ("#Tide #tide #TIDE", &["tide"]),
            ("#", &[]),
        ];
        for (text, found) in cases {
            assert_eq!(tags(text), *found, "{text}");
        }
    }

    #[test]
    fn finds_mentions_where_people_mean_them() {
        let cases: &[(&str, &[&str])] = &[
            ("@ben look", &["ben"]),
            ("hi @ben, @Ada_L and (@c.d-e).", &["ben", "Ada_L", "c.d-e"]),
            (".@ben -@ada \u{201c}@cy\u{201d}", &["ben", "ada", "cy"]),
            ("@ben@example.com. @ada@m\u{fc}nchen.example", &["ben@example.com", "ada@m\u{fc}nchen.example"]),
            ("mail ben@example.com or b.c+@example.com", &[]),
            ("https://example.com/@ben @ada", &["ada"]),
            ("example.com/@ben x=@ben @@ben #@ben", &[]),
            ("@ben @ben @Ben", &["ben", "Ben"]),
            ("@ben\u{3055}\u{3093} @jos\u{e9} @jose\u{301} @a.b\u{e9} @ben.", &["ben"]),
            ("@ben@", &["ben"]),
            ("@.ben @-ben @", &[]),
        ];
        for (text, found) in cases {
            assert_eq!(names(text), *found, "{text}");
        }
    }

    #[test]
    fn places_are_those_in_the_text() {
        let text = "\u{1f30a} @ben@x.org likes \u{ff03}Tide and #Tide";
        let parsed = TextNames::of(text);
        let at = |range: &Range<usize>| text[range.clone()].to_owned();
        assert_eq!(parsed.mentions.iter().map(|m| at(&m.at)).collect::<Vec<_>>(), ["@ben@x.org"]);
        assert_eq!(parsed.hashtags.iter().map(|t| at(&t.at)).collect::<Vec<_>>(), ["\u{ff03}Tide", "#Tide"]);
        assert_eq!(parsed.tags().len(), 1);
    }

    #[test]
    fn what_is_too_long_is_text_and_what_is_too_much_is_left_out() {
        assert!(names(&format!("@{}", "n".repeat(NAME_LEN_MAX + 1))).is_empty());
        assert!(names(&format!("@ben@{}", "n".repeat(HOST_LEN_MAX + 1))).is_empty());
        assert!(tags(&format!("#{}", "n".repeat(super::super::HASHTAG_LEN_MAX + 1))).is_empty());
        let many: String = (0..200).map(|n| format!("#t{n} @n{n} #t0 @n0 ")).collect();
        let parsed = TextNames::of(&many);
        assert_eq!((parsed.tags().len(), parsed.names().count()), (HASHTAGS_MAX, MENTIONS_MAX));
        assert_eq!(parsed.tags()[29].as_str(), "t29");
    }

    #[test]
    fn two_names_of_one_account_mention_it_once() {
        let one = AccountId::new(1).unwrap();
        let all = async |names: &[&MentionedName]| Ok(names.iter().map(|_| Some(one)).collect());
        let draft = futures::executor::block_on(Draft::parsed("@ben @Ben #a", all)).unwrap();
        assert_eq!((draft.content.mentions, draft.content.hashtags), (vec![one], vec!["a".to_owned()]));
        let nobody = async |_: &[&MentionedName]| -> Result<_> { panic!("nobody is named") };
        let edit = futures::executor::block_on(Edit::parsed("nothing", nobody)).unwrap();
        assert_eq!((edit.mentions, edit.hashtags), (Some(vec![]), Some(vec![])));
    }

    proptest! {
        #[test]
        fn any_text_gives_what_a_draft_may_have(
            text in "([#@\u{ff03}:/.\\-_a-zA-Z0-9 \n\u{e9}\u{301}\u{200c}\u{fdfa}\u{6d77}]|\\PC){0,200}"
        ) {
            let all = async |names: &[&MentionedName]| {
                Ok(names.iter().enumerate().map(|(n, _)| AccountId::new(n as u64 + 1).ok()).collect())
            };
            let draft = futures::executor::block_on(Draft::parsed(format!("{text}."), all)).unwrap();
            draft.check(usize::MAX).unwrap();
            let parsed = TextNames::of(&text);
            for at in parsed.mentions.iter().map(|m| &m.at).chain(parsed.hashtags.iter().map(|t| &t.at)) {
                let part = text.get(at.clone());
                let begins_with_sign = part.is_some_and(|part| part.starts_with(['@', '#', '\u{ff03}']));
                prop_assert!(begins_with_sign);
            }
        }
    }
}
