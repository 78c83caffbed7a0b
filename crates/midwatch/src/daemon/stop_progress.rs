//! What the daemon says while it stops: what it waits for, and what it cut off. The log has it too.

use api::Run;
use tracing::info;

use crate::context::Context;
use crate::run_text::{describe_cut_off, describe_running};
use crate::wrap::fit;

#[derive(Clone, Copy, Debug)]
pub(super) struct StopProgress<'a> {
    pub(super) context: &'a Context,
    /// Whether a person looks at stdout.
    pub(super) is_shown: bool,
}

impl StopProgress<'_> {
    pub(super) fn waits_for(self, runs: &[Run]) {
        if runs.is_empty() {
            return;
        }
        let waits = format!("waiting for {}", describe_running(runs, &self.context.view.at_now()));
        info!("{waits}");
        let it = if runs.len() == 1 { "it" } else { "them" };
        self.show(&format!("{waits}; ctrl-c again stops {it} now"));
    }

    pub(super) fn cut_off(self, runs: &[Run]) {
        for line in describe_cut_off(runs) {
            self.show(&line);
        }
    }

    fn show(self, line: &str) {
        if self.is_shown {
            // A closed stdout is no reason to do anything else.
            let _ = self.context.output.show_line(&(), |()| fit(line, self.context.view.width));
        }
    }
}
