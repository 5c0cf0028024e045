//! Commands on sorted sets.

use std::collections::BTreeMap;

use super::data::{Bytes, Data, Done, Out, count, number, range, unknown};

pub(super) fn run(data: &mut Data, name: &[u8], rest: &[&[u8]]) -> Done {
    let (key, rest) = rest.split_first().ok_or("ERR wrong number of arguments")?;
    match (name, rest) {
        (b"ZCARD", []) => Ok(count(data.zset(key)?.map_or(0, BTreeMap::len))),
        (b"ZSCORE", [member]) => {
            let score = data.zset(key)?.and_then(|set| set.get(*member));
            Ok(score.map_or(Out::Nil, |score| Out::Bulk(spelled(*score))))
        }
        (b"ZMSCORE", members) => {
            let set = data.zset(key)?;
            let score = |member: &&[u8]| set.and_then(|set| set.get(*member));
            let out = |score: Option<&f64>| score.map_or(Out::Nil, |score| Out::Bulk(spelled(*score)));
            Ok(Out::Items(members.iter().map(|member| out(score(member))).collect()))
        }
        (b"ZADD", [option @ (b"GT" | b"LT" | b"NX" | b"XX"), pairs @ ..]) => add(data, key, option, pairs),
        (b"ZADD", pairs) => add(data, key, b"", pairs),
        (b"ZREM", members) => {
            if data.zset(key)?.is_none() {
                return Ok(Out::Int(0));
            }
            let set = data.zset_mut(key)?;
            let removed = members.iter().filter(|m| set.remove(**m).is_some()).count();
            data.tidy_up(key);
            Ok(count(removed))
        }
        (b"ZRANGE", [from, to, b"REV"]) => {
            let mut all = sorted(data.zset(key)?);
            all.reverse();
            let (first, many) = range(all.len(), from, to)?;
            Ok(listed(all.into_iter().skip(first).take(many), false))
        }
        (b"ZRANGE", [from, to, with @ ..]) => {
            let all = sorted(data.zset(key)?);
            let (first, many) = range(all.len(), from, to)?;
            Ok(listed(all.into_iter().skip(first).take(many), !with.is_empty()))
        }
        (b"ZCOUNT", [min, max]) => {
            let (min, max) = (End::parse(min)?, End::parse(max)?);
            let inside = |(_, score): &(Bytes, f64)| min.below(*score) && max.above(*score);
            Ok(count(sorted(data.zset(key)?).iter().filter(|e| inside(e)).count()))
        }
        (b"ZRANGEBYSCORE", [min, max, options @ ..]) => by_score(data, key, (min, max), options, false),
        (b"ZREVRANGEBYSCORE", [max, min, options @ ..]) => by_score(data, key, (min, max), options, true),
        _ => Err(unknown(name)),
    }
}

fn add(data: &mut Data, key: &[u8], option: &[u8], pairs: &[&[u8]]) -> Done {
    let set = data.zset_mut(key)?;
    let mut new = 0;
    for pair in pairs.chunks_exact(2) {
        let (score, member) = (number::<f64>(pair[0])?, pair[1]);
        match (set.get(member), option) {
            (None, b"XX") | (Some(_), b"NX") => continue,
            (Some(now), b"GT") if score <= *now => continue,
            (Some(now), b"LT") if score >= *now => continue,
            (None, _) => new += 1,
            _ => {}
        }
        set.insert(member.to_vec(), score);
    }
    data.tidy_up(key);
    Ok(count(new))
}

fn sorted(set: Option<&BTreeMap<Bytes, f64>>) -> Vec<(Bytes, f64)> {
    let mut all: Vec<_> = set.into_iter().flatten().map(|(m, s)| (m.clone(), *s)).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn listed(entries: impl Iterator<Item = (Bytes, f64)>, with_scores: bool) -> Out {
    let one = |(member, score)| {
        let score = with_scores.then(|| Out::Bulk(spelled(score)));
        std::iter::once(Out::Bulk(member)).chain(score)
    };
    Out::Items(entries.flat_map(one).collect())
}

fn by_score(data: &Data, key: &[u8], (min, max): (&[u8], &[u8]), options: &[&[u8]], turned: bool) -> Done {
    let (min, max) = (End::parse(min)?, End::parse(max)?);
    let mut all = sorted(data.zset(key)?);
    all.retain(|(_, score)| min.below(*score) && max.above(*score));
    if turned {
        all.reverse();
    }
    let with_scores = options.first().is_some_and(|o| *o == b"WITHSCORES");
    let (skip, most) = match options.iter().position(|o| *o == b"LIMIT") {
        Some(at) => (number(options[at + 1])?, number(options[at + 2])?),
        None => (0, usize::MAX),
    };
    Ok(listed(all.into_iter().skip(skip).take(most), with_scores))
}

/// An end of a range of scores.
struct End {
    score: f64,
    is_open: bool,
}

impl End {
    fn parse(text: &[u8]) -> Result<Self, String> {
        let (is_open, text) = text.strip_prefix(b"(").map_or((false, text), |rest| (true, rest));
        Ok(Self { score: number(text)?, is_open })
    }

    fn below(&self, score: f64) -> bool {
        score > self.score || (!self.is_open && score.total_cmp(&self.score).is_eq())
    }

    fn above(&self, score: f64) -> bool {
        score < self.score || (!self.is_open && score.total_cmp(&self.score).is_eq())
    }
}

fn spelled(score: f64) -> Bytes {
    score.to_string().into_bytes()
}
