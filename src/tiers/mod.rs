//! Posts in memory, and posts in the archive: moving those that are due, bringing one back that somebody changes,
//! forgetting those that are deleted.
//!
//! Where a post lies is decided in its author's bucket alone: the outbox's floor says up to which id the archive has
//! all, and nothing leaves memory but what is there byte for byte as it was stored in the archive. Whoever changes what
//! the archive has of an account takes the next token in the account's bucket first. Reading: `tenant/archived.rs`, and
//! `below`.
//!
//! Invariants kept here: a post is in memory, or at or below its author's floor and in the archive, or in both, and
//! then memory counts; a post is acknowledged as deleted only once the archive has forgotten it on disk; and an archive
//! that lacks what it once had is never taken for one in which there is nothing.

mod accept;
mod begin;
mod below;
mod bounds;
mod bundle;
mod count;
mod due;
mod erase;
mod finish;
mod lists;
mod mover;
mod named;
mod settle;
mod store;
mod thaw;

pub(crate) use accept::{accept_lagging, accept_lagging_list, lagging, list_lags};
pub(crate) use below::{BelowAsk, below};
pub(crate) use bounds::{may_bring_back, thaw_to_edit};
pub(crate) use count::{archived_posts, half_deleted_posts, listed_posts};
pub(crate) use erase::{PostErasure, forget_buried, left_of_buried};
pub(crate) use finish::MovedPosts;
pub(crate) use lists::{
    ArchivedList, ListOf, MembershipQuestion, NewestAsk, archived_len, archived_score, are_listed, list_page,
    newest_archived, stored_list,
};
pub(crate) use mover::{AgendaWork, ListCut, move_all};
pub(crate) use named::{bucket_of, drop_listed, listed_beyond, note_list, store_listed, unlist};
pub(crate) use thaw::{recover, thaw, thaw_of, thaw_to_delete};
