//! Progress: of a start a moving line on a terminal, one line per stage elsewhere; of counted work a bar.

use std::io::IsTerminal as _;
use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tideline_local_cluster::Progress;

/// Time between two movements of what moves on a terminal.
const TICK: Duration = Duration::from_millis(100);

/// Shows progress on standard error.
pub(crate) struct Meter {
    bar: ProgressBar,
    /// The stage of the last line, where there is no terminal.
    stage: Mutex<Option<Discriminant<Progress>>>,
    is_terminal: bool,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = if is_terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if is_terminal {
            bar.set_style(ProgressStyle::default_spinner());
            bar.enable_steady_tick(TICK);
        }
        Self { bar, stage: Mutex::default(), is_terminal }
    }

    pub(crate) fn show(&self, progress: Progress) {
        self.bar.set_message(progress.to_string());
        let stage = discriminant(&progress);
        let last = self.stage.lock().ok().and_then(|mut last| last.replace(stage));
        if !self.is_terminal && last != Some(stage) {
            eprintln!("{progress}");
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar on standard error, if that is a terminal, with what is counted and how long it has taken beside it. Length 0:
/// not known yet.
pub(crate) fn bar(length: usize, what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:20} {human_pos}/{human_len} {msg} ({elapsed})");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = if length == 0 { ProgressBar::no_length() } else { ProgressBar::new(length as u64) };
    let bar = bar.with_style(style).with_message(what.to_owned());
    // It shows at once, and goes on while nothing is counted: one step may take long.
    bar.enable_steady_tick(TICK);
    bar
}
