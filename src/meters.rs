//! Metrics of the engine; docs/metrics.md lists them all.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use crate::error::ErrorCode;

pub(crate) fn task_retried(kind: &'static str) {
    counter!("tideline_tasks_retried_total", "kind" => kind).increment(1);
}

/// A task has failed in a way that trying again does not mend.
pub(crate) fn task_stuck(kind: &'static str) {
    counter!("tideline_tasks_stuck_total", "kind" => kind).increment(1);
}

/// A call has waited for what it left elsewhere.
pub(crate) fn call_settled(is_in_time: bool) {
    let in_time = if is_in_time { "true" } else { "false" };
    counter!("tideline_calls_settled_total", "in_time" => in_time).increment(1);
}

pub(crate) fn task_recovered(how: &'static str) {
    counter!("tideline_tasks_recovered_total", "how" => how).increment(1);
}

/// Entries of this instance that wait in their journals for servers that are away.
#[expect(clippy::cast_precision_loss, reason = "a gauge")]
pub(crate) fn tasks_parked(entries: usize) {
    gauge!("tideline_tasks_parked").set(entries as f64);
}

/// The archive lacks what it once had of an account.
pub(crate) fn archive_behind() {
    counter!("tideline_archive_behind_total").increment(1);
}

/// The archive refused what it was asked, for a reason that doesn't pass by itself.
pub(crate) fn archive_refused(code: ErrorCode) {
    counter!("tideline_archive_failures_total", "code" => code.as_str()).increment(1);
}

/// A page ended above what only the archive could tell, or was refused.
pub(crate) fn archive_away() {
    counter!("tideline_archive_away_total").increment(1);
}

/// Posts that have left memory, and posts that the archive has and that stay for a while.
pub(crate) fn archive_moved(left: u64, warm: u64) {
    counter!("tideline_archive_moved_total", "outcome" => "left").increment(left);
    counter!("tideline_archive_moved_total", "outcome" => "warm").increment(warm);
}

/// A round has moved all that was due.
#[expect(clippy::cast_precision_loss, reason = "a gauge")]
pub(crate) fn archive_round(now_ms: u64) {
    gauge!("tideline_archive_round_time_seconds").set(now_ms as f64 / 1_000.0);
}

/// A post has come back from the archive, since somebody changes it.
pub(crate) fn post_thawed() {
    counter!("tideline_archive_thawed_total").increment(1);
}

/// Somebody was among an account's followers who doesn't follow it.
pub(crate) fn stray_edge() {
    counter!("tideline_stray_edges_total").increment(1);
}

/// Homes that were due for a watermark, and found no room among those that wait.
pub(crate) fn tidies_dropped(homes: usize) {
    if homes > 0 {
        counter!("tideline_tidies_dropped_total").increment(homes as u64);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge")]
pub(crate) fn journal_depth(entries: u64) {
    gauge!("tideline_journal_entries").set(entries as f64);
}

/// A fan-out has made its last delivery.
pub(crate) fn fanout(took: Duration, lag: Duration, delivered: u64, skipped: u64) {
    counter!("tideline_deliveries_total", "outcome" => "pushed").increment(delivered);
    counter!("tideline_deliveries_total", "outcome" => "dormant").increment(skipped);
    histogram!("tideline_fanout_seconds").record(took.as_secs_f64());
    histogram!("tideline_fanout_lag_seconds").record(lag.as_secs_f64());
}

/// A fan-out has brought its post into a first home.
pub(crate) fn first_delivery(lag: Duration) {
    histogram!("tideline_post_visible_seconds").record(lag.as_secs_f64());
}

/// Notes how long a home is after a delivery, watermarks included.
#[expect(clippy::cast_precision_loss, reason = "a small number")]
pub(crate) fn home_length(entries: u64) {
    histogram!("tideline_home_records").record(entries as f64);
}

/// An act was refused because a limit is reached.
pub(crate) fn limited(act: &'static str) {
    counter!("tideline_limited_total", "act" => act).increment(1);
}

pub(crate) fn post(kind: &'static str) {
    counter!("tideline_posts_total", "kind" => kind).increment(1);
}

/// A post that can't be read was left out of what somebody reads.
pub(crate) fn post_unreadable() {
    counter!("tideline_posts_unreadable_total").increment(1);
}

pub(crate) fn read(kind: &'static str) {
    counter!("tideline_reads_total", "kind" => kind).increment(1);
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
pub(crate) fn merge_width(sources: usize) {
    histogram!("tideline_merge_sources").record(sources as f64);
}

pub(crate) fn cache(name: &'static str, hits: usize, misses: usize) {
    counter!("tideline_cache_lookups_total", "cache" => name, "outcome" => "hit").increment(hits as u64);
    counter!("tideline_cache_lookups_total", "cache" => name, "outcome" => "miss").increment(misses as u64);
}

pub(crate) fn fill(outcome: &'static str) {
    counter!("tideline_fills_total", "outcome" => outcome).increment(1);
}

pub(crate) fn completion(outcome: &'static str) {
    counter!("tideline_completions_total", "outcome" => outcome).increment(1);
}

pub(crate) fn mode_change(to: &'static str) {
    counter!("tideline_mode_changes_total", "to" => to).increment(1);
}

pub(crate) fn marks_set(marks: u64) {
    counter!("tideline_marks_set_total").increment(marks);
}

#[expect(clippy::cast_precision_loss, reason = "a histogram")]
pub(crate) fn pulls(authors: usize) {
    histogram!("tideline_pulls_per_read").record(authors as f64);
}

pub(crate) fn decision_failed() {
    counter!("tideline_mode_decisions_failed_total").increment(1);
}

pub(crate) fn graph_change(kind: &'static str) {
    counter!("tideline_graph_changes_total", "kind" => kind).increment(1);
}

/// A page of a list was read, or a conversation.
pub(crate) fn list(kind: &'static str) {
    counter!("tideline_lists_read_total", "list" => kind).increment(1);
}

#[cfg(feature = "registration")]
pub(crate) fn registration(outcome: &'static str) {
    counter!("tideline_registrations_total", "outcome" => outcome).increment(1);
}

/// A claim that somebody had begun to take, or has given up, was taken by another account.
pub(crate) fn claim_taken_over() {
    counter!("tideline_claims_taken_over_total").increment(1);
}

#[cfg(feature = "registration")]
pub(crate) fn password_checked(is_right: bool) {
    let outcome = if is_right { "right" } else { "wrong" };
    counter!("tideline_password_checks_total", "outcome" => outcome).increment(1);
}

pub(crate) fn swept(homes: u64) {
    counter!("tideline_homes_swept_total").increment(homes);
}

pub(crate) fn fsck_finding(kind: &'static str) {
    counter!("tideline_fsck_findings_total", "kind" => kind).increment(1);
}

pub(crate) fn fsck_repair(kind: &'static str) {
    counter!("tideline_fsck_repairs_total", "kind" => kind).increment(1);
}
