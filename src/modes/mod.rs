//! Push or pull: how an account's posts reach its followers, and the hand-over between the two while everything goes on.
//!
//! A pull mark is always right, only slower: whoever has one pulls the author, whatever its mode. So *promotion* (to
//! pull) marks every follower first and stops delivering afterwards; *demotion* (to push) delivers first and takes the
//! marks away afterwards, as far as homes hold what they stood for.
//!
//! Invariants kept here: posts are delivered until every follower that still follows has a new mark, on replicas too; a
//! change of mode that was overtaken by another does nothing more.

mod decide;
mod hand_over;
mod policy;
mod traffic;

use std::sync::Arc;

use crate::account::Mode;
use crate::cluster::{Command, Epoch, Request, Touched};
use crate::context::{Context, changed_always, draw, no_account};
use crate::error::{ErrorKind, Result};
use crate::fanout::{self, Delivery, Ended, Entry, Reporter, Task};
use crate::functions::{self, Compared, Mark};
use crate::ids::AccountId;
use crate::{meters, rules};

pub(crate) use decide::{Judge, decide, judge_pulled, keep_judging};
pub use policy::{CostModel, Facts, Policy, PullOnly, PushOnly, Threshold, Way};
pub(crate) use traffic::Traffic;

/// Tries of one change between others of the same account.
const TRIES_MAX: usize = 16;

/// A mode as a record holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stored(Vec<u8>);

impl Stored {
    pub(crate) fn mode(&self) -> Mode {
        Mode::from_letter(self.0.first().copied().unwrap_or_default())
    }

    /// The random bytes of the change that made it.
    fn random(&self) -> Option<Mark> {
        self.0.get(1..)?.try_into().ok()
    }
}

/// How an account is delivered, and who told; `None`: there is no such account.
async fn stored(context: &Context, account: AccountId) -> Result<(Option<Stored>, Epoch)> {
    let command = Command::new("HMGET").arg(&context.keys().account(account)).arg("s").arg("m");
    let answer = context.router().ask(Request::read(context.slot(account), command)).await?;
    let epoch = answer.epoch.clone();
    let fields = answer.ok()?.into_array()?;
    let bytes = |n: usize| fields.get(n).and_then(|field| field.bytes().ok());
    let is_there = bytes(0).is_some_and(|state| state != b"d");
    Ok((is_there.then(|| Stored(bytes(1).unwrap_or_default().to_vec())), epoch))
}

/// Has an account pushed, or pulled. `None`: it is already, or is about to be.
pub(crate) async fn change(
    context: &Arc<Context>,
    account: AccountId,
    way: Way,
) -> Result<(Option<Delivery>, Epoch)> {
    let keys = [
        context.keys().account(account),
        context.keys().outbox(account),
        context.keys().journal(context.bucket(account)),
    ];
    for _ in 0..TRIES_MAX {
        let _place = fanout::reserve(context, 1)?;
        let (seen, epoch) = stored(context, account).await?;
        let seen = seen.ok_or_else(|| no_account(account))?;
        if way == Way::of(seen.mode()) {
            return Ok((None, epoch));
        }
        // Whoever promotes goes on delivering until everybody knows.
        let (mode, random) = (if way == Way::Pull { Mode::Promoting } else { Mode::Push }, draw());
        let entry =
            Entry::new(context.bucket(account), context.instance, Task::Mode { author: account, random });
        let most = context.settings.journal_max;
        let value = entry.stored();
        let command =
            functions::mode_set(&keys, &seen.0, &mode.stored(random), most, Some((&entry.id, &value)));
        let answer = match context.once(context.slot(account), command).await {
            Err(e) if e.kind() == ErrorKind::Unknown => continue,
            answer => answer?,
        };
        let epoch = answer.epoch.clone();
        match Compared::parse(answer.ok()?)? {
            Compared::Done => {
                meters::mode_change(way.label());
                return Ok((Some(fanout::accept(context, entry)), epoch));
            }
            Compared::Changed => {}
            Compared::NoAccount => return Err(no_account(account)),
            Compared::JournalFull => return Err(fanout::journal_full(context)),
        }
    }
    Err(changed_always(account))
}

/// Carries out the change of mode that wrote `random`, if it is the last one still.
pub(crate) async fn settle(
    context: &Arc<Context>,
    entry: &mut Entry,
    author: AccountId,
    random: Mark,
    reporter: &Reporter,
    touched: &mut Touched,
) -> Result<Ended> {
    let (stored, epoch) = stored(context, author).await?;
    touched.add_epoch(&epoch);
    let is_ours = |stored: &Stored| stored.random() == Some(random) || !rules::holds("own_change");
    let Some(stored) = stored.filter(is_ours) else {
        return Ok(Ended::Done);
    };
    reporter.restart();
    match stored.mode() {
        Mode::Promoting => hand_over::promote(context, entry, author, &stored, reporter, touched).await?,
        Mode::Push => hand_over::demote(context, entry, author, reporter, touched).await?,
        Mode::Pull => {}
    }
    Ok(Ended::Done)
}
