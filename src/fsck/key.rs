//! The form of a key, by its spelling (docs/keys.md). Pure.

use std::sync::Arc;

use crate::beginnings::Beginning;
use crate::bucket::{Bucket, Buckets, slot_of, tag_of_slot};
use crate::graph::LISTS;
use crate::ids::{AccountId, Claim, PostId, TicketHash};
use crate::keys::{Keyspace, OwnKey, Place, set_of_tag, tag_left};
use crate::post::NamedList;
use crate::sharded::LocalKey;

/// A form of a tenant's keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum KeyForm {
    /// Of the tenant or a bucket, and looked at elsewhere, or by nobody: the charter, decisions, clocks, reports, notes
    /// of edges, what fences write.
    Other,
    Journal(Bucket),
    Agenda(Bucket),
    Days(Bucket),
    PublicPosts(Bucket),
    Living,
    Record(AccountId),
    Own(OwnKey, AccountId),
    Token(AccountId),
    /// Of a report about that account.
    ReportToken(AccountId),
    Claim(Claim),
    Ticket,
    /// Who is called so.
    Names(Beginning),
    Counter,
    Post(PostId),
    Set(LocalKey),
    Piece(LocalKey, u32),
    Guard(LocalKey),
    /// None that this release writes.
    Unknown,
}

/// The pattern of all keys of a tenant, for SCAN.
pub(super) fn pattern(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 2);
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "{*"
}

/// The bucket that a key lies in, by its tag, and what stands behind that. A tag without a bucket is a fence's only.
fn split<'k>(keys: &Keyspace, key: &'k [u8]) -> Option<(Option<Bucket>, &'k [u8])> {
    let rest = key.strip_prefix(keys.prefix().as_bytes())?.strip_prefix(b"{")?;
    let end = rest.iter().position(|b| *b == b'}')?;
    let (tag, rest) = (&rest[..end], &rest[end + 1..]);
    let slot = slot_of(tag);
    (tag_of_slot(slot).as_bytes() == tag).then_some((bucket_at(keys.buckets(), slot), rest))
}

fn bucket_at(buckets: Buckets, slot: u16) -> Option<Bucket> {
    let bucket = buckets.all().nth(usize::from(slot / buckets.slot(Bucket(1))))?;
    (buckets.slot(bucket) == slot).then_some(bucket)
}

/// The bucket that a key lies in.
pub(super) fn bucket_of(keys: &Keyspace, key: &[u8]) -> Option<Bucket> {
    split(keys, key)?.0
}

/// Tells what a key is. One that lies in another bucket than it should is unknown too: nobody ever looks there.
pub(crate) fn form_of(keys: &Keyspace, key: &[u8]) -> KeyForm {
    let Some((bucket, rest)) = split(keys, key) else { return KeyForm::Unknown };
    let Some((letter, name)) = rest.split_first() else { return KeyForm::Unknown };
    let Some(bucket) = bucket else {
        return if rest == b"f" { KeyForm::Other } else { KeyForm::Unknown };
    };
    parse(keys, bucket, *letter, name).unwrap_or(KeyForm::Unknown)
}

