//! What a call may ask: refused before anything is sent.

use std::collections::HashSet;

use tideline_model::archive::{
    ASKS_MAX, CHANGES_MAX, LISTED_MAX, OwnerChange, PAGE_MAX, POSTS_MAX, PostListChange,
};
use tideline_model::error::{Error, Result};

/// Checks changes of one call.
pub(crate) fn check_changes(changes: &[OwnerChange]) -> Result<()> {
    at_most("changes", changes.len(), CHANGES_MAX)?;
    at_most("posts", changes.iter().map(|change| change.posts.len() + change.erased.len()).sum(), POSTS_MAX)?;
    let mut owners = HashSet::new();
    let mut ids = HashSet::new();
    for change in changes {
        if !owners.insert(change.owner.account) {
            return Err(Error::invalid(format!(
                "two changes of account {} in one call",
                change.owner.account
            )));
        }
        if let Some((post, _)) = change.posts.iter().find(|(post, _)| post.owner != change.owner.account) {
            return Err(Error::invalid(format!(
                "post {} is of account {}, and among those of {}",
                post.id, post.owner, change.owner.account
            )));
        }
        let mut named = change.posts.iter().map(|(post, _)| post.id).chain(change.erased.iter().copied());
        if let Some(twice) = named.find(|id| !ids.insert(*id)) {
            return Err(Error::invalid(format!("post {twice} stands twice in one call")));
        }
    }
    Ok(())
}

/// Checks changes of lists of one call.
pub(crate) fn check_list_changes(changes: &[PostListChange]) -> Result<()> {
    let listed = changes.iter().map(|change| change.added.len() + change.removed.len()).sum();
    at_most("posts on lists", listed, LISTED_MAX)?;
    at_most("lists", changes.len(), LISTED_MAX)
}

/// Checks questions of one call, and how much each may be answered with.
pub(crate) fn check_asks(asks: usize, most: impl Iterator<Item = usize>) -> Result<()> {
    at_most("questions", asks, ASKS_MAX)?;
    let mut most = most;
    most.try_for_each(check_most)
}

/// Checks how much one question may be answered with.
pub(crate) fn check_most(most: usize) -> Result<()> {
    at_most("answers", most, PAGE_MAX)
}

fn at_most(what: &str, many: usize, bound: usize) -> Result<()> {
    if many > bound {
        return Err(Error::out_of_range(format!("too many {what}: {many}; at most {bound} a call")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tideline_model::archive::{ArchiveToken, ArchivedPost, Owner, Prerequisite};
    use tideline_model::bucket::Bucket;
    use tideline_model::ids::{AccountId, PostId};

    use super::*;

    fn change(account: u64, posts: &[u64]) -> OwnerChange {
        let account = AccountId::new(account).unwrap();
        let post = |id: &u64| ArchivedPost::new(PostId::from_u64(*id).unwrap(), account, 1, Vec::new());
        OwnerChange {
            owner: Owner { bucket: Bucket(1), account },
            token: ArchiveToken { number: 1, nonce: [0; 8] },
            needs: Prerequisite::default(),
            upto: PostId::from_u64(9).unwrap(),
            posts: posts.iter().map(|id| (post(id), Vec::new())).collect(),
            erased: Vec::new(),
            buries: false,
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_is_wrong() {
        check_changes(&[change(1, &[3, 4]), change(2, &[5])]).unwrap();
        let mut foreign = change(1, &[3]);
        foreign.posts[0].0.owner = AccountId::new(2).unwrap();
        let mut erased = change(1, &[3]);
        erased.erased.push(PostId::from_u64(3).unwrap());
        for (changes, says) in [
            (vec![change(1, &[]), change(1, &[])], "two changes of account 1"),
            (vec![foreign], "post 3 is of account 2, and among those of 1"),
            (vec![change(1, &[3]), change(2, &[3])], "post 3 stands twice"),
            (vec![erased], "post 3 stands twice"),
            ((1..=65).map(|account| change(account, &[])).collect(), "too many changes: 65; at most 64"),
        ] {
            let error = check_changes(&changes).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(check_asks(1, [1_001].into_iter()).is_err());
        assert!(check_asks(4_097, std::iter::empty()).is_err());
    }
}
