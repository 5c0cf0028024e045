//! Records of accounts: their counts, their mode, and whether a deleted one has been buried.

use super::deviation::Deviation;
use super::look::{Answers, Seen};
use super::unit::Unit;
use crate::account::Mode;
use crate::cluster::{Batch, Command, Reply, Request};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::sharded::SortedSet;
use crate::tenant::Tenant;

/// Ids of an outbox read at once.
const IDS_AT_ONCE: usize = 2_000;
/// The field for how many follow.
pub(super) const FOLLOWERS: &str = "nr";
/// Followers that nobody sums up for so long will be by nobody.
const COUNT_LEFT_MS: u64 = 300_000;
/// Tries to count between two changes.
const TRIES_MAX: usize = 8;

/// The sets whose sizes a record holds, and where.
pub(super) fn counted(
    graph: &Graph,
    account: AccountId,
) -> Result<[(&'static str, SortedSet<AccountId>); 3]> {
    let (following, blocks) = (graph.following(account)?, graph.blocks(account)?);
    Ok([("nf", following), ("nb", blocks), ("nh", graph.hides(account)?)])
}

/// Looks at an account's record.
pub(super) async fn record(graph: &Graph, account: AccountId) -> Result<Seen> {
    let fields = Command::new("HMGET").arg(&graph.keys().account(account));
    let fields = ["s", "m", "k", "un", "g", "t"].iter().fold(fields, |command, field| command.arg(*field));
    let fields = graph.router().call(Request::read(graph.slot(account), fields)).await?.into_array()?;
    let [state, mode, kind, login, stamps @ ..] = fields.as_slice() else {
        return Err(Error::internal("six fields were asked for"));
    };
    if state.is_nil() {
        return Err(Error::internal(format!("the record of account {account} has no state")));
    }
    if state.bytes()? == b"d" {
        // Its burial takes the other fields away last.
        let found = (!kind.is_nil()).then_some(Deviation::BurialStuck { account });
        return Ok(Seen::of(found.into_iter().collect()));
    }
    let names = vec![Unit::Credentials(account)];
    if state.bytes()? == b"u" {
        return Ok(Seen { deviations: Vec::new(), units: names });
    }
    if stamps.iter().any(|stamp| stamp.bytes().map_or(true, |stamp| stamp.len() != 8)) {
        return Err(Error::internal(format!("the record of account {account} lacks a stamp")));
    }
    let mut found = Vec::new();
    let mode = mode.bytes().unwrap_or_default();
    if mode.first().map(|letter| Mode::from_letter(*letter)) == Some(Mode::Promoting) {
        // While it is carried out, the journal says so.
        let random = mode[1..].try_into().unwrap_or_default();
        found.push(Deviation::ModeStuck { account, random });
    }
    found.extend(counts(graph, account).await?);
    Ok(Seen { deviations: found, units: if login.is_nil() { Vec::new() } else { names } })
}

/// Numbers in the record that are not what they count.
async fn counts(graph: &Graph, account: AccountId) -> Result<Vec<Deviation>> {
    let sets = counted(graph, account)?;
    let of_sets = sets.clone().map(|(_, set)| set);
    let mut found = Vec::new();
    for _ in 0..TRIES_MAX {
        // While the stamp is the same, no set has changed.
        let before = numbers(graph, account).await?;
        let sizes = graph.sets().len_of_many(&of_sets).await?;
        let after = numbers(graph, account).await?;
        if before.graph != after.graph {
            continue;
        }
        for (((field, _), size), told) in sets.iter().zip(sizes).zip(after.sizes) {
            found.push((*field, i128::from(told) - i128::from(size)));
        }
        break;
    }
    if let Some(off) = followers(graph, account).await? {
        found.push((FOLLOWERS, off));
    }
    if let Some(posts) = posts(graph, account).await? {
        found.push(("p", i128::from(posts.told) - i128::from(posts.counted)));
    }
    found.retain(|(_, off)| *off != 0);
    Ok(found.into_iter().map(|(field, off)| Deviation::Count { account, field, off }).collect())
}

/// By how much the number of an account's followers is off. `None`: they are to be summed up, and somebody will.
async fn followers(tenant: &Tenant, account: AccountId) -> Result<Option<i128>> {
    let look = async || {
        let record = tenant.keys().account(account);
        let fields = Command::new("HMGET").arg(&record).arg(FOLLOWERS).arg("nd");
        let told = tenant.router().call(Request::read(tenant.slot(account), fields)).await?.into_array()?;
        let [told, waits] = told.as_slice() else { return Err(Error::internal("two fields were asked for")) };
        let since = waits.text().ok().and_then(|waits| waits.split_once(' ')?.0.parse::<u64>().ok());
        Ok((number_of(told)?, waits.is_nil(), since.unwrap_or_default()))
    };
    let before = look().await?;
    let is_left = tenant.router().now_ms().saturating_sub(before.2) > COUNT_LEFT_MS;
    if !before.1 && !is_left {
        return Ok(None);
    }
    let sum = tenant.followers(account)?.len().await?;
    Ok((look().await? == before).then(|| i128::from(before.0) - i128::from(sum)))
}

/// The graph stamp, and the numbers that belong to it.
struct Numbers {
    graph: Vec<u8>,
    sizes: [u64; 3],
}

async fn numbers(tenant: &Tenant, account: AccountId) -> Result<Numbers> {
    let fields = ["g", "nf", "nb", "nh"]
        .iter()
        .fold(Command::new("HMGET").arg(&tenant.keys().account(account)), |command, field| {
            command.arg(*field)
        });
    let fields = tenant.router().call(Request::read(tenant.slot(account), fields)).await?.into_array()?;
    let number = |n: usize| fields.get(n).map_or(Ok(0), number_of);
    let graph = fields.first().and_then(|g| g.bytes().ok()).unwrap_or_default().to_vec();
    Ok(Numbers { graph, sizes: [number(1)?, number(2)?, number(3)?] })
}

/// A number of a record; a missing one is 0.
fn number_of(reply: &Reply) -> Result<u64> {
    // One below 0 is as wrong as any.
    if reply.is_nil() { Ok(0) } else { Ok(u64::try_from(reply.int()?).unwrap_or(u64::MAX)) }
}

/// How many posts an account has, as its record says and as its outbox has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Posts {
    pub(super) told: u64,
    /// The last element of the outbox: while it and `told` are the same, nothing was posted or deleted.
    pub(super) last: Vec<u8>,
    pub(super) counted: u64,
}

