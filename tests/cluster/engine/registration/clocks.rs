//! Attempts, and the clock of the server at which they lie.

use tideline::registration::{AttemptStep, Registration, SignUp};
use tideline::{ErrorKind, NewAccount, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::super::{at_key, engine_with, small};
use super::{ada, is_clean, settings};
use crate::harness::{account, impatient, options, own};
use crate::skew::{Clocks, HOUR_S, real_ms};

/// When an attempt began was told by the clock of its account's server. Set forward, that one ended attempts that were
/// seconds old; set back, it kept a name from everybody for an hour.
#[tokio::test]
async fn a_name_is_held_for_a_minute_whatever_the_clock_of_its_accounts_server_does() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = own(clocks.of_servers(ClusterSpec::ephemeral(), &[(1, "1")])).await;
    let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let engine = engine_with(options, small()).await;
    let registration = Registration::new(&engine, settings()).await.unwrap();
    let (node, buckets) = (cluster.nodes()[1].addr(), engine.store().keys().buckets());
    let lies_there = |id: &u64| {
        engine.store().router().owner(buckets.slot(buckets.of_account(*id))).as_ref() == Some(&node)
    };
    let mut ids = (100..).filter(lies_there);
    for hours in [1, -1] {
        clocks.set_server("1", &cluster, &node, 0).await.unwrap();
        let id = account(ids.next().unwrap());
        let login = format!("ada{}", id.get());
        let form = || SignUp { login: login.clone(), email: None, ..ada() };
        let first = SignUp { account: NewAccount { id: Some(id), ..NewAccount::default() }, ..form() };
        registration.sign_up_until(&first, &|at| at == AttemptStep::Claimed(1)).await.unwrap_err();
        clocks.set_server("1", &cluster, &node, hours * HOUR_S).await.unwrap();
        let refused = registration.sign_up(&form()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{hours}: an attempt seconds old was ended");
        is_clean(&engine).await;
        let began = (real_ms() - 61_000).to_string();
        at_key(&engine, 'x', id, "HSET", &["t", &began]).await;
        let taken = registration.sign_up(&form()).await;
        assert!(taken.is_ok(), "{hours}: after a minute a name is free: {taken:?}");
        is_clean(&engine).await;
    }
}
