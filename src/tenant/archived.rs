//! Posts of a tenant that have left memory: found by who finds none there.

use super::posts::Posts;
use crate::account::AccountState;
use crate::archive::{Archive, PostAsk};
use crate::cluster::{Batch, Command, Request};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::fields::RecordField;
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::PostRef;
use crate::stored::{ArchiveFloor, RareTelling, StoredPost};

/// A question after a post that no server has: whose it is, if that is known.
pub(crate) type MissingPost = (PostId, Option<AccountId>);

/// The owner of a post that has left memory, and where the archive ends for that one.
pub(crate) type LeftPost = (AccountId, ArchiveFloor);

/// Posts asked after in one call of the archive.
const ASKED_AT_ONCE: usize = 1_000;

/// Tells what is wrong with the archive, rather than that it is away.
static REFUSALS: RareTelling = RareTelling::new();

/// Memory's word on a post that wasn't there at the first look.
enum Whereabouts {
    /// It is there after all.
    Memory(Vec<u8>),
    /// If anywhere, it is in the archive.
    Archive(ArchiveFloor),
    Nowhere,
}

/// Posts of those asked for that only the archive could tell, while it doesn't.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    /// Their numbers among those that were asked for.
    pub(crate) posts: Vec<usize>,
    /// Why it doesn't.
    because: Option<Error>,
}

impl Untold {
    /// Adds posts that the archive doesn't tell, for a failure of its.
    pub(crate) fn add(&mut self, posts: impl IntoIterator<Item = usize>, failure: Error) {
        self.posts.extend(posts);
        self.because.get_or_insert(failure);
    }

    /// Refuses, if there are any: with what has failed.
    pub(crate) fn refuse(self) -> Result<()> {
        self.because.map_or(Ok(()), Err)
    }
}

/// The error for what an archive was asked and doesn't do, by what that says. What is wrong with all of it counts as
/// away too, a password, say, or rights (H251); what may be wrong with one post alone stays an error of its own.
pub(crate) fn archive_away(failure: Error) -> Error {
    let kind = failure.kind();
    if matches!(kind, ErrorKind::Misconfigured | ErrorKind::Internal | ErrorKind::Invalid) {
        meters::archive_refused(failure.code());
        REFUSALS.tell(|| format!("the archive fails what it is asked, and pages end above it: {failure}"));
    }
    match kind {
        ErrorKind::Unavailable | ErrorKind::Overloaded | ErrorKind::Misconfigured => as_away(failure),
        _ => failure,
    }
}

/// The error for who shows a page, which ends above what the archive doesn't tell, whatever the reason (H251).
pub(crate) fn unread(failure: Error) -> Error {
    as_away(archive_away(failure))
}

/// A failure of the archive, told already, as readers get it.
pub(crate) fn as_away(failure: Error) -> Error {
    if failure.code() == ErrorCode::ArchiveAway {
        failure
    } else {
        Error::new(ErrorCode::ArchiveAway, failure.to_string())
    }
}

