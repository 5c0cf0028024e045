//! The viewpoint of a reader, by which all that is shown is shown.

use std::sync::Arc;

use super::Timelines;
use super::filter::PostFilter;
use crate::ids::AccountId;

/// A reader, and the filter of the service's own through which it reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Viewpoint<'a> {
    pub(crate) timelines: &'a Arc<Timelines>,
    pub(crate) filter: Option<&'a dyn PostFilter>,
    /// [`AccountId::NOBODY`]: a guest.
    pub(crate) reader: AccountId,
}
