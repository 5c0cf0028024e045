//! Tokens of services: of backends that act for any account of a site, its own users, through the same calls.
//!
//! A token lies under the hash of its secret, in a bucket of its own, as those of accounts do; what lists them is one
//! more ticket, under a name that everybody knows. There is no write to both: a token is listed before it is given, and
//! struck from the list after it has ended. So every token that lives is listed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tideline::registration::{Registration, TICKET_LASTS_MAX, TicketKind};
use tideline::{CallFuture, Error, ErrorCode, ErrorKind, Result};

use super::secret::{Secret, hash};
use crate::grants::{RememberedTokens, Scopes, ServiceToken, is_admins};
use crate::http::Timestamp;
use crate::keep::tickets::{self, TicketList};

/// Tokens of services that a tenant has.
pub const SERVICE_TOKENS_MAX: usize = 32;
/// Letters of a service's name.
pub const SERVICE_NAME_LEN_MAX: usize = 32;

/// Prefix of all secrets of services: nobody else's is looked for among them.
const SECRET_HEAD: &str = "tds_";
/// So long a token lasts from the day on which it was used last.
const LASTS: Duration = TICKET_LASTS_MAX;
/// The part of it that is used up before it is renewed.
const RENEWED_AFTER_MS: u64 = 24 * 3_600 * 1_000;

const TOKEN: TicketKind = tickets::kind('S');
/// Tokens lie under hashes, of which none is that.
const LIST: TicketList<'_> =
    TicketList { kind: tickets::kind('L'), name: "service tokens", lasts: TICKET_LASTS_MAX };

/// A token of a service, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedService {
    /// What it is called: by the log, and by who revokes it.
    pub name: String,
    /// Of its secret the hash.
    place: String,
    /// When it was made: milliseconds since 1970.
    pub created_ms: u64,
}

/// A token of a service, for who looks after them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceSummary {
    /// What it is called.
    pub name: String,
    /// What it allows; `None`: it has ended, and is listed only.
    pub scopes: Option<String>,
    /// When it was made: milliseconds since 1970.
    pub created_ms: u64,
    /// The day on which it was used last, as milliseconds since 1970; `None`: it has ended.
    pub used_ms: Option<u64>,
}

impl ServiceToken {
    /// Whether somebody's secret says that it is a service's.
    pub(crate) fn is_named_by(secret: &str) -> bool {
        // Of its length: a token of somebody may begin so by chance.
        secret.len() == SECRET_HEAD.len() + Secret::LEN && secret.starts_with(SECRET_HEAD)
    }

    /// The token with that secret, while it lasts.
    pub(crate) async fn find(
        registration: &Registration,
        remembered: &RememberedTokens<Self>,
        secret: &str,
    ) -> Result<Option<Arc<Self>>> {
        let place = hash(secret);
        if let Some(token) = remembered.get(&place) {
            return Ok(Some(token));
        }
        let asked = Instant::now();
        let Some(mut token) = tickets::get::<Self>(registration, TOKEN, &place).await? else {
            return Ok(None);
        };
        let used_ms = Timestamp::now().0;
        if used_ms.saturating_sub(token.used_ms) > RENEWED_AFTER_MS {
            // It does no harm until it is years old: no backend is kept waiting for a bucket that takes no writes.
            if let Err(error) = token.renew(registration, &place, used_ms).await {
                tracing::info!(%error, "a service's use is not noted; its next one will be");
            }
        }
        let token = Arc::new(token);
        remembered.insert(place, Arc::clone(&token), asked);
        Ok(Some(token))
    }

    async fn renew(&mut self, registration: &Registration, place: &str, used_ms: u64) -> Result<()> {
        let new = Self { used_ms, ..self.clone() };
        // One that was revoked meanwhile stays so.
        if tickets::replace(registration, TOKEN, place, (&*self, &new), LASTS).await? {
            // The list lasts as long as the newest of its tokens; one that is gone comes back by and by.
            let listed = ListedService {
                name: self.name.clone(),
                place: place.to_owned(),
                created_ms: self.created_ms,
            };
            LIST.change(registration, |list: &mut Vec<ListedService>| {
                if !list.contains(&listed) {
                    list.push(listed.clone());
                }
                Ok(())
            })
            .await?;
        }
        *self = new;
        Ok(())
    }
}

