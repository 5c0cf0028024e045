//! Keys of a run, on whichever servers: found by what they begin with, and removed.

use std::collections::BTreeMap;

use tideline::bucket::SLOTS;
use tideline::cluster::{Command, NodeAddr, Request, Router};
use tideline::keys::slot_of_key;

const SCAN_COUNT: u64 = 1_000;
/// So often keys are looked for that have come since the last look.
const LOOKS_MAX: usize = 5;

/// A slot of each primary.
pub(crate) fn slots_of(router: &Router) -> BTreeMap<NodeAddr, u16> {
    (0..SLOTS).filter_map(|slot| Some((router.owner(slot)?, slot))).collect()
}

/// Does something with all keys that begin so on the node of that slot, some at a time.
pub(crate) async fn each(
    router: &Router,
    slot: u16,
    beginning: &str,
    work: &mut impl AsyncFnMut(Vec<Vec<u8>>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut cursor = b"0".to_vec();
    loop {
        let scan = Command::new("SCAN").arg(&cursor).arg("MATCH").arg(format!("{beginning}*"));
        let scan = Request::read(slot, scan.arg("COUNT").arg(SCAN_COUNT));
        let mut reply = router.call(scan).await?.into_array()?.into_iter();
        let (Some(next), Some(found)) = (reply.next(), reply.next()) else {
            anyhow::bail!("SCAN answered without a cursor");
        };
        next.bytes()?.clone_into(&mut cursor);
        let keys = found.into_array()?;
        work(keys.iter().map(|key| Ok(key.bytes()?.to_vec())).collect::<tideline::Result<_>>()?).await?;
        if cursor == b"0" {
            return Ok(());
        }
    }
}

/// Removes all keys that begin so, and tells how many. It looks again until there are none: of a run that was
/// interrupted some may have been on their way.
pub(crate) async fn remove(router: &Router, beginning: &str) -> anyhow::Result<u64> {
    assert!(!beginning.is_empty(), "without a prefix this would be everything");
    let mut removed = 0;
    for _ in 0..LOOKS_MAX {
        let before = removed;
        for slot in slots_of(router).values() {
            let mut unlink = async |keys: Vec<Vec<u8>>| {
                let one = |key: &Vec<u8>| Request::write(slot_of_key(key), Command::new("UNLINK").arg(key));
                for answer in router.run(keys.iter().map(one).collect()).await {
                    removed += answer?.ok()?.count()?;
                }
                Ok(())
            };
            each(router, *slot, beginning, &mut unlink).await?;
        }
        if removed == before {
            return Ok(removed);
        }
    }
    anyhow::bail!("more and more keys begin with `{beginning}`: a run that has them is still at work")
}
