//! Statuses as text: what all readers get alike is made once, and remembered.
//!
//! It is made of posts and accounts that the engine remembers, and counts as long as these very ones are shown: so it
//! is no older than what they are, and nothing has to be compared but where they lie. What only its reader gets stands
//! behind it.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tideline::post::Post;
use tideline::{Account, PagePost, PassedOn, PostId};

use super::site::Site;
use super::status::{QUOTE_STATE, ReadersOwn, StatusReader, passes_on, shared, shared_original};
use crate::entity::Status;

/// Bytes that all of it takes, with what it was made of: that stays as long as it does.
const BYTES_MAX: u64 = 64 << 20;
/// Bytes that a status takes beside its text, and each thing that it was made of.
const BESIDE_BYTES: usize = 160;
const INGREDIENT_BYTES: usize = 16;
/// Statuses that the table is laid out for at first.
const STATUSES_AT_FIRST: usize = 1_000;

/// Something that the text of a status is made of.
#[derive(Debug, Clone, Copy)]
enum Ingredient<'a> {
    Post(&'a Arc<Post>),
    Account(&'a Arc<Account>),
}

/// An ingredient that is kept: nothing else can lie where it does.
#[derive(Debug)]
enum KeptIngredient {
    Post(Arc<Post>),
    Account(Arc<Account>),
}

impl Ingredient<'_> {
    fn kept(self) -> KeptIngredient {
        match self {
            Self::Post(post) => KeptIngredient::Post(post.clone()),
            Self::Account(account) => KeptIngredient::Account(account.clone()),
        }
    }

    /// Bytes that are kept by keeping it, as if nobody else did.
    fn held_bytes(self) -> usize {
        INGREDIENT_BYTES
            + match self {
                Self::Post(post) => post.held_bytes(),
                Self::Account(account) => account.held_bytes(),
            }
    }

    /// Whether it is this very one.
    fn is(self, kept: &KeptIngredient) -> bool {
        match (self, kept) {
            (Self::Post(post), KeptIngredient::Post(kept)) => Arc::ptr_eq(post, kept),
            (Self::Account(account), KeptIngredient::Account(kept)) => Arc::ptr_eq(account, kept),
            _ => false,
        }
    }
}

fn ingredients<'a>(
    post: &'a Arc<Post>,
    account: &'a Arc<Account>,
    writer: Option<&'a Arc<Account>>,
    mentioned: &'a [Arc<Account>],
) -> impl Iterator<Item = Ingredient<'a>> {
    [Ingredient::Post(post), Ingredient::Account(account)]
        .into_iter()
        .chain(writer.map(Ingredient::Account))
        .chain(mentioned.iter().map(Ingredient::Account))
}

fn of_original(original: &PassedOn) -> impl Iterator<Item = Ingredient<'_>> {
    ingredients(&original.post, &original.account, original.writer.as_ref(), &original.mentioned)
}

/// The part of a status that everybody gets.
#[derive(Debug)]
struct SharedText {
    of: Box<[KeptIngredient]>,
    /// Up to what it passes on.
    json: Box<str>,
    /// What all of it takes in memory, about.
    bytes: usize,
}

impl SharedText {
    fn is_of<'a>(&self, mut of: impl Iterator<Item = Ingredient<'a>>) -> bool {
        self.of.iter().all(|kept| of.next().is_some_and(|one| one.is(kept))) && of.next().is_none()
    }
}

/// A measure of what a text takes in memory, about.
#[derive(Debug, Clone)]
struct TextBytes;

impl Weighter<PostId, Arc<SharedText>> for TextBytes {
    fn weight(&self, _: &PostId, text: &Arc<SharedText>) -> u64 {
        text.bytes as u64
    }
}

/// The texts of statuses that were shown lately.
#[derive(Debug)]
pub struct StatusTexts(Cache<PostId, Arc<SharedText>, TextBytes>);

impl Default for StatusTexts {
    fn default() -> Self {
        Self(Cache::with_weighter(STATUSES_AT_FIRST, BYTES_MAX, TextBytes))
    }
}

impl StatusTexts {
    /// Appends the statuses of posts on a page, as an array in JSON: letter by letter what [`status`](super::status)
    /// makes of them. Those are left out of which the page has only the id.
    pub fn push_page(&self, out: &mut String, site: Site<'_>, reader: StatusReader<'_>, page: &[PagePost]) {
        let mut between = '[';
        for shown in page {
            let from = out.len();
            out.push(between);
            match self.push_status(out, site, reader, shown) {
                Some(()) => between = ',',
                None => out.truncate(from),
            }
        }
        out.push_str(if between == '[' { "[]" } else { "]" });
    }

