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

use tideline::registration::Registration;
use tideline::{Engine, Error, ErrorKind, Result};
use tideline_server::config::ServerSettings;
use tideline_server::http::{Listener, Shutdown};

use super::call::Call;
use super::told::Reply;
use crate::http::{Answer, Ask, Clients};

/// Connections of an instance to its own server.
const CONNECTIONS: usize = 256;

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

    async fn ask(&self, as_: u64, ask: Ask<'_>) -> Result<Answer> {
        let as_ = as_.to_string();
        let answer = self.clients.ask(&ask.token(&self.token).acting_as(&as_)).await;
        answer.map_err(|e| Error::new(ErrorKind::Unknown, format!("no whole answer came over HTTP: {e}")))
    }

    /// The same; what is refused is an error.
    async fn done(&self, as_: u64, ask: Ask<'_>) -> Result<Answer> {
        let answer = self.ask(as_, ask).await?;
        if answer.is_success() { Ok(answer) } else { Err(refusal(&answer)) }
    }

    /// Carries a call out; `None`: it is none of HTTP's, and the engine is asked.
    pub(super) async fn perform(&self, call: &Call) -> Result<Option<Reply>> {
        Ok(match call {
            Call::Read(asked) => self.read(*asked).await?.map(Reply::Page),
            Call::List { reader, of, limit } => self.list(*reader, *of, *limit).await?,
            Call::Conversation { reader, post } => Some(self.conversation(*reader, *post).await?),
            Call::ByIds { reader, posts } => Some(self.by_ids(*reader, posts).await?),
            call => self.deed(call).await?,
        })
    }
}

/// Whether a call goes over HTTP, or a part of it.
pub(super) fn is_offered(call: &Call) -> bool {
    match call {
        Call::Read(asked) => pages::is_offered_page(*asked),
        Call::List { of, .. } => pages::path_of_list(*of).is_some(),
        Call::Conversation { .. } | Call::ByIds { .. } | Call::Relations { .. } => true,
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
