//! Copying accounts, with their posts and these posts' lists.

use tideline_model::archive::{
    Archive, ArchivedPost, CHANGES_MAX, ListMember, MemberList, MembersAsk, Owner, OwnerChange, OwnerPage,
    OwnerState, PAGE_MAX, PageAsk, PageContent, PageOrder, PostAsk, Prerequisite,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::{Error, Result};
use tideline_model::ids::{AccountId, PostId};

use super::{BEGIN_ANEW, CopiedCount, again};

/// Accounts that are copied at the same time: as many as a call may change.
const OWNERS_AT_ONCE: usize = CHANGES_MAX;
/// Posts that are read at once.
const POSTS_AT_ONCE: usize = PAGE_MAX;
/// Posts whose lists are read at once.
const LISTS_AT_ONCE: usize = 64;
/// Bytes after which is written what was read, far below what a call may bring: the last posts go over it.
const BYTES_AT_ONCE: usize = 16 << 20;

/// An account of which not all is copied.
#[derive(Debug)]
struct OpenOwner {
    owner: Owner,
    state: OwnerState,
    /// The last post that was.
    edge: PostId,
}

pub(super) async fn copy(
    from: &dyn Archive,
    to: &dyn Archive,
    bucket: Bucket,
    count: &mut CopiedCount,
    progress: &impl Fn(CopiedCount),
) -> Result<()> {
    let lowest = PostId::from_u64(0)?;
    let mut after: Option<AccountId> = None;
    loop {
        let owners = again(|| from.walk_owners(bucket, after, OWNERS_AT_ONCE)).await?;
        let Some((last, _)) = owners.last() else { return Ok(()) };
        after = Some(*last);
        count.owners += owners.len() as u64;
        let open = |(account, state)| OpenOwner { owner: Owner { bucket, account }, state, edge: lowest };
        let mut open: Vec<OpenOwner> = owners.into_iter().map(open).collect();
        while !open.is_empty() {
            open = copy_some(from, to, open, count).await?;
            progress(*count);
        }
    }
}

/// Copies some posts of each of these. Gives those that have more.
async fn copy_some(
    from: &dyn Archive,
    to: &dyn Archive,
    open: Vec<OpenOwner>,
    count: &mut CopiedCount,
) -> Result<Vec<OpenOwner>> {
    let most = POSTS_AT_ONCE / open.len();
    let ask = |open: &OpenOwner| PageAsk { owner: open.owner, edge: open.edge, most };
    let asks: Vec<PageAsk> = open.iter().map(ask).collect();
    let pages = again(|| from.pages(&asks, PageOrder::OldestFirst, PageContent::Posts)).await?;
    let mut batch = ChangeBatch { to, changes: Vec::new(), bytes: 0 };
    let mut rest = Vec::new();
    for (open, OwnerPage { posts, .. }) in open.into_iter().zip(pages) {
        count.posts += posts.len() as u64;
        let Some(edge) = posts.last().map(|post| post.id) else {
            // Who was deleted gets nothing in any more: that comes when all is there.
            batch.change_of(&open).buries = open.state.is_buried;
            continue;
        };
        let has_more = posts.len() == most || open.state.is_buried;
        for posts in posts.chunks(LISTS_AT_ONCE) {
            let lists = lists_of(from, open.owner.bucket, posts).await?;
            for (post, lists) in posts.iter().zip(lists) {
                count.members += lists.iter().map(|list| list.members.len() as u64).sum::<u64>();
                batch.add(&open, post.clone(), lists).await?;
            }
        }
        if has_more {
            rest.push(OpenOwner { edge, ..open });
        }
    }
    batch.write().await?;
    Ok(rest)
}

/// Lists of posts, whole.
async fn lists_of(
    from: &dyn Archive,
    bucket: Bucket,
    posts: &[ArchivedPost],
) -> Result<Vec<Vec<MemberList>>> {
    let post = |post: &ArchivedPost| PostAsk { bucket, id: post.id, owner: None };
    let asks: Vec<PostAsk> = posts.iter().map(post).collect();
    let kinds = again(|| from.list_kinds(&asks)).await?;
    let mut lists: Vec<Vec<MemberList>> = vec![Vec::new(); posts.len()];
    let mut open: Vec<(usize, MembersAsk, Vec<ListMember>)> = Vec::new();
    for (n, (post, kinds)) in asks.iter().zip(kinds).enumerate() {
        let ask = |kind| MembersAsk { bucket, post: post.id, kind, below: None, most: PAGE_MAX };
        open.extend(kinds.into_iter().map(|kind| (n, ask(kind), Vec::new())));
    }
    while !open.is_empty() {
        let asks: Vec<MembersAsk> = open.iter().map(|(_, ask, _)| ask.clone()).collect();
        let answers = again(|| from.members(&asks)).await?;
        let mut rest = Vec::new();
        for ((n, ask, mut found), answer) in open.into_iter().zip(answers) {
            let is_full = answer.members.len() == ask.most;
            found.extend(answer.members);
            if is_full {
                let below = found.last().cloned();
                rest.push((n, MembersAsk { below, ..ask }, found));
            } else {
                // They came from the highest down.
                found.reverse();
                lists[n].push(MemberList { kind: ask.kind, first: 0, members: found });
            }
        }
        open = rest;
    }
    Ok(lists)
}

/// Changes that are made in one call.
struct ChangeBatch<'a> {
    to: &'a dyn Archive,
    changes: Vec<OwnerChange>,
    bytes: usize,
}

impl ChangeBatch<'_> {
    /// The change of this account, which is the last one.
    fn change_of(&mut self, open: &OpenOwner) -> &mut OwnerChange {
        let OpenOwner { owner, state, .. } = *open;
        let new = || OwnerChange {
            owner,
            // With the token that stands there: the same can be said any number of times.
            token: state.token,
            needs: Prerequisite::default(),
            upto: state.upto,
            posts: Vec::new(),
            erased: Vec::new(),
            buries: false,
        };
        match self.changes.last().map(|last| last.owner) {
            Some(last) if last == owner => {}
            _ => self.changes.push(new()),
        }
        let last = self.changes.len() - 1;
        &mut self.changes[last]
    }

    async fn add(&mut self, open: &OpenOwner, post: ArchivedPost, lists: Vec<MemberList>) -> Result<()> {
        let members = lists.iter().flat_map(|list| &list.members);
        self.bytes += post.stored.len() + post.parts.encoded_len();
        self.bytes += members.map(|member| member.bytes.len() + 9).sum::<usize>();
        self.change_of(open).posts.push((post, lists));
        if self.bytes >= BYTES_AT_ONCE { self.write().await } else { Ok(()) }
    }

    async fn write(&mut self) -> Result<()> {
        let changes = std::mem::take(&mut self.changes);
        self.bytes = 0;
        let outcomes = again(|| self.to.change(&changes)).await?;
        match changes.iter().zip(outcomes).find_map(|(change, outcome)| Some((change, outcome.err()?))) {
            Some((change, refusal)) => Err(Error::misconfigured(format!(
                "the copy refuses posts of account {}, since somebody else changes it ({refusal:?}): {BEGIN_ANEW}",
                change.owner.account
            ))),
            None => Ok(()),
        }
    }
}
