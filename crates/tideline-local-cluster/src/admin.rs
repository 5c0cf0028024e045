//! Management commands to single nodes, and the facts they tell.

use std::collections::HashMap;
use std::time::Duration;

use super::facts::{Facts, Live};
use super::spec::ClusterSpec;
use super::view::NodeView;
use tideline_model::error::{Error, Result};
use tideline_router::wire::{Command, Dialer, NodeAddr, Pipeline, Reply, TlsFiles, WireError};
use tideline_router::{Seed, ServerProgram};

/// A node that does not answer questions within this counts as silent.
const ASK_TIMEOUT: Duration = Duration::from_secs(1);
/// MIGRATE and SHUTDOWN take their time.
const ACT_TIMEOUT: Duration = Duration::from_secs(15);

/// Sends management commands to nodes.
///
/// Each call has a connection of its own: calls are few, and a kept connection would belong to the runtime
/// that opened it, while tests share a cluster between runtimes.
#[derive(Debug)]
pub(super) struct Admin {
    ask: Dialer,
    act: Dialer,
}

impl Admin {
    pub(super) fn new(spec: &ClusterSpec) -> Result<Self> {
        let seed = [Seed::from(url(spec, &NodeAddr::new("127.0.0.1", 1)))];
        let files = spec.tls.as_ref().map_or_else(TlsFiles::default, |tls| TlsFiles {
            ca: Some(tls.ca.clone()),
            certificate: Some(tls.certificate.clone()),
            key: Some(tls.key.clone()),
        });
        let dialer =
            |timeout| Dialer::from_urls(&seed, &files, ASK_TIMEOUT, timeout).map(|(dialer, _)| dialer);
        Ok(Self { ask: dialer(ASK_TIMEOUT)?, act: dialer(ACT_TIMEOUT)? })
    }

    /// Sends a command; an error reply is an error.
    pub(super) async fn act(&self, addr: &NodeAddr, command: Command) -> Result<Reply> {
        let shown = format!("{} at {addr}", describe(&command));
        let reply = async { self.act.dial(addr).await?.call(&command).await };
        let reply = reply.await.map_err(|e| Error::unavailable(format!("{shown}: {e}")))?;
        match reply.error() {
            Some((code, rest)) => {
                Err(Error::internal(format!("the command {shown} failed: the server answered {code} {rest}")))
            }
            None => Ok(reply),
        }
    }

    /// Asks the server to end; whether it does. An answer is a refusal: it ends without one.
    pub(super) async fn shut_down(&self, addr: &NodeAddr) -> bool {
        let Ok(wire) = self.act.dial(addr).await else { return false };
        matches!(wire.call(&Command::new("SHUTDOWN")).await, Err(WireError::Dropped(_)))
    }

    /// The facts that the node tells of itself and of the cluster.
    pub(super) async fn facts(&self, addr: &NodeAddr) -> Facts {
        self.try_facts(addr).await.unwrap_or_else(|e| Facts::Silent(e.to_string()))
    }

    async fn try_facts(&self, addr: &NodeAddr) -> Result<Facts> {
        let mut questions = Pipeline::with_capacity(3);
        let info = ["server", "persistence", "replication", "memory"];
        questions.push(&Command::new("INFO").args(info.iter().copied()));
        questions.push(&Command::new("CLUSTER").arg("INFO"));
        questions.push(&Command::new("CLUSTER").arg("NODES"));
        let replies = async { self.ask.dial(addr).await?.send(&questions).await };
        let replies = replies.await.map_err(|e| Error::unavailable(e.to_string()))?;
        let [info, state, nodes] = replies.as_slice() else {
            return Err(Error::internal(format!("{} replies to 3 commands", replies.len())));
        };
        let info = parse_info(answer(info)?);
        if info.get("loading").is_some_and(|loading| loading != "0") {
            return Ok(Facts::Loading);
        }
        let is_ok = parse_info(answer(state)?).get("cluster_state").is_some_and(|state| state == "ok");
        Ok(Facts::Live(Box::new(Live { is_ok, view: NodeView::parse(answer(nodes)?)?, info })))
    }

    /// The program that the server at `addr` runs, if it answers.
    pub(super) async fn program(&self, addr: &NodeAddr) -> Option<ServerProgram> {
        let wire = self.ask.dial(addr).await.ok()?;
        let mut program = ServerProgram::parse(&wire.call(&ServerProgram::command()).await.ok()?)?;
        program.look_again(&wire.call(&ServerProgram::second_command()).await.ok()?);
        Some(program)
    }

    /// The process id of the server at `addr`, if one answers; it may be anybody's.
    pub(super) async fn process_id(&self, addr: &NodeAddr) -> Option<u32> {
        let reply = self.ask.dial(addr).await.ok()?.call(&Command::new("INFO").arg("server")).await.ok()?;
        parse_info(reply.text().ok()?).get("process_id")?.parse().ok()
    }
}

/// The URL of a node, password included.
pub(super) fn url(spec: &ClusterSpec, addr: &NodeAddr) -> String {
    let scheme = if spec.tls.is_some() { "rediss" } else { "redis" };
    let password =
        spec.password.as_ref().map_or_else(String::new, |word| format!(":{}@", percent_encode(word)));
    format!("{scheme}://{password}{addr}")
}

fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// The first words of a command; never its last ones, where passwords stand.
fn describe(command: &Command) -> String {
    format!("{command:?}").split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn answer(reply: &Reply) -> Result<&str> {
    match reply.error() {
        Some((code, rest)) => Err(Error::unavailable(format!("{code} {rest}"))),
        None => reply.text(),
    }
}

fn parse_info(text: &str) -> HashMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_survive_the_way_through_a_url() {
        let spec = ClusterSpec::ephemeral().password("a/b@c:d é%");
        let url = url(&spec, &NodeAddr::new("127.0.0.1", 7000));
        assert_eq!(url, "redis://:a%2Fb%40c%3Ad%20%C3%A9%25@127.0.0.1:7000");
    }
}
