//! The program `tideline serve`, as an operator runs it: processes of their own, spoken to over HTTP.
//!
//! `program` finds it, `server` is one that runs, `people` gets tokens. Not here: what is measured. Invariant kept
//! here: no server outlives this process, however that ends.

mod people;
mod program;
mod server;

pub(crate) use people::{Application, PASSWORD, refused};
pub(crate) use program::Program;
pub(crate) use server::{SiteServer, SiteSettings, metric};
