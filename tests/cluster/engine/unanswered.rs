//! Calls whose server stops answering while they write: what may have run is never called undone.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tideline::cluster::{NodeAddr, RouterSettings};
use tideline::post::{Draft, Edit};
use tideline::{
    AccountUpdate, ErrorKind, Moderation, NewReport, PostId, ReportCategory, Result, StoreOptions,
};
use tideline_local_cluster::ClusterSpec;

use super::{accounts, drained, engine_with, slot_of, small};
use crate::harness::{Own, eventually, impatient, in_the_end, options, order, own, tell};

/// Looks that a server has answered: each try of a call begins with one of these.
async fn looks(server: &NodeAddr) -> u64 {
    let told = tell(server, "INFO commandstats").await;
    let of = |command: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")))?;
        line.split_once(',')?.0.parse::<u64>().ok()
    };
    ["get", "hget", "getrange"].into_iter().filter_map(of).sum()
}

/// The server answers reads, and no write; once the call has looked anew, since its write came to nothing, it answers
/// nothing at all.
async fn left_unanswered<T>(cluster: &Own, server: &NodeAddr, call: BoxFuture<'_, Result<T>>) -> ErrorKind {
    let node = cluster.node(server).unwrap();
    order(server, "CLIENT PAUSE 3000000 WRITE").await;
    let before = looks(server).await;
    let freeze = async {
        // Three before the first write, at the most.
        eventually("it looks again", async || looks(server).await > before + 5).await;
        node.freeze().unwrap();
    };
    let (ended, ()) = futures::join!(in_the_end("a call", call), freeze);
    node.thaw().unwrap();
    order(server, "CLIENT UNPAUSE").await;
    ended.err().expect("nobody has answered").kind()
}

/// Each ended as `Unavailable`, "nothing was written": the lost write was forgotten by the look after it.
#[tokio::test]
async fn a_call_whose_write_was_lost_ends_as_unknown_whatever_comes_after_it() {
    let cluster = own(ClusterSpec::ephemeral().node_timeout(std::time::Duration::from_secs(300))).await;
    let deadline = std::time::Duration::from_secs(2);
    let store =
        StoreOptions { router: RouterSettings { deadline, ..impatient() }, ..options(cluster.urls()) };
    let engine = engine_with(store, small()).await;
    let all = accounts(&engine, 40).await;
    let server_of = |account| engine.store().router().owner(slot_of(&engine, account)).unwrap();
    let (by, server) = (all[0], server_of(all[0]));
    let other = *all[1..].iter().find(|account| server_of(**account) == server).unwrap();
    let post = async || engine.publish(other, &Draft::text("said")).await.unwrap().id;
    let [deleted, edited, liked, moderated]: [PostId; 4] =
        [post().await, post().await, post().await, post().await];
    let report = NewReport {
        reporter: by,
        target: other,
        posts: vec![],
        category: ReportCategory::Spam,
        comment: String::new(),
        token: None,
    };
    let report = engine.report(&report).await.unwrap().value;
    drained(&engine).await;
    let edit = Edit { text: Some("says".into()), ..Edit::default() };
    let update = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    let hidden = Moderation { hidden: Some(true), ..Moderation::default() };
    let calls: [(&str, BoxFuture<'_, Result<()>>); 7] = [
        ("delete", engine.delete(other, deleted).map(|done| done.map(drop)).boxed()),
        ("edit", engine.edit(other, edited, &edit).map(|done| done.map(drop)).boxed()),
        ("follow", engine.follow(by, other).map(|done| done.map(drop)).boxed()),
        ("like", engine.like(by, liked).map(|done| done.map(drop)).boxed()),
        ("moderate", engine.moderate(moderated, hidden).map(|done| done.map(drop)).boxed()),
        ("resolve", engine.resolve_report(report, by).map(|done| done.map(drop)).boxed()),
        ("update", engine.update_account(by, &update).map(|done| done.map(drop)).boxed()),
    ];
    for (what, call) in calls {
        let kind = left_unanswered(&cluster, &server, call).await;
        assert_eq!(kind, ErrorKind::Unknown, "{what}");
        eventually("it answers again", async || engine.warm(by).await.is_ok()).await;
    }
}
