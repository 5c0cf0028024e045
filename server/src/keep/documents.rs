//! Documents of accounts, as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tideline::registration::Registration;
use tideline::{AccountId, Error, ErrorKind, Result};

/// Tries of one change between others of the same document.
pub(super) const TRIES_MAX: usize = 16;

/// The document of that name, if there is one.
pub(crate) async fn get<T: DeserializeOwned>(
    registration: &Registration,
    account: AccountId,
    name: &str,
) -> Result<Option<T>> {
    let document = registration.document(account, name).await?;
    document.map(|document| parse(account, name, &document.bytes)).transpose()
}

/// All documents whose names begin so, by the rest of their names.
pub(crate) async fn all<T: DeserializeOwned>(
    registration: &Registration,
    account: AccountId,
    head: &str,
) -> Result<Vec<(String, T)>> {
    let all = registration.documents(account).await?;
    let named = all.iter().filter_map(|(name, document)| Some((name.strip_prefix(head)?, document)));
    named.map(|(rest, document)| Ok((rest.to_owned(), parse(account, rest, &document.bytes)?))).collect()
}

/// Changes a document by what it is: `None` is none. Gives what it is then.
pub(crate) async fn change<T: DeserializeOwned + Serialize + Sync, E: From<Error>>(
    registration: &Registration,
    account: AccountId,
    name: &str,
    new: impl Fn(Option<T>) -> Result<Option<T>, E> + Sync,
) -> Result<Option<T>, E> {
    for _ in 0..TRIES_MAX {
        let seen = registration.document(account, name).await?;
        let was = seen.as_ref().map(|seen| parse(account, name, &seen.bytes)).transpose()?;
        let becomes = new(was)?;
        let bytes = becomes.as_ref().map(json).transpose()?;
        if bytes.is_none() && seen.is_none() {
            return Ok(None);
        }
        let version = seen.as_ref().map(|seen| &seen.version);
        match registration.change_document(account, name, version, bytes.as_deref()).await {
            Ok(_) => return Ok(becomes),
            // Somebody else was first.
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(contended().into())
}

/// Writes a document, whatever it was.
pub(crate) async fn put<T: DeserializeOwned + Serialize + Sync + Clone>(
    registration: &Registration,
    account: AccountId,
    name: &str,
    value: &T,
) -> Result<()> {
    let becomes = |_: Option<T>| Ok::<_, Error>(Some(value.clone()));
    change(registration, account, name, becomes).await.map(|_| ())
}

/// Removes a document; whether there was one.
pub(crate) async fn remove(registration: &Registration, account: AccountId, name: &str) -> Result<bool> {
    for _ in 0..TRIES_MAX {
        let Some(seen) = registration.document(account, name).await? else { return Ok(false) };
        match registration.change_document(account, name, Some(&seen.version), None).await {
            Ok(_) => return Ok(true),
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            Err(e) => return Err(e),
        }
    }
    Err(contended())
}

pub(crate) fn contended() -> Error {
    Error::new(ErrorKind::Conflict, "It is changed all the time by others; try again")
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("a document is no JSON: {e}")))
}

pub(super) fn parse<T: DeserializeOwned>(account: AccountId, name: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| {
        Error::internal(format!("the document `{name}` of account {account} can't be read: {e}"))
    })
}
