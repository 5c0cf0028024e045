//! Relations of what is derived to what it is derived from, a file each: how one is looked at, how it is told, which
//! work excuses it, how it is put right. A new one is a file here, its kinds in `kind`, and a line below for the key,
//! post or set that leads to it.
//!
//! A file here knows no other but those whose relations it finds too, or has looked at after a repair: these never know
//! it. Invariants kept here: a look only reads; a repair does nothing once what it is for has changed.

mod archived;
mod archived_content;
mod counts;
mod floors;
mod follows;
mod homes;
mod inboxes;
mod journals;
mod list_ends;
mod named_lists;
mod names;
mod outboxes;
mod ownerless;
mod post_counts;
mod public;
mod records;
mod references;
mod remarks;
mod reposts;
mod requests;
mod sets;
mod ties;
mod tokens;
mod undone;

use std::sync::Arc;

use super::key::{KeyForm, list_named, list_of, owner_of};
use super::kind::FindingKind;
use super::seen::{Deviation, Observation, ReadData, RepairMeans, Unit, left_alone};
use crate::error::{ErrorCode, ErrorKind, Result};
use crate::graph::Graph;
use crate::graph::LIKES;
use crate::ids::AccountId;
use crate::journal::Journal;
use crate::keys::OwnKey;
use crate::post::PostRef;
use crate::sharded::{LocalKey, ScoredMember};
use crate::tenant::Tenant;

pub(super) use archived::{MetOwner, OwnersInArchive, PostsInArchive};
pub(super) use archived_content::ContentInArchive;

/// The unit that a key asks to have looked at.
pub(super) fn at_key(form: KeyForm, key: Vec<u8>) -> Option<Unit> {
    Some(match form {
        KeyForm::Agenda(bucket) => Unit::of(floors::AgendaOf(bucket)),
        // Names are looked for from the side of who is called so.
        KeyForm::Other | KeyForm::Names(_) => return None,
        KeyForm::Journal(bucket) => Unit::of(journals::BucketJournal(bucket)),
        KeyForm::Living => Unit::of(journals::Leases),
        KeyForm::Days(bucket) => Unit::of(ownerless::BucketDays(bucket)),
        KeyForm::PublicPosts(bucket) => Unit::of(public::PublicPostsOf(bucket)),
        KeyForm::Record(account) => Unit::of(records::RecordOf(account)),
        KeyForm::Own(own, account) => match own {
            OwnKey::Marks => Unit::of(follows::PullMarks(account)),
            OwnKey::Requested | OwnKey::Approved | OwnKey::Waiting => {
                Unit::of(requests::RequestsOf(account, own))
            }
            OwnKey::HiddenReposts | OwnKey::MuteEnds | OwnKey::Notes | OwnKey::Roles | OwnKey::Invited => {
                Unit::of(remarks::RemarksOf(account, own))
            }
            OwnKey::Home => Unit::of(homes::HomeOf(account)),
            OwnKey::Outbox => Unit::of(outboxes::OutboxOf(account)),
            OwnKey::Credentials => Unit::of(names::AccountNames(account)),
            OwnKey::Inbox => Unit::of(inboxes::InboxOf(account)),
            OwnKey::Documents | OwnKey::Profile => Unit::of(ownerless::OwnerlessKey(key)),
        },
        KeyForm::Post(post) => Unit::of(outboxes::PostAt(post)),
        KeyForm::Set(set) => Unit::of(sets::LocalSet(set)),
        KeyForm::Piece(set, piece) => Unit::of(sets::SetPiece(set, piece)),
        KeyForm::Guard(set) => Unit::of(sets::CopyGuard(set)),
        KeyForm::Claim(claim) => Unit::of(names::ClaimHolder(claim)),
        KeyForm::Token(account) => Unit::of(tokens::TokenKey { key, account, is_of_post: true }),
        KeyForm::ReportToken(account) => Unit::of(tokens::TokenKey { key, account, is_of_post: false }),
        KeyForm::Ticket | KeyForm::Counter => Unit::of(tokens::EndingKey(key)),
        KeyForm::Unknown => Unit::of(ownerless::OwnerlessKey(key)),
    })
}

/// The unit that a key asks to have looked at where only what the archive has to do with is looked at.
pub(super) fn at_key_of_archive(form: KeyForm) -> Option<Unit> {
    match form {
        KeyForm::Agenda(bucket) => Some(Unit::of(floors::AgendaOf(bucket))),
        KeyForm::Post(post) => Some(Unit::of(outboxes::PostPlace(post))),
        KeyForm::Set(set) => list_named(&set.name).map(|list| Unit::of(list_ends::ListEnd(list))),
        _ => None,
    }
}

/// The unit that the outboxes of these accounts ask to have looked at together.
pub(super) fn at_outboxes(accounts: Vec<AccountId>) -> Option<Unit> {
    (!accounts.is_empty()).then(|| Unit::of(floors::FloorsOf(accounts)))
}

/// Tells what a record, a post, a set or a journal that was read means to relations.
async fn at_read(journal: &Journal, read: ReadData) -> Result<Observation> {
    let tenant = &journal.tenant;
    match read {
        ReadData::Record { account, is_unconfirmed, has_login } => {
            let has_names = is_unconfirmed || has_login;
            let names = Observation::units(has_names.then_some(names::AccountNames(account)));
            Ok(names.and(Observation::units((!is_unconfirmed).then_some(counts::AccountCounts(account)))))
        }
        ReadData::Post { id, post } => {
            let author = post.header().author;
            let counts = Observation::units([post_counts::PostCounts(PostRef { id, author })]);
            let seen =
                counts.and(references::of_post(id, &post)).and(named_lists::of_post(tenant, id, &post));
            Ok(seen.and(reposts::of_post(tenant, id, &post).await?))
        }
        ReadData::Set { set, sight } => {
            let members = sight.members().filter(|(.., belongs)| *belongs);
            at_set(tenant, &set, &members.map(|(_, entry, _)| entry).collect::<Vec<_>>()).await
        }
        ReadData::Journal { bucket, entries } => journals::of_entries(journal, bucket, entries).await,
    }
}

