//! Chats: who is in one, who may write to it, opening and leaving it, and how far somebody has read.
//!
//! A chat is an account whose record names its members, for good. Of two there is one chat, whoever opens it: its id is
//! made of theirs. Who leaves blocks it and is blocked by it: the one ends what it reads, at once and on every
//! instance, the other what it writes, under the chat's graph stamp.

use std::sync::Arc;

use futures::future::{join_all, try_join};

use super::change::graph_stamp;
use super::toggles::{Toggle, toggle};
use crate::account::{Account, AccountKind, AccountState};
use crate::cluster::{Command, Epoch, Reply, Request};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::read_nonce;
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::keys::OwnKey;
use crate::nonce::Nonce;
use crate::post::NamedList;
use crate::sharded::{Order, PAGE_MAX, SortedSet};
use crate::stored::DELETED;
use crate::tenant::{Answers, Tenant, changed_always};

/// Accounts in a chat, with whoever opens it.
pub const CHAT_MEMBERS_MAX: usize = 50;
/// Members in one field of a record.
const MEMBERS_IN_FIELD: usize = 7;
/// Accounts above that are chats: so one is told from others at sight.
const CHAT_IDS_FROM: u64 = 1 << 62;
/// Tries to leave, or to come back, while the same account does the opposite.
const TRIES_MAX: usize = 16;
/// Chats of which an account's places are kept.
const PLACES_MAX: u64 = 2_000;
/// Places beyond that which are kept until they are cut again.
const PLACES_SLACK: u64 = 100;

/// Whether an account may be a chat, as far as its id tells.
pub(crate) fn may_be_chat(account: AccountId) -> bool {
    account.get() >= CHAT_IDS_FROM
}

/// The id that a chat of these members may have, the `n`th.
pub(crate) fn chat_id(tenant: &Tenant, members: &[AccountId], n: u8) -> Result<AccountId> {
    let named = members.iter().flat_map(|member| member.to_bytes());
    let bytes: Vec<u8> = b"chat".iter().copied().chain([n]).chain(named).collect();
    AccountId::new(tenant.tags().hash(&bytes) % CHAT_IDS_FROM + CHAT_IDS_FROM)
}

/// The id that a chat may have which its opener names by a token, the `n`th.
pub(crate) fn named_chat_id(tenant: &Tenant, opener: AccountId, token: &str, n: u8) -> Result<AccountId> {
    let bytes = [&b"call"[..], &[n], &opener.to_bytes(), token.as_bytes()].concat();
    AccountId::new(tenant.tags().hash(&bytes) % CHAT_IDS_FROM + CHAT_IDS_FROM)
}

/// The fields of a chat's record that name its members, who are in order.
pub(crate) fn member_fields(members: &[AccountId]) -> Vec<(&'static str, Vec<u8>)> {
    let parts =
        members.chunks(MEMBERS_IN_FIELD).map(|part| part.iter().flat_map(|id| id.to_bytes()).collect());
    RecordField::CHAT_MEMBERS.into_iter().zip(parts).collect()
}

/// A chat as its record tells.
#[derive(Debug, Clone)]
pub(crate) struct Chat {
    state: AccountState,
    stamp: Nonce,
    /// In order.
    pub(crate) members: Vec<AccountId>,
}

impl Chat {
    /// Looks at these; `None`: it is no chat, or it is gone.
    pub(crate) async fn of_many(tenant: &Tenant, chats: &[AccountId]) -> Result<Vec<Option<Self>>> {
        let fields = [RecordField::GRAPH_STAMP, RecordField::STATE, RecordField::KIND];
        let request = |chat: &AccountId| {
            let command = Command::new("HMGET").arg(&tenant.keys().account(*chat));
            let fields = fields.iter().chain(&RecordField::CHAT_MEMBERS);
            Request::read(tenant.slot(*chat), fields.fold(command, |command, field| command.arg(*field)))
        };
        let mut answers = Answers::of(tenant, chats.iter().map(request).collect()).await?;
        chats.iter().map(|_| Self::read(answers.next()?.into_values()?)).collect()
    }

