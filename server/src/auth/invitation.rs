//! Invitations: codes with which so many may sign up, until a day.
//!
//! A code lies under its hash; what lists them is one more ticket. An invitation is listed before its code is given,
//! and struck from the list after it has ended: each that lives is listed. Its uses are counted by compare-and-set, so
//! that however many servers let people in, no more come than were invited.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tideline::registration::{Registration, TICKET_LASTS_MAX, TicketKind};
use tideline::{CallFuture, Error, ErrorCode, ErrorKind, Result};

use super::secret::{Secret, hash};
use crate::http::Timestamp;
use crate::keep::tickets::{self, TicketList};

/// Invitations that a site has at once.
pub const INVITATIONS_MAX: usize = 32;
/// The largest number of people that one invitation lets in.
pub const INVITATION_USES_MAX: u32 = 10_000;
/// The longest that one lasts: a year.
pub const INVITATION_LASTS_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Tries of one change of a count between others.
const TRIES_MAX: usize = 64;
/// Letters of the hash by which people name an invitation.
const ID_LEN: usize = 8;

const INVITATION: TicketKind = tickets::kind('i');
/// Invitations lie under hashes, of which none is that.
const LIST: TicketList<'_> =
    TicketList { kind: tickets::kind('I'), name: "invitations", lasts: TICKET_LASTS_MAX };

/// An invitation, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredInvitation {
    uses_left: u32,
    ends_ms: u64,
}

/// An invitation, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ListedInvitation {
    /// The hash of its code.
    place: String,
    created_ms: u64,
    ends_ms: u64,
}

/// An invitation, for whoever runs the site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvitationSummary {
    /// How it is named; no secret.
    pub id: String,
    /// When it was made: milliseconds since 1970.
    pub created_ms: u64,
    /// When it ends: milliseconds since 1970.
    pub ends_ms: u64,
    /// How many may still come with it.
    pub uses_left: u32,
}

impl ListedInvitation {
    fn id(&self) -> &str {
        self.place.get(..ID_LEN).unwrap_or(&self.place)
    }
}

/// Invites so many within so long; gives the code, this once.
///
/// # Errors
///
/// [`Invalid`](ErrorKind::Invalid): too many uses, or too long; or there are [`INVITATIONS_MAX`].
pub fn invite(registration: &Registration, uses: u32, lasts: Duration) -> CallFuture<'_, String> {
    Box::pin(async move {
        if uses == 0 || uses > INVITATION_USES_MAX {
            let text = format!("an invitation with {uses} uses: it takes 1 to {INVITATION_USES_MAX} uses");
            return Err(Error::invalid(text));
        }
        let days = INVITATION_LASTS_MAX.as_secs() / 86_400;
        if lasts.is_zero() || lasts > INVITATION_LASTS_MAX {
            let asked = lasts.as_secs() / 86_400;
            return Err(Error::invalid(format!("an invitation for {asked} days: it takes 1 to {days} days")));
        }
        let (code, now) = (Secret::draw(), Timestamp::now().0);
        let ends_ms = now + u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        let listed = ListedInvitation { place: hash(code.reveal()), created_ms: now, ends_ms };
        LIST.change(registration, |list: &mut Vec<ListedInvitation>| {
            list.retain(|other| other.ends_ms > now);
            if !list.contains(&listed) {
                list.push(listed.clone());
            }
            if list.len() > INVITATIONS_MAX {
                let text = format!(
                    "there are {INVITATIONS_MAX} invitations, which is the limit; revoke one of them"
                );
                return Err(Error::new(ErrorCode::LimitReached, text));
            }
            Ok(())
        })
        .await?;
        let invitation = StoredInvitation { uses_left: uses, ends_ms };
        tickets::put(registration, INVITATION, &listed.place, &invitation, lasts).await?;
        Ok(code.reveal().to_owned())
    })
}

