//! Registration: claims, credentials, profiles.

use super::{fcall, fcall_ro, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::ids::{AccountId, Claim};
use crate::nonce::Nonce;

/// A field and its value.
#[cfg(feature = "registration")]
pub(crate) type FieldValue = (&'static str, Vec<u8>);

/// The value of a claim's key: whose the claim is, and the attempt that took it.
pub(crate) fn claim_value(account: AccountId, attempt: &Nonce) -> Vec<u8> {
    [account.to_bytes(), *attempt].concat()
}

/// Reads whose claim that is; `None`: nobody's.
pub(crate) fn parse_claim(reply: &Reply) -> Result<Option<(AccountId, Vec<u8>)>> {
    if reply.is_nil() {
        return Ok(None);
    }
    let value = reply.bytes()?;
    let account = AccountId::from_bytes(value.get(..8).unwrap_or(value))?;
    Ok(Some((account, value.to_vec())))
}

/// A new account, unconfirmed. `keys`: record, credentials, profile.
#[cfg(feature = "registration")]
pub(crate) fn signup_begin(
    keys: &[Vec<u8>; 3],
    attempt: &Nonce,
    now_ms: u64,
    claims: &[Claim],
    profile: &[u8],
    record: &[FieldValue],
    credentials: &[FieldValue],
) -> Command {
    let command = fcall("signup_begin", keys).arg(attempt).arg(now_ms);
    let command = command.arg(&Claim::stored(claims)).arg(profile);
    with_both(command, record, credentials)
}

/// The outcome of a sign-up's first step.
#[cfg(feature = "registration")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SignUpAnswer {
    Done,
    /// There is an account with that id, in this state.
    There(u8),
}

#[cfg(feature = "registration")]
impl SignUpAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        match reply.as_slice() {
            [word] if word.bytes()? == b"ok" => Ok(Self::Done),
            [word, state] if word.bytes()? == b"there" => {
                Ok(Self::There(state.bytes()?.first().copied().unwrap_or_default()))
            }
            _ => Err(unexpected("signup_begin", &reply)),
        }
    }
}

/// An account is to have other claims. `keys`: record, credentials; `seen`: the last attempt. Answers as
/// [`CompareAnswer`](super::CompareAnswer), where a full journal stands for another attempt that is under way.
#[cfg(feature = "registration")]
pub(crate) fn claims_begin(
    keys: &[Vec<u8>; 2],
    attempt: &Nonce,
    (now_ms, patience_ms): (u64, u64),
    seen: &[u8],
    claims: &[Claim],
) -> Command {
    let command = fcall("claims_begin", keys).arg(attempt).arg(now_ms).arg(patience_ms);
    command.arg(seen).arg(&Claim::stored(claims))
}

/// All claims are taken. `keys`: record, credentials. Answers as [`CompareAnswer`](super::CompareAnswer).
#[cfg(feature = "registration")]
pub(crate) fn claims_settle(
    keys: &[Vec<u8>; 2],
    attempt: &Nonce,
    graph: &Nonce,
    record: &[FieldValue],
    credentials: &[FieldValue],
) -> Command {
    with_both(fcall("claims_settle", keys).arg(attempt).arg(graph), record, credentials)
}

/// Changes what is secret of an account. `keys`: record, credentials.
/// Answers as [`CompareAnswer`](super::CompareAnswer).
#[cfg(feature = "registration")]
pub(crate) fn credentials_set(
    keys: &[Vec<u8>; 2],
    seen: &[u8],
    attempt: &Nonce,
    fields: &[FieldValue],
) -> Command {
    let command = fcall("credentials_set", keys).arg(seen).arg(attempt);
    fields.iter().fold(command, |command, (field, value)| command.arg(*field).arg(value))
}

/// Writes a profile. `keys`: record, profile; `seen`: its first bytes.
/// Answers as [`CompareAnswer`](super::CompareAnswer).
#[cfg(feature = "registration")]
pub(crate) fn profile_set(keys: &[Vec<u8>; 2], seen: &[u8], profile: &[u8]) -> Command {
    fcall("profile_set", keys).arg(seen).arg(profile)
}

#[cfg(feature = "registration")]
fn with_both(command: Command, record: &[FieldValue], credentials: &[FieldValue]) -> Command {
    let all = record.iter().chain(credentials);
    all.fold(command.arg(record.len()), |command, (field, value)| command.arg(*field).arg(value))
}

/// Ends an attempt that is so old. `keys`: record, credentials, profile. Answers 1, or 0: it is over, or not that old.
pub(crate) fn claims_void(keys: &[Vec<u8>; 3], attempt: &[u8], now_ms: u64, patience_ms: u64) -> Command {
    fcall("claims_void", keys).arg(attempt).arg(now_ms).arg(patience_ms)
}

/// Whether an account has a claim. `keys`: record, credentials.
pub(crate) fn claim_holder(keys: &[Vec<u8>; 2], claim: &Claim, now_ms: u64) -> Command {
    fcall_ro("claim_holder", keys).arg(claim.as_bytes()).arg(now_ms)
}

/// A holder of a claim, and how it holds it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// It has it.
    Held,
    /// It is to have it, by an attempt that has been under way for so many ms.
    Wanted { attempt: Vec<u8>, age_ms: u64 },
    /// Nothing.
    Free,
}

impl Holder {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        match reply.as_slice() {
            [word] if word.bytes()? == b"held" => Ok(Self::Held),
            [word] if word.bytes()? == b"free" => Ok(Self::Free),
            [word, attempt, age] if word.bytes()? == b"wanted" => {
                Ok(Self::Wanted { attempt: attempt.bytes()?.to_vec(), age_ms: age.count()? })
            }
            _ => Err(unexpected("claim_holder", &reply)),
        }
    }
}

/// Takes a claim, if it is what was `seen`.
pub(crate) fn claim_take(claim: Vec<u8>, seen: &[u8], value: &[u8]) -> Command {
    fcall("claim_take", &[claim]).arg(seen).arg(value)
}

/// The value that stands there instead; `None`: the claim was taken.
pub(crate) fn parse_taken(reply: Reply) -> Result<Option<Vec<u8>>> {
    let reply = reply.into_array()?;
    match reply.as_slice() {
        [word] if word.bytes()? == b"ok" => Ok(None),
        [word, now] if word.bytes()? == b"taken" => Ok(Some(now.bytes()?.to_vec())),
        _ => Err(unexpected("claim_take", &reply)),
    }
}
