//! Tickets: small values that whoever has a secret finds, each with an end. What is secret is never stored: a ticket
//! lies under the hash of its secret, in the bucket of that hash.

use std::time::Duration;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};

use super::Registration;
use crate::change::Tries;
use crate::cluster::{Command, Epoch, Request};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::functions::{
    StoredTicket, parse_taken_ticket, parse_ticket_change, ticket_drop, ticket_put, ticket_replace,
    ticket_take,
};
use crate::ids::TicketHash;
use crate::nonce::{Nonce, draw};
use crate::settings::{Acknowledge, Receipt};
use crate::tenant::not_known_to_last;

/// Bytes of a ticket's value.
pub const TICKET_BYTES_MAX: usize = 4 * 1_024;
/// Bytes of a secret.
pub const TICKET_SECRET_BYTES_MAX: usize = 1_024;
/// The longest that a ticket lasts, unless it is renewed: a thousand days.
pub const TICKET_LASTS_MAX: Duration = Duration::from_secs(1_000 * 86_400);

/// The time for which it is remembered that a ticket was taken or dropped. A copy of the call that put it is on its way
/// no longer.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Stands before all that is hashed, so that no ticket has the hash of anything else.
const DOMAIN: &[u8] = b"tideline ticket:";

/// A kind of tickets: secrets of two kinds that are the same find two tickets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TicketKind(u8);

impl TicketKind {
    /// The kind that a letter from `a` to `z`, or from `A` to `Z`, stands for; `None`: it is none.
    ///
    /// ```
    /// use tideline::registration::TicketKind;
    ///
    /// const CODE: TicketKind = TicketKind::new('c').unwrap();
    /// assert_eq!(TicketKind::new('1'), None);
    /// # let _ = CODE;
    /// ```
    pub const fn new(letter: char) -> Option<Self> {
        if letter.is_ascii_alphabetic() { Some(Self(letter as u8)) } else { None }
    }

    fn hash(self, secret: &[u8]) -> Result<TicketHash> {
        if secret.is_empty() || secret.len() > TICKET_SECRET_BYTES_MAX {
            let bytes = secret.len();
            return Err(Error::out_of_range(format!(
                "a ticket's secret: {bytes} bytes; 1 to {TICKET_SECRET_BYTES_MAX} are allowed"
            )));
        }
        let mut hash = Blake2b::<U16>::new();
        hash.update(DOMAIN);
        hash.update([self.0]);
        hash.update(secret);
        Ok(TicketHash::new(self.0, hash.finalize().into()))
    }
}

/// The place of a ticket.
struct TicketPlace {
    key: Vec<u8>,
    slot: u16,
    tries: Tries,
}

