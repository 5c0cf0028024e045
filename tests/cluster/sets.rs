//! Sharded sets against a naive model, alone and with several clients at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tideline::cluster::{Command, Request};
use tideline::sharded::{Checkpoint, Layout, MemberName, Order, SetSettings, Sets, SortedSet};
use tideline::{AccountId, ErrorKind, Store};

use super::harness::{Model, account, options, seeded, shared, store, walk_all};

/// Everything that the set tells must be what the model tells.
async fn compare(set: &SortedSet<AccountId>, model: &Model, random: &mut StdRng) {
    assert_eq!(set.len().await.unwrap(), model.len() as u64);
    assert_eq!(&walk_all(set).await, model);
    let members: Vec<_> = (0..30).map(|_| account(random.random_range(1..600))).collect();
    let wanted: Vec<_> = members.iter().map(|m| model.get(m).copied()).collect();
    assert_eq!(set.scores(&members).await.unwrap(), wanted);
    let (from, to) = (random.random_range(0..30), random.random_range(30..60));
    let range = f64::from(from)..=f64::from(to);
    let in_range: Vec<_> = model.iter().filter(|(_, s)| range.contains(s)).collect();
    assert_eq!(set.count(range.clone()).await.unwrap(), in_range.len() as u64);
    for order in [Order::Ascending, Order::Descending] {
        let mut wanted: Vec<_> = in_range.iter().map(|(m, s)| (**m, **s)).collect();
        wanted.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        if order == Order::Descending {
            wanted.reverse();
        }
        assert_eq!(pages(set, range.clone(), random.random_range(1..40), order).await, wanted);
    }
}

async fn pages(
    set: &SortedSet<AccountId>,
    range: std::ops::RangeInclusive<f64>,
    limit: usize,
    order: Order,
) -> Vec<(AccountId, f64)> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let page = set.page(range.clone(), after.as_ref(), limit, order).await.unwrap();
        assert!(page.entries.len() <= limit);
        all.extend(page.entries);
        let Some(next) = page.next else { return all };
        after = Some(next);
    }
}

/// One random change, done to the set and to the model alike.
async fn change(set: &SortedSet<AccountId>, model: &mut Model, random: &mut StdRng) {
    let count = random.random_range(1..60);
    let pairs: Vec<_> = (0..count)
        .map(|_| (account(random.random_range(1..600)), f64::from(random.random_range(0..60))))
        .collect();
    match random.random_range(0..10) {
        0..5 => {
            set.add(&pairs).await.unwrap();
            model.extend(pairs);
        }
        5..7 => {
            set.add_greater(&pairs).await.unwrap();
            pairs.iter().for_each(|(m, s)| {
                let score = model.entry(*m).or_insert(*s);
                *score = score.max(*s);
            });
        }
        7..9 => {
            let members: BTreeSet<_> = pairs.iter().map(|p| p.0).collect();
            let members: Vec<_> = members.into_iter().collect();
            let removed = set.remove(&members).await.unwrap().members;
            let before = model.len();
            model.retain(|m, _| members.binary_search(m).is_err());
            assert_eq!(removed, (before - model.len()) as u64);
        }
        _ => {
            let below: BTreeMap<_, _> = pairs.into_iter().collect();
            set.remove_below(&below.clone().into_iter().collect::<Vec<_>>()).await.unwrap();
            model.retain(|m, s| below.get(m).is_none_or(|b| *s >= *b));
        }
    }
}

#[tokio::test]
async fn random_histories_agree_with_a_map_while_pieces_split_and_sets_spread() {
    let mut random = seeded("random_histories");
    let store = store().await;
    for history in 0..6 {
        let set: SortedSet<AccountId> = store.sets().named(&format!("history {history}")).unwrap();
        let set = if history % 2 == 0 { set } else { set.pinned() };
        let mut model = Model::new();
        for step in 0..40 {
            change(&set, &mut model, &mut random).await;
            if history == 4 && step == 5 {
                set.spread().await.unwrap();
            }
            if step % 5 == 4 {
                compare(&set, &model, &mut random).await;
            }
        }
        let layout = set.layout().await.unwrap();
        assert_eq!(
            layout,
            if history % 2 == 0 { Layout::Spread } else { Layout::Local },
            "history {history}"
        );
    }
}

