//! Instances that answer wrongly on purpose: what an engine could do and this test must find.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use futures::{FutureExt as _, StreamExt as _, stream};
use tokio::time::timeout;

use super::args::Sabotage;
use super::call::{Call, Reach, Which};
use super::group_call::GroupCall;
use super::perform::{HeldBack, Performer};
use super::run::ID_LOW_BITS;
use super::setup::HASTE;
use super::stored;
use super::told::{Page, Reply};

/// Whose posts are late.
const HELD_BACK: u64 = 1;
/// Whoever hears nothing of time for so long has slept: longer than an instance is frozen.
const SLEEP_MIN: Duration = Duration::from_millis(4_700);
const TICK: Duration = Duration::from_millis(50);
/// Follows that are made at the same time.
const AT_ONCE: usize = 16;
/// One follow in so many is refused; and one of the calls that are rarer.
const REFUSED: u64 = 20;
const REFUSED_RARE: u64 = 4;
/// Posts with which entries are taken, of each instance: a part of what a run publishes.
const HOLES: u64 = 5;
/// Of so many accounts one isn't told who waits for its answer: a few of thousands of answers, but many of their kind.
const ONE_UNANSWERED_IN: u64 = 8;

/// A post that was accepted is said to be delivered.
fn early(mut reply: Reply) -> Reply {
    if let Reply::Published { is_delivered, .. } = &mut reply {
        *is_delivered = true;
    }
    reply
}

/// What comes along with its posts stands the wrong way round.
fn turned_around(mut page: Page) -> Page {
    for shown in &mut page.posts {
        shown.likers.reverse();
        shown.replies.reverse();
    }
    page
}

fn refused(kind: &str) -> Reply {
    Reply::Failed {
        kind: kind.to_owned(),
        message: "sabotage".to_owned(),
        may_retry: false,
        is_archive_away: false,
    }
}

impl Performer {
    /// Whether this call is one of those.
    fn is_turn(&self, one_in: u64) -> bool {
        self.answered.fetch_add(1, Ordering::Relaxed) % one_in == one_in - 1
    }

    /// The reply to a call that the engine never gets.
    fn unasked(&self, sabotage: Sabotage, call: &Call) -> Option<Reply> {
        let kind = match (sabotage, call) {
            (Sabotage::Refusal, Call::Follow { .. }) if self.is_turn(REFUSED) => "Invalid",
            (Sabotage::Answer, Call::Approve { .. } | Call::Reject { .. }) => "Invalid",
            (Sabotage::Absent, Call::Switch { .. } | Call::Unfollow { .. }) if self.is_turn(REFUSED_RARE) => {
                "NotFound"
            }
            (Sabotage::Unanswered, Call::Requests { account })
                if account.is_multiple_of(ONE_UNANSWERED_IN) =>
            {
                "Internal"
            }
            (Sabotage::Unlimited, Call::Group(GroupCall::Limit { .. })) => return Some(Reply::Done),
            _ => return None,
        };
        Some(refused(kind))
    }

    /// Carries a call out, as well as this run wants it.
    pub(crate) async fn perform(&self, mut call: Call) -> Reply {
        let Some(sabotage) = self.sabotage else { return self.answer(call).await };
        if let Some(reply) = self.unasked(sabotage, &call) {
            return reply;
        }
        let is_follow = matches!(call, Call::Follow { .. });
        match (sabotage, &mut call) {
            (Sabotage::Visibility, Call::Publish { post, .. }) => {
                post.reach.get_or_insert(Reach::Unlisted);
            }
            (Sabotage::Undone, Call::Publish { post, .. }) if post.token.is_none() => {
                return match self.answer(call).await {
                    Reply::Published { .. } => refused("Unavailable"),
                    reply => reply,
                };
            }
            (Sabotage::Twice | Sabotage::Beside, Call::Publish { post, .. }) if post.token.is_none() => {
                drop(self.answer(call.clone()).await);
            }
            (Sabotage::Early, Call::Publish { post, .. }) => post.ack = None,
            (Sabotage::Mentions, Call::Edit { mentions, .. }) => *mentions = None,
            (Sabotage::OnlyTo, Call::Publish { author, post }) if !post.only_to.is_empty() => {
                post.only_to = vec![*author];
            }
            _ => {}
        }
        let is_order = match sabotage {
            Sabotage::Order => matches!(call, Call::Following { .. }),
            Sabotage::Lists => matches!(call, Call::List { .. } | Call::Conversation { .. }),
            _ => false,
        };
        match sabotage {
            Sabotage::Late => return self.late(call).await,
            Sabotage::Hasty => return self.hasty(call).await,
            Sabotage::Unarchived => return self.unarchived(call).await,
            Sabotage::Hole => return self.hollowing(call).await,
            Sabotage::Awake if is_follow => {
                self.followed.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
            }
            _ => {}
        }
        let reader = call.whose();
        let is_around = sabotage == Sabotage::Lists && matches!(call, Call::Read(_));
        let is_cut = sabotage == Sabotage::Public
            && matches!(&call, Call::Read(asked) if asked.which == Which::Public);
        match self.answer(call).await {
            Reply::Page(page) if is_around => Reply::Page(turned_around(page)),
            Reply::Page(page) if sabotage == Sabotage::ShortPage && page.lacks_archive => {
                Reply::Page(Page { next: None, newer: None, lacks_archive: false, ..page })
            }
            Reply::Page(mut page) if is_cut => {
                page.posts.pop();
                Reply::Page(page)
            }
            Reply::Ranked(mut page, next) if sabotage == Sabotage::Ranked => {
                page.posts.retain(|post| Some(post.author) != reader);
                Reply::Ranked(page, next)
            }
            reply if sabotage == Sabotage::Early => early(reply),
            reply if sabotage == Sabotage::Clocks => self.by_own_clock(reply),
            Reply::Flag(_) if sabotage == Sabotage::Lock && is_follow => Reply::Flag(true),
            Reply::Ids(ids) if is_order => Reply::Ids(ids.into_iter().rev().collect()),
            Reply::Page(mut page) if is_order => {
                page.posts.reverse();
                Reply::Page(page)
            }
            reply => reply,
        }
    }

