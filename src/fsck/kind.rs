//! The kinds of what can be out of step. Pure.

use serde::Serialize;

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

            /// The kind's name in reports and metrics.
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
    MarkUnasked "mark_unasked",
    MarkMayGo "mark_may_go",
    RequestOutOfStep "request_out_of_step",
    RemarkNeedless "remark_needless",
    NotificationOfNothing "notification_of_nothing",
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
    PublicNeedless "public_needless",
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
    NameUnlisted "name_unlisted",
    PostUnnoted "post_unnoted",
    FloorLies "floor_lies",
    IdTwice "id_twice",
    ArchiveBehind "archive_behind",
    ListBehind "list_behind",
    DeletionUndone "deletion_undone",
    BurialUndone "burial_undone",
    ArchivedAfterBurial "archived_after_burial",
    ArchivedOfNobody "archived_of_nobody",
    ArchivedUnlisted "archived_unlisted",
    AgendaNeedless "agenda_needless",
}

impl FindingKind {
    /// Whether it does no harm, and comes about without any fault: such findings leave a tenant clean.
    ///
    /// A mark that may go waits for its reader, and reads of that reader only cost a little more meanwhile. A post
    /// without an author had been cut off from its outbox before the account was deleted, so no burial could find it. A
    /// like or bookmark of a post that is gone shows nowhere, nor does what is remarked on an account that is gone, nor
    /// a post that is gone among public ones, where an earlier release deletes too; nor what somebody is told of
    /// either. Who isn't found by how its names begin was registered by an earlier release: its whole name finds it.
    /// What the archive has beyond what memory knows of shows nowhere either, and an entry of an agenda that is
    /// nobody's goes once it is due.
    pub fn is_harmless(self) -> bool {
        let of_memory = [Self::MarkMayGo, Self::PostOrphaned, Self::TieOfNothing, Self::RemarkNeedless];
        let of_lists =
            [Self::PublicNeedless, Self::NotificationOfNothing, Self::AgendaNeedless, Self::NameUnlisted];
        let of_archive = [Self::ArchivedOfNobody, Self::ArchivedUnlisted];
        of_memory.contains(&self) || of_lists.contains(&self) || of_archive.contains(&self)
    }

    /// Looks at which it must be found. What comes to an end by itself within seconds is given the time for that.
    pub(super) fn looks(self) -> u32 {
        match self {
            Self::FillHalted | Self::SpreadHalted | Self::EntryStale | Self::GuardLeft => 6,
            _ => 3,
        }
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
