use super::*;
use crate::account::{AccountKind, Mode};
use crate::ids::PostId;
use crate::post::{Draft, PostRef};

use HiddenBecause as Because;

const READER: u64 = 1;
const FOLLOWED: u64 = 2;
const MUTED: u64 = 3;
const BLOCKED: u64 = 4;
const STRANGER: u64 = 5;
const RULES: Rules = Rules { replies_to_strangers: false, leaves_out: true };

fn id(id: u64) -> AccountId {
    AccountId::new(id).unwrap()
}

fn state() -> ReaderState {
    ReaderState::of(&[FOLLOWED, MUTED], &[MUTED], &[BLOCKED])
}

fn author(number: u64, state: AccountState) -> Account {
    Account {
        id: id(number),
        kind: AccountKind::Person,
        state,
        is_locked: false,
        mode: Mode::Push,
        pushed_since: 0,
        posts: 1,
        following: 0,
        followers: 0,
        uncounted_since: None,
        login: None,
        registered_ms: None,
        profile: None,
        blocks: 0,
        hides: 0,
    }
}

/// The verdict on a post of `number` at home.
fn at_home(number: u64, draft: &Draft) -> Result<(), Because> {
    let (post, author) = (Post::new(id(number), draft), author(number, AccountState::Active));
    let met = MetPost { post: &post, author: &author, is_restricted: false, writer: None };
    shown_at_home(RULES, id(READER), &state(), SeenPost { met, original: None, quoted: None })
}

fn reply_to(number: u64) -> Draft {
    Draft::text("so it is").reply_to(PostRef { id: PostId::from_u64(9).unwrap(), author: id(number) })
}

fn repost() -> Draft {
    Draft::repost(PostRef { id: PostId::from_u64(9).unwrap(), author: id(STRANGER) })
}

#[test]
fn each_reason_at_home_is_told() {
    let text = || Draft::text("hello");
    let cases = [
        (FOLLOWED, text(), Ok(())),
        (READER, text(), Ok(())),
        (STRANGER, text(), Err(Because::NotFollowed)),
        (MUTED, text(), Err(Because::Muted)),
        (FOLLOWED, text().only_to([id(7)]), Err(Because::NotInAudience)),
        (FOLLOWED, text().not_to([id(READER)]), Err(Because::NotInAudience)),
        (FOLLOWED, reply_to(FOLLOWED), Ok(())),
        (FOLLOWED, reply_to(READER), Ok(())),
        (FOLLOWED, reply_to(STRANGER), Err(Because::ReplyToStranger)),
        (FOLLOWED, reply_to(MUTED), Err(Because::ReplyToMuted)),
        (FOLLOWED, reply_to(BLOCKED), Err(Because::ReplyToMuted)),
        (READER, reply_to(BLOCKED), Ok(())),
        (FOLLOWED, text().mentions([id(STRANGER), id(MUTED)]), Err(Because::MentionsMuted)),
        (FOLLOWED, text().mentions([id(BLOCKED)]), Err(Because::MentionsMuted)),
        (FOLLOWED, text().mentions([id(STRANGER), id(READER)]), Ok(())),
        (READER, text().mentions([id(BLOCKED)]), Ok(())),
        (FOLLOWED, repost(), Err(Because::OriginalGone)),
    ];
    for (number, draft, wanted) in cases {
        assert_eq!(at_home(number, &draft), wanted, "{number}: {draft:?}");
    }
}

