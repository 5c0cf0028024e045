//! `tideline account`: accounts of a site, by whoever runs it.

mod export;
mod invite;
mod password;
mod waiting;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use tideline::registration::{Registration, SignUp};
use tideline::{AccountId, AccountState, Engine, ErrorKind, NewAccount};
use tideline_server::accounts::{
    AccountRole, EndedSessions, end_sessions, is_reserved_login, role, set_role, set_state,
};

use self::password::NewPassword;
use super::ids;
use super::named::NamedAccount;
use super::target::{Target, with_registration};

/// Commands for accounts.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Makes an account with a login, and prints the password that it gets.
    Create(CreateArguments),
    /// Says what an account may do for the site: nothing of its own, moderate, or run it.
    Role(RoleArguments),
    /// Gives an account another password, and ends its sessions.
    Password(PasswordArguments),
    /// Gives an account another e-mail address, or none; no letter confirms it.
    Email(EmailArguments),
    /// Suspends an account, so that it neither posts nor is seen, and ends its sessions; or lifts that.
    Suspend(StateArguments),
    /// Limits an account, so that only its followers see what it posts; or lifts that.
    Limit(StateArguments),
    /// Deletes an account with all its posts and traces, for good.
    Delete(DeleteArguments),
    /// Prints all that is stored of an account as lines of JSON.
    Export(ExportArguments),
    /// Shows who has signed up and waits to be approved.
    Waiting(waiting::WaitingArguments),
    /// Lets an account in that waits.
    Approve(waiting::ApproveArguments),
    /// Turns an account away that waits: it is deleted, and its names are free.
    Reject(waiting::AnswerArguments),
    /// Invites people: prints a code with which so many may sign up; shows and revokes invitations.
    Invite(invite::InviteArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Its login.
    login: String,
    /// Its e-mail address.
    #[arg(long)]
    email: Option<String>,
    /// Its id [default: a new one].
    #[arg(long, value_parser = ids::account)]
    id: Option<AccountId>,
    #[command(flatten)]
    password: NewPassword,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct RoleArguments {
    #[command(flatten)]
    account: NamedAccount,
    /// What it may do from now on. Left out: only show.
    role: Option<RoleName>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleName {
    /// What everybody may.
    User,
    /// It looks after reports and accounts.
    Moderator,
    /// All that the site's calls for whoever runs it can do.
    Admin,
}

#[derive(Debug, Args)]
pub(crate) struct PasswordArguments {
    #[command(flatten)]
    account: NamedAccount,
    #[command(flatten)]
    password: NewPassword,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct EmailArguments {
    #[command(flatten)]
    account: NamedAccount,
    /// Its new address.
    #[arg(required_unless_present = "none")]
    email: Option<String>,
    /// It has none from now on.
    #[arg(long, conflicts_with = "email")]
    none: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct StateArguments {
    #[command(flatten)]
    account: NamedAccount,
    /// Make it active again.
    #[arg(long)]
    lift: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    #[command(flatten)]
    account: NamedAccount,
    /// Delete it without asking.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    account: NamedAccount,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(command: AccountCommand) -> anyhow::Result<ExitCode> {
    match command {
        AccountCommand::Create(wanted) => {
            with_registration(&wanted.target, async |_: &Engine, by: &Registration| {
                create(&wanted, by).await
            })
            .await?;
        }
        AccountCommand::Role(wanted) => {
            with_registration(&wanted.target, async |_: &Engine, by: &Registration| {
                show_role(&wanted, by).await
            })
            .await?;
        }
        AccountCommand::Password(wanted) => {
            with_registration(&wanted.target, async |_: &Engine, by: &Registration| {
                set_password(&wanted, by).await
            })
            .await?;
        }
        AccountCommand::Email(wanted) => {
            with_registration(&wanted.target, async |_: &Engine, by: &Registration| {
                set_email(&wanted, by).await
            })
            .await?;
        }
        AccountCommand::Suspend(wanted) => put_into(AccountState::Suspended, &wanted).await?,
        AccountCommand::Limit(wanted) => put_into(AccountState::Limited, &wanted).await?,
        AccountCommand::Delete(wanted) => {
            with_registration(&wanted.target, async |engine: &Engine, by: &Registration| {
                delete(&wanted, engine, by).await
            })
            .await?;
        }
        AccountCommand::Export(wanted) => {
            with_registration(&wanted.target, async |engine: &Engine, by: &Registration| {
                let id = wanted.account.find(by).await?.id();
                export::export(engine, by, id).await
            })
            .await?;
        }
        AccountCommand::Waiting(wanted) => waiting::show(wanted).await?,
        AccountCommand::Approve(wanted) => waiting::let_in(wanted).await?,
        AccountCommand::Reject(wanted) => waiting::turn_away(wanted).await?,
        AccountCommand::Invite(wanted) => invite::run(wanted).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(wanted: &CreateArguments, registration: &Registration) -> anyhow::Result<()> {
    let password = wanted.password.read()?;
    let mut sign_up = SignUp::new(wanted.login.trim_start_matches('@'), password.text());
    sign_up.account = NewAccount { id: wanted.id, ..NewAccount::default() };
    sign_up.email.clone_from(&wanted.email);
    anyhow::ensure!(
        !is_reserved_login(&sign_up.login),
        "login {:?} is reserved: accounts without a login show under such names, by their ids",
        sign_up.login
    );
    match registration.sign_up(&sign_up).await {
        Ok(registered) => println!("account {}, @{}", registered.id, sign_up.login),
        Err(e) => {
            if e.kind() == ErrorKind::Unknown {
                println!("@{} may be there; then with this password:", sign_up.login);
                password.tell();
            }
            return Err(e.into());
        }
    }
    password.tell();
    Ok(())
}

async fn show_role(wanted: &RoleArguments, registration: &Registration) -> anyhow::Result<()> {
    let account = wanted.account.find(registration).await?;
    if let Some(name) = wanted.role {
        let becomes = match name {
            RoleName::User => AccountRole::User,
            RoleName::Moderator => AccountRole::Moderator,
            RoleName::Admin => AccountRole::Admin,
        };
        set_role(registration, account.id(), becomes).await?;
    }
    println!("{}: {}", account.described, role(registration, account.id()).await?);
    Ok(())
}

async fn set_password(wanted: &PasswordArguments, registration: &Registration) -> anyhow::Result<()> {
    let account = wanted.account.find(registration).await?;
    let password = wanted.password.read()?;
    let unknown = match registration.set_password(account.id(), password.text()).await {
        Ok(_) => None,
        Err(e) if e.kind() == ErrorKind::Unknown => Some(e),
        Err(e) => return Err(e.into()),
    };
    // At once: it is set, whatever becomes of the rest.
    match unknown {
        None => println!("{} has another password.", account.described),
        Some(_) => println!("{} may have another password by now, this one:", account.described),
    }
    password.tell();
    // Whoever knew the old one is logged out, too.
    let ended = end_sessions(registration, account.id()).await;
    unknown.map_or_else(|| told_of(ended), |e| Err(e.into()))
}

async fn set_email(wanted: &EmailArguments, registration: &Registration) -> anyhow::Result<()> {
    let account = wanted.account.find(registration).await?;
    registration.set_email(account.id(), wanted.email.as_deref()).await?;
    match &wanted.email {
        Some(email) => println!("{} has the e-mail address {email}.", account.described),
        None => println!("{} has no e-mail address.", account.described),
    }
    Ok(())
}

/// Tells how many sessions have ended. That some have not is an error: whoever is logged in there goes on.
fn told_of(ended: tideline::Result<EndedSessions>) -> anyhow::Result<()> {
    let ended = ended.unwrap_or_else(|e| EndedSessions { because: Some(e), ..EndedSessions::default() });
    println!("Sessions that have ended: {}.", ended.ended);
    ended.because.map_or(Ok(()), |because| {
        Err(anyhow!(because)
            .context(
            "not all of its sessions have ended: run `tideline account password` once all servers answer, and have \
             room",
        ))
    })
}

/// Puts an account into a state, or back into the usual one.
async fn put_into(state: AccountState, wanted: &StateArguments) -> anyhow::Result<()> {
    let state = if wanted.lift { AccountState::Active } else { state };
    with_registration(&wanted.target, async |engine: &Engine, by: &Registration| {
        let found = wanted.account.find(by).await?;
        let ended = set_state(engine, by, &found.account, state).await?;
        println!("{} is {state}.", found.described);
        match state {
            AccountState::Suspended => told_of(Ok(ended)),
            _ => Ok(()),
        }
    })
    .await
}

async fn delete(
    wanted: &DeleteArguments,
    engine: &Engine,
    registration: &Registration,
) -> anyhow::Result<()> {
    let account = wanted.account.find(registration).await?;
    if !wanted.yes && !agrees(&account.described)? {
        bail!("nothing was deleted");
    }
    // Before its documents go, which list them. What is left is good for nothing: nobody has that account.
    let ended = end_sessions(registration, account.id()).await;
    engine.delete_account(account.id()).await?;
    println!("{} is deleted; its posts, follows and lists follow, here or in the service", account.described);
    if ended.is_err() || ended.is_ok_and(|ended| ended.because.is_some()) {
        println!("Not all its sessions could be ended; what they hold ends by itself.");
    }
    Ok(())
}

/// Asks whoever sits there; nobody does unless it is a terminal.
fn agrees(account: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{account} would be deleted for good: say so with --yes");
    }
    print!("Delete {account} with all its posts, for good? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().eq_ignore_ascii_case("y"))
}
