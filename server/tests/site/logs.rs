//! What is logged, and what never is.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::served::Served;

/// Keeps all that is logged on its thread.
#[derive(Clone, Default)]
pub(super) struct WholeLog(Arc<Mutex<String>>);

impl WholeLog {
    pub(super) fn said(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

struct LoggedFields<'l>(&'l mut String);

impl Visit for LoggedFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for WholeLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        attributes.record(&mut LoggedFields(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut LoggedFields(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut LoggedFields(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn slow_requests_are_logged_by_their_routes_and_nothing_that_was_asked() {
    for (slow_after, is_told) in [(Duration::ZERO, true), (Duration::from_secs(3_600), false)] {
        let log = WholeLog::default();
        let _logs = tracing::subscriber::set_default(log.clone());
        let site = Served::start_with(|settings| settings.slow_after = slow_after).await;
        site.guest("/api/v1/accounts/lookup?acct=whoever").await;
        let said = log.said();
        assert_eq!(said.contains("a slow request"), is_told, "{said}");
        let route = "route=\"/api/v1/accounts/lookup\" method=\"GET\" status=404 ms=";
        assert!(said.contains(route) == is_told && !said.contains("whoever"), "{said}");
        site.end().await;
    }
}
