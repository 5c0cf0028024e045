//! Homes as they are stored: records in order of arrival, and the watermarks that say what they prove. Pure, but for
//! the commands that read them.

use super::merge::PageEntry;
use crate::cluster::{Command, Reply, Request};
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::stored::RECORD_LEN;
use crate::tenant::Tenant;

/// The author of a watermark that counts.
const WHOLE: u64 = u64::MAX;
/// The top bit of the author says that a record is a watermark.
const WATERMARK: u64 = 1 << 63;

/// A record of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    Post(PageEntry),
    /// All records before it have ids up to this.
    Watermark(u64),
    /// The same, in a home that is being filled: nothing is claimed.
    Filling(u64),
}

impl Record {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let (Some((id, rest)), RECORD_LEN) = (bytes.split_first_chunk::<8>(), bytes.len()) else {
            return Err(Error::internal(format!("a home's record has 16 bytes, not {}", bytes.len())));
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

/// Reads a home's records.
pub(crate) fn parse(reply: Reply) -> Result<Vec<Record>> {
    let stored = reply.into_array()?;
    let mut records = Vec::with_capacity(stored.len());
    for record in &stored {
        records.push(Record::parse(record.bytes()?)?);
    }
    Ok(records)
}

/// The posts that a home holds, as stored: id and author, in order of arrival.
pub(crate) async fn stored_posts(tenant: &Tenant, reader: AccountId) -> Result<Vec<(u64, u64)>> {
    let command = Command::new("LRANGE").arg(&tenant.keys().home(reader)).arg("0").arg("-1");
    let records = parse(tenant.router().call(Request::read(tenant.slot(reader), command)).await?)?;
    Ok(window(&records).posts.into_iter().map(|entry| (entry.id, entry.author)).collect())
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

/// The state of a home, by all of its records.
pub(super) fn status(records: &[Record]) -> HomeStatus {
    match records.first() {
        None => HomeStatus::Missing,
        Some(Record::Watermark(floor)) => HomeStatus::Whole { floor: *floor },
        // The first record always is a watermark; if it isn't, nothing is proven.
        Some(Record::Filling(_) | Record::Post(_)) => HomeStatus::Filling,
    }
}

/// The state of a home, by what was answered to who asks for its first record.
pub(super) fn status_by_first(reply: &Reply) -> Result<HomeStatus> {
    if reply.is_nil() { Ok(HomeStatus::Missing) } else { Ok(status(&[Record::parse(reply.bytes()?)?])) }
}

/// The last records of a home, and what they prove.
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

/// Tells what the last records of a home prove: everything above the first watermark among them.
pub(super) fn window(records: &[Record]) -> Window {
    let watermark = records.iter().find(|record| !matches!(record, Record::Post(_)));
    let proof = match watermark {
        Some(Record::Watermark(highest)) => Proof::From(highest.saturating_add(1)),
        Some(_) => Proof::NotWhole,
        None if records.is_empty() => Proof::NotWhole,
        None => Proof::Nothing,
    };
    let post = |record: &Record| if let Record::Post(entry) = record { Some(*entry) } else { None };
    let mut posts: Vec<PageEntry> = Vec::with_capacity(records.len());
    posts.extend(records.iter().filter_map(post));
    // H2: a window proves by its first watermark.
    Window { posts, proof }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::record_of;

    fn post(id: u64) -> Record {
        Record::Post(PageEntry { id, author: 7 })
    }

    #[test]
    fn a_window_is_complete_above_its_first_watermark_only() {
        // A late old entry stands at the window's beginning, a newer one before it: its oldest id proves nothing.
        let late = [post(3), post(9), Record::Watermark(9), post(12)];
        assert_eq!(window(&late).proof, Proof::From(10));
        assert_eq!(window(&late[..2]).proof, Proof::Nothing);
    }

    #[test]
    fn a_home_that_is_being_filled_claims_nothing() {
        let filling = [post(90), Record::Filling(90), post(95), Record::Watermark(95)];
        assert_eq!(window(&filling).proof, Proof::NotWhole);
        assert_eq!(status(&filling[1..]), HomeStatus::Filling);
        assert_eq!((window(&[]).proof, status(&[])), (Proof::NotWhole, HomeStatus::Missing));
    }

    #[test]
    fn the_first_record_tells_a_home_s_state() {
        let first = |record: &[u8]| status_by_first(&Reply::of_bytes(record)).unwrap();
        assert_eq!(first(&record_of(77, u64::MAX)), HomeStatus::Whole { floor: 77 });
        assert_eq!(first(&record_of(77, 1 << 63)), HomeStatus::Filling);
        assert_eq!(status_by_first(&Reply::of_nil()).unwrap(), HomeStatus::Missing);
    }

    #[test]
    fn records_give_back_their_parts() {
        let record = record_of(77, 5);
        assert_eq!(Record::parse(&record).unwrap(), Record::Post(PageEntry { id: 77, author: 5 }));
        assert_eq!(Record::parse(&record_of(77, u64::MAX)).unwrap(), Record::Watermark(77));
        assert_eq!(Record::parse(&record_of(77, 1 << 63)).unwrap(), Record::Filling(77));
        assert!(Record::parse(b"short").is_err());
    }
}