    fn read(record: [Reply; 3 + RecordField::CHAT_MEMBERS.len()]) -> Result<Option<Self>> {
        let [stamp, state, kind, members @ ..] = record;
        if stamp.is_nil() || state.is_nil() || kind.is_nil() {
            return Ok(None);
        }
        let kind = AccountKind::from_letter(kind.bytes()?.first().copied().unwrap_or_default());
        let state = AccountState::parse(state.bytes()?);
        if kind != AccountKind::Chat || state == AccountState::Deleted {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(2);
        for part in members.iter().filter(|part| !part.is_nil()) {
            for member in part.bytes()?.as_chunks::<8>().0 {
                all.push(AccountId::from_bytes(member)?);
            }
        }
        Ok(Some(Self { state, stamp: read_nonce(&stamp)?, members: all }))
    }

    pub(crate) async fn of(tenant: &Tenant, chat: AccountId) -> Result<Option<Self>> {
        Ok(Self::of_many(tenant, &[chat]).await?.pop().flatten())
    }

    /// Looks at one that an account was put into, also if it has left.
    async fn ever_of(tenant: &Tenant, chat: AccountId, member: AccountId) -> Result<Self> {
        let found = Self::of(tenant, chat).await?.filter(|chat| chat.members.contains(&member));
        found.ok_or_else(|| no_chat(chat, member))
    }

    /// Looks at one that an account is in.
    pub(crate) async fn of_member(tenant: &Tenant, chat: AccountId, member: AccountId) -> Result<Self> {
        let found = Self::ever_of(tenant, chat, member).await?;
        // After its stamp: whoever leaves renews it.
        if tenant.is_blocked(chat, member).await? {
            return Err(no_chat(chat, member));
        }
        Ok(found)
    }

    /// In a chat of two, the other one. Who writes to itself is alone.
    fn other_of_two(&self, member: AccountId) -> Option<AccountId> {
        match self.members.as_slice() {
            [one, other] => [*one, *other].into_iter().find(|account| *account != member),
            _ => None,
        }
    }
}

/// The error for whoever isn't in a chat: it tells nothing of the chat.
fn no_chat(chat: AccountId, member: AccountId) -> Error {
    Error::new(ErrorKind::NotFound, format!("account {member} is in no chat {chat}"))
}

/// Under which of a chat's stamps somebody may write to it now: whoever writes compares it.
pub(crate) async fn may_write(tenant: &Tenant, chat: AccountId, writer: AccountId) -> Result<Nonce> {
    let (found, account) = try_join(Chat::of_member(tenant, chat, writer), tenant.existing(writer)).await?;
    let not_active = |text| Error::new(ErrorCode::NotActive, text);
    if !account.is_active() {
        return Err(not_active(format!("account {writer} is {}: it cannot write to chats", account.state)));
    }
    if !matches!(found.state, AccountState::Active | AccountState::Limited) {
        return Err(not_active(format!("chat {chat} is {}: nobody writes to it", found.state)));
    }
    if let Some(other) = found.other_of_two(writer) {
        may_meet(tenant, writer, other).await?;
    }
    Ok(found.stamp)
}

/// Refuses where one of two blocks the other, or the other one isn't there.
pub(crate) async fn may_meet(tenant: &Tenant, writer: AccountId, other: AccountId) -> Result<()> {
    let blocks = try_join(tenant.is_blocked(writer, other), tenant.is_blocked(other, writer));
    let (account, (own, others)) = try_join(tenant.known_to_others(other), blocks).await?;
    if own {
        let text = format!("account {writer} blocks account {other}: unblock it first");
        return Err(Error::new(ErrorCode::Blocked, text));
    }
    if others || !account.is_active() {
        // Which of the two it is isn't told.
        let text = format!(
            "account {writer} cannot write to account {other}, which is not active or takes no messages from it. \
             Nothing that account {writer} does changes that"
        );
        return Err(Error::new(ErrorCode::Blocked, text));
    }
    Ok(())
}

/// Leaves a chat for good; of two, until one opens it again. Tells who acknowledged it: the member's bucket and the
/// chat's.
pub(crate) async fn leave(graph: &Arc<Graph>, chat: AccountId, member: AccountId) -> Result<Vec<Epoch>> {
    Chat::ever_of(&graph.tenant, chat, member).await?;
    for _ in 0..TRIES_MAX {
        // H247: its own block first: what it reads goes by that, on every instance.
        let reads = toggle(graph, member, chat, Toggle::Block, true).await?;
        // H248: what it writes goes by the chat's stamp, which this renews.
        let writes = toggle(graph, chat, member, Toggle::Block, true).await?;
        // H257: it may have been opened again between.
        if graph.tenant.is_blocked(member, chat).await? {
            return Ok(vec![reads, writes]);
        }
    }
    Err(comes_and_goes(chat, member))
}

fn comes_and_goes(chat: AccountId, member: AccountId) -> Error {
    changed_always(ErrorKind::Unavailable, format_args!("whether account {member} is in chat {chat}"))
}

/// Comes back into a chat of two, if it was out. Tells who acknowledged that.
pub(crate) async fn come_back(graph: &Arc<Graph>, chat: AccountId, member: AccountId) -> Result<Vec<Epoch>> {
    let tenant = &graph.tenant;
    let (mut epochs, mut tries) = (Vec::new(), 0..TRIES_MAX);
    loop {
        tries.next().ok_or_else(|| comes_and_goes(chat, member))?;
        let blocks = try_join(tenant.is_blocked(chat, member), tenant.is_blocked(member, chat)).await?;
        for (by, of) in [(blocks.0, (chat, member)), (blocks.1, (member, chat))]
            .into_iter()
            .filter_map(|(is, of)| is.then_some(of))
        {
            epochs.push(toggle(graph, by, of, Toggle::Block, false).await?);
        }
        // H257: until both are gone: it may be leaving meanwhile.
        if blocks == (false, false) {
            break;
        }
    }
    // Whoever has come back before may have been told nothing yet.
    for of in [chat, member] {
        epochs.push(graph_stamp(tenant, of).await?.1);
    }
    Ok(epochs)
}

/// A kind of place that an account keeps in the chats that it is in: each with a message of it, as its place among the
/// ids of the chat's bucket. None ever goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatPlaces {
    /// Up to there it has read.
    Read,
    /// Up to there it has put the chat aside: a newer message brings it back.
    Hidden,
}

