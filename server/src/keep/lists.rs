//! The lists of an account: whom they have is written here, what they show is pulled when they are read.
//!
//! A member shows only while the owner follows it: reading leaves out everybody else, and an unfollow takes the member
//! off, so that following again doesn't bring it back.
//!
//! Whom exclusive lists have the owner leaves out of its home: that is a document that pages go by ([`LEFT_OUT`]), and
//! changes with the list, at once or not at all. Each change of an exclusive list writes it, so two of them see each
//! other.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tideline::document::{Document, IDS_MAX, IdList, LEFT_OUT};
use tideline::registration::DocumentChange;
use tideline::{AccountId, ErrorKind};

use super::documents;
use crate::app::App;
use crate::http::{Refusal, Timestamp};

/// Lists of an account.
pub(crate) const LISTS_MAX: usize = 50;
/// Members of a list.
pub(crate) const MEMBERS_MAX: usize = 500;
/// Members of all lists of an account: its documents have 256 KiB together, and sessions are among them.
pub(crate) const ALL_MEMBERS_MAX: usize = 5_000;
/// Letters of a title.
pub(crate) const TITLE_CHARS_MAX: usize = 256;

/// Prefix of the names of lists' documents.
const LIST: &str = "l:";

/// A choice of which replies of its members a list shows, beside those to its owner and to themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RepliesPolicy {
    /// Those to anybody whom the owner follows.
    Followed,
    /// Those to its members.
    #[default]
    List,
    /// None.
    None,
}

/// A list, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChosenList {
    pub(crate) title: String,
    pub(crate) replies: RepliesPolicy,
    /// Whether its members' posts are left out of the owner's home.
    pub(crate) exclusive: bool,
    /// The one that was added last comes first.
    pub(crate) members: Vec<AccountId>,
}

impl ChosenList {
    /// Refuses what no list may be.
    fn check(&self) -> Result<(), Refusal> {
        let chars = self.title.chars().count();
        match chars {
            0 => Err(Refusal::invalid("Title can't be blank")),
            _ if chars > TITLE_CHARS_MAX => {
                Err(Refusal::invalid(format!("Title is too long (maximum is {TITLE_CHARS_MAX} characters)")))
            }
            _ => Ok(()),
        }
    }
}

fn name_of(id: u64) -> String {
    format!("{LIST}{id}")
}

/// All lists of an account, with their ids, the oldest first.
pub(crate) async fn all(app: &App, owner: AccountId) -> Result<Vec<(u64, ChosenList)>, Refusal> {
    let named = documents::all::<ChosenList>(&app.registration, owner, LIST).await?;
    let mut lists: Vec<_> =
        named.into_iter().filter_map(|(id, list)| Some((id.parse().ok()?, list))).collect();
    lists.sort_unstable_by_key(|(id, _)| *id);
    Ok(lists)
}

/// A list of that account.
pub(crate) async fn get(app: &App, owner: AccountId, id: u64) -> Result<ChosenList, Refusal> {
    documents::get(&app.registration, owner, &name_of(id)).await?.ok_or_else(Refusal::not_found)
}

/// Makes a list; gives its id.
pub(crate) async fn create(app: &App, owner: AccountId, list: &ChosenList) -> Result<u64, Refusal> {
    list.check()?;
    if all(app, owner).await?.len() >= LISTS_MAX {
        return Err(Refusal::invalid(format!("You have {LISTS_MAX} lists already, which is the limit")));
    }
    // Of its owner's affair alone, and in order: the low bits keep two of one millisecond apart.
    let id = (Timestamp::now().0 << 16) | u64::from(rand::random::<u16>());
    let new = |is_there: Option<ChosenList>| match is_there {
        None => Ok(Some(list.clone())),
        Some(_) => Err(Refusal::new(StatusCode::CONFLICT, "There is such a list already; try again")),
    };
    change_with_home(app, owner, id, new).await?;
    Ok(id)
}

