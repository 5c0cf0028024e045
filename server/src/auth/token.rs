//! Access tokens, and the sessions of an account that they belong to.
//!
//! A token lies under its hash, in a bucket of its own; the account lists its sessions in documents, by the same hash.
//! There is no write to both: the document comes first and goes last, so every token that lives is listed, and whoever
//! revokes all sessions of an account misses none.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use serde::{Deserialize, Serialize};
use tideline::document::DocumentVersion;
use tideline::registration::{Registration, TicketKind};
use tideline::{AccountId, AccountState, CallFuture, Error, ErrorKind};

use super::application::{self, RegisteredApplication};
use super::code::{Code, invalid_grant};
use super::era::Era;
use super::log_in::LogIn;
use super::secret::{Secret, hash};
use crate::app::App;
use crate::grants::{Scopes, StoredToken};
use crate::http::{Refusal, Timestamp};
use crate::keep::{documents, tickets};

/// So long a token lasts from the day on which it was used last.
const LASTS: Duration = Duration::from_secs(400 * 24 * 3_600);
/// So long one lasts that an application is given for itself, until it is used: whoever asks for thousands fills
/// nothing.
const LASTS_UNUSED: Duration = Duration::from_secs(6 * 3_600);
/// The part of it that is used up before it is renewed.
const RENEWED_AFTER_MS: u64 = 24 * 3_600 * 1_000;
/// Sessions that an account has at once; the one that was used longest ago ends for one more.
pub(crate) const SESSIONS_MAX: usize = 100;

const KIND: TicketKind = tickets::kind('t');
/// Letters of the place of a token: its hash.
const PLACE_LEN: usize = 43;
/// Prefix of the names of sessions' documents.
const SESSION: &str = "s:";

/// A session, as an account lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    /// The name of the application.
    pub(crate) application: String,
    pub(crate) created_ms: u64,
    pub(crate) used_ms: u64,
}

/// The name of the session of the token in that place.
fn session_of(place: &str) -> String {
    format!("{SESSION}{place}")
}

/// The holder that a token is given for.
#[derive(Debug, Clone)]
pub(crate) enum TokenHolder {
    /// The application alone.
    Application,
    /// Somebody, as it was found out in that era of its log-ins.
    Account { account: AccountId, waits: bool, era: Era },
}

impl TokenHolder {
    fn account(&self) -> Option<AccountId> {
        match self {
            Self::Application => None,
            Self::Account { account, .. } => Some(*account),
        }
    }

    fn waits(&self) -> bool {
        matches!(self, Self::Account { waits: true, .. })
    }
}

/// Makes a holder of whoever has just logged in.
impl From<LogIn> for TokenHolder {
    fn from(LogIn { account, era }: LogIn) -> Self {
        Self::Account { account: account.id, waits: account.state == AccountState::Waiting, era }
    }
}

impl StoredToken {
    /// Gives a token to an application, for itself or for somebody.
    pub(crate) async fn issue(
        app: &App,
        to: &RegisteredApplication,
        holder: TokenHolder,
        scopes: Scopes,
    ) -> Result<(Self, Secret), Refusal> {
        let secret = Secret::draw();
        Ok((Self::issue_as(app, to, holder, scopes, &secret).await?, secret))
    }

    /// Gives one to whoever brings a code, once.
    pub(crate) async fn issue_for_code(
        app: &App,
        to: &RegisteredApplication,
        (code, redirect): (&str, &str),
        verifier: Option<&str>,
    ) -> Result<(Self, Secret), Refusal> {
        let secret = Secret::draw();
        let (place, of) = (hash(secret.reveal()), (to.client_id.as_str(), redirect));
        let (Code { account, era, scopes, .. }, used) = Code::use_up(app, code, of, verifier, &place).await?;
        let holder = TokenHolder::Account { account, waits: false, era };
        let issued = async {
            let token = Self::issue_as(app, to, holder, scopes, &secret).await?;
            // Now that it can be ended: whoever has brought the code again may have found nothing to end.
            if used.is_used_once(app, code).await? { Ok(token) } else { Err(invalid_grant()) }
        };
        match issued.await {
            Ok(token) => Ok((token, secret)),
            Err(refusal) => {
                // Nobody gets its secret. What can't be ended now ends when it hasn't been used for long.
                if let Err(refusal) = end(app, Some(account), &place).await {
                    tracing::warn!(
                        status = refusal.status().as_u16(),
                        "a token that nobody has is not ended"
                    );
                }
                // The code is used up: with "try again" it would be brought once more, for nothing.
                Err(refusal.of_what_was_done())
            }
        }
    }

