//! Replies as they come over the wire (RESP2), and how to read them.

use std::fmt;

use tideline_model::error::{Error, Result};

/// Longest line, bulk string and array that we believe; a server that sends more is not one.
const LINE_MAX: usize = 64 * 1024;
const BULK_MAX: usize = 512 * 1024 * 1024;
const ITEMS_MAX: usize = 16 * 1024 * 1024;
/// Bytes that a reply holds in itself.
const SHORT_MAX: usize = 22;
/// Deepest nesting of arrays.
const DEPTH_MAX: usize = 16;

/// A server's answer to one command, an error included.
#[derive(Clone, PartialEq)]
pub struct Reply(ReplyValue);

#[derive(Clone, PartialEq)]
#[cfg_attr(test, derive(Debug))]
enum ReplyValue {
    Nil,
    Int(i64),
    Line(Box<str>),
    /// Bytes that fit where the others have their pointers: ids, entries of homes, stamps. They cost no allocation.
    Short(u8, [u8; SHORT_MAX]),
    Bytes(Box<[u8]>),
    Array(Box<[Reply]>),
    Error(Box<str>),
}

impl ReplyValue {
    fn of_bytes(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_MAX];
        match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(bytes);
                Self::Short(length, short)
            }
            _ => Self::Bytes(bytes.into()),
        }
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Short(length, bytes) => bytes.get(..usize::from(*length)),
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The reason why bytes are no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GarbledReply(&'static str);

impl fmt::Display for GarbledReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server's reply is unreadable: {}", self.0)
    }
}

impl Reply {
    /// Reads one reply from the front of `buffer`; `None` until it is there as a whole. Also tells its length.
    pub(super) fn read(buffer: &[u8]) -> Result<Option<(Self, usize)>, GarbledReply> {
        Self::read_nested(buffer, 0)
    }

    fn read_nested(buffer: &[u8], depth: usize) -> Result<Option<(Self, usize)>, GarbledReply> {
        let Some(end) = line_end(buffer)? else { return Ok(None) };
        let (line, mut at) = (&buffer[1..end], end + 2);
        let value = match buffer[0] {
            b'+' => ReplyValue::Line(text(line).into()),
            b'-' => ReplyValue::Error(text(line).into()),
            b':' => ReplyValue::Int(number(line)?),
            b'$' => match length(line, BULK_MAX)? {
                None => ReplyValue::Nil,
                Some(length) => {
                    let Some(bytes) = buffer.get(at..at + length + 2) else { return Ok(None) };
                    at += length + 2;
                    ReplyValue::of_bytes(&bytes[..length])
                }
            },
            b'*' => match length(line, ITEMS_MAX)? {
                None => ReplyValue::Nil,
                Some(_) if depth >= DEPTH_MAX => return Err(GarbledReply("arrays nested too deeply")),
                Some(length) => {
                    let mut items = Vec::with_capacity(length.min(buffer.len() / 4 + 1));
                    for _ in 0..length {
                        let Some((item, used)) = Self::read_nested(&buffer[at..], depth + 1)? else {
                            return Ok(None);
                        };
                        items.push(item);
                        at += used;
                    }
                    ReplyValue::Array(items.into())
                }
            },
            _ => return Err(GarbledReply("an unknown type")),
        };
        Ok(Some((Self(value), at)))
    }

    /// The error line, if the server answered with one: its code (`MOVED`) and the rest.
    pub fn error(&self) -> Option<(&str, &str)> {
        match &self.0 {
            ReplyValue::Error(line) => Some(line.split_once(' ').unwrap_or((line, ""))),
            _ => None,
        }
    }

    /// Whether the server answered "nothing".
    pub fn is_nil(&self) -> bool {
        matches!(self.0, ReplyValue::Nil)
    }

    /// Reads the answer as an integer.
    pub fn int(&self) -> Result<i64> {
        match &self.0 {
            ReplyValue::Int(n) => Ok(*n),
            text => text.as_bytes().and_then(parse_text).ok_or_else(|| self.unlike("an integer")),
        }
    }

    /// Reads the answer as a count: an integer that is not negative.
    pub fn count(&self) -> Result<u64> {
        u64::try_from(self.int()?).map_err(|_| self.unlike("a count"))
    }

    /// Reads the answer as a floating-point number, as scores are.
    pub fn double(&self) -> Result<f64> {
        self.0.as_bytes().and_then(parse_text).ok_or_else(|| self.unlike("a number"))
    }

    /// Reads the answer as bytes.
    pub fn bytes(&self) -> Result<&[u8]> {
        match &self.0 {
            ReplyValue::Line(line) => Ok(line.as_bytes()),
            bytes => bytes.as_bytes().ok_or_else(|| self.unlike("a string")),
        }
    }

    /// Reads the answer as text.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.unlike("text"))
    }

    /// Takes the answer apart, which must be an array.
    pub fn into_array(self) -> Result<Vec<Reply>> {
        match self.0 {
            ReplyValue::Array(items) => Ok(items.into_vec()),
            _ => Err(self.unlike("an array")),
        }
    }

    /// Takes the answer apart, which must be an array of as many values as were asked for.
    pub fn into_values<const N: usize>(self) -> Result<[Reply; N]> {
        self.into_array()?.try_into().map_err(|values: Vec<Reply>| {
            Error::internal(format!("the server answered {} values where {N} were asked for", values.len()))
        })
    }

    fn unlike(&self, wanted: &str) -> Error {
        Error::internal(format!("the server answered {self:?} where {wanted} was expected"))
    }
}

