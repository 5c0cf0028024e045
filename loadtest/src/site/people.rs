//! Applications and people of a site, as clients make them.

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::http::{Answer, Ask, Clients};

/// Everybody's password.
pub(crate) const PASSWORD: &str = "correct horse battery";
/// What applications may do.
const SCOPES: &str = "read write follow";

/// What a site has refused that should not have been.
pub(crate) fn refused(what: &str, answer: &Answer) -> anyhow::Error {
    let said = String::from_utf8_lossy(&answer.body);
    anyhow::anyhow!("{what}: {} {}", answer.status, said.chars().take(300).collect::<String>())
}

/// An application that is known to a site.
#[derive(Debug, Clone)]
pub(crate) struct Application {
    id: String,
    secret: String,
    /// Its own token, with which people sign up.
    token: String,
}

impl Application {
    pub(crate) async fn register(clients: &Clients) -> anyhow::Result<Self> {
        let asked = json!({
            "client_name": "loadtest", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob", "scopes": SCOPES,
        });
        let answer = clients.ask(&Ask::post("/api/v1/apps", asked)).await?;
        let told = success("an application", answer)?;
        let mut application = Self {
            id: text(&told, "client_id")?,
            secret: text(&told, "client_secret")?,
            token: String::new(),
        };
        let answer = clients.ask(&application.grant(json!({ "grant_type": "client_credentials" }))).await?;
        application.token = text(&success("a token of an application", answer)?, "access_token")?;
        Ok(application)
    }

    fn grant(&self, mut asked: Value) -> Ask<'static> {
        asked["client_id"] = self.id.as_str().into();
        asked["client_secret"] = self.secret.as_str().into();
        asked["scope"] = SCOPES.into();
        Ask::post("/oauth/token", asked)
    }

    /// A request to log somebody in.
    pub(crate) fn log_in(&self, login: &str) -> Ask<'static> {
        self.grant(json!({ "grant_type": "password", "username": login, "password": PASSWORD }))
    }

    /// A request to end a session.
    pub(crate) fn revoke(&self, token: &str) -> Ask<'static> {
        let asked = json!({ "client_id": self.id, "client_secret": self.secret, "token": token });
        Ask::post("/oauth/revoke", asked)
    }

    /// A request to sign up.
    pub(crate) fn sign_up(&self, login: &str) -> Ask<'_> {
        let asked = json!({
            "username": login, "email": format!("{login}@tide.example"), "password": PASSWORD, "agreement": true,
        });
        Ask::post("/api/v1/accounts", asked).token(&self.token)
    }

    /// Somebody's token.
    pub(crate) async fn token_of(&self, clients: &Clients, login: &str) -> anyhow::Result<String> {
        let answer = clients.ask(&self.log_in(login)).await?;
        text(&success("a log-in", answer)?, "access_token")
    }
}

fn success(what: &str, answer: Answer) -> anyhow::Result<Value> {
    if answer.is_success() { Ok(answer.json()) } else { Err(refused(what, &answer)) }
}

fn text(told: &Value, field: &str) -> anyhow::Result<String> {
    Ok(told[field].as_str().with_context(|| format!("an answer without {field}: {told}"))?.to_owned())
}
