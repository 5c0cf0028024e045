//! The set that users hold: local at first, spread later, the same operations on both.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use tokio::time::Instant;

use super::change::{AddOptions, AddTerms, Change, MemberChange, RemoveOptions, SetRefusal};
use super::local::{LocalKey, Probe, Spot};
use super::page::{MergeOutcome, PieceRead, ScoredMember, merge};
use super::tree::hash;
use super::walk::Checkpoint;
use super::{MEMBER_LEN_MAX, Member, Order, PAGE_MAX, ScoreRange, Sets};
use crate::bucket::Bucket;
use crate::cluster::{Command, Reply, Request, TouchedServers};
use crate::error::{Error, Result};
use crate::functions;
use crate::ids::AccountId;
use crate::keys::Place;
use crate::settings::page_length;

/// Most members in one call.
const MEMBERS_MAX: usize = 100_000;

/// The layout of a set: where its members are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All in one slot.
    Local,
    /// Each in its own bucket.
    Spread,
}

/// One page of a set, by score.
#[derive(Debug, Clone, PartialEq)]
pub struct SetPage<M> {
    /// Members with their scores, in page order.
    pub entries: Vec<(M, f64)>,
    /// Hand it to the next call; `None`: nothing follows.
    pub next: Option<(M, f64)>,
}

/// Members that two sets have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonMembers<M> {
    /// Those found by this call, in no order.
    pub members: Vec<M>,
    /// Hand it to the next call; `None`: that was all.
    pub next: Option<Checkpoint>,
}

/// A sorted set of members with scores, of any size.
///
/// Operations may run from any number of clients at once. Each change of one member is atomic. What one call does
/// to several members is not: if it fails, some may be changed; calling it again is safe. Dropping a future gives
/// up waiting; what was sent may still run.
#[derive(Debug)]
pub struct SortedSet<M> {
    pub(super) sets: Sets,
    pub(super) home: LocalKey,
    is_pinned: bool,
    /// The record that tells how many members it has while all lie in one place.
    record: Option<Arc<[u8]>>,
    /// Whose followers its members are: each that is written is noted.
    noted: Option<[u8; 8]>,
    member: PhantomData<fn() -> M>,
}

impl<M> Clone for SortedSet<M> {
    fn clone(&self) -> Self {
        let Self { sets, home, is_pinned, record, noted, member } = self;
        let (sets, home, record) = (sets.clone(), home.clone(), record.clone());
        Self { sets, home, is_pinned: *is_pinned, record, noted: *noted, member: *member }
    }
}

impl<M: Member> SortedSet<M> {
    pub(super) fn new(sets: Sets, bucket: Bucket, name: Arc<[u8]>) -> Self {
        Self {
            sets,
            home: LocalKey { place: Place::Whole, bucket, name },
            is_pinned: false,
            record: None,
            noted: None,
            member: PhantomData,
        }
    }

