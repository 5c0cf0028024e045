//! All kinds of tasks: who adds one adds its line here, and what it runs on.

use std::sync::Arc;

use crate::beginnings::NameTask;
use crate::delivery::DeliverTask;
use crate::graph::{BuryTask, Graph, ListTask, PairTask, ReferTask, TieTask, UnlistTask, UnlockTask};
use crate::journal::Handlers;
use crate::modes::{FanoutJudge, ModeTask, Modes};
use crate::search::{IndexTask, IndexTasks};

macro_rules! kinds {
    ($tenant:ident, $journal:ident, $graph:ident, $index:ident; $($kind:ty: $service:ident,)*) => {
        /// Has the tasks of a journal carried out, as long as somebody keeps what this gives.
        pub(crate) fn carry_out_tasks($graph: &Arc<Graph>, modes: &Arc<Modes>) -> Arc<Handlers> {
            let ($tenant, $journal) = (&$graph.tenant, &$graph.journal);
            let $index = &IndexTasks::new($journal);
            let handlers = Handlers::new(FanoutJudge(modes.clone()))$(.with::<$kind>($service))*;
            $journal.carried_out_by(handlers)
        }

        #[cfg(test)]
        pub(crate) fn kinds() -> Vec<&'static dyn crate::journal::Kind> {
            vec![$(crate::journal::kind::<$kind>()),*]
        }
    };
}

