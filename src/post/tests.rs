use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

mod bytes;
mod refusals;

pub(super) fn account(id: u64) -> AccountId {
    AccountId::new(id).unwrap()
}

pub(super) fn reference(id: u64, author: u64) -> PostRef {
    PostRef { id: PostId::from_u64(id).unwrap(), author: account(author) }
}

fn any_account() -> impl Strategy<Value = AccountId> {
    (1..=i64::MAX.unsigned_abs()).prop_map(account)
}

fn any_reference() -> impl Strategy<Value = PostRef> {
    (1..=i64::MAX.unsigned_abs(), 1..=i64::MAX.unsigned_abs()).prop_map(|(id, author)| reference(id, author))
}

fn any_accounts(max: usize) -> impl Strategy<Value = Vec<AccountId>> {
    btree_set(any_account(), 0..=max).prop_map(|accounts| accounts.into_iter().collect())
}

fn any_fields() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    btree_map("\\PC{1,20}", vec(any::<u8>(), 0..300), 0..5).prop_map(|fields| fields.into_iter().collect())
}

prop_compose! {
    fn any_content()(
        text in "\\PC{1,200}", content_warning in option::of("\\PC{1,40}"), mentions in any_accounts(MENTIONS_MAX),
        hashtags in btree_set("\\PC{1,25}", 0..=HASHTAGS_MAX), attachments in vec(any::<u8>(), 1..=ATTACHMENTS_MAX),
        location in vec(any::<u8>(), 0..=LOCATION_MAX), fields in any_fields(),
    ) -> Content {
        let hashtags = hashtags.into_iter().collect();
        Content { text, content_warning, mentions, hashtags, attachments, location, fields }
    }
}

prop_compose! {
    pub(super) fn any_draft()(
        content in any_content(), sensitive: bool, language in option::of("[A-Za-z0-9-]{1,8}"),
        visibility in prop::sample::select(vec![Visibility::Public, Visibility::Unlisted, Visibility::Followers]),
        named in any_accounts(20), which in 0..4, repost_of in option::of(any_reference()),
        reply_to in option::of(any_reference()), root in option::of(any_reference()),
        token in option::of("[a-z]{1,64}"),
    ) -> Draft {
        let conversation = root.map(|post| post.id);
        let draft = Draft { content, sensitive, language, visibility: Some(visibility), repost_of, reply_to,
            conversation, token,
            ..Draft::default() };
        match which {
            0 => draft.only_to(named),
            1 => draft.not_to(named),
            2 if !named.is_empty() => draft.visibility(Visibility::Direct).mentions(named),
            _ => draft,
        }
    }
}

prop_compose! {
    fn any_edit()(
        text in option::of("\\PC{1,200}"), content_warning in option::of(option::of("\\PC{1,40}")),
        sensitive: Option<bool>, language in option::of(option::of("[a-z]{1,8}")),
        mentions in option::of(any_accounts(MENTIONS_MAX)),
        hashtags in option::of(vec("[a-z]{25}", 0..3)), attachments in option::of(vec(any::<u8>(), 1..50)),
        location in option::of(vec(any::<u8>(), 0..50)), fields in option::of(any_fields()),
    ) -> Edit {
        Edit { text, content_warning, sensitive, language, mentions, hashtags, attachments, location, fields }
    }
}

