//! The one who asks, and what it may: applications, tokens, codes, the sessions of browsers at the log-in page.
//!
//! Not here: passwords and names (the engine's registration), and the calls that clients make (`crate::api`).
//! Invariants kept here: of a secret only a hash is stored, and nothing prints one; a code is used once; every token of
//! an account that lives is listed among its sessions.

pub(crate) mod application;
pub(crate) mod browser;
pub(crate) mod caller;
pub(crate) mod code;
pub(crate) mod era;
pub(crate) mod invitation;
pub(crate) mod link;
pub(crate) mod log_in;
pub(crate) mod newcomer;
pub(crate) mod secret;
pub mod service;
pub(crate) mod standing;
pub(crate) mod token;
