//! Readers: whom they follow, mute (on which terms: `mute`), block and must pull (`state`), and what they have done
//! with posts (`ties`), each kept under random stamps that every change renews.
//!
//! Invariant kept here: what is remembered counts only while the stamps that a read began with are the ones that it was
//! read under.

mod mark;
mod mute;
mod readers;
mod state;
mod tie;
mod ties;

pub(crate) use mark::{NEW_MARK, is_new_mark};
pub(crate) use mute::MuteTerms;
pub(crate) use readers::Readers;
pub(crate) use state::{
    CurrentReader, ReaderState, Stamps, current, load_state, read_stamps, stamps, stamps_request,
};
pub(crate) use tie::Tie;
pub use ties::ReaderTies;
pub(crate) use ties::{Ties, look as look_at_ties, ties_with};