#[test]
fn a_stranger_shows_on_its_own_page_unless_one_of_both_forbids_it() {
    let on_profile = |number: u64, account_state: AccountState, draft: &Draft, is_restricted: bool| {
        let (post, author) = (Post::new(id(number), draft), author(number, account_state));
        let met = MetPost { post: &post, author: &author, is_restricted, writer: None };
        shown_on_profile(id(READER), &state(), SeenPost { met, original: None, quoted: None })
    };
    let text = Draft::text("hello");
    let active = AccountState::Active;
    assert_eq!(on_profile(STRANGER, active, &text, false), Ok(()));
    assert_eq!(on_profile(MUTED, active, &text, false), Ok(()));
    assert_eq!(on_profile(BLOCKED, active, &text, false), Err(Because::Blocked));
    assert_eq!(on_profile(STRANGER, active, &text, true), Err(Because::Restricted));
    assert_eq!(on_profile(STRANGER, AccountState::Limited, &text, false), Err(Because::AuthorLimited));
    assert_eq!(on_profile(FOLLOWED, AccountState::Limited, &text, false), Ok(()));
    for gone in [AccountState::Suspended, AccountState::Deleted] {
        assert_eq!(on_profile(FOLLOWED, gone, &text, false), Err(Because::AuthorInactive));
        assert_eq!(on_profile(READER, gone, &text, false), Err(Because::AuthorInactive));
    }
    let for_followers = Draft::text("hello").visibility(Visibility::Followers);
    assert_eq!(on_profile(STRANGER, active, &for_followers, false), Err(Because::NotInAudience));
    assert_eq!(on_profile(FOLLOWED, active, &for_followers, false), Ok(()));
    let to_me = for_followers.clone().mentions([id(READER)]);
    assert_eq!(on_profile(STRANGER, active, &to_me, false), Ok(()));
    assert_eq!(on_profile(STRANGER, active, &to_me, true), Err(Because::Restricted));
    let limited = AccountState::Limited;
    assert_eq!(on_profile(STRANGER, limited, &to_me, false), Err(Because::AuthorLimited));
    let direct = Draft::text("psst").visibility(Visibility::Direct).mentions([id(READER)]);
    assert_eq!(on_profile(STRANGER, active, &direct, false), Ok(()));
    assert_eq!(on_profile(STRANGER, limited, &direct, false), Err(Because::AuthorLimited));
    assert_eq!(on_profile(FOLLOWED, limited, &direct, false), Ok(()));
    let to_others = for_followers.mentions([id(7)]);
    assert_eq!(on_profile(STRANGER, active, &to_others, false), Err(Because::NotInAudience));
}

#[test]
fn a_repost_shows_only_with_what_it_reposts() {
    let state = state();
    let (post, author_of_repost) =
        (Post::new(id(FOLLOWED), &repost()), author(FOLLOWED, AccountState::Active));
    let met = MetPost { post: &post, author: &author_of_repost, is_restricted: false, writer: None };
    let with = |number: u64, is_restricted: bool| {
        let (post, author) =
            (Post::new(id(number), &Draft::text("hello")), author(number, AccountState::Active));
        let original = Some(MetPost { post: &post, author: &author, is_restricted, writer: None });
        shown_at_home(RULES, id(READER), &state, SeenPost { met, original, quoted: None })
    };
    assert_eq!(with(STRANGER, false), Ok(()));
    assert_eq!(with(STRANGER, true), Err(Because::OriginalHidden));
    assert_eq!(with(BLOCKED, false), Err(Because::OriginalHidden));
    assert_eq!(with(MUTED, false), Err(Because::OriginalMuted));
}

#[test]
fn what_mentions_somebody_unwanted_shows_on_pages_where_it_is_looked_for_and_is_not_brought_home() {
    let (state, active) = (state(), AccountState::Active);
    let author_of = |number: u64| author(number, active);
    let naming = |draft: Draft| draft.mentions([id(BLOCKED)]);
    let quote =
        Draft::text("look").quoting(PostRef { id: PostId::from_u64(9).unwrap(), author: id(STRANGER) });
    for (by, draft, of, wanted) in [
        (FOLLOWED, repost(), STRANGER, Err(Because::MentionsMuted)),
        // What a quote says itself counts, and not what it quotes.
        (FOLLOWED, quote.clone(), STRANGER, Ok(())),
        (FOLLOWED, naming(quote), STRANGER, Err(Because::MentionsMuted)),
        // The reader's own words come back to it.
        (FOLLOWED, repost(), READER, Ok(())),
        (READER, repost(), STRANGER, Ok(())),
    ] {
        let (post, original) = (Post::new(id(by), &draft), Post::new(id(of), &naming(Draft::text("hello"))));
        let (by, of) = (author_of(by), author_of(of));
        let met = |post, author| MetPost { post, author, is_restricted: false, writer: None };
        let seen = SeenPost { met: met(&post, &by), original: Some(met(&original, &of)), quoted: None };
        assert_eq!(shown_at_home(RULES, id(READER), &state, seen), wanted, "{by:?}: {draft:?}");
        assert_eq!(shown_on_profile(id(READER), &state, seen), Ok(()));
        assert_eq!(shown_on_list(id(READER), &state, seen), Ok(()));
    }
}