impl Registration {
    /// Puts a ticket: a value that is found by whoever has the secret, as long as it `lasts`. `false`: there is one of
    /// that kind and secret already, and nothing has changed.
    ///
    /// The secret should be hard to guess, as 32 random bytes are: it is hashed without salt. Bounds:
    /// [`TICKET_BYTES_MAX`], [`TICKET_SECRET_BYTES_MAX`], [`TICKET_LASTS_MAX`].
    /// [`ErrorKind::Unknown`]: it may be there; a second call may answer `false` for what the first one put.
    pub fn put_ticket<'a>(
        &'a self,
        kind: TicketKind,
        secret: &'a [u8],
        value: &'a [u8],
        lasts: Duration,
    ) -> CallFuture<'a, Receipt<bool>> {
        Box::pin(async move {
            check(value, lasts)?;
            let mut at = self.place(kind, secret)?;
            // The same bytes in each try: one whose answer was lost knows what it has put.
            let nonce = draw();
            let mut fences = self.tenant().router().fence_tries();
            loop {
                let once = self.change(&mut at, |key| ticket_put(key, &nonce, value, lasts)).await;
                let Some((is_put, epoch)) = at.tries.ended(once)? else { continue };
                if !is_put && at.tries.may_be_made() {
                    at.tries.ended::<()>(Err(not_ours()))?;
                }
                match self.tenant().fenced(self.tenant().settings.acknowledge, &epoch).await {
                    Ok(reached) => return Ok(Receipt { value: is_put, reached }),
                    // A failover may have lost it: put again, or found.
                    Err(e) => fences.after(e).await.map_err(|e| not_known_to_last(&e))?,
                }
            }
        })
    }

    /// Reads a ticket's value; `None`: there is none, or its time is over.
    pub fn ticket<'a>(&'a self, kind: TicketKind, secret: &'a [u8]) -> CallFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let at = self.place(kind, secret)?;
            match self.stored_ticket(&at).await?.0 {
                Some(StoredTicket::There { value, .. }) => Ok(Some(value)),
                _ => Ok(None),
            }
        })
    }

    /// Takes a ticket: gives its value once that it is taken is on replicas, whatever `acknowledge` says; nobody ever
    /// gets it again. Of several who take it at once one does. `None`: there is none.
    ///
    /// [`ErrorKind::Unknown`]: it may be taken, and then nobody has got it.
    pub fn take_ticket<'a>(&'a self, kind: TicketKind, secret: &'a [u8]) -> CallFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let at = self.place(kind, secret)?;
            // Sent once: what a lost answer has said is nobody's any more.
            let answer = self.tenant().once(at.slot, ticket_take(at.key, REMEMBERED)).await?;
            let epoch = answer.epoch.clone();
            let taken = parse_taken_ticket(&answer.ok()?)?;
            if taken.is_some() {
                // Whatever the settings ask for, and before anybody gets it: a failover would have it there once more.
                self.tenant().acknowledge(Acknowledge::Replicated, &epoch).await?;
            }
            Ok(taken)
        })
    }

    /// Removes a ticket; `false`: there is none.
    ///
    /// [`ErrorKind::Unknown`]: it may be removed; once more does no harm.
    pub fn drop_ticket<'a>(&'a self, kind: TicketKind, secret: &'a [u8]) -> CallFuture<'a, Receipt<bool>> {
        Box::pin(async move {
            let (mut at, by) = (self.place(kind, secret)?, draw());
            loop {
                let once = self.try_drop(&mut at, by).await;
                if let Some((is_dropped, epoch)) = at.tries.ended(once)? {
                    return Ok(self.acknowledged(epoch).await?.with(is_dropped));
                }
            }
        })
    }

    /// Gives a ticket another value, and the time that it `lasts` from now on, if its value still is what was `seen`;
    /// both may be the same, which renews it. `false`: it isn't, or there is no such ticket, and nothing has changed.
    ///
    /// [`ErrorKind::Unknown`]: it may be made.
    pub fn replace_ticket<'a>(
        &'a self,
        kind: TicketKind,
        secret: &'a [u8],
        seen: &'a [u8],
        new: &'a [u8],
        lasts: Duration,
    ) -> CallFuture<'a, Receipt<bool>> {
        Box::pin(async move {
            check(new, lasts)?;
            let (mut at, nonce) = (self.place(kind, secret)?, draw());
            loop {
                let once = async {
                    let (stored, epoch) = self.stored_ticket(&at).await?;
                    let before = match stored {
                        // One of our own tries, whose answer was lost.
                        Some(StoredTicket::There { nonce: is, .. }) if is == nonce => {
                            return Ok(Some((true, epoch)));
                        }
                        Some(StoredTicket::There { nonce, value }) if value == seen => nonce,
                        _ if at.tries.may_be_made() => return Err(not_ours()),
                        _ => return Ok(Some((false, epoch))),
                    };
                    let command = |key| ticket_replace(key, &before, (&nonce, new), lasts);
                    // Another one by now: looked at again.
                    Ok(self.change(&mut at, command).await?.filter(|(is_made, _)| *is_made))
                };
                let once = once.await;
                if let Some((is_made, epoch)) = at.tries.ended(once)? {
                    return Ok(self.acknowledged(epoch).await?.with(is_made));
                }
            }
        })
    }

    /// One try to remove a ticket, by whoever drew `by`. `None`: look again.
    async fn try_drop(&self, at: &mut TicketPlace, by: Nonce) -> Result<Option<(bool, Epoch)>> {
        let (stored, epoch) = self.stored_ticket(at).await?;
        let seen = match stored {
            Some(StoredTicket::There { nonce, .. }) => nonce,
            Some(StoredTicket::Spent { by: Some(who), .. }) if who == by => return Ok(Some((true, epoch))),
            _ if at.tries.may_be_made() => return Err(not_ours()),
            _ => return Ok(Some((false, epoch))),
        };
        let dropped = self.change(at, |key| ticket_drop(key, &seen, &by, REMEMBERED)).await?;
        Ok(dropped.filter(|(is_dropped, _)| *is_dropped))
    }

    fn place(&self, kind: TicketKind, secret: &[u8]) -> Result<TicketPlace> {
        let (keys, ticket) = (self.tenant().keys(), kind.hash(secret)?);
        let bucket = keys.bucket_of_ticket(&ticket);
        let (key, slot) = (keys.ticket(&ticket), keys.buckets().slot(bucket));
        Ok(TicketPlace { key, slot, tries: Tries::of_ticket(bucket) })
    }

    async fn stored_ticket(&self, at: &TicketPlace) -> Result<(Option<StoredTicket>, Epoch)> {
        let get = Request::read(at.slot, Command::new("GET").arg(&at.key));
        let answer = self.tenant().router().ask(get).await?;
        let epoch = answer.epoch.clone();
        Ok((StoredTicket::parse(&answer.ok()?)?, epoch))
    }

    /// One try of a change. `None`: nobody knows whether it was made.
    async fn change(
        &self,
        at: &mut TicketPlace,
        command: impl FnOnce(Vec<u8>) -> Command,
    ) -> Result<Option<(bool, Epoch)>> {
        let Some(answer) = at.tries.send(self.tenant(), at.slot, command(at.key.clone())).await? else {
            return Ok(None);
        };
        let epoch = answer.epoch.clone();
        Ok(Some((parse_ticket_change(&answer.ok()?)?, epoch)))
    }
}