kinds! {
    tenant, journal, graph, index;
    DeliverTask: journal,
    ReferTask: tenant,
    ListTask: journal,
    PairTask: graph,
    TieTask: tenant,
    UnlistTask: tenant,
    BuryTask: graph,
    UnlockTask: graph,
    ModeTask: graph,
    IndexTask: index,
    NameTask: tenant,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::bucket::Bucket;
    use crate::cluster::Replicas;
    use crate::ids::{AccountId, PostId};
    use crate::journal::{JournalEntry, Task};
    use crate::nonce::Nonce;
    use crate::post::{NamedList, PostRef, Reference};

    fn tasks() -> impl Strategy<Value = Task> {
        let account = || (1..=i64::MAX as u64).prop_map(|id| AccountId::new(id).unwrap());
        let post = || (0..=i64::MAX as u64).prop_map(|id| PostId::from_u64(id).unwrap());
        let named = || (post(), account()).prop_map(|(id, author)| PostRef { id, author });
        let to = (any::<u8>(), named()).prop_map(|(kind, to)| Reference { kind, to });
        prop_oneof![
            named().prop_map(|post| Task::from(DeliverTask { post })),
            (account(), named()).prop_map(|(account, post)| Task::from(TieTask { account, post })),
            named().prop_map(|post| Task::from(UnlistTask { post })),
            named().prop_map(|post| Task::from(IndexTask { post })),
            (named(), to).prop_map(|(post, to)| Task::from(ReferTask { post, to })),
            (account(), account(), any::<bool>())
                .prop_map(|(reader, author, may_drop)| Task::from(PairTask { reader, author, may_drop })),
            account().prop_map(|account| Task::from(BuryTask { account })),
            account().prop_map(|account| Task::from(UnlockTask { account })),
            account().prop_map(|account| Task::from(NameTask { account })),
            (account(), any::<Nonce>()).prop_map(|(author, random)| Task::from(ModeTask { author, random })),
        ]
    }

    #[test]
    fn no_two_kinds_share_a_letter_or_a_name() {
        let kinds = kinds();
        let letters: HashSet<u8> = kinds.iter().map(|kind| kind.letter()).collect();
        let labels: HashSet<&str> = kinds.iter().map(|kind| kind.label()).collect();
        assert_eq!((letters.len(), labels.len()), (kinds.len(), kinds.len()));
    }

    /// Instances of the release before read these, and what they have left is read here.
    #[test]
    fn each_kind_is_stored_as_ever() {
        let number = |text: &[u8; 8]| u64::from_be_bytes(*text);
        let account = |text| AccountId::new(number(text)).unwrap();
        let named =
            |id, author| PostRef { id: PostId::from_u64(number(id)).unwrap(), author: account(author) };
        let (post, reader) = (named(b"post...1", b"author.1"), account(b"reader.1"));
        let to = Reference { kind: b'a', to: named(b"post...2", b"author.2") };
        let all: [(Task, &str); 11] = [
            (DeliverTask { post }.into(), "Dpost...1author.1"),
            (ReferTask { post, to }.into(), "Rpost...1author.1apost...2author.2"),
            (ListTask { post }.into(), "Lpost...1author.1"),
            (UnlistTask { post }.into(), "Upost...1author.1"),
            (IndexTask { post }.into(), "Ipost...1author.1"),
            (PairTask { reader, author: post.author, may_drop: true }.into(), "Preader.1author.1\u{1}"),
            (TieTask { account: reader, post }.into(), "Treader.1post...1author.1"),
            (BuryTask { account: reader }.into(), "Xreader.1"),
            (UnlockTask { account: reader }.into(), "Oreader.1"),
            (ModeTask { author: post.author, random: *b"random.1" }.into(), "Mauthor.1random.1"),
            (NameTask { account: reader }.into(), "Nreader.1"),
        ];
        assert_eq!(all.len(), kinds().len());
        for (task, stored) in all {
            assert_eq!(task.stored(b"owner..1"), format!("owner..1{stored}").as_bytes());
            assert_eq!(
                actor_in(&task.stored(b"owner..1")),
                task.actor().to_bytes(),
                "the letter in journal.lua"
            );
        }
    }

    /// The account whose change has left an entry, as `journal.lua` finds it in the value.
    fn actor_in(value: &[u8]) -> Vec<u8> {
        let code = crate::functions::code();
        let (_, rest) = code.split_once("local ABOUT_POSTS = '").unwrap();
        let (about_posts, _) = rest.split_once('\'').unwrap();
        let first = if about_posts.as_bytes().contains(&value[8]) { 17 } else { 9 };
        value[first..first + 8].into()
    }

    proptest! {
        #[test]
        fn an_entry_gives_back_its_parts(task in tasks(), owner: Nonce, checkpoint in "[a-z0-9.]{0,20}") {
            let mut value = task.stored(&owner);
            prop_assert_eq!(value.len(), task.stored_len());
            prop_assert_eq!(actor_in(&value), task.actor().to_bytes());
            value.extend(checkpoint.bytes());
            let entry = JournalEntry::parse(&kinds(), Bucket(3), &[7; 8], &value).unwrap();
            let lacks_replicas = !checkpoint.is_empty();
            let new = JournalEntry::new(Bucket(3), owner, task);
            let expected = JournalEntry { id: [7; 8], checkpoint, lacks_replicas, ..new };
            prop_assert_eq!(entry.is_replicated(Replicas::Preferred), !lacks_replicas);
            // H146
            prop_assert!(entry.is_replicated(Replicas::Required));
            prop_assert_eq!(entry, expected);
        }

        #[test]
        fn an_entry_of_a_deleted_post_gives_back_its_lists(
            post in 0..=i64::MAX as u64, owner: Nonce, tags in proptest::collection::vec(any::<u64>(), 0..90)
        ) {
            let post = PostRef { id: PostId::from_u64(post).unwrap(), author: AccountId::new(7).unwrap() };
            let lists: Vec<NamedList> = tags.into_iter().map(NamedList::Tagged).collect();
            let payload = NamedList::all_to_bytes(&lists);
            let entry = JournalEntry { payload, ..JournalEntry::new(Bucket(3), owner, ListTask { post }) };
            prop_assert_eq!(actor_in(&entry.stored()), post.author.to_bytes());
            prop_assert_eq!(JournalEntry::parse(&kinds(), Bucket(3), &entry.id, &entry.stored()).unwrap(), entry);
        }

        #[test]
        fn reading_never_panics(id: Vec<u8>, value: Vec<u8>) {
            let _ = JournalEntry::parse(&kinds(), Bucket(0), &id, &value);
        }
    }
}
