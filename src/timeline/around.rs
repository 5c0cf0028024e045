//! Extras that come along with the posts of a page, if the query asks for it, in two batches: what the reader has done
//! with them, and the newest on their lists; then these replies and accounts, with whether they restrict the reader.

use std::sync::Arc;

use futures::future::try_join;
use tokio::time::Instant;

use super::Timelines;
use super::page::{AROUND_MAX, AROUND_PAGE_MAX, Page, PagePost, Query};
use super::view::View;
use super::viewpoint::Viewpoint;
use crate::error::{Error, Result};
use crate::graph;
use crate::ids::AccountId;
use crate::post::{PostHeader, PostRef, Reference};
use crate::reader::{ReaderTies, look_at_ties};
use crate::sharded::{Member, Questions, SetAnswer};
use crate::tiers::{NewestAsk, newest_archived};

/// A list of so many members counts as long.
const LONG_FROM: u32 = 1_000;

/// Refuses what is more than a page of so many posts carries.
pub(super) fn check(query: &Query, posts: usize) -> Result<()> {
    for (what, asked) in [("likers", query.likers), ("replies", query.replies)] {
        if asked > AROUND_MAX {
            return Err(Error::out_of_range(format!(
                "{what} of each post: {asked}; at most {AROUND_MAX} are allowed"
            )));
        }
        if posts * asked > AROUND_PAGE_MAX {
            let all = posts * asked;
            return Err(Error::out_of_range(format!(
                "{what} of each post: {asked} of {posts} posts are {all}; at most {AROUND_PAGE_MAX} are allowed \
                 on a page"
            )));
        }
    }
    Ok(())
}

/// Whether anything is to come along.
pub(super) fn is_wanted(query: &Query) -> bool {
    query.ties || query.likers + query.replies > 0
}

/// Adds to a hydrated page what its query asks for, and whom its posts mention. The view is that of the page.
pub(super) async fn add(view: &mut View<'_>, query: &Query, page: &mut Page) -> Result<()> {
    let Viewpoint { timelines, reader, .. } = view.by;
    if page.posts.is_empty() || !is_wanted(query) {
        return view.add_mentioned(&mut page.posts).await;
    }
    let subjects: Vec<PostRef> = page.posts.iter().map(PagePost::subject).collect();
    let mut questions = Questions::default();
    let mut lists = Vec::new();
    for (n, (post, subject)) in page.posts.iter().zip(&subjects).enumerate() {
        let Some(header) = subject_header(post, *subject) else { continue };
        for (kind, most, length) in
            [(graph::LIKES, query.likers, header.likes), (Reference::REPLY, query.replies, header.replies)]
        {
            // A post says how long its lists are: most have none.
            if most > 0 && length > 0 {
                lists.push(WantedList::ask(timelines, n, (*subject, kind), most, length, &mut questions)?);
            }
        }
    }
    let asked = Instant::now();
    let stamps = view.current.stamps.clone();
    let look = async {
        if query.ties {
            look_at_ties(&timelines.graph.readers, reader, &stamps).await.map(Some)
        } else {
            Ok(None)
        }
    };
    let (looked, told) = try_join(look, questions.ask(timelines.tenant.sets())).await?;
    let mut newest = NewestOfLists::default();
    newest.tell(timelines, lists, asked, told).await?;
    let NewestOfLists { likers, replies, lacks_archive } = newest;
    let mut accounts = view.mentioned_in(&mut page.posts);
    accounts.extend(likers.iter().flat_map(|(_, of)| of));
    let posts: Vec<PostRef> = replies.iter().flat_map(|(_, of)| of.iter().copied()).collect();
    let tie = async {
        let Some(looked) = looked else { return Ok(Vec::new()) };
        let of: Vec<PostRef> = subjects.iter().chain(&posts).copied().collect();
        looked.with(&timelines.graph.readers, reader, &stamps, &of).await
    };
    let load = async {
        if posts.is_empty() && accounts.is_empty() {
            Ok(None)
        } else {
            view.load_ahead(&posts, &accounts).await
        }
    };
    let (ties, untold) = try_join(tie, load).await?;
    let is_told =
        |view: &View<'_>, post| !untold.as_ref().is_some_and(|of| view.loaded.shows_untold(post, of));
    page.lacks_archive |= lacks_archive || untold.is_some();
    let mut ties = ties.into_iter().map(Some);
    let mut next_ties = || -> Option<ReaderTies> { ties.next().flatten() };
    page.posts.iter_mut().for_each(|post| post.ties = next_ties());
    view.show_mentioned(&mut page.posts);
    for (n, of) in likers {
        page.posts[n].likers = of.into_iter().filter_map(|account| view.account(account)).collect();
    }
    for (n, of) in replies {
        let with_ties = of.into_iter().map(|reply| (reply, next_ties()));
        let shown = with_ties.filter(|(reply, _)| is_told(view, *reply) && view.shows(*reply));
        let replies = shown.map(|(reply, ties)| PagePost { ties, ..view.page_post(reply) });
        page.posts[n].replies = replies.collect();
    }
    Ok(())
}

