//! The server's own data in the engine, beside posts and accounts: documents of accounts, and what stands in them;
//! tickets, which are found by a secret.

pub(crate) mod documents;
pub(crate) mod languages;
pub(crate) mod lists;
pub(crate) mod markers;
pub(crate) mod pins;
pub(crate) mod posts;
pub(crate) mod role;
pub(crate) mod tickets;
pub(crate) mod usual;
