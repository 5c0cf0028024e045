//! A library of server-side functions that every primary must have.
//!
//! Its name follows from its code, so two releases run side by side on one cluster. It is loaded at start, and again
//! by itself when a node answers that it doesn't know a function: a new node, or one restored from old data.

use super::node::Node;
use super::wire::{Command, Reply, WireError};
use tideline_model::error::{Error, Result};

/// The code of a function library, with its `#!lua name=…` line.
#[derive(Debug, Clone)]
pub struct Library {
    name: String,
    code: String,
}

impl Library {
    /// A library called `name`; `body` is its Lua code without the first line.
    pub fn new(name: &str, body: &str) -> Self {
        Self { name: name.into(), code: format!("#!lua name={name}\n{body}") }
    }

    /// Makes sure that `node` has exactly this library.
    pub(crate) async fn ensure(&self, node: &Node) -> Result<()> {
        let list = Command::new("FUNCTION").arg("LIST").arg("LIBRARYNAME").arg(&self.name).arg("WITHCODE");
        let load = Command::new("FUNCTION").arg("LOAD").arg("REPLACE").arg(&self.code);
        if self.is_in(&self.call(node, list).await?) {
            return Ok(());
        }
        tracing::info!(node = %node.addr, library = self.name, "loading functions");
        self.call(node, load).await.map(drop)
    }

    fn is_in(&self, listed: &Reply) -> bool {
        // One library at most, as nested arrays of names and values; its code is among them, or it isn't.
        fn holds(reply: Reply, code: &str) -> bool {
            match reply.bytes() {
                Ok(bytes) => bytes == code.as_bytes(),
                Err(_) => reply.into_array().is_ok_and(|items| items.into_iter().any(|r| holds(r, code))),
            }
        }
        holds(listed.clone(), &self.code)
    }

    async fn call(&self, node: &Node, command: Command) -> Result<Reply> {
        let reply = node.ask([command]).await.map_err(|e| {
            let text = format!("functions at {}: {e}", node.addr);
            if let WireError::Refused(_) = e { Error::misconfigured(text) } else { Error::unavailable(text) }
        })?;
        let reply = reply.into_iter().next().ok_or_else(|| Error::internal("no reply to FUNCTION"))?;
        match reply.error() {
            None => Ok(reply),
            Some((code, rest)) => Err(self.refused(node, code, rest)),
        }
    }

    fn refused(&self, node: &Node, code: &str, rest: &str) -> Error {
        let said = format!("{} refuses function library {}: {code} {rest}", node.addr, self.name);
        match code {
            "NOPERM" => Error::misconfigured(format!(
                "{said}. The user needs `+function|load +function|list +fcall +fcall_ro`"
            )),
            "ERR" if rest.contains("unknown command") => Error::misconfigured(format!(
                "{said}. Redis 7.0 or Valkey 7.2 with functions enabled is needed"
            )),
            // A replica that we took for a primary, a server still loading: the caller tries again elsewhere.
            "READONLY" | "LOADING" | "MOVED" | "CLUSTERDOWN" | "OOM" | "BUSY" => Error::unavailable(said),
            _ => Error::internal(said),
        }
    }
}
