//! Cluster and archive are restored from backups of two moments (docs/backup.md): what lies between is told, and put
//! right as far as it can be; readers see the rest.

mod backup;
mod site;

use std::collections::{BTreeMap, BTreeSet};

use tideline::FindingKind::*;
use tideline::{AccountId, ErrorKind, FindingKind, FsckReport, PostId, Query};

use self::backup::{Backend, ClusterBackup};
use self::site::{People, Site};
use super::archive::publish;
use super::drained;

/// Which of the two was backed up first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    Cluster,
    Archive,
    /// Both at one moment: nothing happens between.
    Both,
}

/// Who lived at a site that is gone, and what it left.
struct Past {
    people: People,
    /// Who came between the two backups, of 20 posts.
    fay: Option<AccountId>,
}

/// Lives, is backed up, lives on, is backed up, and ends; begins anew in empty servers, beside a tool alone.
async fn restored(backend: &Backend, first: First) -> (Site, Past) {
    let place = backend.place();
    let mut site = Site::begin(backend.open(&place).await).await;
    let (mut people, mut fay) = (People::live(&site).await, None);
    let (cluster, archive);
    match first {
        First::Cluster => {
            cluster = ClusterBackup::take(&site.cluster).await;
            fay = Some(people.live_on(&mut site).await);
            archive = backend.back_up(&place);
        }
        First::Archive => {
            archive = backend.back_up(&place);
            fay = Some(people.live_on(&mut site).await);
            cluster = ClusterBackup::take(&site.cluster).await;
        }
        First::Both => {
            cluster = ClusterBackup::take(&site.cluster).await;
            archive = backend.back_up(&place);
        }
    }
    let prefix = site.prefix();
    drop(site);
    let (cluster, archive) = (cluster.restore().await, backend.restore(&archive).await);
    (Site::restored(&prefix, cluster, archive).await, Past { people, fay })
}

/// Of each kind how much was found, and how much of that is left.
fn found(report: &FsckReport) -> BTreeMap<FindingKind, (u64, u64)> {
    assert_eq!(report.in_flight, 0, "{report:#?}");
    report.findings.iter().map(|(kind, of)| (*kind, (of.found, of.left()))).collect()
}

fn told(report: &FsckReport, kind: FindingKind, account: AccountId) -> &str {
    let is_of = |told: &&String| told.contains(&format!("account {account} "));
    report.findings[&kind].examples.iter().find(is_of).unwrap()
}

/// What a reader's home shows, and profiles show, of those whom it follows.
async fn shows(site: &Site, people: &People, ada: &BTreeSet<PostId>, cid: &BTreeSet<PostId>) {
    assert_eq!(&site.profile(people, people.ada).await, ada);
    assert_eq!(&site.profile(people, people.cid).await, cid);
    let dan = match is_gone(site, people.dan).await {
        true => BTreeSet::new(),
        false => site.profile(people, people.dan).await,
    };
    assert_eq!(site.read(people.ben, Query::home()).await, &(ada | cid) | &dan);
}

/// Posts go on, and leave memory, and nobody gets an id that was given before. `counted`: how many posts ada has by its
/// record.
async fn goes_on(site: &Site, people: &People, counted: u64) {
    let before = site.profile(people, people.ada).await;
    let new = publish(&site.engine, people.ada, 30).await;
    assert!(new.iter().all(|id| !people.of_ada.contains(id) && !people.of_cid.contains(id)));
    site.moved(&[people.ada, people.cid]).await;
    let all: BTreeSet<PostId> = before.iter().chain(&new).copied().collect();
    assert_eq!(site.profile(people, people.ada).await, all);
    let standing = site.engine.inspect(people.ada).await.unwrap().archive.unwrap();
    assert_eq!(standing.upto, Some(new[17]), "{standing:?}");
    let count = site.engine.stored().account(people.ada).await.unwrap().posts;
    assert_eq!(count, counted + 30);
    let report = site.look(false).await;
    assert!(report.is_clean() && report.in_flight == 0, "{report:#?}");
}

async fn is_gone(site: &Site, account: AccountId) -> bool {
    let read = site.engine.as_nobody().read(&Query::profile(account)).await;
    matches!(read, Err(e) if e.kind() == ErrorKind::NotFound)
}

#[tokio::test]
async fn backups_of_one_moment_cost_nothing() {
    for backend in [Backend::file(), Backend::server().await] {
        let (mut site, Past { people, .. }) = restored(&backend, First::Both).await;
        let report = site.look(false).await;
        assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");
        site.serve().await;
        shows(&site, &people, &people.ada_but(0..40, &[3, 38]), &people.cid_but(0..100, &[])).await;
        goes_on(&site, &people, 38).await;
    }
}

