//! Keys whose account isn't there, tokens, and keys that nobody knows.

use super::deviation::{Deviation, FindingKind};
use super::key::{Form, form_of};
use super::look::{Answers, Seen, is_there};
use crate::bucket::Bucket;
use crate::cluster::{Batch, Command, Request};
use crate::error::Result;
use crate::functions;
use crate::ids::{AccountId, PostId};
use crate::stored::profile_of;
use crate::tenant::Tenant;

/// Accounts of a bucket's days looked at in one go.
const DAYS_AT_ONCE: u32 = 500;
/// Calls of one walk through a bucket's days.
const CALLS_MAX: usize = 1_000_000;

/// Looks at one key.
pub(super) async fn key(tenant: &Tenant, key: &[u8]) -> Result<Seen> {
    let slot = crate::keys::slot_of_key(key);
    let exists = || tenant.router().call(Request::read(slot, Command::new("EXISTS").arg(key)));
    match form_of(tenant.keys(), key) {
        Form::Token(account) => token(tenant, account, key, true).await,
        Form::ReportToken(account) => token(tenant, account, key, false).await,
        Form::Unknown if exists().await?.int()? == 1 => {
            let kind = FindingKind::KeyUnknown;
            Ok(Seen::of(vec![Deviation::Key { kind, key: key.into(), owner: None, detail: Vec::new() }]))
        }
        Form::Home(account) => {
            let is_left = exists().await?.int()? == 1 || has_day(tenant, account).await?;
            if is_left && !is_there(tenant, account).await? {
                return Ok(Seen::orphan(key.into(), account));
            }
            Ok(Seen::default())
        }
        Form::Marks(account) | Form::Outbox(account) | Form::Requests(account, _) => {
            orphan(tenant, account, key).await
        }
        Form::Profile(account) => {
            let seen = orphan(tenant, account, key).await?;
            if seen.deviations.is_empty() {
                // Whether it can be read; pages show an empty one instead.
                drop(profile_of(&tenant.router().call(tenant.profile_request(account)).await?)?);
            }
            Ok(seen)
        }
        Form::Set(set) => match super::key::owner_of(&set.name) {
            Some((owner, _)) => orphan(tenant, owner, key).await,
            None => Ok(Seen::default()),
        },
        Form::Post(post) => super::outboxes::post(tenant, post).await,
        _ => Ok(Seen::default()),
    }
}

async fn orphan(tenant: &Tenant, owner: AccountId, key: &[u8]) -> Result<Seen> {
    let slot = crate::keys::slot_of_key(key);
    let exists =
        tenant.router().call(Request::read(slot, Command::new("EXISTS").arg(key))).await?.int()? == 1;
    if !exists || is_there(tenant, owner).await? {
        return Ok(Seen::default());
    }
    Ok(Seen::orphan(key.into(), owner))
}

async fn has_day(tenant: &Tenant, account: AccountId) -> Result<bool> {
    let days =
        Command::new("ZSCORE").arg(&tenant.keys().days(tenant.bucket(account))).arg(&account.to_bytes());
    Ok(!tenant.router().call(Request::read(tenant.slot(account), days)).await?.is_nil())
}

/// Looks at a token: whether it ends, and, if it is a post's, whether the one that it names is or was there. Of reports the
/// oldest go without a trace.
async fn token(tenant: &Tenant, account: AccountId, key: &[u8], is_of_post: bool) -> Result<Seen> {
    let slot = tenant.slot(account);
    let mut batch = Batch::new();
    let commands = [Command::new("GET").arg(key), Command::new("PTTL").arg(key)];
    batch.push_ordered(commands.map(|command| Request::read(slot, command)));
    let mut answers = Answers::of(tenant, batch).await?;
    let (value, ttl) = (answers.next()?, answers.next()?.int()?);
    if value.is_nil() {
        return Ok(Seen::default());
    }
    let of = |kind, detail| Deviation::Key { kind, key: key.into(), owner: Some(account), detail };
    let mut found = Vec::new();
    if ttl == -1 {
        found.push(of(FindingKind::TokenEndless, Vec::new()));
    }
    if !is_of_post {
        return Ok(Seen::of(found));
    }
    let id = value.bytes()?.try_into().ok().map(u64::from_be_bytes).and_then(|id| PostId::from_u64(id).ok());
    let is_named = match id {
        Some(id) => is_or_was(tenant, account, id).await?,
        None => false,
    };
    // Tokens of an account that was deleted go with their time.
    if !is_named && is_there(tenant, account).await? {
        found.push(of(FindingKind::TokenOfNoPost, value.bytes()?.to_vec()));
    }
    Ok(Seen::of(found))
}

/// Whether an account has, or had, that post: its outbox has it, or has cut it off.
async fn is_or_was(tenant: &Tenant, account: AccountId, post: PostId) -> Result<bool> {
    let (outbox, slot) = (tenant.keys().outbox(account), tenant.slot(account));
    let mut batch = Batch::new();
    batch.push_ordered([
        Request::read(slot, functions::outbox_page(outbox.clone(), true, post.get() + 1, 1)),
        Request::read(slot, Command::new("LINDEX").arg(&outbox).arg("0")),
    ]);
    let mut answers = Answers::of(tenant, batch).await?;
    let (page, first) = (answers.next()?.into_array()?, answers.next()?);
    let number = |reply: &crate::cluster::Reply| {
        reply.bytes().ok()?.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes) & (u64::MAX >> 1))
    };
    let is_listed = page.get(1).and_then(number) == Some(post.get());
    Ok(is_listed || number(&first).is_some_and(|floor| floor >= post.get()))
}

/// Looks through the accounts that a bucket has days of.
pub(super) async fn days(tenant: &Tenant, bucket: Bucket) -> Result<Seen> {
    let (key, slot) = (tenant.keys().days(bucket), tenant.keys().buckets().slot(bucket));
    let (mut seen, mut cursor) = (Seen::default(), "0".to_owned());
    for _ in 0..CALLS_MAX {
        let scan = Command::new("ZSCAN").arg(&key).arg(&*cursor).arg("COUNT").arg(DAYS_AT_ONCE);
        let page = tenant.router().call(Request::read(slot, scan)).await?.into_array()?;
        let [next, pairs] =
            <[_; 2]>::try_from(page).map_err(|_| crate::Error::internal("a scan gives two parts"))?;
        let accounts = pairs.into_array()?;
        let accounts = accounts.chunks(2).map(|pair| AccountId::from_bytes(pair[0].bytes()?));
        let accounts = accounts.collect::<Result<Vec<_>>>()?;
        let state = |account: &AccountId| {
            let command = Command::new("HGET").arg(&tenant.keys().account(*account)).arg("s");
            Request::read(tenant.slot(*account), command)
        };
        let answers = tenant.run_all(accounts.iter().map(state).collect()).await?;
        for (account, answer) in accounts.iter().zip(answers) {
            let state = answer.ok()?;
            if state.is_nil() || state.bytes()? == b"d" {
                seen = seen.and(Seen::orphan(tenant.keys().home(*account), *account));
            }
        }
        next.text()?.clone_into(&mut cursor);
        if cursor == "0" {
            break;
        }
    }
    Ok(seen)
}
