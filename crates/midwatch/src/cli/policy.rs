//! `midwatch policy …`

use std::process::ExitCode;

use api::{Error, PolicyExplain, PolicyExplained};
use clap::Subcommand;
use serde::Serialize;

use crate::access::ask;
use crate::context::Context;
use crate::output::counted;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Look whether the standing orders are in order: those of the posture, and `policy.toml` in the
    /// data directory
    Check,
    /// Say what the standing orders said of a run, and by which rules
    Explain {
        /// The id of the run
        #[arg(long, value_name = "ID")]
        run: String,
    },
}

#[derive(Serialize)]
struct Checked {
    posture: &'static str,
    rules: usize,
    /// Which rules these are.
    policy: String,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Check => {
            let posture = context.load_config()?.config.posture;
            let rules = runtime::rules(posture, &context.policy()?)?;
            let policy = rules.version().to_owned();
            let checked = Checked { posture: posture.name(), rules: rules.iter().count(), policy };
            output.show(&checked, |it| {
                let rules = counted(it.rules as u64, "rule", "rules");
                format!("{rules} in order for {} (version {})", it.posture, it.policy)
            });
        }
        Command::Explain { run } => {
            let answer = ask(context, PolicyExplain { run }).await?;
            output.show(&answer, |PolicyExplained { sentence, .. }| sentence.clone());
        }
    }
    Ok(ExitCode::SUCCESS)
}