fn parse(keys: &Keyspace, bucket: Bucket, letter: u8, name: &[u8]) -> Option<KeyForm> {
    let plain = |form| name.is_empty().then_some(form);
    let account = |name| AccountId::from_bytes(name).ok().filter(|id| keys.bucket_of(*id) == bucket);
    let set = |place, name: &[u8]| {
        let set = LocalKey { place, bucket, name: Arc::from(name) };
        (!name.is_empty() && (place == Place::Part || root_bucket(keys, name) == Some(bucket))).then_some(set)
    };
    match letter {
        b'i' => plain(KeyForm::Other).filter(|_| bucket == Bucket(0)),
        b'v' => plain(KeyForm::Living).filter(|_| bucket == Bucket(0)),
        b'c' | b'f' | b'b' | b'B' | b'e' | b'D' | b'E' | b'z' => plain(KeyForm::Other),
        b'j' => plain(KeyForm::Journal(bucket)),
        b'F' => plain(KeyForm::Agenda(bucket)),
        b'd' => plain(KeyForm::Days(bucket)),
        b'G' => plain(KeyForm::PublicPosts(bucket)),
        b'a' => account(name).map(KeyForm::Record),
        b'k' => name.split_first_chunk::<8>().and_then(|(id, _)| account(id.as_slice())).map(KeyForm::Token),
        b'K' => name.split_first_chunk::<8>().and_then(|(target, rest)| {
            rest.first_chunk::<8>().and_then(|id| AccountId::from_bytes(id).ok())?;
            account(target.as_slice()).map(KeyForm::ReportToken)
        }),
        b'n' => {
            Claim::from_bytes(name).filter(|claim| keys.bucket_of_claim(claim) == bucket).map(KeyForm::Claim)
        }
        b'X' => TicketHash::from_bytes(name)
            .filter(|ticket| keys.bucket_of_ticket(ticket) == bucket)
            .map(|_| KeyForm::Ticket),
        b'Q' => {
            Beginning::from_bytes(name).filter(|_| keys.bucket_of_names(name) == bucket).map(KeyForm::Names)
        }
        b'C' => <&[u8; 16]>::try_from(name)
            .ok()
            .filter(|hash| keys.bucket_of_counter(hash) == bucket)
            .map(|_| KeyForm::Counter),
        b'w' => {
            let id = PostId::from_u64(u64::from_be_bytes(name.try_into().ok()?)).ok()?;
            (id.bucket(keys.buckets()) == bucket).then_some(KeyForm::Post(id))
        }
        b's' => set(Place::Whole, name).map(KeyForm::Set),
        b't' => set(Place::Part, name).map(KeyForm::Set),
        b'g' => set(Place::Part, name).map(KeyForm::Guard),
        b'p' | b'q' => {
            let colon = name.iter().position(|b| *b == b':')?;
            let number = u32::from_str_radix(std::str::from_utf8(&name[..colon]).ok()?, 16).ok()?;
            let place = if letter == b'p' { Place::Whole } else { Place::Part };
            set(place, &name[colon + 1..]).map(|set| KeyForm::Piece(set, number))
        }
        _ => OwnKey::of_letter(letter).and_then(|own| account(name).map(|id| KeyForm::Own(own, id))),
    }
}

/// The account whose set it is, and which one; `None`: the set has a name of its own.
pub(super) fn owner_of(name: &[u8]) -> Option<(AccountId, &[u8])> {
    let rest = name.strip_prefix(b"@")?;
    let (what, id) = rest.split_last_chunk::<8>()?;
    Some((AccountId::from_bytes(id).ok()?, what.strip_suffix(b":")?))
}

/// The bucket in which a set of that name begins.
pub(super) fn root_bucket(keys: &Keyspace, name: &[u8]) -> Option<Bucket> {
    match name.first() {
        Some(b'@') => owner_of(name).map(|(owner, _)| keys.bucket_of(owner)),
        Some(b'#') if tag_of(name).is_some() => Some(keys.buckets().of_bytes(name)),
        Some(b'#') if tag_left(name).is_some() => {
            tag_left(name).map(|number| keys.buckets().of_bytes(&set_of_tag(number)))
        }
        Some(b'#') => list_of(name).map(|(post, _)| post.bucket(keys.buckets())),
        _ => Some(keys.buckets().of_bytes(name)),
    }
}

/// The post that a list is of, and which of its lists that is.
pub(super) fn list_of(name: &[u8]) -> Option<(PostId, u8)> {
    let (what, id) = name.strip_prefix(b"#")?.split_last_chunk::<8>()?;
    let what = what.strip_suffix(b":")?;
    let (kind, ..) = LISTS.iter().find(|(_, name, _)| name.as_bytes() == what)?;
    Some((PostId::from_u64(u64::from_be_bytes(*id)).ok()?, *kind))
}

/// The number of the hashtag that a list is of.
pub(super) fn tag_of(name: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(name.strip_prefix(b"#")?.try_into().ok()?))
}

