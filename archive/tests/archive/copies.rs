//! Archives that are copied from one backend to the other, and back.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tideline_archive::{Archive, CopiedCount, copy};
use tideline_model::archive::{
    ArchiveName, IndexKey, ListKey, ListKind, ListMember, ListPlace, ListedPost, MemberList, MembersAsk,
    Owner, PAGE_MAX, PageContent, PageOrder, PartName, PostAsk, PostListAsk, PostListChange,
};
use tideline_model::bucket::{Bucket, Buckets};
use tideline_model::error::{ErrorKind, Result};
use tideline_model::ids::AccountId;

use crate::histories::seeds;
use crate::places::{Kind, account, ask, bucket_of, change, each, id, owner, post, walk};

const NAME: ArchiveName = ArchiveName([5; 16]);
/// Accounts, with numbers from 1 on. The first one has more posts than a page, the second one none.
const OWNERS: u64 = 90;
/// Those of the first one.
const MANY: u64 = 2_500;

fn buckets() -> Buckets {
    Buckets::new(16).unwrap()
}

fn members(random: &mut StdRng) -> Vec<ListMember> {
    // More than a page, now and then.
    let many: u32 = if random.random_bool(0.01) { 2_048 } else { random.random_range(0..4) };
    let member = |n: u32| ListMember { score: f64::from(n / 3), bytes: n.to_be_bytes().to_vec() };
    (0..many).map(member).collect()
}

/// Accounts with posts, parts and lists of all kinds, some of them buried, of which some have posts still.
async fn fill_owners(archive: &dyn Archive, random: &mut StdRng) {
    for of in 1..=OWNERS {
        let posts: u64 = match of {
            1 => MANY,
            2 => 0,
            _ => random.random_range(0..40),
        };
        let numbers: Vec<u64> = (1..=posts).map(|n| n * 1_000 + of).collect();
        for numbers in numbers.chunks(500) {
            let mut into = change(of, 30 + of, &[]);
            into.upto = id(9_000_000);
            for number in numbers {
                let mut drawn = post(of, *number);
                drawn.change = random.random();
                if random.random_bool(0.3) {
                    drawn.parts.set(PartName(random.random()), vec![random.random(); 9]);
                }
                let kinds: BTreeSet<u8> = (0..random.random_range(0..3)).map(|_| random.random()).collect();
                let list = |kind| MemberList { kind: ListKind(kind), first: 0, members: members(random) };
                into.posts.push((drawn, kinds.into_iter().map(list).collect()));
            }
            assert_eq!(archive.change(&[into]).await.unwrap(), [Ok(())]);
        }
        let mut last = change(of, 200 + of, &[]);
        last.buries = random.random_bool(0.2);
        if random.random_bool(0.3) {
            last.erased = numbers.iter().filter(|_| random.random_bool(0.5)).map(|n| id(*n)).collect();
        }
        last.erased.truncate(4_000);
        assert_eq!(archive.change(&[last]).await.unwrap(), [Ok(())]);
    }
}

async fn fill_lists(archive: &dyn Archive, random: &mut StdRng) {
    for n in 0..100u64 {
        let list = ListKey { bucket: bucket_of(n), name: format!("list {n}").into_bytes() };
        let many = if n == 3 { 3_000 } else { random.random_range(0..5) };
        let listed = |unix_ms: u64| ListedPost {
            place: ListPlace { unix_ms, post: id(unix_ms * 7 + n) },
            author: account(1 + unix_ms % OWNERS),
        };
        let added = (1..=many).map(listed).collect();
        let stamp = random.random_range(0..1 << 40);
        archive.change_lists(&[PostListChange { list, added, removed: Vec::new(), stamp }]).await.unwrap();
    }
}

async fn filled(archive: &dyn Archive, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    fill_owners(archive, &mut random).await;
    fill_lists(archive, &mut random).await;
    archive.adopt(NAME).await.unwrap();
}

async fn copied(from: &dyn Archive, to: &dyn Archive) -> Result<CopiedCount> {
    copy(from, to, buckets(), |_| ()).await?.adopt().await
}

