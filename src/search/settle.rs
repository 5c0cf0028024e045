//! Bringing the index in line with posts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::archive::{Archive, IndexChange, IndexKey, IndexVersion, IndexedPost};
use crate::cluster::TouchedServers;
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::ids::PostId;
use crate::nonce::draw;
use crate::post::{Post, PostRef, Visibility, words_of_post};
use crate::tenant::{Tenant, archive_away, as_away};

/// Posts that are brought in line in one call of the archive.
pub(crate) const POSTS_AT_ONCE: usize = 64;
/// The longest that a call may take: tasks wait for it, and wait without a place once it is over.
const CALL_MAX: Duration = Duration::from_secs(2);
/// For how long an archive isn't asked that was away.
const LEFT_ALONE: Duration = Duration::from_secs(1);
/// Tries of posts of which the index is changed by somebody else meanwhile.
const TRIES_MAX: usize = 4;

/// Posts of many tasks, brought in line by few calls: whoever has the turn takes along all who wait for it.
#[derive(Debug, Default)]
pub(crate) struct Indexer {
    waiting: Mutex<Vec<WaitingPost>>,
    /// Who has it is at work; until when the archive is left alone.
    turn: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct WaitingPost {
    post: PostRef,
    /// Who waits for it.
    tell: oneshot::Sender<Result<()>>,
}

impl Indexer {
    /// Brings the index in line with a post, together with those of others.
    ///
    /// [`ErrorCode::ArchiveAway`]: whether that was done nobody knows.
    pub(crate) async fn settle(&self, tenant: &Tenant, post: PostRef) -> Result<()> {
        let (tell, mut told) = oneshot::channel();
        self.waiting().push(WaitingPost { post, tell });
        let mut turn = tokio::select! {
            biased;
            answer = &mut told => return answer.unwrap_or_else(|_| Err(gone())),
            turn = self.turn.lock() => turn,
        };
        loop {
            match told.try_recv() {
                // Who had the turn before.
                Ok(answer) => return answer,
                Err(oneshot::error::TryRecvError::Closed) => return Err(gone()),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            let batch: Vec<WaitingPost> = {
                let mut waiting = self.waiting();
                let many = waiting.len().min(POSTS_AT_ONCE);
                waiting.drain(..many).collect()
            };
            let posts: Vec<PostRef> = batch.iter().map(|waiting| waiting.post).collect();
            let answers = match *turn {
                Some(until) if Instant::now() < until => {
                    vec![Err(away("it is left alone a while")); posts.len()]
                }
                _ => settle_each(tenant, &posts).await,
            };
            let is_away =
                |answer: &Result<()>| answer.as_ref().is_err_and(|e| e.code() == ErrorCode::ArchiveAway);
            *turn = answers.iter().any(is_away).then(|| Instant::now() + LEFT_ALONE);
            for (waiting, answer) in batch.into_iter().zip(answers) {
                // Who has gone meanwhile asks no more.
                let _ = waiting.tell.send(answer);
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingPost>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn away(why: &str) -> Error {
    Error::new(ErrorCode::ArchiveAway, format!("the index of the archive: {why}"))
}

fn gone() -> Error {
    Error::unavailable("who was to bring the index in line has gone")
}

/// Posts that can't be read here, and why.
type UnreadablePosts = Vec<(PostId, Error)>;

/// Brings the index in line with posts, and says of each whether that was done.
async fn settle_each(tenant: &Tenant, posts: &[PostRef]) -> Vec<Result<()>> {
    let in_time = async |posts: &[PostRef]| {
        timeout(CALL_MAX, settle(tenant, posts)).await.unwrap_or_else(|_| Err(away("no answer")))
    };
    let of_post = |post: &PostRef, unreadable: &UnreadablePosts| {
        let its = unreadable.iter().find(|(id, _)| *id == post.id);
        its.map_or(Ok(()), |(_, why)| Err(why.clone()))
    };
    match in_time(posts).await {
        Ok(unreadable) => posts.iter().map(|post| of_post(post, &unreadable)).collect(),
        Err(e) if posts.len() == 1 || e.code() == ErrorCode::ArchiveAway => vec![Err(e); posts.len()],
        // A server that is away holds up nobody's posts but its own.
        Err(_) => {
            let mut answers = Vec::with_capacity(posts.len());
            for post in posts {
                let answer = in_time(&[*post]).await;
                answers.push(answer.and_then(|unreadable| of_post(post, &unreadable)));
            }
            answers
        }
    }
}

/// Brings the index in line with posts as they are now, up to [`POSTS_AT_ONCE`]. Repeated it changes nothing that
/// anybody finds. Gives those that can't be read: what the index has of them stays, for nothing is decided as if they
/// were gone (H93).
pub(crate) async fn settle(tenant: &Tenant, posts: &[PostRef]) -> Result<UnreadablePosts> {
    let mut unreadable = UnreadablePosts::new();
    let Some(archive) = tenant.archive()? else { return Ok(unreadable) };
    // An id that stands here twice is one post, whoever is said to be its author.
    let mut open = posts.to_vec();
    open.sort_unstable();
    open.dedup_by_key(|post| post.id);
    for _ in 0..TRIES_MAX {
        open = settle_once(tenant, archive, open, &mut unreadable).await?;
        if open.is_empty() {
            return Ok(unreadable);
        }
    }
    let text = format!(
        "others changed the index entries of {} posts during each of {TRIES_MAX} tries to update them. \
         Try again",
        open.len()
    );
    Err(Error::new(ErrorKind::Conflict, text))
}

/// Tries once; gives those that others were at meanwhile.
async fn settle_once(
    tenant: &Tenant,
    archive: &dyn Archive,
    posts: Vec<PostRef>,
    unreadable: &mut UnreadablePosts,
) -> Result<Vec<PostRef>> {
    let buckets = tenant.keys().buckets();
    let keys: Vec<IndexKey> =
        posts.iter().map(|post| IndexKey { bucket: post.id.bucket(buckets), post: post.id }).collect();
    // H210: before the post is read. What somebody writes after that by an older look is compared with it.
    let seen = archive.index_versions(&keys).await.map_err(index_away)?;
    let mut touched = TouchedServers::new();
    let found = tenant.posts().get_many_touching(&posts, &mut touched).await?;
    // H211: a failover that takes back what was read would leave it in the index.
    tenant.router().fence(&touched).await?;
    let changes: Vec<IndexChange> = keys
        .into_iter()
        .zip(seen)
        .zip(found)
        // H212: also of a post that is gone, and of which nothing is there.
        .filter_map(|((key, seen), found)| match found.readable() {
            Ok(post) => Some(change_of(key, seen, post)),
            Err(why) => {
                unreadable.push((key.post, why));
                None
            }
        })
        .collect();
    let made = archive.index(&changes).await.map_err(index_away)?;
    let failed = changes.iter().zip(made).filter(|(_, is_made)| !is_made).map(|(change, _)| change.key.post);
    let failed: Vec<PostId> = failed.collect();
    Ok(posts.into_iter().filter(|post| failed.contains(&post.id)).collect())
}

fn change_of(key: IndexKey, seen: Option<IndexVersion>, post: Option<Post>) -> IndexChange {
    IndexChange { key, seen, version: IndexVersion(draw()), post: post.and_then(|post| indexed(&post)) }
}

/// The entry that the index has of a post.
fn indexed(post: &Post) -> Option<IndexedPost> {
    let words: Vec<String> = words_of_post(post).into_iter().collect();
    let (author, is_public) = (post.header().author, is_found_by_all(post));
    (!words.is_empty()).then_some(IndexedPost { author, is_public, words })
}

/// Whether others than its author find a post: who may see it is settled when it is written.
pub(crate) fn is_found_by_all(post: &Post) -> bool {
    post.header().visibility == Visibility::Public && post.is_for_all()
}

/// Counts as away what can be asked again as it was: nobody waits for it in a place.
fn index_away(failure: Error) -> Error {
    match failure.kind() {
        ErrorKind::Unknown => as_away(failure),
        _ => archive_away(failure),
    }
}