/// The list that posts name which a set of that name is.
pub(crate) fn list_named(name: &[u8]) -> Option<NamedList> {
    let of_account = || owner_of(name).and_then(|(owner, what)| NamedList::of_account(what, owner));
    tag_of(name).map(NamedList::Tagged).or_else(of_account)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::keys::fence;
    use crate::keys::{list_of_post, set_of_account};

    #[test]
    fn every_key_is_told_by_its_spelling() {
        let keys = Keyspace::new("te*st:", Buckets::new(64).unwrap()).unwrap();
        let account = AccountId::new(77).unwrap();
        let bucket = keys.bucket_of(account);
        let post = PostId::new(keys.buckets(), bucket, 1_700_000_000_000, 3).unwrap();
        let claim = Claim::from_bytes(b"l0123456789abcdef").unwrap();
        let ticket = TicketHash::from_bytes(b"t0123456789abcdef").unwrap();
        let name = set_of_account("followers", account);
        let set = |place| LocalKey { place, bucket, name: Arc::from(name.as_slice()) };
        let cases = [
            (keys.charter(), KeyForm::Other),
            (keys.clock(bucket), KeyForm::Other),
            (fence("te*st:", 7), KeyForm::Other),
            (keys.journal(bucket), KeyForm::Journal(bucket)),
            (keys.agenda(bucket), KeyForm::Agenda(bucket)),
            (keys.days(bucket), KeyForm::Days(bucket)),
            (keys.public_posts(bucket), KeyForm::PublicPosts(bucket)),
            (keys.living(), KeyForm::Living),
            (keys.reports(bucket, true), KeyForm::Other),
            (keys.reporters(bucket), KeyForm::Other),
            (keys.notes(bucket), KeyForm::Other),
            (keys.last_removal(bucket), KeyForm::Other),
            (keys.decision(bucket), KeyForm::Other),
            (keys.account(account), KeyForm::Record(account)),
            (keys.token(account, "form"), KeyForm::Token(account)),
            (keys.report_token(account, AccountId::new(5).unwrap(), "form"), KeyForm::ReportToken(account)),
            (keys.claim(&claim), KeyForm::Claim(claim)),
            (keys.ticket(&ticket), KeyForm::Ticket),
            (keys.names(b"aad"), KeyForm::Names(Beginning::from_bytes(b"aad").unwrap())),
            (keys.counter(b"0123456789abcdef"), KeyForm::Counter),
            (keys.post(post), KeyForm::Post(post)),
            (keys.set(Place::Whole, bucket, &name), KeyForm::Set(set(Place::Whole))),
            (keys.set(Place::Part, bucket, &name), KeyForm::Set(set(Place::Part))),
            (keys.piece(Place::Whole, bucket, &name, 31), KeyForm::Piece(set(Place::Whole), 31)),
            (keys.piece(Place::Part, bucket, &name, 0), KeyForm::Piece(set(Place::Part), 0)),
            (keys.guard(bucket, &name), KeyForm::Guard(set(Place::Part))),
            // A ticket of no kind; a counter of nothing. Of another account's bucket; a tag that no bucket
            // has; a letter that nobody writes.
            ([keys.key_prefix(bucket), b"X"].concat(), KeyForm::Unknown),
            ([keys.key_prefix(bucket), b"Q"].concat(), KeyForm::Unknown),
            (keys.set(Place::Whole, Bucket(bucket.index() ^ 1), &name), KeyForm::Unknown),
            (b"te*st:{zzzz}a12345678".to_vec(), KeyForm::Unknown),
            ([keys.key_prefix(bucket), b"Z"].concat(), KeyForm::Unknown),
        ];
        let own = OwnKey::ALL.map(|own| (keys.own(own, account), KeyForm::Own(own, account)));
        for (key, form) in cases.into_iter().chain(own) {
            assert_eq!(form_of(&keys, &key), form, "{}", key.escape_ascii());
        }
        assert_eq!(pattern("te*st:"), "te\\*st:{*");
        assert_eq!(owner_of(&name), Some((account, &b"followers"[..])));
        let list = crate::keys::set_of_tag(0x0102_0304_0506_0708);
        assert_eq!((tag_of(&list), tag_of(&list[..8])), (Some(0x0102_0304_0506_0708), None));
        assert_eq!(root_bucket(&keys, &list), Some(keys.buckets().of_bytes(&list)));
        let left = crate::keys::left_of_tag(0x0102_0304_0506_0708);
        assert_eq!((tag_of(&left), list_of(&left)), (None, None));
        assert_eq!(root_bucket(&keys, &left), Some(keys.buckets().of_bytes(&list)));
        let likes = list_of_post("likes", post);
        assert_eq!(list_of(&likes), Some((post, b'l')));
        assert_eq!(root_bucket(&keys, &likes), Some(bucket));
        assert_eq!(root_bucket(&keys, &list_of_post("hates", post)), None);
    }
}
