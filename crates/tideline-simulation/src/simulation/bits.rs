//! Commands on strings and their bits.

use super::data::{Bytes, Data, Done, Out, count, number, range, unknown};

pub(super) fn run(data: &mut Data, name: &[u8], rest: &[&[u8]]) -> Done {
    match (name, rest) {
        (b"GETRANGE", [key, from, to]) => {
            let empty = Bytes::new();
            let text = data.text(key)?.unwrap_or(&empty);
            let (first, many) = range(text.len(), from, to)?;
            Ok(Out::Bulk(text.iter().skip(first).take(many).copied().collect()))
        }
        (b"SETRANGE", [key, at, value]) => {
            let at: usize = number(at)?;
            let text = data.text_mut(key)?;
            text.resize(text.len().max(at + value.len()), 0);
            text[at..at + value.len()].copy_from_slice(value);
            Ok(count(text.len()))
        }
        (b"APPEND", [key, value]) => {
            let text = data.text_mut(key)?;
            text.extend_from_slice(value);
            Ok(count(text.len()))
        }
        (b"SETBIT", [key, at, bit]) => {
            let before = field(data.text_mut(key)?, (1, number(at)?));
            store(data.text_mut(key)?, (1, number(at)?), number(bit)?);
            Ok(Out::Int(before))
        }
        (b"BITFIELD" | b"BITFIELD_RO", [key, steps @ ..]) => bitfield(data, key, steps),
        _ => Err(unknown(name)),
    }
}

/// `GET type offset`, `SET type offset value`, `INCRBY type offset by`, any number of them; types are unsigned.
fn bitfield(data: &mut Data, key: &[u8], mut steps: &[&[u8]]) -> Done {
    let mut answers = Vec::new();
    // A look alone creates nothing.
    let mut text = data.text(key)?.cloned().unwrap_or_default();
    let mut has_changed = false;
    while let [step, kind, at, rest @ ..] = steps {
        let width = kind.strip_prefix(b"u").ok_or("ERR only unsigned fields")?;
        let place = (number::<usize>(width)?, number::<usize>(at)?);
        let before = field(&text, place);
        steps = match (*step, rest) {
            (b"GET", rest) => {
                answers.push(Out::Int(before));
                rest
            }
            (b"SET", [value, rest @ ..]) => {
                store(&mut text, place, number(value)?);
                has_changed = true;
                answers.push(Out::Int(before));
                rest
            }
            (b"INCRBY", [by, rest @ ..]) => {
                let now = before + number::<i64>(by)?;
                let now = now & ((1 << place.0) - 1);
                store(&mut text, place, now);
                has_changed = true;
                answers.push(Out::Int(now));
                rest
            }
            _ => return Err("ERR syntax error".into()),
        };
    }
    if has_changed {
        *data.text_mut(key)? = text;
    }
    Ok(Out::Items(answers))
}

fn field(text: &[u8], (width, at): (usize, usize)) -> i64 {
    (at..at + width).fold(0, |field, bit| {
        let byte = text.get(bit / 8).copied().unwrap_or(0);
        field << 1 | i64::from(byte >> (7 - bit % 8) & 1)
    })
}

fn store(text: &mut Bytes, (width, at): (usize, usize), value: i64) {
    text.resize(text.len().max((at + width).div_ceil(8)), 0);
    for (n, bit) in (at..at + width).enumerate() {
        let mask = 1 << (7 - bit % 8);
        if value >> (width - 1 - n) & 1 == 1 { text[bit / 8] |= mask } else { text[bit / 8] &= !mask }
    }
}