/// Finds where the first line ends.
fn line_end(buffer: &[u8]) -> Result<Option<usize>, GarbledReply> {
    let searched = &buffer[..buffer.len().min(LINE_MAX)];
    match searched.iter().position(|b| *b == b'\r') {
        Some(0) => Err(GarbledReply("an empty line")),
        Some(end) if buffer.len() > end + 1 && buffer[end + 1] != b'\n' => {
            Err(GarbledReply("a line that does not end"))
        }
        Some(end) if buffer.len() > end + 1 => Ok(Some(end)),
        None if searched.len() == LINE_MAX => Err(GarbledReply("a line that is too long")),
        _ => Ok(None),
    }
}

fn number(line: &[u8]) -> Result<i64, GarbledReply> {
    // Nearly every number is a length: a few digits.
    let digits = |n: i64, digit: &u8| digit.is_ascii_digit().then(|| n * 10 + i64::from(digit - b'0'));
    match line {
        [_, ..] if line.len() <= 9 && line[0] != b'-' => line.iter().try_fold(0, digits),
        _ => parse_text(line),
    }
    .ok_or(GarbledReply("a number that is none"))
}

/// A length; -1 stands for "nothing".
fn length(line: &[u8], most: usize) -> Result<Option<usize>, GarbledReply> {
    match number(line)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= most => Ok(Some(length)),
            _ => Err(GarbledReply("a length out of bounds")),
        },
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

fn parse_text<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ReplyValue::Nil => f.write_str("nil"),
            ReplyValue::Int(n) => write!(f, "{n}"),
            ReplyValue::Line(line) => f.write_str(line),
            ReplyValue::Short(..) | ReplyValue::Bytes(_) => {
                write!(f, "\"{}\"", self.0.as_bytes().unwrap_or_default().escape_ascii())
            }
            ReplyValue::Array(items) => f.debug_list().entries(items).finish(),
            ReplyValue::Error(line) => write!(f, "-{line}"),
        }
    }
}

/// For tests of what reads replies.
#[doc(hidden)]
impl Reply {
    pub fn server_error(line: &str) -> Self {
        Self(ReplyValue::Error(line.into()))
    }

    pub fn of_nil() -> Self {
        Self(ReplyValue::Nil)
    }

    pub fn of_int(number: i64) -> Self {
        Self(ReplyValue::Int(number))
    }

    pub fn of_line(line: &str) -> Self {
        Self(ReplyValue::Line(line.into()))
    }

    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(ReplyValue::of_bytes(bytes))
    }

    pub fn of_items(items: Vec<Self>) -> Self {
        Self(ReplyValue::Array(items.into()))
    }

    pub fn text_of(text: &str) -> Self {
        Self(ReplyValue::of_bytes(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = ReplyValue> {
        let leaf = prop_oneof![
            Just(ReplyValue::Nil),
            any::<i64>().prop_map(ReplyValue::Int),
            "[a-zA-Z ]{0,20}".prop_map(|s| ReplyValue::Line(s.into())),
            "[A-Z]{1,9} [a-z:0-9]{0,20}".prop_map(|s| ReplyValue::Error(s.into())),
            any::<Vec<u8>>().prop_map(|b| ReplyValue::of_bytes(&b)),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            proptest::collection::vec(inner.prop_map(Reply), 0..6)
                .prop_map(|items| ReplyValue::Array(items.into()))
        })
    }

    fn encode(value: &ReplyValue, to: &mut Vec<u8>) {
        match value {
            ReplyValue::Nil => to.extend(b"$-1\r\n"),
            ReplyValue::Int(n) => to.extend(format!(":{n}\r\n").bytes()),
            ReplyValue::Line(line) => to.extend(format!("+{line}\r\n").bytes()),
            ReplyValue::Error(line) => to.extend(format!("-{line}\r\n").bytes()),
            ReplyValue::Short(..) | ReplyValue::Bytes(_) => {
                let bytes = value.as_bytes().unwrap();
                to.extend(format!("${}\r\n", bytes.len()).bytes());
                to.extend(bytes.iter());
                to.extend(b"\r\n");
            }
            ReplyValue::Array(items) => {
                to.extend(format!("*{}\r\n", items.len()).bytes());
                items.iter().for_each(|item| encode(&item.0, to));
            }
        }
    }

    proptest! {
        #[test]
        fn a_reply_is_read_once_it_is_there_as_a_whole(value in value(), behind: Vec<u8>) {
            let mut encoded = Vec::new();
            encode(&value, &mut encoded);
            for cut in 0..encoded.len() {
                prop_assert_eq!(Reply::read(&encoded[..cut]), Ok(None));
            }
            let length = encoded.len();
            encoded.extend(behind);
            prop_assert_eq!(Reply::read(&encoded), Ok(Some((Reply(value), length))));
        }

        #[test]
        fn reading_never_panics(bytes: Vec<u8>) {
            let _ = Reply::read(&bytes);
        }

        #[test]
        fn reading_what_looks_like_a_reply_never_panics(text in "[+$*:\\-0-9\\r\\n]{0,40}") {
            let _ = Reply::read(text.as_bytes());
        }
    }

    #[test]
    fn lengths_that_no_server_sends_are_refused_before_anything_is_allocated() {
        for text in ["$99999999999\r\n", "*999999999\r\n", "$-2\r\n", ":x\r\n", "?\r\n", "\r\n", "+a\rb"] {
            assert!(Reply::read(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(Reply::read("*1\r\n".repeat(100).as_bytes()).is_err());
    }
}
