//! Invitations: codes with which people may sign up.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tideline::Engine;
use tideline::registration::Registration;
use tideline_server::accounts::{invitations, invite, revoke_invitation};
use tideline_server::http::{Day, Timestamp};

use crate::cli::target::{Target, with_registration};

#[derive(Debug, Args)]
pub(crate) struct InviteArguments {
    /// How many may sign up with the code: 1 to 10,000.
    #[arg(long, default_value_t = 1, value_name = "N")]
    uses: u32,
    /// For how many days: 1 to 365.
    #[arg(long, default_value_t = 7, value_name = "N")]
    days: u16,
    /// Invite nobody, and show all invitations that last.
    #[arg(long, conflicts_with_all = ["uses", "days", "revoke"])]
    list: bool,
    /// Invite nobody, and end an invitation, by its id or its code.
    #[arg(long, conflicts_with_all = ["uses", "days"], value_name = "ID")]
    revoke: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(super) async fn run(wanted: InviteArguments) -> anyhow::Result<()> {
    if wanted.list {
        return list(&wanted.target).await;
    }
    if let Some(named) = &wanted.revoke {
        let revoked = async |_: &Engine, registration: &Registration| {
            let revoked = revoke_invitation(registration, named).await;
            revoked.context("`tideline account invite --list` shows all")
        };
        with_registration(&wanted.target, revoked).await?;
        println!("Nobody comes by this invitation any more.");
        return Ok(());
    }
    let lasts = Duration::from_secs(u64::from(wanted.days) * 86_400);
    let invited = async |_: &Engine, registration: &Registration| {
        invite(registration, wanted.uses, lasts).await.map_err(Into::into)
    };
    let code = with_registration(&wanted.target, invited).await?;
    eprintln!(
        "A code for {} within {} days: at your site's /auth/sign_up?invite_code=CODE, or a client's `invite_code`:",
        wanted.uses, wanted.days
    );
    eprintln!("It counts where `registrations` under [server] is \"invitation\" or \"approval\".");
    println!("{code}");
    Ok(())
}

async fn list(target: &Target) -> anyhow::Result<()> {
    let listed =
        async |_: &Engine, registration: &Registration| invitations(registration).await.map_err(Into::into);
    let invitations = with_registration(target, listed).await?;
    if invitations.is_empty() {
        println!("There are no invitations; `tideline account invite` makes one.");
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED).set_header([
        "id",
        "made",
        "ends",
        "may still come",
    ]);
    let day = |ms| Day(Timestamp(ms)).to_string();
    for one in invitations {
        table.add_row([one.id, day(one.created_ms), day(one.ends_ms), one.uses_left.to_string()]);
    }
    println!("{table}");
    Ok(())
}
