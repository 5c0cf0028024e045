//! What a sign-up leaves behind, whoever dies: lists of names by how they begin, and whether it has to be let in.

use super::*;
use crate::account::AccountState;
use crate::registration::Name;

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

/// H205: an account has its name, and is to be let in; who registers it dies before anything else.
pub(in crate::simulation) fn waits_though_who_signed_up_has_died() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        let settled = close(0, At::After, "claims_settle");
        let signing_up = town.sign_up_beside(0, town.form(0, 0).waiting());
        settled.reached().await;
        world(|w| w.kill(0));
        town.ends_well().await;
        let found = town.sites[2].find(&[Name::Id(town.ids[0])]).await.expect("no faults").remove(0);
        if found.is_none_or(|account| account.state != AccountState::Waiting) {
            world(|w| w.violated("an account that nobody has let in is there as any other"));
        }
        drop(signing_up);
    }
    .boxed_local()
}
