//! The profile that an account shows of itself, as it is stored: 8 random bytes that change with each change, then
//! JSON. What a later release has put in stays. Registration writes it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
#[cfg(feature = "registration")]
use crate::nonce::Nonce;

/// Characters of a display name.
pub const DISPLAY_NAME_CHARS_MAX: usize = 100;
/// Characters of a bio.
pub const BIO_CHARS_MAX: usize = 5_000;
/// Bytes of the URL of a picture.
pub const PICTURE_BYTES_MAX: usize = 2_048;
/// Fields that show on a profile.
pub const PROFILE_FIELDS_MAX: usize = 16;
/// Characters of a field's name, and of its value.
pub const PROFILE_FIELD_CHARS_MAX: usize = 255;
/// Bytes of all the caller's own fields, names and values; and of all those that everybody gets.
pub const OWN_FIELDS_BYTES_MAX: usize = 4_096;

/// Bytes of what a later release has written, as JSON.
const LATER_BYTES_MAX: usize = 16 * 1_024;

/// A profile: what an account shows of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// The name that it calls itself by.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The text in which it describes itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bio: String,
    /// URL of its picture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub avatar: String,
    /// URL of the picture above its page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// Names and values that show on its page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// The caller's own, shown to nobody by the engine: what it posts with by default, say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own_fields: Vec<(String, String)>,
    /// The caller's own too, and everybody gets them: whether nobody sits behind the account, say. Each name once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown_fields: Vec<(String, String)>,
    /// What a later release has written.
    #[serde(flatten)]
    later: Map<String, Value>,
}

/// A change of a profile; `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ProfileUpdate {
    /// The name that the account calls itself by.
    pub display_name: Option<String>,
    /// The text in which it describes itself.
    pub bio: Option<String>,
    /// URL of its picture.
    pub avatar: Option<String>,
    /// URL of the picture above its page.
    pub header: Option<String>,
    /// Names and values that show on its page, all of them.
    pub fields: Option<Vec<(String, String)>>,
    /// The caller's own, all of them.
    pub own_fields: Option<Vec<(String, String)>>,
    /// Of the caller's own that everybody gets those that change: an empty value removes one, and those that aren't
    /// named stay.
    pub shown_fields: Vec<(String, String)>,
}

impl ProfileUpdate {
    /// Refuses what no profile can have, as `Invalid`: what is too long, or too much, whatever is there already.
    #[cfg(feature = "registration")]
    pub fn check(&self) -> Result<()> {
        Profile::default().updated(self).check()
    }
}

impl Profile {
    /// Bytes that it takes in memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        let Self { display_name, bio, avatar, header, fields, own_fields, shown_fields, later } = self;
        let texts: usize = [display_name, bio, avatar, header].map(String::len).iter().sum();
        let pair =
            |(name, value): &(String, String)| size_of::<(String, String)>() + name.len() + value.len();
        let pairs: usize = fields.iter().chain(own_fields).chain(shown_fields).map(pair).sum();
        // Of a later release: as it would be written.
        let later: usize = later.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
        size_of::<Self>() + texts + pairs + later
    }

    /// Refuses what is too long, as `Invalid`.
    pub fn check(&self) -> Result<()> {
        chars("display name", &self.display_name, DISPLAY_NAME_CHARS_MAX)?;
        chars("bio", &self.bio, BIO_CHARS_MAX)?;
        for (what, url) in [("avatar", &self.avatar), ("header", &self.header)] {
            if url.len() > PICTURE_BYTES_MAX {
                return Err(Error::out_of_range(format!(
                    "{what}: {} bytes; at most {PICTURE_BYTES_MAX} are allowed",
                    url.len()
                )));
            }
        }
        if self.fields.len() > PROFILE_FIELDS_MAX {
            return Err(Error::out_of_range(format!(
                "profile: {} fields; at most {PROFILE_FIELDS_MAX} are allowed",
                self.fields.len()
            )));
        }
        for (name, value) in &self.fields {
            chars("name of a field", name, PROFILE_FIELD_CHARS_MAX)?;
            chars("value of a field", value, PROFILE_FIELD_CHARS_MAX)?;
        }
        own("own fields", &self.own_fields)?;
        own("shown fields", &self.shown_fields)?;
        let later =
            serde_json::to_vec(&self.later).map_err(|e| Error::internal(format!("a profile: {e}")))?;
        if later.len() > LATER_BYTES_MAX {
            return Err(Error::out_of_range(format!(
                "fields that this release does not know: {} bytes; at most {LATER_BYTES_MAX} are allowed",
                later.len()
            )));
        }
        Ok(())
    }

    /// The part that everybody may see: what isn't known to be for all is not in it.
    pub(crate) fn for_all(self) -> Self {
        Self { own_fields: Vec::new(), later: Map::new(), ..self }
    }

    #[cfg(feature = "registration")]
    pub(crate) fn updated(mut self, update: &ProfileUpdate) -> Self {
        let texts = [
            (&mut self.display_name, &update.display_name),
            (&mut self.bio, &update.bio),
            (&mut self.avatar, &update.avatar),
            (&mut self.header, &update.header),
        ];
        for (text, new) in texts {
            new.as_ref().inspect(|new| text.clone_from(new));
        }
        for (fields, new) in [(&mut self.fields, &update.fields), (&mut self.own_fields, &update.own_fields)]
        {
            new.as_ref().inspect(|new| fields.clone_from(new));
        }
        for (name, value) in &update.shown_fields {
            self.shown_fields.retain(|(there, _)| there != name);
            if !value.is_empty() {
                self.shown_fields.push((name.clone(), value.clone()));
            }
        }
        self
    }

    #[cfg(feature = "registration")]
    pub(crate) fn stored(&self, random: &Nonce) -> Result<Vec<u8>> {
        let mut stored = random.to_vec();
        serde_json::to_writer(&mut stored, self).map_err(|e| Error::internal(format!("a profile: {e}")))?;
        Ok(stored)
    }

    /// Reads what was stored: the random bytes, and the profile.
    pub(crate) fn parse(stored: &[u8]) -> Result<(Vec<u8>, Self)> {
        let (random, json) = stored
            .split_first_chunk::<8>()
            .ok_or_else(|| Error::internal("a profile of less than 8 bytes"))?;
        let profile = serde_json::from_slice(json)
            .map_err(|e| Error::internal(format!("a stored profile can't be read: {e}")))?;
        Ok((random.to_vec(), profile))
    }
}

