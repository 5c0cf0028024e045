//! Speaks HTTP to clients of Mastodon, on an [`Engine`]: what they ask for, and get, is Mastodon's
//! client API.
//!
//! README.md shows the folders in their layers. Everything that is stored is the engine's; here lie HTTP, JSON and
//! HTML.

mod api;
mod app;
mod auth;
pub mod config;
pub mod entity;
mod form;
mod grants;
pub mod http;
mod keep;
pub mod limits;
pub mod mail;
pub mod show;

pub use auth::secret::hash_of as token_of_key;
pub use auth::service;
/// Calls about accounts for whoever runs a site, beside the engine's.
pub mod accounts {
    pub use crate::api::is_reserved_login;
    pub use crate::auth::invitation::{
        INVITATION_LASTS_MAX, INVITATION_USES_MAX, INVITATIONS_MAX, InvitationSummary, invitations, invite,
        revoke_invitation,
    };
    pub use crate::auth::newcomer::{WAITING_MAX, WaitingAccount, approve, reject, waiting};
    pub use crate::auth::standing::set_state;
    pub use crate::auth::token::{EndedSessions, end_sessions};
    pub use crate::keep::role::{AccountRole, role, set_role};
}

/// Posts as they are stored, whoever may see them: for moderators, and whoever shows them elsewhere.
pub mod moderation {
    pub use crate::api::reported_posts;
    pub use crate::keep::posts::readable;
}

pub use auth::caller::SERVICE_LOG;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn;
use tideline::registration::Registration;
use tideline::{Engine, Result};
use tokio::time::{Instant, timeout_at};

use app::App;
use config::ServerSettings;
use http::{Listener, Readiness, Shutdown, serve};

/// The time within which requests end that were cut off.
const CUT_OFF: Duration = Duration::from_millis(500);
/// Letters that wait to be sent get so long at the end.
const DRAINS_LETTERS: Duration = Duration::from_secs(5);

/// Serves clients at these addresses, until somebody begins the shutdown; what is under way then is answered.
///
/// The engine shows profiles wherever it shows accounts
/// ([`shows_profiles`](tideline::EngineSettings::shows_profiles)), or clients would see nobody's name, and keeps what
/// accounts are told ([`keeps_notifications`](tideline::EngineSettings::keeps_notifications)).
///
/// # Errors
///
/// [`Invalid`](tideline::ErrorKind::Invalid), at once: a file that the settings of mail name can't be read.
pub async fn run(
    engine: Engine,
    registration: Registration,
    settings: ServerSettings,
    listeners: Vec<Listener>,
    shutdown: Shutdown,
) -> Result<()> {
    let (layers, limits) = (settings.layers(), settings.listener_limits());
    let asked = engine.clone();
    let readiness = Readiness::new(shutdown.clone(), move || {
        let engine = asked.clone();
        async move { engine.health().await.is_ok_and(|health| health.is_well) }
    });
    let app = Arc::new(App::new(engine, registration, settings)?);
    let mailer = app.mailer.clone();
    let (router, under_way) = layers.around(api::routes(app), readiness);
    let drain_time = limits.drain_time;
    let mut served = pin!(serve(listeners, router.layer(from_fn(form::refused_as_pages)), &shutdown, limits));
    let begun = async {
        shutdown.begun().await;
        Instant::now()
    };
    let begun = tokio::select! {
        _ = served.as_mut() => Instant::now(),
        begun = begun => {
            served.await;
            begun
        }
    };
    // What writes gets as long as those whose clients are there. What was cut off a moment ago is about to end.
    let end = (begun + drain_time).max(Instant::now() + CUT_OFF);
    if timeout_at(end, under_way.ended()).await.is_err() {
        tracing::warn!(
            "requests are under way still at the end: what they were about to do may be half done"
        );
    }
    if let Some(mailer) = mailer {
        mailer.drain(DRAINS_LETTERS).await;
    }
    Ok(())
}
