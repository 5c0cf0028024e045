//! Posts that are there: editing and deleting them, and where their fan-out is.

use super::Engine;
use super::byline::Byline;
use super::judging::HeldEdit;
use crate::account::AccountState;
use crate::archive::ArchiveToken;
use crate::change::Tries;
use crate::cluster::Epoch;
use crate::delivery::{self, FanoutState};
use crate::error::{CallFuture, Error, ErrorCode, ErrorKind, Result};
use crate::fsck::Deletions;
use crate::functions::{self, ErasedUnder, PostChangeAnswer, PostVersion, TasksLeft};
use crate::graph::{self, DeletedPost, Erasure, ListTask};
use crate::ids::{AccountId, PostId};
use crate::journal::{self, JournalEntry};
use crate::nonce::draw;
use crate::post::{Edit, EditMoment, NamedList, PostRef};
use crate::search::{IndexTask, is_searched};
use crate::settings::Receipt;
use crate::stored::{StoredPost, Unreadable};
use crate::tenant::{Tenant, no_post};
use crate::tiers::{self, PostErasure};
use crate::timeline;

impl Engine {
    /// Changes what a post says; never who may see it, but that those whom a post for followers mentions may. Only who
    /// wrote it may, and only while it may post there.
    ///
    /// [`TooOften`](crate::ErrorCode::TooOften): it mentions more strangers than its author may, or it is in the
    /// archive, and its author has had as many posts come back from there within an hour as it may
    /// (`brought_back_max`).
    pub fn edit<'a>(&'a self, writer: AccountId, id: PostId, edit: &'a Edit) -> CallFuture<'a, Receipt> {
        Box::pin(async move {
            let (tenant, graph) = (&self.tenant, &self.graph);
            let buckets = tenant.keys().buckets();
            let (tries, mut is_counted, mut held) = (&mut Tries::of_post(id), false, HeldEdit::default());
            let mut are_mentions_counted = false;
            loop {
                let once = async {
                    let post = tenant.posts().in_memory(id).await?.readable()?;
                    if post.is_none() {
                        let own = PostRef { id, author: self.author_of(writer, id).await? };
                        if tiers::thaw_to_edit(tenant, own, &mut is_counted).await? {
                            return Ok(None);
                        }
                    }
                    let post = post.filter(|post| post.writer() == writer).ok_or_else(|| no_post(id))?;
                    let author = post.header().author;
                    let own = PostRef { id, author };
                    let allowed_under = self.allowed_under(Byline::of_post(&post)).await?;
                    edit.check(&post, tenant.settings.text_chars)?;
                    let now = EditMoment {
                        posted_ms: id.unix_ms(),
                        now_ms: tenant.router().now_ms(),
                        has_shown: held.has_shown(post.header()),
                    };
                    let edited = post.edited_on_lists(edit, tenant.tags(), now)?;
                    self.count_edit(&post, &edited, &mut are_mentions_counted).await?;
                    let hidden_by = self.judge_edit(id, (&post, &edited), &mut held).await?;
                    let bucket = id.bucket(buckets);
                    // Once on a list it stays there: only new ones have to be looked at.
                    let before = post.lists_ever(tenant.tags());
                    let mut new = edited.lists(tenant.tags());
                    new.retain(|list| !before.contains(list));
                    let entries = entries_of_edit(tenant, own, &new);
                    let _places = journal::reserve_for(&graph.journal, author, entries.len())?;
                    let keys = [tenant.keys().post(id), tenant.keys().account(author)].into_iter();
                    let journal = (!entries.is_empty()).then(|| tenant.keys().journal(bucket));
                    let keys: Vec<Vec<u8>> = keys.chain(journal).collect();
                    let values: Vec<_> = entries.iter().map(|entry| (entry.id, entry.stored())).collect();
                    let left = TasksLeft { journal_most: tenant.settings.journal_max, entries: &values };
                    let (revision, edited) = (post.header().revision, edited.encode());
                    let edited = (edited.as_slice(), allowed_under, hidden_by);
                    let command = functions::post_edit(&keys, author, revision, edited, &left);
                    // Sent once: sent again it would find a revision that may be its own, and nobody would know.
                    let Some(answer) = tries.send(tenant, buckets.slot(bucket), command).await? else {
                        return Ok(None);
                    };
                    let epoch = answer.epoch.clone();
                    match PostChangeAnswer::parse(answer.ok()?)? {
                        PostChangeAnswer::Done => {
                            entries
                                .into_iter()
                                .for_each(|entry| drop(journal::accept(&graph.journal, entry)));
                            Ok(Some(epoch))
                        }
                        PostChangeAnswer::JournalFull => Err(journal::journal_full(tenant)),
                        // It has left memory since it was read, or was deleted.
                        PostChangeAnswer::NoPost if tenant.archive()?.is_some() => Ok(None),
                        PostChangeAnswer::NoPost => Err(no_post(id)),
                        PostChangeAnswer::State(state) => Err(may_not_post(author, state)),
                        PostChangeAnswer::Foreign => Err(no_post(id)),
                        // Somebody else has edited it, or our own first sending has: edited again, it says the same.
                        PostChangeAnswer::Revision => Ok(None),
                        PostChangeAnswer::Stamp | PostChangeAnswer::Tree(_) | PostChangeAnswer::Below => {
                            Err(Error::internal("an edit changes no set"))
                        }
                    }
                };
                let once = once.await;
                if let Some(epoch) = tries.ended(once)? {
                    return self.acknowledged(epoch).await;
                }
            }
        })
    }

