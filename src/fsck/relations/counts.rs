//! Numbers in an account's record, against what they count: posts, and sets of accounts.

use std::sync::Arc;

use crate::change::{BucketChange, Tries};
use crate::cluster::{Reply, TouchedServers};
use crate::error::{Error, ErrorCode, Result};
use crate::fields::RecordField;
use crate::fsck::ask::{self, is_there, read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions::{self, BucketWrite, ExpectedValue, LeastState};
use crate::graph::Graph;
use crate::graph::{count_followers, graph_stamp, note_followers};
use crate::ids::AccountId;
use crate::journal::{Journal, Matter};
use crate::nonce::draw;
use crate::sharded::SortedSet;
use crate::stored::ArchiveFloor;
use crate::tenant::{Answers, Tenant};
use crate::tiers;

/// The field for how many posts an account has, and for how many follow it.
const POSTS: &str = RecordField::POSTS;
const FOLLOWERS: &str = RecordField::FOLLOWERS;
/// Followers that nobody sums up for so long will be by nobody.
const COUNT_LEFT_MS: u64 = 300_000;
/// Tries to count between two changes.
const TRIES_MAX: usize = 8;

/// All numbers in the record of an account that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AccountCounts(pub(super) AccountId);

/// The sets whose sizes a record holds, and where.
fn counted(tenant: &Tenant, account: AccountId) -> Result<[(&'static str, SortedSet<AccountId>); 3]> {
    let (following, blocks) = (tenant.following(account)?, tenant.blocks(account)?);
    Ok([
        (RecordField::FOLLOWING, following),
        (RecordField::BLOCKS, blocks),
        (RecordField::HIDES, tenant.hides(account)?),
    ])
}

impl Relation for AccountCounts {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        if !is_there(tenant, self.0).await? { Ok(Observation::default()) } else { self.count(tenant).await }
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let Self(account) = *self;
        match std::str::from_utf8(&found.detail) {
            Ok(FOLLOWERS) => {
                note_followers(graph, account, &mut TouchedServers::new()).await?;
                count_followers(tenant, account).await?;
            }
            Ok(POSTS) => {
                let Some(posts) = PostCount::count(tenant, account).await? else {
                    return Ok(Vec::new());
                };
                let keys = [tenant.keys().account(account), tenant.keys().outbox(account)];
                // Posted or deleted meanwhile: found again, and counted again.
                let command = functions::posts_recount(&keys, posts.told, &posts.last, posts.counted);
                write(tenant, &keys[0], command).await?;
            }
            _ => self.write_size(&graph.journal, &found.detail).await?,
        }
        Ok(Vec::new())
    }
}

impl AccountCounts {
    /// Numbers that are not what they count.
    async fn count(self, tenant: &Tenant) -> Result<Observation> {
        let Self(account) = self;
        let sets = counted(tenant, account)?;
        let of_sets = sets.clone().map(|(_, set)| set);
        let mut found = Vec::new();
        for _ in 0..TRIES_MAX {
            // While the stamp is the same, no set has changed.
            let before = Sizes::read(tenant, account).await?;
            let sizes = tenant.sets().len_of_many(&of_sets).await?;
            let after = Sizes::read(tenant, account).await?;
            if before.graph != after.graph {
                continue;
            }
            for (((field, _), size), told) in sets.iter().zip(sizes).zip(after.told) {
                found.push((*field, i128::from(told) - i128::from(size)));
            }
            break;
        }
        if let Some(off) = followers(tenant, account).await? {
            found.push((FOLLOWERS, off));
        }
        let untold = match PostCount::count(tenant, account).await {
            Ok(posts) => {
                let off = |posts: PostCount| (POSTS, i128::from(posts.told) - i128::from(posts.counted));
                found.extend(posts.map(off));
                0
            }
            // The rest memory can tell.
            Err(e) if e.code() == ErrorCode::ArchiveAway => 1,
            Err(e) => return Err(e),
        };
        found.retain(|(_, off)| *off != 0);
        let found = found.into_iter().map(|(field, off)| self.found(field, off));
        Ok(Observation::from(found).but_for(untold))
    }

    fn found(self, field: &str, off: i128) -> Deviation {
        let Self(account) = self;
        let what = if off > 0 { "many" } else { "few" };
        let told = format!("field `{field}` of account {account}: {} too {what}", off.abs());
        let counts = (field == FOLLOWERS).then_some(Matter::FollowerCount(account));
        let excused_by = counts.into_iter().chain([Matter::Burial(account)]).collect();
        let kind = FindingKind::CountWrong;
        Deviation { kind, at: Unit::of(self), detail: field.into(), told, excused_by }
    }

    /// Writes the size of one of the account's sets.
    async fn write_size(self, journal: &Arc<Journal>, field: &[u8]) -> Result<()> {
        let tenant = &journal.tenant;
        let Self(account) = self;
        let sets = counted(tenant, account)?;
        let Some((field, set)) = sets.into_iter().find(|(of, _)| of.as_bytes() == field) else {
            return Ok(());
        };
        // Whoever finds others at it leaves it to the next run.
        let tries = &mut Tries::of(account);
        for _ in 0..TRIES_MAX {
            let (seen, _) = graph_stamp(tenant, account).await?;
            let size = set.len().await?.to_string();
            let write = BucketWrite::new("account_set", &tenant.keys().account(account), LeastState::There)
                .compare([(RecordField::GRAPH_STAMP, ExpectedValue::Exactly(Some(seen)))])
                .set(RecordField::GRAPH_STAMP, &draw())
                .set(field, size.as_bytes());
            let change = BucketChange::new(journal, account, write, "be changed");
            if change.write(tries).await?.is_some() {
                break;
            }
        }
        Ok(())
    }
}

/// By how much the number of an account's followers is off. `None`: they are to be summed up, and somebody will.
async fn followers(tenant: &Tenant, account: AccountId) -> Result<Option<i128>> {
    let record = tenant.keys().account(account);
    let look = async || {
        let told =
            read(tenant, "HMGET", &record, &[FOLLOWERS, RecordField::UNCOUNTED_SINCE].map(str::as_bytes))
                .await?;
        let [told, waits] = told.into_values()?;
        let since = waits.text().ok().and_then(|waits| waits.split_once(' ')?.0.parse::<u64>().ok());
        Ok((number_of(&told)?, waits.is_nil(), since.unwrap_or_default()))
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
struct Sizes {
    graph: Vec<u8>,
    told: [u64; 3],
}

impl Sizes {
    async fn read(tenant: &Tenant, account: AccountId) -> Result<Self> {
        let record = tenant.keys().account(account);
        let fields = read(
            tenant,
            "HMGET",
            &record,
            &[RecordField::GRAPH_STAMP, RecordField::FOLLOWING, RecordField::BLOCKS, RecordField::HIDES]
                .map(str::as_bytes),
        )
        .await?
        .into_array()?;
        let number = |n: usize| fields.get(n).map_or(Ok(0), number_of);
        let graph = fields.first().and_then(|g| g.bytes().ok()).unwrap_or_default().to_vec();
        Ok(Self { graph, told: [number(1)?, number(2)?, number(3)?] })
    }
}

/// A number of a record; a missing one is 0.
fn number_of(reply: &Reply) -> Result<u64> {
    // One below 0 is as wrong as any.
    if reply.is_nil() { Ok(0) } else { Ok(u64::try_from(reply.int()?).unwrap_or(u64::MAX)) }
}

/// Posts of an account, counted: as its record says and as its outbox and the archive have them.
struct PostCount {
    told: u64,
    /// The last element of the outbox: while it and `told` are the same, nothing was posted or deleted.
    last: Vec<u8>,
    counted: u64,
}

impl PostCount {
    /// Counts an account's posts. `None`: it posts all the time; or some have been cut off, and nobody knows how many
    /// of these are deleted. H203: an outbox that was cut before its archive began doesn't say so any more, but then it
    /// had more posts than stay in one without an archive.
    async fn count(tenant: &Tenant, account: AccountId) -> Result<Option<Self>> {
        let (record, outbox) = (tenant.keys().account(account), tenant.keys().outbox(account));
        let look = async || {
            let asked = [
                ask::request("HGET", &record, &[POSTS.as_bytes()]),
                ask::request("LINDEX", &outbox, &[b"-1"]),
                ask::request("LINDEX", &outbox, &[b"0"]),
            ];
            let mut answers = Answers::ordered(tenant, asked).await?;
            let told = number_of(&answers.next()?)?;
            let last = answers.next()?.bytes().unwrap_or_default().to_vec();
            let first = answers.next()?.bytes().unwrap_or_default().to_vec();
            Ok::<_, Error>((told, last, first))
        };
        for _ in 0..TRIES_MAX {
            let (told, last, first) = look().await?;
            let floor = ArchiveFloor::parse(&first);
            let was_cut = match floor {
                Some(_) => told > u64::from(tenant.decided().outbox_posts),
                None => first.get(1..9).is_some_and(|floor| floor != [0; 8]),
            };
            if was_cut {
                return Ok(None);
            }
            let mut counted = tiers::listed_posts(tenant, account).await?.len() as u64;
            if let Some(floor) = floor {
                counted += tiers::archived_posts(tenant, account, floor).await?;
                // Only then, since it looks through an agenda.
                if counted < told {
                    counted += tiers::half_deleted_posts(tenant, account, floor).await?;
                }
            }
            if look().await? == (told, last.clone(), first) {
                return Ok(Some(Self { told, last, counted }));
            }
        }
        Ok(None)
    }
}
