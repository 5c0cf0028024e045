//! Going on with an archive that is older than memory, where no newer one is there: on purpose, by a new token. What it
//! lacks is lost; what memory still has of that is listed again, above a floor that has sunk to where the archive ends.

use std::collections::HashSet;

use super::begin::{Begun, Tiers, TokenAsk};
use super::count::{listed_posts, noted_posts, those_in_memory};
use super::named::{key_of, known_by};
use crate::archive::{
    ChangeRefusal, OwnerChange, OwnerState, PAGE_MAX, PageAsk, PageContent, PageOrder, PostListChange,
    Prerequisite,
};
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{ArchiveAccept, ArchiveAcceptAnswer, LISTED_AGAIN_MAX, TokenCase, UnsettledDeletion};
use crate::ids::{AccountId, PostId};
use crate::post::NamedList;
use crate::stored::ArchiveFloor;
use crate::tenant::{Answers, Tenant, account_changed_always, archive_away, changed_always};

/// Tries while somebody else is at the account.
const TRIES_MAX: usize = 16;

/// An account of which the archive lacks something, and what is there.
#[derive(Debug)]
pub(crate) struct LaggingOwner {
    floor: ArchiveFloor,
    /// What the archive says.
    state: Option<OwnerState>,
    /// How many posts the account's record says it has.
    told: u64,
    /// How many are anywhere: in its outbox, in the archive, or in memory below the floor.
    found: u64,
    /// Those in memory below the floor that the archive may lack: ascending.
    in_memory: Vec<PostId>,
    /// The outbox's first element.
    first: Vec<u8>,
}

impl LaggingOwner {
    /// The number of posts that are lost; below 0: so many that were deleted are back.
    pub(crate) fn lost(&self) -> i64 {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        number(self.told) - number(self.found)
    }

    /// The id at which the archive ends, and to which the floor goes.
    fn upto(&self) -> Result<PostId> {
        let known = self.state.map_or_else(|| PostId::from_u64(0), |state| Ok(state.upto))?;
        Ok(known.min(self.floor.upto))
    }
}

/// Looks at an account of which the archive may lack something. `None`: it lacks nothing, or is posted all the time.
pub(crate) async fn lagging(tenant: &Tenant, account: AccountId) -> Result<Option<LaggingOwner>> {
    match Tiers::of(tenant)? {
        Some(tiers) => tiers.lagging(account).await,
        None => Ok(None),
    }
}

/// Has an account go by what the archive has of it, though that is less than it had. Gives how many posts are lost;
/// `None`: it lacks nothing.
pub(crate) async fn accept_lagging(tenant: &Tenant, account: AccountId) -> Result<Option<i64>> {
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(None) };
    for _ in 0..TRIES_MAX {
        let Some(owner) = tiers.lagging(account).await? else { return Ok(None) };
        if tiers.accept(account, &owner).await? {
            return Ok(Some(owner.lost()));
        }
    }
    Err(changed_always(ErrorKind::Unavailable, format_args!("the archive's posts of account {account}")))
}

/// The number that a list of the archive is known by, if it is below that which memory says.
pub(crate) async fn list_lags(tenant: &Tenant, list: NamedList, stamp: u64) -> Result<Option<u64>> {
    let known = known_by(tenant, list).await?;
    Ok(known.filter(|known| *known < stamp))
}

/// Has a list go by what the archive has of it, though that is less than it had.
pub(crate) async fn accept_lagging_list(tenant: &Tenant, list: NamedList, stamp: u64) -> Result<()> {
    let Some(archive) = tenant.archive()? else { return Ok(()) };
    let list = key_of(tenant, list);
    let change = PostListChange { list, added: Vec::new(), removed: Vec::new(), stamp };
    archive.change_lists(&[change]).await.map_err(archive_away)
}

