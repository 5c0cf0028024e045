//! The moderators' queue: reports, page by page.

use super::reports::{REPORTS_OPEN_MAX, Report, ReportId, get_request};
use crate::cluster::{Answer, Reply, Request, impatiently};
use crate::error::{Error, ErrorKind, Result};
use crate::functions;
use crate::ids::AccountId;
use crate::settings::page_length;
use crate::tenant::Tenant;

/// Reports on a page.
const PAGE_MAX: usize = 100;
/// Rounds of one page, where those that were looked at are about others, or not there any more.
const ROUNDS_MAX: usize = 4;

/// A question for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ReportQuery {
    /// Those that are resolved, instead of those that are open.
    pub resolved: bool,
    /// Only about this account.
    pub target: Option<AccountId>,
    /// Only those that came before this one: [`ReportList::older`] of the page before.
    pub before: Option<ReportId>,
    /// At most so many, up to 100; `None`: 20.
    pub limit: Option<usize>,
}

/// A page of reports, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct ReportList {
    /// The reports. A page that met a bound may be short, or empty, though there are older ones.
    pub reports: Vec<Report>,
    /// What is older goes on there, with [`ReportQuery::before`]; `None`: that was all.
    pub older: Option<ReportId>,
    /// Whether a server was away: reports are missing about accounts that lie there. Asked for about one of these alone
    /// it is an error.
    pub lacks_some: bool,
}

/// Lists reports, newest first. Of all accounts it waits for no server that is away.
pub(crate) async fn list(tenant: &Tenant, query: &ReportQuery) -> Result<ReportList> {
    match query.target {
        Some(_) => page(tenant, query).await,
        None => impatiently(page(tenant, query)).await,
    }
}

/// A round takes two trips, one for ids, one for reports, and is nearly always the only one.
async fn page(tenant: &Tenant, query: &ReportQuery) -> Result<ReportList> {
    let limit = page_length(query.limit.unwrap_or(20), PAGE_MAX)?;
    // Of one account it isn't known which ones of its bucket these are.
    let most = if query.target.is_some() { REPORTS_OPEN_MAX as usize } else { limit };
    let (mut list, mut away) = (ReportList { older: query.before, ..ReportList::default() }, Away::default());
    'rounds: for _ in 0..ROUNDS_MAX {
        let ids = newest_below(tenant, (query, list.older, most), &mut away).await?;
        let is_all = ids.len() < most;
        let gets = ids.iter().map(|id| get_request(tenant, *id, query.resolved)).collect();
        for (id, answer) in ids.into_iter().zip(tenant.router().run(gets).await) {
            let Some(stored) = away.but_for(query, answer)? else { continue };
            if list.reports.len() == limit {
                break 'rounds;
            }
            list.older = Some(id);
            // Resolved, or opened again, between the two trips.
            if stored.is_nil() {
                continue;
            }
            let report = Report::parse(id, stored.bytes()?)?;
            if query.target.is_none_or(|target| report.report.target == target) {
                list.reports.push(report);
            }
        }
        if is_all {
            list.older = None;
        }
        if is_all || list.reports.len() == limit {
            break;
        }
    }
    away.page(list)
}

/// The reason why some reports are missing on a page.
#[derive(Debug, Default)]
struct Away {
    because: Option<Error>,
}

impl Away {
    /// The answer; `None`: the server is away, and others show moderators what waits there.
    fn but_for(&mut self, query: &ReportQuery, answer: Result<Answer>) -> Result<Option<Reply>> {
        match answer.and_then(Answer::ok) {
            Err(e) if e.kind() == ErrorKind::Unavailable && query.target.is_none() => {
                self.because = Some(e);
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    /// The page, and that something is missing; an error, if that may be all.
    fn page(self, list: ReportList) -> Result<ReportList> {
        match self.because {
            Some(because) if list.reports.is_empty() => Err(because),
            because => Ok(ReportList { lacks_some: because.is_some(), ..list }),
        }
    }
}

/// The ids of so many reports below one, newest first.
async fn newest_below(
    tenant: &Tenant,
    (query, below, most): (&ReportQuery, Option<ReportId>, usize),
    away: &mut Away,
) -> Result<Vec<ReportId>> {
    let (keys, buckets) = (tenant.keys(), tenant.keys().buckets());
    let asked = buckets.all().filter(|b| query.target.is_none_or(|target| tenant.bucket(target) == *b));
    let ids = asked.map(|bucket| {
        let command =
            functions::report_ids(keys.reports(bucket, query.resolved), below.map(ReportId::get), most);
        Request::read(buckets.slot(bucket), command)
    });
    let mut found = Vec::new();
    for answer in tenant.router().run(ids.collect()).await {
        let Some(listed) = away.but_for(query, answer)? else { continue };
        for id in listed.into_array()? {
            found.push(ReportId::from_u64(u64::from_be_bytes(functions::read_nonce(&id)?))?);
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.truncate(most);
    Ok(found)
}
