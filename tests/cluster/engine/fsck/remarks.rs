//! What is remarked on somebody, or on something, that is not there.

use std::time::Duration;

use tideline::FindingKind::*;

use super::*;
use crate::engine::engine;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn remarks_on_what_is_gone_are_found_and_dropped_and_leave_a_tenant_clean() {
    let engine = engine().await;
    let [me, gone, followed, stranger] = accounts(&engine, 4).await[..] else { unreachable!() };
    engine.follow(me, followed).await.unwrap();
    engine.hide_reposts(me, followed).await.unwrap();
    for whom in [gone, followed] {
        engine.set_note(me, whom, "a secret").await.unwrap();
        engine.mute_for(me, whom, HOUR).await.unwrap();
    }
    drained(&engine).await;
    assert!(fsck(&engine, false).await.findings.is_empty(), "all of it is of something");
    engine.delete_account(gone).await.unwrap();
    drained(&engine).await;
    let report = fsck(&engine, false).await;
    assert!(report.is_clean() && !format!("{report:?}").contains("secret"), "{report:#?}");
    // The note: its mute stands.
    assert_eq!(report.findings[&RemarkNeedless].found, 1, "{report:#?}");
    heals(&engine, &[RemarkNeedless]).await;
    // What an older release leaves, which knows no remarks: of no follow, of no mute.
    raw_of(&engine, me, 'R', "HSET", &[&stranger.to_bytes(), b"\x01........"]).await;
    heals(&engine, &[RemarkNeedless]).await;
    raw_of(&engine, me, 'M', "HSET", &[&stranger.to_bytes(), b"\x01\0\0\x09\0\0\0\0\0"]).await;
    heals(&engine, &[RemarkNeedless]).await;
    let relationships = engine.as_reader(me).relationships(&[followed]).await.unwrap();
    let stands = relationships[0].as_ref().unwrap();
    assert!(stands.note.is_some() && stands.muted_until_ms.is_some() && !stands.shows_reposts, "{stands:?}");
    // A hash of nobody.
    let nobody = AccountId::new(77).unwrap();
    for letter in ['R', 'M', 'N'] {
        raw_of(&engine, nobody, letter, "HSET", &[&me.to_bytes(), b"\x01x"]).await;
        heals(&engine, &[KeyOrphaned]).await;
    }
}

/// A repair took the end of a mute away once its account was deleted, and left the mute: it was for good then.
#[tokio::test]
async fn a_mute_with_an_end_ends_also_if_its_account_is_gone_and_a_repair_came_before() {
    let engine = engine().await;
    let [me, gone, other] = accounts(&engine, 3).await[..] else { unreachable!() };
    engine.mute_for(me, gone, HOUR).await.unwrap();
    engine.delete_account(gone).await.unwrap();
    drained(&engine).await;
    let report = fsck(&engine, true).await;
    assert!(report.findings.is_empty(), "{report:#?}");
    // It has ended meanwhile: the next mute takes it away.
    raw_of(&engine, me, 'M', "HSET", &[&gone.to_bytes(), b"\x01\0\0\0\0\0\0\0\x09"]).await;
    engine.mute_for(me, other, HOUR).await.unwrap();
    assert_eq!(raw_of(&engine, me, 'M', "HLEN", &[]).await.count().unwrap(), 1);
    assert_eq!(engine.inspect(me).await.unwrap().sets.mutes, 1);
    assert!(fsck(&engine, false).await.findings.is_empty());
}
