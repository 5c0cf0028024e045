//! Registering applications.

use axum::extract::State;
use axum::http::StatusCode;

use crate::app::Shared;
use crate::auth::application::{
    self, ADDRESS_BYTES_MAX, NAME_CHARS_MAX, REDIRECTS_MAX, RegisteredApplication,
};
use crate::auth::caller::Caller;
use crate::entity::{self, CredentialApplication, Id};
use crate::grants::{Scopes, UnknownScope};
use crate::http::{Json, Params, Refusal};

/// `POST /api/v1/apps`
pub(super) async fn create(
    State(app): State<Shared>,
    params: Params,
) -> Result<Json<CredentialApplication>, Refusal> {
    let name = params.text("client_name").unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        return Err(Refusal::invalid("Validation failed: Application name can't be blank"));
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(Refusal::invalid(format!(
            "Validation failed: Application name is too long (maximum is {NAME_CHARS_MAX} characters)"
        )));
    }
    let website = params.text("website").filter(|website| !website.is_empty()).map(str::to_owned);
    if website.as_ref().is_some_and(|it| it.len() > ADDRESS_BYTES_MAX || !is_page(it)) {
        return Err(Refusal::invalid("Validation failed: Website must be a valid URL"));
    }
    let redirects = redirects(&params)?;
    let scopes = asked(params.text("scopes").or_else(|| params.text("scope")))?;
    let (registered, secret) = RegisteredApplication::new(&app, name, website, redirects, scopes).await?;
    Ok(Json(CredentialApplication {
        application: shown(&registered),
        client_id: registered.client_id,
        client_secret: secret.reveal().to_owned(),
        client_secret_expires_at: 0,
    }))
}

/// `GET /api/v1/apps/verify_credentials`
pub(super) async fn verify(
    State(app): State<Shared>,
    who: Caller,
) -> Result<Json<entity::Application>, Refusal> {
    let token = who.token()?;
    let registered =
        RegisteredApplication::find(&app, &token.client_id).await?.ok_or_else(Refusal::no_valid_token)?;
    Ok(Json(shown(&registered)))
}

/// Facts of an application that everybody who has it may know.
fn shown(registered: &RegisteredApplication) -> entity::Application {
    let application = &registered.application;
    entity::Application {
        id: Id(registered.number()),
        name: application.name.clone(),
        website: application.website.clone(),
        scopes: application.scopes.names().map(str::to_owned).collect(),
        redirect_uris: application.redirects.clone(),
        redirect_uri: application.redirects.join("\n"),
        vapid_key: String::new(),
    }
}

/// The addresses that an application names: as a list, or as lines of one text.
fn redirects(params: &Params) -> Result<Vec<String>, Refusal> {
    let named = params.texts("redirect_uris");
    let lines = named.iter().flat_map(|text| text.split(['\n', '\r', ' '])).filter(|line| !line.is_empty());
    let redirects: Vec<String> = lines.map(str::to_owned).collect();
    if redirects.is_empty() {
        return Err(Refusal::invalid("Validation failed: Redirect URI can't be blank"));
    }
    let is_fine =
        |redirect: &String| redirect.len() <= ADDRESS_BYTES_MAX && application::is_redirect(redirect);
    if redirects.len() > REDIRECTS_MAX || !redirects.iter().all(is_fine) {
        return Err(Refusal::invalid("Validation failed: Redirect URI must be an absolute URI."));
    }
    Ok(redirects)
}

fn is_page(address: &str) -> bool {
    (address.starts_with("https://") || address.starts_with("http://"))
        && address.chars().all(|c| !c.is_control() && !c.is_whitespace())
}

/// The scopes that somebody asks for; `read`, if none is named.
pub(super) fn asked(text: Option<&str>) -> Result<Scopes, Refusal> {
    Scopes::parse(text.unwrap_or_default()).map_err(|UnknownScope(_)| invalid_scope())
}

/// Told to whoever asks for a scope that there is not, or that its application never asked for.
pub(super) fn invalid_scope() -> Refusal {
    Refusal::oauth(
        StatusCode::BAD_REQUEST,
        "invalid_scope",
        "The requested scope is invalid, unknown, or malformed.",
    )
}
