//! What a server holds: keys with values, and the commands on them that the engine and its functions use.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{bits, lists, zsets};

pub(super) type Bytes = Vec<u8>;

/// A value, of one of four types.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(Bytes),
    List(Vec<Bytes>),
    Hash(BTreeMap<Bytes, Bytes>),
    Zset(BTreeMap<Bytes, f64>),
}

/// What a command answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Out {
    Nil,
    Int(i64),
    Line(&'static str),
    Bulk(Bytes),
    Items(Vec<Out>),
}

/// An answer, or the server's error line.
pub(super) type Done = Result<Out, String>;

/// All keys of one bucket. A copy costs as much as there are keys: values are shared until they change.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Data(BTreeMap<Rc<[u8]>, Rc<Value>>);

pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Makes the accessors of one type: look, and change (which creates what is missing).
macro_rules! typed {
    ($look:ident, $change:ident, $variant:ident, $type:ty) => {
        pub(super) fn $look(&self, key: &[u8]) -> Result<Option<&$type>, String> {
            match self.0.get(key).map(Rc::as_ref) {
                None => Ok(None),
                Some(Value::$variant(value)) => Ok(Some(value)),
                Some(_) => Err(WRONG_TYPE.into()),
            }
        }

        pub(super) fn $change(&mut self, key: &[u8]) -> Result<&mut $type, String> {
            if !self.0.contains_key(key) {
                self.0.insert(key.into(), Rc::new(Value::$variant(Default::default())));
            }
            match self.0.get_mut(key).map(Rc::make_mut) {
                Some(Value::$variant(value)) => Ok(value),
                _ => Err(WRONG_TYPE.into()),
            }
        }
    };
}

impl Data {
    typed!(text, text_mut, Text, Bytes);
    typed!(list, list_mut, List, Vec<Bytes>);
    typed!(hash, hash_mut, Hash, BTreeMap<Bytes, Bytes>);
    typed!(zset, zset_mut, Zset, BTreeMap<Bytes, f64>);

    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        self.0.remove(key).is_some()
    }

    pub(super) fn set(&mut self, key: &[u8], value: Value) {
        self.0.insert(key.into(), Rc::new(value));
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Rc::as_ref)
    }

    fn kind(&self, key: &[u8]) -> &'static str {
        match self.0.get(key).map(Rc::as_ref) {
            None => "none",
            Some(Value::Text(_)) => "string",
            Some(Value::List(_)) => "list",
            Some(Value::Hash(_)) => "hash",
            Some(Value::Zset(_)) => "zset",
        }
    }

    /// A container that has become empty is gone.
    pub(super) fn tidy_up(&mut self, key: &[u8]) {
        let is_empty = match self.0.get(key).map(Rc::as_ref) {
            Some(Value::List(value)) => value.is_empty(),
            Some(Value::Hash(value)) => value.is_empty(),
            Some(Value::Zset(value)) => value.is_empty(),
            _ => false,
        };
        if is_empty {
            self.0.remove(key);
        }
    }

    /// Runs one command. `TIME` and functions are the caller's.
    pub(super) fn run(&mut self, arguments: &[&[u8]]) -> Done {
        let [name, rest @ ..] = arguments else { return Err("ERR no command".into()) };
        match (*name, rest) {
            (b"DEL" | b"UNLINK", keys) => Ok(count(keys.iter().filter(|key| self.remove(key)).count())),
            (b"EXISTS", keys) => Ok(count(keys.iter().filter(|key| self.has(key)).count())),
            (b"TYPE", [key]) => Ok(Out::Line(self.kind(key))),
            (b"GET", [key]) => Ok(bulk(self.text(key)?)),
            (b"SET", [key, value, ..]) => {
                self.set(key, Value::Text(value.to_vec()));
                Ok(Out::Line("OK"))
            }
            (b"MSET", pairs) if pairs.len() % 2 == 0 => {
                pairs.chunks_exact(2).for_each(|pair| self.set(pair[0], Value::Text(pair[1].to_vec())));
                Ok(Out::Line("OK"))
            }
            _ => match name.first() {
                Some(b'A' | b'G' | b'S' | b'B') => bits::run(self, name, rest),
                Some(b'H') => hash(self, name, rest),
                Some(b'Z') => zsets::run(self, name, rest),
                _ => lists::run(self, name, rest),
            },
        }
    }
}