#[test]
fn plain_reposts_of_whom_they_are_left_out_show_on_its_page_and_nowhere_at_home() {
    let without = state().remarking(&[READER, FOLLOWED], &[]);
    let stranger = author(STRANGER, AccountState::Active);
    let quoted = Post::new(id(STRANGER), &Draft::text("hello"));
    let original = Some(MetPost { post: &quoted, author: &stranger, is_restricted: false, writer: None });
    let of = PostRef { id: PostId::from_u64(9).unwrap(), author: id(STRANGER) };
    for (number, draft, wanted) in [
        (FOLLOWED, repost(), Err(Because::RepostLeftOut)),
        (FOLLOWED, Draft::text("look").quoting(of), Ok(())),
        (FOLLOWED, Draft::text("hello"), Ok(())),
        // One's own show.
        (READER, repost(), Ok(())),
    ] {
        let (post, author) = (Post::new(id(number), &draft), author(number, AccountState::Active));
        let met = MetPost { post: &post, author: &author, is_restricted: false, writer: None };
        let seen = SeenPost { met, original, quoted: None };
        assert_eq!(shown_at_home(RULES, id(READER), &without, seen), wanted, "{number}: {draft:?}");
        assert_eq!(shown_on_profile(id(READER), &without, seen), Ok(()));
    }
}

#[test]
fn whoever_is_left_out_of_home_shows_elsewhere_and_in_reposts_of_others() {
    let without = state().leaving_out(&[READER, FOLLOWED, STRANGER]);
    let shown = |rules: Rules, number: u64, draft: &Draft| {
        let (post, author) = (Post::new(id(number), draft), author(number, AccountState::Active));
        let met = MetPost { post: &post, author: &author, is_restricted: false, writer: None };
        shown_at_home(rules, id(READER), &without, SeenPost { met, original: None, quoted: None })
    };
    let text = Draft::text("hello");
    assert_eq!(shown(RULES, FOLLOWED, &text), Err(Because::AuthorLeftOut));
    assert_eq!(shown(RULES, STRANGER, &text), Err(Because::NotFollowed));
    assert_eq!(shown(RULES, READER, &text), Ok(()), "one's own show");
    assert_eq!(shown(Rules { leaves_out: false, ..RULES }, FOLLOWED, &text), Ok(()));
    // It is who passes on that counts.
    let (passed_on, stranger) = (Post::new(id(STRANGER), &text), author(STRANGER, AccountState::Active));
    let original = Some(MetPost { post: &passed_on, author: &stranger, is_restricted: false, writer: None });
    let without_stranger = state().leaving_out(&[STRANGER]);
    let (post, by) = (Post::new(id(FOLLOWED), &repost()), author(FOLLOWED, AccountState::Active));
    let seen = SeenPost {
        met: MetPost { post: &post, author: &by, is_restricted: false, writer: None },
        original,
        quoted: None,
    };
    assert_eq!(shown_at_home(RULES, id(READER), &without_stranger, seen), Ok(()));
    assert_eq!(shown_at_home(RULES, id(READER), &without, seen), Err(Because::AuthorLeftOut));
}

#[test]
fn whom_one_reads_in_some_languages_shows_in_others_elsewhere_alone() {
    let reads = state().reading(id(FOLLOWED), &["en"]).reading(id(READER), &["en"]);
    for (number, draft, wanted) in [
        (FOLLOWED, Draft::text("hello").language("en-GB"), Ok(())),
        (FOLLOWED, Draft::text("hello"), Ok(())),
        (FOLLOWED, Draft::text("hallo").language("de"), Err(Because::LanguageUnwanted)),
        (READER, Draft::text("hallo").language("de"), Ok(())),
    ] {
        let (post, author) = (Post::new(id(number), &draft), author(number, AccountState::Active));
        let met = MetPost { post: &post, author: &author, is_restricted: false, writer: None };
        let seen = SeenPost { met, original: None, quoted: None };
        assert_eq!(shown_at_home(RULES, id(READER), &reads, seen), wanted, "{number}: {draft:?}");
        assert_eq!(shown_on_profile(id(READER), &reads, seen), Ok(()));
    }
}

