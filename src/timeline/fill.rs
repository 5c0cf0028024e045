//! Filling a home that is not there: a reader comes back, or its home was dropped because that was simpler.
//!
//! The home is created first, under a nonce that claims nothing; then everything is pulled, uncached; then the list is
//! written anew with what arrived meanwhile. Who comes later joins; whoever finishes first, finishes.

use std::sync::Arc;

use super::Timelines;
use super::flights::{Flights, Turn};
use super::merge::Entry;
use super::outbox::{self, Part};
use crate::cluster::{Request, Touched};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, Begun};
use crate::ids::AccountId;
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::reader::{Current, current};
use crate::stored::record_of;
use crate::tenant::{Tenant, changed_always, no_account};

/// Posts pulled of each outbox at first.
const DEPTH_FIRST: usize = 8;
/// Rounds in which outboxes are read deeper, each time twice as deep.
const ROUNDS_MAX: usize = 6;
/// Tries to begin a fill whose reply is lost again and again.
const TRIES_MAX: usize = 8;
/// Outboxes read in one batch.
const OUTBOXES_AT_ONCE: usize = 2_000;

/// A nonce of a fill: the top bit says so, and all ones would say "whole".
fn draw_nonce() -> Nonce {
    let mut nonce = draw();
    nonce[0] = 0x80 | (nonce[0] & 0x7e);
    nonce
}

/// Fills that this instance runs, so that each home is filled once, however often it is read meanwhile.
pub(crate) type Fills = Flights<()>;

/// Fills the home of an account, if it has none. Tells whether it did; if this instance is at it already, it waits for
/// that.
pub(crate) async fn fill(timelines: &Arc<Timelines>, reader: AccountId) -> Result<bool> {
    let _filling = match timelines.fills.join(reader) {
        Turn::Ours(filling) => filling,
        Turn::Theirs(filling) => {
            filling.landed().await;
            return Ok(false);
        }
    };
    let Some(nonce) = begin(timelines, reader).await? else { return Ok(false) };
    meters::fill("begun");
    // H8: from here on whatever is published arrives in the home; what was published before is pulled.
    let wanted = timelines.decided().home_posts as usize;
    let (floor, posts) = newest(pull_fenced(timelines, reader, wanted).await?, wanted);

    let records = posts.iter().map(|entry| record_of(entry.id, entry.author));
    let command =
        functions::home_finish(timelines.keys().home(reader), &nonce, floor, timelines.fit(), records);
    let finished =
        timelines.router().call(Request::write(timelines.slot(reader), command)).await?.count()? == 1;
    meters::fill(if finished { "finished" } else { "superseded" });
    Ok(finished)
}

/// Creates the home, or joins who is filling it; `None`: it is there.
async fn begin(tenant: &Tenant, reader: AccountId) -> Result<Option<Nonce>> {
    let keys = tenant.keys();
    let mut lost = None;
    for _ in 0..TRIES_MAX {
        let command = functions::home_begin(
            keys.account(reader),
            keys.home(reader),
            keys.days(tenant.bucket(reader)),
            &draw_nonce(),
            &reader.to_bytes(),
            tenant.today(),
        );
        match tenant.once(tenant.slot(reader), command).await {
            Err(e) if e.kind() == ErrorKind::Unknown => lost = Some(e),
            Err(e) => return Err(e),
            Ok(answer) => {
                return match Begun::parse(answer.ok()?)? {
                    Begun::Fill(nonce) => Ok(Some(nonce)),
                    Begun::Whole => Ok(None),
                    Begun::NoAccount => Err(no_account(reader)),
                };
            }
        }
    }
    Err(lost.unwrap_or_else(|| Error::internal("a fill was never begun")))
}

/// Pulls from servers that still are who they were when they answered, and have their replicas.
///
/// H72: "nothing else is above the floor" is what a home claims by their word alone. One that was deposed and cut off
/// answers, too; also when it is asked whom the reader follows. A server that is another one by now is asked anew.
async fn pull_fenced(timelines: &Timelines, reader: AccountId, wanted: usize) -> Result<Vec<Pulled>> {
    let (mut tries, mut changes) = (timelines.router().fence_tries(), 0);
    loop {
        let Current { stamps, state } = current(&timelines.readers, reader).await?;
        let mut touched = Touched::new();
        touched.add_epoch(&stamps.epoch);
        let followed = state.following.iter().filter_map(|id| AccountId::new(*id).ok());
        let authors: Vec<AccountId> = followed.chain([reader]).collect();
        let pulled = pull(timelines, &authors, wanted, &mut touched).await?;
        match timelines.router().fence(&touched).await {
            Ok(_) if state.is_of(&stamps) => return Ok(pulled),
            // It has changed meanwhile, or somebody else told it than who told the stamps.
            Ok(_) if changes < TRIES_MAX => changes += 1,
            Ok(_) => return Err(changed_always(reader)),
            Err(e) if e.kind() == ErrorKind::Conflict => tries.after(e).await?,
            Err(e) => return Err(e),
        }
    }
}

