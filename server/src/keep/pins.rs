//! Posts that an account shows first on its page.

use tideline::{AccountId, PostId};

use super::documents;
use super::posts::readable;
use crate::app::App;
use crate::http::Refusal;

/// Posts that an account pins.
pub(crate) const PINS_MAX: usize = 5;

const PINS: &str = "pins";

/// The pinned posts of an account, the one that was pinned last first. What is gone by now may be among them.
pub(crate) async fn of(app: &App, account: AccountId) -> Result<Vec<PostId>, Refusal> {
    Ok(documents::get::<Vec<PostId>>(&app.registration, account, PINS).await?.unwrap_or_default())
}

/// Pins a post; one that is pinned stays so. Where there is no room, those make some that are gone.
pub(crate) async fn pin(app: &App, account: AccountId, post: PostId) -> Result<(), Refusal> {
    let gone = gone_of(app, &of(app, account).await?).await?;
    let pinned = |pins: Option<Vec<PostId>>| {
        let mut pins = pins.unwrap_or_default();
        if pins.contains(&post) {
            return Ok(Some(pins));
        }
        // One that was pinned meanwhile, or that doesn't show to its author now, is not gone.
        pins.retain(|pin| !gone.contains(pin));
        if pins.len() >= PINS_MAX {
            return Err(Refusal::invalid(
                "Validation failed: You have already pinned the maximum number of posts",
            ));
        }
        pins.insert(0, post);
        Ok(Some(pins))
    };
    documents::change(&app.registration, account, PINS, pinned).await.map(|_| ())
}

/// The pins among these that are deleted, where there is no room for another one.
async fn gone_of(app: &App, pins: &[PostId]) -> Result<Vec<PostId>, Refusal> {
    let mut gone = Vec::new();
    for pin in pins.iter().filter(|_| pins.len() >= PINS_MAX) {
        if readable(&app.engine, *pin).await?.is_none() {
            gone.push(*pin);
        }
    }
    Ok(gone)
}

/// Unpins a post; one that isn't pinned stays so.
pub(crate) async fn unpin(app: &App, account: AccountId, post: PostId) -> Result<(), Refusal> {
    let without = |pins: Option<Vec<PostId>>| {
        Ok::<_, Refusal>(pins.map(|mut pins| {
            pins.retain(|pin| *pin != post);
            pins
        }))
    };
    documents::change(&app.registration, account, PINS, without).await.map(|_| ())
}
