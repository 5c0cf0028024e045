//! Changing what a tenant has decided: what that would remove, and doing it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::Engine;
use crate::bucket::fnv;
use crate::charter::{self, Decision, TenantChange};
use crate::cluster::{Batch, Command, Request};
use crate::error::{CallFuture, Error, Result};
use crate::fsck::{KeyForm, KeyWalk, form_of, list_named};
use crate::functions::{Grounds, home_tidy, outbox_cut, public_cut};
use crate::graph::{ListItem, ListNumber, cut, most_on, post_list};
use crate::journal::Recurring;
use crate::keys::OwnKey;
use crate::keys::slot_of_key;
use crate::post::NamedList;
use crate::stored::public_entries;
use crate::tenant::{RecordLooks, Tenant};
use crate::tiers::note_list;
use crate::timeline;

/// Lists looked at, or cut, at once.
const LISTS_AT_ONCE: usize = 32;

/// The part of one kind of list that goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ListRemoval {
    /// Lists that get shorter.
    pub lists: u64,
    /// The entries that go from all of them, together.
    pub entries: u64,
}

impl ListRemoval {
    fn add(&mut self, entries: u64) {
        self.lists += u64::from(entries > 0);
        self.entries += entries;
    }
}

/// The data that a change of a tenant's settings removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct RemovedData {
    /// Accounts with more posts than may be listed, and posts that are no longer.
    pub outboxes: ListRemoval,
    /// Accounts with too many mentions, and posts that leave these.
    pub mentions: ListRemoval,
    /// Hashtags with too many posts, and posts that leave their lists.
    pub hashtags: ListRemoval,
    /// Buckets with too many public posts, and posts that leave the public timeline.
    pub public: ListRemoval,
    /// Homes that are cut. Nothing is missing then: pages go on in the outboxes.
    pub homes: u64,
    /// Homes that are dropped, of accounts that have not read for long. Their next read fills them.
    pub dormant_homes: u64,
}

impl RemovedData {
    /// Whether nothing is removed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Engine {
    /// Counts what a change of the tenant's settings would remove: exactly that, if nothing is written meanwhile.
    /// Changes nothing; goes through all keys, as [`fsck`](Self::fsck) does.
    ///
    /// Fails as [`decide`](Self::decide) does.
    pub fn excess<'a>(&'a self, change: &'a TenantChange) -> CallFuture<'a, RemovedData> {
        Box::pin(async move {
            charter::check_change(self.tenant.router(), self.tenant.keys(), change).await?;
            Box::pin(walk(&self.tenant, change, None)).await
        })
    }

    /// Changes the tenant's settings, for all its instances, and removes what is beyond the new bounds. Tells what that
    /// was.
    ///
    /// First the record says so, then every bucket knows it, then what exceeds goes. Whoever is interrupted calls again
    /// with the same settings named. Other instances hear of it within seconds, and remove nothing until then.
    ///
    /// The first decision for data that is there names all settings ([`TenantChange::set_all`]), and each counts as
    /// lowered: [`Invalid`](crate::ErrorKind::Invalid) names those that are missing.
    /// [`Conflict`](crate::ErrorKind::Conflict): somebody else has changed them since; look at
    /// [`decision`](Self::decision) again. [`Misconfigured`](crate::ErrorKind::Misconfigured): the tenant's record has
    /// lost a decision, and is [restored](crate::Store::restore) first.
    pub fn decide<'a>(&'a self, change: &'a TenantChange) -> CallFuture<'a, RemovedData> {
        Box::pin(async move {
            let (tenant, decision) = (&self.tenant, change.decision());
            charter::check_change(tenant.router(), tenant.keys(), change).await?;
            // H66: the record first. A bucket that knows what no record says could not be told anything else later.
            let fields = charter::write(tenant.router(), tenant.keys(), &decision).await?;
            let stands = Decision::parse(&fields, decision.settings)?;
            if stands != Some(decision) {
                return Err(charter::other_decision(stands, change));
            }
            charter::tell_buckets(tenant.router(), tenant.keys(), &decision).await.map_err(|e| {
                e.context(
                    "it is decided, but not all buckets know it yet, and nothing was removed; do it again",
                )
            })?;
            tenant.known.learn(decision);
            tenant.router().learn_replicas(decision.settings.replicas);
            Box::pin(walk(tenant, change, Some(decision))).await
        })
    }
}