/// What the archive has beyond memory comes back; what was deleted between stays deleted.
#[tokio::test]
async fn an_archive_that_is_newer_brings_back_what_left_memory_and_deletes_again_what_was_deleted() {
    for backend in [Backend::file(), Backend::server().await] {
        let (mut site, Past { people, fay }) = restored(&backend, First::Cluster).await;
        // 31 and 33, in memory when that was copied; dan; of ada 40 to 47 but for 42, of cid 78.
        let expected: BTreeMap<FindingKind, u64> =
            [(DeletionUndone, 2), (BurialUndone, 1), (ArchivedOfNobody, 1), (ArchivedUnlisted, 85)].into();
        for archive_only in [true, false] {
            let report = site.look(archive_only).await;
            let unrepaired = expected.iter().map(|(kind, many)| (*kind, (*many, *many)));
            // Whoever looks at accounts, too, counts what they have in both, and finds a like that came between.
            let besides = [(CountWrong, (3, 3)), (TieNeedless, (1, 1))];
            let besides = besides.into_iter().filter(|_| !archive_only);
            assert_eq!(found(&report), unrepaired.chain(besides).collect(), "{report:#?}");
            assert!(!report.is_clean() && report.untold == 0, "{report:#?}");
        }
        let report = site.repair_all_told().await;
        for (kind, many) in &expected {
            // Fay is nobody's any more: nothing is taken away, nor made.
            let left = if *kind == ArchivedOfNobody { 1 } else { 0 };
            assert_eq!(found(&report).get(kind), Some(&(*many, left)), "{report:#?}");
        }
        let report = site.repair_all().await;
        assert_eq!(found(&report), [(ArchivedOfNobody, (1, 1))].into(), "{report:#?}");

        site.serve().await;
        let ada = people.ada_but(0..48, &[3, 38, 33, 31, 7, 42]);
        let cid = people.cid_but(0..178, &[2]);
        shows(&site, &people, &ada, &cid).await;
        assert_eq!(site.tagged(&people).await, cid);
        // It was edited between, and that had reached the archive.
        assert_eq!(site.text(&people, people.of_ada[6]).await, "edited");
        assert!(is_gone(&site, people.dan).await && is_gone(&site, fay.unwrap()).await);
        goes_on(&site, &people, ada.len() as u64).await;
    }
}

/// What only the newer archive had is lost, once somebody says so; the rest goes on.
#[tokio::test]
async fn an_archive_that_is_older_is_told_and_gone_by_once_the_loss_is_accepted() {
    for backend in [Backend::file(), Backend::server().await] {
        let (mut site, Past { people, fay }) = restored(&backend, First::Archive).await;
        for archive_only in [true, false] {
            let report = site.look(archive_only).await;
            let expected = [(ArchiveBehind, (3, 3)), (ListBehind, (1, 1)), (ArchivedAfterBurial, (1, 1))];
            assert_eq!(found(&report), expected.into(), "{report:#?}");
            // 28 to 47 had left by then; 31, 33, 38, 42 were deleted, 28 and 41 are in memory. And 7 is back.
            assert!(told(&report, ArchiveBehind, people.ada).contains("; 13 of its posts"), "{report:#?}");
            assert!(told(&report, ArchiveBehind, people.cid).contains("; 89 of its posts"), "{report:#?}");
            assert!(told(&report, ArchiveBehind, fay.unwrap()).contains("; 8 of its posts"), "{report:#?}");
        }
        // Not by itself.
        let report = site.repair(false).await;
        assert_eq!(found(&report)[&ArchiveBehind], (3, 3), "{report:#?}");
        let page = site.engine.as_reader(people.ben).read(&Query::profile(people.ada).limit(40)).await;
        assert!(page.unwrap().lacks_archive);
        let before = site.engine.inspect(people.ada).await.unwrap().archive.unwrap();
        let report = site.repair(true).await;
        let after = site.engine.inspect(people.ada).await.unwrap().archive.unwrap();
        // H191: above all that movers were given which may sleep yet.
        assert!(after.settled > before.token && after.owner.unwrap().token == after.settled, "{after:?}");
        assert_eq!(found(&report), [(ArchiveBehind, (3, 0)), (ListBehind, (1, 0))].into(), "{report:#?}");
        let report = site.repair_all().await;
        assert!(found(&report).is_empty() && report.is_clean(), "{report:#?}");

        site.serve().await;
        // What was deleted between and is in the archive is back.
        let mut ada = &people.ada_but(0..28, &[3]) | &people.ada_but(48..60, &[49]);
        // What memory had of it still.
        ada.extend([28, 41].map(|n| people.of_ada[n]));
        let cid = &people.cid_but(0..88, &[]) | &people.cid_but(178..190, &[]);
        shows(&site, &people, &ada, &cid).await;
        assert_eq!(site.text(&people, people.of_ada[6]).await, "post 6");
        assert!(is_gone(&site, people.dan).await);
        assert_eq!(site.profile(&people, fay.unwrap()).await.len(), 12);
        goes_on(&site, &people, ada.len() as u64).await;
        drained(&site.engine).await;
    }
}
