//! Stored bytes: where things stand, what is refused, what survives.

use super::super::layout::*;
use super::*;

fn plain() -> Vec<u8> {
    Post::new(account(7), &Draft::text("tide")).encode()
}

fn section(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[tag], &len[..], bytes].concat()
}

/// The whole story of a refusal: bytes are broken, whoever wrote them.
fn refusal(bytes: &[u8]) -> String {
    let error = Post::parse(bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    error.to_string()
}

#[track_caller]
fn refused(bytes: &[u8], because: &str) {
    let message = refusal(bytes);
    assert!(message.contains(because), "{message:?} lacks {because:?}");
}

fn with(mut bytes: Vec<u8>, at: usize, value: &[u8]) -> Vec<u8> {
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

#[test]
fn every_offset_is_where_the_functions_on_the_server_expect_it() {
    let draft = Draft::text("tide")
        .quoting(reference(0x1111, 0x2222))
        .reply_to(reference(0x3333, 0x4444))
        .conversation(PostId::from_u64(0x5555).unwrap())
        .visibility(Visibility::Followers)
        .language("pt-BR")
        .only_to([account(9)])
        .sensitive();
    let stored = Post::new(account(0x6666), &draft).encode();
    let u64_at = |at: usize| u64::from_be_bytes(stored[at..at + 8].try_into().unwrap());
    assert_eq!((stored[VERSION_OFFSET], stored[VISIBILITY_OFFSET]), (VERSION, 2));
    assert_eq!(stored[FLAGS_OFFSET..REVISION_OFFSET], (FLAG_SENSITIVE | FLAG_ONLY_TO).to_be_bytes());
    assert_eq!(u64_at(AUTHOR_OFFSET), 0x6666);
    assert_eq!((u64_at(ORIGINAL_OFFSET), u64_at(ORIGINAL_AUTHOR_OFFSET)), (0x1111, 0x2222));
    assert_eq!((u64_at(REPLY_TO_OFFSET), u64_at(REPLY_TO_AUTHOR_OFFSET)), (0x3333, 0x4444));
    assert_eq!(u64_at(CONVERSATION_OFFSET), 0x5555);
    assert_eq!(&stored[LANGUAGE_OFFSET..LIKES_OFFSET], b"pt-BR\0\0\0");
    assert_eq!(stored[HEADER_LEN..], [&[1, 0, 4][..], b"tide", &[3, 0, 8], &account(9).to_bytes()].concat());

    for (at, value) in [(REVISION_OFFSET, 1), (LIKES_OFFSET, 2), (REPOSTS_OFFSET, 3), (REPLIES_OFFSET, 4)] {
        let header = PostHeader::parse(&with(stored.clone(), at, &u32::to_be_bytes(value))).unwrap();
        let read = [header.revision, header.likes, header.reposts, header.replies];
        let mut expected = [0; 4];
        expected[value as usize - 1] = value;
        assert_eq!(read, expected);
    }
    let kept = with(stored, MODERATED_OFFSET, &[1, 2, 3, 4]);
    assert_eq!(Post::parse(&kept).unwrap().encode(), kept);
}

#[test]
fn the_numbers_of_the_layout_never_change() {
    let offsets = [
        VERSION_OFFSET,
        VISIBILITY_OFFSET,
        FLAGS_OFFSET,
        REVISION_OFFSET,
        AUTHOR_OFFSET,
        ORIGINAL_OFFSET,
        ORIGINAL_AUTHOR_OFFSET,
        REPLY_TO_OFFSET,
        REPLY_TO_AUTHOR_OFFSET,
        CONVERSATION_OFFSET,
        LANGUAGE_OFFSET,
        LIKES_OFFSET,
        REPOSTS_OFFSET,
        REPLIES_OFFSET,
        QUOTES_OFFSET,
        MODERATED_OFFSET,
        HEADER_LEN,
    ];
    assert_eq!(offsets, [0, 1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 68, 72, 76, 80, 84]);
    assert_eq!([VERSION, TAG_TEXT, TAG_CONTENT_WARNING, TAG_ONLY_TO, TAG_NOT_TO], [1, 1, 2, 3, 4]);
    assert_eq!([TAG_MENTIONS, TAG_HASHTAGS, TAG_ATTACHMENTS, TAG_LOCATION, TAG_FIELDS], [5, 6, 7, 8, 9]);
    assert_eq!([TAG_LISTED_BEFORE, TAG_EDITED, TAG_EARLIER, TAG_WRITER], [10, 11, 12, 13]);
    assert_eq!([FLAG_SENSITIVE, FLAG_ONLY_TO, FLAG_NOT_TO, FLAG_BY_MEMBER], [1, 2, 4, 8]);
}

#[test]
fn who_wrote_a_post_into_a_group_stands_in_it_and_stays() {
    let (group, member) = (account(7), account(9));
    let post =
        Post::new(group, &Draft::text("tide").group(group).mentions([member, group])).written_by(member);
    let stored = post.encode();
    let read = Post::parse(&stored).unwrap();
    assert_eq!((read.writer(), read.group(), read.header().author), (member, Some(group), group));
    assert_eq!(read, post);
    assert_eq!(stored[stored.len() - 11..], section(TAG_WRITER, &member.to_bytes()));
    // Functions read it where a member's post is listed.
    assert_eq!(stored[FLAGS_OFFSET + 1] & 8, 8);
    assert!(include_str!("../../functions/lua/prelude.lua").contains("local BY_MEMBER = 8\n"));
    let edited = read.edited(&Edit { text: Some("ebb".into()), ..Edit::default() });
    assert_eq!((edited.writer(), edited.group()), (member, Some(group)));
    assert!(!edited.mentions(member) && !edited.mentions(group), "whoever mentions itself knows");
    let own = Post::parse(&plain()).unwrap();
    assert_eq!((own.writer(), own.group()), (account(7), None));
    refused(
        &[plain(), section(TAG_WRITER, &[account(9).to_bytes(), account(8).to_bytes()].concat())].concat(),
        "no writer",
    );
}

#[test]
fn a_header_is_read_without_its_sections() {
    let stored = [plain(), vec![0xFF; 9]].concat();
    assert!(Post::parse(&stored).is_err());
    let header = PostHeader::parse(&stored).unwrap();
    assert_eq!(header, PostHeader::parse(&stored[..HEADER_LEN]).unwrap());
    assert!(!header.is_repost() && !header.is_reply() && !header.is_edited() && !header.is_sensitive());
    assert_eq!((header.author, header.language()), (account(7), None));
}

#[test]
fn sections_and_flags_of_a_newer_release_survive_reading_writing_and_an_edit() {
    let newer =
        [section(14, b"poll"), section(200, b""), section(200, b"two"), section(255, &[0; 300])].concat();
    let stored = with([plain(), newer.clone()].concat(), FLAGS_OFFSET, &[0xF0, 0xF0]);
    let post = Post::parse(&stored).unwrap();
    assert_eq!(post.encode(), stored);
    let edit = Edit { text: Some("ebb".into()), location: Some(b"here".to_vec()), ..Edit::default() };
    let edited = post.edited(&edit).encode();
    assert!(edited.ends_with(&newer));
    assert_eq!(edited[FLAGS_OFFSET..REVISION_OFFSET], [0xF0, 0xF0]);
}

#[test]
fn broken_headers_are_refused() {
    refused(b"", "0 bytes, not 84");
    refused(&plain()[..83], "83 bytes, not 84");
    refused(&with(plain(), VERSION_OFFSET, &[2]), "format version 2, this release reads 1");
    refused(&with(plain(), VISIBILITY_OFFSET, &[4]), "visibility 4");
    refused(&with(plain(), AUTHOR_OFFSET, &[0; 8]), "account id 0");
    refused(&with(plain(), ORIGINAL_OFFSET, &[0xFF; 8]), "at byte 16: post id");
    refused(&with(plain(), ORIGINAL_OFFSET, &[1; 8]), "at byte 24: account id 0");
    refused(&with(plain(), REPLY_TO_AUTHOR_OFFSET, &[1; 8]), "of no post");
    refused(&with(plain(), LANGUAGE_OFFSET, b"e\0n"), "language");
}

#[test]
fn a_post_whose_audience_is_in_doubt_is_refused() {
    let only = section(TAG_ONLY_TO, &account(9).to_bytes());
    let not = section(TAG_NOT_TO, &account(9).to_bytes());
    let flagged = |flags: u8| with(plain(), FLAGS_OFFSET, &[0, flags]);
    refused(&flagged(2), "flags say only-to true");
    refused(&flagged(4), "not-to true");
    refused(&[plain(), only.clone()].concat(), "flags say only-to false");
    refused(&[plain(), not.clone()].concat(), "not-to false");
    refused(&[flagged(6), only.clone(), not].concat(), "both the only readers and those left out");
    refused(&with(plain(), VISIBILITY_OFFSET, &[3]), "names no readers");
    refused(&[flagged(2), only.clone(), only].concat(), "section 3 after section 3");
    refused(&[flagged(2), section(TAG_ONLY_TO, b"")].concat(), "section 3 is empty");
}

#[test]
fn broken_sections_are_refused() {
    let and = |section: Vec<u8>| [plain(), section].concat();
    refused(&and(vec![5]), "cut off");
    refused(&and(vec![5, 0, 8, 1]), "section 5: cut off: 8 bytes announced, 1 there");
    // What Redis puts between the end and an offset that lies behind it.
    refused(&and(vec![0; 6]), "section 0 after section 1");
    refused(&and([section(14, b"x"), section(9, b"\x01k\0\0")].concat()), "section 9 after section 14");
    refused(&and(section(2, b"\xFF")), "section 2: 1 bytes: invalid utf-8");
    refused(&and(section(5, &[1; 12])), "12 bytes are no list of accounts");
    refused(&and(section(5, &[0; 8])), "section 5: account id 0");
    refused(&and(section(6, b"\x05tide")), "section 6: cut off");
    refused(&and(section(6, b"\x01\xFF")), "section 6: 1 bytes: invalid utf-8");
    refused(&and(section(9, b"\x01k\0\x02v")), "section 9: cut off");
    refused(&and(section(10, b"mfour")), "section 10: 5 bytes are no lists");
    refused(&and(section(10, &[b'x'; 9])), "section 10: a list xxxxxxxxx is none");
    refused(&and(section(11, b"x")), "section 11: 1 bytes are no time");
    refused(&and(section(12, b"x")), "section 12: cut off");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_come_back_to_the_byte(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(Post::parse(&bytes).is_err() || Post::parse(&bytes).unwrap().encode() == bytes);
        // The same with a good header, so that the sections are reached.
        let stored = [&plain()[..HEADER_LEN], &bytes].concat();
        match Post::parse(&stored) {
            Ok(post) => prop_assert_eq!(post.encode(), stored),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Internal),
        }
    }

    #[test]
    fn a_post_that_is_cut_off_or_has_flipped_bits_is_refused_or_comes_back_to_the_byte(
        draft in any_draft(), cut: prop::sample::Index, flips in vec((any::<prop::sample::Index>(), 0..8), 0..4)
    ) {
        let mut stored = Post::new(account(7), &draft).encode();
        stored.truncate(cut.index(stored.len()) + 1);
        for (at, bit) in flips {
            let at = at.index(stored.len());
            stored[at] ^= 1_u8 << bit;
        }
        match Post::parse(&stored) {
            Ok(post) => prop_assert_eq!(post.encode(), stored),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Internal),
        }
    }
}
