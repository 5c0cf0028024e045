//! Documents of accounts: read, and changed where nobody else has changed them meanwhile.

use super::Registration;
use crate::account::Account;
use crate::change::{BucketChange, CellBounds, SetBound, Tries};
use crate::cluster::{Command, Epoch, Reply, Request};
use crate::document::{DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Document, DocumentVersion, check_name, stored};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{BucketWrite, ExpectedValue, Writer, maybe_nonce};
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::nonce::{Nonce, draw};
use crate::settings::Receipt;
use crate::tenant::{Answers, no_account};

/// A change that somebody wants.
struct WantedChange<'a> {
    account: AccountId,
    name: &'a str,
    seen: Option<Nonce>,
    new: Option<&'a [u8]>,
    /// Drawn once: the version of what it writes, or the stamp that a removal leaves. Whoever has lost an answer tells
    /// its own change by it.
    nonce: Nonce,
}

/// What stands there now.
struct DocumentSeen {
    version: Option<Nonce>,
    /// Changes with each removal of a document of the account.
    stamp: Option<Nonce>,
    epoch: Epoch,
}

impl Registration {
    /// Reads a document of an account; `None`: it has none of that name.
    ///
    /// [`ErrorKind::NotFound`]: there is no such account.
    pub fn document<'a>(&'a self, account: AccountId, name: &'a str) -> CallFuture<'a, Option<Document>> {
        Box::pin(async move {
            check_name(name)?;
            let get = Command::new("HGET").arg(&self.documents_key(account)).arg(name);
            Document::parse(&self.read_of(account, get).await?)
        })
    }

    /// Reads all documents of an account, in the order of their names: up to
    /// [`DOCUMENTS_MAX`](crate::document::DOCUMENTS_MAX).
    ///
    /// [`ErrorKind::NotFound`]: there is no such account.
    pub fn documents(&self, account: AccountId) -> CallFuture<'_, Vec<(String, Document)>> {
        Box::pin(async move {
            let all = Command::new("HGETALL").arg(&self.documents_key(account));
            Document::parse_all(self.read_of(account, all).await?)
        })
    }

    /// Writes a document of an account, or removes it (`new`: `None`), if it is still the one that was `seen` (`None`:
    /// there must be none of that name). Gives its new version; `None`: it is removed.
    ///
    /// Its bounds are those of [`crate::document`]. [`ErrorKind::Conflict`]: it is another one by now, and nothing was
    /// written; read it and decide again. [`ErrorKind::NotFound`]: there is no such account. [`ErrorKind::Unknown`]: it
    /// may have been written; the same change again is then a conflict with itself, so read first.
    ///
    /// ```no_run
    /// # async fn example(registration: &tideline::registration::Registration, ada: tideline::AccountId)
    /// # -> tideline::Result<()> {
    /// let seen = registration.document(ada, "markers").await?.map(|document| document.version);
    /// let version = registration.change_document(ada, "markers", seen.as_ref(), Some(b"{}")).await?.value;
    /// registration.change_document(ada, "markers", version.as_ref(), None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn change_document<'a>(
        &'a self,
        account: AccountId,
        name: &'a str,
        seen: Option<&'a DocumentVersion>,
        new: Option<&'a [u8]>,
    ) -> CallFuture<'a, Receipt<Option<DocumentVersion>>> {
        Box::pin(async move {
            check_name(name)?;
            let seen = seen.map(|version| version.0);
            let change = WantedChange { account, name, seen, new, nonce: draw() };
            let stored = new.map(|bytes| stored(&change.nonce, bytes)).transpose()?;
            let tries = &mut Tries::of(account);
            // What is there already is not looked at first: the write compares it.
            let mut looks = seen.is_none();
            loop {
                let once = self.try_change(&change, stored.as_deref(), looks, tries).await;
                if let Some(epoch) = tries.ended(once)? {
                    let version = new.map(|_| DocumentVersion(change.nonce));
                    return Ok(self.acknowledged(epoch).await?.with(version));
                }
                looks = true;
            }
        })
    }

    /// One try. `None`: something has changed, or nobody knows whether it was written.
    async fn try_change(
        &self,
        change: &WantedChange<'_>,
        stored: Option<&[u8]>,
        looks: bool,
        tries: &mut Tries,
    ) -> Result<Option<Epoch>> {
        let (graph, WantedChange { account, name, seen, new, nonce }) = (self.graph(), change);
        let now = if looks { Some(self.look(*account, name).await?) } else { None };
        if let Some(now) = &now {
            let is_ours = match new {
                Some(_) => now.version == Some(*nonce),
                None => now.version.is_none() && now.stamp == Some(*nonce),
            };
            if is_ours {
                return Ok(Some(now.epoch.clone()));
            }
            if now.version != *seen {
                return Err(changed(*account, name));
            }
        }
        // H261: a version comes back never, but there being none does: who finds none compares that none was removed
        // since, and each removal says so.
        let mut write = BucketWrite::new("document_set", &graph.keys().account(*account), Writer::There);
        if let Some(now) = now.filter(|_| seen.is_none()) {
            write = write.compare([(RecordField::DOCUMENTS_STAMP, ExpectedValue::Exactly(now.stamp))]);
        }
        if new.is_none() {
            write = write.set(RecordField::DOCUMENTS_STAMP, nonce);
        }
        let must_be = ExpectedValue::Exactly(*seen);
        let made = BucketChange::new(&graph.journal, *account, write, "keep documents")
            .cell(&self.documents_key(*account), name.as_bytes(), (must_be, stored), bounds(seen.is_none()))
            .write(tries);
        Ok(made.await?.map(|made| made.epoch))
    }

    async fn look(&self, account: AccountId, name: &str) -> Result<DocumentSeen> {
        let graph = self.graph();
        let stamp =
            Command::new("HGET").arg(&graph.keys().account(account)).arg(RecordField::DOCUMENTS_STAMP);
        let get = Command::new("HGET").arg(&self.documents_key(account)).arg(name);
        let asked = [stamp, get].map(|command| Request::read(graph.slot(account), command));
        let mut answers = Answers::ordered(graph, asked).await?;
        let (stamp, document) = (maybe_nonce(&answers.next()?)?, answers.answer()?);
        let epoch = document.epoch.clone();
        let version = Document::parse(&document.ok()?)?.map(|document| document.version.0);
        Ok(DocumentSeen { version, stamp, epoch })
    }

    /// What a command on documents gives, of an account that is there.
    async fn read_of(&self, account: AccountId, command: Command) -> Result<Reply> {
        let graph = self.graph();
        let asked = [graph.account_request(account), Request::read(graph.slot(account), command)];
        let mut answers = Answers::of(graph, asked.into_iter().collect()).await?;
        let record = Account::parse(account, answers.next()?)?;
        record.filter(Account::is_there).ok_or_else(|| no_account(account))?;
        answers.next()
    }

    fn documents_key(&self, account: AccountId) -> Vec<u8> {
        self.graph().keys().own(OwnKey::Documents, account)
    }
}

/// On all documents of an account; on their number only for one more.
fn bounds(is_new: bool) -> CellBounds {
    let (verb, many) = ("has", " documents");
    let fields = is_new.then_some(SetBound { most: DOCUMENTS_MAX, verb, noun: many });
    let bytes = SetBound { most: DOCUMENTS_BYTES_MAX, verb, noun: " bytes of documents" };
    CellBounds { fields, bytes: Some(bytes) }
}

fn changed(account: AccountId, name: &str) -> Error {
    let text =
        format!("account {account}: document {name:?} is another one by now; read it and decide again");
    Error::new(ErrorKind::Conflict, text)
}
