//! Single functions on data that is made for them, where each of their commands fails in turn.

use super::data::{Bytes, Data, Done, Out, Value};
use super::lua;
use crate::bucket::Buckets;
use crate::cluster::Command;
use crate::functions::{
    BucketWrite, Grounds, HomeFit, LeastState, Publish, RepostPlace, TimeLimits, fcall, home_finish,
    home_tidy, mark_renew,
};
use crate::ids::{AccountId, PostId};
use crate::keys::slot_of_key;
use crate::nonce::Nonce;
use crate::post::PostRef;

/// A call of a function.
pub(super) fn call_of(function: &str, keys: impl Iterator<Item = Bytes>, args: &[Bytes]) -> Command {
    args.iter().fold(fcall(function, &keys.collect::<Vec<_>>()), |command, arg| command.arg(arg))
}

/// What a call answers and leaves, and whether a command of it was made to fail.
fn run_and_fail(command: &Command, data: &Data, fails_at: Option<u32>) -> (Done, Data, bool) {
    let arguments: Vec<&[u8]> = command.arguments().collect();
    let [_, name, many, rest @ ..] = arguments.as_slice() else { panic!("{command:?} calls nothing") };
    let (keys, args) = rest.split_at(super::data::number(many).expect("a number"));
    let name = std::str::from_utf8(name).expect("a name");
    lua::load(&[]);
    let (data, slot) = (data.clone(), slot_of_key(keys[0]));
    lua::run(lua::Call { data, slot, fails_at, ..lua::Call::default() }, name, keys, args)
}

/// What a call answers and leaves.
pub(super) fn run(command: &Command, data: &Data) -> (Done, Data) {
    let (done, data, _) = run_and_fail(command, data, None);
    (done, data)
}

/// The same for each of its commands that fails.
pub(super) fn halves(command: &Command, data: &Data) -> Vec<(Done, Data)> {
    let failing = (1..).map(|at| run_and_fail(command, data, Some(at)));
    failing.take_while(|(.., has_failed)| *has_failed).map(|(done, data, _)| (done, data)).collect()
}

fn entry(id: u64, author: [u8; 8]) -> [u8; 16] {
    [id.to_be_bytes(), author].concat().try_into().expect("16 bytes")
}

/// With groups as small as the simulation's functions have them, by the decision that [`decided`] has.
fn small_fit(posts: u32, list_size: i64) -> HomeFit {
    HomeFit::new(posts, list_size, Grounds::Decision(1))
}

/// A bucket that knows a decision.
fn decided() -> Data {
    let mut data = Data::default();
    data.set(b"{06S}z", Value::Hash([(b"decision".to_vec(), b"1".to_vec())].into()));
    data
}

const WHOLE: [u8; 8] = [0xff; 8];
const KEY: &[u8] = b"{06S}h";

fn home_of(data: &Data) -> Vec<Bytes> {
    data.list(KEY).expect("a list").cloned().unwrap_or_default()
}

/// Whatever a home's watermarks say is there of these posts is there.
fn assert_true(home: &[Bytes], posts: &[u64]) {
    let id = |entry: &Bytes| u64::from_be_bytes(entry[..8].try_into().expect("8 bytes"));
    let is_watermark = |entry: &&Bytes| entry[8..] == WHOLE;
    assert!(home.first().is_none_or(|first| is_watermark(&first)), "a home without a floor: {home:?}");
    let there: Vec<u64> = home.iter().filter(|r| !is_watermark(r)).map(id).collect();
    for vouched in home.iter().filter(is_watermark).map(id) {
        let lacks: Vec<_> = posts.iter().filter(|post| **post > vouched && !there.contains(post)).collect();
        assert!(lacks.is_empty(), "above {vouched} it lacks {lacks:?}");
    }
}

/// H98: the floor was written first, and then what it vouches for.
#[test]
pub(super) fn what_is_left_of_a_home_that_is_written_anew_is_true() {
    let posts: Vec<u64> = (1..=30).collect();
    let of = |from: u64, to: u64| (from..=to).map(|id| entry(id, [7; 8]));
    let nonce = [0x81; 8];
    let mut data = decided();
    let arrived = std::iter::once(entry(0, nonce)).chain(of(20, 30));
    data.set(KEY, Value::List(arrived.map(Vec::from).collect()));
    for fit in [small_fit(100, -2), small_fit(5, 14)] {
        let finish = home_finish(KEY.to_vec(), &nonce, 0, fit, of(1, 19));
        let halves = halves(&finish, &data);
        let is_begun = |home: &[Bytes]| (2..20).contains(&home.len());
        let mut begun = 0;
        for (_, left) in &halves {
            let home = home_of(left);
            if home != home_of(&data) {
                begun += u32::from(is_begun(&home));
                assert_true(&home, &posts);
            }
        }
        assert!(begun > 1, "no home was left half-written: {halves:?}");
    }
}

