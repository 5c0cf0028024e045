//! What is broken on purpose where posts lie that have left memory, once all is there that should be: nobody but this
//! test looks for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use tideline::cluster::{Command, Request};
use tokio_postgres::{Client, NoTls};

use super::archived::{self, ArchiveAddress};
use super::args::Sabotage;
use super::facts::Window;
use super::rules::View;
use super::run::Run;
use super::setup::Setup;
use super::stored::key_of;
use super::world::PostNo;

/// Breaks something that this test must find.
pub(super) async fn sabotage(run: &Arc<Run>, setup: &Setup, what: Sabotage) -> anyhow::Result<()> {
    let (reader, no, id, author) = victim(run, setup).await?;
    eprintln!("Sabotage: {what:?}; reader {reader}, post {no} ({id}) by {author}.");
    match what {
        Sabotage::Row => drop_row(setup, id).await,
        _ => put_back(setup, (id, author)).await,
    }
}

/// A reader, and a post of somebody else's in its home that has left memory.
async fn victim(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<(u64, PostNo, u64, u64)> {
    let accounts = run.world().accounts.clone();
    let mut archived = BTreeSet::new();
    for account in &accounts {
        archived.extend(archived::posts_of(run, setup, *account).await);
    }
    let (world, now) = (run.world(), run.now());
    let of = |reader: &u64| {
        let home = View::new(&world, *reader, Window { from: now, to: now }).home();
        let mut foreign = home.into_iter().filter_map(|no| Some((no, world.post(no)?)));
        let (no, post) = foreign.find(|(_, post)| {
            let has_left = post.id.is_some_and(|id| archived.contains(&id));
            has_left && post.author != *reader && post.original.is_none()
        })?;
        Some((*reader, no, post.id?, post.author))
    };
    accounts.iter().rev().find_map(of).context("nobody's home has a post that has left memory")
}

/// Asks the server behind everybody's back.
async fn connect(setup: &Setup) -> anyhow::Result<Client> {
    let Some(ArchiveAddress::Postgres { url, .. }) = &setup.archive else {
        anyhow::bail!("only PostgreSQL can be asked beside an instance: --archive postgres");
    };
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Takes a post out of the archive.
async fn drop_row(setup: &Setup, id: u64) -> anyhow::Result<()> {
    let sql = "DELETE FROM tideline.post WHERE id = $1 RETURNING id";
    connect(setup).await?.query_one(sql, &[&i64::try_from(id)?]).await?;
    Ok(())
}

/// Puts a post back into memory, and notes it nowhere: no mover would look at it again.
async fn put_back(setup: &Setup, (id, author): (u64, u64)) -> anyhow::Result<()> {
    let sql = "SELECT stored FROM tideline.post WHERE id = $1";
    let post: Vec<u8> = connect(setup).await?.query_one(sql, &[&i64::try_from(id)?]).await?.try_get(0)?;
    let store = setup.store().await?;
    let (key, slot) = key_of(&store, 'w', author, &id.to_be_bytes());
    store.router().call(Request::write(slot, Command::new("SET").arg(&key).arg(&post))).await?;
    Ok(())
}
