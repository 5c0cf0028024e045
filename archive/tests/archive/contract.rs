//! What each archive does, case by case.

use tideline_model::archive::{
    ArchiveName, ChangeRefusal, ListKey, ListKind, ListMember, ListPlace, ListedPost, MemberList, MembersAsk,
    OwnerChange, OwnerState, PageContent, PageOrder, PartName, PostAsk, PostListAsk, PostListChange,
    Prerequisite,
};
use tideline_model::bucket::Bucket;
use tideline_model::error::ErrorKind;
use tideline_model::ids::PostId;

use crate::places::{account, ask, bucket_of, change, each, id, owner, post, token, walk};

fn numbers(ids: &[PostId]) -> Vec<u64> {
    ids.iter().map(|id| id.get()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn posts_come_back_as_they_went_in_and_pages_read_either_way() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let mut first = change(1, 1, &[10, 20, 30]);
        first.posts[1].0.parts.set(PartName(9), b"a part that nobody knows".to_vec());
        first.posts[2].0.stored = vec![0, 255, 7];
        assert_eq!(archive.change(&[first.clone(), change(2, 1, &[15])]).await.unwrap(), [Ok(()), Ok(())]);

        let asks = [ask(1, 31, 2), ask(3, 31, 2), ask(2, 15, 2), ask(1, 30, 9)];
        let pages = archive.pages(&asks, PageOrder::NewestFirst, PageContent::Posts).await.unwrap();
        assert_eq!(pages[0].posts, [first.posts[2].0.clone(), first.posts[1].0.clone()], "{kind:?}");
        assert_eq!(pages[0].owner, Some(OwnerState { token: token(1), upto: id(30), is_buried: false }));
        assert_eq!((pages[1].owner, pages[1].posts.len()), (None, 0));
        assert_eq!((pages[2].owner.is_some(), pages[2].posts.len()), (true, 0), "15 itself isn't below 15");
        assert_eq!(numbers(&pages[3].ids), [20, 10]);

        let up = archive.pages(&[ask(1, 10, 9)], PageOrder::OldestFirst, PageContent::Ids).await.unwrap();
        assert_eq!((numbers(&up[0].ids), up[0].posts.len()), (vec![20, 30], 0), "{kind:?}");
        let none = archive.pages(&[], PageOrder::OldestFirst, PageContent::Ids).await.unwrap();
        assert!(none.is_empty());
    }
}

