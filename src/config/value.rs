//! Values that may stand behind a setting, whether written in the file or typed into an environment variable.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use toml::de::DeValue;

use crate::cluster::Seed;

/// Longest duration: clocks overflow at a mistyped one that is far longer.
const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A value, before it is known whether it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// `true` or `false`.
    Flag(bool),
    /// A list of strings.
    List(Vec<String>),
    /// Text of an environment variable: whatever its setting reads in it.
    Typed(String),
    /// What no setting takes.
    Other(&'static str),
}

impl Value {
    pub(super) fn of_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Boolean(flag) => Self::Flag(*flag),
            DeValue::Integer(number) => {
                let number = u64::from_str_radix(number.as_str().trim_start_matches('+'), number.radix());
                number.map_or(Self::Other("a negative or a huge number"), Self::Whole)
            }
            DeValue::Array(items) => {
                let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
                texts
                    .collect::<Option<_>>()
                    .map_or(Self::Other("a list of other things than strings"), Self::List)
            }
            DeValue::Float(_) => Self::Other("a fraction"),
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Table(_) => Self::Other("a table"),
        }
    }

    fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            Self::Typed(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Reads it as text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Typed(text) => Some(text),
            _ => None,
        }
    }

    /// Reads it as a list: typed, or as one string, with commas between the items.
    pub fn list(&self) -> Option<Vec<String>> {
        let split = |text: &str| {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        match self {
            Self::List(list) => Some(list.clone()),
            _ => self.text().map(split),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A seed that stands where it doesn't belong: no password is shown.
            Self::Text(text) | Self::Typed(text) if text.contains("://") => {
                write!(f, "{:?}", Seed::from(text))
            }
            Self::Text(text) | Self::Typed(text) => write!(f, "{text:?}"),
            Self::Whole(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(items) => f.debug_list().entries(items.iter().map(Seed::from)).finish(),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// A place for a value.
pub trait Setting {
    /// The values that may stand there, in words.
    fn allowed(&self) -> String;
    /// Puts a value there; `false`: it is none of those.
    fn set(&mut self, value: &Value) -> bool;
    /// Whether what stands there is shown to nobody, whatever it is.
    fn is_secret(&self) -> bool {
        false
    }
    /// The value that stands there.
    fn get(&self) -> Value;
}

/// Whole numbers, of any size.
pub(super) struct Number<'a, T>(pub(super) &'a mut T);

impl<T: Copy + TryFrom<u64> + TryInto<u64>> Setting for Number<'_, T> {
    fn allowed(&self) -> String {
        "a whole number".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        value.whole().and_then(|n| T::try_from(n).ok()).map(|n| *self.0 = n).is_some()
    }

    fn get(&self) -> Value {
        Value::Whole((*self.0).try_into().unwrap_or(u64::MAX))
    }
}

/// Whole numbers, or a word for none.
pub(super) struct NumberOrWord<'a, T>(pub(super) &'a mut Option<T>, pub(super) &'static str);

impl<T: Copy + TryFrom<u64> + TryInto<u64>> Setting for NumberOrWord<'_, T> {
    fn allowed(&self) -> String {
        format!("a whole number, or {:?}", self.1)
    }

    fn set(&mut self, value: &Value) -> bool {
        let found = match value.text() {
            Some(word) if word == self.1 => Some(None),
            _ => value.whole().and_then(|n| T::try_from(n).ok()).map(Some),
        };
        found.map(|n| *self.0 = n).is_some()
    }

    fn get(&self) -> Value {
        self.0.map_or_else(|| Value::Text(self.1.into()), |n| Value::Whole(n.try_into().unwrap_or(u64::MAX)))
    }
}

/// A value that has a text, or a word for none: which word, and what else may stand there.
pub(super) struct TextOrWord<'a, T>(pub(super) &'a mut Option<T>, pub(super) (&'static str, &'static str));

