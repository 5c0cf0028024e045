//! What needs no server: slots, buckets and the merge of many sources into a page.

#![allow(missing_docs, reason = "a benchmark")]
#![allow(clippy::cast_precision_loss, reason = "scores")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tideline::bucket::{Buckets, mix64, slot_of, tag_of_slot};
use tideline::keys::slot_of_key;
use tideline::sharded::Order;
use tideline::sharded::internals::{PieceRead, ScoredMember, merge};

fn slots(c: &mut Criterion) {
    c.bench_function("slot of a 20-byte key with a tag", |b| {
        b.iter(|| slot_of_key(black_box(b"tenant:{4xk}s:123456")))
    });
    c.bench_function("slot of 8 bytes", |b| b.iter(|| slot_of(black_box(&[1, 2, 3, 4, 5, 6, 7, 8]))));
    let buckets = Buckets::default();
    c.bench_function("bucket and tag of an account", |b| {
        let mut n = 0;
        b.iter(|| {
            n += 1;
            buckets.tag(buckets.of_account(black_box(mix64(n))))
        });
    });
    c.bench_function("tag of a slot", |b| b.iter(|| tag_of_slot(black_box(12_345))));
}

/// Sources whose newest entries interleave, as those of pieces do.
fn sources(count: usize, entries: usize) -> Vec<PieceRead> {
    let entry = |source: usize, at: usize| ScoredMember {
        score: -((at * count + source) as f64),
        member: mix64((at * count + source) as u64).to_be_bytes().into(),
    };
    let source = |s| PieceRead { entries: (0..entries).map(|at| entry(s, at)).collect(), is_complete: false };
    (0..count).map(source).collect()
}

fn merging(c: &mut Criterion) {
    for count in [2, 16, 128, 1_024, 11_000] {
        let sources = sources(count, (40 / count + 2).min(20));
        c.bench_function(&format!("page of 20 from {count} sources"), |b| {
            b.iter(|| merge(black_box(&sources), None, 20, Order::Descending));
        });
    }
}

criterion_group!(benches, slots, merging);
criterion_main!(benches);
