//! What is held against the model besides pages, by kind: how often it was, and how often it could not be. What would
//! have been found then nobody knows, so too many of one kind are a failure, whatever there is of the others.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::call::{Call, List};
use super::group_call::GroupCall;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    Names,
    Passwords,
    Reports,
    Chats,
    /// Their pages, and their members' homes.
    Groups,
    /// With what is counted of them.
    Posts,
    PostsByIds,
    Conversations,
    CountsOfAccounts,
    /// As they are stored, of all accounts.
    Follows,
    InCommon,
    Relations,
    Requests,
    ListsOfPeople,
    LikersAndReposters,
    Quotes,
    LikesAndBookmarks,
    /// What accounts are told of what others did.
    Notifications,
    /// Whole.
    HomesByImportance,
    /// What a failover may have lost, and is done once more.
    DoneAgain,
}

impl Subject {
    /// Of what a call tells; `None` of a page, and of what is called for its effect.
    pub(crate) fn of(call: &Call) -> Option<Self> {
        Some(match call {
            Call::Find { .. } | Call::Names { .. } => Self::Names,
            Call::LogIn { .. } => Self::Passwords,
            Call::Reports { .. } => Self::Reports,
            Call::Messages { .. } | Call::Chats { .. } => Self::Chats,
            Call::Group(GroupCall::Posted { .. } | GroupCall::Staff { .. }) => Self::Groups,
            Call::Post { .. } => Self::Posts,
            Call::ByIds { .. } => Self::PostsByIds,
            Call::Conversation { .. } => Self::Conversations,
            Call::Counts { .. } => Self::CountsOfAccounts,
            Call::Following { .. } | Call::Followers { .. } => Self::Follows,
            Call::Common { .. } | Call::IsMutual { .. } => Self::InCommon,
            Call::IsFollowing { .. } | Call::Relations { .. } => Self::Relations,
            Call::Requests { .. } => Self::Requests,
            Call::Notices { .. } => Self::Notifications,
            Call::List { of, .. } => Self::of_list(*of),
            _ => return None,
        })
    }

    pub(crate) fn of_list(list: List) -> Self {
        match list {
            List::People(_) => Self::ListsOfPeople,
            List::Likers(_) | List::Reposters(_) => Self::LikersAndReposters,
            List::Quotes(_) => Self::Quotes,
            List::Tied(_) => Self::LikesAndBookmarks,
            List::Ranked => Self::HomesByImportance,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// So many comparisons of a kind there have to be for each that could not be made.
const MADE_MIN: u64 = 100;

/// Comparisons of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Comparisons {
    pub(crate) made: u64,
    /// What was asked was not answered.
    pub(crate) skipped: u64,
    /// Why not, the last time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

impl Comparisons {
    fn are_too_few(&self) -> bool {
        self.skipped * MADE_MIN > self.made
    }
}

/// The kinds of which too many could not be made, and how many; empty if there is none.
pub(crate) fn too_few(all: &BTreeMap<Subject, Comparisons>) -> String {
    let few = all.iter().filter(|(_, comparisons)| comparisons.are_too_few());
    let told = |(kind, Comparisons { made, skipped, why }): (&Subject, &Comparisons)| {
        format!("{kind}: {skipped} could not be made, {made} were ({why})")
    };
    few.map(told).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, all kinds were bounded together: what was skipped of one drowned in what there was of the others.
    #[test]
    fn one_kind_that_is_never_compared_is_told_beside_thousands_that_are() {
        let all = |skipped| {
            let of = |made, skipped| Comparisons { made, skipped, why: "Stuck".to_owned() };
            BTreeMap::from([(Subject::Posts, of(10_000, 4)), (Subject::Requests, of(300, skipped))])
        };
        assert_eq!(too_few(&all(3)), "");
        assert_eq!(too_few(&all(4)), "requests: 4 could not be made, 300 were (Stuck)");
        let never = Comparisons { made: 0, skipped: 1, why: "Stuck".to_owned() };
        let never = BTreeMap::from([(Subject::Quotes, never)]);
        assert_eq!(too_few(&never), "quotes: 1 could not be made, 0 were (Stuck)");
    }
}
