//! Commands on lists.

use super::data::{Data, Done, Out, bulk, count, range, unknown};

pub(super) fn run(data: &mut Data, name: &[u8], rest: &[&[u8]]) -> Done {
    let (key, rest) = rest.split_first().ok_or("ERR wrong number of arguments")?;
    let length = data.list(key)?.map_or(0, Vec::len);
    match (name, rest) {
        (b"LLEN", []) => Ok(count(length)),
        (b"LINDEX", [at]) => {
            let (first, many) = range(length, at, at)?;
            Ok(if many == 1 { bulk(data.list(key)?.and_then(|l| l.get(first))) } else { Out::Nil })
        }
        (b"LPOS", [value]) => {
            let place = data.list(key)?.and_then(|list| list.iter().position(|item| item == value));
            Ok(place.map_or(Out::Nil, count))
        }
        (b"LRANGE", [from, to]) => {
            let (first, many) = range(length, from, to)?;
            let items = data.list(key)?.into_iter().flatten().skip(first).take(many);
            Ok(Out::Items(items.cloned().map(Out::Bulk).collect()))
        }
        (b"RPUSH" | b"RPUSHX", values) => {
            if name == b"RPUSHX" && length == 0 {
                return Ok(Out::Int(0));
            }
            let list = data.list_mut(key)?;
            list.extend(values.iter().map(|v| v.to_vec()));
            Ok(count(list.len()))
        }
        (b"LPUSH", values) => {
            let list = data.list_mut(key)?;
            list.splice(..0, values.iter().rev().map(|v| v.to_vec()));
            Ok(count(list.len()))
        }
        (b"LINSERT", [side, pivot, value]) => {
            let list = data.list_mut(key)?;
            let Some(place) = list.iter().position(|item| item == pivot) else { return Ok(Out::Int(-1)) };
            list.insert(place + usize::from(*side == b"AFTER"), value.to_vec());
            Ok(count(list.len()))
        }
        (b"LREM", [b"1", value]) => {
            let Some(place) = data.list(key)?.and_then(|list| list.iter().position(|item| item == value))
            else {
                return Ok(Out::Int(0));
            };
            data.list_mut(key)?.remove(place);
            data.tidy_up(key);
            Ok(Out::Int(1))
        }
        (b"LSET", [at, value]) => {
            let (first, many) = range(length, at, at)?;
            if many != 1 {
                return Err("ERR index out of range".into());
            }
            data.list_mut(key)?[first] = value.to_vec();
            Ok(Out::Line("OK"))
        }
        (b"LTRIM", [from, to]) if length > 0 => {
            let (first, many) = range(length, from, to)?;
            let list = data.list_mut(key)?;
            *list = list.iter().skip(first).take(many).cloned().collect();
            data.tidy_up(key);
            Ok(Out::Line("OK"))
        }
        (b"LTRIM", [_, _]) => Ok(Out::Line("OK")),
        _ => Err(unknown(name)),
    }
}
