//! An archive as simply as it can be told: maps in memory.

use std::collections::{BTreeMap, BTreeSet};

use tideline_model::archive::{
    ArchivedPost, ChangeOutcome, ListKind, ListMember, MemberList, MembersAsk, OwnerChange, OwnerPage,
    OwnerState, PageAsk, PageContent, PageOrder, WalkedPost,
};
use tideline_model::bucket::Bucket;
use tideline_model::ids::{AccountId, PostId};

#[derive(Debug, Default)]
pub(crate) struct ModelArchive {
    owners: BTreeMap<AccountId, OwnerState>,
    posts: BTreeMap<PostId, (Bucket, ArchivedPost)>,
    lists: BTreeMap<(PostId, ListKind), Vec<ListMember>>,
}

impl ModelArchive {
    pub(crate) fn change(&mut self, changes: &[OwnerChange]) -> Vec<ChangeOutcome> {
        changes.iter().map(|change| self.change_one(change)).collect()
    }

    fn change_one(&mut self, change: &OwnerChange) -> ChangeOutcome {
        let account = change.owner.account;
        let state = change.judge(self.owners.get(&account))?;
        self.owners.insert(account, state);
        for (post, lists) in &change.posts {
            let before = self.posts.get(&post.id).map(|(_, post)| post.parts.clone()).unwrap_or_default();
            let put = ArchivedPost { parts: post.parts.over(&before), ..post.clone() };
            self.posts.insert(post.id, (change.owner.bucket, put));
            for list in lists {
                let members = self.lists.entry((post.id, list.kind)).or_default();
                members.truncate(list.first as usize * MemberList::CHUNK);
                members.extend(list.members.iter().cloned());
            }
        }
        for id in &change.erased {
            if self.posts.get(id).is_some_and(|(_, post)| post.owner == account) {
                self.posts.remove(id);
                self.lists.retain(|(post, _), _| post != id);
            }
        }
        Ok(())
    }

    pub(crate) fn owner(&self, account: AccountId) -> Option<OwnerState> {
        self.owners.get(&account).copied()
    }

    pub(crate) fn page(&self, ask: &PageAsk, order: PageOrder, content: PageContent) -> OwnerPage {
        let is_asked_for = |post: &&ArchivedPost| {
            post.owner == ask.owner.account
                && match order {
                    PageOrder::NewestFirst => post.id < ask.edge,
                    PageOrder::OldestFirst => post.id > ask.edge,
                }
        };
        let mut posts: Vec<ArchivedPost> =
            self.posts.values().map(|(_, post)| post).filter(is_asked_for).cloned().collect();
        if order == PageOrder::NewestFirst {
            posts.reverse();
        }
        posts.truncate(ask.most);
        let ids = posts.iter().map(|post| post.id).collect();
        if content == PageContent::Ids {
            posts.clear();
        }
        OwnerPage { owner: self.owner(ask.owner.account), ids, posts }
    }

    pub(crate) fn post(&self, id: PostId) -> Option<ArchivedPost> {
        self.posts.get(&id).map(|(_, post)| post.clone())
    }

    pub(crate) fn members(&self, ask: &MembersAsk) -> Vec<ListMember> {
        let all = self.lists.get(&(ask.post, ask.kind)).into_iter().flatten();
        let is_below =
            |member: &&ListMember| ask.below.as_ref().is_none_or(|edge| member.order(edge).is_lt());
        let below: Vec<ListMember> = all.filter(is_below).cloned().collect();
        below.into_iter().rev().take(ask.most).collect()
    }

    pub(crate) fn walk(&self) -> Vec<WalkedPost> {
        let sorted: BTreeSet<(Bucket, AccountId, PostId)> =
            self.posts.values().map(|(bucket, post)| (*bucket, post.owner, post.id)).collect();
        let walked = sorted.into_iter().map(|(_, owner, id)| {
            let post = &self.posts[&id].1;
            let bytes = (post.stored.len() + post.parts.to_bytes().len()) as u64;
            WalkedPost { owner, id, change: post.change, bytes }
        });
        walked.collect()
    }
}
