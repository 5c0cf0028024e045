//! Push and pull, as stored after a round: whoever follows an account that is pulled must pull it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use tideline::Store;

use super::check::Wrong;
use super::facts::{Tri, Window};
use super::run::Run;
use super::setup::Setup;
use super::stored;

/// Accounts looked at side by side.
const AT_ONCE: usize = 16;
/// How long a change of mode may take that the policy has begun after all was drained.
const CHANGE_MAX: Duration = Duration::from_secs(30);

/// Holds modes and marks against each other. The policy goes on deciding meanwhile.
pub(crate) async fn compare(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let store = setup.store().await?;
    let accounts = run.world().accounts.clone();
    let looks = stream::iter(accounts).map(|account| compare_account(run, &store, account));
    let modes: Vec<anyhow::Result<(u64, Vec<u8>)>> = looks.buffer_unordered(AT_ONCE).collect().await;
    let modes: BTreeMap<u64, Vec<u8>> = modes.into_iter().collect::<anyhow::Result<_>>()?;
    run.note_modes(modes);
    Ok(())
}

/// An account's mode, after it was looked whether all its followers know.
async fn compare_account(run: &Arc<Run>, store: &Store, author: u64) -> anyhow::Result<(u64, Vec<u8>)> {
    let followers: BTreeSet<u64> = {
        let world = run.world();
        let now = run.now();
        let follows = |reader: &u64| world.is_following(*reader, author, Window { from: now, to: now });
        world.accounts.iter().copied().filter(|reader| follows(reader) == Tri::Yes).collect()
    };
    let since = Instant::now();
    loop {
        let mode = stored::mode(store, author).await?;
        match mode.first() {
            Some(b'L') => {
                let mut unaware = Vec::new();
                for reader in &followers {
                    if !stored::marks(store, *reader).await?.contains(&author) {
                        unaware.push(*reader);
                    }
                }
                // Else the policy has had it pushed again meanwhile.
                let is_same = stored::mode(store, author).await? == mode;
                for reader in unaware.into_iter().filter(|_| is_same) {
                    let text = format!("{author} is pulled, and its follower {reader} has no pull mark");
                    run.wrong_between(Wrong::Lost, (reader, author), text);
                }
                if is_same {
                    return Ok((author, mode));
                }
            }
            Some(b'Q') if since.elapsed() > CHANGE_MAX => {
                let text = format!("{author} is promoting for {CHANGE_MAX:?}, and nobody else does anything");
                run.wrong(Wrong::Stuck, author, None, text);
                return Ok((author, mode));
            }
            Some(b'Q') => {}
            _ => return Ok((author, mode)),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
