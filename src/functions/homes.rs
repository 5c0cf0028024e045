//! Homes: delivering, tidying, filling, sweeping.

use super::fcall;
use super::tenant::{Grounds, push_grounds};
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};
use crate::ids::AccountId;

/// A watermark follows about every so many entries.
const GROUP: u32 = 16;

/// Bytes that a list node spends on an entry, and on itself (a listpack's header and end, and what Redis leaves as
/// a margin when it decides whether one more entry fits).
const ENTRY_BYTES: u32 = 18;
const NODE_OVERHEAD: u32 = 31;

/// The lengths of homes: what the functions need to keep them within their list node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HomeFit {
    /// At this length the front is cut.
    cut_at: u32,
    /// So many entries stay.
    kept: u32,
    /// More entries than this don't fit into one node.
    node_max: u32,
    /// What all this follows from.
    grounds: Grounds,
}

impl HomeFit {
    /// Homes that guarantee `posts` posts, on these grounds, on servers with this `list-max-listpack-size`.
    pub(crate) fn new(posts: u32, list_size: i64, grounds: Grounds) -> Self {
        // Their watermarks, one more for a group that was left short, and the floor.
        let kept = posts + posts.div_ceil(GROUP - 1) + 2;
        // A due length, and a whole group more than what stays: the cut finds a watermark right where it looks first,
        // and those that follow stand where `is_due` wants them. A cut that shifted them would give the home more
        // watermarks than it needs, and have each cut search for one.
        let cut_at = (kept + GROUP - 1).next_multiple_of(GROUP) + 1;
        let fits = match u32::try_from(list_size) {
            Ok(entries) => entries,
            // -1 to -5: 4 kB, doubled with each step.
            Err(_) => ((2048 << list_size.unsigned_abs().min(5)) - NODE_OVERHEAD) / ENTRY_BYTES,
        };
        let node_max = if cut_at < fits { fits } else { u32::MAX };
        Self { cut_at, kept, node_max, grounds }
    }

    /// Whether a home that was made so long is due for a watermark: these stand a group apart from the floor on, where
    /// they come at once.
    pub(crate) fn is_due(length: u64) -> bool {
        length > 0 && length.is_multiple_of(u64::from(GROUP))
    }

    /// More entries than a home has for longer than a moment: it is cut with the first delivery that is due beyond
    /// `cut_at`, and what the next one brings is cut then.
    pub(crate) fn most(self) -> u64 {
        match self.grounds {
            Grounds::Nothing => u64::from(u32::MAX),
            Grounds::Decision(_) | Grounds::Own => u64::from(self.cut_at + 4 * GROUP),
        }
    }

    /// Up to this length a home is not cut.
    pub(crate) fn uncut(self) -> u64 {
        u64::from(self.cut_at - 1)
    }

    /// Whether homes stay within one list node.
    pub(crate) fn is_one_node(self) -> bool {
        self.node_max != u32::MAX
    }

    /// Entries as they stand behind a home's first one: sorted, so each watermark has the id of the one before it. It
    /// is done here because a server does it ten times slower.
    fn with_watermarks(entries: impl IntoIterator<Item = [u8; 16]>) -> Vec<[u8; 16]> {
        let mut laid_out: Vec<[u8; 16]> = Vec::new();
        for entry in entries {
            laid_out.push(entry);
            // The first entry of the home isn't among them.
            if Self::is_due(laid_out.len() as u64 + 1) {
                let mut watermark = [0xff; 16];
                watermark[..8].copy_from_slice(&entry[..8]);
                laid_out.push(watermark);
            }
        }
        laid_out
    }

    pub(super) fn push(self, command: Command) -> Command {
        push_grounds(command.arg(self.cut_at).arg(self.kept).arg(self.node_max), Some(self.grounds))
    }
}

/// Gives a home a watermark, and cuts it if it is too long.
pub(crate) fn home_tidy(home: Vec<u8>, fit: HomeFit) -> Command {
    fit.push(fcall("home_tidy", &[home]))
}

/// Delivers an entry to the homes of all members of a piece; answers as [`VisitAnswer`](super::VisitAnswer).
/// `leaf`: piece and depth; `None` for a small set.
pub(crate) fn home_deliver(
    set: Vec<u8>,
    piece: Vec<u8>,
    leaf: Option<(u32, u32)>,
    home_head: &[u8],
    entry: &[u8; 16],
    fit: HomeFit,
) -> Command {
    let command = super::sets::leaf_args(fcall("home_deliver", &[set, piece]), leaf);
    fit.push(command.arg(home_head).arg(entry))
}

