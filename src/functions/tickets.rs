//! Tickets: small values under hashes of secrets.

use std::time::Duration;

use super::fcall;
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};
use crate::nonce::Nonce;

/// A ticket as it is stored: random bytes that change with each write, and a value; or what is left of one that was
/// taken or dropped.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoredTicket {
    There {
        nonce: Nonce,
        value: Vec<u8>,
    },
    /// `by`: who has dropped it, if it wasn't taken.
    Spent {
        nonce: Nonce,
        by: Option<Nonce>,
    },
}

impl StoredTicket {
    /// Reads one; `None`: there was none for some time.
    pub(crate) fn parse(stored: &Reply) -> Result<Option<Self>> {
        if stored.is_nil() {
            return Ok(None);
        }
        let bytes = stored.bytes()?;
        // What it holds is nobody's to see in an error.
        let wrong = || Error::internal(format!("a ticket of {} bytes makes no sense", bytes.len()));
        let (sign, rest) = bytes.split_first().ok_or_else(wrong)?;
        let (nonce, rest) = rest.split_first_chunk().ok_or_else(wrong)?;
        match (sign, rest) {
            (b'+', value) => Ok(Some(Self::There { nonce: *nonce, value: value.to_vec() })),
            (b'-', by) => Ok(Some(Self::Spent { nonce: *nonce, by: by.try_into().ok() })),
            _ => Err(wrong()),
        }
    }
}

/// A new ticket. Answers 1, also to a copy of itself; 0: there is another one.
pub(crate) fn ticket_put(ticket: Vec<u8>, nonce: &Nonce, value: &[u8], lasts: Duration) -> Command {
    fcall("ticket_put", &[ticket]).arg(&[nonce, value].concat()).arg(ms(lasts))
}

/// Another value, and another end, if its random bytes are those that were `seen`. Answers 1, also to a copy of itself;
/// 0: they are others, or it is gone.
pub(crate) fn ticket_replace(
    ticket: Vec<u8>,
    seen: &Nonce,
    (nonce, value): (&Nonce, &[u8]),
    lasts: Duration,
) -> Command {
    fcall("ticket_replace", &[ticket]).arg(seen).arg(&[nonce, value].concat()).arg(ms(lasts))
}

/// Gives a ticket once.
pub(crate) fn ticket_take(ticket: Vec<u8>, remembered: Duration) -> Command {
    fcall("ticket_take", &[ticket]).arg(ms(remembered))
}

/// Removes a ticket, if its random bytes are those that were `seen`. `by`: the caller's. Answers 1, also to a copy of
/// itself; 0: they are others, or it is gone.
pub(crate) fn ticket_drop(ticket: Vec<u8>, seen: &Nonce, by: &Nonce, remembered: Duration) -> Command {
    fcall("ticket_drop", &[ticket]).arg(seen).arg(by).arg(ms(remembered))
}

/// The ticket that [`ticket_take`] gave.
pub(crate) fn parse_taken_ticket(reply: &Reply) -> Result<Option<Vec<u8>>> {
    if reply.is_nil() { Ok(None) } else { Ok(Some(reply.bytes()?.to_vec())) }
}

/// Whether a change was made.
pub(crate) fn parse_ticket_change(reply: &Reply) -> Result<bool> {
    Ok(reply.int()? == 1)
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
