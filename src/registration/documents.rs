//! Documents of accounts: read, and changed where nobody else has changed them meanwhile.

use std::fmt;

use super::Registration;
use crate::account::Account;
use crate::change::{BucketChange, CellBounds, SetBound, Tries};
use crate::cluster::{Command, Epoch, Reply, Request};
use crate::document::{
    DOCUMENTS_AT_ONCE_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Document, DocumentVersion, OF_PAGES,
    check_name, stored,
};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{BucketWrite, ExpectedValue, LeastState, maybe_nonce};
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::nonce::{Nonce, draw};
use crate::settings::Receipt;
use crate::tenant::{Answers, no_account};

/// A change of one document: what it was, and what it becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DocumentChange<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version that was seen; `None`: there must be none of that name.
    pub seen: Option<DocumentVersion>,
    /// What it becomes; `None`: it is removed.
    pub new: Option<&'a [u8]>,
}

/// Without what it says, which may be private.
impl fmt::Debug for DocumentChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.new.map(<[u8]>::len);
        f.debug_struct("DocumentChange")
            .field("name", &self.name)
            .field("seen", &self.seen)
            .field("new_bytes", &bytes)
            .finish()
    }
}

/// Changes that somebody wants, all or none.
struct WantedChanges<'a> {
    account: AccountId,
    changes: &'a [DocumentChange<'a>],
    /// What becomes of each, as it is stored.
    stored: Vec<Option<Vec<u8>>>,
    /// Drawn once: the version of what is written, or the stamp that a removal leaves. Whoever has lost an answer tells
    /// its own change by it.
    nonce: Nonce,
}

/// Documents as they stand there now.
struct DocumentsSeen {
    versions: Vec<Option<Nonce>>,
    /// Changes with each removal of a document of the account.
    stamp: Option<Nonce>,
    epoch: Epoch,
}