/// Delivers an entry to the homes of those accounts, all of one bucket, that follow its author; answers as
/// [`VisitAnswer`](super::VisitAnswer). `home`: of the first of them; `head`: what all keys of the bucket begin with.
pub(crate) fn home_deliver_to(
    home: Vec<u8>,
    head: &[u8],
    author: AccountId,
    entry: &[u8; 16],
    fit: HomeFit,
    accounts: &[AccountId],
) -> Command {
    let command = fcall("home_deliver_to", &[home]).arg(head).arg(&author.to_bytes()).arg(entry);
    accounts.iter().fold(fit.push(command), |command, account| command.arg(&account.to_bytes()))
}

/// The answer of a home that somebody wants to fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillAnswer {
    /// Fill it with this nonce, ours or that of who began.
    Fill([u8; 8]),
    Whole,
    NoAccount,
}

/// Creates a home that is to be filled, or joins a fill that is under way.
pub(crate) fn home_begin(
    record: Vec<u8>,
    home: Vec<u8>,
    days: Vec<u8>,
    nonce: &[u8; 8],
    account: &[u8; 8],
    day: u32,
) -> Command {
    fcall("home_begin", &[record, home, days]).arg(nonce).arg(account).arg(day)
}

impl FillAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        match reply.as_slice() {
            [word, nonce] if word.bytes()? == b"fill" => {
                let nonce = nonce.bytes()?.try_into();
                Ok(Self::Fill(nonce.map_err(|_| Error::internal("a nonce has 8 bytes"))?))
            }
            [word] if word.bytes()? == b"whole" => Ok(Self::Whole),
            [word] if word.bytes()? == b"gone" => Ok(Self::NoAccount),
            _ => Err(super::unexpected("home_begin", &reply)),
        }
    }
}

/// Writes the home that was being filled: everything above `floor` is among the entries, which are sorted.
pub(crate) fn home_finish(
    home: Vec<u8>,
    nonce: &[u8; 8],
    floor: u64,
    fit: HomeFit,
    entries: impl IntoIterator<Item = [u8; 16]>,
) -> Command {
    let command = fit.push(fcall("home_finish", &[home]).arg(nonce).arg(&floor.to_be_bytes()));
    let laid_out = HomeFit::with_watermarks(entries);
    laid_out.into_iter().fold(command, |command, entry| command.arg(&entry))
}

/// Drops a home if that fill is still under way.
pub(crate) fn home_drop(home: Vec<u8>, nonce: &[u8; 8]) -> Command {
    fcall("home_drop", &[home]).arg(nonce)
}

/// Drops the home of an account that has not read after `day`, on these grounds; `None`: somebody says so by hand.
pub(crate) fn home_sweep(
    days: Vec<u8>,
    home: Vec<u8>,
    account: &[u8; 8],
    day: u32,
    grounds: Option<Grounds>,
) -> Command {
    push_grounds(fcall("home_sweep", &[days, home]).arg(account).arg(day), grounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_of_400_stay_within_one_node_of_8_kb_with_room_for_late_deliveries() {
        let fit = HomeFit::new(400, -2, Grounds::Decision(1));
        assert!(fit.is_one_node());
        assert!(fit.node_max >= fit.cut_at + 4, "{fit:?}");
        assert!(!HomeFit::new(1000, -2, Grounds::Decision(1)).is_one_node());
        assert!(HomeFit::new(1000, -4, Grounds::Decision(1)).is_one_node());
        assert!(!HomeFit::new(400, 128, Grounds::Decision(1)).is_one_node());
    }

    #[test]
    fn a_home_that_is_written_anew_has_a_watermark_in_every_group() {
        let entry = |id: u64| {
            let mut entry = [0; 16];
            entry[..8].copy_from_slice(&id.to_be_bytes());
            entry
        };
        let laid_out = HomeFit::with_watermarks((1..=400).map(entry));
        let watermarks: Vec<usize> = (0..laid_out.len()).filter(|i| laid_out[*i][8..] == [0xff; 8]).collect();
        assert!(
            watermarks.windows(2).all(|pair| pair[1] - pair[0] == 16) && watermarks[0] == 15,
            "{watermarks:?}"
        );
        assert!(watermarks.iter().all(|i| laid_out[*i][..8] == laid_out[*i - 1][..8]));
        assert_eq!(laid_out.len() - watermarks.len(), 400);
    }

    #[test]
    fn a_cut_home_holds_what_it_guarantees_and_its_watermarks_where_they_belong() {
        for posts in 1..1200 {
            let fit = HomeFit::new(posts, -2, Grounds::Decision(1));
            assert!(HomeFit::is_due(u64::from(fit.cut_at - 1)));
            assert!((16..32).contains(&(fit.cut_at - fit.kept)));
            // A floor, and a watermark behind each 15 posts.
            assert!(fit.kept - fit.kept.div_ceil(16) >= posts);
        }
    }
}
