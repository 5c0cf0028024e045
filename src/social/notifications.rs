//! Notifications of what others did, a page at a time, and taking them off.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join;

use crate::account::Account;
use crate::engine::{Engine, Reader};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::graph::{self, StandingActs};
use crate::ids::AccountId;
use crate::inbox::{InboxEntry, Notice, NotificationId, NotificationKind, NotificationQuery};
use crate::meters;
use crate::post::{Post, PostRef};
use crate::settings::Receipt;
use crate::timeline::{PagePost, UntoldPosts, View};

/// Entries that are looked at together, at least.
const LOOKED_AT: usize = 40;

/// A notification: what somebody did, as the account that is told of it sees it now.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Notification {
    /// Its id: it says when that was.
    pub id: NotificationId,
    /// What it is.
    pub kind: NotificationKind,
    /// Who did it, in a group or a chat too.
    pub account: Arc<Account>,
    /// The post that it is about, hydrated and with ties: one's own that is liked or reposted, or the other's that
    /// mentions or quotes.
    pub post: Option<PagePost>,
}

/// A page of notifications, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct NotificationPage {
    /// Those that show.
    pub notifications: Vec<Notification>,
    /// Hand it over as `max_id` to go on with older ones; `None`: there are none.
    pub older: Option<NotificationId>,
    /// Hand it over as `min_id` to go on with newer ones.
    pub newer: Option<NotificationId>,
    /// Whether the archive was away: the page ends where only that could tell what follows.
    pub lacks_archive: bool,
}

impl Engine {
    /// Takes a notification off for good. Tells whether it was there.
    pub fn dismiss_notification(
        &self,
        account: AccountId,
        id: NotificationId,
    ) -> CallFuture<'_, Receipt<bool>> {
        Box::pin(async move {
            let (was_there, epoch) = graph::dismiss_notification(self.tenant(), account, id).await?;
            Ok(self.acknowledged(epoch).await?.with(was_there))
        })
    }

    /// Takes all notifications off that an account has by now.
    pub fn clear_notifications(&self, account: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::clear_notifications(self.tenant(), account).await?;
            self.acknowledged(epoch).await
        })
    }
}

impl<'a> Reader<'a> {
    /// Reads what others did that the account is told of, if the tenant's instances keep that
    /// ([`keeps_notifications`](crate::EngineSettings::keeps_notifications)): 240 of them, of each account, each post's
    /// likes and so on the newest. It shows what is still so, of whom the account wants to meet, with posts that it may
    /// see, and nothing of conversations that it [mutes](crate::document::MUTED_CONVERSATIONS).
    ///
    /// A page is shorter than asked for only at the end. [`ErrorCode::ArchiveAway`](crate::ErrorCode::ArchiveAway):
    /// nothing shows before what only the archive could tell.
    pub fn notifications(self, query: &'a NotificationQuery) -> CallFuture<'a, NotificationPage> {
        Box::pin(async move {
            meters::list("notifications");
            let limit = query.page_length()?;
            let (mut view, walk) = self.walk(query, limit).await?;
            let ends = |entry: Option<&InboxEntry>| entry.map(|entry| entry.id);
            let (newest, oldest) =
                (walk.shown.iter().max_by_key(|r| r.id), walk.shown.iter().min_by_key(|r| r.id));
            let (older, newer) = if query.is_upward() {
                (ends(oldest).or(query.min_id), ends(newest).or(query.min_id))
            } else {
                (walk.last.filter(|_| !walk.is_over), ends(newest))
            };
            if let Some(untold) = walk.untold {
                meters::archive_away();
                if walk.shown.is_empty() {
                    return Err(untold.because);
                }
                let notifications = self.hydrated(&mut view, &walk.shown, query.is_upward()).await?;
                return Ok(NotificationPage { notifications, older, newer, lacks_archive: true });
            }
            let notifications = self.hydrated(&mut view, &walk.shown, query.is_upward()).await?;
            Ok(NotificationPage { notifications, older, newer, lacks_archive: false })
        })
    }

    /// Reads one notification, by its id.
    ///
    /// [`NotFound`](ErrorKind::NotFound): there is none, or it doesn't show any more.
    pub fn notification(self, id: NotificationId) -> CallFuture<'a, Notification> {
        Box::pin(async move {
            meters::list("notification");
            let beside = |by: i64| {
                let id = id.get().checked_add_signed(by)?;
                NotificationId::from_u64(id).ok()
            };
            let none = || Error::new(ErrorKind::NotFound, format!("there is no notification {id}"));
            let query =
                NotificationQuery { max_id: beside(1), since_id: beside(-1), ..NotificationQuery::default() };
            let (mut view, walk) = self.walk(&query, 1).await?;
            walk.untold.map_or(Ok(()), |untold| Err(untold.because))?;
            self.hydrated(&mut view, &walk.shown, false).await?.pop().ok_or_else(none)
        })
    }