    async fn issue_as(
        app: &App,
        to: &RegisteredApplication,
        holder: TokenHolder,
        scopes: Scopes,
        secret: &Secret,
    ) -> Result<Self, Refusal> {
        let now = Timestamp::now().0;
        let (place, client_id) = (hash(secret.reveal()), to.client_id.clone());
        let (account, waits) = (holder.account(), holder.waits());
        let token = Self { account, client_id, scopes, created_ms: now, used_ms: now, waits };
        if let Some(account) = account {
            make_room(app, account).await?;
            let application = to.application.name.clone();
            let session = StoredSession { application, created_ms: now, used_ms: now };
            documents::put(&app.registration, account, &session_of(&place), &session).await?;
            to.stay(app).await?;
        }
        let lasts = if account.is_some() { LASTS } else { LASTS_UNUSED };
        tickets::put(&app.registration, KIND, &place, &token, lasts).await?;
        if let TokenHolder::Account { account, era, .. } = holder
            && !era.goes_on(&app.registration, account).await?
        {
            // All sessions were ended after it was looked who asks: whoever did that may have listed this one too
            // late.
            end(app, Some(account), &place).await?;
            return Err(invalid_grant());
        }
        Ok(token)
    }

    /// Notes that its account was let in.
    pub(crate) async fn let_in(&self, app: &App, place: &str) -> Result<Arc<Self>, Refusal> {
        let (asked, new) = (Instant::now(), Self { waits: false, ..self.clone() });
        if tickets::replace(&app.registration, KIND, place, (self, &new), LASTS).await? {
            app.tokens.insert(place.to_owned(), Arc::new(new.clone()), asked);
        }
        Ok(Arc::new(new))
    }

    /// The token with that secret, while it lasts.
    pub(crate) async fn find(app: &App, secret: &str) -> Result<Option<Arc<Self>>, Refusal> {
        Self::at(app, &hash(secret)).await
    }

    /// The token in a place, while it lasts.
    pub(crate) async fn at(app: &App, place: &str) -> Result<Option<Arc<Self>>, Refusal> {
        if let Some(token) = app.tokens.get(place) {
            return Ok(Some(token));
        }
        // It is taken down before it is looked for: one that is revoked meanwhile is not remembered as of later.
        let now = Instant::now();
        let Some(mut token) = tickets::get::<Self>(&app.registration, KIND, place).await? else {
            return Ok(None);
        };
        let used_ms = Timestamp::now().0;
        if token.is_unused() || used_ms.saturating_sub(token.used_ms) > RENEWED_AFTER_MS {
            // It does no harm until it is a year old, or one that nobody had used hours: whoever asks is not kept
            // waiting for a bucket that takes no writes.
            if let Err(refusal) = token.renew(app, place, used_ms).await {
                tracing::info!(status = %refusal.status(), "a token's use is not noted; its next one will be");
            }
        }
        let token = Arc::new(token);
        app.tokens.insert(place.to_owned(), Arc::clone(&token), now);
        Ok(Some(token))
    }

    /// Whether it is an application's own that nobody has used yet.
    fn is_unused(&self) -> bool {
        self.account.is_none() && self.used_ms == self.created_ms
    }

    async fn renew(&mut self, app: &App, place: &str, used_ms: u64) -> Result<(), Refusal> {
        if self.is_unused() {
            // From now on it lasts as long as the application does.
            let new = Self { used_ms: used_ms.max(self.created_ms + 1), ..self.clone() };
            if tickets::replace(&app.registration, KIND, place, (&*self, &new), application::LASTS).await? {
                *self = new;
            }
            return Ok(());
        }
        let new = Self { used_ms, ..self.clone() };
        // Another request may have been first, and a token that was revoked stays so.
        if tickets::replace(&app.registration, KIND, place, (&*self, &new), LASTS).await?
            && let Some(account) = self.account
        {
            let renewed = |session: Option<StoredSession>| {
                Ok::<_, Refusal>(session.map(|session| StoredSession { used_ms, ..session }))
            };
            documents::change(&app.registration, account, &session_of(place), renewed).await?;
        }
        // Who is in use stays as long as its tokens: without it they could not be ended.
        if let Some(application) = RegisteredApplication::find(app, &self.client_id).await? {
            application.stay(app).await?;
        }
        *self = new;
        Ok(())
    }

    /// Ends a token; one that has ended stays so.
    pub(crate) async fn revoke(&self, app: &App, secret: &str) -> Result<(), Refusal> {
        end(app, self.account, &hash(secret)).await
    }
}

/// Ends the token in a place, then its session: a session without a token is harmless, a token that nobody lists
/// isn't.
pub(super) async fn end(app: &App, account: Option<AccountId>, place: &str) -> Result<(), Refusal> {
    app.registration.drop_ticket(KIND, place.as_bytes()).await?;
    app.tokens.remove(place);
    if let Some(account) = account {
        documents::remove(&app.registration, account, &session_of(place)).await?;
    }
    Ok(())
}

