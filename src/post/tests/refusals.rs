//! Drafts and edits that are refused.

use super::*;

#[track_caller]
fn refused(draft: &Draft, because: &str) {
    says(draft.check(TEXT_CHARS_DEFAULT), because);
}

#[track_caller]
fn says(result: crate::Result<()>, because: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains(because), "{error} lacks {because:?}");
}

fn draft() -> Draft {
    Draft::text("tide")
}

fn accounts(count: usize) -> Vec<AccountId> {
    (1..=count as u64).map(account).collect()
}

#[test]
fn a_text_has_a_limit_in_characters_that_its_warning_shares() {
    let full = Draft::text("é".repeat(10));
    full.check(10).unwrap();
    says(full.check(9), "10 characters together; at most 9");
    says(full.content_warning("w").check(10), "11 characters together; at most 10");
}

#[test]
fn no_setting_of_the_text_limit_lets_a_text_outgrow_its_section() {
    let long = "a".repeat(TEXT_BYTES_MAX + 1);
    says(Draft::text(&long).check(usize::MAX), "text: 65536 bytes");
    says(draft().content_warning(&long).check(usize::MAX), "content warning: 65536 bytes");
    says(Draft::text("é".repeat(TEXT_BYTES_MAX / 2 + 1)).check(TEXT_BYTES_MAX), "text: 65536 bytes");
}

#[test]
fn a_post_has_something_in_it() {
    refused(&Draft::text(" \n"), "empty");
    refused(&Draft::text("").content_warning("w").location("here").hashtags(["t"]), "empty");
    refused(&draft().content_warning(""), "content warning: 0 bytes");
    Draft::text("").attachments([1]).check(TEXT_CHARS_DEFAULT).unwrap();
    Draft::repost(reference(1, 2)).check(TEXT_CHARS_DEFAULT).unwrap();
}

#[test]
fn an_audience_is_named_once_and_in_one_way() {
    let direct = draft().visibility(Visibility::Direct);
    refused(&direct, "a direct post without readers");
    refused(&direct.clone().not_to(accounts(1)), "a direct post without readers");
    refused(
        &direct.clone().mentions(accounts(2)).not_to(accounts(1)),
        "names 2 accounts that may read it and 1 that may not",
    );
    refused(
        &draft().only_to(accounts(3)).not_to(accounts(1)),
        "names 3 accounts that may read it and 1 that may not",
    );
    direct.clone().only_to(accounts(1)).check(TEXT_CHARS_DEFAULT).unwrap();
    direct.mentions(accounts(1)).check(TEXT_CHARS_DEFAULT).unwrap();
    // Elsewhere mentions are no audience.
    draft().mentions(accounts(1)).not_to(accounts(1)).check(TEXT_CHARS_DEFAULT).unwrap();
}

#[test]
fn lists_have_a_limit_and_no_entry_twice() {
    refused(&draft().only_to(accounts(501)), "only_to: 501 entries; at most 500");
    refused(&draft().not_to(accounts(501)), "not_to: 501 entries; at most 500");
    refused(&draft().mentions(accounts(51)), "mentions: 51 entries; at most 50");
    refused(&draft().hashtags((0..31).map(|i| i.to_string())), "hashtags: 31 entries; at most 30");
    let twice = || [account(5), account(5)];
    refused(&draft().only_to(twice()), "only_to: AccountId(5) is named twice");
    refused(&draft().not_to(twice()), "not_to: AccountId(5)");
    refused(&draft().mentions(twice()), "mentions: AccountId(5)");
    refused(&draft().hashtags(["tide", "tide"]), "hashtags: \"tide\"");
    refused(&draft().field("k", "1").field("k", "2"), "fields: \"k\"");
}

#[test]
fn bytes_have_limits() {
    refused(&draft().hashtags(["ok", ""]), "hashtag 2: 0 bytes; 1 to 100 are allowed");
    refused(&draft().hashtags(["é".repeat(51)]), "hashtag 1: 102 bytes");
    refused(&draft().attachments([0; ATTACHMENTS_MAX + 1]), "attachments: 4097 bytes");
    refused(&draft().location([0; LOCATION_MAX + 1]), "location: 257 bytes");
    refused(&draft().field("k", [0; FIELDS_MAX - 3]), "fields with their lengths: 4097 bytes");
    refused(&draft().field("", "v"), "field key \"\": 0 bytes");
    refused(&draft().field("k".repeat(256), "v"), "256 bytes; 1 to 255 are allowed");
    refused(&draft().token(""), "token: 0 bytes");
    refused(&draft().token("t".repeat(65)), "token: 65 bytes; 1 to 64 are allowed");
    refused(&draft().language(""), "language: 0 bytes");
    refused(&draft().language("en-GB-oed"), "language: 9 bytes");
    refused(&draft().language("en_GB"), "language \"en_GB\": only ASCII");
    refused(&draft().language("e\0"), "only ASCII");
}

#[test]
fn post_0_cannot_be_named() {
    let none = reference(0, 1);
    refused(&Draft::repost(none), "repost_of is post 0");
    refused(&draft().reply_to(none), "reply_to is post 0");
    refused(&draft().conversation(none.id), "conversation is post 0");
}

#[test]
fn an_edit_makes_nothing_that_a_draft_could_not_be() {
    let post = Post::new(account(7), &draft().content_warning("sea"));
    let empty = Edit { text: Some(String::new()), ..Edit::default() };
    says(empty.check(&post, 10), "empty");
    let long = Edit { text: Some("a".repeat(8)), ..Edit::default() };
    says(long.check(&post, 10), "11 characters together; at most 10");
    Edit { content_warning: Some(None), ..long }.check(&post, 10).unwrap();
    let language = Edit { language: Some(Some("e n".into())), ..Edit::default() };
    says(language.check(&post, 10), "only ASCII");
    let repost = Post::new(account(7), &Draft::text("so").quoting(reference(1, 2)));
    says(empty.check(&repost, 10), "cannot turn a repost into a quote");
}

#[test]
fn a_plain_repost_says_nothing_itself() {
    let repost = || Draft::repost(reference(1, 2));
    let said = [
        (repost().hashtags(["tide"]), "hashtags"),
        (repost().mentions(accounts(1)), "mentions"),
        (repost().content_warning("sea"), "a content warning"),
        (repost().reply_to(reference(3, 4)), "a post that it answers"),
    ];
    for (draft, what) in &said {
        refused(draft, what);
        let mut quote = draft.clone();
        quote.content.text = "so".into();
        quote.check(TEXT_CHARS_DEFAULT).unwrap();
    }
    let post = Post::new(account(7), &repost());
    let edits = [
        (Edit { hashtags: Some(vec!["tide".into()]), ..Edit::default() }, "hashtags"),
        (Edit { mentions: Some(accounts(1)), ..Edit::default() }, "mentions"),
        (Edit { content_warning: Some(Some("sea".into())), ..Edit::default() }, "a content warning"),
    ];
    for (edit, what) in &edits {
        says(edit.check(&post, TEXT_CHARS_DEFAULT), what);
    }
    Edit { sensitive: Some(true), ..Edit::default() }.check(&post, TEXT_CHARS_DEFAULT).unwrap();
}
