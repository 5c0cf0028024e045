//! The places of an account's posts, in memory and in the archive, as both say.

use serde::Serialize;

use crate::archive::{Owner, OwnerState};
use crate::cluster::{Batch, Command, Request};
use crate::error::Result;
use crate::fields::RecordField;
use crate::functions::UnsettledDeletion;
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::stored::{AgendaEntry, ArchiveFloor};
use crate::tenant::{Answers, Tenant};

/// Entries of a bucket's agenda that are gone through: in a step, and steps.
const ENTRIES_AT_ONCE: usize = 1_000;
const STEPS_MAX: usize = 1_000;
/// Posts that are named.
const NAMED_MAX: usize = 100;

/// The places of an account's posts, as memory and the archive tell them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveStanding {
    /// The post up to which the archive has all, as the outbox says; `None`: nothing has left memory.
    pub upto: Option<PostId>,
    /// The number of a token that the archive must know at least, as the outbox says.
    pub settled: u64,
    /// The number of the token that was given out last; 0: none was.
    pub token: u64,
    /// Posts that its outbox lists beyond those that stay: they leave once they are old enough.
    pub waiting: u64,
    /// When somebody looks at the account again, in milliseconds since 1970; `None`: nothing is due.
    pub looked_at_ms: Option<u64>,
    /// Posts that the archive should have and that are in memory too, until somebody looks at them again: up to a
    /// hundred.
    pub warm: Vec<PostId>,
    /// Deleted posts that the archive could still have again if one of its servers failed.
    pub unsettled: usize,
    /// What the archive says of the account; `None`: it has never had anything of it, or doesn't answer.
    pub owner: Option<ArchivedOwner>,
    /// Why it doesn't answer.
    pub owner_error: Option<String>,
}

/// The state of an account in the archive: how far it has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ArchivedOwner {
    /// The number of the token of the last change.
    pub token: u64,
    /// The post up to which all are there.
    pub upto: PostId,
    /// Whether it says that the account was deleted.
    pub is_buried: bool,
}

/// The tier in which a post lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PostTier {
    /// In memory alone.
    Memory,
    /// In the archive alone.
    Archive,
    /// In both; what memory has counts.
    Both,
    /// In memory; whether the archive has it too it doesn't tell.
    MemoryAtLeast,
}

impl ArchivedOwner {
    fn of(state: OwnerState) -> Self {
        Self { token: state.token.number, upto: state.upto, is_buried: state.is_buried }
    }
}

/// The place of a post that was found; `None`: the tenant has no archive.
pub(super) async fn tier(tenant: &Tenant, post: PostRef) -> Result<Option<PostTier>> {
    if tenant.archive()?.is_none() {
        return Ok(None);
    }
    let is_in_memory = tenant.posts().exists(post.id).await?;
    Ok(Some(match (is_in_memory, tenant.posts().has_row(post, None).await) {
        (false, _) => PostTier::Archive,
        (true, Ok(true)) => PostTier::Both,
        (true, Ok(false)) => PostTier::Memory,
        (true, Err(_)) => PostTier::MemoryAtLeast,
    }))
}

/// Reads where an account's posts lie; `None`: the tenant has no archive.
pub(super) async fn standing(tenant: &Tenant, account: AccountId) -> Result<Option<ArchiveStanding>> {
    let (Some(archive), Some(decided)) = (tenant.archive()?, tenant.known.decision().archive) else {
        return Ok(None);
    };
    let (keys, slot, bucket) = (tenant.keys(), tenant.slot(account), tenant.bucket(account));
    let (record, outbox, agenda) = (keys.account(account), keys.outbox(account), keys.agenda(bucket));
    let fields =
        Command::new("HMGET").arg(&record).arg(RecordField::ARCHIVE_TOKEN).arg(RecordField::UNSETTLED);
    let mut batch = Batch::new();
    batch.push_ordered([
        Request::read(slot, fields),
        Request::read(slot, Command::new("LINDEX").arg(&outbox).arg("0")),
        Request::read(slot, Command::new("LLEN").arg(&outbox)),
        Request::read(slot, Command::new("ZSCORE").arg(&agenda).arg(&account.to_bytes())),
    ]);
    let mut answers = Answers::of(tenant, batch).await?;
    let [token, unsettled] = answers.next()?.into_values()?;
    let (first, listed, looked_at) = (answers.next()?, answers.next()?.count()?, answers.next()?);
    let floor = ArchiveFloor::read(&first)?;
    let token = token.bytes().ok().and_then(<[u8]>::first_chunk).map_or(0, |n| u64::from_be_bytes(*n));
    // Its first element is the floor.
    let stay = u64::from(decided.hot_posts) + 1;
    let (owner, owner_error) = match archive.owners(&[Owner { bucket, account }]).await {
        Ok(states) => (states.first().copied().flatten().map(ArchivedOwner::of), None),
        Err(e) => (None, Some(e.to_string())),
    };
    Ok(Some(ArchiveStanding {
        upto: floor.map(|floor| floor.upto),
        settled: floor.map_or(0, |floor| floor.settled),
        token,
        waiting: listed.saturating_sub(stay),
        looked_at_ms: looked_at.text().ok().and_then(|at| at.parse().ok()),
        warm: warm(tenant, account, &agenda).await?,
        unsettled: UnsettledDeletion::parse_all(&unsettled)?.len(),
        owner,
        owner_error,
    }))
}

/// Posts of an account that its bucket's agenda names.
async fn warm(tenant: &Tenant, account: AccountId, agenda: &[u8]) -> Result<Vec<PostId>> {
    let mut warm = Vec::new();
    for step in 0..STEPS_MAX {
        // As a mover reads it: nobody needs another right for that.
        let range = Command::new("ZRANGEBYSCORE").arg(agenda).arg("-inf").arg("+inf").arg("LIMIT");
        let range = range.arg(step * ENTRIES_AT_ONCE).arg(ENTRIES_AT_ONCE);
        let entries = tenant.router().call(Request::read(tenant.slot(account), range)).await?.into_array()?;
        for entry in &entries {
            let Some(AgendaEntry::Post(post)) = AgendaEntry::parse(entry.bytes()?) else { continue };
            if post.author == account && warm.len() < NAMED_MAX {
                warm.push(post.id);
            }
        }
        if entries.len() < ENTRIES_AT_ONCE {
            break;
        }
    }
    warm.sort_unstable();
    warm.dedup();
    Ok(warm)
}
