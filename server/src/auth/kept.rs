//! What is kept under the hash of a secret, as JSON, with an end.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tideline::Error;
use tideline::registration::TicketKind;

use crate::app::App;
use crate::http::Refusal;

/// The kind that a letter stands for.
pub(crate) const fn kind(letter: char) -> TicketKind {
    TicketKind::new(letter).expect("a letter")
}

/// Keeps something new.
pub(crate) async fn put<T: Serialize + Sync>(
    app: &App,
    kind: TicketKind,
    secret: &str,
    value: &T,
    lasts: Duration,
) -> Result<(), Refusal> {
    let is_new = app.registration.put_ticket(kind, secret.as_bytes(), &json(value)?, lasts).await?.value;
    // 256 random bits that are there already were not drawn here.
    if is_new { Ok(()) } else { Err(Error::internal("a secret was drawn that there is already").into()) }
}

/// What is kept there, if there is anything.
pub(crate) async fn get<T: DeserializeOwned>(
    app: &App,
    kind: TicketKind,
    secret: &str,
) -> Result<Option<T>, Refusal> {
    app.registration.ticket(kind, secret.as_bytes()).await?.map(|value| parse(&value)).transpose()
}

/// Takes it: nobody gets it a second time.
pub(crate) async fn take<T: DeserializeOwned>(
    app: &App,
    kind: TicketKind,
    secret: &str,
) -> Result<Option<T>, Refusal> {
    app.registration.take_ticket(kind, secret.as_bytes()).await?.map(|value| parse(&value)).transpose()
}

/// Has something last so long from now on. What is another by then stays as it is.
pub(crate) async fn renew<T: Serialize + Sync>(
    app: &App,
    kind: TicketKind,
    secret: &str,
    value: &T,
    lasts: Duration,
) -> Result<(), Refusal> {
    replace(app, kind, secret, (value, value), lasts).await.map(|_| ())
}

/// Puts something else in its place; false: it is another by now than was seen, or gone.
pub(crate) async fn replace<T: Serialize + Sync>(
    app: &App,
    kind: TicketKind,
    secret: &str,
    (seen, new): (&T, &T),
    lasts: Duration,
) -> Result<bool, Refusal> {
    let (seen, new) = (json(seen)?, json(new)?);
    Ok(app.registration.replace_ticket(kind, secret.as_bytes(), &seen, &new, lasts).await?.value)
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("what is kept is no JSON: {e}")).into())
}

fn parse<T: DeserializeOwned>(value: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(value)
        .map_err(|e| Error::internal(format!("what was kept can't be read: {e}")).into())
}
