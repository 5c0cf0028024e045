//! Tokens: giving them, taking them back; what clients are told of how.

use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::apps::{asked, invalid_scope};
use super::limited::CountedClient;
use crate::app::{App, Shared};
use crate::auth::application::{RegisteredApplication, invalid_client};
use crate::auth::caller::Caller;
use crate::auth::code::invalid_grant;
use crate::auth::log_in::LogIn;
use crate::auth::secret::Secret;
use crate::auth::token::TokenHolder;
use crate::entity::{self, Empty, OAuthMetadata, UserInfo};
use crate::grants::{Scopes, StoredToken};
use crate::http::{Json, Params, Refusal};
use crate::show::site::login;

/// `POST /oauth/token`
pub(super) async fn token(
    State(app): State<Shared>,
    tries: CountedClient,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<entity::Token>, Refusal> {
    let client = client(&app, &headers, &params).await?;
    let within = |scopes: Scopes| match client.application.scopes.allow_all(scopes) {
        true => Ok(scopes),
        false => Err(invalid_scope()),
    };
    let (holder, scopes) = match params.text("grant_type").unwrap_or_default() {
        "client_credentials" => {
            let scopes = within(asked(params.text("scope"))?)?;
            tries.ask_for_application_token(&app).await.map_err(Refusal::limited)?;
            (TokenHolder::Application, scopes)
        }
        "authorization_code" => {
            let redirect = params.text("redirect_uri").unwrap_or_default();
            let code = (params.text("code").unwrap_or_default(), redirect);
            let given = StoredToken::issue_for_code(&app, &client, code, params.text("code_verifier"));
            let (token, secret) = given.await?;
            return Ok(Json(shown(&token, &secret)));
        }
        "password" if app.settings.password_grant => {
            let scopes = within(asked(params.text("scope"))?)?;
            let name = params.text("username").unwrap_or_default();
            let password = params.text("password").unwrap_or_default();
            tries.try_log_in(&app, name).await.map_err(Refusal::limited)?;
            let log_in = LogIn::with_password(&app, name, password, tries.address()).await?;
            let log_in = log_in.ok_or_else(invalid_grant)?;
            (log_in.into(), scopes)
        }
        _ => {
            return Err(Refusal::oauth(
                StatusCode::BAD_REQUEST,
                "unsupported_grant_type",
                "The authorization grant type is not supported by the authorization server.",
            ));
        }
    };
    let (token, secret) = StoredToken::issue(&app, &client, holder, scopes).await?;
    Ok(Json(shown(&token, &secret)))
}

/// A token, as clients get it.
pub(super) fn shown(token: &StoredToken, secret: &Secret) -> entity::Token {
    entity::Token {
        access_token: secret.reveal().to_owned(),
        token_type: "Bearer",
        scope: token.scopes.to_string(),
        created_at: token.created_ms / 1_000,
    }
}

/// The application that asks: by what the parameters or the header of HTTP Basic say.
async fn client(app: &App, headers: &HeaderMap, params: &Params) -> Result<RegisteredApplication, Refusal> {
    let basic = headers.get(AUTHORIZATION).and_then(|header| basic(header.to_str().ok()?));
    let named = params.text("client_id").zip(params.text("client_secret"));
    let named = named.map(|(id, secret)| (id.to_owned(), secret.to_owned()));
    let (id, secret) = named.or(basic).ok_or_else(invalid_client)?;
    RegisteredApplication::prove(app, &id, &secret).await
}

fn basic(header: &str) -> Option<(String, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    let decoded = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(encoded.trim()).ok())??;
    let (id, secret) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((id.to_owned(), secret.to_owned()))
}

/// `POST /oauth/revoke`
pub(super) async fn revoke(
    State(app): State<Shared>,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<Empty>, Refusal> {
    let client = client(&app, &headers, &params).await?;
    let secret = params.text("token").unwrap_or_default();
    let Some(token) = StoredToken::find(&app, secret).await? else { return Ok(Json(Empty {})) };
    if token.client_id != client.client_id {
        return Err(Refusal::oauth(
            StatusCode::FORBIDDEN,
            "unauthorized_client",
            "You are not authorized to revoke this token",
        ));
    }
    token.revoke(&app, secret).await?;
    Ok(Json(Empty {}))
}

/// `GET /oauth/userinfo`
pub(super) async fn user_info(State(app): State<Shared>, who: Caller) -> Result<Json<UserInfo>, Refusal> {
    let me = who.user("profile").or_else(|_| who.user("read:accounts"))?;
    let account = super::accounts::known(&app, me).await?;
    let login = login(&account);
    let profile = account.profile.unwrap_or_default();
    let site = app.site();
    Ok(Json(UserInfo {
        iss: site.at("/"),
        sub: site.at(&format!("/users/{login}")),
        name: profile.display_name,
        profile: site.at(&format!("/@{login}")),
        picture: site.picture(&profile.avatar, "avatars"),
        preferred_username: login,
    }))
}

/// `GET /.well-known/oauth-authorization-server`
pub(super) async fn metadata(State(app): State<Shared>) -> Json<OAuthMetadata> {
    let texts = |names: &[&str]| names.iter().copied().map(str::to_owned).collect();
    let mut grants = vec!["authorization_code", "client_credentials"];
    if app.settings.password_grant {
        grants.push("password");
    }
    Json(OAuthMetadata {
        issuer: app.site().at("/"),
        service_documentation: "https://docs.joinmastodon.org/".into(),
        authorization_endpoint: app.site().at("/oauth/authorize"),
        token_endpoint: app.site().at("/oauth/token"),
        app_registration_endpoint: app.site().at("/api/v1/apps"),
        revocation_endpoint: app.site().at("/oauth/revoke"),
        userinfo_endpoint: app.site().at("/oauth/userinfo"),
        scopes_supported: texts(Scopes::known()),
        response_types_supported: texts(&["code"]),
        response_modes_supported: texts(&["query"]),
        grant_types_supported: texts(&grants),
        token_endpoint_auth_methods_supported: texts(&["client_secret_basic", "client_secret_post"]),
        code_challenge_methods_supported: texts(&["S256"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_http_basic_names_an_application() {
        let named = Some(("id".to_owned(), "a:b".to_owned()));
        assert_eq!(basic("basic aWQ6YTpi"), named);
        assert_eq!((basic("Bearer aWQ6YTpi"), basic("Basic !"), basic("Basic")), (None, None, None));
    }
}