proptest! {
    #[test]
    fn a_draft_comes_back_from_its_bytes(draft in any_draft(), author in any_account()) {
        draft.check(TEXT_CHARS_DEFAULT).unwrap();
        let post = Post::new(author, &draft);
        let read = Post::parse(&post.encode()).unwrap();
        prop_assert_eq!(&read, &post);
        prop_assert_eq!(read.content(), &draft.content);
        let header = read.header();
        let visibility = draft.visibility.unwrap_or_default();
        prop_assert_eq!((header.author, header.visibility, header.revision), (author, visibility, 0));
        prop_assert_eq!((header.original, header.reply_to), (draft.repost_of, draft.reply_to));
        prop_assert_eq!((header.conversation, header.language()), (draft.conversation, draft.language.as_deref()));
        prop_assert_eq!(header.is_sensitive(), draft.sensitive);
    }

    #[test]
    fn an_audience_is_what_the_draft_named(draft in any_draft(), author in any_account(), other in any_account()) {
        let post = Post::parse(&Post::new(author, &draft).encode()).unwrap();
        let direct = draft.visibility == Some(Visibility::Direct);
        let only = if direct && draft.only_to.is_empty() { &draft.content.mentions } else { &draft.only_to };
        for reader in only.iter().chain(&draft.not_to).copied().chain([author, other]) {
            let is_for_some = direct || !only.is_empty();
            let listed = if is_for_some { only.contains(&reader) } else { !draft.not_to.contains(&reader) };
            prop_assert_eq!(post.audience().admits(reader), listed);
            prop_assert_eq!(post.admits(reader), listed || reader == author);
        }
    }

    #[test]
    fn an_edit_changes_what_it_names_and_nothing_else(
        draft in any_draft(), edit in any_edit(), counted: [u32; 4], revision in 0..u32::MAX
    ) {
        let mut stored = Post::new(account(7), &draft).encode();
        for (value, at) in counted.iter().zip([64, 68, 72, 76]) {
            stored[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        stored[4..8].copy_from_slice(&revision.to_be_bytes());
        stored[2] |= 0xA0;
        let before = Post::parse(&stored).unwrap();
        let is_empty = |text: &str, attachments: &[u8]| text.is_empty() && attachments.is_empty();
        let (was, is) = (before.content(), edit.applied(before.content()));
        if draft.repost_of.is_some()
            && is_empty(&was.text, &was.attachments) != is_empty(&is.text, &is.attachments)
        {
            // A repost stays one, a quote too.
            prop_assert!(edit.check(&before, TEXT_CHARS_DEFAULT).is_err());
            return Ok(());
        }
        edit.check(&before, TEXT_CHARS_DEFAULT).unwrap();
        let after = Post::parse(&before.edited(&edit).encode()).unwrap();

        let (was, is) = (before.content().clone(), after.content().clone());
        prop_assert_eq!(is.text, edit.text.unwrap_or(was.text));
        prop_assert_eq!(is.content_warning, edit.content_warning.unwrap_or(was.content_warning));
        prop_assert_eq!(is.mentions, edit.mentions.unwrap_or(was.mentions));
        prop_assert_eq!(is.hashtags, edit.hashtags.unwrap_or(was.hashtags));
        prop_assert_eq!(is.attachments, edit.attachments.unwrap_or(was.attachments));
        prop_assert_eq!(is.location, edit.location.unwrap_or(was.location));
        prop_assert_eq!(is.fields, edit.fields.unwrap_or(was.fields));
        prop_assert_eq!(after.audience(), before.audience());
        prop_assert_eq!(after.header().is_sensitive(), edit.sensitive.unwrap_or(draft.sensitive));
        let language = edit.language.unwrap_or(draft.language);
        prop_assert_eq!(after.header().language(), language.as_deref());
        // All of the header but revision, sensitive flag and language.
        let (mut old, mut new) = (stored[..80].to_vec(), after.encode()[..80].to_vec());
        prop_assert_eq!(&new[4..8], (revision + 1).to_be_bytes());
        for header in [&mut old, &mut new] {
            header[3] &= !1;
            header[4..8].fill(0);
            header[56..64].fill(0);
        }
        prop_assert_eq!(new, old);
    }
}

#[test]
fn mentions_that_are_edited_let_nobody_into_a_direct_post() {
    let draft = Draft::text("only you").visibility(Visibility::Direct).mentions([account(1), account(2)]);
    let edit = Edit { mentions: Some(vec![account(3)]), ..Edit::default() };
    let post = Post::parse(&Post::new(account(7), &draft).edited(&edit).encode()).unwrap();
    assert_eq!(post.content().mentions, [account(3)]);
    assert_eq!(post.audience(), Audience::Only(&[account(1), account(2)]));
    assert!(post.admits(account(7)) && !post.admits(account(3)));
}

#[test]
fn the_largest_post_that_passes_the_check_is_stored() {
    let accounts = |n: usize| (1..=n as u64).map(account);
    let draft = Draft::text("\u{1F30A}".repeat(TEXT_CHARS_DEFAULT))
        .only_to(accounts(AUDIENCE_MAX))
        .mentions(accounts(MENTIONS_MAX))
        .hashtags((0..HASHTAGS_MAX).map(|i| format!("{i:0HASHTAG_LEN_MAX$}")))
        .attachments(vec![1; ATTACHMENTS_MAX])
        .location(vec![2; LOCATION_MAX])
        .field("k".repeat(FIELD_KEY_LEN_MAX), vec![3; FIELDS_MAX - FIELD_KEY_LEN_MAX - 3])
        .token("t".repeat(TOKEN_LEN_MAX))
        .language("x".repeat(LANGUAGE_LEN_MAX));
    draft.check(TEXT_CHARS_DEFAULT).unwrap();
    let post = Post::new(account(7), &draft);
    assert!(post.encode().len() <= 40_000, "docs/abuse.md says so: {}", post.encode().len());
    assert_eq!(Post::parse(&post.encode()).unwrap(), post);

    let draft = Draft::text("a".repeat(TEXT_BYTES_MAX)).content_warning("b".repeat(TEXT_BYTES_MAX));
    draft.check(usize::MAX).unwrap();
    let post = Post::new(account(7), &draft);
    assert_eq!(Post::parse(&post.encode()).unwrap(), post);
}

#[test]
#[should_panic(expected = "a draft is checked before it becomes a post")]
fn a_draft_that_the_check_refuses_never_becomes_a_post() {
    let _ = Post::new(account(7), &Draft::text("x").visibility(Visibility::Direct));
}
