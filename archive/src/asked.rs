//! Checks of calls: what they may not ask is refused before anything is sent.

use std::collections::{HashMap, HashSet};

use tideline_model::archive::{
    ASKS_MAX, ArchivedPost, BYTES_MAX, CHANGES_MAX, INDEXED_MAX, IndexChange, LIST_NAME_MAX, LISTED_MAX,
    ListKey, ListedPost, MemberList, OwnerChange, PAGE_MAX, POSTS_MAX, PostListChange, SEARCH_WORDS_MAX,
    SearchAsk, WORD_LEN_MAX,
};
use tideline_model::error::{Error, Result};

/// Checks changes of one call.
pub(crate) fn check_changes(changes: &[OwnerChange]) -> Result<()> {
    at_most("changes", changes.len(), CHANGES_MAX)?;
    let of_post = |(post, lists): &(ArchivedPost, Vec<MemberList>)| {
        let members = lists.iter().flat_map(|list| &list.members);
        post.stored.len()
            + post.parts.encoded_len()
            + members.map(|member| member.bytes.len() + 9).sum::<usize>()
    };
    at_most("bytes", changes.iter().flat_map(|change| &change.posts).map(of_post).sum(), BYTES_MAX)?;
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
        if change.buries && !change.posts.is_empty() {
            return Err(Error::invalid(format!(
                "account {} is buried, and posts of it come in, in one change",
                change.owner.account
            )));
        }
        for (post, lists) in &change.posts {
            let mut kinds = HashSet::new();
            if let Some(twice) = lists.iter().find(|list| !kinds.insert(list.kind)) {
                return Err(Error::invalid(format!(
                    "list {} of post {} stands twice",
                    twice.kind.0, post.id
                )));
            }
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
    at_most("lists", changes.len(), LISTED_MAX)?;
    let mut gone: HashMap<&ListKey, HashSet<&ListedPost>> = HashMap::new();
    for change in changes {
        if change.list.name.len() > LIST_NAME_MAX {
            let len = change.list.name.len();
            return Err(Error::out_of_range(format!(
                "a list's name of {len} bytes: at most {LIST_NAME_MAX}"
            )));
        }
        gone.entry(&change.list).or_default().extend(&change.removed);
    }
    // One call has no order: a post that comes and goes in it would be there or not, as the store likes.
    let goes = |change: &PostListChange, post: &ListedPost| gone[&change.list].contains(post);
    let mut added = changes.iter().flat_map(|change| change.added.iter().map(move |post| (change, post)));
    match added.find(|(change, post)| goes(change, post)) {
        Some((_, both)) => Err(Error::invalid(format!(
            "post {} comes onto a list and goes off it in one call",
            both.place.post
        ))),
        None => Ok(()),
    }
}

/// Checks how many posts of the index are asked after.
pub(crate) fn check_indexed(posts: usize) -> Result<()> {
    at_most("posts", posts, INDEXED_MAX)
}

/// Checks changes of the index of one call.
pub(crate) fn check_index_changes(changes: &[IndexChange]) -> Result<()> {
    check_indexed(changes.len())?;
    let mut posts = HashSet::new();
    if let Some(twice) = changes.iter().find(|change| !posts.insert(change.key.post)) {
        return Err(Error::invalid(format!("post {} stands twice in one call", twice.key.post)));
    }
    changes.iter().filter_map(|change| change.post.as_ref()).try_for_each(|post| check_words(&post.words))
}

/// Checks what is searched for.
pub(crate) fn check_search(ask: &SearchAsk) -> Result<()> {
    check_most(ask.most)?;
    at_most("words", ask.words.len(), SEARCH_WORDS_MAX)?;
    if ask.words.is_empty() {
        return Err(Error::invalid("a search for no word"));
    }
    check_words(&ask.words)
}

/// Checks words: what isn't a letter or a digit means something in the stores' languages, or parts a word in two.
fn check_words(words: &[String]) -> Result<()> {
    let is_fit = |word: &String| {
        let is_letter = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric();
        (1..=WORD_LEN_MAX).contains(&word.len()) && word.chars().all(is_letter)
    };
    match words.iter().find(|word| !is_fit(word)) {
        Some(word) => Err(Error::invalid(format!(
            "{word:?} is no word of the index: 1 to {WORD_LEN_MAX} bytes, of ASCII only letters and digits"
        ))),
        None => Ok(()),
    }
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
    use tideline_model::archive::{ArchiveToken, ListKind, ListPlace, Owner, Prerequisite};
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
        let mut buried = change(1, &[3]);
        buried.buries = true;
        let mut doubled = change(1, &[3]);
        let list = MemberList { kind: ListKind(2), first: 0, members: Vec::new() };
        doubled.posts[0].1.extend([list.clone(), list]);
        let mut large = change(1, &[3]);
        large.posts[0].0.stored = vec![0; BYTES_MAX + 1];
        for (changes, says) in [
            (vec![buried], "account 1 is buried, and posts of it come in"),
            (vec![doubled], "list 2 of post 3 stands twice"),
            (vec![large], "too many bytes"),
            (vec![change(1, &[]), change(1, &[])], "two changes of account 1"),
            (vec![foreign], "post 3 is of account 2, and among those of 1"),
            (vec![change(1, &[3]), change(2, &[3])], "post 3 stands twice"),
            (vec![erased], "post 3 stands twice"),
            ((1..=65).map(|account| change(account, &[])).collect(), "too many changes: 65; at most 64"),
        ] {
            let error = check_changes(&changes).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let listed = ListedPost {
            place: ListPlace { unix_ms: 1, post: PostId::from_u64(3).unwrap() },
            author: AccountId::new(1).unwrap(),
        };
        let list = |name: usize, added: &[ListedPost], removed: &[ListedPost]| PostListChange {
            list: ListKey { bucket: Bucket(1), name: vec![b'x'; name] },
            added: added.to_vec(),
            removed: removed.to_vec(),
            stamp: 0,
        };
        check_list_changes(&[list(5, &[listed], &[]), list(6, &[], &[listed])]).unwrap();
        for (changes, says) in [
            ([list(5, &[listed], &[]), list(5, &[], &[listed])], "post 3 comes onto a list and goes off it"),
            ([list(5, &[], &[]), list(65, &[], &[])], "a list's name of 65 bytes: at most 64"),
        ] {
            let error = check_list_changes(&changes).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(check_asks(1, [1_001].into_iter()).is_err());
        assert!(check_asks(4_097, std::iter::empty()).is_err());
    }
}
