//! Letters that calls ask for: whom they go to, with which link.

use axum::http::StatusCode;
use tideline::registration::Name;
use tideline::{Account, AccountId, Error, ErrorCode};

use super::accounts;
use crate::app::{App, Shared};
use crate::auth::link::{LetterLink, LinkPurpose};
use crate::auth::log_in::is_in;
use crate::http::{RateStanding, Refusal};
use crate::limits::letter_to;
use crate::mail::{Letter, LetterPlace, Mailer};
use crate::show::site::login;

/// The link in a letter, as an address; what a letter is for decides what it says.
type LetterText = fn((&str, &str), &str, &str) -> Letter;

/// Counts one more letter to that address, whoever asks for it; refuses one too many.
async fn may_go_to(app: &App, email: &str) -> Result<(), RateStanding> {
    app.limits.take(&letter_to(&app.settings.limits, email)).await.map(|_| ())
}

/// A letter that may be sent: it is counted, and has its place.
pub(super) struct ReadyLetter<'a> {
    mailer: &'a Mailer,
    place: LetterPlace,
    account: Account,
    email: String,
}

impl ReadyLetter<'_> {
    /// Sends it, with a link that is good for that.
    pub(super) async fn send(self, app: &App, purpose: LinkPurpose) -> Result<(), Refusal> {
        send(app, (self.mailer, self.place), &self.account, (purpose, &self.email)).await
    }
}

/// Counts a letter to somebody, and takes its place: to the address that an account has signed up with, or to another
/// one. `None`: none are sent.
pub(super) async fn ready<'a>(
    app: &'a App,
    account: AccountId,
    email: Option<&str>,
) -> Result<Option<ReadyLetter<'a>>, Refusal> {
    let Some(mailer) = &app.mailer else { return Ok(None) };
    let account = accounts::find(app, account).await?.ok_or_else(Refusal::not_found)?;
    let email = match email {
        Some(email) => email.to_owned(),
        None => app.registration.email(account.id).await?.ok_or_else(Refusal::not_found)?,
    };
    may_go_to(app, &email).await.map_err(Refusal::limited)?;
    let place = mailer.place().ok_or_else(no_room)?;
    Ok(Some(ReadyLetter { mailer, place, account, email }))
}

/// Sends somebody a letter with a link.
async fn send(
    app: &App,
    (mailer, place): (&Mailer, LetterPlace),
    account: &Account,
    (purpose, email): (LinkPurpose, &str),
) -> Result<(), Refusal> {
    let text: LetterText = match purpose {
        LinkPurpose::Confirmation => Letter::confirmation,
        LinkPurpose::NewAddress => Letter::new_address,
        LinkPurpose::Password => Letter::password,
    };
    let link = LetterLink::new(app, purpose, account.id, email).await?.keep(app).await?;
    mailer.send(text((&app.settings.title, &login(account)), email, &link), place);
    Ok(())
}

/// Asks somebody to confirm that an address is its own: the one that it has signed up with, or another one that it
/// wants.
pub(super) async fn confirm(
    app: &App,
    account: AccountId,
    purpose: LinkPurpose,
    email: Option<&str>,
) -> Result<(), Refusal> {
    match ready(app, account, email).await? {
        Some(letter) => letter.send(app, purpose).await,
        None => Ok(()),
    }
}

fn no_room() -> Refusal {
    Error::new(ErrorCode::Overloaded, "too many letters wait to be sent").into()
}

/// Tells the address that an account had that it has another one.
pub(super) fn tell_old(app: &App, account: &Account, old: &str) {
    if let Some(mailer) = &app.mailer {
        mailer.send_if_room(Letter::address_changed((&app.settings.title, &login(account)), old));
    }
}

/// Lets whoever has that address choose another password. It goes on beside its caller, who learns nothing: neither
/// whether there is somebody, nor from how long it takes.
pub(super) fn forgotten(app: &Shared, email: &str) {
    let Some(mailer) = app.mailer.clone() else { return };
    // Taken in any case: what is there for somebody is there for nobody.
    let Some(place) = mailer.place() else {
        return tracing::warn!("a letter for a forgotten password is not written: too many wait to be sent");
    };
    let (app, email) = (Shared::clone(app), email.to_owned());
    tokio::spawn(async move {
        let sent = async {
            let found = app.registration.find(&[Name::Email(email)]).await?.pop().flatten();
            let Some(account) = found.filter(is_in) else { return Ok(()) };
            // Its own spelling, not that of whoever asks.
            let Some(email) = app.registration.email(account.id).await? else { return Ok(()) };
            if may_go_to(&app, &email).await.is_err() {
                return Ok(());
            }
            send(&app, (&mailer, place), &account, (LinkPurpose::Password, &email)).await
        };
        if let Err(refusal) = sent.await {
            let status = StatusCode::as_u16(&refusal.status());
            tracing::info!(status, "a letter for a forgotten password is not written");
        }
    });
}
