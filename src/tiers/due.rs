//! Work that is due, by the agendas of all buckets.

use std::collections::BTreeMap;

use super::begin::Tiers;
use super::mover::MoveRound;
use super::settle::DueNote;
use crate::bucket::Bucket;
use crate::cluster::{Command, Reply, Request};
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, PostRef};
use crate::stored::AgendaEntry;

/// Entries of one bucket's agenda at once.
pub(super) const OF_A_BUCKET: usize = 64;

/// An account with posts that may leave memory, by a bucket's agenda.
#[derive(Debug, Clone)]
pub(super) struct DueAccount {
    pub(super) account: AccountId,
    /// Posts below its floor that came back, or stayed.
    pub(super) warm: Vec<PostId>,
}

/// Accounts that are due, of each bucket some.
#[derive(Debug, Default)]
pub(super) struct DueAccounts {
    /// Posts of accounts that are looked at.
    accounts: BTreeMap<AccountId, Vec<PostId>>,
    /// Accounts of which the archive may have lost what it had forgotten.
    pub(super) unsettled: Vec<DueNote>,
    /// Lists that are too long.
    pub(super) lists: Vec<NamedList>,
    /// Whether some of it was due when the round began.
    pub(super) is_of_the_round: bool,
    /// Whether something else was, of accounts that are moving.
    pub(super) is_held_up: bool,
    /// Whether a server was away, whose buckets were not looked at.
    pub(super) has_skipped: bool,
}

impl DueAccounts {
    /// Accounts with posts that may leave.
    pub(super) fn accounts(&mut self) -> Vec<DueAccount> {
        let accounts = std::mem::take(&mut self.accounts).into_iter();
        accounts.map(|(account, warm)| DueAccount { account, warm }).collect()
    }

    /// Adds an entry, if this round has something to do with it.
    fn add(&mut self, entry: &[u8], at_ms: f64, round: &MoveRound<'_>) -> bool {
        // H178: accounts go by one moment, or what is put off meanwhile would come again and again.
        let is_of_the_round = at_ms <= round.upto_ms();
        let is_taken = |account: &AccountId| is_of_the_round && !round.refused.contains(account);
        match AgendaEntry::parse(entry) {
            // H241: a second move would void the one that waits.
            Some(AgendaEntry::Account(account) | AgendaEntry::Post(PostRef { author: account, .. }))
                if is_taken(&account) && round.moving.contains(&account) =>
            {
                self.is_held_up = true;
                return false;
            }
            Some(AgendaEntry::Account(account)) if is_taken(&account) => {
                self.accounts.entry(account).or_default();
            }
            Some(AgendaEntry::Post(post)) if is_taken(&post.author) => {
                self.accounts.entry(post.author).or_default().push(post.id);
            }
            Some(AgendaEntry::Unsettled(account))
                if !round.refused.contains(&account) && !round.noted.contains(&account) =>
            {
                self.unsettled.push((account, at_ms));
            }
            Some(AgendaEntry::List(list)) if !round.lists.has(list) => {
                self.lists.push(list);
                return true;
            }
            // An unknown one is of a later release, say: it keeps nothing else from moving.
            _ => return false,
        }
        self.is_of_the_round |= is_of_the_round;
        true
    }
}

impl Tiers<'_> {
    /// Reads what is due. A bucket whose server is away has its turn later.
    pub(super) async fn due(&self, round: &MoveRound<'_>) -> DueAccounts {
        let (mut due, buckets) = (DueAccounts::default(), self.tenant.keys().buckets());
        let mut open: Vec<(Bucket, usize)> = buckets.all().map(|bucket| (bucket, 0)).collect();
        while !open.is_empty() {
            let ask = open.iter().map(|at| self.due_request(*at)).collect();
            let answers = self.tenant.router().run(ask).await;
            let mut further = Vec::new();
            for ((bucket, from), answer) in open.into_iter().zip(answers) {
                let Ok(entries) = answer.and_then(|answer| scored(answer.ok()?)) else {
                    due.has_skipped = true;
                    continue;
                };
                let taken = entries.iter().filter(|(entry, at_ms)| due.add(entry, *at_ms, round)).count();
                // H233: entries that nobody can do anything with keep none behind them waiting.
                if taken == 0 && entries.len() == OF_A_BUCKET {
                    further.push((bucket, from + OF_A_BUCKET));
                }
            }
            open = further;
        }
        due
    }

    fn due_request(&self, (bucket, from): (Bucket, usize)) -> Request {
        let (keys, now_ms) = (self.tenant.keys(), self.tenant.router().now_ms());
        let range = Command::new("ZRANGEBYSCORE").arg(&keys.agenda(bucket)).arg("-inf").arg(now_ms);
        let range = range.arg("WITHSCORES").arg("LIMIT").arg(from).arg(OF_A_BUCKET);
        Request::read(keys.buckets().slot(bucket), range)
    }
}

fn scored(reply: Reply) -> Result<Vec<(Vec<u8>, f64)>> {
    let entries = reply.into_array()?;
    entries.as_chunks::<2>().0.iter().map(|[entry, at]| Ok((entry.bytes()?.to_vec(), at.double()?))).collect()
}