/// Goes through all keys, and counts what exceeds; removes it, if that was decided.
async fn walk(tenant: &Tenant, change: &TenantChange, decided: Option<Decision>) -> Result<RemovedData> {
    let (mut excess, mut seen) = (RemovedData::default(), CountedKeys::default());
    if ["outbox_posts", "mentions_max", "tag_posts_max", "public_posts", "home_posts"]
        .into_iter()
        .any(|name| change.cuts(name))
    {
        let mut walk = KeyWalk::new(tenant.keys().buckets().all());
        while let Some(mut keys) = walk.step(tenant).await? {
            keys.sort_unstable();
            keys.dedup();
            step(tenant, change, decided, &keys, (&mut excess, &mut seen)).await?;
        }
    }
    if let Some(days) = change.to().dormant_after_days.filter(|_| change.cuts("dormant_after_days")) {
        let day = tenant.today().saturating_sub(days);
        excess.dormant_homes = match decided {
            Some(decision) => timeline::sweep(tenant, day, Some(Grounds::Decision(decision.number))).await?,
            None => timeline::dormant(tenant, day).await?,
        };
    }
    Ok(excess)
}

/// The keys, and names of lists, that were counted. A walk may meet a key twice, and does so rarely. Of the many that
/// don't exceed nothing is kept.
#[derive(Debug, Default)]
struct CountedKeys(HashSet<u64>);

impl CountedKeys {
    /// Picks those that are met for the first time.
    fn anew<K: AsRef<[u8]>, T>(&mut self, exceeding: Vec<(K, T)>) -> impl Iterator<Item = (K, T)> {
        exceeding.into_iter().filter(|(key, _)| self.0.insert(fnv(key.as_ref())))
    }
}

/// The keys of one step.
async fn step(
    tenant: &Tenant,
    change: &TenantChange,
    decided: Option<Decision>,
    keys: &[Vec<u8>],
    (excess, counted): (&mut RemovedData, &mut CountedKeys),
) -> Result<()> {
    // A list that lies in several keys is one.
    let (mut outboxes, mut homes, mut public) = (Vec::new(), Vec::new(), Vec::new());
    let mut lists = BTreeMap::new();
    for key in keys {
        match form_of(tenant.keys(), key) {
            KeyForm::Own(OwnKey::Outbox, _) if change.cuts("outbox_posts") => outboxes.push(key.clone()),
            KeyForm::Own(OwnKey::Home, _) if change.cuts("home_posts") => homes.push(key.clone()),
            KeyForm::PublicPosts(_) if change.cuts("public_posts") => public.push(key.clone()),
            KeyForm::Set(set) => {
                let list = list_named(&set.name).filter(|list| change.cuts(bound_of(*list)));
                lists.extend(list.map(|list| (set.name, list)));
            }
            _ => {}
        }
    }
    let most = u64::from(change.to().outbox_posts);
    // Its first element is the floor.
    for (outbox, beyond) in counted.anew(beyond(tenant, outboxes, most + 1).await?) {
        let went = match decided {
            None => beyond,
            Some(decision) => {
                let command = outbox_cut(outbox.clone(), decision.settings.outbox_posts, decision.number);
                tenant.router().call(Request::write(slot_of_key(&outbox), command)).await?.count()?
            }
        };
        excess.outboxes.add(went);
    }
    let fit = tenant.fit_of(change.decision());
    for (home, _) in counted.anew(beyond(tenant, homes, fit.uncut()).await?) {
        if decided.is_some() {
            tenant.router().call(Request::write(slot_of_key(&home), home_tidy(home.clone(), fit))).await?;
        }
        excess.homes += 1;
    }
    for (_, went) in counted.anew(of_public(tenant, change, decided, public).await?) {
        excess.public.add(went);
    }
    let went: Vec<_> = stream::iter(lists)
        .map(|(name, list)| async move {
            Ok::<_, Error>((name, (list, of_list(tenant, change, decided, list).await?)))
        })
        .buffer_unordered(LISTS_AT_ONCE)
        .try_filter(|(_, (_, went))| future::ready(*went > 0))
        .try_collect()
        .await?;
    for (_, (list, went)) in counted.anew(went) {
        match list {
            NamedList::Mentions(_) => excess.mentions.add(went),
            NamedList::Tagged(_) => excess.hashtags.add(went),
            // The one is never cut, the other to no setting.
            NamedList::Written(_) | NamedList::Chats(_) => {}
        }
    }
    Ok(())
}