/// Everything that can be asked of owners and posts.
async fn same_posts(one: &dyn Archive, other: &dyn Archive) -> usize {
    let owners: Vec<Owner> = (1..=OWNERS + 1).map(owner).collect();
    assert_eq!(one.owners(&owners).await.unwrap(), other.owners(&owners).await.unwrap());
    let walked = walk(one).await;
    assert_eq!(walked, walk(other).await);
    for content in [PageContent::Ids, PageContent::Posts] {
        for (order, edge) in [(PageOrder::NewestFirst, 9_000_000), (PageOrder::OldestFirst, 0)] {
            let asks: Vec<_> = (1..=OWNERS + 1).map(|of| ask(of, edge, PAGE_MAX)).collect();
            let pages = one.pages(&asks, order, content).await.unwrap();
            assert_eq!(pages, other.pages(&asks, order, content).await.unwrap());
        }
    }
    let mut members = 0;
    for walked in walked.chunks(50) {
        let bucket = |owner: AccountId| bucket_of(owner.get());
        let asks: Vec<PostAsk> = walked
            .iter()
            .map(|post| PostAsk { bucket: bucket(post.owner), id: post.id, owner: None })
            .collect();
        assert_eq!(one.posts(&asks).await.unwrap(), other.posts(&asks).await.unwrap());
        let kinds = one.list_kinds(&asks).await.unwrap();
        assert_eq!(kinds, other.list_kinds(&asks).await.unwrap());
        for (post, kinds) in asks.iter().zip(kinds) {
            let ask =
                |kind| MembersAsk { bucket: post.bucket, post: post.id, kind, below: None, most: PAGE_MAX };
            let mut asks: Vec<MembersAsk> = kinds.into_iter().map(ask).collect();
            while !asks.is_empty() {
                let answers = one.members(&asks).await.unwrap();
                assert_eq!(answers, other.members(&asks).await.unwrap(), "{asks:?}");
                members += answers.iter().map(|answer| answer.members.len()).sum::<usize>();
                let next = |(ask, answer): (MembersAsk, _)| {
                    let tideline_model::archive::MembersAnswer { members, .. } = answer;
                    (members.len() == PAGE_MAX).then(|| MembersAsk { below: members.last().cloned(), ..ask })
                };
                asks = asks.into_iter().zip(answers).filter_map(next).collect();
            }
        }
    }
    members
}

/// Everything that can be asked of lists of posts.
async fn same_lists(one: &dyn Archive, other: &dyn Archive) -> usize {
    let (mut names, mut listed) = (0, 0);
    for bucket in buckets().all() {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = one.walk_lists(bucket, after.as_deref(), 3).await.unwrap();
            assert_eq!(page, other.walk_lists(bucket, after.as_deref(), 3).await.unwrap());
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            names += page.len();
            for name in page {
                listed += same_list(one, other, ListKey { bucket, name }).await;
            }
        }
    }
    assert_eq!(names, 100);
    listed
}

async fn same_list(one: &dyn Archive, other: &dyn Archive, list: ListKey) -> usize {
    let mut listed = 0;
    let mut edge = ListPlace { unix_ms: 1 << 40, post: id(0) };
    loop {
        let asks = [PostListAsk { list: list.clone(), edge, most: 900 }];
        let pages = one.list_pages(&asks, PageOrder::NewestFirst).await.unwrap();
        assert_eq!(pages, other.list_pages(&asks, PageOrder::NewestFirst).await.unwrap());
        listed += pages[0].posts.len();
        let Some(last) = pages[0].posts.last() else { return listed };
        edge = last.place;
    }
}

