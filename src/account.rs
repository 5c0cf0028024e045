//! Accounts: as little as a timeline needs to know about them.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::ids::AccountId;
use crate::nonce::{Nonce, draw};
use crate::profile::Profile;

/// The kind of an account: what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AccountKind {
    /// Somebody.
    #[default]
    Person,
    /// Several who post together.
    Group,
    /// Posts of the service itself.
    Announcement,
    /// A chat: what its members write to each other lies with it ([`open_chat`](crate::Engine::open_chat)).
    Chat,
}

impl fmt::Display for AccountKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Person => "person",
            Self::Group => "group",
            Self::Announcement => "group of announcements",
            Self::Chat => "chat",
        })
    }
}

/// The state of an account: what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AccountState {
    /// Everything.
    #[default]
    Active,
    /// It posts, but only its followers see that.
    Limited,
    /// It neither posts nor is seen.
    Suspended,
    /// It is being deleted, or gone.
    Deleted,
    /// It is being registered: nobody has been told yet that there is such an account.
    Unconfirmed,
    /// It is registered, and has not been let in yet: it neither posts nor is seen.
    Waiting,
}

impl fmt::Display for AccountState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Limited => "limited",
            Self::Suspended => "suspended",
            Self::Deleted => "deleted",
            Self::Unconfirmed => "not registered yet",
            Self::Waiting => "not let in yet",
        })
    }
}

/// The mode of an account: how its posts reach its followers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They are delivered into the homes of its followers.
    #[default]
    Push,
    /// Still delivered, while followers are told to pull.
    Promoting,
    /// They stay in its outbox; readers pull them.
    Pull,
}

impl AccountKind {
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::Person => b'p',
            Self::Group => b'g',
            Self::Announcement => b'n',
            Self::Chat => b'c',
        }
    }

    /// Whether members post into it whom it has by their follows.
    pub fn is_group(self) -> bool {
        matches!(self, Self::Group | Self::Announcement)
    }

    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b'g' => Self::Group,
            b'n' => Self::Announcement,
            b'c' => Self::Chat,
            _ => Self::Person,
        }
    }
}

impl AccountState {
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::Active => b'a',
            Self::Limited => b'l',
            Self::Suspended => b's',
            Self::Deleted => b'd',
            Self::Unconfirmed => b'u',
            Self::Waiting => b'w',
        }
    }

    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b'a' => Self::Active,
            b'l' => Self::Limited,
            b'd' => Self::Deleted,
            b'u' => Self::Unconfirmed,
            b'w' => Self::Waiting,
            // What a later release may have written is treated with the most care.
            _ => Self::Suspended,
        }
    }

    /// Reads a record's field.
    pub(crate) fn parse(field: &[u8]) -> Self {
        Self::from_letter(field.first().copied().unwrap_or_default())
    }
}

impl Mode {
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::Push => b'P',
            Self::Promoting => b'Q',
            Self::Pull => b'L',
        }
    }

    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b'L' => Self::Pull,
            b'Q' => Self::Promoting,
            _ => Self::Push,
        }
    }

    /// As stored: a letter and random bytes, so that no two changes write the same.
    pub(crate) fn stored(self, random: Nonce) -> Vec<u8> {
        let mut stored = vec![self.letter()];
        stored.extend(random);
        stored
    }
}

/// An account, as its record tells. What is serialized is what everybody may know.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// The kind of account: what it stands for.
    pub kind: AccountKind,
    /// The state: what the account may do.
    pub state: AccountState,
    /// Follows need its approval.
    pub is_locked: bool,
    /// The mode in which its posts are delivered.
    #[serde(skip)]
    pub mode: Mode,
    /// The last post before pushing began: older ones were never delivered.
    #[serde(skip)]
    pub pushed_since: u64,
    /// Posts that are not deleted.
    pub posts: u64,
    /// The number of accounts that it follows.
    pub following: u64,
    /// The number of its followers: now, or once they are many at most a minute ago.
    pub followers: u64,
    /// The name that others call it by, if it was registered.
    pub login: Option<String>,
    /// The time at which it was registered or founded, in milliseconds since 1970, if that is known.
    pub registered_ms: Option<u64>,
    /// What it shows of itself, without `own_fields`: when it was looked up with `Registration::find`, and wherever an
    /// account is shown with [`shows_profiles`](crate::EngineSettings::shows_profiles).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<Profile>>,
    /// Since when (ms) its followers have not been summed up, though some have come or gone.
    #[serde(skip)]
    pub(crate) uncounted_since: Option<u64>,
    /// The number of accounts that it blocks.
    #[serde(skip)]
    pub blocks: u64,
    /// From how many it hides its posts.
    #[serde(skip)]
    pub hides: u64,
}

