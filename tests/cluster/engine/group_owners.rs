//! Owners of groups: what becomes of a group whose owner is deleted.

use futures::future::join_all;
use tideline::{
    AccountId, AccountKind, AccountState, AccountUpdate, Engine, FsckOptions, GroupRole, NewAccount,
};

use super::{a_millisecond, accounts, drained, engine};

const OWNER: GroupRole = GroupRole::Owner;
const MODERATOR: GroupRole = GroupRole::Moderator;

/// A group with an owner, and with these, who come in that order.
async fn group_of(engine: &Engine, owner: AccountId, staff: &[(AccountId, Option<GroupRole>)]) -> AccountId {
    let new = NewAccount { kind: AccountKind::Group, ..NewAccount::default() };
    let group = engine.create_group(owner, new).await.unwrap().value;
    for (member, role) in staff {
        // Who came first is told by the time of its follow.
        a_millisecond(engine).await;
        engine.join_group(group, *member).await.unwrap();
        engine.set_group_role(group, owner, *member, *role).await.unwrap();
    }
    group
}

async fn owners(engine: &Engine, group: AccountId) -> Vec<AccountId> {
    engine.inspect(group).await.unwrap().owners.unwrap()
}

async fn is_clean(engine: &Engine) {
    drained(engine).await;
    let findings = engine.fsck(&FsckOptions::default(), &|_| {}).await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

/// H276: it was left without one, and nobody in it could appoint another.
#[tokio::test]
async fn a_group_whose_last_owner_is_deleted_passes_to_the_moderator_who_is_there_longest() {
    let engine = engine().await;
    let [ada, ben, cy, dee, eve] = accounts(&engine, 5).await[..] else { unreachable!() };
    let staff = [(dee, None), (eve, Some(MODERATOR)), (cy, Some(MODERATOR)), (ben, Some(MODERATOR))];
    let passed = group_of(&engine, ada, &staff).await;
    let shared = group_of(&engine, ada, &[(cy, Some(MODERATOR)), (ben, Some(OWNER))]).await;
    drained(&engine).await;
    assert_eq!(owners(&engine, passed).await, [ada]);
    // Who may do nothing looks after nothing.
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(eve, &suspended).await.unwrap();

    engine.delete_account(ada).await.unwrap();
    drained(&engine).await;
    let left = [(ben, MODERATOR), (cy, OWNER), (eve, MODERATOR)];
    assert_eq!(engine.stored().group_staff(passed).await.unwrap(), left);
    assert_eq!((owners(&engine, passed).await, owners(&engine, shared).await), (vec![cy], vec![ben]));
    assert_eq!(engine.stored().group_staff(shared).await.unwrap(), [(ben, OWNER), (cy, MODERATOR)]);
    engine.set_group_role(passed, cy, dee, Some(MODERATOR)).await.unwrap();
    assert_eq!(engine.inspect(cy).await.unwrap().owners, None);
    is_clean(&engine).await;
}

#[tokio::test]
async fn a_group_that_nobody_looks_after_is_told_and_the_service_gives_it_an_owner() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { unreachable!() };
    let group = group_of(&engine, ada, &[(ben, None)]).await;
    drained(&engine).await;
    engine.delete_account(ada).await.unwrap();
    drained(&engine).await;
    // Nobody becomes an owner who has never been asked to look after it.
    assert_eq!(
        (engine.stored().group_staff(group).await.unwrap(), owners(&engine, group).await),
        (vec![], vec![])
    );
    is_clean(&engine).await;
    engine.set_group_role(group, group, ben, Some(OWNER)).await.unwrap();
    assert_eq!(owners(&engine, group).await, [ben]);
    engine.delete_group(group, ben).await.unwrap();
    assert_eq!(engine.inspect(group).await.unwrap().owners, None);
    is_clean(&engine).await;
}

/// H277: it was left to somebody who was gone, too.
#[tokio::test]
async fn who_goes_together_with_the_owner_doesnt_keep_the_group() {
    let engine = engine().await;
    let people = accounts(&engine, 3 * 8).await;
    let mut groups = Vec::new();
    for three in people.chunks(3) {
        let [owner, first, second] = three[..] else { unreachable!() };
        let staff = [(first, Some(MODERATOR)), (second, Some(MODERATOR))];
        groups.push((group_of(&engine, owner, &staff).await, three));
    }
    drained(&engine).await;
    for deleted in
        join_all(people.chunks(3).flat_map(|three| &three[..2]).map(|of| engine.delete_account(*of))).await
    {
        deleted.unwrap();
    }
    drained(&engine).await;
    for (group, three) in groups {
        assert_eq!(engine.stored().group_staff(group).await.unwrap(), [(three[2], OWNER)]);
    }
    is_clean(&engine).await;
}

#[tokio::test]
async fn of_owners_who_are_deleted_at_once_the_group_passes_once() {
    let engine = engine().await;
    let people = accounts(&engine, 6).await;
    let (gone, left) = people.split_at(4);
    let owning = gone[1..].iter().map(|account| (*account, Some(OWNER)));
    let staff: Vec<_> = owning.chain(left.iter().map(|account| (*account, Some(MODERATOR)))).collect();
    let group = group_of(&engine, gone[0], &staff).await;
    drained(&engine).await;
    for deleted in join_all(gone.iter().map(|owner| engine.delete_account(*owner))).await {
        deleted.unwrap();
    }
    drained(&engine).await;
    assert_eq!(engine.stored().group_staff(group).await.unwrap(), [(left[0], OWNER), (left[1], MODERATOR)]);
    is_clean(&engine).await;
}