/// The sessions of an account, the one that was used last first, each with the place of its token. One without a token
/// is none: that has ended, and whoever ended it was stopped before it took the session off.
pub(crate) async fn sessions(app: &App, account: AccountId) -> Result<Vec<(String, StoredSession)>, Refusal> {
    let listed = listed(app, account).await?;
    let token = |place| tickets::get::<StoredToken>(&app.registration, KIND, place);
    let tokens = try_join_all(listed.iter().map(|(place, _)| token(place))).await?;
    let live = listed.into_iter().zip(tokens).filter(|(_, token)| token.is_some());
    Ok(live.map(|(session, _)| session).collect())
}

/// Lists the sessions of an account, with those that have no token.
async fn listed(app: &App, account: AccountId) -> Result<Vec<(String, StoredSession)>, Refusal> {
    let mut sessions: Vec<(String, StoredSession)> =
        documents::all(&app.registration, account, SESSION).await?;
    sessions.sort_by_key(|(_, session)| Reverse(session.used_ms));
    Ok(sessions)
}

/// Ends a session of an account; false: it has none of that name.
pub(crate) async fn end_session(app: &App, account: AccountId, place: &str) -> Result<bool, Refusal> {
    let is_name =
        place.len() == PLACE_LEN && place.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !is_name {
        return Ok(false);
    }
    let session = documents::get::<StoredSession>(&app.registration, account, &session_of(place)).await?;
    if session.is_some() {
        end(app, Some(account), place).await?;
    }
    Ok(session.is_some())
}

/// Ends all sessions of an account, here at once.
pub(crate) async fn end_all(app: &App, account: AccountId) -> Result<(), Refusal> {
    Era::end(&app.registration, account).await?;
    end_listed(app, account).await.map_err(Refusal::of_what_was_done)
}

/// Ends the sessions that an account lists, once its era has ended, here at once.
pub(super) async fn end_listed(app: &App, account: AccountId) -> Result<(), Refusal> {
    let sessions = listed(app, account).await?;
    let ended = drop_listed(&app.registration, account).await;
    sessions.iter().for_each(|(place, _)| app.tokens.remove(place));
    match ended?.because {
        None => Ok(()),
        Some(because) => Err(because.into()),
    }
}

/// The outcome of ending all sessions of an account.
#[must_use]
#[derive(Debug, Default)]
pub struct EndedSessions {
    /// Sessions that have ended.
    pub ended: usize,
    /// The first error, where not all have: the servers that have their tokens could not be asked.
    pub because: Option<Error>,
}

/// Ends all sessions of an account, and the era of its log-ins. One that can't be ended keeps no other one: why it
/// couldn't is told. Servers that remember a token go by it for as long as
/// [`visible_within`](tideline::EngineSettings::visible_within) says.
pub fn end_sessions(registration: &Registration, account: AccountId) -> CallFuture<'_, EndedSessions> {
    Box::pin(async move {
        // First: a token that is given now is ended by whoever gives it, or listed below.
        let era = Era::end(registration, account).await;
        let mut outcome = drop_listed(registration, account).await?;
        outcome.because = era.err().or(outcome.because);
        Ok(outcome)
    })
}

async fn drop_listed(registration: &Registration, account: AccountId) -> tideline::Result<EndedSessions> {
    let sessions = registration.documents(account).await?.into_iter();
    let sessions = sessions.filter(|(name, _)| name.starts_with(SESSION));
    // At once: each that lies on a server that is away would keep those behind it waiting.
    let dropped = sessions.map(|(name, document)| drop_one(registration, account, name, document.version));
    let mut outcome = EndedSessions::default();
    for dropped in join_all(dropped).await {
        match dropped {
            Ok(()) => outcome.ended += 1,
            Err(e) => drop(outcome.because.get_or_insert(e)),
        }
    }
    Ok(outcome)
}

async fn drop_one(
    registration: &Registration,
    account: AccountId,
    name: String,
    version: DocumentVersion,
) -> tideline::Result<()> {
    let place = name.strip_prefix(SESSION).unwrap_or_default();
    registration.drop_ticket(KIND, place.as_bytes()).await?;
    match registration.change_document(account, &name, Some(&version), None).await {
        // One that was renewed meanwhile stays listed, without a token: that is harmless.
        Err(e) if e.kind() != ErrorKind::Conflict => Err(e),
        _ => Ok(()),
    }
}

/// Makes room for one more session. Of two at once that find room both go on: a bound on what is kept, no promise.
async fn make_room(app: &App, account: AccountId) -> Result<(), Refusal> {
    let sessions = listed(app, account).await?;
    for (place, _) in sessions.iter().skip(SESSIONS_MAX - 1) {
        end(app, Some(account), place).await?;
    }
    Ok(())
}