/// Tells what the members of a set mean.
async fn at_set(tenant: &Tenant, set: &LocalKey, members: &[&ScoredMember]) -> Result<Observation> {
    if let Some(list) = list_named(&set.name) {
        let end = Observation::units([list_ends::ListEnd(list)]);
        return Ok(end.and(named_lists::on_list(tenant, list, members).await?));
    }
    match list_of(&set.name) {
        Some((post, LIKES)) => return ties::on_list(tenant, post, members).await,
        Some((post, kind)) => return references::on_list(tenant, post, kind, members).await,
        None => {}
    }
    let Some((owner, what)) = owner_of(&set.name) else { return Ok(Observation::default()) };
    match what {
        b"followers" => follows::edges(tenant, owner, members).await,
        b"following" => follows::followed(tenant, owner, members).await,
        b"likes" => ties::likes(tenant, owner, members).await,
        b"bookmarks" => ties::bookmarks(tenant, owner, members).await,
        b"reposts" => reposts::notes(tenant, owner, members).await,
        _ => Ok(Observation::default()),
    }
}

/// Looks at something. Stored data that makes no sense is what it finds; only a cluster that doesn't answer is an
/// error.
pub(super) async fn look(journal: &Journal, unit: &Unit) -> Result<Observation> {
    match look_through_all(journal, unit).await {
        Err(e) if e.code() == ErrorCode::ArchiveAway => {
            tracing::debug!("{unit:?}: {e}");
            Ok(Observation::default().but_for(1))
        }
        Err(e) if e.kind() == ErrorKind::Internal => {
            let (kind, told) = (FindingKind::Unreadable, format!("{unit:?}: {e}"));
            let (at, detail) = (unit.clone(), e.to_string().into());
            Ok([Deviation { kind, at, detail, told, excused_by: Vec::new() }].into())
        }
        // Somebody whom we were looking at has been deleted meanwhile.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Observation::default()),
        seen => seen,
    }
}

async fn look_through_all(journal: &Journal, unit: &Unit) -> Result<Observation> {
    let mut seen = unit.look(&journal.tenant).await?;
    match seen.read.take() {
        Some(read) => Ok(seen.and(at_read(journal, read).await?)),
        None => Ok(seen),
    }
}

/// Puts a deviation right. What can't be read is left to a person, but for posts, if these are to go; so is an archive
/// that is older than memory, unless the loss is accepted.
pub(super) async fn repair(
    graph: &Arc<Graph>,
    found: &Deviation,
    means: RepairMeans<'_>,
) -> Result<Vec<Unit>> {
    match found.kind {
        FindingKind::Unreadable if means.options.drop_unreadable => {
            outboxes::drop_unreadable(&graph.journal, &found.at).await
        }
        FindingKind::ArchiveBehind if means.options.accept_loss => {
            floors::accept_loss(&graph.tenant, &found.at).await
        }
        FindingKind::ListBehind if means.options.accept_loss => {
            list_ends::accept_loss(&graph.tenant, &found.at).await
        }
        FindingKind::Unreadable | FindingKind::ArchiveBehind | FindingKind::ListBehind => Err(left_alone()),
        FindingKind::DeletionUndone | FindingKind::BurialUndone => {
            undone::delete_again(&graph.tenant, means.deletions, &found.at).await
        }
        _ => found.at.repair(graph, found).await,
    }
}

#[cfg(test)]
mod tests {
    use super::follows::FollowPair;
    use super::homes::HomeOf;
    use super::*;
    use crate::delivery::DeliverTask;
    use crate::fsck::work::WorkUnderWay;
    use crate::graph::{BuryTask, PairTask};
    use crate::ids::PostId;
    use crate::journal::Task;
    use crate::modes::ModeTask;
    use crate::post::PostRef;

    #[test]
    fn only_work_on_the_same_thing_excuses_it() {
        let id = |id| AccountId::new(id).unwrap();
        let post = |id| PostId::from_u64(id).unwrap();
        let missing =
            |reader, of| HomeOf(id(reader)).lacks(PostRef { id: post(of), author: id(2) }).excused_by;
        let edge = |reader, author| {
            let pair = FollowPair { reader: id(reader), author: id(author) };
            pair.found(FindingKind::EdgeMissing, [0; 8]).excused_by
        };
        let with = |task: Task| {
            let mut under_way = WorkUnderWay::default();
            under_way.add(&task);
            move |work: Vec<_>| under_way.has_any(&work)
        };
        let delivery = with(DeliverTask { post: PostRef { id: post(7), author: id(2) } }.into());
        assert!(delivery(missing(1, 7)) && !delivery(missing(1, 8)));
        assert!(!delivery(edge(1, 2)));
        let pair = with(PairTask { reader: id(1), author: id(2), may_drop: false }.into());
        assert!(pair(edge(1, 2)) && !pair(edge(2, 1)) && !pair(edge(1, 3)));
        assert!(pair(missing(1, 7)) && !pair(missing(3, 7)));
        let mode = with(ModeTask { author: id(2), random: [0; 8] }.into());
        assert!(mode(edge(9, 2)) && !mode(edge(2, 9)));
        let bury = with(BuryTask { account: id(2) }.into());
        assert!(bury(edge(9, 2)) && bury(edge(2, 9)) && !bury(edge(8, 9)));
    }
}
