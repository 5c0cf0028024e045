//! One account's timelines as they are stored: for people who want to know why a page looks as it does. Nothing here is
//! on the way of a read.

use serde::Serialize;

use super::home::{self, HomeEntry, HomeStatus};
use crate::cluster::{Command, Reply, Request};
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::reader::{read_stamps, stamps_request};
use crate::stored::DELETED;
use crate::tenant::{Answers, Tenant};

/// Entries and posts shown of each end.
const NEWEST: usize = 40;

/// An account's home, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredHome {
    /// Whether it is there, and from where on it is complete.
    pub status: HomeStatus,
    /// Its entries, watermarks included.
    #[serde(rename = "records")]
    pub entries: usize,
    /// Its list nodes, if the server tells: one is what it should be.
    pub list_nodes: Option<u64>,
    /// Bytes that it takes at its node, if the server tells.
    pub bytes: Option<u64>,
    /// The last entries, in the order of their arrival.
    pub newest: Vec<StoredHomeEntry>,
}

/// An entry of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredHomeEntry {
    /// A post that was delivered.
    Post {
        /// Its id.
        id: PostId,
        /// Who wrote it.
        author: AccountId,
    },
    /// Every entry before this one has an id up to this.
    Watermark(PostId),
    /// The same, in a home that is being filled: nothing is vouched for yet.
    Filling(PostId),
}

/// An account's own posts, as they are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredOutbox {
    /// Posts listed, deleted ones included.
    pub posts: u64,
    /// Posts up to this one were cut off: timelines no longer show them.
    pub cut_up_to: Option<PostId>,
    /// The newest, oldest first.
    pub newest: Vec<OutboxPost>,
}

/// A post in an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutboxPost {
    /// Its id.
    pub id: PostId,
    /// Whether it was deleted.
    pub is_deleted: bool,
}

/// The answer to one look at an account's own keys.
#[derive(Debug)]
pub(crate) struct StoredTimeline {
    pub(crate) home: StoredHome,
    pub(crate) outbox: StoredOutbox,
    /// Authors with a pull mark.
    pub(crate) pulls: Vec<AccountId>,
    pub(crate) last_read_day: Option<u32>,
}

/// Reads what is stored of an account's timelines: one trip, and a second one for what a server may not tell.
pub(crate) async fn stored(tenant: &Tenant, account: AccountId) -> Result<StoredTimeline> {
    let keys = tenant.keys();
    let (home, outbox) = (keys.home(account), keys.outbox(account));
    let range = |key: &Vec<u8>, from: i64| Command::new("LRANGE").arg(key).arg(from).arg("-1");
    let newest = i64::try_from(NEWEST).map_or(i64::MIN, |n| -n);
    let commands = [
        range(&home, 0),
        Command::new("LLEN").arg(&outbox),
        Command::new("LRANGE").arg(&outbox).arg("0").arg("0"),
        range(&outbox, newest),
        Command::new("HKEYS").arg(&keys.marks(account)),
    ];
    let slot = tenant.slot(account);
    let requests = commands.map(|command| Request::read(slot, command));
    let asked = [stamps_request(tenant, account)].into_iter().chain(requests);
    let mut answers = Answers::ordered(tenant, asked).await?;
    let (stamps, entries) = (answers.answer()?, home::parse(answers.next()?)?);
    let (listed, first, newest, marks) = (answers.next()?, answers.next()?, answers.next()?, answers.next()?);
    let pulls = marks.into_array()?;
    let pulls = pulls.iter().map(|id| AccountId::from_bytes(id.bytes()?));
    Ok(StoredTimeline {
        home: StoredHome {
            status: home::status(&entries),
            entries: entries.len(),
            list_nodes: list_nodes(tenant, slot, &home).await,
            bytes: told(tenant, slot, Command::new("MEMORY").arg("USAGE").arg(&home)).await,
            newest: entries[entries.len().saturating_sub(NEWEST)..].iter().filter_map(shown).collect(),
        },
        outbox: outbox_of(&listed, first, newest)?,
        pulls: pulls.collect::<Result<_>>()?,
        // The record of an account that is being deleted may have lost its stamps already; a new one's says day 0.
        last_read_day: read_stamps(account, stamps).ok().and_then(|stamps| stamps.day).filter(|day| *day > 0),
    })
}

fn shown(entry: &HomeEntry) -> Option<StoredHomeEntry> {
    let id = |id: u64| PostId::from_u64(id).ok();
    Some(match *entry {
        HomeEntry::Post(post) => {
            StoredHomeEntry::Post { id: id(post.id)?, author: AccountId::new(post.author).ok()? }
        }
        HomeEntry::Watermark(highest) => StoredHomeEntry::Watermark(id(highest)?),
        HomeEntry::Filling(highest) => StoredHomeEntry::Filling(id(highest)?),
    })
}

/// Lays an outbox out: its length, its first element, its last ones.
fn outbox_of(listed: &Reply, first: Reply, newest: Reply) -> Result<StoredOutbox> {
    // A first element of nine bytes is no post: a letter, and the id up to which posts were cut off; 0: none were.
    let first = first.into_array()?;
    let cut = first.first().and_then(|e| e.bytes().ok()?.split_first_chunk::<1>()?.1.try_into().ok());
    let cut_up_to = cut.map(u64::from_be_bytes).filter(|id| *id > 0).and_then(|id| PostId::from_u64(id).ok());
    let count = listed.count()? - u64::from(cut.is_some());
    let mut posts = Vec::new();
    for element in newest.into_array()? {
        let Ok(id) = <[u8; 8]>::try_from(element.bytes()?) else { continue };
        let id = u64::from_be_bytes(id);
        posts.push(OutboxPost { id: PostId::from_u64(id & !DELETED)?, is_deleted: id & DELETED != 0 });
    }
    Ok(StoredOutbox { posts: count, cut_up_to, newest: posts })
}

/// The number of list nodes that a list has: only DEBUG tells, which most servers forbid, unless it is one small list.
async fn list_nodes(tenant: &Tenant, slot: u16, list: &[u8]) -> Option<u64> {
    let ask = async |command: Command| tenant.router().call(Request::read(slot, command)).await.ok();
    let encoding = ask(Command::new("OBJECT").arg("ENCODING").arg(list)).await?;
    if encoding.text().ok()? == "listpack" {
        return Some(1);
    }
    let debug = ask(Command::new("DEBUG").arg("OBJECT").arg(list)).await?;
    debug.text().ok()?.split_once("ql_nodes:")?.1.split(' ').next()?.parse().ok()
}

/// A number that a server may keep for itself.
async fn told(tenant: &Tenant, slot: u16, command: Command) -> Option<u64> {
    tenant.router().call(Request::read(slot, command)).await.ok()?.count().ok()
}