#[test]
fn a_repost_of_a_quote_shows_only_to_whom_the_quote_does() {
    let of =
        |number: u64, draft: &Draft| (Post::new(id(number), draft), author(number, AccountState::Active));
    let quote =
        Draft::text("look at this").quoting(PostRef { id: PostId::from_u64(8).unwrap(), author: id(6) });
    let (reposted, quoting) = (of(FOLLOWED, &repost()), of(STRANGER, &quote));
    let with = |number: Option<u64>, is_restricted: bool| {
        let quoted = number.map(|number| of(number, &Draft::text("hello")));
        let seen = SeenPost {
            met: MetPost { post: &reposted.0, author: &reposted.1, is_restricted: false, writer: None },
            original: Some(MetPost {
                post: &quoting.0,
                author: &quoting.1,
                is_restricted: false,
                writer: None,
            }),
            quoted: quoted.as_ref().map(|(post, author)| MetPost {
                post,
                author,
                is_restricted,
                writer: None,
            }),
        };
        shown_at_home(RULES, id(READER), &state(), seen)
    };
    assert_eq!(with(Some(6), false), Ok(()));
    assert_eq!(with(None, false), Ok(()));
    assert_eq!(with(Some(6), true), Err(Because::OriginalHidden));
    assert_eq!(with(Some(BLOCKED), false), Err(Because::OriginalHidden));
    assert_eq!(with(Some(MUTED), false), Err(Because::OriginalMuted));
}

#[test]
fn what_a_member_posts_into_a_group_shows_by_both_of_them() {
    let group = author(FOLLOWED, AccountState::Active);
    let because = |writer: u64, state_of: AccountState, is_restricted, visibility| {
        let draft = Draft { visibility: Some(visibility), ..Draft::text("hello") };
        let post = Post::new(id(FOLLOWED), &draft).written_by(id(writer));
        let account = author(writer, state_of);
        let writer = Some(MetWriter { account: &account, is_restricted });
        let met = MetPost { post: &post, author: &group, is_restricted: false, writer };
        let seen = SeenPost { met, original: None, quoted: None };
        let state = state();
        let shown = [
            shown_at_home(RULES, id(READER), &state, seen),
            shown_on_list(id(READER), &state, seen),
            shown_on_profile(id(READER), &state, seen),
        ];
        shown.map(Result::err)
    };
    let active = AccountState::Active;
    for visibility in [Visibility::Public, Visibility::Followers] {
        assert_eq!(because(STRANGER, active, false, visibility), [None; 3]);
        assert_eq!(because(READER, active, false, visibility), [None; 3]);
        // As whom the reader mutes: on its own page, which the group's is, it shows.
        let muted = Some(Because::Muted);
        assert_eq!(because(MUTED, active, false, visibility), [muted, muted, None]);
        assert_eq!(because(BLOCKED, active, false, visibility), [Some(Because::Blocked); 3]);
        assert_eq!(because(STRANGER, active, true, visibility), [Some(Because::Restricted); 3]);
        let suspended = because(STRANGER, AccountState::Suspended, false, visibility);
        assert_eq!(suspended, [Some(Because::AuthorInactive); 3]);
        let limited = because(STRANGER, AccountState::Limited, false, visibility);
        assert_eq!(limited, [Some(Because::AuthorLimited); 3]);
    }
    // A mention leads nobody in who doesn't follow.
    let post = Post::new(
        id(STRANGER),
        &Draft::text("hello").mentions([id(READER)]).visibility(Visibility::Followers),
    );
    let closed = author(STRANGER, AccountState::Active);
    assert_eq!(open_to(id(READER), &closed, &post), Ok(None));
    assert_eq!(open_to(id(READER), &closed, &post.written_by(id(9))), Ok(Some(Because::NotInAudience)));
}
