//! Forms of values that serde doesn't know by itself: what has a text is that text, bytes are digits.
//!
//! Others store what is serialized: tests/public_types.rs keeps the forms. An enum whose variants may get fields one
//! day is an object with its `kind`; ids are strings, since no double holds them.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes what has a text as that.
pub(crate) fn to_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Reads what [`to_text`] wrote.
pub(crate) fn from_text<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

/// Gives types that have a text that form.
macro_rules! as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                crate::serialized::to_text(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
                crate::serialized::from_text(from)
            }
        }
    };
}
pub(crate) use as_text;

/// Reads what is there and may be `null`; with a default of `None` for what is not there.
pub(crate) fn some<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The caller's own bytes, two digits each.
pub(crate) mod as_hex {
    use serde::{Deserialize, Deserializer, Serializer};

    fn digits(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes<E: serde::de::Error>(digits: &str) -> Result<Vec<u8>, E> {
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        bytes.filter(|_| rest.is_empty()).ok_or_else(|| E::custom("bytes are two hexadecimal digits each"))
    }

    pub(crate) fn serialize<S: Serializer>(value: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&digits(value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        bytes(&String::deserialize(from)?)
    }

    /// Bytes by name, in their order.
    pub(crate) mod each {
        use serde::{Deserialize, Deserializer, Serializer};

        type Fields = Vec<(String, Vec<u8>)>;

        pub(crate) fn serialize<S: Serializer>(
            fields: &[(String, Vec<u8>)],
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(fields.iter().map(|(name, value)| (name, super::digits(value))))
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fields, D::Error> {
            let fields = Vec::<(String, String)>::deserialize(from)?;
            fields.into_iter().map(|(name, digits)| Ok((name, super::bytes(&digits)?))).collect()
        }
    }

    /// Bytes that may be missing: what is `None` is left out.
    pub(crate) mod maybe {
        use serde::{Deserializer, Serializer};

        type Bytes = Option<Vec<u8>>;

        pub(crate) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
            super::serialize(bytes.as_deref().unwrap_or_default(), serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
            super::deserialize(from).map(Some)
        }
    }

    /// Bytes by name that may be missing.
    pub(crate) mod maybe_each {
        use serde::{Deserializer, Serializer};

        type Fields = Option<Vec<(String, Vec<u8>)>>;

        pub(crate) fn serialize<S: Serializer>(fields: &Fields, serializer: S) -> Result<S::Ok, S::Error> {
            super::each::serialize(fields.as_deref().unwrap_or_default(), serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fields, D::Error> {
            super::each::deserialize(from).map(Some)
        }
    }
}