/// Counts an account's posts. `None`: it posts all the time; or some have been cut off, and nobody knows how many of
/// these are deleted.
pub(super) async fn posts(tenant: &Tenant, account: AccountId) -> Result<Option<Posts>> {
    let (record, outbox) = (tenant.keys().account(account), tenant.keys().outbox(account));
    let slot = tenant.slot(account);
    let look = async || {
        let mut batch = Batch::new();
        let commands = [
            Command::new("HGET").arg(&record).arg("p"),
            Command::new("LINDEX").arg(&outbox).arg("-1"),
            Command::new("LINDEX").arg(&outbox).arg("0"),
        ];
        batch.push_ordered(commands.map(|command| Request::read(slot, command)));
        let mut answers = Answers::of(tenant, batch).await?;
        let told = number_of(&answers.next()?)?;
        let last = answers.next()?.bytes().unwrap_or_default().to_vec();
        let first = answers.next()?.bytes().unwrap_or_default().to_vec();
        Ok::<_, Error>((told, last, first))
    };
    for _ in 0..TRIES_MAX {
        let (told, last, first) = look().await?;
        if first.get(1..9).is_some_and(|floor| floor != [0; 8]) {
            return Ok(None);
        }
        let (mut counted, mut from) = (0, 0);
        loop {
            let range = Command::new("LRANGE").arg(&outbox).arg(from).arg(from + IDS_AT_ONCE - 1);
            let ids = tenant.router().call(Request::read(slot, range)).await?.into_array()?;
            let is_live = |id: &&Reply| id.bytes().is_ok_and(|id| id.len() == 8 && id[0] < 0x80);
            counted += ids.iter().filter(is_live).count() as u64;
            from += ids.len();
            if ids.len() < IDS_AT_ONCE {
                break;
            }
        }
        if look().await? == (told, last.clone(), first) {
            return Ok(Some(Posts { told, last, counted }));
        }
    }
    Ok(None)
}
