//! Calls that the HTTP API offers, over the wire: to a server on the engine of this instance, in its process, so that
//! whatever befalls the one befalls the other. Whom a call is for is said by the token of a service.
//!
//! Here: who asks, and what an answer means. An answer is taken at its word, as a client takes it: 2xx is done; 4xx is
//! not, and never was; a 503 that doesn't say that the request may have been carried out is not, and comes again; of a
//! 503 that says so, and where no whole answer came, nobody knows. Nothing else is asked whether that is right: what
//! shows afterwards has to agree. `deeds` are calls that change something, `pages` those that show something.
//!
//! What HTTP can't say (attachments of a post, whom else it is for, moderators, what is stored) stays the engine's.

mod deeds;
mod pages;

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tideline::registration::Registration;
use tideline::{AccountId, AccountState, Engine, Error, ErrorKind, Result};
use tideline_server::config::ServerSettings;
use tideline_server::http::{Listener, Shutdown};

use super::call::Call;
use super::told::Reply;
use crate::http::{Answer, Ask, Clients};

/// Connections of an instance to its own server.
const CONNECTIONS: usize = 256;
/// What HTTP says to whoever is suspended, and what is made of it.
const DISABLED: &str = "login is currently disabled";
const SUSPENDED: &str = "the account is suspended: nobody acts for it over HTTP";
/// How often it is looked at whether that is so, and how long after the last time at least.
const LOOKS_MAX: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A server of an instance, and its only client.
#[derive(Debug)]
pub(crate) struct Wire {
    clients: Clients,
    token: String,
    engine: Engine,
    /// What posts pass on, which HTTP doesn't tell of what isn't there any more.
    originals: Mutex<HashMap<u64, Option<u64>>>,
}

impl Wire {
    /// Serves this engine; `token` is a service's.
    pub(crate) async fn serve(engine: &Engine, registration: &Registration, token: String) -> Result<Self> {
        let cannot = |e: std::io::Error| Error::misconfigured(format!("no address to serve at: {e}"));
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), None).await.map_err(cannot)?;
        let address = listener.address().map_err(cannot)?;
        let settings = ServerSettings::default();
        let (served, registration) = (engine.clone(), registration.clone());
        // It ends with the process.
        tokio::spawn(tideline_server::run(
            served,
            registration,
            settings,
            vec![listener],
            Shutdown::default(),
        ));
        Ok(Self {
            clients: Clients::new(address, CONNECTIONS),
            token,
            engine: engine.clone(),
            originals: Mutex::default(),
        })
    }

    /// Asks for an account. For one that is suspended nobody acts over HTTP ([`SUSPENDED`]); the engine has to agree
    /// that it is, or nothing was written and it is asked again, as often as what a server knows of it may be old.
    async fn ask(&self, as_: u64, ask: Ask<'_>) -> Result<Answer> {
        let (account, as_) = (AccountId::new(as_)?, as_.to_string());
        let ask = ask.token(&self.token).acting_as(&as_);
        for _ in 0..LOOKS_MAX {
            let answer = self.clients.ask(&ask).await.map_err(|e| {
                Error::new(ErrorKind::Unknown, format!("no whole answer came over HTTP: {e}"))
            })?;
            if answer.status != 403 || !String::from_utf8_lossy(&answer.body).contains(DISABLED) {
                return Ok(answer);
            }
            if self.engine.stored().account(account).await?.state == AccountState::Suspended {
                return Err(Error::invalid(SUSPENDED));
            }
            tokio::time::sleep(self.engine.settings().visible_within.max(LOOK_AGAIN)).await;
        }
        Err(Error::internal(format!("over HTTP account {account} is suspended, else not")))
    }

    /// The same; what is refused is an error.
    async fn done(&self, as_: u64, ask: Ask<'_>) -> Result<Answer> {
        let answer = self.ask(as_, ask).await?;
        if answer.is_success() { Ok(answer) } else { Err(refusal(&answer)) }
    }

    /// Carries a call out; `None`: it is none of HTTP's, and the engine is asked.
    pub(super) async fn perform(&self, call: &Call) -> Result<Option<Reply>> {
        match self.perform_offered(call).await {
            Err(e) if is_of_suspended(&e) => self.published_before(call).await,
            told => told,
        }
    }

    /// What was posted with a key shows to whoever posts it again, also when it may post nothing any more: to the
    /// engine it has the token that the server makes of that key.
    async fn published_before(&self, call: &Call) -> Result<Option<Reply>> {
        let Call::Publish { author, post } = call else { return Ok(None) };
        let Some(token) = &post.token else { return Ok(None) };
        let token = tideline_server::token_of_key(token.as_bytes());
        let before = self.engine.published_as(AccountId::new(*author)?, token).await?;
        Ok(before.map(|id| deeds::published_again(id.get())))
    }

    async fn perform_offered(&self, call: &Call) -> Result<Option<Reply>> {
        Ok(match call {
            Call::Read(asked) => self.read(*asked).await?.map(Reply::Page),
            Call::List { reader, of, limit } => self.list(*reader, *of, *limit).await?,
            Call::Conversation { reader, post } => Some(self.conversation(*reader, *post).await?),
            Call::ByIds { reader, posts } => Some(self.by_ids(*reader, posts).await?),
            Call::Notices { reader, limit } => Some(self.notices(*reader, *limit).await?),
            call => self.deed(call).await?,
        })
    }
}

/// Whether HTTP did nothing because nobody acts over it for whoever is suspended.
pub(super) fn is_of_suspended(error: &Error) -> bool {
    error.to_string().contains(SUSPENDED)
}

/// Whether a call goes over HTTP, or a part of it.
pub(super) fn is_offered(call: &Call) -> bool {
    match call {
        Call::Read(asked) => pages::is_offered_page(*asked),
        Call::List { of, .. } => pages::path_of_list(*of).is_some(),
        Call::Conversation { .. } | Call::ByIds { .. } | Call::Relations { .. } | Call::Notices { .. } => {
            true
        }
        call => deeds::is_offered_deed(call),
    }
}

/// What a refusal says, as the engine would have said it.
fn refusal(answer: &Answer) -> Error {
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    let kind = match answer.status {
        400 | 401 | 403 | 422 => ErrorKind::Invalid,
        404 => ErrorKind::NotFound,
        409 => ErrorKind::Conflict,
        429 => ErrorKind::Overloaded,
        // Whoever is to come again is told when.
        503 if answer.has_retry_after && said.contains("may have been carried out") => ErrorKind::Unknown,
        503 if answer.has_retry_after => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, format!("over HTTP: {} {said}", answer.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_so_may_have_been_done() {
        let kind = |status, has_retry_after, said: &str| {
            let body = format!("{{\"error\":{said:?}}}").into_bytes();
            refusal(&Answer { status, body, has_retry_after, link: None }).kind()
        };
        let unknown = "There was a temporary problem: your request may have been carried out, or not.";
        assert_eq!(kind(503, true, unknown), ErrorKind::Unknown);
        assert_eq!(kind(503, true, "please try again"), ErrorKind::Unavailable);
        assert_eq!(kind(503, false, "please try again"), ErrorKind::Internal);
        assert_eq!(kind(500, false, unknown), ErrorKind::Internal);
        assert_eq!(kind(404, false, "Record not found"), ErrorKind::NotFound);
    }
}