/// Makes a token of a service; gives its secret, this once.
///
/// # Errors
///
/// [`Invalid`](ErrorKind::Invalid): the name, or the scopes, can't be. [`Conflict`](ErrorKind::Conflict): there is a
/// token of that name, or there are [`SERVICE_TOKENS_MAX`].
pub fn create<'a>(registration: &'a Registration, name: &'a str, scopes: &'a str) -> CallFuture<'a, String> {
    Box::pin(async move {
        check_name(name)?;
        let scopes = scopes_of(scopes)?;
        let secret = Secret::of(format!("{SECRET_HEAD}{}", Secret::draw().reveal()));
        let (place, created_ms) = (hash(secret.reveal()), Timestamp::now().0);
        let listed = ListedService { name: name.to_owned(), place: place.clone(), created_ms };
        LIST.change(registration, |list: &mut Vec<ListedService>| {
            if list.iter().any(|other| other.name == name && other.place != listed.place) {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    format!(
                        "there is a token called {name:?} already; `tideline token revoke {name}` ends it"
                    ),
                ));
            }
            if !list.contains(&listed) {
                list.push(listed.clone());
            }
            if list.len() > SERVICE_TOKENS_MAX {
                let text = format!(
                    "there are {SERVICE_TOKENS_MAX} tokens of services, which is the limit; revoke one"
                );
                return Err(Error::new(ErrorCode::LimitReached, text));
            }
            Ok(())
        })
        .await?;
        let token = ServiceToken { name: name.to_owned(), scopes, created_ms, used_ms: created_ms };
        tickets::put(registration, TOKEN, &place, &token, LASTS).await?;
        Ok(secret.reveal().to_owned())
    })
}

/// All tokens of services, the newest last.
pub fn list(registration: &Registration) -> CallFuture<'_, Vec<ServiceSummary>> {
    Box::pin(async move {
        let listed: Vec<ListedService> = LIST.read(registration).await?;
        let mut summaries = Vec::new();
        for ListedService { name, place, created_ms } in listed {
            let token = tickets::get::<ServiceToken>(registration, TOKEN, &place).await?;
            let (scopes, used_ms) = token.map(|token| (token.scopes.to_string(), token.used_ms)).unzip();
            summaries.push(ServiceSummary { name, scopes, created_ms, used_ms });
        }
        Ok(summaries)
    })
}

/// Ends the token of that name: at once where it is looked up next, elsewhere within `visible_within`.
///
/// # Errors
///
/// [`NotFound`](ErrorKind::NotFound): there is none.
pub fn revoke<'a>(registration: &'a Registration, name: &'a str) -> CallFuture<'a, ()> {
    Box::pin(async move {
        let listed: Vec<ListedService> = LIST.read(registration).await?;
        let listed = listed.into_iter().find(|listed| listed.name == name);
        let Some(listed) = listed else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no token called {name:?}")));
        };
        // The token first: one that is listed and has ended is harmless, one that nobody lists isn't.
        registration.drop_ticket(TOKEN, listed.place.as_bytes()).await?;
        LIST.change(registration, |list: &mut Vec<ListedService>| {
            list.retain(|other| other.place != listed.place);
            Ok(())
        })
        .await
    })
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || name.len() > SERVICE_NAME_LEN_MAX || !name.bytes().all(is_plain) {
        return Err(Error::invalid(format!(
            "{name:?} is no name of a service: it takes 1 to {SERVICE_NAME_LEN_MAX} letters (a to z), digits, `-`, `_` \
             and `.`"
        )));
    }
    Ok(())
}

fn scopes_of(text: &str) -> Result<Scopes> {
    let scopes = Scopes::parse(text).map_err(|unknown| {
        let known: Vec<&str> = Scopes::known().iter().copied().filter(|name| !is_admins(name)).collect();
        Error::invalid(format!("{:?} is no scope; there are {}", unknown.0, known.join(", ")))
    })?;
    match scopes.names().find(|name| is_admins(name)) {
        Some(name) => {
            Err(Error::invalid(format!("{name}: a service never gets what is for whoever runs the site")))
        }
        None => Ok(scopes),
    }
}

#[cfg(test)]
mod tests {
    use tideline::registration::TICKET_BYTES_MAX;

    use super::*;

    #[test]
    fn services_have_plain_names_and_nothing_of_admins() {
        for name in ["shop", "a", "Shop-2.eu_west", &"n".repeat(SERVICE_NAME_LEN_MAX)] {
            check_name(name).unwrap();
        }
        for name in ["", "a b", "a\nb", "\u{e9}", "a/b", &"n".repeat(SERVICE_NAME_LEN_MAX + 1)] {
            assert_eq!(check_name(name).unwrap_err().kind(), ErrorKind::Invalid, "{name}");
        }
        scopes_of("read write follow").unwrap();
        for scopes in ["read admin:read", "admin:write:accounts", "everything"] {
            assert_eq!(scopes_of(scopes).unwrap_err().kind(), ErrorKind::Invalid, "{scopes}");
        }
        // Whatever stands there.
        let token = ServiceToken {
            name: "shop".into(),
            scopes: serde_json::from_str("\"read admin:read\"").unwrap(),
            created_ms: 0,
            used_ms: 0,
        };
        assert!(token.allows("read:statuses") && !token.allows("admin:read") && !token.allows("write"));
    }

    #[test]
    fn the_longest_list_fits_a_ticket() {
        let listed = ListedService {
            name: "n".repeat(SERVICE_NAME_LEN_MAX),
            place: hash("x"),
            created_ms: 9_999_999_999_999,
        };
        assert!(serde_json::to_vec(&vec![listed; SERVICE_TOKENS_MAX]).unwrap().len() <= TICKET_BYTES_MAX);
    }
}