    /// Counts the notifications that pages of this query would show, whatever its limit: as far as the archive can tell
    /// now, where it is away.
    pub fn count_notifications(self, query: &'a NotificationQuery) -> CallFuture<'a, usize> {
        Box::pin(async move {
            meters::list("notifications");
            let (_, walk) = self.walk(query, usize::MAX).await?;
            Ok(walk.shown.len())
        })
    }

    /// Looks through the entries that a query asks for until so many show.
    async fn walk(self, query: &NotificationQuery, most: usize) -> Result<(View<'a>, Walk)> {
        let (tenant, account) = (self.engine.tenant(), self.account);
        let (entries, mut view) = try_join(graph::inbox(tenant, account), self.view()).await?;
        let asked = query.asked_for(&entries);
        let mut walk = Walk { is_over: true, ..Walk::default() };
        let mut rest = asked.as_slice();
        while !rest.is_empty() {
            let together = (most - walk.shown.len()).max(LOOKED_AT).min(rest.len());
            let (now, later) = rest.split_at(together);
            let posts: BTreeSet<PostRef> = now.iter().filter_map(|entry| entry.told.post(account)).collect();
            let others: BTreeSet<AccountId> = now.iter().map(|entry| entry.told.by).collect();
            let (posts, others): (Vec<_>, Vec<_>) =
                (posts.into_iter().collect(), others.into_iter().collect());
            let standing = StandingActs::of(tenant, account, now);
            let (untold, standing) = try_join(view.load_as_told(&posts, &others), standing).await?;
            for entry in now {
                let post = entry.told.post(account);
                if walk.shown.len() == most {
                    walk.is_over = false;
                    return Ok((view, walk));
                }
                if post.is_some_and(|post| view.is_untold(post, untold.as_ref())) {
                    (walk.is_over, walk.untold) = (false, untold);
                    return Ok((view, walk));
                }
                walk.last = Some(entry.id);
                if standing.hold(&entry.told) && shows(&view, entry, account) {
                    walk.shown.push(*entry);
                }
            }
            rest = later;
        }
        Ok((view, walk))
    }

    /// Entries that show, as notifications, the newest first.
    async fn hydrated(
        self,
        view: &mut View<'_>,
        shown: &[InboxEntry],
        is_upward: bool,
    ) -> Result<Vec<Notification>> {
        let posts: BTreeSet<PostRef> =
            shown.iter().filter_map(|entry| entry.told.post(self.account)).collect();
        let posts = view.tied(posts.into_iter().collect()).await?;
        let post_of =
            |post: Option<PostRef>| posts.iter().find(|shown| post.is_some_and(|post| post.id == shown.id));
        let told = shown.iter().filter_map(|InboxEntry { id, told }| {
            let account = doer(view, told, self.account)?;
            let post = post_of(told.post(self.account)).cloned();
            Some(Notification { id: *id, kind: told.kind, account, post })
        });
        let mut told: Vec<Notification> = told.collect();
        if is_upward {
            told.reverse();
        }
        Ok(told)
    }
}

/// A walk through an inbox, and how far it has come.
#[derive(Debug, Default)]
struct Walk {
    shown: Vec<InboxEntry>,
    /// The last that was looked at.
    last: Option<NotificationId>,
    /// Nothing is behind that.
    is_over: bool,
    /// What the next one is about only the archive could tell.
    untold: Option<UntoldPosts>,
}

/// The account that did what another one is told, if that one wants to know. All of it was loaded.
fn doer(view: &View<'_>, told: &Notice, owner: AccountId) -> Option<Arc<Account>> {
    let is_message = || {
        let post = told.post(owner).filter(|_| told.kind == NotificationKind::Mention);
        post.and_then(|post| view.post(post)).is_some_and(|post| post.chat().is_some())
    };
    // A message also of who doesn't want to meet the reader: it shows, and who isn't told of it would know that.
    view.teller(told.by).or_else(|| view.any_account(told.by).filter(|_| is_message()))
}

/// Whether an account is to see an entry, all of which was loaded.
fn shows(view: &View<'_>, entry: &InboxEntry, owner: AccountId) -> bool {
    let told = &entry.told;
    if doer(view, told, owner).is_none() {
        return false;
    }
    let Some(post) = told.post(owner) else { return true };
    if view.mutes_conversation(post) {
        return false;
    }
    // After a failover another member's post may have the id (H43).
    let is_theirs = |post: &&Arc<Post>| post.writer() == told.by;
    match told.kind {
        NotificationKind::Mention => {
            view.tells(post) && view.post(post).is_some_and(|post| is_theirs(&post) && post.is_said_to(owner))
        }
        NotificationKind::Quote => {
            let quoted = view.post(post).filter(is_theirs).and_then(|post| post.header().original);
            // Of one that is gone nobody can say any more who wrote it.
            let is_own = |quoted: PostRef| view.post(quoted).is_none_or(|quoted| quoted.writer() == owner);
            view.tells(post) && quoted.is_some_and(|quoted| quoted.author == owner || is_own(quoted))
        }
        _ => view.judge(post).is_ok() && view.post(post).is_some_and(|post| post.writer() == owner),
    }
}
