//! Homes as they are stored: entries in order of arrival, and the watermarks that say what they prove. Pure, but for
//! the commands that read them.

use super::merge::PageEntry;
use crate::cluster::{Command, Reply, Request};
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::stored::HOME_ENTRY_LEN;
use crate::tenant::Tenant;

/// The author of a watermark that counts.
const WHOLE: u64 = u64::MAX;
/// The top bit of the author says that an entry is a watermark.
const WATERMARK: u64 = 1 << 63;

/// An entry of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeEntry {
    Post(PageEntry),
    /// All entries before it have ids up to this.
    Watermark(u64),
    /// The same, in a home that is being filled: nothing is vouched for.
    Filling(u64),
}

impl HomeEntry {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let (Some((id, rest)), HOME_ENTRY_LEN) = (bytes.split_first_chunk::<8>(), bytes.len()) else {
            return Err(Error::internal(format!("a home's entry has 16 bytes, not {}", bytes.len())));
        };
        let id = u64::from_be_bytes(*id);
        let author = rest.try_into().map_or(WHOLE, u64::from_be_bytes);
        Ok(match author {
            WHOLE => Self::Watermark(id),
            nonce if nonce & WATERMARK != 0 => Self::Filling(id),
            author => Self::Post(PageEntry { id, author }),
        })
    }
}

/// Reads a home's entries.
pub(crate) fn parse(reply: Reply) -> Result<Vec<HomeEntry>> {
    let stored = reply.into_array()?;
    let mut entries = Vec::with_capacity(stored.len());
    for entry in &stored {
        entries.push(HomeEntry::parse(entry.bytes()?)?);
    }
    Ok(entries)
}

/// The posts that a home holds, as stored: id and author, in order of arrival.
pub(crate) async fn stored_posts(tenant: &Tenant, reader: AccountId) -> Result<Vec<(u64, u64)>> {
    let command = Command::new("LRANGE").arg(&tenant.keys().home(reader)).arg("0").arg("-1");
    let entries = parse(tenant.router().call(Request::read(tenant.slot(reader), command)).await?)?;
    Ok(window(&entries).posts.into_iter().map(|post| (post.id, post.author)).collect())
}

/// In which state a home is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HomeStatus {
    /// There is none: its reader is dormant.
    Missing,
    /// Somebody is filling it.
    Filling,
    /// It holds everything above this id that belongs there.
    Whole {
        /// The floor.
        #[serde(serialize_with = "crate::ids::as_text")]
        floor: u64,
    },
}

/// The state of a home, by all of its entries.
pub(super) fn status(entries: &[HomeEntry]) -> HomeStatus {
    match entries.first() {
        None => HomeStatus::Missing,
        Some(HomeEntry::Watermark(floor)) => HomeStatus::Whole { floor: *floor },
        // The first entry always is a watermark; if it isn't, nothing is proven.
        Some(HomeEntry::Filling(_) | HomeEntry::Post(_)) => HomeStatus::Filling,
    }
}

/// The state of a home, by what was answered to who asks for its first entry.
pub(super) fn status_by_first(reply: &Reply) -> Result<HomeStatus> {
    if reply.is_nil() { Ok(HomeStatus::Missing) } else { Ok(status(&[HomeEntry::parse(reply.bytes()?)?])) }
}

/// The last entries of a home, and what they prove.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) posts: Vec<PageEntry>,
    pub(super) proof: Proof,
}

/// The proof that a window gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// Everything from this id on is in the window.
    From(u64),
    /// No watermark stands in it: a look at the whole home tells.
    Nothing,
    /// There is no home, or it is being filled (every one of its watermarks says so).
    NotWhole,
}

/// Tells what the last entries of a home prove: everything above the first watermark among them.
pub(super) fn window(entries: &[HomeEntry]) -> Window {
    let watermark = entries.iter().find(|entry| !matches!(entry, HomeEntry::Post(_)));
    let proof = match watermark {
        Some(HomeEntry::Watermark(highest)) => Proof::From(highest.saturating_add(1)),
        Some(_) => Proof::NotWhole,
        None if entries.is_empty() => Proof::NotWhole,
        None => Proof::Nothing,
    };
    let post = |entry: &HomeEntry| if let HomeEntry::Post(post) = entry { Some(*post) } else { None };
    let mut posts: Vec<PageEntry> = Vec::with_capacity(entries.len());
    posts.extend(entries.iter().filter_map(post));
    // H2: a window proves by its first watermark.
    Window { posts, proof }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::home_entry;

    fn post(id: u64) -> HomeEntry {
        HomeEntry::Post(PageEntry { id, author: 7 })
    }

    #[test]
    fn a_window_is_complete_above_its_first_watermark_only() {
        // A late old entry stands at the window's beginning, a newer one before it: its oldest id proves nothing.
        let late = [post(3), post(9), HomeEntry::Watermark(9), post(12)];
        assert_eq!(window(&late).proof, Proof::From(10));
        assert_eq!(window(&late[..2]).proof, Proof::Nothing);
    }

    #[test]
    fn a_home_that_is_being_filled_vouches_for_nothing() {
        let filling = [post(90), HomeEntry::Filling(90), post(95), HomeEntry::Watermark(95)];
        assert_eq!(window(&filling).proof, Proof::NotWhole);
        assert_eq!(status(&filling[1..]), HomeStatus::Filling);
        assert_eq!((window(&[]).proof, status(&[])), (Proof::NotWhole, HomeStatus::Missing));
    }

    #[test]
    fn the_first_record_tells_a_home_s_state() {
        let first = |entry: &[u8]| status_by_first(&Reply::of_bytes(entry)).unwrap();
        assert_eq!(first(&home_entry(77, u64::MAX)), HomeStatus::Whole { floor: 77 });
        assert_eq!(first(&home_entry(77, 1 << 63)), HomeStatus::Filling);
        assert_eq!(status_by_first(&Reply::of_nil()).unwrap(), HomeStatus::Missing);
    }

    #[test]
    fn records_give_back_their_parts() {
        let entry = home_entry(77, 5);
        assert_eq!(HomeEntry::parse(&entry).unwrap(), HomeEntry::Post(PageEntry { id: 77, author: 5 }));
        assert_eq!(HomeEntry::parse(&home_entry(77, u64::MAX)).unwrap(), HomeEntry::Watermark(77));
        assert_eq!(HomeEntry::parse(&home_entry(77, 1 << 63)).unwrap(), HomeEntry::Filling(77));
        assert!(HomeEntry::parse(b"short").is_err());
    }
}