/// One outbox, as far as it was read.
struct Pulled {
    author: AccountId,
    depth: usize,
    part: Part,
}

/// Reads outboxes, those that are cut highest deeper, until enough posts lie above all cuts.
async fn pull(
    tenant: &Tenant,
    authors: &[AccountId],
    wanted: usize,
    touched: &mut Touched,
) -> Result<Vec<Pulled>> {
    let mut pulled: Vec<Pulled> = authors
        .iter()
        .map(|author| {
            let nothing = Part { ids: Vec::new(), bound: u64::MAX };
            Pulled { author: *author, depth: DEPTH_FIRST / 2, part: nothing }
        })
        .collect();
    for _ in 0..ROUNDS_MAX {
        let least = place_of(&pulled, wanted);
        let deepen: Vec<usize> = (0..pulled.len()).filter(|i| pulled[*i].part.bound > least.max(1)).collect();
        if deepen.is_empty() {
            break;
        }
        for chunk in deepen.chunks(OUTBOXES_AT_ONCE) {
            let request = |i: &usize| {
                let Pulled { author, depth, .. } = &pulled[*i];
                outbox::end_request(tenant, *author, depth * 2)
            };
            let answers = tenant.run_all(chunk.iter().map(request).collect()).await?;
            for (i, answer) in chunk.iter().zip(answers) {
                touched.add(&answer);
                let pulled = &mut pulled[*i];
                pulled.depth *= 2;
                pulled.part = outbox::read_end(answer.ok()?, pulled.depth)?;
            }
        }
    }
    Ok(pulled)
}

/// The id of the `nth` newest post that is known; 0 if there are fewer.
fn place_of(pulled: &[Pulled], nth: usize) -> u64 {
    let mut ids: Vec<u64> = pulled.iter().flat_map(|p| p.part.ids.iter().copied()).collect();
    if ids.len() < nth {
        return 0;
    }
    *ids.select_nth_unstable_by(nth - 1, |a, b| b.cmp(a)).1
}

/// The floor down to which everything was pulled (exclusive), and the posts above it, ascending, `most` of them.
fn newest(pulled: Vec<Pulled>, most: usize) -> (u64, Vec<Entry>) {
    // H7: an outbox whose bound is b is complete from b on; all of them together, above the highest b - 1.
    let mut floor = pulled.iter().map(|p| p.part.bound.saturating_sub(1)).max().unwrap_or(0);

    let entry = |p: &Pulled| {
        let author = p.author.get();
        p.part.ids.iter().map(move |id| Entry { id: *id, author }).collect::<Vec<_>>()
    };
    let mut posts: Vec<Entry> = pulled.iter().flat_map(entry).filter(|e| e.id > floor).collect();
    posts.sort_unstable();
    if let Some(cut) = posts.len().checked_sub(most + 1) {
        // Everything up to the newest one that is left out goes, also others with its id.
        floor = posts[cut].id;
        posts.retain(|entry| entry.id > floor);
    }
    (floor, posts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn everything_above_the_floor_is_among_the_posts(
            outboxes in
                proptest::collection::vec((proptest::collection::btree_set(1u64..500, 0..40), 0usize..40), 1..8),
            most in 1usize..50
        ) {
            let mut all = Vec::new();
            let mut pulled = Vec::new();
            for (number, (ids, read)) in (1..).zip(&outboxes) {
                let author = AccountId::new(number).unwrap();
                all.extend(ids.iter().map(|id| Entry { id: *id, author: number }));
                let ids: Vec<u64> = ids.iter().copied().skip(ids.len().saturating_sub(*read)).collect();
                let is_all = ids.len() == outboxes[usize::try_from(number).unwrap() - 1].0.len();
                let bound = if is_all { 0 } else { ids.first().copied().unwrap_or(u64::MAX) };
                pulled.push(Pulled { author, depth: 0, part: Part { ids, bound } });
            }
            let (floor, posts) = newest(pulled, most);
            let mut wanted: Vec<Entry> = all.into_iter().filter(|e| e.id > floor).collect();
            wanted.sort_unstable();
            prop_assert_eq!(posts, wanted);
        }
    }

    #[test]
    fn nonces_claim_nothing() {
        for _ in 0..1_000 {
            let nonce = draw_nonce();
            assert!(nonce[0] & 0x80 != 0 && nonce != [0xff; 8]);
        }
    }
}