/// Makes of a list what `new` says, and leaves out of its owner's home whom exclusive lists have then.
async fn change_with_home(
    app: &App,
    owner: AccountId,
    id: u64,
    new: impl Fn(Option<ChosenList>) -> Result<Option<ChosenList>, Refusal> + Sync,
) -> Result<Option<ChosenList>, Refusal> {
    let name = name_of(id);
    for _ in 0..documents::TRIES_MAX {
        // In one look: lists that change after it, and whom they leave out, are compared.
        let all = app.registration.documents(owner).await?;
        let version =
            |name: &str| all.iter().find(|(other, _)| other == name).map(|(_, document)| document.version);
        let was = list_in(owner, &all, &name)?;
        let becomes = new(was.clone())?;
        check_room(owner, &all, (&name, was.as_ref(), becomes.as_ref()))?;
        let is_exclusive = [&was, &becomes].into_iter().flatten().any(|list| list.exclusive);
        let left_out = match is_exclusive {
            true => Some(left_out(owner, &all, (&name, becomes.as_ref()))?),
            false => None,
        };
        let json = becomes.as_ref().map(documents::json).transpose()?;
        let mut changes = vec![DocumentChange { name: &name, seen: version(&name), new: json.as_deref() }];
        if let Some(left_out) = &left_out {
            let new = left_out.as_deref();
            changes.push(DocumentChange { name: LEFT_OUT, seen: version(LEFT_OUT), new });
        }
        match app.registration.change_documents(owner, &changes).await {
            Ok(_) => return Ok(becomes),
            // Somebody else was first.
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(documents::contended().into())
}

/// Refuses a list that grows where all lists of its owner have too many members: an account whose documents are full
/// could not log in any more.
fn check_room(
    owner: AccountId,
    all: &[(String, Document)],
    (name, was, becomes): (&str, Option<&ChosenList>, Option<&ChosenList>),
) -> Result<(), Refusal> {
    let members = |list: Option<&ChosenList>| list.map_or(0, |list| list.members.len());
    if members(becomes) <= members(was) {
        return Ok(());
    }
    let mut many = members(becomes);
    for (other, _) in all.iter().filter(|(other, _)| other.starts_with(LIST) && other != name) {
        many += members(list_in(owner, all, other)?.as_ref());
    }
    match many > ALL_MEMBERS_MAX {
        true => Err(Refusal::invalid(format!(
            "All lists together have {ALL_MEMBERS_MAX} accounts at most; these would have {many}"
        ))),
        false => Ok(()),
    }
}

fn list_in(owner: AccountId, all: &[(String, Document)], name: &str) -> Result<Option<ChosenList>, Refusal> {
    let stored = all.iter().find(|(other, _)| other == name);
    Ok(stored.map(|(name, document)| documents::parse(owner, name, &document.bytes)).transpose()?)
}

/// The document of whom all exclusive lists leave out, once the one of that name is another; `None`: there is nobody.
fn left_out(
    owner: AccountId,
    all: &[(String, Document)],
    (changed, becomes): (&str, Option<&ChosenList>),
) -> Result<Option<Vec<u8>>, Refusal> {
    let mut accounts = BTreeSet::new();
    let mut add = |list: &ChosenList| {
        if list.exclusive {
            accounts.extend(list.members.iter().map(|member| member.get()));
        }
    };
    becomes.into_iter().for_each(&mut add);
    for (name, _) in all.iter().filter(|(name, _)| name.starts_with(LIST) && name != changed) {
        list_in(owner, all, name)?.iter().for_each(&mut add);
    }
    if accounts.len() > IDS_MAX {
        let many = accounts.len();
        return Err(Refusal::invalid(format!(
            "Exclusive lists have {IDS_MAX} accounts at most together; these would have {many}"
        )));
    }
    Ok((!accounts.is_empty()).then(|| IdList::of(accounts).to_bytes()))
}

/// Changes a list that is there.
pub(crate) async fn change(
    app: &App,
    owner: AccountId,
    id: u64,
    new: impl Fn(ChosenList) -> Result<ChosenList, Refusal> + Sync,
) -> Result<ChosenList, Refusal> {
    let changed = |list: Option<ChosenList>| {
        let list = new(list.ok_or_else(Refusal::not_found)?)?;
        list.check()?;
        Ok::<_, Refusal>(Some(list))
    };
    change_with_home(app, owner, id, changed).await?.ok_or_else(Refusal::not_found)
}

/// Adds members to a list, all or none.
pub(crate) async fn add(app: &App, owner: AccountId, id: u64, new: &[AccountId]) -> Result<(), Refusal> {
    let mut named = BTreeSet::new();
    let new: Vec<AccountId> = new.iter().copied().filter(|account| named.insert(account.get())).collect();
    let added = |mut list: ChosenList| {
        if new.iter().any(|account| list.members.contains(account)) {
            return Err(Refusal::invalid("Validation failed: Account has already been taken"));
        }
        list.members.splice(0..0, new.iter().copied());
        if list.members.len() > MEMBERS_MAX {
            return Err(Refusal::invalid(format!("A list has {MEMBERS_MAX} accounts at most")));
        }
        Ok(list)
    };
    change(app, owner, id, added).await.map(|_| ())
}

/// Takes members off a list; who isn't on it stays so.
pub(crate) async fn take_off(
    app: &App,
    owner: AccountId,
    id: u64,
    gone: &[AccountId],
) -> Result<(), Refusal> {
    let without = |mut list: ChosenList| {
        list.members.retain(|member| !gone.contains(member));
        Ok(list)
    };
    change(app, owner, id, without).await.map(|_| ())
}

/// Takes an account off all lists of somebody who doesn't follow it any more.
pub(crate) async fn take_off_all(app: &App, owner: AccountId, gone: AccountId) -> Result<(), Refusal> {
    for (id, list) in all(app, owner).await? {
        if list.members.contains(&gone) {
            match take_off(app, owner, id, &[gone]).await {
                Err(refusal) if refusal.status() != StatusCode::NOT_FOUND => return Err(refusal),
                // It was removed meanwhile.
                _ => {}
            }
        }
    }
    Ok(())
}

/// Removes a list.
pub(crate) async fn remove(app: &App, owner: AccountId, id: u64) -> Result<(), Refusal> {
    change_with_home(app, owner, id, |list| list.map(|_| None).ok_or_else(Refusal::not_found))
        .await
        .map(|_| ())
}