fn hash(data: &mut Data, name: &[u8], rest: &[&[u8]]) -> Done {
    let get = |data: &Data, key: &[u8], field: &[u8]| {
        Ok::<_, String>(data.hash(key)?.and_then(|h| h.get(field).cloned()))
    };
    let (key, rest) = rest.split_first().ok_or("ERR wrong number of arguments")?;
    match (name, rest) {
        (b"HGET", [field]) => Ok(bulk(get(data, key, field)?.as_ref())),
        (b"HMGET", fields) => fields
            .iter()
            .map(|f| Ok(bulk(get(data, key, f)?.as_ref())))
            .collect::<Result<_, _>>()
            .map(Out::Items),
        (b"HLEN", []) => Ok(count(data.hash(key)?.map_or(0, BTreeMap::len))),
        (b"HKEYS", []) => Ok(Out::Items(
            data.hash(key)?.into_iter().flat_map(BTreeMap::keys).cloned().map(Out::Bulk).collect(),
        )),
        // So many at most; those that are drawn are the first ones here.
        (b"HRANDFIELD", [most, b"WITHVALUES"]) => {
            let all = flat(data.hash(key)?);
            Ok(Out::Items(all.into_iter().take(2 * number::<usize>(most)?).collect()))
        }
        (b"HGETALL", []) => Ok(Out::Items(flat(data.hash(key)?))),
        (b"HSCAN", [..]) => Ok(Out::Items(vec![Out::Bulk(b"0".into()), Out::Items(flat(data.hash(key)?))])),
        (b"HSET", pairs) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
            let hash = data.hash_mut(key)?;
            let before = hash.len();
            pairs.chunks_exact(2).for_each(|p| drop(hash.insert(p[0].into(), p[1].into())));
            Ok(count(hash.len() - before))
        }
        (b"HSETNX", [field, value]) => {
            if get(data, key, field)?.is_some() {
                return Ok(Out::Int(0));
            }
            data.hash_mut(key)?.insert(field.to_vec(), value.to_vec());
            Ok(Out::Int(1))
        }
        (b"HDEL", fields) => {
            if data.hash(key)?.is_none() {
                return Ok(Out::Int(0));
            }
            let hash = data.hash_mut(key)?;
            let removed = fields.iter().filter(|f| hash.remove(**f).is_some()).count();
            data.tidy_up(key);
            Ok(count(removed))
        }
        (b"HINCRBY", [field, by]) => {
            let hash = data.hash_mut(key)?;
            let now = hash.get(*field).map_or(Ok(0), |v| number::<i64>(v))? + number::<i64>(by)?;
            hash.insert(field.to_vec(), now.to_string().into_bytes());
            Ok(Out::Int(now))
        }
        _ => Err(unknown(name)),
    }
}

fn flat(hash: Option<&BTreeMap<Bytes, Bytes>>) -> Vec<Out> {
    hash.into_iter().flatten().flat_map(|(f, v)| [Out::Bulk(f.clone()), Out::Bulk(v.clone())]).collect()
}

pub(super) fn unknown(name: &[u8]) -> String {
    format!("ERR the simulation doesn't know {}, or not with these arguments", name.escape_ascii())
}

pub(super) fn bulk(value: Option<&Bytes>) -> Out {
    value.map_or(Out::Nil, |value| Out::Bulk(value.clone()))
}

pub(super) fn count(n: usize) -> Out {
    Out::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

pub(super) fn number<T: std::str::FromStr>(text: &[u8]) -> Result<T, String> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.parse().ok())
        .ok_or_else(|| "ERR value is not a number".into())
}

/// A range as commands name it, ends included, negative from the end; as (first, how many).
pub(super) fn range(length: usize, from: &[u8], to: &[u8]) -> Result<(usize, usize), String> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let place = |at: i64| if at < 0 { at + length } else { at };
    let (from, to) = (place(number(from)?).max(0), place(number(to)?).min(length - 1));
    let many = usize::try_from(to - from + 1).unwrap_or(0);
    Ok((usize::try_from(from).unwrap_or(0).min(usize::try_from(length).unwrap_or(0)), many))
}