/// Refuses what is too long, or lasts too long, as `Invalid`.
fn check(value: &[u8], lasts: Duration) -> Result<()> {
    if value.len() > TICKET_BYTES_MAX {
        let bytes = value.len();
        return Err(Error::out_of_range(format!(
            "a ticket: {bytes} bytes; at most {TICKET_BYTES_MAX} are allowed"
        )));
    }
    if lasts.is_zero() || lasts > TICKET_LASTS_MAX {
        return Err(Error::out_of_range(format!(
            "a ticket lasts {lasts:?}; more than nothing, and at most {TICKET_LASTS_MAX:?} are allowed"
        )));
    }
    Ok(())
}

/// The error that is told only if no answer was lost, so never ([`Tries`]).
fn not_ours() -> Error {
    Error::new(
        ErrorKind::Unknown,
        "a change of a ticket may have been made, and somebody has changed it since",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: TicketKind = TicketKind::new('t').unwrap();

    #[test]
    fn a_ticket_lies_under_another_hash_for_each_kind_and_secret() {
        let code = TicketKind::new('c').unwrap();
        let of = |kind: TicketKind, secret: &[u8]| kind.hash(secret).unwrap();
        assert_eq!(of(TOKEN, b"secret"), of(TOKEN, b"secret"));
        assert_ne!(of(TOKEN, b"secret"), of(TOKEN, b"secret "));
        assert_ne!(of(TOKEN, b"secret").as_bytes()[1..], of(code, b"secret").as_bytes()[1..]);
        // Never to change: tickets are found by it.
        let stored = of(TOKEN, b"secret").as_bytes().escape_ascii().to_string();
        assert_eq!(stored, r"tj\x04\xad|(\xa2\xda_\x8c\xe2F\x01\xd8\x9a>\xa1");
        // No name's claim.
        let mut claim = Blake2b::<U16>::new();
        claim.update(b"tsecret");
        assert_ne!(of(TOKEN, b"secret").as_bytes()[1..], claim.finalize()[..]);
    }

    #[test]
    fn what_has_no_bound_is_refused_and_errors_say_no_secret() {
        let long = [b"s3cret".as_slice(), &[b'x'; TICKET_SECRET_BYTES_MAX]].concat();
        for secret in [b"".as_slice(), &long] {
            let refused = TOKEN.hash(secret).unwrap_err();
            assert!(
                refused.kind() == ErrorKind::Invalid && !refused.to_string().contains("s3cret"),
                "{refused}"
            );
        }
        let day = Duration::from_secs(86_400);
        check(&[0; TICKET_BYTES_MAX], TICKET_LASTS_MAX).unwrap();
        check(&[0; TICKET_BYTES_MAX + 1], day).unwrap_err();
        for lasts in [Duration::ZERO, TICKET_LASTS_MAX + day] {
            check(b"", lasts).unwrap_err();
        }
    }

    #[test]
    fn kinds_are_letters() {
        for letter in ['0', ' ', '\u{e9}', '+', '['] {
            assert_eq!(TicketKind::new(letter), None);
        }
        assert_eq!(TicketKind::new('Z').map(|kind| kind.0), Some(b'Z'));
    }
}
