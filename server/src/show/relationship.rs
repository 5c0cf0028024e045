//! Somebody's relationships to others, as clients get them. Pure.

use tideline::AccountId;

use crate::entity::{Id, Relationship};
use crate::http::Timestamp;

/// Makes a relationship, with the languages in which the other one is read; `None`: in all.
pub fn relationship(found: &tideline::Relationship, languages: Option<&[String]>) -> Relationship {
    let is_following = found.is_following || found.has_requested;
    Relationship {
        id: Id::from(found.account),
        following: found.is_following,
        showing_reblogs: found.shows_reposts,
        notifying: false,
        languages: languages.filter(|_| is_following).map(<[String]>::to_vec),
        followed_by: found.is_followed,
        blocking: found.is_blocking,
        blocked_by: found.is_blocked,
        muting: found.is_muting,
        muting_notifications: found.is_muting && !found.is_told_all_the_same,
        muting_expires_at: found.muted_until_ms.map(Timestamp),
        requested: found.has_requested,
        requested_by: found.is_requested,
        domain_blocking: false,
        endorsed: false,
        note: found.note.clone().unwrap_or_default(),
    }
}

/// Makes that of an account that is gone.
pub fn nothing_between(account: AccountId) -> Relationship {
    let nothing = tideline::Relationship {
        account,
        is_following: false,
        is_followed: false,
        has_requested: false,
        is_requested: false,
        is_muting: false,
        is_told_all_the_same: false,
        is_blocking: false,
        is_blocked: false,
        is_hiding: false,
        shows_reposts: false,
        muted_until_ms: None,
        note: None,
    };
    relationship(&nothing, None)
}