    /// Has the set stay in its slot however large it grows.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.is_pinned = true;
        self
    }

    /// Has the set be the followers of an account whose record tells how many they are: in step with each change, while
    /// they lie in one place.
    pub(crate) fn counted_at(self, record: Vec<u8>) -> Self {
        Self { record: Some(record.into()), ..self }
    }

    /// Has the set be the followers of that account: each edge that is written is noted, so that somebody looks whether
    /// its follow is there once nobody is at it any more.
    pub(crate) fn noted_of(self, account: AccountId) -> Self {
        Self { noted: Some(account.to_bytes()), ..self }
    }

    /// Reads the set's members as something else that they also are.
    pub(crate) fn with_members<N: Member>(&self) -> SortedSet<N> {
        let Self { sets, home, is_pinned, record, noted, .. } = self.clone();
        SortedSet { sets, home, is_pinned, record, noted, member: PhantomData }
    }

    fn record_of(&self, layout: Layout) -> Option<&[u8]> {
        self.record.as_deref().filter(|_| layout == Layout::Local)
    }

    /// Sets the scores of members, new or not. Of several pairs with the same member the last counts.
    pub async fn add(&self, pairs: &[(M, f64)]) -> Result<Change> {
        self.add_with(pairs, "", |_, new| new, AddTerms::default()).await?.ok_or_else(without_a_decision)
    }

    /// Adds members, of which none gets a lower score than it has.
    pub async fn add_greater(&self, pairs: &[(M, f64)]) -> Result<Change> {
        self.add_with(pairs, "GT", f64::max, AddTerms::default()).await?.ok_or_else(without_a_decision)
    }

    /// Adds members, of which none gets a lower score, because the tenant has decided so. `None`: its bucket knows
    /// another decision than this; some may be added.
    pub(crate) async fn add_greater_decided(
        &self,
        pairs: &[(M, f64)],
        decision: u32,
    ) -> Result<Option<Change>> {
        let terms = AddTerms { decision: Some(decision), ..AddTerms::default() };
        self.add_with(pairs, "GT", f64::max, terms).await
    }

    pub(super) async fn add_with(
        &self,
        pairs: &[(M, f64)],
        option: &'static str,
        both: fn(f64, f64) -> f64,
        terms: AddTerms<'_>,
    ) -> Result<Option<Change>> {
        if let Some((member, _)) = pairs.iter().find(|(_, score)| score.is_nan()) {
            return Err(Error::invalid(format!("the score of {member:?} is not a number")));
        }
        let mut unique: HashMap<&M, f64> = HashMap::with_capacity(pairs.len());
        for (member, score) in pairs {
            unique.entry(member).and_modify(|s| *s = both(*s, *score)).or_insert(*score);
        }
        let mut pairs: Vec<(&M, Option<f64>)> = unique.into_iter().map(|(m, s)| (m, Some(s))).collect();
        // In one order: a history of the simulation replays.
        pairs.sort_unstable_by_key(|(member, _)| *member);
        check_count(pairs.len())?;
        let mut touched = TouchedServers::new();
        let (members, largest, layout) = loop {
            let layout = self.layout_for_change().await?;
            let (sets, items) = self.items(&pairs, layout)?;
            let noted = self.noted.as_ref().map(<[u8; 8]>::as_slice);
            let how = AddOptions { option, record: self.record_of(layout), noted, terms };
            match self.sets.add_items(&sets, items, how, &mut touched).await? {
                Ok((members, largest)) => break (members, largest, layout),
                Err(SetRefusal::Undecided) => return Ok(None),
                Err(SetRefusal::Guarded) if terms.guard.is_some() => return Ok(None),
                Err(refused) => self.settle(refused).await?,
            }
        };
        if !self.is_pinned && layout == Layout::Local && largest >= self.sets.spread_at() {
            // The members are added: a spread that fails is tried again by the next add.
            if let Err(e) = self.spread().await {
                tracing::warn!(set = %self.home.name.escape_ascii(), "spreading failed: {e}");
            }
        }
        Ok(Some(Change { members, len: largest, kept: None, touched }))
    }

    /// Removes members.
    pub async fn remove(&self, members: &[M]) -> Result<Change> {
        self.remove_with(&members.iter().map(|m| (m, None)).collect::<Vec<_>>(), None, false).await
    }

    /// Removes members because the tenant has decided so: none, if their bucket knows another decision than this.
    pub(crate) async fn remove_decided(&self, members: &[M], decision: u32) -> Result<Change> {
        self.remove_with(&members.iter().map(|m| (m, None)).collect::<Vec<_>>(), Some(decision), false).await
    }

    /// Removes each member only if its score is below the one given with it.
    pub async fn remove_below(&self, members: &[(M, f64)]) -> Result<Change> {
        if let Some((member, _)) = members.iter().find(|(_, score)| score.is_nan()) {
            return Err(Error::invalid(format!("the bound of {member:?} is not a number")));
        }
        self.remove_with(&members.iter().map(|(m, s)| (m, Some(*s))).collect::<Vec<_>>(), None, false).await
    }

    pub(super) async fn remove_with(
        &self,
        members: &[(&M, Option<f64>)],
        decision: Option<u32>,
        is_told: bool,
    ) -> Result<Change> {
        check_count(members.len())?;
        let mut touched = TouchedServers::new();
        loop {
            let layout = self.layout_for_change().await?;
            let (sets, items) = self.items(members, layout)?;
            let how = RemoveOptions { record: self.record_of(layout), decision, is_told };
            match self.sets.remove_items(&sets, items, how, &mut touched).await? {
                Ok((members, kept)) => return Ok(Change { members, len: 0, kept, touched }),
                Err(refused) => self.settle(refused).await?,
            }
        }
    }

    /// The score of a member, if it is in the set.
    pub async fn score(&self, member: &M) -> Result<Option<f64>> {
        Ok(self.scores(std::slice::from_ref(member)).await?.first().copied().flatten())
    }

    /// Asks for the score of a member while the set is one sorted set, as most are; WRONGTYPE if it isn't any more.
    pub(crate) fn small_score(&self, member: &M) -> Request {
        let command = Command::new("ZSCORE").arg(&self.sets.key(&self.home)).arg(member.to_bytes().as_ref());
        Request::read(self.sets.slot(&self.home), command)
    }

    /// The scores of members, in their order.
    pub async fn scores(&self, members: &[M]) -> Result<Vec<Option<f64>>> {
        check_count(members.len())?;
        let pairs: Vec<_> = members.iter().map(|m| (m, None)).collect();
        loop {
            let (sets, items) = self.items(&pairs, self.layout_known())?;
            let hashes: Vec<_> = items.iter().map(|item| (item.set, item.hash)).collect();
            let command = |key: &[u8], of: usize| Command::new("ZSCORE").arg(key).arg(&items[of].member);
            if let Some(replies) = self.sets.read_each(&sets, &hashes, command, None).await? {
                let score = |reply: &Reply| if reply.is_nil() { Ok(None) } else { reply.double().map(Some) };
                return replies.iter().map(score).collect();
            }
        }
    }

    /// Counts the set's members.
    pub async fn len(&self) -> Result<u64> {
        let router = self.sets.router();
        let request =
            |set: &LocalKey| Request::read(self.sets.slot(set), functions::count(self.sets.key(set)));
        if self.layout_known() == Layout::Local {
            let (members, state) = functions::parse_count(router.call(request(&self.home)).await?)?;
            if !matches!(state, b'C' | b'S') {
                return Ok(members);
            }
            self.sets.look(&[&self.home]).await?;
        }
        let answers = router.run(self.parts().iter().map(request).collect()).await;
        answers.into_iter().map(|answer| Ok(functions::parse_count(answer?.ok()?)?.0)).sum()
    }

    /// Whether the set has no members.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Counts the members that have a score in `range`.
    pub async fn count(&self, range: impl RangeBounds<f64>) -> Result<u64> {
        let range = ScoreRange::from(range);
        range.check()?;
        let (min, max) = range.spelled();
        let (_, replies) =
            self.read_everywhere(|key| Command::new("ZCOUNT").arg(key).arg(&min).arg(&max)).await?;
        replies.iter().map(|(_, reply)| reply.count()).sum()
    }

    /// Up to `limit` members with scores in `range`, after `after`, in order.
    ///
    /// Members that come and go meanwhile may or may not be on it; those that stay are, exactly once over all
    /// pages. It asks every piece of the set: for walking through all of a large set use [`walk`](Self::walk).
    pub async fn page(
        &self,
        range: impl RangeBounds<f64>,
        after: Option<&(M, f64)>,
        limit: usize,
        order: Order,
    ) -> Result<SetPage<M>> {
        let range = ScoreRange::from(range);
        range.check()?;
        page_length(limit, PAGE_MAX)?;
        if after.is_some_and(|(_, score)| score.is_nan()) {
            return Err(Error::invalid("a page cannot go on after a score that is not a number"));
        }
        let after =
            after.map(|(m, score)| ScoredMember { score: *score, member: m.to_bytes().as_ref().into() });
        let entries = self.merged(range, after.as_ref(), limit, order).await?;
        let decode = |e: &ScoredMember| Ok((M::from_bytes(&e.member)?, e.score));
        let next = entries.get(limit - 1).map(decode).transpose()?;
        Ok(SetPage { entries: entries.iter().map(decode).collect::<Result<_>>()?, next })
    }

    async fn merged(
        &self,
        range: ScoreRange,
        after: Option<&ScoredMember>,
        limit: usize,
        order: Order,
    ) -> Result<Vec<ScoredMember>> {
        let range = after.map_or(range, |after| range.after(after.score, order));
        // A fair share of each piece at first; who turns out to have more is read deeper.
        let share = (2 * limit / self.pieces_known() + 2).min(limit + 1);
        'anew: loop {
            let command = |key: &[u8]| range_command(key, range, share, order);
            let (sets, read) = self.read_everywhere(command).await?;
            let mut trees = self.sets.trees_of(&sets);
            let (probes, replies): (Vec<Probe>, Vec<Reply>) = read.into_iter().unzip();
            let mut depths = vec![share; probes.len()];
            let sources =
                probes.iter().zip(replies).map(|(probe, reply)| read_source(probe.spot, reply, share));
            let mut sources = sources.collect::<Result<Vec<_>>>()?;
            loop {
                let deeper = match merge(&sources, after, limit, order) {
                    MergeOutcome::Page(page) => return Ok(page),
                    MergeOutcome::Deepen(deeper) => deeper,
                };
                deeper.iter().for_each(|i| depths[*i] *= 4);
                let again: Vec<Probe> = deeper.iter().map(|i| Probe { of: *i, ..probes[*i] }).collect();
                let command = |key: &[u8], of: usize| range_command(key, range, depths[of], order);
                let read = self.sets.probe(&sets, &mut trees, &again, command, None).await?;
                for (i, reply) in deeper.into_iter().zip(read) {
                    // Split or spread meanwhile: the other pieces may hold what has left this one.
                    let Some(reply) = reply else { continue 'anew };
                    sources[i] = read_source(probes[i].spot, reply, depths[i])?;
                }
            }
        }
    }

    /// Reads something at every piece, wherever they are.
    async fn read_everywhere(
        &self,
        command: impl Fn(&[u8]) -> Command,
    ) -> Result<(Vec<LocalKey>, Vec<(Probe, Reply)>)> {
        loop {
            let sets = match self.layout_known() {
                Layout::Local => vec![self.home.clone()],
                Layout::Spread => self.parts(),
            };
            if let Some(read) = self.sets.read_all(&sets, &command, None).await? {
                return Ok((sets, read));
            }
        }
    }

    /// Members that are in both sets: some of them and a checkpoint, until there is none. It walks this set and
    /// asks the other, so call it on the smaller one.
    pub async fn common(&self, other: &SortedSet<M>, from: Checkpoint) -> Result<CommonMembers<M>> {
        let walked = self.walk(from).await?;
        let members: Vec<M> = walked.entries.into_iter().map(|(m, _)| m).collect();
        let scores = other.scores(&members).await?;
        let both = members.into_iter().zip(scores).filter_map(|(m, score)| score.map(|_| m));
        Ok(CommonMembers { members: both.collect(), next: walked.next })
    }

    /// Tells where the set's members are now.
    pub async fn layout(&self) -> Result<Layout> {
        if self.layout_known() == Layout::Local {
            self.sets.look(&[&self.home]).await?;
        }
        Ok(self.layout_known())
    }

    /// The layout of its members, as far as this process knows: "spread" is for ever, "local" may be old.
    pub(super) fn layout_known(&self) -> Layout {
        match self.sets.tree(&self.home) {
            Some(tree) if tree.is_spread() => Layout::Spread,
            _ => Layout::Local,
        }
    }

    /// Its part in each bucket.
    pub(super) fn parts(&self) -> Vec<LocalKey> {
        self.sets.keys().buckets().all().map(|b| self.part(b)).collect()
    }

    pub(super) fn part(&self, bucket: Bucket) -> LocalKey {
        LocalKey { place: Place::Part, bucket, name: self.home.name.clone() }
    }

    fn pieces_known(&self) -> usize {
        match self.layout_known() {
            Layout::Local => Spot::all_from(self.sets.tree(&self.home).as_deref(), 0).len(),
            Layout::Spread => usize::from(self.sets.keys().buckets().count()),
        }
    }

    /// The sets that these members are in, and an item for each member.
    fn items(
        &self,
        members: &[(&M, Option<f64>)],
        layout: Layout,
    ) -> Result<(Vec<LocalKey>, Vec<MemberChange>)> {
        let buckets = self.sets.keys().buckets();
        let is_spread = layout == Layout::Spread;
        let mut sets = Vec::new();
        let mut numbers: HashMap<Bucket, usize> = HashMap::new();
        let mut items = Vec::with_capacity(members.len());
        for (member, score) in members {
            let bytes = member.to_bytes();
            let bytes = bytes.as_ref();
            if bytes.is_empty() || bytes.len() > MEMBER_LEN_MAX {
                let len = bytes.len();
                return Err(Error::out_of_range(format!(
                    "member {member:?}: {len} bytes; 1 to {MEMBER_LEN_MAX} are allowed"
                )));
            }
            let bucket = if is_spread { member.bucket(buckets) } else { self.home.bucket };
            let number = *numbers.entry(bucket).or_insert_with(|| {
                sets.push(if is_spread { self.part(bucket) } else { self.home.clone() });
                sets.len() - 1
            });
            items.push(MemberChange::new(number, bytes, *score));
        }
        Ok((sets, items))
    }

    /// A change was refused: waits until the set takes changes again, wherever that is.
    async fn settle(&self, refused: SetRefusal) -> Result<()> {
        match refused {
            // Who should have dropped the pieces may be dead.
            SetRefusal::Spread => {
                if let Err(e) = self.drop_pieces(&|_| false).await {
                    tracing::info!("what was local could not be dropped yet: {e}");
                }
                Ok(())
            }
            SetRefusal::Spreading => {
                self.await_spread(Instant::now() + self.sets.router().settings().deadline).await
            }
            SetRefusal::Guarded => Err(Error::internal("a change without a guard was refused by one")),
            SetRefusal::Undecided => Err(without_a_decision()),
        }
    }
}

