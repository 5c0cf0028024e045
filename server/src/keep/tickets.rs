//! Things that are kept under the hash of a secret, as JSON, with an end; and lists of such things, each in one ticket
//! under a name that everybody knows.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tideline::registration::{Registration, TicketKind};
use tideline::{Error, ErrorKind, Result};

/// Bytes of a secret that anybody asks with; those that are drawn here are shorter.
const SECRET_LEN_MAX: usize = 256;
/// Tries of one change of a list between others.
const TRIES_MAX: usize = 16;

/// The kind that a letter stands for.
pub(crate) const fn kind(letter: char) -> TicketKind {
    TicketKind::new(letter).expect("a letter")
}

/// Keeps something new.
pub(crate) async fn put<T: Serialize + Sync>(
    registration: &Registration,
    kind: TicketKind,
    secret: &str,
    value: &T,
    lasts: Duration,
) -> Result<()> {
    let is_new = registration.put_ticket(kind, secret.as_bytes(), &json(value)?, lasts).await?.value;
    // 256 random bits that are there already were not drawn here.
    if is_new { Ok(()) } else { Err(Error::internal("a secret was drawn that there is already")) }
}

/// The name of what is kept under a secret; `None`: nothing can be, and who asks with it is told that there is nothing.
fn name_of(secret: &str) -> Option<&[u8]> {
    (1..=SECRET_LEN_MAX).contains(&secret.len()).then_some(secret.as_bytes())
}

/// Reads what is kept under a secret, if there is anything.
pub(crate) async fn get<T: DeserializeOwned>(
    registration: &Registration,
    kind: TicketKind,
    secret: &str,
) -> Result<Option<T>> {
    let Some(name) = name_of(secret) else { return Ok(None) };
    registration.ticket(kind, name).await?.map(|value| parse(&value)).transpose()
}

/// Has something last so long from now on. What is another by then stays as it is.
pub(crate) async fn renew<T: Serialize + Sync>(
    registration: &Registration,
    kind: TicketKind,
    secret: &str,
    value: &T,
    lasts: Duration,
) -> Result<()> {
    replace(registration, kind, secret, (value, value), lasts).await.map(|_| ())
}

/// Puts something else in its place; false: it is another by now than was seen, or gone.
pub(crate) async fn replace<T: Serialize + Sync, N: Serialize + Sync>(
    registration: &Registration,
    kind: TicketKind,
    secret: &str,
    (seen, new): (&T, &N),
    lasts: Duration,
) -> Result<bool> {
    let (seen, new) = (json(seen)?, json(new)?);
    Ok(registration.replace_ticket(kind, secret.as_bytes(), &seen, &new, lasts).await?.value)
}

/// A list that stands in one ticket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TicketList<'a> {
    pub(crate) kind: TicketKind,
    /// Under which it lies.
    pub(crate) name: &'a str,
    /// So long from its last change on.
    pub(crate) lasts: Duration,
}

impl TicketList<'_> {
    /// Reads what is on it.
    pub(crate) async fn read<T: DeserializeOwned>(self, registration: &Registration) -> Result<Vec<T>> {
        Ok(get(registration, self.kind, self.name).await?.unwrap_or_default())
    }

    /// Changes it by what it is.
    pub(crate) async fn change<T: Serialize + DeserializeOwned + Send>(
        self,
        registration: &Registration,
        change: impl Fn(&mut Vec<T>) -> Result<()> + Send,
    ) -> Result<()> {
        let Self { kind, name, lasts } = self;
        for _ in 0..TRIES_MAX {
            let stored = registration.ticket(kind, name.as_bytes()).await?;
            let mut list: Vec<T> = stored.as_deref().map(parse).transpose()?.unwrap_or_default();
            change(&mut list)?;
            let new = json(&list)?;
            let changed = match &stored {
                Some(seen) => registration.replace_ticket(kind, name.as_bytes(), seen, &new, lasts).await?,
                None => registration.put_ticket(kind, name.as_bytes(), &new, lasts).await?,
            };
            if changed.value {
                return Ok(());
            }
        }
        let text = format!("the list of {name} is changed all the time by others; try again");
        Err(Error::new(ErrorKind::Conflict, text))
    }
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("what is kept is no JSON: {e}")))
}

fn parse<T: DeserializeOwned>(value: &[u8]) -> Result<T> {
    serde_json::from_slice(value).map_err(|e| Error::internal(format!("what was kept can't be read: {e}")))
}