#[tokio::test]
async fn clients_with_stale_knowledge_agree_with_each_other() {
    // Each client has its own copies of trees and layouts, which the others' splits and spreads make old.
    let options = options(shared());
    let clients = join_all((0..4).map(|_| Store::open(options.clone()))).await;
    let clients: Vec<Store> = clients.into_iter().map(Result::unwrap).collect();
    let mut random = seeded("stale_knowledge");
    let mut model = Model::new();
    for step in 0..120 {
        let set = clients[random.random_range(0..4)].sets().named("shared").unwrap();
        change(&set, &mut model, &mut random).await;
        if step % 20 == 19 {
            let reader = clients[random.random_range(0..4)].sets().named("shared").unwrap();
            compare(&reader, &model, &mut random).await;
        }
    }
}

#[tokio::test]
async fn writers_of_several_clients_lose_nothing_while_the_set_splits_and_spreads() {
    let options = options(shared());
    let mut random = seeded("concurrent_writers");
    let seed: u64 = random.random();
    // Each writer owns its members, so each knows what must be there in the end; all meet in the same pieces.
    let writer = async |number: u64| {
        let store = Store::open(options.clone()).await.unwrap();
        let set: SortedSet<AccountId> = store.sets().named("contended").unwrap();
        let mut random = StdRng::seed_from_u64(seed + number);
        let mut mine = Model::new();
        for _ in 0..60 {
            let member = |random: &mut StdRng| account(random.random_range(0..150) * 6 + number + 1);
            let pairs: Model =
                (0..8).map(|_| (member(&mut random), f64::from(random.random_range(0..90)))).collect();
            if random.random_bool(0.7) {
                set.add(&pairs.clone().into_iter().collect::<Vec<_>>()).await.unwrap();
                mine.extend(pairs);
            } else {
                set.remove(&pairs.keys().copied().collect::<Vec<_>>()).await.unwrap();
                mine.retain(|m, _| !pairs.contains_key(m));
            }
            // What was acknowledged to it shows at once, whatever the others do to the tree meanwhile.
            let own: Vec<_> = (0..8).map(|_| member(&mut random)).collect();
            let wanted: Vec<_> = own.iter().map(|m| mine.get(m).copied()).collect();
            assert_eq!(set.scores(&own).await.unwrap(), wanted, "a look-up missed a change of its own");
        }
        mine
    };
    let walker = async {
        let store = Store::open(options.clone()).await.unwrap();
        let set: SortedSet<AccountId> = store.sets().named("contended").unwrap();
        // These are there before any walk begins and stay: every walk must meet them.
        let staying: Vec<_> = (10_000..10_060).map(|id| (account(id), 1.0)).collect();
        set.add(&staying).await.unwrap();
        for _ in 0..30 {
            let met = walk_all(&set).await;
            assert!(staying.iter().all(|(m, _)| met.contains_key(m)), "a walk missed members that stayed");
            let paged = pages(&set, 1.0..=1.0, 7, Order::Ascending).await;
            assert!(paged.is_sorted_by(|a, b| a.0 < b.0), "a member twice, or out of order");
            assert!(staying.iter().all(|p| paged.contains(p)), "a page missed members that stayed");
            let newest = set.page(.., None, 20, Order::Descending).await.unwrap().entries;
            let descends = newest.is_sorted_by(|(a, newer), (b, older)| (newer, a) > (older, b));
            let members: BTreeSet<_> = newest.iter().map(|(member, _)| *member).collect();
            assert!(descends && members.len() == newest.len(), "out of order, or a member twice: {newest:?}");
        }
        staying.into_iter().collect::<Model>()
    };
    let (mine, staying) = futures::join!(join_all((0..6).map(writer)), walker);
    let wanted: Model = mine.into_iter().flatten().chain(staying).collect();
    let store = Store::open(options.clone()).await.unwrap();
    let set = store.sets().named("contended").unwrap();
    assert_eq!(walk_all(&set).await, wanted);
    assert_eq!(set.len().await.unwrap(), wanted.len() as u64);
    assert_eq!(set.layout().await.unwrap(), Layout::Spread);
}