    fn push_status(
        &self,
        out: &mut String,
        site: Site<'_>,
        reader: StatusReader<'_>,
        shown: &PagePost,
    ) -> Option<()> {
        let (post, account) = (shown.post.as_ref()?, shown.account.as_ref()?);
        let (passes_on, readers) = (passes_on(shown), ReadersOwn::of(shown));
        // What a plain repost says is what its original says.
        let said = shown.original.as_deref().filter(|_| passes_on);
        let own = || ingredients(post, account, shown.writer.as_ref(), &shown.mentioned);
        let of = || own().chain(said.into_iter().flat_map(of_original));
        let text = self.shared(shown.id, of, || shared(site, shown))?;
        let original = self.original(site, shown.original.as_deref())?;
        // What a plain repost passes on may quote something itself.
        let inner_quoted = shown.original.as_deref().filter(|_| passes_on);
        let inner_quoted = self.original(site, inner_quoted.and_then(|of| of.original.as_deref()))?;
        out.push_str(&text.json);
        out.push_str(",\"reblog\":");
        match &original {
            Some((original, inner)) if passes_on => {
                out.push_str(&inner.json);
                out.push_str(",\"reblog\":null");
                push_quote(out, reader, inner_quoted.as_ref());
                push_own(out, reader.pinned(original.id, original.account.id), readers);
            }
            _ => out.push_str("null"),
        }
        push_quote(out, reader, original.as_ref().filter(|_| !passes_on));
        push_own(out, reader.pinned(shown.id, shown.author), readers);
        Some(())
    }

    /// A post that another one passes on, with its text; `None`: the text can't be made.
    fn original<'o>(
        &self,
        site: Site<'_>,
        original: Option<&'o PassedOn>,
    ) -> Option<Option<PassedOnText<'o>>> {
        let Some(original) = original else { return Some(None) };
        let of = || of_original(original);
        let text = self.shared(original.id, of, || Some(shared_original(site, original)))?;
        Some(Some((original, text)))
    }

    /// The text of a status that everybody gets, made if it isn't remembered, or was made of others.
    fn shared<'a, I: Iterator<Item = Ingredient<'a>>>(
        &self,
        id: PostId,
        of: impl Fn() -> I,
        make: impl FnOnce() -> Option<Status>,
    ) -> Option<Arc<SharedText>> {
        if let Some(text) = self.0.get(&id).filter(|text| text.is_of(of())) {
            return Some(text);
        }
        let whole = serde_json::to_string(&make()?).ok()?;
        let json = whole.strip_suffix(NOBODYS)?;
        let bytes = BESIDE_BYTES + json.len() + of().map(Ingredient::held_bytes).sum::<usize>();
        let text =
            Arc::new(SharedText { json: json.into(), of: of().map(Ingredient::kept).collect(), bytes });
        self.0.insert(id, text.clone());
        Some(text)
    }
}

/// A post that another one passes on, and its text.
type PassedOnText<'o> = (&'o PassedOn, Arc<SharedText>);

/// Appends the quote of a status, or that there is none.
fn push_quote(out: &mut String, reader: StatusReader<'_>, quoted: Option<&PassedOnText<'_>>) {
    out.push_str(",\"quote\":");
    let Some((quoted, text)) = quoted else { return out.push_str("null") };
    out.push_str("{\"state\":\"");
    out.push_str(QUOTE_STATE);
    out.push_str("\",\"quoted_status\":");
    out.push_str(&text.json);
    out.push_str(",\"reblog\":null,\"quote\":null");
    push_own(out, reader.pinned(quoted.id, quoted.account.id), ReadersOwn::default());
    out.push('}');
}

/// The part behind the text that all share, of a status that passes nothing on, for a reader who has done nothing.
const NOBODYS: &str = concat!(
    r#","reblog":null,"quote":null,"favourited":false,"reblogged":false,"muted":false,"bookmarked":false,"#,
    r#""filtered":[]}"#
);

/// Appends what a reader alone gets, and the end of the status.
fn push_own(out: &mut String, pinned: Option<bool>, ReadersOwn { ties, is_muted }: ReadersOwn) {
    let mut flag = |name: &str, is_so: bool| {
        out.push_str(",\"");
        out.push_str(name);
        out.push_str(if is_so { "\":true" } else { "\":false" });
    };
    flag("favourited", ties.is_liked);
    flag("reblogged", ties.repost.is_some());
    flag("muted", is_muted);
    flag("bookmarked", ties.is_bookmarked);
    if let Some(pinned) = pinned {
        flag("pinned", pinned);
    }
    out.push_str(",\"filtered\":[]}");
}

#[cfg(test)]
mod tests {
    use tideline::AccountId;
    use tideline::post::Draft;

    use super::*;

    /// Texts kept the posts that they were made of, however long these were, and counted only their places.
    #[test]
    fn a_text_counts_with_what_it_keeps() {
        let of = |text: &str| {
            let post = Post::new(AccountId::new(7).unwrap(), &Draft::text(text));
            Ingredient::Post(&Arc::new(post)).held_bytes()
        };
        assert!(of("x") > INGREDIENT_BYTES + 100);
        assert_eq!(of(&"x".repeat(5_000)), of("x") + 4_999);
    }
}
