//! Accounts: as little as a timeline needs to know about them.

use crate::cluster::Reply;
use crate::context::draw;
use crate::error::{Error, Result};
use crate::functions::Mark;
use crate::ids::AccountId;
use crate::profile::Profile;

/// What an account stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
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
}

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
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
}

/// How an account's posts reach its followers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
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
        }
    }

    fn from_letter(letter: u8) -> Self {
        match letter {
            b'g' => Self::Group,
            b'n' => Self::Announcement,
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
        }
    }

    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b'a' => Self::Active,
            b'l' => Self::Limited,
            b'd' => Self::Deleted,
            b'u' => Self::Unconfirmed,
            // What a later release may have written is treated with the most care.
            _ => Self::Suspended,
        }
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
    pub(crate) fn stored(self, random: Mark) -> Vec<u8> {
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
    /// What it stands for.
    pub kind: AccountKind,
    /// What it may do.
    pub state: AccountState,
    /// Follows need its approval.
    pub is_locked: bool,
    /// How its posts are delivered.
    #[serde(skip)]
    pub mode: Mode,
    /// The last post before pushing began: older ones were never delivered.
    #[serde(skip)]
    pub pushed_since: u64,
    /// Posts that are not deleted.
    pub posts: u64,
    /// How many it follows.
    pub following: u64,
    /// How many follow it: now, or once they are many at most a minute ago.
    pub followers: u64,
    /// What it is called by others, if it was registered.
    pub login: Option<String>,
    /// When it was registered, in milliseconds since 1970, if it was.
    pub registered_ms: Option<u64>,
    /// What it shows of itself, without `own_fields`: when it was looked up with `Registration::find`, and wherever an
    /// account is shown with [`shows_profiles`](crate::EngineSettings::shows_profiles).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<Profile>>,
    /// Since when (ms) its followers have not been summed up, though some have come or gone.
    #[serde(skip)]
    pub(crate) uncounted_since: Option<u64>,
    /// How many it blocks.
    #[serde(skip)]
    pub blocks: u64,
    /// From how many it hides its posts.
    #[serde(skip)]
    pub hides: u64,
}

impl Account {
    /// The fields of a record, in the order in which [`parse`](Self::parse) takes them.
    pub(crate) const FIELDS: [&str; 13] =
        ["s", "k", "l", "m", "b", "p", "nf", "nb", "nh", "nr", "nd", "un", "at"];

    /// Reads what HMGET of the fields answered; `None`: there is no such account.
    pub(crate) fn parse(id: AccountId, reply: Reply) -> Result<Option<Self>> {
        let fields = reply.into_array()?;
        let [
            state,
            kind,
            lock,
            mode,
            pushed,
            posts,
            following,
            blocks,
            hides,
            followers,
            uncounted,
            login,
            at,
        ] = fields.as_slice()
        else {
            return Err(Error::internal(format!("the record of account {id} has other fields: {fields:?}")));
        };
        if state.is_nil() {
            return Ok(None);
        }
        let letter = |reply: &Reply| reply.bytes().ok().and_then(|b| b.first().copied()).unwrap_or_default();
        let number = |reply: &Reply| reply.int().ok().and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        let pushed_since = pushed.bytes().ok().and_then(|b| b.try_into().ok()).map_or(0, u64::from_be_bytes);
        Ok(Some(Self {
            id,
            kind: AccountKind::from_letter(letter(kind)),
            state: AccountState::from_letter(letter(state)),
            is_locked: letter(lock) == b'1',
            mode: Mode::from_letter(letter(mode)),
            pushed_since,
            posts: number(posts),
            following: number(following),
            followers: number(followers),
            uncounted_since: uncounted.text().ok().and_then(|told| told.split_once(' ')?.0.parse().ok()),
            login: login.text().ok().map(str::to_owned),
            registered_ms: at.count().ok(),
            profile: None,
            blocks: number(blocks),
            hides: number(hides),
        }))
    }

    /// The same with what everybody may see of its profile, as that was answered. One that can't be read says nothing:
    /// no page fails for that.
    pub(crate) fn with_profile(self, reply: &Reply) -> Self {
        let profile = Profile::parse(reply).map(|(_, profile)| profile.for_all()).unwrap_or_else(|e| {
            tracing::warn!("the profile of account {}: {e}", self.id);
            Profile::default()
        });
        Self { profile: Some(Box::new(profile)), ..self }
    }

    /// Whether there is such an account: not one that is deleted, nor one that is being registered.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.state, AccountState::Deleted | AccountState::Unconfirmed)
    }

    /// Whether it posts, follows, and is seen.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state, AccountState::Active | AccountState::Limited)
    }
}

/// A new account.
#[derive(Debug, Clone, Default)]
pub struct NewAccount {
    /// Its id; `None`: one is allocated.
    pub id: Option<AccountId>,
    /// What it stands for.
    pub kind: AccountKind,
    /// Whether follows need its approval.
    pub is_locked: bool,
    /// How its posts are delivered from the first one on. Anything but push counts as told by hand: no policy changes it.
    pub mode: Mode,
}

impl NewAccount {
    /// The fields of its record, with its first graph stamp.
    pub(crate) fn fields(&self, graph: Mark) -> Vec<(&'static str, Vec<u8>)> {
        // First what every read asks for: a server looks through a small hash from its beginning.
        let mut fields = vec![
            ("g", graph.to_vec()),
            ("t", draw().to_vec()),
            ("d", b"0".to_vec()),
            ("s", vec![AccountState::Active.letter()]),
            ("k", vec![self.kind.letter()]),
        ];
        if self.is_locked {
            fields.push(("l", b"1".to_vec()));
        }
        if self.mode != Mode::Push {
            // Nobody follows it yet, so nobody needs to be told first.
            fields.push(("m", Mode::Pull.stored(draw())));
            fields.push(("mf", vec![Mode::Pull.letter()]));
        }
        fields
    }
}

/// What changes about an account; `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct AccountUpdate {
    /// What it stands for.
    pub kind: Option<AccountKind>,
    /// What it may do.
    pub state: Option<AccountState>,
    /// Whether follows need its approval.
    pub is_locked: Option<bool>,
}