#[tokio::test]
async fn a_walk_goes_on_in_another_process_that_knows_nothing_of_the_set() {
    // It used to end early: without a copy of the tree a set counted as small, and a small set has no second piece.
    let store = store().await;
    for (name, size) in [("pinned", 3_000), ("spread", 3_000)] {
        let set: SortedSet<AccountId> = store.sets().named(name).unwrap();
        let set = if name == "pinned" { set.pinned() } else { set };
        let pairs: Vec<_> = (1..=size).map(|id| (account(id), 1.0)).collect();
        set.add(&pairs).await.unwrap();
        let mut met = BTreeSet::new();
        let mut next = Some(Checkpoint::START);
        let mut pages = 0;
        while let Some(from) = next {
            // One tree remembered: what another set needs meanwhile is forgotten at once.
            let settings = SetSettings { trees_cached: 1, ..SetSettings::default() };
            let fresh = Sets::new(store.router().clone(), store.keys().clone(), settings).unwrap();
            let walk = fresh.named::<AccountId>(name).unwrap().walk(from).await.unwrap();
            met.extend(walk.entries.into_iter().map(|(m, _)| m));
            next = walk.next;
            pages += 1;
        }
        assert_eq!(met.len(), pairs.len(), "{name}");
        assert!(pages > 2, "{name} was too small to tell: {pages} pages");
    }
    let behind: Checkpoint = "spread.16.0".parse().unwrap();
    let set: SortedSet<AccountId> = store.sets().named("spread").unwrap();
    assert_eq!(set.walk(behind).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_client_that_remembers_one_tree_reads_and_writes_like_any_other() {
    let mut options = options(shared());
    options.sets.trees_cached = 1;
    let store = Store::open(options).await.unwrap();
    let mut random = seeded("one_tree");
    let set: SortedSet<AccountId> = store.sets().named("forgetful").unwrap();
    let mut model = Model::new();
    for step in 0..60 {
        change(&set, &mut model, &mut random).await;
        if step % 15 == 14 {
            compare(&set, &model, &mut random).await;
        }
    }
    assert_eq!(set.layout().await.unwrap(), Layout::Spread);
}

#[tokio::test]
async fn what_a_failover_shrinks_is_read_anew() {
    // A primary that loses an unsynced split leaves clients with a tree that knows more pieces than there are.
    // They used to count nothing where a piece was gone, and everything twice where the set was small again.
    let store = store().await;
    for (size, more) in [(12, 300), (100, 300), (600, 900)] {
        let name = format!("shrunk {size}");
        let set: SortedSet<AccountId> = store.sets().named::<AccountId>(&name).unwrap().pinned();
        let pairs = |ids: std::ops::RangeInclusive<u64>| ids.map(|id| (account(id), 1.0)).collect::<Vec<_>>();
        set.add(&pairs(1..=size)).await.unwrap();
        let bucket = store.keys().buckets().of_bytes(name.as_bytes());
        let slot = store.keys().buckets().slot(bucket);
        let before = dump(&store, slot, &name).await;
        set.add(&pairs(size + 1..=more)).await.unwrap();
        for (key, _) in dump(&store, slot, &name).await {
            store.router().call(Request::write(slot, Command::new("DEL").arg(&key))).await.unwrap();
        }
        for (key, value) in &before {
            let restore = Command::new("RESTORE").arg(key).arg("0").arg(value);
            store.router().call(Request::write(slot, restore)).await.unwrap();
        }
        // The client still has the larger tree.
        assert_eq!(set.count(..).await.unwrap(), size, "{size}");
        let page = set.page(.., None, 1_000, Order::Ascending).await.unwrap();
        assert_eq!(page.entries.len() as u64, size, "{size}");
        assert_eq!(walk_all(&set).await.len() as u64, size, "{size}");
    }
}

/// All keys of a set, as `DUMP` gives them.
async fn dump(store: &Store, slot: u16, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut dumped = Vec::new();
    let pattern = format!("{}*{name}", store.keys().prefix());
    for (_, keys) in store.router().ask_primaries(&Command::new("KEYS").arg(&pattern)).await {
        for key in keys.unwrap().into_array().unwrap() {
            let key = key.bytes().unwrap().to_vec();
            let value =
                store.router().call(Request::read(slot, Command::new("DUMP").arg(&key))).await.unwrap();
            dumped.push((key, value.bytes().unwrap().to_vec()));
        }
    }
    dumped
}

#[tokio::test]
async fn names_are_members_too_and_common_members_are_found() {
    let store = store().await;
    let name = |i: u32| MemberName::new(format!("name-{i}")).unwrap();
    let (a, b) = (store.sets().named("a").unwrap(), store.sets().named("b").unwrap());
    let pairs = |ids: std::ops::Range<u32>| ids.map(|i| (name(i), f64::from(i) / 7.0)).collect::<Vec<_>>();
    a.add(&pairs(0..150)).await.unwrap();
    b.add(&pairs(100..500)).await.unwrap();
    assert_eq!(a.layout().await.unwrap(), Layout::Local);
    assert_eq!(b.layout().await.unwrap(), Layout::Spread);
    assert_eq!(b.score(&name(107)).await.unwrap(), Some(107.0 / 7.0));
    for (walked, asked) in [(&a, &b), (&b, &a)] {
        let mut common = BTreeSet::new();
        let mut next = Some(Checkpoint::START);
        while let Some(from) = next {
            let found = walked.common(asked, from).await.unwrap();
            common.extend(found.members);
            next = found.next;
        }
        assert_eq!(common, (100..150).map(name).collect());
    }
}

#[tokio::test]
async fn scores_keep_every_bit_and_the_infinities() {
    let store = store().await;
    let set: SortedSet<AccountId> = store.sets().named("scores").unwrap();
    let scores = [
        0.1 + 0.2,
        f64::MIN_POSITIVE,
        f64::MAX,
        -1e-300,
        9_007_199_254_740_991.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let pairs: Vec<_> = (1..).map(account).zip(scores).collect();
    set.add(&pairs).await.unwrap();
    for (member, score) in &pairs {
        assert_eq!(set.score(member).await.unwrap(), Some(*score));
    }
    let page = set.page(.., None, 10, Order::Descending).await.unwrap();
    assert!(page.entries.is_sorted_by(|a, b| a.1 > b.1));
    set.remove_below(&pairs).await.unwrap();
    assert_eq!(set.len().await.unwrap(), scores.len() as u64, "not below is not removed");
}

#[tokio::test]
async fn bad_input_gets_a_clear_error() {
    let store = store().await;
    let set: SortedSet<AccountId> = store.sets().named("bad input").unwrap();
    let invalid = |e: tideline::Error, word: &str| {
        assert_eq!(e.kind(), ErrorKind::Invalid);
        assert!(e.to_string().contains(word), "{e} does not mention {word}");
    };
    invalid(set.add(&[(account(1), f64::NAN)]).await.unwrap_err(), "not a number");
    invalid(set.remove_below(&[(account(1), f64::NAN)]).await.unwrap_err(), "not a number");
    invalid(set.page(.., None, 0, Order::Ascending).await.unwrap_err(), "page is 0");
    invalid(set.page(.., None, 1_001, Order::Ascending).await.unwrap_err(), "1000");
    let reversed = set.page(5.0..1.0, None, 10, Order::Ascending).await;
    invalid(reversed.unwrap_err(), "reversed");
    invalid(set.count(f64::NAN..).await.unwrap_err(), "NaN");
    invalid(MemberName::new("").unwrap_err(), "1 to 64");
    invalid(MemberName::new([0; 65]).unwrap_err(), "1 to 64");
    invalid(store.sets().named::<MemberName>("").unwrap_err(), "1 to 64");
    invalid(store.sets().named::<MemberName>("line\nbreak").unwrap_err(), "control");
    let many: Vec<_> = (1..=100_001).map(|id| (account(id), 0.0)).collect();
    invalid(set.add(&many).await.unwrap_err(), "100000");
    assert!(set.is_empty().await.unwrap(), "nothing was written");
    assert_eq!(set.add(&[]).await.unwrap().members, 0);
    assert_eq!(walk_all(&set).await, Model::new());
}

#[tokio::test]
async fn a_store_keeps_its_number_of_buckets() {
    let mut options = options(shared());
    Store::open(options.clone()).await.unwrap();
    options.buckets = Some(32);
    let refused = Store::open(options.clone()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    assert!(refused.to_string().contains("has 16 buckets"), "{refused}");
    options.buckets = None;
    assert_eq!(Store::open(options).await.unwrap().keys().buckets().count(), 16);
    tokio::time::sleep(Duration::from_millis(1)).await;
}