    /// A post has the id of the moment that this instance's clock shows.
    fn by_own_clock(&self, mut reply: Reply) -> Reply {
        if let Reply::Published { id, .. } = &mut reply {
            let (began, shown_then) = self.began;
            let right = shown_then + began.elapsed();
            let shown = SystemTime::now();
            let ahead = shown.duration_since(right).unwrap_or_default();
            let behind = right.duration_since(shown).unwrap_or_default();
            let ms = |off: Duration| u64::try_from(off.as_millis()).unwrap_or(0) << ID_LOW_BITS;
            *id = (*id + ms(ahead)).saturating_sub(ms(behind));
        }
        reply
    }

    /// What no server has confirmed is said to be done.
    async fn hasty(&self, call: Call) -> Reply {
        let Some(done) = call.hasty_reply() else { return self.answer(call).await };
        match timeout(HASTE, self.answer(call)).await {
            Ok(Reply::Failed { may_retry: true, .. }) | Err(_) => done,
            Ok(reply) => reply,
        }
    }

    /// What the archive has not heard of is said to be done.
    async fn unarchived(&self, call: Call) -> Reply {
        let done = call.hasty_reply();
        match (self.answer(call).await, done) {
            (Reply::Failed { is_archive_away: true, .. }, Some(done)) => done,
            (reply, _) => reply,
        }
    }

    /// With each of the first posts that it has delivered it takes an old entry out of full homes.
    async fn hollowing(&self, call: Call) -> Reply {
        let of = if let Call::Delivered { post } = call { Some(post) } else { None };
        let reply = self.answer(call).await;
        if let (Some(post), Reply::Done) = (of, &reply)
            && self.answered.load(Ordering::Relaxed) < HOLES
        {
            let is_taken = stored::take_old_entries(self.engine.store(), post).await;
            let is_taken = is_taken.expect("a cluster without faults");
            self.answered.fetch_add(u64::from(is_taken), Ordering::Relaxed);
        }
        reply
    }

    /// Binds the tenant to the least that it could have, as if its own settings counted.
    pub(super) async fn decide_alone(&self) -> tideline::Result<()> {
        let mut change = self.engine.decision().change();
        for (name, least) in [("outbox_posts", "100"), ("mentions_max", "20"), ("tag_posts_max", "20")] {
            change = change.set(name, least)?;
        }
        self.engine.decide(&change).await.map(drop)
    }

    /// Makes all follows once more, whenever this process has slept.
    pub(super) async fn follow_when_awake(&self) {
        loop {
            let since = Instant::now();
            tokio::time::sleep(TICK).await;
            if since.elapsed() > SLEEP_MIN {
                let calls = self.followed.lock().unwrap_or_else(PoisonError::into_inner).clone();
                stream::iter(calls).for_each_concurrent(AT_ONCE, |call| self.answer(call).map(drop)).await;
            }
        }
    }

    /// What is delivered of one author's posts is said when all is drained.
    async fn late(&self, call: Call) -> Reply {
        let HeldBack { posts, until } = &self.held_back;
        match call {
            Call::Delivered { post }
                if posts.lock().unwrap_or_else(PoisonError::into_inner).contains(&post) =>
            {
                until.notified().await;
            }
            Call::Drained { .. } => until.notify_waiters(),
            _ => {}
        }
        let is_held = matches!(call, Call::Publish { author: HELD_BACK, .. });
        let reply = self.answer(call).await;
        if let Reply::Published { id, .. } = reply
            && is_held
        {
            posts.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
        reply
    }
}
