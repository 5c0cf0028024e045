//! A tenant's archive: beginning one, and what an engine does with it on demand.

mod restore;
mod stopped;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

pub use restore::RestoredPosts;
pub use stopped::StoppedTenant;

use super::{Engine, EngineBuilder};
use crate::archive::{ASKS_MAX, Archive, PostAsk};
use crate::charter::{self, Decision, TenantArchive};
use crate::cluster::{Batch, Command, Finding, Request, Severity};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::fsck::{KeyForm, KeyWalk, form_of};
use crate::graph;
use crate::ids::{AccountId, PostId};
use crate::journal::{self, Journal};
use crate::keys::OwnKey;
use crate::store::Store;
use crate::tenant::{self, KnownDecision, Tenant};
use crate::tiers::MovedPosts;

/// The posts that one look at what is due has brought to the archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ArchivedNow {
    /// Posts that have left memory.
    pub left: u64,
    /// Posts that the archive has, and that stay in memory for a while: something was done with them not long ago, or
    /// their lists are too long to leave.
    pub warm: u64,
}

/// Refuses to start without the tenant's archive, or with another one.
pub(super) async fn check(known: &KnownDecision, archive: Option<&dyn Archive>) -> Result<()> {
    let decided = known.decision().archive;
    let (decided, archive) = match (decided, archive) {
        (None, None) => return Ok(()),
        (Some(decided), Some(archive)) => (decided, archive),
        (Some(decided), None) => {
            return Err(Error::misconfigured(format!(
                "posts of this tenant are in the archive {}, and without it they would seem to be gone: start with it \
                 (`EngineBuilder::archive`; commands: --archive or TIDELINE_ARCHIVE)",
                decided.name
            )));
        }
        (None, Some(_)) => {
            return Err(Error::misconfigured(
                "this tenant has no archive yet: begin one first, with `tideline archive begin` or \
                 `EngineBuilder::begin_archive`",
            ));
        }
    };
    match archive.name().await? {
        Some(name) if name == decided.name => Ok(()),
        found => {
            let found = found.map_or("one that was never begun".into(), |name| name.to_string());
            let name = decided.name;
            let text = format!(
                "the tenant's archive is {name}, and this is {found}: another place was named than where that one is \
                 (`EngineBuilder::archive`; commands: --archive or TIDELINE_ARCHIVE)"
            );
            Err(Error::misconfigured(text))
        }
    }
}

/// Tells what is wrong with the archive, if it doesn't answer.
pub(super) async fn finding(tenant: &Tenant) -> Option<Finding> {
    let failure = check(&tenant.known, tenant.archive().ok()??.into()).await.err()?;
    let text = format!("what lies in the archive can't be read, and nothing moves there: {failure}");
    Some(Finding { node: None, severity: Severity::Warning, text })
}

impl EngineBuilder {
    /// Begins the tenant's archive: from then on posts leave memory, all but so many of each account's newest ones,
    /// once they are as old as so many days. Gives what the tenant has decided then.
    ///
    /// That the tenant has it is for good ([what stays](Self::keep_in_memory) is not): no instance and no command
    /// starts without that archive any more, nor one of a release that doesn't know of archives. Interrupted, it is
    /// called again.
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict): instances serve the tenant; stop them first.
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): the tenant has another archive, or this one belongs to
    /// another tenant. [`Invalid`](crate::ErrorKind::Invalid): no archive was given, or the tenant's settings were
    /// never decided.
    pub fn begin_archive(self, hot_posts: u32, hot_days: u32) -> CallFuture<'static, Decision> {
        Box::pin(async move {
            let (journal, archive) = self.alone().await?;
            let begun = begin(&journal.tenant, archive, hot_posts, hot_days).await;
            journal::end_import(&journal).await?;
            begun
        })
    }

    /// Begins search: from then on posts are found by their words, those that are published or edited. What was there
    /// before is, too, once [`Engine::index_all`] has gone through it.
    ///
    /// It is for good, as the archive is, which must have been [begun](Self::begin_archive) before; and no instance of
    /// a release starts any more that doesn't know of search. Interrupted, it is called again.
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict): instances serve the tenant; stop them first.
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): the tenant has another archive, or none.
    pub fn begin_search(self) -> CallFuture<'static, Decision> {
        Box::pin(async move {
            let (journal, archive) = self.alone().await?;
            let begun = begin_search(&journal.tenant, &*archive).await;
            journal::end_import(&journal).await?;
            begun
        })
    }

    /// Changes how many posts of each account stay in memory, and for how many days; `None`: as before. What has to
    /// leave by that does so as ever, once instances are up; what has left stays where it is. Interrupted, it is called
    /// again.
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict): instances serve the tenant; stop them first.
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): the tenant has another archive, or none.
    pub fn keep_in_memory(
        self,
        hot_posts: Option<u32>,
        hot_days: Option<u32>,
    ) -> CallFuture<'static, Decision> {
        Box::pin(async move {
            let (journal, archive) = self.alone().await?;
            let kept = keep(&journal.tenant, &*archive, hot_posts, hot_days).await;
            journal::end_import(&journal).await?;
            kept
        })
    }

    /// A tenant that nobody else serves, and the archive that was given: an instance that doesn't know of what is begun
    /// would take what has left for gone, or leave out what is to be found.
    async fn alone(self) -> Result<(Arc<Journal>, Arc<dyn Archive>)> {
        let (options, settings, archive) = self.with_archive();
        settings.check()?;
        let archive = archive.ok_or_else(|| Error::invalid("no archive was given"))?;
        let store = Store::open_existing(options).await?;
        let known = tenant::known_to_a_tool(&store, &settings).await?;
        let journal = Journal::new(Tenant::new(store, settings, known, None));
        journal::begin_import(&journal).await?;
        Ok((journal, archive))
    }
}

