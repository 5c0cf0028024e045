//! Lists of names by how they begin.

use super::*;

/// H262: an account has its name, and who registers it dies before that is listed.
pub(in crate::simulation) fn listed_though_who_signed_up_has_died() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settled = close(0, At::After, "claims_settle");
        let signing_up = town.sign_up_beside(0, town.form(0, 0));
        settled.reached().await;
        world(|w| w.kill(0));
        town.ends_well().await;
        let found = town.sites[2].find_beginning(&town.names[0]).await.expect("no faults");
        if !found.iter().any(|account| account.id == town.ids[0]) {
            world(|w| w.violated("an account is not found by how its name begins"));
        }
        drop(signing_up);
    }
    .boxed_local()
}
