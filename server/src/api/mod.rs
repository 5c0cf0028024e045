//! The calls that clients make, a file for each group of them: who asks, one call of the engine, what is shown of it.
//!
//! Here: which routes there are, all of them on this page. Invariant kept here: whoever may not see something is told
//! that there is no such thing.

mod accounts;
mod apps;
mod authorize;
mod credentials;
mod follows;
mod instance;
mod limited;
mod lists;
mod notifications;
mod oauth;
mod own_lists;
mod page;
mod search;
mod services;
mod sign_up;
mod statuses;
mod timelines;
mod written;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::app::Shared;

/// All routes.
pub(crate) fn routes(app: Shared) -> Router {
    Router::new()
        .merge(of_applications())
        .merge(of_accounts())
        .merge(of_statuses())
        .merge(of_timelines())
        .merge(of_notifications())
        .merge(of_the_instance())
        .layer(from_fn_with_state(app.clone(), limited::limited))
        .with_state(app)
}

fn of_applications() -> Router<Shared> {
    Router::new()
        .route("/api/v1/apps", post(apps::create))
        .route("/api/v1/apps/verify_credentials", get(apps::verify))
        .route("/oauth/authorize", get(authorize::page).post(authorize::decide))
        .route("/oauth/token", post(oauth::token))
        .route("/oauth/revoke", post(oauth::revoke))
        .route("/oauth/userinfo", get(oauth::user_info))
        .route("/.well-known/oauth-authorization-server", get(oauth::metadata))
}

fn of_accounts() -> Router<Shared> {
    Router::new()
        .route("/api/v1/accounts", get(accounts::several).post(sign_up::sign_up))
        .route("/api/v1/accounts/verify_credentials", get(credentials::verify))
        .route("/api/v1/accounts/update_credentials", axum::routing::patch(credentials::update))
        .route("/api/v1/accounts/lookup", get(accounts::lookup))
        .route("/api/v1/accounts/search", get(search::accounts))
        .route("/api/v1/accounts/relationships", get(follows::relationships))
        .route("/api/v1/accounts/{id}", get(accounts::one))
        .route("/api/v1/accounts/{id}/statuses", get(timelines::of_account))
        .route("/api/v1/accounts/{id}/followers", get(accounts::followers))
        .route("/api/v1/accounts/{id}/following", get(accounts::following))
        .route("/api/v1/accounts/{id}/lists", get(lists::with_account))
        .route("/api/v1/accounts/{id}/follow", post(follows::follow))
        .route("/api/v1/accounts/{id}/unfollow", post(follows::unfollow))
        .route("/api/v1/accounts/{id}/remove_from_followers", post(follows::remove_follower))
        .route("/api/v1/accounts/{id}/block", post(follows::block))
        .route("/api/v1/accounts/{id}/unblock", post(follows::unblock))
        .route("/api/v1/accounts/{id}/mute", post(follows::mute))
        .route("/api/v1/accounts/{id}/unmute", post(follows::unmute))
        .route("/api/v1/accounts/{id}/note", post(follows::note))
        .route("/api/v1/follow_requests", get(own_lists::follow_requests))
        .route("/api/v1/follow_requests/{id}/authorize", post(follows::authorize))
        .route("/api/v1/follow_requests/{id}/reject", post(follows::reject))
        .route("/api/v1/blocks", get(own_lists::blocks))
        .route("/api/v1/mutes", get(own_lists::mutes))
        .route("/api/v1/preferences", get(credentials::preferences))
        .route("/api/tideline/v1/accounts", post(services::create))
}

fn of_statuses() -> Router<Shared> {
    Router::new()
        .route("/api/v1/statuses", get(statuses::several).post(statuses::create))
        .route("/api/v1/statuses/{id}", get(statuses::one).put(statuses::edit).delete(statuses::delete))
        .route("/api/v1/statuses/{id}/source", get(statuses::source))
        .route("/api/v1/statuses/{id}/history", get(statuses::history))
        .route("/api/v1/statuses/{id}/context", get(statuses::context))
        .route("/api/v1/statuses/{id}/favourite", post(statuses::favourite))
        .route("/api/v1/statuses/{id}/unfavourite", post(statuses::unfavourite))
        .route("/api/v1/statuses/{id}/bookmark", post(statuses::bookmark))
        .route("/api/v1/statuses/{id}/unbookmark", post(statuses::unbookmark))
        .route("/api/v1/statuses/{id}/reblog", post(statuses::reblog))
        .route("/api/v1/statuses/{id}/unreblog", post(statuses::unreblog))
        .route("/api/v1/statuses/{id}/pin", post(statuses::pin))
        .route("/api/v1/statuses/{id}/unpin", post(statuses::unpin))
        .route("/api/v1/statuses/{id}/favourited_by", get(statuses::favourited_by))
        .route("/api/v1/statuses/{id}/reblogged_by", get(statuses::reblogged_by))
        .route("/api/v1/bookmarks", get(own_lists::bookmarks))
        .route("/api/v1/favourites", get(own_lists::favourites))
}

fn of_timelines() -> Router<Shared> {
    Router::new()
        .route("/api/v1/timelines/home", get(timelines::home))
        .route("/api/v1/timelines/public", get(timelines::public))
        .route("/api/v1/timelines/tag/{tag}", get(timelines::tag))
        .route("/api/v1/timelines/list/{id}", get(timelines::list))
        .route("/api/v1/lists", get(lists::all).post(lists::create))
        .route("/api/v1/lists/{id}", get(lists::one).put(lists::change).delete(lists::remove))
        .route("/api/v1/lists/{id}/accounts", get(lists::members).post(lists::add).delete(lists::take_off))
        .route("/api/v2/search", get(search::search))
}

fn of_notifications() -> Router<Shared> {
    Router::new()
        .route("/api/v1/notifications", get(notifications::all))
        .route("/api/v1/notifications/clear", post(notifications::clear))
        .route("/api/v1/notifications/dismiss", post(notifications::dismiss_named))
        .route("/api/v1/notifications/unread_count", get(notifications::unread_count))
        .route("/api/v1/notifications/{id}", get(notifications::one))
        .route("/api/v1/notifications/{id}/dismiss", post(notifications::dismiss))
        .route("/api/v1/markers", get(notifications::markers).post(notifications::set_markers))
}

fn of_the_instance() -> Router<Shared> {
    Router::new()
        .route("/api/v1/instance", get(instance::v1))
        .route("/api/v2/instance", get(instance::v2))
        .route("/api/v1/instance/rules", get(instance::rules))
        .route("/api/v1/instance/peers", get(instance::nothing))
        .route("/api/v1/custom_emojis", get(instance::nothing))
        .route("/api/v1/announcements", get(instance::nothing))
        .route("/.well-known/nodeinfo", get(instance::node_info_place))
        .route("/nodeinfo/2.0", get(instance::node_info))
}