async fn begin_search(tenant: &Tenant, archive: &dyn Archive) -> Result<Decision> {
    let stands = tenant.known.decision();
    check(&tenant.known, Some(archive)).await?;
    let searched = |decided| stands.with_archive(TenantArchive { search: true, ..decided });
    decide(tenant, stands.archive.map_or(stands, searched)).await
}

async fn keep(
    tenant: &Tenant,
    archive: &dyn Archive,
    hot_posts: Option<u32>,
    hot_days: Option<u32>,
) -> Result<Decision> {
    let stands = tenant.known.decision();
    check(&tenant.known, Some(archive)).await?;
    let Some(decided) = stands.archive else { return Ok(stands) };
    let kept =
        decided.keeping(hot_posts.unwrap_or(decided.hot_posts), hot_days.unwrap_or(decided.hot_days))?;
    let decision = decide(tenant, stands.with_archive(kept)).await?;
    // Of whom less stays now, nobody would look before it has posted for a while, or before the time it has noted.
    note_all(tenant, kept, KeptTimes::IsSooner).await?;
    Ok(decision)
}

async fn begin(
    tenant: &Tenant,
    archive: Arc<dyn Archive>,
    hot_posts: u32,
    hot_days: u32,
) -> Result<Decision> {
    let stands = tenant.known.decision();
    if !stands.is_made() {
        return Err(Error::invalid(
            "nothing was decided yet for this tenant: decide all of its settings first, with `tideline tenant set` or \
             `Engine::decide`",
        ));
    }
    let decision = match (stands.archive, archive.name().await?) {
        // Begun before: what was interrupted goes on.
        (Some(decided), name) if name == Some(decided.name) => stands,
        (Some(decided), _) => {
            let text =
                format!("the tenant has an archive already, {}, and this is another one", decided.name);
            return Err(Error::misconfigured(text));
        }
        (None, _) => {
            // H183: the tenant knows the name before the archive does, so of two tenants one has it.
            let drawn = charter::drawn_archive(tenant.router(), tenant.keys()).await?;
            let begun =
                TenantArchive { name: drawn, hot_posts, hot_days, left_after_days: hot_days, search: false };
            begun.check()?;
            let name = archive.adopt(drawn).await?;
            if name != drawn {
                return Err(Error::misconfigured(format!(
                    "this archive, {name}, is that of another tenant, or of an earlier time: each tenant needs one of \
                     its own, another database or another file"
                )));
            }
            stands.with_archive(begun)
        }
    };
    let decision = decide(tenant, decision).await?;
    if let Some(archive) = decision.archive {
        note_all(tenant, archive, KeptTimes::IsNoted).await?;
    }
    Ok(decision)
}

/// Writes a decision down, and tells all buckets.
async fn decide(tenant: &Tenant, decision: Decision) -> Result<Decision> {
    let (router, keys) = (tenant.router(), tenant.keys());
    // H66: the record first.
    let fields = charter::write(router, keys, &decision).await?;
    let written = Decision::parse(&fields, decision.settings)?;
    if written != Some(decision) {
        let text =
            format!("the tenant has decided something else meanwhile: {written:?}; asked for {decision:?}");
        return Err(Error::new(ErrorKind::Conflict, text));
    }
    charter::tell_buckets(router, keys, &decision).await.map_err(|e| {
        e.context(
            "the decision is recorded, but some buckets don't know it yet, and no posts leave memory there. \
             Repeat the call; the error was",
        )
    })?;
    Ok(decision)
}

/// Outboxes looked at in one batch.
const OUTBOXES_AT_ONCE: usize = 1_000;

