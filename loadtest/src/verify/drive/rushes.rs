//! More at once than an account may: at many instances, each of which has to count what all others let through.

use futures::future::join_all;

use super::Client;
use crate::verify::call::Call;
use crate::verify::check::Wrong;
use crate::verify::comparisons::Subject;
use crate::verify::group_call::GroupCall;
use crate::verify::groups::{POSTED, PostedFact, RUSHED, RUSHED_MOST, account_of};
use crate::verify::run::Ended;
use crate::verify::steps::Rush;
use crate::verify::told::{Message, Reply};
use crate::verify::written::{Written, text_of};

/// Where those who rush into a group do so: the public one.
const PUBLIC: usize = 0;

/// How one of the tries ended, and how often it was sent.
type Tried = (usize, (Ended, usize));

impl Client<'_> {
    /// Never one more than the limit gets through. Alone the post and what counts it are one write. What counts a post
    /// into a group lies elsewhere than the post: a failover may forget it (docs/decisions/0070), and whatever is sent
    /// again may count once more, so fewer may get through.
    pub(super) async fn rush(&self, rush: Rush) {
        let (run, me) = (self.run, self.actor);
        let group = matches!(rush, Rush::Group(_)).then(|| account_of(PUBLIC));
        let enter = group.map(|group| GroupCall::Enter { by: me, group, let_in: None });
        let limit = GroupCall::Limit { account: me, most: RUSHED_MOST };
        let create = Call::Create { account: me, is_locked: false, is_pulled: false };
        let prepare = enter.into_iter().chain([limit]).map(Call::Group);
        if !self.all_done(std::iter::once(create).chain(prepare)).await {
            return;
        }
        run.world().groups.rushers.push(me);
        let text = |n: usize| match rush {
            Rush::Group(first) => text_of(POSTED, first + n),
            Rush::Alone => text_of("alone", n),
        };
        let post = |n| Call::Group(GroupCall::Post { by: me, group, text: text(n) });
        let tries = (0..RUSHED).map(async |n| (n, run.repeat(self.instance + n, post(n)).await));
        let tried = join_all(tries).await;
        if run.has_given_up() {
            return;
        }
        let most = RUSHED_MOST as usize;
        let bounds = match rush {
            Rush::Alone => (most, most),
            Rush::Group(_) if run.world().servers_take_over => (0, RUSHED),
            Rush::Group(_) => (0, most),
        };
        for text in wrongs(&tried, bounds) {
            run.wrong(Wrong::Leaked, me, None, format!("{rush:?}: {text}"));
        }
        if let Rush::Group(first) = rush {
            let mut world = run.world();
            for (n, (ended, sent)) in &tried {
                let fact = PostedFact::new(PUBLIC, first + n, Written::new(me, id_of(ended), *sent > 1));
                world.groups.posted.insert(first + n, fact);
            }
        }
        let page = Call::Group(GroupCall::Posted { reader: me, group: Some(group.unwrap_or(me)) });
        match run.call(self.instance, page).await {
            Ended::Done(Reply::Messages(read)) => {
                let is_own = |message: &&Message| (0..RUSHED).any(|n| text(n) == message.text);
                let own: Vec<u64> = read.iter().filter(is_own).map(|message| message.id).collect();
                let posted: Vec<u64> = tried.iter().filter_map(|(_, (ended, _))| id_of(ended)).collect();
                // One whose answer was lost may be there, too.
                if !posted.iter().all(|id| own.contains(id)) || own.len() > bounds.1 {
                    let text = format!("{rush:?}: {posted:?} were acknowledged, and {own:?} are there");
                    run.wrong(Wrong::Leaked, me, None, text);
                }
            }
            other => run.skipped(Subject::Groups, &other),
        }
    }
}

fn id_of(ended: &Ended) -> Option<u64> {
    match ended {
        Ended::Done(Reply::Said { id, .. }) => Some(*id),
        _ => None,
    }
}

/// What is wrong about how all tries ended, of which so many at least, and so many at most, get through. What was sent
/// again may have been one of them.
fn wrongs(tried: &[Tried], (least, most): (usize, usize)) -> Vec<String> {
    let mut found = Vec::new();
    let posted = tried.iter().filter(|(_, (ended, _))| id_of(ended).is_some()).count();
    let is_sent_again = tried.iter().any(|(_, (_, sent))| *sent > 1);
    if posted > most || posted < least && !is_sent_again {
        found.push(format!("{posted} of {} were posted, {most} are allowed: {tried:?}", tried.len()));
    }
    let other =
        |(_, (ended, _)): &&Tried| id_of(ended).is_none() && !matches!(ended, Ended::Done(Reply::TooOften));
    found.extend(tried.iter().filter(other).map(|other| format!("refused for something else: {other:?}")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_let_through_as_may_be_and_never_one_more() {
        let said = |sent| (Ended::Done(Reply::Said { id: 1, chat: 2 }), sent);
        let too_often = || (Ended::Done(Reply::TooOften), 1);
        let bound_by = |all: Vec<(Ended, usize)>, bounds| {
            wrongs(&all.into_iter().enumerate().collect::<Vec<_>>(), bounds).len()
        };
        let of = |all| bound_by(all, (3, 3));
        assert_eq!(of(vec![said(1), too_often(), said(1), said(1), too_often()]), 0);
        assert_eq!(of(vec![said(1), said(1), said(1), said(2)]), 1, "one more, whatever was sent again");
        assert_eq!(of(vec![said(1), said(1), too_often()]), 1, "refused too early");
        assert_eq!(of(vec![said(1), said(2), too_often()]), 0, "what was sent again may be the third");
        assert_eq!(bound_by(vec![said(1), too_often()], (0, 3)), 0, "its count was sent again by itself");
        let refused = Ended::Refused { kind: "Invalid".to_owned(), message: String::new(), is_unsure: false };
        assert_eq!(of(vec![said(1), said(1), said(1), (refused, 1)]), 1);
    }
}
