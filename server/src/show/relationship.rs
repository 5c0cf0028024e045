//! How somebody stands to others, as clients get it. Pure.

use crate::entity::{Id, Relationship};
use crate::http::Timestamp;

/// Makes a relationship.
pub fn relationship(found: &tideline::Relationship) -> Relationship {
    Relationship {
        id: Id::from(found.account),
        following: found.is_following,
        showing_reblogs: found.shows_reposts,
        notifying: false,
        languages: None,
        followed_by: found.is_followed,
        blocking: found.is_blocking,
        blocked_by: found.is_blocked,
        muting: found.is_muting,
        muting_notifications: found.is_muting,
        muting_expires_at: found.muted_until_ms.map(Timestamp),
        requested: found.has_requested,
        requested_by: found.is_requested,
        domain_blocking: false,
        endorsed: false,
        note: found.note.clone().unwrap_or_default(),
    }
}
