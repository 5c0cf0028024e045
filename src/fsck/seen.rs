//! Observations of looks, and derived relations: the types that each file of `relations` is made of.

use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};

use super::kind::FindingKind;
use super::{Deletions, FsckOptions};
use crate::bucket::Bucket;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::journal::Matter;
use crate::post::Post;
use crate::sharded::{LocalKey, Sight};
use crate::tenant::Tenant;

/// A derived relation at one place: what stands there because something else stands elsewhere. Or a place that leads to
/// many of them.
pub(super) trait Relation: Debug + Eq + Hash + Send + Sync + 'static {
    /// Looks at it in one go, without any lock. Finds all that is wrong with it.
    fn look(&self, tenant: &Tenant) -> impl Future<Output = Result<Observation>> + Send;

    /// Puts a deviation of it right, or has that done, unless what it is for has changed. Gives what should be looked
    /// at afterwards, besides itself.
    fn repair(
        &self,
        _graph: &Arc<Graph>,
        _found: &Deviation,
    ) -> impl Future<Output = Result<Vec<Unit>>> + Send {
        async { Err(left_alone()) }
    }
}

/// Means of a repair besides the engine's own ways, and who makes deletions again.
#[derive(Clone, Copy)]
pub(super) struct RepairMeans<'a> {
    pub(super) options: &'a FsckOptions,
    pub(super) deletions: &'a dyn Deletions,
}

pub(super) fn left_alone() -> Error {
    Error::internal("left to a person: nobody can tell what it should be")
}

/// A relation that is out of step. Two that are equal are the same one, seen twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Deviation {
    pub(super) kind: FindingKind,
    /// Where: what is looked at again to see whether it is there still, and knows how to put it right.
    pub(super) at: Unit,
    /// What tells it from another one of that kind there: whatever a change would change.
    pub(super) detail: Vec<u8>,
    /// What a reader of a report can look for.
    pub(super) told: String,
    /// Work that puts it right, or makes it look so.
    pub(super) excused_by: Vec<Matter>,
}

/// An observation of one thing: what is out of step, and what else must be looked at to tell.
#[derive(Debug, Default)]
pub(super) struct Observation {
    pub(super) deviations: Vec<Deviation>,
    pub(super) units: Vec<Unit>,
    /// What means something to other relations too.
    pub(super) read: Option<ReadData>,
    /// What only the archive could tell, and doesn't.
    pub(super) untold: u64,
}

/// Data that one look has read, and that mean something to several relations.
#[derive(Debug)]
pub(super) enum ReadData {
    /// An account's record; it is there, or (unconfirmed) still being registered.
    Record { account: AccountId, is_unconfirmed: bool, has_login: bool },
    /// A post of an account that is there.
    Post { id: PostId, post: Box<Post> },
    /// A local set, and what its pieces hold.
    Set { set: LocalKey, sight: Sight },
    /// Entries of a bucket's journal, by their ids: a look has no journal, which alone can read them.
    Journal { bucket: Bucket, entries: Vec<(Vec<u8>, Vec<u8>)> },
}

impl Observation {
    /// Nothing that is wrong by itself, but something to look at.
    pub(super) fn units<R: Relation>(units: impl IntoIterator<Item = R>) -> Self {
        Self { units: units.into_iter().map(Unit::of).collect(), ..Self::default() }
    }

    /// Adds how much of what was asked for only the archive could tell, and doesn't.
    pub(super) fn but_for(self, untold: u64) -> Self {
        Self { untold, ..self }
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.deviations.extend(other.deviations);
        self.units.extend(other.units);
        self.untold += other.untold;
        self
    }
}

impl<I: IntoIterator<Item = Deviation>> From<I> for Observation {
    fn from(deviations: I) -> Self {
        Self { deviations: deviations.into_iter().collect(), ..Self::default() }
    }
}

/// Something to look at, of whichever relation.
#[derive(Debug, Clone)]
pub(super) struct Unit(Arc<dyn AnyRelation>);

impl Unit {
    pub(super) fn of(relation: impl Relation) -> Self {
        Self(Arc::new(relation))
    }

    pub(super) async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        self.0.look_at(tenant).await
    }

    pub(super) async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        self.0.put_right(graph, found).await
    }

    /// The relation, if it is of that type.
    pub(super) fn downcast<R: Relation>(&self) -> Option<&R> {
        self.0.any().downcast_ref()
    }
}

/// A [`Relation`] whose type is forgotten.
trait AnyRelation: Debug + Send + Sync {
    fn look_at<'r>(&'r self, tenant: &'r Tenant) -> BoxFuture<'r, Result<Observation>>;
    fn put_right<'r>(
        &'r self,
        graph: &'r Arc<Graph>,
        found: &'r Deviation,
    ) -> BoxFuture<'r, Result<Vec<Unit>>>;
    fn any(&self) -> &dyn Any;
    fn is(&self, other: &dyn Any) -> bool;
    fn feed(&self, state: &mut dyn Hasher);
}

impl<R: Relation> AnyRelation for R {
    fn look_at<'r>(&'r self, tenant: &'r Tenant) -> BoxFuture<'r, Result<Observation>> {
        self.look(tenant).boxed()
    }

    fn put_right<'r>(
        &'r self,
        graph: &'r Arc<Graph>,
        found: &'r Deviation,
    ) -> BoxFuture<'r, Result<Vec<Unit>>> {
        self.repair(graph, found).boxed()
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        (TypeId::of::<R>(), self).hash(&mut state);
    }
}

impl PartialEq for Unit {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(other.0.any())
    }
}

impl Eq for Unit {}

impl Hash for Unit {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.feed(state);
    }
}