/// Notes all accounts that may have posts that are due: of those who have posted since, each has noted itself.
async fn note_all(tenant: &Tenant, archive: TenantArchive, unless: KeptTimes) -> Result<()> {
    let mut walk = KeyWalk::new(tenant.keys().buckets().all());
    while let Some(step) = walk.step(tenant).await? {
        let outbox_of = |key: &Vec<u8>| match form_of(tenant.keys(), key) {
            KeyForm::Own(OwnKey::Outbox, account) => Some(account),
            _ => None,
        };
        let accounts: Vec<AccountId> = step.iter().filter_map(outbox_of).collect();
        for accounts in accounts.chunks(OUTBOXES_AT_ONCE) {
            note(tenant, archive, accounts, unless).await?;
        }
    }
    Ok(())
}

/// Notes accounts whose posts were imported. H223: nobody else is at one that was put off, as who has died leaves it.
pub(super) async fn note_some(tenant: &Tenant, accounts: &[AccountId]) -> Result<()> {
    let Some(archive) = tenant.known.decision().archive else { return Ok(()) };
    let accounts: Vec<AccountId> = accounts.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    for accounts in accounts.chunks(OUTBOXES_AT_ONCE) {
        note(tenant, archive, accounts, KeptTimes::IsSooner).await?;
    }
    Ok(())
}

/// Finds which of these posts the archive has, whoever's they are.
pub(super) async fn archived_among(tenant: &Tenant, posts: &[PostId]) -> Result<HashSet<PostId>> {
    let Some(archive) = tenant.archive()? else { return Ok(HashSet::new()) };
    let buckets = tenant.keys().buckets();
    let asks: Vec<PostAsk> =
        posts.iter().map(|id| PostAsk { bucket: id.bucket(buckets), id: *id, owner: None }).collect();
    let mut found = HashSet::new();
    for asks in asks.chunks(ASKS_MAX) {
        let answers = archive.posts(asks).await?;
        let there = asks.iter().zip(answers).filter(|(_, answer)| answer.post.is_some());
        found.extend(there.map(|(ask, _)| ask.id));
    }
    Ok(found)
}

/// A choice of which noted accounts keep their time.
#[derive(Debug, Clone, Copy)]
enum KeptTimes {
    /// All of them: somebody may be at one that was put off.
    IsNoted,
    /// Those whose time has come: nobody serves the tenant, or nobody else is at them.
    IsSooner,
}

/// Notes accounts with more posts than stay as due now.
async fn note(
    tenant: &Tenant,
    archive: TenantArchive,
    accounts: &[AccountId],
    unless: KeptTimes,
) -> Result<()> {
    let keys = tenant.keys();
    let length = |account: &AccountId| {
        Request::read(tenant.slot(*account), Command::new("LLEN").arg(&keys.outbox(*account)))
    };
    let lengths = tenant.run_all(accounts.iter().map(length).collect()).await?;
    let mut noted = Batch::new();
    for (account, length) in accounts.iter().zip(lengths) {
        // Its first element is the floor.
        if length.ok()?.count()? > u64::from(archive.hot_posts) + 1 {
            let note = Command::new("ZADD").arg(&keys.agenda(tenant.bucket(*account)));
            let note = note.arg(match unless {
                KeptTimes::IsNoted => "NX",
                KeptTimes::IsSooner => "LT",
            });
            let note = note.arg(tenant.router().now_ms()).arg(&account.to_bytes());
            noted.push(Request::write(tenant.slot(*account), note));
        }
    }
    for answer in tenant.run_all(noted).await? {
        answer.ok()?;
    }
    Ok(())
}

impl Engine {
    /// Moves what is due as [`archive_due`](Self::archive_due) does, and looks at all accounts first, not only at those
    /// that have noted that something is due. Goes through all keys.
    pub fn archive_all(&self) -> CallFuture<'_, ArchivedNow> {
        Box::pin(async move {
            if let Some(archive) = self.decision().archive {
                note_all(&self.tenant, archive, KeptTimes::IsNoted).await?;
            }
            self.archive_due().await
        })
    }

    /// Moves what is due to the archive now, instead of within seconds. It happens by itself.
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable): the archive takes nothing now.
    pub fn archive_due(&self) -> CallFuture<'_, ArchivedNow> {
        Box::pin(async move {
            // What is due by now, and no more, or this had no end while others publish.
            let (due_ms, mut moved) = (self.tenant.router().now_ms(), MovedPosts::default());
            loop {
                let some = graph::move_due(&self.graph.journal, due_ms).await?;
                moved.add(some);
                if !some.has_more {
                    return Ok(ArchivedNow { left: moved.left, warm: moved.warm });
                }
            }
        })
    }
}