    /// Deletes a post, for good. What is deleted already is deleted, as far back as its author's outbox goes; below
    /// where the archive begins that is said of every id that nobody has. Of one that is in the archive it is
    /// acknowledged once that has forgotten it, on disk.
    ///
    /// Also one that can't be read: damaged, or of a later release. One that went into a group who wrote it deletes,
    /// and who is on the group's staff.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): it is not one of the author's posts. That doesn't tell whether it is
    /// somebody else's.
    pub fn delete(&self, author: AccountId, id: PostId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            match self.delete_noted(author, id, None).await {
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    self.delete_noted(self.group_of(author, id).await?, id, None).await
                }
                deleted => deleted,
            }
        })
    }

    /// The owner of a post that somebody wrote, also of one that has left memory: the writer, or a group.
    async fn author_of(&self, writer: AccountId, id: PostId) -> Result<AccountId> {
        let post = self.tenant.posts().get(id).await?.readable()?;
        let post = post.filter(|post| post.writer() == writer).ok_or_else(|| no_post(id))?;
        Ok(post.header().author)
    }

    /// Deletes a post. `original`: where it is noted, of a plain repost what that passes on.
    pub(crate) fn delete_noted(
        &self,
        author: AccountId,
        id: PostId,
        mut original: Option<PostRef>,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            if id.bucket(self.tenant.keys().buckets()) != self.tenant.bucket(author) {
                return Err(no_post(id));
            }
            let tries = &mut Tries::of_post(id);
            let mut erasure = Erasure { so_far: PostErasure::default(), turns: &self.erasures };
            loop {
                let once = self.delete_once((author, id), &mut original, &mut erasure, tries).await;
                if let Some(epoch) = tries.ended(once)? {
                    return self.acknowledged(epoch).await;
                }
            }
        })
    }

    /// Sends a deletion once. `original`: noted for the next try, which may find the post gone and that it was a repost
    /// standing (H156). `erasure`: that the archive has forgotten it.
    async fn delete_once(
        &self,
        (author, id): (AccountId, PostId),
        original: &mut Option<PostRef>,
        erasure: &mut Erasure<'_>,
        tries: &mut Tries,
    ) -> Result<Option<Epoch>> {
        let (tenant, graph) = (&self.tenant, &self.graph);
        let post = match tenant.posts().in_memory(id).await?.but_for_visibility() {
            StoredPost::There(post) => post,
            StoredPost::Gone => {
                // So that it goes from here and from there by one way.
                if tiers::thaw_to_delete(tenant, PostRef { id, author }).await? {
                    return Ok(None);
                }
                if !self.is_note_gone((author, id), *original, tries).await? {
                    return Ok(None);
                }
                let (is_its_own, epoch) = timeline::has_published(tenant, author, id).await?;
                // An earlier sending may have deleted it; that may not be on replicas yet.
                let post = PostRef { id, author };
                let was_its_own =
                    is_its_own || tries.may_be_made() || tenant.posts().may_have_been_of(post).await?;
                return if was_its_own { Ok(Some(epoch)) } else { Err(no_post(id)) };
            }
            StoredPost::Unreadable(unreadable) => {
                // Once the archive has forgotten it nobody else may know whose it is.
                let is_known = erasure.so_far.under().is_some();
                self.may_be_of(author, id, &unreadable, is_known).await?;
                let unreadable = DeletedPost::Unreadable(&unreadable);
                return graph::delete_once(
                    &graph.journal,
                    (PostRef { id, author }, unreadable),
                    None,
                    erasure,
                    tries,
                )
                .await;
            }
        };
        *original = original.or(post.passes_on());
        let noted = self.noted_repost(author, post.passes_on()).await?;
        let post = DeletedPost::Readable(&post);
        graph::delete_once(&graph.journal, (PostRef { id, author }, post), noted.as_ref(), erasure, tries)
            .await
    }

    /// Drops the note of a repost that is gone itself: what deletes one may have failed between (H156). False: look
    /// again.
    async fn is_note_gone(
        &self,
        (author, id): (AccountId, PostId),
        original: Option<PostRef>,
        tries: &mut Tries,
    ) -> Result<bool> {
        let (tenant, keys) = (&self.tenant, self.tenant.keys());
        let Some((piece, at)) = self.noted_repost(author, original).await? else { return Ok(true) };
        let of = graph::deletion_keys(tenant, author, id);
        let left = TasksLeft { journal_most: tenant.settings.journal_max, entries: &[] };
        let repost = Some((&at, id.place(keys.buckets())));
        // The archive has none either.
        let token = ArchiveToken { number: 0, nonce: draw() };
        let forgotten = Some((ErasedUnder { token, looked_at: 0 }, draw()));
        // Of no revision that a post has: should one be there again, it stays.
        let command = functions::post_delete(
            &of,
            (author, id.get()),
            PostVersion::Revision(u32::MAX),
            (repost, None),
            forgotten,
            &left,
        );
        let Some(answer) = tries.send(tenant, tenant.slot(author), command).await? else {
            return Ok(false);
        };
        match PostChangeAnswer::parse(answer.ok()?)? {
            PostChangeAnswer::Tree(tree) => tenant.sets().piece_heirs(&piece, &tree).map(|_| false),
            _ => Ok(true),
        }
    }

    /// Refuses what can't be read and isn't an author's post, by what it says itself, its outbox, or the archive.
    /// `is_known`: these have said so before.
    async fn may_be_of(
        &self,
        author: AccountId,
        id: PostId,
        unreadable: &Unreadable,
        is_known: bool,
    ) -> Result<()> {
        let is_its_own = !unreadable.is_anothers(author)
            && (is_known
                || unreadable.is_of(author)
                || timeline::has_published(&self.tenant, author, id).await?.0);
        if is_its_own { Ok(()) } else { Err(no_post(id)) }
    }

    /// Tells where the fan-out of a post is, whichever instance accepted it.
    pub fn fanout(&self, id: PostId) -> CallFuture<'_, FanoutState> {
        Box::pin(delivery::state(&self.graph.journal, id))
    }
}

