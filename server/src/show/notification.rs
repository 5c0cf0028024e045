//! Notifications: what somebody is told of what others did. Pure.

use tideline::{Notification, NotificationKind};

use super::account::account;
use super::site::Site;
use crate::entity::{self, Id, Status};
use crate::http::Timestamp;

/// Names a kind as clients do.
pub fn kind_name(kind: NotificationKind) -> &'static str {
    match kind {
        NotificationKind::Mention => "mention",
        NotificationKind::Follow => "follow",
        NotificationKind::FollowRequest => "follow_request",
        NotificationKind::Like => "favourite",
        NotificationKind::Repost => "reblog",
        NotificationKind::Quote => "quote",
        // A kind of a later engine is shown once it has a name here.
        _ => "unknown",
    }
}

/// Makes a notification as its reader gets it, with the status that it is about.
pub fn notification(site: Site<'_>, of: &Notification, status: Option<Status>) -> entity::Notification {
    let kind = kind_name(of.kind);
    // What likes and reposts of one post are shown together with; all others stand for themselves.
    let group_key = match (of.kind, &of.post) {
        (NotificationKind::Like | NotificationKind::Repost, Some(post)) => format!("{kind}-{}", post.id),
        _ => format!("ungrouped-{}", of.id),
    };
    entity::Notification {
        id: Id(of.id.get()),
        kind: kind.to_owned(),
        group_key,
        created_at: Timestamp(of.id.unix_ms()),
        account: account(site, &of.account),
        status,
    }
}
