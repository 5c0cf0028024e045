//! What can be out of step: each kind, and what tells one such thing from another. Pure.

use std::fmt;

use serde::Serialize;

use super::unit::Unit;
use crate::bucket::Bucket;
use crate::ids::{AccountId, Claim, PostId};
use crate::nonce::Nonce;
use crate::post::{PostList, PostRef};
use crate::reader::Tie;
use crate::sharded::{LocalKey, Spot};

macro_rules! kinds {
    ($($kind:ident $label:literal,)*) => {
        /// A kind of deviation; docs/fsck.md tells of each what it means and what a repair does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[non_exhaustive]
        pub enum FindingKind {
            $(#[doc = concat!("`", $label, "`.")] #[serde(rename = $label)] $kind,)*
        }

        impl FindingKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name in reports and metrics.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$kind => $label,)*
                }
            }
        }
    };
}

kinds! {
    EdgeMissing "edge_missing",
    EdgeOld "edge_old",
    EdgeNeedless "edge_needless",
    FollowsNobody "follows_nobody",
    MarkMissing "mark_missing",
    MarkOfStranger "mark_of_stranger",
    MarkMayGo "mark_may_go",
    RequestOutOfStep "request_out_of_step",
    EntryMissing "entry_missing",
    WatermarkLies "watermark_lies",
    HomeWithoutFloor "home_without_floor",
    HomeTooLong "home_too_long",
    HomeUnlisted "home_unlisted",
    FillHalted "fill_halted",
    CountWrong "count_wrong",
    ModeStuck "mode_stuck",
    BurialStuck "burial_stuck",
    PostGone "post_gone",
    PostUnlisted "post_unlisted",
    PostAfterDelete "post_after_delete",
    ListingMissing "listing_missing",
    ListingNeedless "listing_needless",
    ListOrphaned "list_orphaned",
    PostCountWrong "post_count_wrong",
    TieUnlisted "tie_unlisted",
    TieNeedless "tie_needless",
    TieOfNothing "tie_of_nothing",
    RepostUnnoted "repost_unnoted",
    RepostNoteNeedless "repost_note_needless",
    MemberMisplaced "member_misplaced",
    TreeCountWrong "tree_count_wrong",
    SpreadHalted "spread_halted",
    SpreadLeftover "spread_leftover",
    PieceOrphaned "piece_orphaned",
    PartOrphaned "part_orphaned",
    GuardLeft "guard_left",
    KeyOrphaned "key_orphaned",
    PostOrphaned "post_orphaned",
    KeyUnknown "key_unknown",
    Unreadable "unreadable",
    TokenEndless "token_endless",
    TokenOfNoPost "token_of_no_post",
    EntryStale "entry_stale",
    EntryUnknown "entry_unknown",
    LeaseUnreadable "lease_unreadable",
    ClaimNeedless "claim_needless",
    ClaimMissing "claim_missing",
    ClaimOfOther "claim_of_other",
    AttemptLeft "attempt_left",
    CredentialsMissing "credentials_missing",
}

impl FindingKind {
    /// Whether it does no harm, and comes about without any fault: such findings leave a tenant clean.
    ///
    /// A mark that may go waits for its reader, and reads of that reader only cost a little more meanwhile. A post without
    /// an author had been cut off from its outbox before the account was deleted, so no burial could find it. A like or
    /// bookmark of a post that is gone shows nowhere.
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::MarkMayGo | Self::PostOrphaned | Self::TieOfNothing)
    }

    /// Looks at which it must be found. What comes to an end by itself within seconds is given the time for that.
    pub(super) fn looks(self) -> u32 {
        match self {
            Self::FillHalted | Self::SpreadHalted | Self::EntryStale | Self::GuardLeft => 6,
            _ => 3,
        }
    }
}

