//! The conversation around a post: what it answers, up to the beginning, and what answers it, down.

use std::collections::{HashMap, HashSet};

use crate::engine::Viewer;
use crate::error::{CallFuture, Result};
use crate::graph;
use crate::ids::PostId;
use crate::meters;
use crate::post::{PostRef, Reference};
use crate::sharded::{Member as _, Questions};
use crate::tiers::{NewestAsk, newest_archived};
use crate::timeline::{PagePost, View};

/// Most posts above a post. Each costs a trip: only a post says what it answers.
pub const ANCESTORS_MAX: usize = 40;
/// Most posts below a post.
pub const DESCENDANTS_MAX: usize = 200;
/// Most posts below a post that are loaded to find these: some don't show.
const LOADED_MAX: usize = 2 * DESCENDANTS_MAX;
/// Most levels below a post: each costs two trips.
const DEPTH_MAX: usize = 20;
/// Replies to one post.
const REPLIES_MAX: usize = 60;
/// Newest replies, to all posts of a level together, that these are chosen from: sixty that hardly anybody may see, all
/// of one account, took a thread from everybody (H285).
const LOOKED_AT_MAX: usize = 1_000;

/// The part of the conversation around a post that a viewer may see.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Conversation {
    /// What the post answers, what that answers, and so on: the first of all first. Up to [`ANCESTORS_MAX`].
    pub ancestors: Vec<PagePost>,
    /// The post itself.
    pub post: PagePost,
    /// What answers it, each post followed by what answers that, the oldest first. Up to [`DESCENDANTS_MAX`].
    pub descendants: Vec<PagePost>,
    /// Whether the archive was away: what only that could tell is left out, above the post or below it.
    pub lacks_archive: bool,
}

impl<'a> Viewer<'a> {
    /// Reads the conversation around a post, as far as the viewer may see it, hydrated and with ties. What stands
    /// between two posts and is gone, or not for the viewer, is left out; above a post that is gone nothing is known.
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): there is no such post, or the viewer may not see it.
    /// [`ErrorCode::ArchiveAway`](crate::ErrorCode::ArchiveAway): only the archive could tell the post itself.
    pub fn conversation(self, post: PostId) -> CallFuture<'a, Conversation> {
        Box::pin(async move {
            let (mut view, post) = self.view_of(post).await?;
            let (post, _) = view.subject(post).await?;
            let mut untold = UntoldBranches::default();
            let ancestors = ancestors(&mut view, post, &mut untold).await?;
            let descendants = self.descendants(&mut view, post, &mut untold).await?;
            meters::list("conversation");
            let lacks_archive = untold.lacks_archive;
            if lacks_archive {
                meters::archive_away();
            }
            let above = ancestors.len();
            let all: Vec<PostRef> = ancestors.into_iter().chain([post]).chain(descendants).collect();
            let mut all = view.tied(all).await?;
            let descendants = all.split_off(above + 1);
            let post = all.split_off(above).remove(0);
            Ok(Conversation { ancestors: all, post, descendants, lacks_archive })
        })
    }

    /// The answers to a post, and the answers to those: level by level, then in the order in which they are read.
    async fn descendants(
        self,
        view: &mut View<'_>,
        post: PostRef,
        untold: &mut UntoldBranches,
    ) -> Result<Vec<PostRef>> {
        let tenant = self.engine.tenant();
        let mut answers: HashMap<PostRef, Vec<PostRef>> = HashMap::new();
        let (mut known, mut open, mut shown) = (HashSet::from([post]), vec![post], 0);
        for _ in 0..DEPTH_MAX {
            let room = (DESCENDANTS_MAX - shown).min(LOADED_MAX - (known.len() - 1));
            // A post says how long its lists are: most have none.
            open.retain(|post| view.post(*post).is_some_and(|post| post.header().replies > 0));
            if open.is_empty() || room == 0 {
                break;
            }
            let mut questions = Questions::default();
            let most = REPLIES_MAX.min(room);
            let looked_at = (LOOKED_AT_MAX / open.len()).max(most);
            for post in &open {
                let replies = graph::list(tenant, Reference::REPLY, post.id)?;
                questions.newest(&replies, looked_at);
            }
            let mut told = Vec::with_capacity(open.len());
            for answer in questions.ask(tenant.sets()).await? {
                // H285: whatever one account answers, others' answers are read.
                told.push(graph::newest_of_each(&answer.newest::<PostRef>()?, most));
            }
            // Those of posts that have left memory.
            let mut absent: Vec<(PostRef, &mut Vec<PostRef>)> =
                open.iter().copied().zip(&mut told).filter(|(_, replies)| replies.is_empty()).collect();
            let ask =
                |(post, _): &(PostRef, _)| NewestAsk { post: *post, kind: Reference::REPLY, most: looked_at };
            let asks: Vec<NewestAsk> = absent.iter().map(ask).collect();
            let (archived, untold_lists) = newest_archived(tenant, &asks).await?;
            untold.lacks_archive |= !untold_lists.posts.is_empty();
            for ((_, replies), archived) in absent.iter_mut().zip(archived) {
                let archived = archived.iter().map(|reply| PostRef::from_bytes(reply));
                **replies = graph::newest_of_each(&archived.collect::<Result<Vec<_>>>()?, most);
            }
            let (mut next, full) = (Vec::new(), known.len() + room);
            for (parent, mut replies) in open.into_iter().zip(told) {
                replies.retain(|reply| known.len() < full && known.insert(*reply));
                replies.sort_unstable();
                next.extend(replies.iter().copied());
                answers.insert(parent, replies);
            }
            untold.load(view, &next).await?;
            shown += next.iter().filter(|reply| view.shows(**reply)).count();
            open = next;
        }
        let mut ordered = Vec::with_capacity(known.len());
        let mut to_come = vec![post];
        while let Some(next) = to_come.pop() {
            ordered.push(next);
            to_come.extend(answers.remove(&next).into_iter().flatten().rev());
        }
        ordered.retain(|answer| *answer != post && view.shows(*answer) && !untold.posts.contains(answer));
        Ok(ordered)
    }
}

/// Branches of a conversation that are left out since only the archive could tell it, while it is away.
#[derive(Default)]
struct UntoldBranches {
    posts: HashSet<PostRef>,
    lacks_archive: bool,
}

impl UntoldBranches {
    /// Loads posts, and notes those among them.
    async fn load(&mut self, view: &mut View<'_>, posts: &[PostRef]) -> Result<()> {
        let untold = view.load_as_told(posts, &[]).await?;
        self.posts.extend(posts.iter().filter(|post| view.is_untold(**post, untold.as_ref())));
        self.lacks_archive |= untold.is_some();
        Ok(())
    }
}

/// The posts above a post, each answered by the next, as far as they show: the first of all first.
async fn ancestors(view: &mut View<'_>, post: PostRef, untold: &mut UntoldBranches) -> Result<Vec<PostRef>> {
    let mut above = Vec::new();
    let mut at = post;
    for _ in 0..ANCESTORS_MAX {
        let Some(parent) = view.post(at).and_then(|post| post.header().reply_to) else { break };
        // Nobody answers what comes later; what a stored post says may be wrong all the same.
        if above.contains(&parent) || parent == post {
            break;
        }
        untold.load(view, &[parent]).await?;
        above.push(parent);
        at = parent;
    }
    above.retain(|post| view.judge(*post).is_ok() && !untold.posts.contains(post));
    above.reverse();
    Ok(above)
}
