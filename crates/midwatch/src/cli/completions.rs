//! `midwatch completions`

use std::process::ExitCode;

use clap::Args;

use super::definition;
use crate::output::Output;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(super) struct Completions {
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn run(completions: &Completions, output: &Output) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut definition(), "midwatch", &mut script);
    output.show_raw(&script);
    ExitCode::SUCCESS
}
