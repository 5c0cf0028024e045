//! The documents that pages go by, changed an id at a time: whom an account leaves out of its home, which conversations
//! it wants to hear nothing of, and in which languages it reads others.

use super::{DocumentChange, Registration};
use crate::document::{FOLLOW_LANGUAGES, IdList, LEFT_OUT, MUTED_CONVERSATIONS, WantedLanguages};
use crate::error::{CallFuture, ErrorKind, Result};
use crate::ids::{AccountId, PostId};
use crate::settings::Receipt;

/// Tries of one change between others of the same document.
const TRIES_MAX: usize = 16;

impl Registration {
    /// Leaves the posts of another account out of an account's home, or no longer. They show everywhere else, on pages
    /// of chosen accounts too. An account leaves out up to [`IDS_MAX`](crate::document::IDS_MAX); beyond that whoever
    /// was left out first makes room. Who keeps lists of its own writes the document [`LEFT_OUT`] along with these
    /// ([`change_documents`](Self::change_documents)) and makes no such calls.
    ///
    /// [`ErrorKind::NotFound`]: there is no such account.
    pub fn leave_out(
        &self,
        account: AccountId,
        other: AccountId,
        is_left_out: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(self.list_id(account, LEFT_OUT, other.get(), is_left_out))
    }

    /// Mutes the conversation that this post began, or no longer: nothing that has to do with a post of it is among the
    /// account's notifications meanwhile, nor counted there. An account mutes up to
    /// [`IDS_MAX`](crate::document::IDS_MAX); beyond that the one that was muted first makes room.
    ///
    /// [`ErrorKind::NotFound`]: there is no such account.
    pub fn mute_conversation(
        &self,
        account: AccountId,
        root: PostId,
        is_muted: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(self.list_id(account, MUTED_CONVERSATIONS, root.get(), is_muted))
    }

    /// Has an account read another one that it follows in these languages only, at home and on pages of chosen
    /// accounts; of none in all. It lasts until it is said otherwise, also beyond the follow.
    ///
    /// [`ErrorKind::NotFound`]: there is no such account. [`ErrorKind::Invalid`]: as for [`WantedLanguages::set`].
    pub fn want_languages<'a>(
        &'a self,
        account: AccountId,
        other: AccountId,
        languages: &'a [String],
    ) -> CallFuture<'a, Receipt> {
        let changed = move |seen: Option<&[u8]>| {
            let mut wanted = seen.and_then(WantedLanguages::from_bytes).unwrap_or_default();
            wanted.set(other, languages)?;
            Ok((!wanted.is_empty()).then(|| wanted.to_bytes()))
        };
        Box::pin(self.change_list(account, FOLLOW_LANGUAGES, changed))
    }

    /// Adds an id to a list, or takes it off.
    async fn list_id(&self, account: AccountId, name: &str, id: u64, is_on: bool) -> Result<Receipt> {
        let changed = |seen: Option<&[u8]>| {
            let mut list = seen.and_then(IdList::from_bytes).unwrap_or_default();
            if is_on {
                list.add(id);
            } else {
                list.remove(id);
            }
            Ok((!list.ids().is_empty()).then(|| list.to_bytes()))
        };
        self.change_list(account, name, changed).await
    }

    /// Changes a document by what it is, between others who do the same.
    async fn change_list(
        &self,
        account: AccountId,
        name: &str,
        changed: impl Fn(Option<&[u8]>) -> Result<Option<Vec<u8>>> + Send,
    ) -> Result<Receipt> {
        let mut tries = 0;
        loop {
            let seen = self.document(account, name).await?;
            let bytes = changed(seen.as_ref().map(|seen| seen.bytes.as_slice()))?;
            let change = DocumentChange { name, seen: seen.map(|seen| seen.version), new: bytes.as_deref() };
            tries += 1;
            match self.change_documents(account, &[change]).await {
                Err(e) if e.kind() == ErrorKind::Conflict && tries < TRIES_MAX => {}
                done => return done.map(|changed| changed.with(())),
            }
        }
    }
}