/// With a watermark where it is cut and without, and once as it is written anew.
#[test]
pub(super) fn what_is_left_of_a_home_that_is_cut_is_true() {
    let posts: Vec<u64> = (1..=12).collect();
    let floor = std::iter::once(entry(0, WHOLE));
    let mut home: Vec<_> = floor.chain(posts.iter().map(|id| entry(*id, [7; 8]))).collect();
    let tidied = |data: &Data, fit| {
        let tidy = home_tidy(KEY.to_vec(), fit);
        let whole = home_of(&run(&tidy, data).1);
        assert!(whole.len() < home_of(data).len(), "nothing is cut: {whole:?}");
        let halves = halves(&tidy, data);
        for (_, left) in &halves {
            assert_true(&home_of(left), &posts);
            assert_true(&home_of(&run(&tidy, left).1), &posts);
        }
        halves.len()
    };
    let fits = [small_fit(3, -2), small_fit(3, 11)];
    let mut data = decided();
    data.set(KEY, Value::List(home.iter().map(|entry| entry.to_vec()).collect()));
    let without = fits.map(|fit| tidied(&data, fit));
    home.push(entry(12, WHOLE));
    data.set(KEY, Value::List(home.iter().map(|entry| entry.to_vec()).collect()));
    let ends_with_one = fits.map(|fit| tidied(&data, fit));
    assert!(without[0] < without[1] && ends_with_one[0] < without[0], "{without:?}, {ends_with_one:?}");
}

/// H157: whoever has read a new mark under a stamp goes on believing that it is new, as long as that stamp stands.
#[test]
fn a_mark_is_new_no_more_only_under_another_stamp() {
    let fields = |fields: [(&str, &[u8]); 1]| {
        Value::Hash(fields.map(|(field, value)| (field.into(), value.to_vec())).into())
    };
    let mut data = Data::default();
    data.set(&key("m"), fields([("author07", b"new\0abcd")]));
    data.set(&key("a"), fields([("t", b"stamp..0")]));
    let renew = |mark: &[u8; 8], stamp: &[u8; 8]| {
        let author = AccountId::new(u64::from_be_bytes(*b"author07")).expect("an id");
        mark_renew(&[key("m"), key("a")], author, mark, Some(b"new\0abcd"), Some(stamp))
    };
    let of = |data: &Data| {
        let field = |rest, field: &str| {
            data.hash(&key(rest)).expect("a hash").expect("one")[field.as_bytes()].clone()
        };
        (field("m", "author07"), field("a", "t"))
    };
    let (mut begun, first) = (0, renew(b"mark...1", b"stamp..1"));
    for (_, left) in halves(&first, &data) {
        let (mark, stamp) = of(&left);
        assert!(mark.starts_with(b"new\0"), "a mark whose stamp nobody will renew: {stamp:?}");
        if stamp == b"stamp..1" {
            begun += 1;
            assert_eq!(run(&first, &left), (Ok(Out::Int(0)), left.clone()), "others are to be drawn");
        }
        let (done, after) = run(&renew(b"mark...2", b"stamp..2"), &left);
        assert_eq!((done, of(&after)), (Ok(Out::Int(1)), (b"mark...2".to_vec(), b"stamp..2".to_vec())));
    }
    assert_eq!(begun, 1);
}

fn key(rest: &str) -> Bytes {
    format!("{{06S}}{rest}").into_bytes()
}

const POSTER: u64 = 7;

/// What a post of somebody meets: an outbox that is to be cut, a home that is to be written anew, and a journal that is
/// more than half full, by another one, so that some of it is drawn.
fn before_a_post() -> Data {
    let mut data = decided();
    let fields = [("s", "a"), ("g", "12345678"), ("k", "p")];
    let fields = fields.map(|(field, value)| (field.into(), value.into()));
    data.set(&key("a"), Value::Hash(fields.into()));
    let home = std::iter::once(entry(0, WHOLE)).chain((1..14).map(|id| entry(id, [8; 8])));
    data.set(KEY, Value::List(home.map(Vec::from).collect()));
    let floor = [&b"F"[..], &[0; 8]].concat();
    let listed = (1..=7_u64).map(|id| id.to_be_bytes().to_vec());
    data.set(&key("o"), Value::List(std::iter::once(floor).chain(listed).collect()));
    data.set(&key("j"), journal(60, 8));
    data
}

type Stamps = (Option<Nonce>, Nonce);

/// A post with a token, or a repost by the stamp that was seen and a new one.
fn publish(token: Option<&str>, stamps: Option<Stamps>, entry: u8) -> Command {
    let buckets = Buckets::few(2);
    let author = AccountId::new(POSTER).expect("an id");
    let original = PostRef { id: PostId::from_u64(5).expect("an id"), author };
    let repost = stamps.map(|(seen, stamp)| {
        let keys = [key("s@reposts:7"), key("s@reposts:7")];
        RepostPlace { keys, leaf: None, original, seen, stamp }
    });
    let publish = Publish {
        keys: ["c", "a", "o", "h", "j", "s@followers"].map(key),
        repost,
        public: None,
        token: token.map(|token| (key(token), 1_000)),
        post_head: key("w"),
        now_ms: 1_700_000_000_000,
        post: &[1; 100],
        author,
        journal_most: 100,
        outbox_most: 5,
        reposts_most: 100,
        stays: None,
        owner: [1; 8],
        entry: [entry; 8],
        fit: small_fit(5, 14),
        limits: &TimeLimits::default(),
        allowed_under: None,
        tasks: Vec::new(),
    };
    publish.command(buckets, buckets.of_account(author.get()), 16)
}