impl<T: FromStr + ToString> Setting for TextOrWord<'_, T> {
    fn allowed(&self) -> String {
        format!("{}, or {:?}", self.1.1, self.1.0)
    }

    fn set(&mut self, value: &Value) -> bool {
        let found = match value.text() {
            Some(word) if word == self.1.0 => Some(None),
            text => text.and_then(|text| text.parse().ok()).map(Some),
        };
        found.map(|found| *self.0 = found).is_some()
    }

    fn get(&self) -> Value {
        Value::Text(self.0.as_ref().map_or_else(|| self.1.0.into(), T::to_string))
    }
}

/// Durations, as whole numbers of the unit that ends the setting's name.
pub(super) struct Time<'a>(pub(super) &'a mut Duration, pub(super) ValueUnit);

/// A unit that a duration is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueUnit {
    /// `_ms`
    Milliseconds,
    /// `_s`
    Seconds,
}

impl Setting for Time<'_> {
    fn allowed(&self) -> String {
        format!("a whole number of {:?}, up to a year", self.1).to_lowercase()
    }

    fn set(&mut self, value: &Value) -> bool {
        let of = match self.1 {
            ValueUnit::Milliseconds => Duration::from_millis,
            ValueUnit::Seconds => Duration::from_secs,
        };
        value.whole().map(of).filter(|time| *time <= TIME_MAX).map(|time| *self.0 = time).is_some()
    }

    fn get(&self) -> Value {
        Value::Whole(match self.1 {
            ValueUnit::Milliseconds => u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX),
            ValueUnit::Seconds => self.0.as_secs(),
        })
    }
}

/// A setting that takes one of several words.
#[derive(Debug)]
pub struct WordChoice<'a, T: 'static>(pub &'a mut T, pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Setting for WordChoice<'_, T> {
    fn allowed(&self) -> String {
        let words: Vec<String> = self.1.iter().map(|(word, _)| format!("{word:?}")).collect();
        words.join(" or ")
    }

    fn set(&mut self, value: &Value) -> bool {
        let wanted = value.text();
        let choice = self.1.iter().find(|(word, _)| wanted == Some(word));
        choice.map(|(_, choice)| *self.0 = *choice).is_some()
    }

    fn get(&self) -> Value {
        let word = self.1.iter().find(|(_, choice)| choice == self.0).map_or("", |(word, _)| word);
        Value::Text(word.into())
    }
}

impl Setting for &mut bool {
    fn allowed(&self) -> String {
        "true or false".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        let flag = match value {
            Value::Flag(flag) => Some(*flag),
            Value::Typed(text) => text.parse().ok(),
            _ => None,
        };
        flag.map(|flag| **self = flag).is_some()
    }

    fn get(&self) -> Value {
        Value::Flag(**self)
    }
}

impl Setting for &mut String {
    fn allowed(&self) -> String {
        "a string".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        value.text().map(|text| text.clone_into(self)).is_some()
    }

    fn get(&self) -> Value {
        Value::Text(self.to_string())
    }
}

/// Several seeds.
impl Setting for &mut Vec<Seed> {
    fn allowed(&self) -> String {
        "a list of strings".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        let list = value.list();
        list.map(|list| **self = list.iter().map(Seed::from).collect()).is_some()
    }

    fn get(&self) -> Value {
        Value::List(self.iter().map(ToString::to_string).collect())
    }
}

/// Several strings.
impl Setting for &mut Vec<String> {
    fn allowed(&self) -> String {
        "a list of strings".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        value.list().map(|list| **self = list).is_some()
    }

    fn get(&self) -> Value {
        Value::List(self.to_vec())
    }
}

/// A file; the empty string for none.
impl Setting for &mut Option<PathBuf> {
    fn allowed(&self) -> String {
        "the path of a file, or \"\" for none".into()
    }

    fn set(&mut self, value: &Value) -> bool {
        let path = value.text().map(|text| (!text.is_empty()).then(|| text.into()));
        path.map(|path| **self = path).is_some()
    }

    fn get(&self) -> Value {
        Value::Text(self.as_ref().map_or_else(String::new, |path| path.display().to_string()))
    }
}