pub(super) fn range_command(key: &[u8], range: ScoreRange, limit: usize, order: Order) -> Command {
    let (min, max) = range.spelled();
    let command = match order {
        Order::Ascending => Command::new("ZRANGEBYSCORE").arg(key).arg(min).arg(max),
        Order::Descending => Command::new("ZREVRANGEBYSCORE").arg(key).arg(max).arg(min),
    };
    command.arg("WITHSCORES").arg("LIMIT").arg("0").arg(limit)
}

/// Members that came in order, without their scores: their places stand for these.
pub(super) fn read_ordered(spot: Spot, reply: Reply, limit: usize) -> Result<PieceRead> {
    let members = reply.into_array()?;
    let is_complete = members.len() < limit;
    let mut entries = Vec::with_capacity(members.len());
    for (member, place) in members.iter().zip(0i32..) {
        let member = member.bytes()?.to_vec();
        if spot.leaf().holds(hash(&member)) {
            entries.push(ScoredMember { score: f64::from(-place), member });
        }
    }
    Ok(PieceRead { entries, is_complete })
}

pub(super) fn read_source(spot: Spot, reply: Reply, limit: usize) -> Result<PieceRead> {
    let entries = read_scored(reply)?;
    let is_complete = entries.len() < limit;
    // A split that broke off may have left copies of members that live elsewhere.
    let lives_here = |e: &ScoredMember| spot.leaf().holds(hash(&e.member));
    Ok(PieceRead { entries: entries.into_iter().filter(lives_here).collect(), is_complete })
}

/// Members with scores, as `WITHSCORES` answers.
pub(super) fn read_scored(reply: Reply) -> Result<Vec<ScoredMember>> {
    let flat = reply.into_array()?;
    flat.chunks_exact(2)
        .map(|p| Ok(ScoredMember { member: p[0].bytes()?.into(), score: p[1].double()? }))
        .collect()
}

fn without_a_decision() -> Error {
    Error::internal("a change that follows from no decision was refused by one")
}

fn check_count(members: usize) -> Result<()> {
    if members > MEMBERS_MAX {
        return Err(Error::out_of_range(format!(
            "too many members: {members}; at most {MEMBERS_MAX} a call"
        )));
    }
    Ok(())
}