impl<'a> WantedChanges<'a> {
    fn new(account: AccountId, changes: &'a [DocumentChange<'a>]) -> Result<Self> {
        if changes.is_empty() || changes.len() > DOCUMENTS_AT_ONCE_MAX {
            return Err(Error::out_of_range(format!(
                "{} documents are to change together; 1 to {DOCUMENTS_AT_ONCE_MAX} may",
                changes.len()
            )));
        }
        for (n, change) in changes.iter().enumerate() {
            check_name(change.name)?;
            if changes[..n].iter().any(|other| other.name == change.name) {
                return Err(Error::invalid(format!("document {:?} is to change twice at once", change.name)));
            }
        }
        let nonce = draw();
        let of = |change: &DocumentChange<'_>| change.new.map(|bytes| stored(&nonce, bytes)).transpose();
        let stored = changes.iter().map(of).collect::<Result<_>>()?;
        Ok(Self { account, changes, stored, nonce })
    }

    /// Whether it was made, and nothing has changed since.
    fn is_made(&self, now: &DocumentsSeen) -> bool {
        let mut each = self.changes.iter().zip(&now.versions);
        each.all(|(change, version)| match change.new {
            Some(_) => *version == Some(self.nonce),
            None => version.is_none() && now.stamp == Some(self.nonce),
        })
    }

    /// The first that is another one by now than was seen.
    fn changed_since(&self, now: &DocumentsSeen) -> Option<&DocumentChange<'a>> {
        let mut each = self.changes.iter().zip(&now.versions);
        each.find(|(change, version)| **version != change.seen.map(|seen| seen.0)).map(|(change, _)| change)
    }
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
            let change = DocumentChange { name, seen: seen.copied(), new };
            let changed = self.change_all(account, &[change]).await?;
            let version = changed.value;
            Ok(changed.with(new.map(|_| version)))
        })
    }

    /// Changes several documents of an account, up to [`DOCUMENTS_AT_ONCE_MAX`], all of them or none, as
    /// [`change_document`](Self::change_document) does one. Gives the new version of those that it writes.
    pub fn change_documents<'a>(
        &'a self,
        account: AccountId,
        changes: &'a [DocumentChange<'a>],
    ) -> CallFuture<'a, Receipt<DocumentVersion>> {
        Box::pin(self.change_all(account, changes))
    }

    async fn change_all(
        &self,
        account: AccountId,
        changes: &[DocumentChange<'_>],
    ) -> Result<Receipt<DocumentVersion>> {
        let wanted = WantedChanges::new(account, changes)?;
        let tries = &mut Tries::of(account);
        // What is there already is not looked at first: the write compares it.
        let mut looks = changes.iter().any(|change| change.seen.is_none());
        loop {
            let once = self.try_changes(&wanted, looks, tries).await;
            if let Some(epoch) = tries.ended(once)? {
                return Ok(self.acknowledged(epoch).await?.with(DocumentVersion(wanted.nonce)));
            }
            looks = true;
        }
    }

    /// One try. `None`: something has changed, or nobody knows whether it was written.
    async fn try_changes(
        &self,
        wanted: &WantedChanges<'_>,
        looks: bool,
        tries: &mut Tries,
    ) -> Result<Option<Epoch>> {
        let (graph, WantedChanges { account, changes, stored, nonce }) = (self.graph(), wanted);
        let now = if looks { Some(self.look(*account, changes).await?) } else { None };
        if let Some(now) = &now {
            if wanted.is_made(now) {
                return Ok(Some(now.epoch.clone()));
            }
            if let Some(change) = wanted.changed_since(now) {
                return Err(changed(*account, change.name));
            }
        }
        // H261: a version comes back never, but there being none does: who finds none compares that none was removed
        // since, and each removal says so.
        let mut write =
            BucketWrite::new("document_set", &graph.tenant.keys().account(*account), LeastState::There);
        if let Some(now) = now.filter(|_| changes.iter().any(|change| change.seen.is_none())) {
            write = write.compare([(RecordField::DOCUMENTS_STAMP, ExpectedValue::Exactly(now.stamp))]);
        }
        if changes.iter().any(|change| change.new.is_none()) {
            write = write.set(RecordField::DOCUMENTS_STAMP, nonce);
        }
        // H244: instances remember what pages go by under the graph stamp, and hear of a change by that alone.
        if changes.iter().any(|change| OF_PAGES.contains(&change.name)) {
            write = write.set(RecordField::GRAPH_STAMP, &draw());
        }
        let mut change = BucketChange::new(&graph.journal, *account, write, "keep documents");
        let key = self.documents_key(*account);
        for (DocumentChange { name, seen, .. }, stored) in changes.iter().zip(stored) {
            let seen = seen.map(|seen| seen.0);
            let must_be = ExpectedValue::Exactly(seen);
            let bounds = bounds(seen.is_none());
            change = change.cell(&key, name.as_bytes(), (must_be, stored.as_deref()), bounds);
        }
        Ok(change.write(tries).await?.map(|made| made.epoch))
    }

    async fn look(&self, account: AccountId, changes: &[DocumentChange<'_>]) -> Result<DocumentsSeen> {
        let tenant = self.tenant();
        let stamp =
            Command::new("HGET").arg(&tenant.keys().account(account)).arg(RecordField::DOCUMENTS_STAMP);
        let names = changes.iter().map(|change| change.name);
        let get = Command::new("HMGET").arg(&self.documents_key(account)).args(names);
        let asked = [stamp, get].map(|command| Request::read(tenant.slot(account), command));
        let mut answers = Answers::ordered(tenant, asked).await?;
        let (stamp, documents) = (maybe_nonce(&answers.next()?)?, answers.answer()?);
        let epoch = documents.epoch.clone();
        let version = |document: &Reply| Ok(Document::parse(document)?.map(|document| document.version.0));
        let versions = documents.ok()?.into_array()?.iter().map(version).collect::<Result<_>>()?;
        Ok(DocumentsSeen { versions, stamp, epoch })
    }

    /// The answer to a command on documents, of an account that is there.
    async fn read_of(&self, account: AccountId, command: Command) -> Result<Reply> {
        let tenant = self.tenant();
        let asked = [tenant.account_request(account), Request::read(tenant.slot(account), command)];
        let mut answers = Answers::of(tenant, asked.into_iter().collect()).await?;
        let record = Account::parse(account, answers.next()?)?;
        record.filter(Account::is_there).ok_or_else(|| no_account(account))?;
        answers.next()
    }

    fn documents_key(&self, account: AccountId) -> Vec<u8> {
        self.tenant().keys().own(OwnKey::Documents, account)
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