async fn are_same(one: &dyn Archive, other: &dyn Archive, count: CopiedCount) {
    assert_eq!(one.name().await.unwrap(), other.name().await.unwrap());
    let members = same_posts(one, other).await;
    let listed = same_lists(one, other).await;
    let posts = walk(one).await.len();
    let expected = [OWNERS, posts as u64, members as u64, listed as u64];
    assert_eq!([count.owners, count.posts, count.members, count.listed], expected);
    assert!(posts > 2_000 && members > 8_192 && listed > 3_000, "{count:?}");
    // Words of posts aren't: an engine finds them again.
    let key = IndexKey { bucket: Bucket(0), post: id(1) };
    assert_eq!(other.index_versions(&[key]).await.unwrap(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_one_backend_holds_the_other_one_does_that_it_is_copied_to_and_so_back() {
    for seed in seeds().into_iter().take(2) {
        println!("seed {seed}");
        let (froms, backs) = (each().await, each().await);
        for (n, (kind, from)) in froms.iter().enumerate() {
            let others = each().await;
            let (_, to) = others.into_iter().find(|(other, _)| other != kind).unwrap();
            let (back_kind, back): &(Kind, _) = &backs[n];
            assert_eq!(back_kind, kind);
            filled(&*from.archive, seed).await;
            let count = copied(&*from.archive, &*to.archive).await.unwrap();
            are_same(&*from.archive, &*to.archive, count).await;
            let count = copied(&*to.archive, &*back.archive).await.unwrap();
            are_same(&*from.archive, &*back.archive, count).await;
            let again = copied(&*from.archive, &*to.archive).await.unwrap_err();
            assert!(again.to_string().contains("that copy is complete"), "{again}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_broke_off_is_nobodys_archive_and_is_not_gone_on_with() {
    for (kind, from) in each().await {
        let (from, others) = (from.archive, each().await);
        filled(&*from, 1).await;
        for (_, to) in &others {
            let broken = AtomicUsize::new(0);
            let breaks = tokio::sync::Notify::new();
            let progress = |_| {
                if broken.fetch_add(1, Ordering::SeqCst) == 5 {
                    breaks.notify_one();
                }
            };
            tokio::select! {
                biased;
                () = breaks.notified() => {}
                _ = copy(&*from, &*to.archive, buckets(), progress) => panic!("it was not broken off"),
            }
            let walked = walk(&*to.archive).await.len();
            assert!(walked > 0 && walked < walk(&*from).await.len(), "{kind:?}: {walked}");
            assert_eq!(to.archive.name().await.unwrap(), None);
            let refused = copied(&*from, &*to.archive).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Misconfigured);
            assert!(refused.to_string().contains("a copy that broke off: remove that copy"), "{refused}");
            assert_eq!(to.archive.name().await.unwrap(), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_while_it_is_copied_is_told() {
    for (kind, from) in each().await {
        let mut others = each().await;
        let ((_, to), from) = (others.remove(0), from.archive);
        filled(&*from, 1).await;
        let is_there = tokio::sync::Notify::new();
        // All posts are there before the last bucket's lists.
        let all = walk(&*from).await.len() as u64;
        let progress = |count: CopiedCount| {
            if count.posts == all {
                is_there.notify_one();
            }
        };
        let mut copying = pin!(copy(&*from, &*to.archive, buckets(), progress));
        tokio::select! {
            biased;
            () = is_there.notified() => {}
            _ = &mut copying => panic!("it didn't wait"),
        }
        assert_eq!(from.change(&[change(3, 999, &[3_000_003])]).await.unwrap(), [Ok(())]);
        let differs = copying.await.unwrap_err();
        assert_eq!(differs.kind(), ErrorKind::Conflict, "{kind:?}: {differs}");
        assert!(differs.to_string().contains("differ in the copy"), "{differs}");
        assert_eq!(to.archive.name().await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_archive_with_a_name_is_copied_and_only_to_where_no_other_one_is() {
    for (_, from) in each().await {
        let mut others = each().await;
        let ((_, to), from) = (others.remove(1), from.archive);
        let nameless = copied(&*from, &*to.archive).await.unwrap_err();
        assert!(nameless.to_string().contains("no archive that was begun"), "{nameless}");
        from.adopt(NAME).await.unwrap();
        to.archive.adopt(ArchiveName([6; 16])).await.unwrap();
        let other = copied(&*from, &*to.archive).await.unwrap_err();
        assert!(other.to_string().contains("another archive stands there, 0606"), "{other}");
    }
}
