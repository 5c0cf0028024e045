//! Reads what stands in an account's record, and under its profile's key.

use crate::account::{Account, AccountKind, AccountState, Mode};
use crate::cluster::Reply;
use crate::error::{Error, Result};
use crate::fields::RecordField;
use crate::ids::AccountId;
use crate::profile::Profile;

impl Account {
    /// The fields of a record, in the order in which [`parse`](Self::parse) takes them.
    pub(crate) const FIELDS: [&str; 13] = [
        RecordField::STATE,
        RecordField::KIND,
        RecordField::IS_LOCKED,
        RecordField::MODE,
        RecordField::PUSHED_SINCE,
        RecordField::POSTS,
        RecordField::FOLLOWING,
        RecordField::BLOCKS,
        RecordField::HIDES,
        RecordField::FOLLOWERS,
        RecordField::UNCOUNTED_SINCE,
        RecordField::LOGIN,
        RecordField::REGISTERED_AT,
    ];

    /// Reads what HMGET of the fields answered; `None`: there is no such account.
    pub(crate) fn parse(id: AccountId, reply: Reply) -> Result<Option<Self>> {
        let fields = reply.into_array()?;
        let [
            state,
            kind,
            lock,
            mode,
            pushed,
            posts,
            following,
            blocks,
            hides,
            followers,
            uncounted,
            login,
            at,
        ] = fields.as_slice()
        else {
            return Err(Error::internal(format!("the record of account {id} has other fields: {fields:?}")));
        };
        if state.is_nil() {
            return Ok(None);
        }
        let letter = |reply: &Reply| reply.bytes().ok().and_then(|b| b.first().copied()).unwrap_or_default();
        let number = |reply: &Reply| reply.int().ok().and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        let pushed_since = pushed.bytes().ok().and_then(|b| b.try_into().ok()).map_or(0, u64::from_be_bytes);
        Ok(Some(Self {
            id,
            kind: AccountKind::from_letter(letter(kind)),
            state: AccountState::from_letter(letter(state)),
            is_locked: letter(lock) == b'1',
            mode: Mode::from_letter(letter(mode)),
            pushed_since,
            posts: number(posts),
            following: number(following),
            followers: number(followers),
            uncounted_since: uncounted.text().ok().and_then(|told| told.split_once(' ')?.0.parse().ok()),
            login: login.text().ok().map(str::to_owned),
            registered_ms: at.count().ok(),
            profile: None,
            blocks: number(blocks),
            hides: number(hides),
        }))
    }

    /// Adds what everybody may see of the account's profile, as that was answered. One that can't be read says nothing:
    /// no page fails for that.
    pub(crate) fn with_profile(self, reply: &Reply) -> Self {
        let profile = profile_of(reply).map(|(_, profile)| profile.for_all()).unwrap_or_else(|e| {
            tracing::warn!("the profile of account {}: {e}", self.id);
            Profile::default()
        });
        Self { profile: Some(Box::new(profile)), ..self }
    }
}

/// The profile that stands under its key, and its random bytes; of an account that has never said anything, an empty
/// profile.
pub(crate) fn profile_of(reply: &Reply) -> Result<(Vec<u8>, Profile)> {
    if reply.is_nil() { Ok(Default::default()) } else { Profile::parse(reply.bytes()?) }
}