/// A deviation. Two that are equal are the same one, seen twice: so it holds whatever a change would change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Deviation {
    /// `stamp`: bits of the score of the follow, or of an edge that no follow has.
    Edge {
        kind: FindingKind,
        reader: AccountId,
        author: AccountId,
        stamp: u64,
    },
    /// `mark`: the one that should go.
    Nonce {
        kind: FindingKind,
        reader: AccountId,
        author: AccountId,
        mark: Nonce,
    },
    Request {
        reader: AccountId,
        author: AccountId,
        request: Nonce,
    },
    EntryMissing {
        reader: AccountId,
        author: AccountId,
        post: PostId,
    },
    /// `detail`: of a watermark its id, of a fill its nonce.
    Home {
        kind: FindingKind,
        reader: AccountId,
        detail: u64,
    },
    /// `off`: by how much.
    Count {
        account: AccountId,
        field: &'static str,
        off: i128,
    },
    ModeStuck {
        account: AccountId,
        random: Nonce,
    },
    BurialStuck {
        account: AccountId,
    },
    Outbox {
        kind: FindingKind,
        author: AccountId,
        post: PostId,
    },
    Listing {
        kind: FindingKind,
        post: PostId,
        author: AccountId,
        to: crate::post::Reference,
    },
    ListEntry {
        kind: FindingKind,
        post: PostId,
        author: AccountId,
        list: PostList,
    },
    /// `stamp`: bits of the score that it has where it is.
    Tie {
        kind: FindingKind,
        what: Tie,
        account: AccountId,
        post: PostRef,
        stamp: u64,
    },
    Reposted {
        kind: FindingKind,
        account: AccountId,
        original: PostRef,
        repost: PostId,
    },
    /// `told`: how long the post says that its list is; `members`: how long it is.
    PostCount {
        post: PostId,
        author: AccountId,
        list: u8,
        told: u64,
        members: u64,
    },
    Misplaced {
        set: LocalKey,
        spot: Spot,
        member: Vec<u8>,
    },
    /// `detail`: what stands there, as far as that tells one from another.
    Set {
        kind: FindingKind,
        set: LocalKey,
        detail: Vec<u8>,
    },
    Piece {
        kind: FindingKind,
        set: LocalKey,
        piece: u32,
    },
    Key {
        kind: FindingKind,
        key: Vec<u8>,
        owner: Option<AccountId>,
        detail: Vec<u8>,
    },
    Journal {
        kind: FindingKind,
        bucket: Bucket,
        entry: Vec<u8>,
        value: Vec<u8>,
    },
    Lease {
        name: Vec<u8>,
    },
    /// `value`: what stands there.
    Claim {
        claim: Claim,
        value: Vec<u8>,
        owner: AccountId,
    },
    /// `detail`: a claim, or an attempt.
    Names {
        kind: FindingKind,
        account: AccountId,
        detail: Vec<u8>,
    },
    Unreadable {
        unit: Unit,
        why: String,
    },
}

impl Deviation {
    pub(super) fn kind(&self) -> FindingKind {
        match self {
            Self::Edge { kind, .. }
            | Self::Nonce { kind, .. }
            | Self::Home { kind, .. }
            | Self::Outbox { kind, .. }
            | Self::Listing { kind, .. }
            | Self::ListEntry { kind, .. }
            | Self::Tie { kind, .. }
            | Self::Reposted { kind, .. }
            | Self::Set { kind, .. }
            | Self::Piece { kind, .. }
            | Self::Key { kind, .. }
            | Self::Journal { kind, .. }
            | Self::Names { kind, .. } => *kind,
            Self::Request { .. } => FindingKind::RequestOutOfStep,
            Self::EntryMissing { .. } => FindingKind::EntryMissing,
            Self::Count { .. } => FindingKind::CountWrong,
            Self::ModeStuck { .. } => FindingKind::ModeStuck,
            Self::BurialStuck { .. } => FindingKind::BurialStuck,
            Self::PostCount { .. } => FindingKind::PostCountWrong,
            Self::Misplaced { .. } => FindingKind::MemberMisplaced,
            Self::Lease { .. } => FindingKind::LeaseUnreadable,
            Self::Claim { .. } => FindingKind::ClaimNeedless,
            Self::Unreadable { .. } => FindingKind::Unreadable,
        }
    }

