//! The engine on a cluster that exists in memory only; rules of its protocols are taken out one by one, and missed.
//!
//! The sources of `tideline`, `tideline-router` and `tideline-model` are copied by build.rs into this crate, so that
//! tests see what is private there, and the tables in `rules/` can change them: a wrong way stands there, never in the
//! product.
#![cfg(test)]

mod abuse;
mod answered;
mod fences;
mod rules;
mod simulation;
mod table;

include!(concat!(env!("OUT_DIR"), "/lib.rs"));
