//! Reports: made, resolved, opened again.

use super::Client;
use crate::verify::call::{Call, ReportSpec};
use crate::verify::check::Wrong;
use crate::verify::facts::{Fact, OPEN, Time, Tri, Window};
use crate::verify::reports::{ReportFact, ReportNo};
use crate::verify::run::Ended;
use crate::verify::told::Reply;
use crate::verify::world::PostNo;

/// So many reports of one account may be open about the accounts of a bucket.
const OPEN_MAX: usize = tideline::REPORTS_OPEN_OF_ONE_MAX as usize;
/// One report in so many is made again elsewhere, with the same token.
const AGAIN: usize = 3;

impl Client<'_> {
    pub(super) async fn report(&self, no: ReportNo, target: u64, post: Option<PostNo>) {
        let run = self.run;
        let posts = match post {
            Some(no) => {
                let post = run.reference(no, |world| world.post(no).is_some_and(|post| post.is_unsure)).await;
                post.map(|(id, _)| id).into_iter().collect()
            }
            None => Vec::new(),
        };
        let spec = ReportSpec { reporter: self.actor, target, posts, comment: format!("report {no}") };
        let start = run.now();
        let (id, is_unsure) = match run.call(self.instance, Call::Report(spec.clone())).await {
            Ended::Done(Reply::Reported(id)) => (Some(id), false),
            Ended::Done(_) | Ended::Stuck => (None, true),
            Ended::Refused { kind, message, is_unsure } => {
                if !self.may_be_refused(&kind, target, start) {
                    let text = format!("{spec:?} was refused: {kind}: {message}");
                    run.wrong(Wrong::Stuck, self.actor, None, text);
                }
                (None, is_unsure)
            }
        };
        let fact = ReportFact { spec: spec.clone(), id, is_unsure, resolved: Fact::new(false) };
        run.world().reports.insert(no, fact);
        if let Some(id) = id.filter(|_| no.is_multiple_of(AGAIN)) {
            self.report_again(spec, id).await;
        }
    }

    /// With the same token it is the same report, also when it was resolved meanwhile.
    async fn report_again(&self, spec: ReportSpec, id: u64) {
        match self.run.call(self.instance + 1, Call::Report(spec)).await {
            Ended::Done(Reply::Reported(again)) if again == id => {}
            Ended::Stuck => {}
            other => {
                let text = format!("reported again with the same token: {other:?}, it was {id}");
                self.run.wrong(Wrong::Doubled, self.actor, None, text);
            }
        }
    }

    /// Whom it is about is gone, the reporter is suspended, or too many of its reports are open.
    fn may_be_refused(&self, kind: &str, target: u64, start: Time) -> bool {
        // Takes the world itself.
        if kind == "Invalid" && self.is_suspended() {
            return true;
        }
        let world = self.run.world();
        let window = Window { from: start, to: self.run.now() };
        let is_open = |report: &&ReportFact| {
            report.spec.reporter == self.actor
                && (report.id.is_some() || report.is_unsure)
                && report.resolved.is(window, |is| is) != Tri::Yes
        };
        match kind {
            "NotFound" => world.is_there(target, window) != Tri::Yes,
            "Invalid" => world.reports.values().filter(is_open).count() >= OPEN_MAX,
            _ => false,
        }
    }

    pub(super) async fn resolve(&self, no: ReportNo, on: bool) {
        let run = self.run;
        let Some(report) = run.world().reports.get(&no).and_then(|report| report.id) else { return };
        let start = run.now();
        let call = Call::Resolve { report, by: on.then_some(self.actor) };
        let ended = run.call(self.instance, call).await;
        let mut world = run.world();
        let Some(fact) = world.reports.get_mut(&no) else { return };
        match ended {
            Ended::Done(_) => fact.resolved.change(start, run.now(), on),
            Ended::Refused { kind, message, .. } => {
                fact.resolved.influence(on, start, OPEN);
                drop(world);
                let text = format!("report {report} can't be resolved or opened: {kind}: {message}");
                run.wrong(Wrong::Lost, self.actor, None, text);
            }
            Ended::Stuck => {}
        }
    }
}
