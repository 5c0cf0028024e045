//! HTTP/1.1 as a load test speaks it: connections that stay open, one request after the other on each, at little cost.
//!
//! `request` are bytes as they go out, `connection` one connection, `clients` those that share the work. Not here: what
//! is asked. Invariant kept here: a connection on which an answer was not read to its end is never used again.

mod clients;
mod connection;
mod request;

pub(crate) use clients::Clients;
pub(crate) use connection::Answer;
pub(crate) use request::{Ask, Method};
