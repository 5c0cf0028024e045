//! Markers: how far somebody has read its timelines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tideline::AccountId;

use super::documents;
use crate::app::App;
use crate::http::Refusal;

const MARKERS: &str = "markers";

/// The timelines that have a marker, by the names that clients have for them.
pub(crate) const TIMELINES: [&str; 2] = ["home", "notifications"];

/// A marker of how far one is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadMarker {
    /// The id of the newest that was read.
    pub(crate) last_read_id: u64,
    /// How often it has changed.
    pub(crate) version: u64,
    /// When it has, in milliseconds since 1970.
    pub(crate) updated_ms: u64,
}

/// The markers of an account, by their timelines.
pub(crate) type ReadMarkers = BTreeMap<String, ReadMarker>;

/// The markers of an account.
pub(crate) async fn of(app: &App, account: AccountId) -> Result<ReadMarkers, Refusal> {
    Ok(documents::get(&app.registration, account, MARKERS).await?.unwrap_or_default())
}

/// Moves markers of these timelines to where they are read. Gives all of them.
pub(crate) async fn set(
    app: &App,
    account: AccountId,
    read: &[(&str, u64)],
    now_ms: u64,
) -> Result<ReadMarkers, Refusal> {
    let moved = |markers: Option<ReadMarkers>| {
        let mut markers = markers.unwrap_or_default();
        for (timeline, last_read_id) in read {
            let version = markers.get(*timeline).map_or(0, |marker| marker.version + 1);
            let marker = ReadMarker { last_read_id: *last_read_id, version, updated_ms: now_ms };
            markers.insert((*timeline).to_owned(), marker);
        }
        Ok::<_, Refusal>(Some(markers))
    };
    Ok(documents::change(&app.registration, account, MARKERS, moved).await?.unwrap_or_default())
}
