//! Keys whose account isn't there, and keys that nobody knows.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::document::Document;
use crate::error::Result;
use crate::fields::RecordField;
use crate::fsck::ask::{drop_set, exists, is_there, read, request, write};
use crate::fsck::key::{KeyForm, form_of, owner_of};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit, left_alone};
use crate::functions;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::Matter;
use crate::keys::{OwnKey, Place};
use crate::stored::profile_of;
use crate::tenant::{Scan, Tenant};

/// A key, by itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OwnerlessKey(pub(super) Vec<u8>);

/// The accounts that a bucket has days of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BucketDays(pub(super) Bucket);

impl OwnerlessKey {
    /// A key whose account isn't there.
    pub(super) fn orphan(key: Vec<u8>, owner: AccountId) -> Observation {
        Self(key).found(FindingKind::KeyOrphaned, Some(owner))
    }

    /// A post whose author isn't there.
    pub(super) fn post_orphan(key: Vec<u8>, author: AccountId) -> Observation {
        Self(key).found(FindingKind::PostOrphaned, Some(author))
    }

    fn found(self, kind: FindingKind, owner: Option<AccountId>) -> Observation {
        let (detail, told) =
            (owner.map(|id| id.to_bytes().to_vec()), format!("key {}", self.0.escape_ascii()));
        let excused_by = owner.map(Matter::Burial).into_iter().collect();
        [Deviation { kind, at: Unit::of(self), detail: detail.unwrap_or_default(), told, excused_by }].into()
    }
}

impl Relation for OwnerlessKey {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(key) = self;
        let form = form_of(tenant.keys(), key);
        let is_left = exists(tenant, key).await?;
        let owner = match &form {
            KeyForm::Unknown if is_left => return Ok(self.clone().found(FindingKind::KeyUnknown, None)),
            KeyForm::Post(post) => tenant.posts().header(*post).await?.found().map(|header| header.author),
            KeyForm::Set(set) => owner_of(&set.name).map(|(owner, _)| owner),
            KeyForm::Own(_, account) => Some(*account),
            _ => None,
        };
        let has_day = match form {
            KeyForm::Own(OwnKey::Home, account) => {
                let days = tenant.keys().days(tenant.bucket(account));
                !read(tenant, "ZSCORE", &days, &[&account.to_bytes()]).await?.is_nil()
            }
            _ => false,
        };
        let Some(owner) = owner.filter(|_| is_left || has_day) else { return Ok(Observation::default()) };
        match form {
            _ if is_there(tenant, owner).await? => {}
            KeyForm::Post(_) => return Ok(Self::post_orphan(key.clone(), owner)),
            _ => return Ok(Self::orphan(key.clone(), owner)),
        }
        if let KeyForm::Own(OwnKey::Profile, account) = form {
            // Whether it can be read; pages show an empty one instead.
            drop(profile_of(&tenant.router().call(tenant.profile_request(account)).await?)?);
        }
        if let KeyForm::Own(OwnKey::Documents, _) = form {
            drop(Document::parse_all(read(tenant, "HGETALL", key, &[]).await?)?);
        }
        Ok(Observation::default())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let (Self(key), keys) = (self, tenant.keys());
        let Ok(owner) = AccountId::from_bytes(&found.detail) else { return Err(left_alone()) };
        let command = match form_of(keys, key) {
            KeyForm::Own(OwnKey::Home, account) => {
                let days = keys.days(tenant.bucket(account));
                functions::home_sweep(days, key.clone(), &account.to_bytes(), u32::MAX, None)
            }
            KeyForm::Set(set) if set.place == Place::Part => {
                // In another slot than its account: nothing could look once more and drop it in one go. An account that
                // is created meanwhile has no followers to lose.
                if !is_there(tenant, owner).await? {
                    drop_set(tenant, &set).await?;
                }
                return Ok(Vec::new());
            }
            KeyForm::Set(set) => {
                let of = tenant.sets().stored_keys(&set).await?;
                let all: Vec<Vec<u8>> = std::iter::once(keys.account(owner)).chain(of).collect();
                functions::orphan_drop(&all)
            }
            _ => functions::orphan_drop(&[keys.account(owner), key.clone()]),
        };
        write(tenant, key, command).await.map(|_| Vec::new())
    }
}

impl Relation for BucketDays {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let (keys, mut seen) = (tenant.keys(), Observation::default());
        let days = keys.days(self.0);
        let mut scan = Scan::new("ZSCAN", &days);
        while let Some(accounts) = scan.next(tenant).await? {
            let accounts = accounts.iter().map(|(account, _)| AccountId::from_bytes(account));
            let accounts = accounts.collect::<Result<Vec<_>>>()?;
            let states = accounts
                .iter()
                .map(|account| request("HGET", &keys.account(*account), &[RecordField::STATE.as_bytes()]));
            let answers = tenant.run_all(states.collect()).await?;
            for (account, answer) in accounts.iter().zip(answers) {
                let state = answer.ok()?;
                if state.is_nil() || state.bytes()? == b"d" {
                    seen = seen.and(OwnerlessKey::orphan(keys.home(*account), *account));
                }
            }
        }
        Ok(seen)
    }
}