/// The newest on the lists of a page's posts, each with the post's number.
#[derive(Default)]
struct NewestOfLists {
    likers: Vec<(usize, Vec<AccountId>)>,
    replies: Vec<(usize, Vec<PostRef>)>,
    /// Some only the archive could tell, which is away.
    lacks_archive: bool,
}

impl NewestOfLists {
    async fn tell(
        &mut self,
        timelines: &Timelines,
        lists: Vec<WantedList>,
        asked: Instant,
        told: Vec<SetAnswer>,
    ) -> Result<()> {
        let mut told = told.into_iter();
        let (mut found, mut absent) = (Vec::with_capacity(lists.len()), Vec::new());
        for (number, list) in lists.into_iter().enumerate() {
            let (n, kind) = (list.post, list.kind);
            let ask = NewestAsk { post: list.of, kind, most: list.most };
            let members = list.members(timelines, asked, &mut told);
            // A list that has nothing is one of a post that has left memory.
            if members.is_empty() {
                absent.push((number, ask));
            }
            found.push((n, kind, members));
        }
        let asks: Vec<NewestAsk> = absent.iter().map(|(_, ask)| *ask).collect();
        let (archived, untold) = newest_archived(&timelines.tenant, &asks).await?;
        self.lacks_archive = !untold.posts.is_empty();
        for ((number, _), members) in absent.into_iter().zip(archived) {
            found[number].2 = members;
        }
        for (n, kind, members) in found {
            match kind {
                graph::LIKES => self.likers.push((n, read_members(&members)?)),
                _ => self.replies.push((n, read_members(&members)?)),
            }
        }
        Ok(())
    }
}

fn read_members<M: Member>(members: &[Vec<u8>]) -> Result<Vec<M>> {
    members.iter().map(|member| M::from_bytes(member)).collect()
}

/// The newest of a list that are wanted for a page.
struct WantedList {
    /// Number of the page's post, and which list of which post that is.
    post: usize,
    of: PostRef,
    kind: u8,
    most: usize,
    /// A long list has many pieces, and all of them are asked: what they said is remembered for a while.
    is_long: bool,
    remembered: Option<Arc<[Vec<u8>]>>,
}

impl WantedList {
    fn ask(
        timelines: &Timelines,
        post: usize,
        (of, kind): (PostRef, u8),
        most: usize,
        length: u32,
        questions: &mut Questions,
    ) -> Result<Self> {
        let is_long = length > LONG_FROM;
        let cache = &timelines.caches.newest;
        let remembered = if is_long { cache.get(&(of.id, kind), Instant::now()) } else { None };
        if is_long {
            cache.count(usize::from(remembered.is_some()), usize::from(remembered.is_none()));
        }
        if remembered.is_none() {
            let most = if is_long { AROUND_MAX } else { most };
            match kind {
                graph::LIKES => questions.newest(&graph::likers(&timelines.tenant, of.id)?, most),
                kind => questions.newest(&graph::list(&timelines.tenant, kind, of.id)?, most),
            }
        }
        Ok(Self { post, of, kind, most, is_long, remembered })
    }

    /// The members as stored: what was remembered, or the next answer.
    fn members(
        self,
        timelines: &Timelines,
        asked: Instant,
        told: &mut impl Iterator<Item = SetAnswer>,
    ) -> Vec<Vec<u8>> {
        let all = match self.remembered {
            Some(all) => all,
            None => {
                let all: Arc<[Vec<u8>]> = told.next().map(SetAnswer::members).unwrap_or_default().into();
                if self.is_long {
                    timelines.caches.newest.put((self.of.id, self.kind), asked, all.clone());
                }
                all
            }
        };
        all.iter().take(self.most).cloned().collect()
    }
}

/// The header of what is liked and answered when a post of a page is.
fn subject_header(post: &PagePost, subject: PostRef) -> Option<&PostHeader> {
    if subject.id == post.id {
        return post.post.as_ref().map(|post| post.header());
    }
    post.original.as_ref().map(|original| original.post.header())
}
