//! The rights of an engine's Redis user: what it lacks is told at start, not by the first publish that needs it.

use crate::cluster::Reply;
use crate::error::{Error, Result};
use crate::functions::rights_missing;
use crate::store::Store;

/// The commands that an engine needs on the tenant's keys, inside functions and beside them. docs/router.md lists the
/// same, and what is not about keys, which connecting needs.
const NEEDED: &str = "get set append expire hgetall hsetnx hmget bitfield_ro zscore zcount zrange zrangebyscore \
                      zrevrangebyscore unlink type del setrange getrange setbit bitfield zadd zrem zcard exists hdel \
                      hget hincrby hkeys hlen hrandfield hscan hset lindex llen lpos lpush lrange lrem lset ltrim \
                      mset rpush rpushx zmscore";

/// Asks every primary that answers, since each has users of its own.
///
/// [`Misconfigured`](crate::ErrorKind::Misconfigured): a right is missing, at the server that is named.
pub(super) async fn check(store: &Store) -> Result<()> {
    let asked = rights_missing(&store.keys().charter(), NEEDED.split_whitespace());
    for (addr, reply) in store.router().ask_primaries(&asked).await {
        // Who is away, or has lost its functions, is asked by whatever needs it.
        let Ok(missing) = reply.and_then(Reply::into_array) else { continue };
        let rights: Vec<String> =
            missing.iter().filter_map(|name| Some(format!("+{}", name.text().ok()?))).collect();
        if !rights.is_empty() {
            let (prefix, rights) = (store.keys().prefix(), rights.join(" "));
            return Err(Error::misconfigured(format!(
                "the Redis user of this engine may not do at {addr} what it needs on keys like `{prefix}{{…`: it lacks \
                 `{rights}`; docs/router.md lists all rights"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Commands that functions call, but for functions of fsck's own: docs/fsck.md lists what these need.
    #[test]
    fn every_command_of_every_function_is_on_the_list() {
        let code = crate::functions::code();
        let calls = ["redis.call('", "redis.pcall('"]
            .into_iter()
            .flat_map(|call| code.match_indices(call).map(move |(at, call)| at + call.len()));
        let called: BTreeSet<String> =
            calls.filter_map(|at| Some(code[at..].split('\'').next()?.to_lowercase())).collect();
        assert!(called.len() > 30, "{called:?}");
        let besides = ["linsert", "time"];
        let needed: BTreeSet<&str> = NEEDED.split_whitespace().chain(besides).collect();
        let missing: Vec<_> = called.iter().filter(|name| !needed.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_list_is_the_documented_one() {
        let page = include_str!("../../docs/router.md");
        let block = page.split("## Access rights").nth(1).and_then(|rest| rest.split("```").nth(1));
        let told = block.expect("a list of rights").lines().skip(3).flat_map(str::split_whitespace);
        let told: BTreeSet<&str> = told.filter_map(|right| right.strip_prefix('+')).collect();
        assert_eq!(told, NEEDED.split_whitespace().collect());
    }
}