fn chars(what: &str, text: &str, most: usize) -> Result<()> {
    let chars = text.chars().count();
    if chars <= most {
        return Ok(());
    }
    Err(Error::out_of_range(format!("{what}: {chars} characters; at most {most} are allowed")))
}

fn own(what: &str, fields: &[(String, String)]) -> Result<()> {
    let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes <= OWN_FIELDS_BYTES_MAX && fields.len() <= OWN_FIELDS_BYTES_MAX / 8 {
        return Ok(());
    }
    Err(Error::out_of_range(format!(
        "{what}: {} with {bytes} bytes; at most {} with {OWN_FIELDS_BYTES_MAX} bytes are allowed",
        fields.len(),
        OWN_FIELDS_BYTES_MAX / 8
    )))
}

#[cfg(all(test, feature = "registration"))]
mod tests {
    use super::*;

    #[test]
    fn a_profile_gives_back_what_it_was_and_what_a_later_release_has_put_in() {
        let profile = Profile {
            display_name: "Ada \u{1f30a}".into(),
            fields: vec![("site".into(), "https://ada.example".into())],
            ..Profile::default()
        };
        let parse = Profile::parse;
        let (random, read) = parse(&profile.stored(&[7; 8]).unwrap()).unwrap();
        assert_eq!((random, read), (vec![7; 8], profile));
        let (_, later) = parse(b"12345678{\"bio\":\"hi\",\"pronouns\":[\"she\"]}").unwrap();
        assert_eq!(later.clone().for_all(), Profile { bio: "hi".into(), ..Profile::default() });
        let update = ProfileUpdate { bio: Some("ho".into()), ..ProfileUpdate::default() };
        let stored = later.updated(&update).stored(b"87654321").unwrap();
        assert_eq!(stored, b"87654321{\"bio\":\"ho\",\"pronouns\":[\"she\"]}");
        let shown = |name: &str, value: &str| ProfileUpdate {
            shown_fields: vec![(name.into(), value.into())],
            ..ProfileUpdate::default()
        };
        let profile = Profile::default().updated(&shown("bot", "1")).updated(&shown("hides", "1"));
        let profile = profile.updated(&shown("bot", "0")).updated(&shown("hides", ""));
        assert_eq!(profile.clone().for_all().shown_fields, [("bot".into(), "0".into())]);
        assert!(parse(b"1234").is_err() && parse(b"12345678{").is_err());
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let base = Profile::default;
        let long = |n: usize| "x".repeat(n + 1);
        let field = |n| vec![(String::new(), long(n))];
        let wrong = [
            Profile { display_name: long(DISPLAY_NAME_CHARS_MAX), ..base() },
            Profile { bio: long(BIO_CHARS_MAX), ..base() },
            Profile { avatar: long(PICTURE_BYTES_MAX), ..base() },
            Profile { header: long(PICTURE_BYTES_MAX), ..base() },
            Profile { fields: vec![Default::default(); PROFILE_FIELDS_MAX + 1], ..base() },
            Profile { fields: field(PROFILE_FIELD_CHARS_MAX), ..base() },
            Profile { own_fields: field(OWN_FIELDS_BYTES_MAX), ..base() },
            Profile { shown_fields: field(OWN_FIELDS_BYTES_MAX), ..base() },
            Profile { own_fields: vec![Default::default(); OWN_FIELDS_BYTES_MAX], ..base() },
            // What a caller has read from somebody else's JSON.
            Profile { later: Map::from_iter([("new".into(), long(LATER_BYTES_MAX).into())]), ..base() },
        ];
        for profile in wrong {
            assert!(profile.check().is_err(), "{profile:?}");
        }
        base().check().unwrap();
    }
}