fn bound_of(list: NamedList) -> &'static str {
    match list {
        NamedList::Mentions(_) => "mentions_max",
        NamedList::Tagged(_) => "tag_posts_max",
        NamedList::Written(_) | NamedList::Chats(_) => "",
    }
}

/// Finds the Redis lists among these that are longer than that, and by how much.
async fn beyond(tenant: &Tenant, keys: Vec<Vec<u8>>, most: u64) -> Result<Vec<(Vec<u8>, u64)>> {
    let length = |key: &Vec<u8>| Request::read(slot_of_key(key), Command::new("LLEN").arg(key));
    let lengths = tenant.run_all(keys.iter().map(length).collect::<Batch>()).await?;
    let mut longer = Vec::new();
    for (key, length) in keys.into_iter().zip(lengths) {
        let beyond = length.ok()?.count()?.saturating_sub(most);
        if beyond > 0 {
            longer.push((key, beyond));
        }
    }
    Ok(longer)
}

/// Counts the posts that leave the public posts of these buckets; with a decision it cuts them off, too.
async fn of_public(
    tenant: &Tenant,
    change: &TenantChange,
    decided: Option<Decision>,
    lists: Vec<Vec<u8>>,
) -> Result<Vec<(Vec<u8>, u64)>> {
    let request = |list: &Vec<u8>| match decided {
        None => Request::read(slot_of_key(list), Command::new("GETRANGE").arg(list).arg("0").arg("-1")),
        Some(Decision { number, settings, .. }) => {
            Request::write(slot_of_key(list), public_cut(list.clone(), settings.public_posts, number))
        }
    };
    let answers = tenant.run_all(lists.iter().map(request).collect::<Batch>()).await?;
    let most = change.to().public_posts as usize;
    let mut longer = Vec::new();
    for (list, answer) in lists.into_iter().zip(answers) {
        let reply = answer.ok()?;
        let went = match decided {
            None => public_entries(reply.bytes()?).count().saturating_sub(most) as u64,
            Some(_) => reply.count()?,
        };
        if went > 0 {
            longer.push((list, went));
        }
    }
    Ok(longer)
}

/// Counts the posts that leave a list; with a decision it cuts them off, too, or notes the list to be cut.
async fn of_list(
    tenant: &Tenant,
    change: &TenantChange,
    decided: Option<Decision>,
    list: NamedList,
) -> Result<u64> {
    let set = post_list(tenant, list)?;
    let most = u64::from(most_on(change.to(), list));
    let members = set.len().await?;
    if members <= most {
        return Ok(0);
    }
    let numbers = set.scores(&ListNumber::ALL.map(ListItem::Number)).await?.into_iter().flatten().count();
    let beyond = members.saturating_sub(most + u64::try_from(numbers).unwrap_or(u64::MAX));
    match decided {
        // What leaves needs its time there, and there may be many lists: instances cut them.
        Some(_) if beyond > 0 && list.is_archived() && tenant.archive()?.is_some() => {
            note_list(tenant, list).await?;
            Ok(beyond)
        }
        Some(decision) if beyond > 0 => cut_whatever_fails_over(tenant, list, decision).await,
        _ => Ok(beyond),
    }
}

impl Recurring for RecordLooks {
    type Owner = Tenant;

    fn pause(&mut self, _: &Tenant) -> Duration {
        Self::pause(self)
    }

    async fn round(&mut self, tenant: &Arc<Tenant>) {
        self.look(tenant).await;
    }
}

/// No journal has it tried again.
async fn cut_whatever_fails_over(tenant: &Tenant, list: NamedList, decision: Decision) -> Result<u64> {
    let mut tries = tenant.router().fence_tries();
    loop {
        match cut(tenant, list, decision).await {
            Err(e) => tries.after(e).await?,
            went => return went,
        }
    }
}