impl Account {
    /// Tells what it takes in memory, about.
    #[doc(hidden)]
    pub fn held_bytes(&self) -> usize {
        let login = self.login.as_ref().map_or(0, String::len);
        size_of::<Self>() + login + self.profile.as_ref().map_or(0, |profile| profile.held_bytes())
    }

    /// The account, unless it is a chat: that is nobody to follow, and has no page.
    pub(crate) fn no_chat(self) -> Result<Self> {
        match self.kind {
            AccountKind::Chat => {
                let text = format!("account {} is a chat, which cannot be followed and has no page", self.id);
                Err(Error::new(ErrorKind::NotFound, text))
            }
            _ => Ok(self),
        }
    }

    /// Whether there is such an account: not one that is deleted, nor one that is being registered.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.state, AccountState::Deleted | AccountState::Unconfirmed)
    }

    /// Whether others may know that there is such an account: nor one that waits to be let in.
    pub(crate) fn is_known_to_others(&self) -> bool {
        self.is_there() && self.state != AccountState::Waiting
    }

    /// Whether who asks to follow it needs no answer.
    pub(crate) fn needs_no_requests(&self) -> bool {
        self.is_there() && !self.is_locked
    }

    /// Whether it posts, follows, and is seen.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state, AccountState::Active | AccountState::Limited)
    }
}

/// An account that is to be created.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct NewAccount {
    /// Its id; `None`: one is allocated.
    pub id: Option<AccountId>,
    /// The kind of account: what it stands for.
    pub kind: AccountKind,
    /// Whether follows need its approval.
    pub is_locked: bool,
    /// The mode of its posts from the first one on. Anything but push counts as told by hand: no policy changes
    /// it.
    pub mode: Mode,
    /// The time at which it was registered or founded, in milliseconds since 1970; `None`: nobody says, and it never
    /// counts as new. A sign-up is registered now, and a group founded now, unless it says otherwise.
    pub registered_ms: Option<u64>,
}

impl NewAccount {
    /// Has the account be made at that time unless it says when it was.
    pub(crate) fn made_at(self, now_ms: u64) -> Self {
        Self { registered_ms: self.registered_ms.or(Some(now_ms)), ..self }
    }

    /// The fields of its record, with its first graph stamp.
    pub(crate) fn fields(&self, graph: Nonce) -> Vec<(&'static str, Vec<u8>)> {
        // First what every read asks for: a server looks through a small hash from its beginning.
        let mut fields = vec![
            (RecordField::GRAPH_STAMP, graph.to_vec()),
            (RecordField::MARKS_STAMP, draw().to_vec()),
            (RecordField::LAST_READ_DAY, b"0".to_vec()),
            (RecordField::STATE, vec![AccountState::Active.letter()]),
            (RecordField::KIND, vec![self.kind.letter()]),
        ];
        if self.is_locked {
            fields.push((RecordField::IS_LOCKED, b"1".to_vec()));
        }
        if self.mode != Mode::Push {
            // Nobody follows it yet, so nobody needs to be told first.
            fields.push((RecordField::MODE, Mode::Pull.stored(draw())));
            fields.push((RecordField::MODE_BY_HAND, vec![Mode::Pull.letter()]));
        }
        if let Some(at) = self.registered_ms {
            fields.push((RecordField::REGISTERED_AT, at.to_string().into_bytes()));
        }
        fields
    }
}

/// A change of an account; `None` stays as it is.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct AccountUpdate {
    /// The kind of account: what it stands for.
    pub kind: Option<AccountKind>,
    /// The state: what the account may do.
    pub state: Option<AccountState>,
    /// Whether follows need its approval.
    pub is_locked: Option<bool>,
}