impl Tiers<'_> {
    async fn lagging(&self, account: AccountId) -> Result<Option<LaggingOwner>> {
        for _ in 0..TRIES_MAX {
            let (told, first, last) = self.standing(account).await?;
            let Some(floor) = ArchiveFloor::parse(&first) else { return Ok(None) };
            let owner = self.owner(account);
            let states = self.archive.owners(&[owner]).await.map_err(archive_away)?;
            let state = states.into_iter().next().flatten();
            if floor.check(account, state).is_ok() {
                return Ok(None);
            }
            let mut lagging =
                LaggingOwner { floor, state, told, found: 0, in_memory: Vec::new(), first: first.clone() };
            let listed: HashSet<PostId> = listed_posts(self.tenant, account).await?.into_iter().collect();
            let archived = self.archived_upto(account, lagging.upto()?).await?;
            let noted = noted_posts(self.tenant, account).await?;
            let noted = noted.into_iter().filter(|id| !listed.contains(id) && !archived.contains(id));
            lagging.in_memory = those_in_memory(self.tenant, noted.collect()).await?;
            lagging.found = (listed.len() + archived.len() + lagging.in_memory.len()) as u64;
            // Published or deleted meanwhile, it would be counted wrongly.
            if self.standing(account).await? == (told, first, last) {
                return Ok(Some(lagging));
            }
        }
        Ok(None)
    }

    /// The number of posts that an account says it has, its outbox's first element, and the last one.
    async fn standing(&self, account: AccountId) -> Result<(u64, Vec<u8>, Vec<u8>)> {
        let ([record, outbox, _], slot) = (self.keys(account), self.tenant.slot(account));
        let posts = Command::new("HGET").arg(&record).arg(RecordField::POSTS);
        let element = |at: &str| Request::read(slot, Command::new("LINDEX").arg(&outbox).arg(at));
        let asked = [Request::read(slot, posts), element("0"), element("-1")];
        let mut answers = Answers::ordered(self.tenant, asked).await?;
        let told = answers.next()?;
        let told = if told.is_nil() { 0 } else { u64::try_from(told.int()?).unwrap_or_default() };
        let mut bytes = || Ok::<_, Error>(answers.next()?.bytes().unwrap_or_default().to_vec());
        Ok((told, bytes()?, bytes()?))
    }

    /// Posts of an account that the archive has, up to one of them.
    async fn archived_upto(&self, account: AccountId, upto: PostId) -> Result<HashSet<PostId>> {
        let (mut archived, mut edge) = (HashSet::new(), PostId::from_u64(0)?);
        loop {
            let ask = PageAsk { owner: self.owner(account), edge, most: PAGE_MAX };
            let pages = self.archive.pages(&[ask], PageOrder::OldestFirst, PageContent::Ids).await;
            let ids = pages.map_err(archive_away)?.pop().map(|page| page.ids).unwrap_or_default();
            archived.extend(ids.iter().filter(|id| **id <= upto));
            match ids.last() {
                Some(last) if ids.len() == PAGE_MAX && *last < upto => edge = *last,
                _ => return Ok(archived),
            }
        }
    }

    /// Tries once. False: somebody else is at it.
    async fn accept(&self, account: AccountId, owner: &LaggingOwner) -> Result<bool> {
        let above = owner.floor.settled.max(owner.state.map_or(0, |state| state.token.number));
        let ask = TokenAsk { account, case: TokenCase::Always, above, erased: None, warm: Vec::new() };
        let Some(begun) = self.token(ask, &mut TouchedServers::new()).await? else {
            return Err(account_changed_always(account));
        };
        // H191: it gets a number above all that were given out, or a mover that sleeps would change it by an old look.
        let needs = owner.state.map_or_else(Prerequisite::default, |state| Prerequisite {
            token_number: state.token.number,
            upto: Some(state.upto),
        });
        let change = OwnerChange {
            needs,
            upto: owner.upto()?,
            erased: self.forgotten_lately(account).await?,
            ..self.change_under(&begun)?
        };
        match self.archive.change(&[change]).await.map_err(archive_away)?.pop() {
            Some(Ok(())) => self.sink(owner, &begun).await,
            Some(Err(ChangeRefusal::Passed(_) | ChangeRefusal::Behind(_))) => Ok(false),
            Some(Err(ChangeRefusal::Buried)) | None => Err(account_changed_always(account)),
        }
    }

    /// Posts that memory remembers as deleted, which the archive has again: they don't come back.
    async fn forgotten_lately(&self, account: AccountId) -> Result<Vec<PostId>> {
        let [record, ..] = self.keys(account);
        let noted = Command::new("HGET").arg(&record).arg(RecordField::UNSETTLED);
        let noted = self.tenant.router().call(Request::read(self.tenant.slot(account), noted)).await?;
        let ids: Vec<PostId> = UnsettledDeletion::parse_all(&noted)?.iter().map(|noted| noted.id).collect();
        // H175: a deletion that failed once it was noted.
        let there: HashSet<PostId> = those_in_memory(self.tenant, ids.clone()).await?.into_iter().collect();
        Ok(ids.into_iter().filter(|id| !there.contains(id)).collect())
    }

    /// Has memory say where the archive ends. H190: what was above that, and is in memory, is listed before.
    async fn sink(&self, owner: &LaggingOwner, begun: &Begun) -> Result<bool> {
        let (account, upto) = (begun.account, owner.upto()?);
        let above: Vec<PostId> = owner.in_memory.iter().copied().filter(|id| *id > upto).collect();
        if begun.first != owner.first {
            return Ok(false);
        }
        // The highest first: each is put behind the floor.
        let mut chunks: Vec<&[PostId]> = above.rchunks(LISTED_AGAIN_MAX).collect();
        let last = chunks.pop().unwrap_or_default();
        for (listed, end) in chunks.into_iter().map(|chunk| (chunk, None)).chain([(last, Some(upto))]) {
            let posts = listed.iter().map(|id| self.tenant.keys().post(*id));
            let accept = ArchiveAccept {
                keys: self.keys(account).into_iter().chain(posts).collect(),
                account,
                token: begun.token,
                first: &owner.first,
                end: end.map(|upto| (upto, owner.lost())),
                now_ms: self.tenant.router().now_ms(),
                listed,
            };
            let accept = Request::write(self.tenant.slot(account), accept.command());
            if ArchiveAcceptAnswer::parse(self.tenant.router().call(accept).await?)?
                == ArchiveAcceptAnswer::Changed
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