/// H225: a release moves a post of which a later one has stored a part that it doesn't know.
#[tokio::test(flavor = "multi_thread")]
async fn parts_that_a_change_does_not_name_stay_and_those_without_bytes_go() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let put = async |token: u8, named: &[(u8, &[u8])]| {
            // Beside others, of which nothing is to be kept.
            let mut change = change(1, u64::from(token), &[10, 20, 30]);
            named
                .iter()
                .for_each(|(name, bytes)| change.posts[1].0.parts.set(PartName(*name), bytes.to_vec()));
            change.posts[1].0.stored = vec![token];
            assert_eq!(archive.change(&[change]).await.unwrap(), [Ok(())]);
            let of = |number| PostAsk { bucket: bucket_of(1), id: id(number), owner: Some(account(1)) };
            let answers = archive.posts(&[of(10), of(20), of(30)]).await.unwrap();
            let [first, post, last] = &answers[..] else { panic!("three were asked for") };
            for other in [first, last] {
                assert_eq!(other.post.as_ref().unwrap().parts.names().count(), 0, "{kind:?}");
            }
            let post = post.post.as_ref().unwrap();
            assert_eq!(post.stored, [token], "{kind:?}");
            let part = |name: PartName| (name.0, post.parts.get(name).unwrap().to_vec());
            post.parts.names().map(part).collect::<Vec<_>>()
        };
        let parts = |named: &[(u8, &str)]| {
            named.iter().map(|(name, bytes)| (*name, bytes.as_bytes().to_vec())).collect::<Vec<_>>()
        };
        assert_eq!(
            put(1, &[(9, b"of a later release"), (116, b"tree")]).await,
            parts(&[(9, "of a later release"), (116, "tree")])
        );
        assert_eq!(
            put(2, &[(116, b"another")]).await,
            parts(&[(9, "of a later release"), (116, "another")]),
            "{kind:?}"
        );
        assert_eq!(put(3, &[(116, b"")]).await, parts(&[(9, "of a later release")]), "{kind:?}");
        assert_eq!(put(4, &[]).await, parts(&[(9, "of a later release")]), "{kind:?}");
        assert!(put(5, &[(9, b""), (116, b"")]).await.is_empty(), "{kind:?}");
        assert_eq!(put(6, &[(116, b"tree"), (117, b"")]).await, parts(&[(116, "tree")]), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_found_by_its_id_and_as_its_owners_only() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        archive.change(&[change(1, 1, &[10])]).await.unwrap();
        let by = |number, of: Option<u64>| PostAsk {
            bucket: bucket_of(1),
            id: id(number),
            owner: of.map(account),
        };
        let asks = [by(10, None), by(10, Some(1)), by(10, Some(2)), by(11, Some(1)), by(11, None)];
        let answers = archive.posts(&asks).await.unwrap();
        let found: Vec<(bool, bool)> =
            answers.iter().map(|answer| (answer.post.is_some(), answer.owner.is_some())).collect();
        let expected = [(true, true), (true, true), (false, false), (false, true), (false, false)];
        assert_eq!(found, expected, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_writes_nothing_and_leaves_the_others_of_its_call_alone() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        archive.change(&[change(1, 5, &[10]), change(2, 5, &[15])]).await.unwrap();
        let needs = |token_number, upto: u64| Prerequisite { token_number, upto: Some(id(upto)) };
        let late = change(1, 4, &[11]);
        let behind = OwnerChange { needs: needs(7, 10), ..change(2, 8, &[16]) };
        let never_there = OwnerChange { needs: needs(1, 1), ..change(3, 2, &[17]) };
        let fine = change(4, 1, &[18]);
        let outcomes = archive.change(&[never_there, late, fine, behind]).await.unwrap();
        assert_eq!(outcomes[0], Err(ChangeRefusal::Behind(None)), "{kind:?}");
        assert_eq!(outcomes[1], Err(ChangeRefusal::Passed(5)));
        assert_eq!(outcomes[2], Ok(()));
        assert!(matches!(outcomes[3], Err(ChangeRefusal::Behind(Some(state))) if state.token.number == 5));
        let mut there: Vec<u64> = walk(archive).await.iter().map(|post| post.id.get()).collect();
        there.sort_unstable();
        assert_eq!(there, [10, 15, 18]);
        let states = archive.owners(&[owner(1), owner(2), owner(3), owner(4)]).await.unwrap();
        let tokens: Vec<Option<u64>> =
            states.iter().map(|state| state.map(|state| state.token.number)).collect();
        assert_eq!(tokens, [Some(5), Some(5), None, Some(1)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_buried_gets_nothing_in_and_all_out() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        archive.change(&[change(1, 1, &[10, 20])]).await.unwrap();
        let burial = OwnerChange { buries: true, erased: vec![id(10)], ..change(1, 2, &[]) };
        assert_eq!(archive.change(&[burial]).await.unwrap(), [Ok(())]);
        assert_eq!(archive.change(&[change(1, 3, &[30])]).await.unwrap(), [Err(ChangeRefusal::Buried)]);
        let rest = OwnerChange { erased: vec![id(20)], ..change(1, 3, &[]) };
        assert_eq!(archive.change(&[rest]).await.unwrap(), [Ok(())], "{kind:?}");
        assert!(walk(archive).await.is_empty());
        assert!(archive.owners(&[owner(1)]).await.unwrap()[0].unwrap().is_buried);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_erases_or_overwrites_anothers_post() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        archive.change(&[change(1, 1, &[10])]).await.unwrap();
        let mut foreign = change(2, 1, &[]);
        foreign.erased.push(id(10));
        foreign.owner.bucket = bucket_of(1);
        assert_eq!(archive.change(&[foreign]).await.unwrap(), [Ok(())]);
        assert_eq!(walk(archive).await.len(), 1, "{kind:?}");
        let mut overwriting = change(2, 2, &[10]);
        overwriting.owner.bucket = bucket_of(1);
        let error = archive.change(&[overwriting]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        let found =
            archive.posts(&[PostAsk { bucket: bucket_of(1), id: id(10), owner: None }]).await.unwrap();
        assert_eq!(found[0].post, Some(post(1, 10)));
    }
}

fn members(scores: std::ops::Range<u32>) -> Vec<ListMember> {
    // Three of each score: what lies at an edge is told by its bytes.
    let member = |n: u32| ListMember { score: f64::from(n / 3), bytes: n.to_be_bytes().to_vec() };
    scores.map(member).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_read_from_its_newest_members_and_grows_at_that_end() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let with_list = |number, first, members| {
            let mut change = change(1, number, &[10]);
            change.posts[0].1.push(MemberList { kind: ListKind(1), first, members });
            change
        };
        archive.change(&[with_list(1, 0, members(0..2_500))]).await.unwrap();
        let ask = |below: Option<ListMember>, most| MembersAsk {
            bucket: bucket_of(1),
            post: id(10),
            kind: ListKind(1),
            below,
            most,
        };
        // All of it, page by page, whatever a page's size.
        for most in [1_000, 7] {
            let (mut read, mut below): (Vec<ListMember>, _) = (Vec::new(), None);
            while read.len() < 2_500 {
                let page = archive.members(&[ask(below, most)]).await.unwrap().remove(0).members;
                assert!(!page.is_empty(), "{kind:?}: {} of 2,500", read.len());
                read.extend(page);
                below = read.last().cloned();
            }
            read.reverse();
            assert_eq!(read, members(0..2_500), "{kind:?}");
            assert!(
                archive.members(&[ask(Some(read[0].clone()), most)]).await.unwrap()[0].members.is_empty()
            );
        }
        // From the second chunk on anew; what was below stays.
        archive.change(&[with_list(2, 1, members(1_024..1_100))]).await.unwrap();
        let top = archive.members(&[ask(None, 100)]).await.unwrap().remove(0).members;
        assert!(top.iter().rev().eq(members(1_000..1_100).iter()), "{kind:?}");
        // Not named: stays. Empty from the beginning: goes.
        archive.change(&[change(1, 3, &[10])]).await.unwrap();
        assert_eq!(archive.members(&[ask(None, 100)]).await.unwrap().remove(0).members, top);
        archive.change(&[with_list(4, 0, Vec::new())]).await.unwrap();
        assert!(archive.members(&[ask(None, 100)]).await.unwrap().remove(0).members.is_empty(), "{kind:?}");
        // With the post go its lists.
        archive.change(&[with_list(5, 0, members(0..5))]).await.unwrap();
        let erasing = OwnerChange { erased: vec![id(10)], ..change(1, 6, &[]) };
        archive.change(&[erasing]).await.unwrap();
        assert!(archive.members(&[ask(None, 100)]).await.unwrap().remove(0).members.is_empty(), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_posts_go_on_beyond_a_place_and_their_stamps_only_rise() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let list = |name: &str| ListKey { bucket: Bucket(3), name: name.into() };
        let listed = |ms, number| ListedPost {
            place: ListPlace { unix_ms: ms, post: id(number) },
            author: account(number),
        };
        let change = |name: &str, added: &[ListedPost], removed: &[ListedPost], stamp| PostListChange {
            list: list(name),
            added: added.to_vec(),
            removed: removed.to_vec(),
            stamp,
        };
        let (a, b, c) = (listed(5, 9), listed(5, 11), listed(6, 1));
        // The same twice, and two changes of one list in one call.
        let changes =
            [change("#x", &[a, b], &[], 6), change("#y", &[a], &[], 1), change("#x", &[c, a], &[], 4)];
        archive.change_lists(&changes).await.unwrap();
        archive.change_lists(&changes).await.unwrap();
        let ask = |name: &str, unix_ms, post, most| PostListAsk {
            list: list(name),
            edge: ListPlace { unix_ms, post: id(post) },
            most,
        };
        let asks = [ask("#x", 7, 0, 9), ask("#x", 5, 11, 9), ask("#x", 7, 0, 1), ask("#z", 7, 0, 9)];
        let pages = archive.list_pages(&asks, PageOrder::NewestFirst).await.unwrap();
        let posts: Vec<Vec<ListedPost>> = pages.iter().map(|page| page.posts.clone()).collect();
        assert_eq!(posts, [vec![c, b, a], vec![a], vec![c], vec![]], "{kind:?}");
        assert_eq!((pages[0].stamp, pages[3].stamp), (6, 0), "{kind:?}");
        let upwards = [ask("#x", 5, 9, 9), ask("#x", 0, 0, 2)];
        let pages = archive.list_pages(&upwards, PageOrder::OldestFirst).await.unwrap();
        let posts: Vec<Vec<ListedPost>> = pages.iter().map(|page| page.posts.clone()).collect();
        assert_eq!(posts, [vec![b, c], vec![a, b]], "{kind:?}");
        archive.change_lists(&[change("#x", &[], &[b], 0)]).await.unwrap();
        let page = archive.list_pages(&asks[..1], PageOrder::NewestFirst).await.unwrap().remove(0);
        assert_eq!((page.stamp, page.posts), (6, vec![c, a]), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_gets_one_name() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        assert_eq!(archive.name().await.unwrap(), None);
        let (mine, yours) = (ArchiveName([1; 16]), ArchiveName([2; 16]));
        assert_eq!(archive.adopt(mine).await.unwrap(), mine);
        assert_eq!(archive.adopt(yours).await.unwrap(), mine, "{kind:?}");
        assert_eq!(archive.name().await.unwrap(), Some(mine));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_meets_all_owners_and_a_size_is_told() {
    for (kind, place) in each().await {
        let archive = &*place.archive;
        let changes: Vec<OwnerChange> = (1..=40).map(|of| change(of, 1, &[of * 2, of * 2 + 1])).collect();
        assert!(archive.change(&changes).await.unwrap().iter().all(Result::is_ok));
        let mut owners = Vec::new();
        for bucket in (0..16).map(Bucket) {
            let mut after = None;
            while let Some(last) = {
                let page = archive.walk_owners(bucket, after, 2).await.unwrap();
                owners.extend(page.iter().map(|(account, _)| account.get()));
                page.last().map(|(account, _)| *account)
            } {
                after = Some(last);
            }
        }
        owners.sort_unstable();
        assert!(owners.into_iter().eq(1..=40), "{kind:?}");
        assert_eq!(walk(archive).await.len(), 80);
        assert!(archive.size().await.unwrap().bytes > 0);
        assert!(!format!("{archive:?}").contains("postgres:"), "{archive:?}");
    }
}