fn is(done: &Done, word: &str) -> bool {
    matches!(done, Ok(Out::Items(said)) if said[0] == Out::Bulk(word.into()))
}

/// H133: it failed when all but its author's outbox knew of the post, and was sent again. H89: its author's home is
/// written anew, and that fails. And its author's outbox is cut: one whose front went first had no floor for good.
#[test]
pub(super) fn a_post_is_published_at_once_or_not_at_all() {
    let data = before_a_post();
    let posts = |data: &Data| data.keys().filter(|key| key.starts_with(b"{06S}w")).count();
    let (old, new) = ([3; 8], [4; 8]);
    for (token, first, again) in
        [(None, None, None), (Some("k"), None, None), (None, Some((None, old)), Some((Some(old), new)))]
    {
        let (mut refused, mut failed_anew) = (0, 0);
        for (done, left) in halves(&publish(token, first, 2), &data) {
            if is(&done, "ok") {
                assert_eq!(posts(&left), 1);
                failed_anew += u32::from(home_of(&left).len() < 8);
                continue;
            }
            assert!(done.is_err() && posts(&left) == 0, "a post that nobody is told of: {done:?}");
            refused += 1;
            // As the engine does: another entry, and the stamp as it is now.
            let is_renewed =
                left.hash(&key("a")).expect("a record").is_some_and(|a| a.contains_key(&b"i"[..]));
            let (done, after) = run(&publish(token, if is_renewed { again } else { first }, 5), &left);
            assert!(is(&done, "ok") && posts(&after) == 1, "{done:?}");
            let record = after.hash(&key("a")).expect("a hash").expect("a record");
            assert_eq!(record[&b"p"[..]], b"1", "the number of posts");
            let outbox = after.list(&key("o")).expect("a list").expect("an outbox");
            assert!(outbox[0].len() == 9 && outbox[1..].iter().all(|id| id.len() == 8), "{outbox:?}");
            if token.is_some() {
                let (done, after) = run(&publish(token, None, 6), &after);
                assert!(is(&done, "again") && posts(&after) == 1, "{done:?}");
            }
        }
        assert!(
            refused > 5 && failed_anew > 0,
            "{refused} failed, and {failed_anew} homes were written anew"
        );
    }
}

/// The only thing to write is a stamp.
#[test]
pub(super) fn what_is_reposted_once_more_stays_as_it_is() {
    let (old, new) = ([3; 8], [4; 8]);
    let (_, reposted) = run(&publish(None, Some((None, old)), 2), &before_a_post());
    let again = publish(None, Some((Some(old), new)), 5);
    for (done, left) in halves(&again, &reposted) {
        assert!(done.is_err() && left == reposted, "{done:?}");
    }
    assert!(is(&run(&again, &reposted).0, "again"));
}

/// H160
#[test]
fn of_a_journal_that_is_half_full_who_filled_it_gets_no_more() {
    let answer = |entries, actor| {
        let mut data = before_a_post();
        data.set(&key("j"), journal(entries, actor));
        let (done, _) = run(&publish(None, None, 2), &data);
        ["ok", "busy"].into_iter().find(|word| is(&done, word)).expect("one of both")
    };
    let answers = [(49, POSTER), (50, POSTER), (99, 8), (100, 8)].map(|(many, by)| answer(many, by));
    assert_eq!(answers, ["ok", "busy", "ok", "busy"]);
}

/// H160: of what an account adds; who goes, or takes something back, isn't kept from it.
#[test]
fn who_has_filled_half_of_a_journal_may_still_go() {
    let record = [key("a"), POSTER.to_be_bytes().into()].concat();
    let answer = |least_state, actor| {
        let mut data = decided();
        data.set(&record, Value::Hash([(b"s".to_vec(), b"a".to_vec())].into()));
        data.set(&key("j"), journal(60, actor));
        let mut write = BucketWrite::new("change", &record, least_state).set("g", b"stamp..2");
        write.entry(b"entry..1", b"owner..1P");
        let (done, _) = run(&write.command(1, || key("c"), None, (|| key("j"), 100)), &data);
        ["ok", "busy"].into_iter().find(|word| is(&done, word)).expect("one of both")
    };
    let least_states = [LeastState::Active, LeastState::There, LeastState::Recorded];
    assert_eq!(least_states.map(|least_state| answer(least_state, POSTER)), ["busy", "ok", "ok"]);
    assert_eq!(least_states.map(|least_state| answer(least_state, 8)), ["ok"; 3]);
}

/// A journal of so many entries that an account has left.
fn journal(entries: u64, actor: u64) -> Value {
    let entry = |n: u64| (n.to_be_bytes().to_vec(), [b"owner..1O", &actor.to_be_bytes()[..]].concat());
    Value::Hash((0..entries).map(entry).collect())
}
