//! Rights in a group: what an account may do there by its rank. Facts in, verdicts out; no I/O, no clock.
//!
//! A *rank* is a role that counts: of a member that may act. The group itself, which a service speaks for, ranks as an
//! owner.

use crate::account::AccountKind;
use crate::ids::AccountId;

/// The role of a member on the staff of a group: what it may do there besides posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupRole {
    /// Lets members in, turns them out, takes posts away; posts announcements.
    Moderator,
    /// The same, and says who is on the staff.
    Owner,
}

/// Facts of somebody who would post into a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct PosterFacts {
    pub(super) is_active: bool,
    pub(super) is_member: bool,
    pub(super) has_role: bool,
}

/// The right of somebody to post into a group, or what it lacks for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostingRight {
    Granted,
    NotActive,
    NoMember,
    /// Only the staff posts there.
    NotOnStaff,
}

impl PosterFacts {
    pub(super) fn right(self, kind: AccountKind) -> PostingRight {
        match self {
            Self { is_active: false, .. } => PostingRight::NotActive,
            Self { is_member: false, .. } => PostingRight::NoMember,
            Self { has_role: false, .. } if kind == AccountKind::Announcement => PostingRight::NotOnStaff,
            _ => PostingRight::Granted,
        }
    }
}

/// Whether somebody of the staff may turn a member of that rank out: whoever ranks above it, and the group itself.
pub(super) fn may_turn_out(by: GroupRole, is_group: bool, member: Option<GroupRole>) -> bool {
    is_group || member < Some(by)
}

/// Whether somebody of that rank may give an account a role: an owner; and itself anybody one that is less than what it
/// has.
pub(super) fn may_give(by: Option<GroupRole>, to_itself: bool, role: Option<GroupRole>) -> bool {
    by == Some(GroupRole::Owner) || to_itself && (role.is_none() || role < by)
}

/// Whether a change of a role makes an owner less.
pub(super) fn ends_owning(had: Option<GroupRole>, role: Option<GroupRole>) -> bool {
    had == Some(GroupRole::Owner) && role != Some(GroupRole::Owner)
}

/// Whether any of these owners is left without that one.
pub(super) fn leaves_an_owner(owners: &[AccountId], without: AccountId) -> bool {
    owners.iter().any(|owner| *owner != without)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const ROLES: [Option<GroupRole>; 3] = [None, Some(GroupRole::Moderator), Some(GroupRole::Owner)];

    #[test]
    fn who_may_post_is_an_active_member_and_of_announcements_on_the_staff() {
        let right =
            |is_active, is_member, has_role, kind| PosterFacts { is_active, is_member, has_role }.right(kind);
        for has_role in [false, true] {
            for kind in [AccountKind::Group, AccountKind::Announcement] {
                assert_eq!(right(false, true, has_role, kind), PostingRight::NotActive);
                // A role that is left over from a membership is none.
                assert_eq!(right(true, false, has_role, kind), PostingRight::NoMember);
            }
            assert_eq!(right(true, true, has_role, AccountKind::Group), PostingRight::Granted);
        }
        assert_eq!(right(true, true, false, AccountKind::Announcement), PostingRight::NotOnStaff);
        assert_eq!(right(true, true, true, AccountKind::Announcement), PostingRight::Granted);
    }

    #[test]
    fn nobody_is_turned_out_by_who_ranks_as_high() {
        let (moderator, owner) = (GroupRole::Moderator, GroupRole::Owner);
        assert_eq!(ROLES.map(|of| may_turn_out(moderator, false, of)), [true, false, false]);
        assert_eq!(ROLES.map(|of| may_turn_out(owner, false, of)), [true, true, false]);
        assert_eq!(ROLES.map(|of| may_turn_out(owner, true, of)), [true; 3]);
    }

    /// A change that somebody tries.
    #[derive(Debug, Clone, Copy)]
    enum Tried {
        Gives { by: u64, of: u64, role: Option<GroupRole> },
        TurnsOut { by: u64, of: u64 },
    }

    fn tried() -> impl Strategy<Value = Tried> {
        let (by, of) = (1..6_u64, 1..6_u64);
        prop_oneof![
            3 => (by.clone(), of.clone(), prop::sample::select(ROLES.to_vec()))
                .prop_map(|(by, of, role)| Tried::Gives { by, of, role }),
            1 => (by, of).prop_map(|(by, of)| Tried::TurnsOut { by, of }),
        ]
    }

    proptest! {
        /// An owner is left, whatever is tried; roles are given by owners alone, and lost by who gives them up, or to
        /// whoever ranks higher or is an owner.
        #[test]
        fn a_group_never_loses_its_last_owner(all in proptest::collection::vec(tried(), 0..40)) {
            let id = |n: u64| AccountId::new(n).unwrap();
            let mut roles = BTreeMap::from([(id(1), GroupRole::Owner)]);
            for one in all {
                let rank = |account: u64| roles.get(&id(account)).copied();
                let (of, becomes, may) = match one {
                    Tried::Gives { by, of, role } => {
                        (of, role, may_give(rank(by), by == of, role))
                    }
                    Tried::TurnsOut { by, of } => {
                        let may = rank(by).is_some_and(|by| may_turn_out(by, false, rank(of)));
                        (of, None, may)
                    }
                };
                let owners: Vec<AccountId> =
                    roles.iter().filter(|(_, role)| **role == GroupRole::Owner).map(|(of, _)| *of).collect();
                if !may || ends_owning(rank(of), becomes) && !leaves_an_owner(&owners, id(of)) {
                    continue;
                }
                let (Tried::Gives { by, .. } | Tried::TurnsOut { by, .. }) = one;
                prop_assert!(becomes <= rank(of) || rank(by) == Some(GroupRole::Owner), "{one:?} {roles:?}");
                prop_assert!(by == of || rank(by) > rank(of) || rank(by) == Some(GroupRole::Owner));
                match becomes {
                    Some(role) => drop(roles.insert(id(of), role)),
                    None => drop(roles.remove(&id(of))),
                }
                prop_assert!(roles.values().any(|role| *role == GroupRole::Owner), "{one:?}");
            }
        }
    }
}