impl Posts<'_> {
    /// Looks for posts in the archive of which memory has just said that there are none, and gives them as they are
    /// stored, with those that only the archive could tell. Nothing of them comes back.
    pub(crate) async fn archived(self, missing: &[MissingPost]) -> Result<(Vec<Option<Vec<u8>>>, Untold)> {
        let (mut found, mut untold) = (vec![None; missing.len()], Untold::default());
        let Some(archive) = self.0.archive()? else { return Ok((found, untold)) };
        for (n, chunk) in missing.chunks(ASKED_AT_ONCE).enumerate() {
            let first = n * ASKED_AT_ONCE;
            self.archived_some(archive, chunk, first, (&mut found, &mut untold)).await?;
        }
        Ok((found, untold))
    }

    /// Of posts that are in the archive, if anywhere: whose each is, and where the archive ends for that one.
    pub(crate) async fn left(self, missing: &[MissingPost]) -> Result<(Vec<Option<LeftPost>>, Untold)> {
        let mut untold = Untold::default();
        let Some(archive) = self.0.archive()? else { return Ok((vec![None; missing.len()], untold)) };
        let owners = self.owners_of(archive, missing, 0, &mut untold).await?;
        let looked = self.whereabouts(missing, &owners).await?;
        let left = looked.into_iter().zip(owners).map(|(place, owner)| match place {
            Whereabouts::Archive(floor) => owner.map(|owner| (owner, floor)),
            Whereabouts::Memory(_) | Whereabouts::Nowhere => None,
        });
        Ok((left.collect(), untold))
    }

    /// The floor at which the archive ends for an author; none: it has nothing of that one.
    pub(crate) async fn floor_of(self, author: AccountId) -> Result<Option<ArchiveFloor>> {
        let tenant = self.0;
        let first = Command::new("LINDEX").arg(&tenant.keys().outbox(author)).arg("0");
        ArchiveFloor::read(&tenant.router().call(Request::read(tenant.slot(author), first)).await?)
    }

    /// The floor at which the archive ends for a post's author; none: it ends below that post.
    async fn floor_above(self, post: PostRef) -> Result<Option<ArchiveFloor>> {
        Ok(self.floor_of(post.author).await?.filter(|floor| post.id <= floor.upto))
    }

    /// Whether a post that isn't there may have been one of that author's, by its id: below where the archive begins
    /// nobody knows any more which were deleted.
    pub(crate) async fn may_have_been_of(self, post: PostRef) -> Result<bool> {
        if self.0.archive()?.is_none() || self.floor_above(post).await?.is_none() {
            return Ok(false);
        }
        Ok(matches!(self.get(post.id).await?, StoredPost::Gone))
    }

    /// Whether the archive has a post of that author, which may be in memory too.
    pub(crate) async fn archive_has(self, post: PostRef) -> Result<bool> {
        if self.0.archive()?.is_none() {
            return Ok(false);
        }
        match self.floor_above(post).await? {
            None => Ok(false),
            floor => self.has_row(post, floor).await,
        }
    }

    /// Whether the archive has a post, wherever its author's floor is. `floor`: how far the archive must have got for
    /// its word to count.
    pub(crate) async fn has_row(self, post: PostRef, floor: Option<ArchiveFloor>) -> Result<bool> {
        let Some(archive) = self.0.archive()? else { return Ok(false) };
        let ask = self.ask_for((post.id, Some(post.author)));
        let answer = archive.posts(&[ask]).await.map_err(archive_away)?.pop();
        let owner = answer.as_ref().and_then(|answer| answer.owner);
        floor.map_or(Ok(()), |floor| floor.check(post.author, owner))?;
        Ok(answer.is_some_and(|answer| answer.post.is_some()))
    }

    /// Whether the archive has a post of another author under that id.
    pub(crate) async fn is_archived_of_other(self, post: PostRef) -> Result<bool> {
        Ok(self.archived_author(post.id).await?.is_some_and(|author| author != post.author))
    }

    /// The author by whom the archive has a post under that id, wherever the floor is.
    pub(crate) async fn archived_author(self, id: PostId) -> Result<Option<AccountId>> {
        let Some(archive) = self.0.archive()? else { return Ok(None) };
        let answer = archive.posts(&[self.ask_for((id, None))]).await.map_err(archive_away)?.pop();
        Ok(answer.and_then(|answer| answer.post).map(|found| found.owner))
    }

    /// `first`: the number of the first of them.
    async fn archived_some(
        self,
        archive: &dyn Archive,
        missing: &[MissingPost],
        first: usize,
        (found, untold): (&mut [Option<Vec<u8>>], &mut Untold),
    ) -> Result<()> {
        let owners = self.owners_of(archive, missing, first, untold).await?;
        let looked = self.whereabouts(missing, &owners).await?;
        let (mut asks, mut of) = (Vec::new(), Vec::new());
        for (n, place) in looked.into_iter().enumerate() {
            match place {
                Whereabouts::Memory(stored) => found[first + n] = Some(stored),
                Whereabouts::Archive(floor) => {
                    asks.push(self.ask_for((missing[n].0, owners[n])));
                    of.push((n, floor));
                }
                Whereabouts::Nowhere => {}
            }
        }
        if asks.is_empty() {
            return Ok(());
        }
        let answers = match archive.posts(&asks).await.map_err(archive_away) {
            Ok(answers) => answers,
            Err(failure) => {
                untold.add(of.into_iter().map(|(n, _)| first + n), failure);
                return Ok(());
            }
        };
        for ((n, floor), answer) in of.into_iter().zip(answers) {
            let checked = owners[n].map_or(Ok(()), |owner| floor.check(owner, answer.owner));
            match checked {
                Ok(()) => found[first + n] = answer.post.map(|post| post.stored),
                Err(behind) => untold.add([first + n], behind),
            }
        }
        Ok(())
    }

    fn ask_for(self, (id, owner): MissingPost) -> PostAsk {
        PostAsk { bucket: id.bucket(self.0.keys().buckets()), id, owner }
    }

    /// The owners of these posts: where nobody has said whose one is, whoever has it in the archive. What else that
    /// says of it counts for nothing: it was asked before memory was.
    async fn owners_of(
        self,
        archive: &dyn Archive,
        missing: &[MissingPost],
        first: usize,
        untold: &mut Untold,
    ) -> Result<Vec<Option<AccountId>>> {
        let mut owners: Vec<Option<AccountId>> = missing.iter().map(|(_, owner)| *owner).collect();
        let unknown: Vec<usize> = (0..missing.len()).filter(|n| owners[*n].is_none()).collect();
        if !unknown.is_empty() {
            let asks: Vec<PostAsk> = unknown.iter().map(|n| self.ask_for(missing[*n])).collect();
            match archive.posts(&asks).await.map_err(archive_away) {
                Ok(answers) => {
                    for (n, answer) in unknown.into_iter().zip(answers) {
                        owners[n] = answer.post.map(|post| post.owner);
                    }
                }
                Err(failure) => untold.add(unknown.into_iter().map(|n| first + n), failure),
            }
        }
        Ok(owners)
    }

    /// Looks once more, and then where their authors' outboxes begin. H168: in this order, and with one server's word:
    /// a post that leaves between two looks raises its author's floor.
    async fn whereabouts(
        self,
        missing: &[MissingPost],
        owners: &[Option<AccountId>],
    ) -> Result<Vec<Whereabouts>> {
        let keys = self.0.keys();
        // A post lies in its author's bucket, or it isn't that author's.
        let owner_of = |n: usize| {
            let bucket = missing[n].0.bucket(keys.buckets());
            owners[n].filter(|owner| keys.bucket_of(*owner) == bucket)
        };
        let mut batch = Batch::new();
        for (n, (id, _)) in missing.iter().enumerate() {
            let Some(owner) = owner_of(n) else { continue };
            let first = Command::new("LINDEX").arg(&keys.outbox(owner)).arg("0");
            let state = Command::new("HGET").arg(&keys.account(owner)).arg(RecordField::STATE);
            let slot = self.0.slot(owner);
            batch.push_ordered([self.request(*id), Request::read(slot, first), Request::read(slot, state)]);
        }
        let mut answers = self.0.run_all(batch).await?.into_iter();
        let mut looked = Vec::with_capacity(missing.len());
        for (n, (id, _)) in missing.iter().enumerate() {
            if owner_of(n).is_none() {
                looked.push(Whereabouts::Nowhere);
                continue;
            }
            let mut next = || answers.next().ok_or_else(|| Error::internal("an answer is missing"));
            let (post, first, state) = (next()?.ok()?, next()?.ok()?, next()?.ok()?);
            // Of whoever was deleted nothing is there but what memory still has.
            let is_deleted = !state.is_nil() && AccountState::parse(state.bytes()?) == AccountState::Deleted;
            let floor = ArchiveFloor::read(&first)?.filter(|floor| *id <= floor.upto && !is_deleted);
            looked.push(match floor {
                _ if !post.is_nil() => Whereabouts::Memory(post.bytes()?.to_vec()),
                Some(floor) => Whereabouts::Archive(floor),
                None => Whereabouts::Nowhere,
            });
        }
        Ok(looked)
    }
}