impl Deletions for Engine {
    fn delete_post(&self, post: PostRef) -> CallFuture<'_, ()> {
        Box::pin(async move { self.delete(post.author, post.id).await.map(drop) })
    }

    fn delete_account(&self, account: AccountId) -> CallFuture<'_, ()> {
        Box::pin(async move { Engine::delete_account(self, account).await.map(drop) })
    }
}

/// The journal's entries for what an edit leaves to do. `new`: lists that it names, which the post was not on so far.
fn entries_of_edit(tenant: &Tenant, post: PostRef, new: &[NamedList]) -> Vec<JournalEntry> {
    let bucket = tenant.bucket(post.author);
    // H290: onto these, and no other ones.
    let payload = NamedList::all_to_bytes(new);
    let list = || JournalEntry { payload, ..JournalEntry::new(bucket, tenant.instance, ListTask { post }) };
    let list = (!new.is_empty()).then(list);
    let index = is_searched(tenant).then(|| JournalEntry::new(bucket, tenant.instance, IndexTask { post }));
    list.into_iter().chain(index).collect()
}

pub(super) fn may_not_post(author: AccountId, state: u8) -> Error {
    let state = AccountState::from_letter(state);
    Error::new(ErrorCode::NotActive, format!("account {author} is {state}: it cannot post"))
}
