//! Instances that answer wrongly on purpose: what an engine could do and this test must find.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::args::Sabotage;
use super::call::{Call, Reach};
use super::perform::{HeldBack, Performer};
use super::told::Reply;

/// Whose posts are late.
const HELD_BACK: u64 = 1;
/// One follow in so many is refused.
const REFUSED: u64 = 20;

impl Performer {
    /// Whether this follow is one of those.
    fn is_turn(&self) -> bool {
        self.answered.fetch_add(1, Ordering::Relaxed) % REFUSED == REFUSED - 1
    }

    /// Carries a call out, as well as this run wants it.
    pub(crate) async fn perform(&self, mut call: Call) -> Reply {
        let Some(sabotage) = self.sabotage else { return self.answer(call).await };
        let is_follow = matches!(call, Call::Follow { .. });
        let refused = |kind: &str| Reply::Failed {
            kind: kind.to_owned(),
            message: "sabotage".to_owned(),
            may_retry: false,
        };
        match (sabotage, &mut call) {
            (Sabotage::Refusal, Call::Follow { .. }) if self.is_turn() => return refused("Invalid"),
            (Sabotage::Unanswered, Call::Following { .. } | Call::Followers { .. }) => {
                return refused("Internal");
            }
            (Sabotage::Visibility, Call::Publish { post, .. }) => {
                post.reach.get_or_insert(Reach::Unlisted);
            }
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
        if sabotage == Sabotage::Late {
            return self.late(call).await;
        }
        let is_around = sabotage == Sabotage::Lists && matches!(call, Call::Read(_));
        match self.answer(call).await {
            Reply::Page(mut page) if is_around => {
                for shown in &mut page.posts {
                    shown.likers.reverse();
                    shown.replies.reverse();
                }
                Reply::Page(page)
            }
            Reply::Flag(_) if sabotage == Sabotage::Lock && is_follow => Reply::Flag(true),
            Reply::Ids(ids) if is_order => Reply::Ids(ids.into_iter().rev().collect()),
            Reply::Page(mut page) if is_order => {
                page.posts.reverse();
                Reply::Page(page)
            }
            reply => reply,
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
