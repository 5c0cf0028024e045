//! Connections, lent for a call.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use futures::future::join3;
use tideline_model::error::{Error, ErrorKind, Result};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::breaker::Breaker;
use super::connect::Connector;
use super::failure::{commit_fails, fails, with_causes};
use super::settings::PostgresSettings;

/// The most time that a page waits for a connection that others use.
pub(super) const READER_WAIT: Duration = Duration::from_millis(200);

/// Connections of one use.
pub(super) struct Connections {
    pool: Pool,
    breaker: Mutex<Breaker>,
    /// Within which a call ends.
    deadline: Duration,
    /// What a call is that hasn't: a commit may have been under way.
    unanswered: ErrorKind,
}

impl Connections {
    pub(super) fn of_readers(connector: &Connector, settings: &PostgresSettings) -> Result<Self> {
        let deadline = settings.page_timeout;
        let pool = pool(connector, settings, settings.readers, deadline, READER_WAIT)?;
        Ok(Self { pool, breaker: Mutex::default(), deadline, unanswered: ErrorKind::Unavailable })
    }

    pub(super) fn of_writers(connector: &Connector, settings: &PostgresSettings) -> Result<Self> {
        let deadline = settings.change_timeout();
        let pool = pool(connector, settings, settings.writers, deadline, deadline / 2)?;
        Ok(Self { pool, breaker: Mutex::default(), deadline, unanswered: ErrorKind::Unknown })
    }

    /// Shares these connections, for calls whose failures say nothing of others: with a breaker of their own.
    pub(super) fn beside(&self) -> Self {
        let Self { pool, deadline, unanswered, .. } = self;
        Self { pool: pool.clone(), breaker: Mutex::default(), deadline: *deadline, unanswered: *unanswered }
    }

    /// Makes a call with a connection: `work` has until the deadline.
    pub(super) async fn lend<T>(&self, work: impl AsyncFnOnce(&Object) -> Result<T>) -> Result<T> {
        let Some(admission) = self.breaker().admit(Instant::now()) else {
            return Err(Error::unavailable(
                "archive: it has failed several times in a row, and is left alone a while",
            ));
        };
        // All of it: a server that is frozen takes connections, and says nothing.
        let answer = timeout(self.deadline, self.try_lend(work)).await.unwrap_or_else(|_| {
            let secs = self.deadline.as_secs_f64();
            Err(Error::new(self.unanswered, format!("archive: no answer within {secs} s")))
        });
        let mut breaker = self.breaker();
        match &answer {
            Err(e) if matches!(e.kind(), ErrorKind::Unavailable | ErrorKind::Unknown) => {
                breaker.has_failed(admission, Instant::now());
            }
            // Nobody has asked it: too many do.
            Err(e) if e.kind() == ErrorKind::Overloaded => {}
            _ => breaker.has_answered(),
        }
        answer
    }

    async fn try_lend<T>(&self, work: impl AsyncFnOnce(&Object) -> Result<T>) -> Result<T> {
        let mut lease = LentConnection(Some(self.pool.get().await.map_err(pool_fails)?));
        let Some(connection) = &lease.0 else { unreachable!("just put in") };
        let answer = work(connection).await;
        // Not after an error: who knows whether its transaction has ended.
        if answer.is_ok() {
            drop(lease.0.take());
        }
        answer
    }

    fn breaker(&self) -> std::sync::MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pool(
    connector: &Connector,
    settings: &PostgresSettings,
    most: usize,
    deadline: Duration,
    wait: Duration,
) -> Result<Pool> {
    let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(connector.config.clone(), connector.hosts(deadline), config);
    let greeting = settings.greeting(deadline);
    let greet = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let greeting = greeting.clone();
        Box::pin(async move { client.batch_execute(&greeting).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(most)
        .wait_timeout(Some(wait))
        .runtime(Runtime::Tokio1)
        .post_create(greet)
        .build()
        .map_err(|e| Error::internal(e.to_string()))
}

/// A connection that is given up, unless its call has come to its end: the server takes back what was under way.
struct LentConnection(Option<Object>);

impl Drop for LentConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(Object::take(connection));
        }
    }
}

/// Asks one statement, which the server ends after `most`: none then, and the connection is as good as before. All of
/// it is sent at once.
pub(super) async fn query_within(
    connection: &Object,
    most: Duration,
    sql: &str,
    params: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Option<Vec<Row>>> {
    // Zero would be no limit.
    let begin = format!("BEGIN READ ONLY; SET LOCAL statement_timeout = '{}ms'", most.as_millis().max(1));
    // Sent in the order in which they stand here. Ending a transaction that has failed takes it back.
    let (begun, rows, ended) = join3(
        connection.batch_execute(&begin),
        connection.query_typed(sql, params),
        connection.batch_execute("COMMIT"),
    )
    .await;
    let is_canceled = |e: &tokio_postgres::Error| e.code() == Some(&SqlState::QUERY_CANCELED);
    // A server that stands still has no time for that either; the rows are read by then.
    let ended = match ended {
        Err(e) if is_canceled(&e) => connection.batch_execute("ROLLBACK").await,
        ended => ended,
    };
    begun.and(ended).map_err(fails)?;
    match rows {
        Ok(rows) => Ok(Some(rows)),
        Err(e) if is_canceled(&e) => Ok(None),
        Err(e) => Err(fails(e)),
    }
}

/// Runs `work` in a transaction; what it leaves undone on an error goes with the connection.
pub(super) async fn in_transaction<T>(
    connection: &Object,
    work: impl AsyncFnOnce(&Object) -> Result<T>,
) -> Result<T> {
    between(connection, ("BEGIN", commit_fails), work).await
}

/// Runs statements that see the same moment.
pub(super) async fn at_one_moment<T>(
    connection: &Object,
    work: impl AsyncFnOnce(&Object) -> Result<T>,
) -> Result<T> {
    between(connection, ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", fails), work).await
}

async fn between<T>(
    connection: &Object,
    (begin, commit_fails): (&str, fn(tokio_postgres::Error) -> Error),
    work: impl AsyncFnOnce(&Object) -> Result<T>,
) -> Result<T> {
    connection.batch_execute(begin).await.map_err(fails)?;
    let answer = work(connection).await?;
    connection.batch_execute("COMMIT").await.map_err(commit_fails)?;
    Ok(answer)
}

fn pool_fails(error: PoolError) -> Error {
    match error {
        PoolError::Backend(e) => fails(e),
        PoolError::PostCreateHook(HookError::Backend(e)) => fails(e),
        PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Error::new(
            ErrorKind::Overloaded,
            "archive: all connections are in use; raise their number or ask less",
        ),
        other => Error::unavailable(format!("archive: {}", with_causes(&other))),
    }
}