/// All invitations that last, the newest last.
pub fn invitations(registration: &Registration) -> CallFuture<'_, Vec<InvitationSummary>> {
    Box::pin(async move {
        let mut summaries = Vec::new();
        for listed in LIST.read::<ListedInvitation>(registration).await? {
            let stored = stored(registration, &listed.place).await?;
            summaries.extend(stored.map(|stored| InvitationSummary {
                id: listed.id().to_owned(),
                created_ms: listed.created_ms,
                ends_ms: listed.ends_ms,
                uses_left: stored.uses_left,
            }));
        }
        Ok(summaries)
    })
}

/// Ends an invitation, by its id or its code.
///
/// # Errors
///
/// [`NotFound`](ErrorKind::NotFound): there is none.
pub fn revoke_invitation<'a>(registration: &'a Registration, named: &'a str) -> CallFuture<'a, ()> {
    Box::pin(async move {
        let by_code = hash(named);
        let listed = LIST.read::<ListedInvitation>(registration).await?;
        let Some(listed) = listed.into_iter().find(|one| one.id() == named || one.place == by_code) else {
            return Err(Error::new(ErrorKind::NotFound, "there is no such invitation"));
        };
        // First the invitation: one that is listed and has ended is harmless, one that nobody lists isn't.
        registration.drop_ticket(INVITATION, listed.place.as_bytes()).await?;
        LIST.change(registration, |list: &mut Vec<ListedInvitation>| {
            list.retain(|other| other.place != listed.place);
            Ok(())
        })
        .await
    })
}

/// Whether somebody may come with that code, as of now.
pub(crate) async fn is_open(registration: &Registration, code: &str) -> Result<bool> {
    Ok(stored(registration, &hash(code)).await?.is_some_and(|invitation| invitation.uses_left > 0))
}

/// Uses a code up by one; false: nobody comes with it any more.
pub(crate) async fn use_up(registration: &Registration, code: &str) -> Result<bool> {
    change(registration, code, |uses| uses.checked_sub(1)).await
}

/// Gives a use back: whoever had it did not come.
pub(crate) async fn give_back(registration: &Registration, code: &str) -> Result<()> {
    change(registration, code, |uses| uses.checked_add(1)).await.map(|_| ())
}

async fn stored(registration: &Registration, place: &str) -> Result<Option<StoredInvitation>> {
    let stored: Option<StoredInvitation> = tickets::get(registration, INVITATION, place).await?;
    Ok(stored.filter(|invitation| invitation.ends_ms > Timestamp::now().0))
}

/// Changes how many may still come; false: it has ended, or `change` says no.
async fn change(
    registration: &Registration,
    code: &str,
    change: impl Fn(u32) -> Option<u32> + Send,
) -> Result<bool> {
    let place = hash(code);
    for _ in 0..TRIES_MAX {
        let Some(seen) = stored(registration, &place).await? else { return Ok(false) };
        let Some(uses_left) = change(seen.uses_left) else { return Ok(false) };
        let new = StoredInvitation { uses_left, ..seen };
        let left = Duration::from_millis(seen.ends_ms.saturating_sub(Timestamp::now().0).max(1));
        if tickets::replace(registration, INVITATION, &place, (&seen, &new), left).await? {
            return Ok(true);
        }
    }
    Err(Error::new(ErrorKind::Overloaded, "too many come with one invitation at once; try again"))
}

#[cfg(test)]
mod tests {
    use tideline::registration::TICKET_BYTES_MAX;

    use super::*;

    #[test]
    fn the_longest_list_fits_a_ticket() {
        let ms = 9_999_999_999_999;
        let listed = ListedInvitation { place: hash("x"), created_ms: ms, ends_ms: ms };
        assert_eq!(listed.id().len(), ID_LEN);
        let json = serde_json::to_vec(&vec![listed; INVITATIONS_MAX]).unwrap();
        assert!(json.len() <= TICKET_BYTES_MAX, "{}", json.len());
    }
}