    /// What is to be looked at to see whether it is there still.
    pub(super) fn unit(&self) -> Unit {
        match self {
            Self::Edge { reader, author, .. } | Self::Nonce { reader, author, .. } => {
                Unit::Pair(*reader, *author)
            }
            Self::Request { reader, author, .. } => Unit::Request(*reader, *author),
            Self::EntryMissing { reader, .. } | Self::Home { reader, .. } => Unit::Home(*reader),
            Self::Count { account, .. } | Self::ModeStuck { account, .. } | Self::BurialStuck { account } => {
                Unit::Record(*account)
            }
            Self::Outbox { post, author, .. } => Unit::Listed { post: *post, author: *author },
            Self::Listing { post, author, to, .. } => {
                Unit::Listing { post: PostRef { id: *post, author: *author }, to: *to }
            }
            Self::ListEntry { post, author, list, .. } => {
                Unit::ListEntry { post: *post, author: *author, list: *list }
            }
            Self::PostCount { post, .. } => Unit::Post(*post),
            Self::Tie { account, post, what, .. } => {
                Unit::Tie { account: *account, post: *post, what: *what }
            }
            Self::Reposted { kind: FindingKind::RepostUnnoted, repost, .. } => Unit::Post(*repost),
            Self::Reposted { account, original, .. } => {
                Unit::Reposted { account: *account, original: *original }
            }
            Self::Misplaced { set, .. } | Self::Set { set, .. } => match self.kind() {
                FindingKind::GuardLeft => Unit::Guard(set.clone()),
                _ => Unit::Structure(set.clone()),
            },
            Self::Piece { set, piece, .. } => Unit::Piece(set.clone(), *piece),
            Self::Key { key, .. } => Unit::Key(key.clone()),
            Self::Journal { bucket, .. } => Unit::Journal(*bucket),
            Self::Lease { .. } => Unit::Living,
            Self::Claim { claim, .. } => Unit::Claim(*claim),
            Self::Names { account, .. } => Unit::Credentials(*account),
            Self::Unreadable { unit, .. } => unit.clone(),
        }
    }
}

/// What a reader of a report can look for.
impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edge { reader, author, .. }
            | Self::Nonce { reader, author, .. }
            | Self::Request { reader, author, .. } => {
                write!(f, "account {reader} and account {author}, which it follows, asks or pulls")
            }
            Self::EntryMissing { reader, author, post } => {
                write!(f, "post {post} of {author} in the home of {reader}")
            }
            Self::Home { reader, .. } => write!(f, "the home of {reader}"),
            Self::Count { account, field, off } => {
                write!(
                    f,
                    "field `{field}` of account {account}: {} too {}",
                    off.abs(),
                    if *off > 0 { "many" } else { "few" }
                )
            }
            Self::ModeStuck { account, .. } | Self::BurialStuck { account } => write!(f, "account {account}"),
            Self::Outbox { author, post, .. } => write!(f, "post {post} in the outbox of {author}"),
            Self::Listing { post, to, .. } => write!(f, "post {post} on the list of post {}", to.post),
            Self::ListEntry { post, author, list: PostList::Mentions(account), .. } => {
                write!(f, "post {post} of {author} on the list of mentions of {account}")
            }
            Self::ListEntry { post, author, list: PostList::Tagged(number), .. } => {
                write!(f, "post {post} of {author} on the list of hashtag number {number:016x}")
            }
            Self::Tie { account, post, what, .. } => {
                write!(f, "the {what:?} of post {} by account {account}", post.id)
            }
            Self::Reposted { account, original, repost, .. } => {
                write!(f, "repost {repost} of post {} by account {account}", original.id)
            }
            Self::PostCount { post, list, told, members, .. } => {
                let list = [*list];
                let list = list.escape_ascii();
                write!(f, "post {post} says {told} of its list `{list}`, which has {members}")
            }
            Self::Misplaced { set, member, .. } => {
                write!(f, "member {} of {}", member.escape_ascii(), Named(set))
            }
            Self::Set { set, .. } => Named(set).fmt(f),
            Self::Piece { set, piece, .. } => write!(f, "piece {piece:x} of {}", Named(set)),
            Self::Key { key, .. } => write!(f, "key {}", key.escape_ascii()),
            Self::Journal { bucket, entry, .. } => {
                write!(f, "entry {} in the journal of bucket {bucket}", entry.escape_ascii())
            }
            Self::Lease { name } => write!(f, "lease {}", name.escape_ascii()),
            Self::Claim { claim, owner, .. } => {
                write!(f, "claim {} that names account {owner}", claim.as_bytes().escape_ascii())
            }
            Self::Names { account, detail, .. } => {
                write!(f, "account {account} and its names ({})", detail.escape_ascii())
            }
            Self::Unreadable { unit, why } => write!(f, "{unit:?}: {why}"),
        }
    }
}

/// A set as people may know it.
struct Named<'a>(&'a LocalKey);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match super::key::owner_of(&self.0.name) {
            Some((owner, what)) => write!(f, "the {} of {owner}", what.escape_ascii())?,
            None => write!(f, "set {}", self.0.name.escape_ascii())?,
        }
        write!(f, " in bucket {}", self.0.bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_for_users_tells_of_every_kind() {
        let page = include_str!("../../docs/fsck.md");
        for kind in FindingKind::ALL {
            assert!(page.contains(&format!("`{}`", kind.label())), "{kind:?}");
        }
    }
}