impl ChatPlaces {
    pub(crate) const ALL: [Self; 2] = [Self::Read, Self::Hidden];

    /// The set of an account's.
    pub(crate) fn of(self, tenant: &Tenant, account: AccountId) -> Result<SortedSet<AccountId>> {
        let name = match self {
            Self::Read => "chats-read",
            Self::Hidden => "chats-hidden",
        };
        Ok(tenant.sets().of_account(account, name)?.pinned())
    }
}

/// A chat's newest message, deleted or not.
async fn newest_of(tenant: &Tenant, chat: AccountId) -> Result<Option<PostId>> {
    let command = Command::new("LINDEX").arg(&tenant.keys().own(OwnKey::Outbox, chat)).arg("-1");
    let newest = tenant.router().call(Request::read(tenant.slot(chat), command)).await?;
    if newest.is_nil() {
        return Ok(None);
    }
    // Another length has the beginning, which says what has left.
    let stored = <[u8; 8]>::try_from(newest.bytes()?).ok().map(u64::from_be_bytes);
    stored.map(|stored| PostId::from_u64(stored & !DELETED)).transpose()
}

/// Notes how far a member has read, or put aside, a chat: up to a message. It never goes back, and not beyond what is
/// there.
pub(crate) async fn note_place(
    tenant: &Tenant,
    (member, places): (AccountId, ChatPlaces),
    chat: AccountId,
    upto: PostId,
) -> Result<Option<Epoch>> {
    let Some(newest) = newest_of(tenant, chat).await? else { return Ok(None) };
    let buckets = tenant.keys().buckets();
    let upto = upto.min(newest);
    if upto.bucket(buckets) != newest.bucket(buckets) {
        return Err(Error::invalid(format!("post {upto} is no message of chat {chat}")));
    }
    let set = places.of(tenant, member)?;
    // H249: a marker that comes late takes nothing back.
    let noted = set.add_greater(&[(chat, upto.place(buckets))]).await?;
    if noted.len > PLACES_MAX + PLACES_SLACK {
        forget_lowest(&set, noted.len - PLACES_MAX).await?;
    }
    Ok(noted.touched.epochs().first().cloned())
}

/// Forgets the places that are furthest back.
async fn forget_lowest(set: &SortedSet<AccountId>, many: u64) -> Result<()> {
    let many = usize::try_from(many).unwrap_or(PAGE_MAX).min(PAGE_MAX);
    let lowest = set.page(.., None, many, Order::Ascending).await?.entries;
    // One that has risen meanwhile stays.
    let lowest: Vec<_> = lowest.into_iter().map(|(chat, place)| (chat, place + 1.0)).collect();
    set.remove_below(&lowest).await.map(drop)
}

/// Refuses members of whom one isn't there, or nobody who writes.
pub(crate) async fn all_there(tenant: &Tenant, members: &[AccountId]) -> Result<()> {
    let asked = members.iter().map(|member| tenant.known_to_others(*member));
    for account in join_all(asked).await {
        let Account { id, kind, .. } = account?;
        if kind != AccountKind::Person {
            return Err(Error::invalid(format!("account {id} is a {kind}: nobody reads messages there")));
        }
    }
    Ok(())
}

/// The members of a chat that have left it: the chat blocks whoever has.
pub(super) async fn who_has_left(
    tenant: &Tenant,
    chat: AccountId,
    lists: &[NamedList],
) -> Result<Vec<AccountId>> {
    let members = lists.iter().filter_map(|list| match list {
        NamedList::Chats(member) => Some(*member),
        _ => None,
    });
    let members: Vec<AccountId> = members.collect();
    let left = tenant.blocks(chat)?.scores(&members).await?;
    Ok(members.into_iter().zip(left).filter_map(|(member, left)| left.map(|_| member)).collect())
}
