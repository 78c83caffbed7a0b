//! `midwatch policy …`

use std::io;
use std::process::ExitCode;

use api::{Error, PolicyExplain, PolicyExplained};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::given;
use crate::access::ask;
use crate::context::Context;
use crate::output::counted;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Look whether the standing orders are in order: those of the posture, and `policy.toml` in the
    /// data directory
    Check,
    /// Say what the standing orders said of a run, or would say of a request, and by which rules
    Explain(Explain),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Explain {
    /// The id of a run: what was said of it then
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// A request, such as {"capability": "agent.prompt", "agent": "ada"}: what the files say of it
    /// now; `-` reads stdin, `@FILE` reads a file. It has a `capability`, and may have `principal`,
    /// `role`, `agent`, `tier`, `resource`, `host`, `path` and `argv`
    #[arg(long, value_name = "JSON")]
    request: Option<String>,
}

#[derive(Serialize)]
struct Checked {
    posture: &'static str,
    rules: usize,
    /// Which rules these are.
    policy: String,
}

#[derive(Serialize)]
struct Foreseen {
    ruling: api::Ruling,
    sentence: String,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Check => {
            let rules = rules(context)?;
            let (posture, policy) = (rules.posture().name(), rules.version().to_owned());
            let checked = Checked { posture, rules: rules.iter().count(), policy };
            output.show(&checked, |it| {
                let rules = counted(it.rules as u64, "rule", "rules");
                format!("{rules} in order for {} (version {})", it.posture, it.policy)
            });
        }
        Command::Explain(Explain { run: Some(run), .. }) => {
            let answer = ask(context, PolicyExplain { run }).await?;
            output.show(&answer, |PolicyExplained { sentence, .. }| sentence.clone());
        }
        Command::Explain(Explain { run: None, request }) => {
            let typed = request.unwrap_or_default();
            let document = given::read("request", typed, io::stdin().lock())?;
            let (ruling, sentence) = runtime::foresee(&rules(context)?, &document)?;
            output.show(&Foreseen { ruling, sentence }, |Foreseen { ruling, sentence }| {
                format!("{sentence} (version {})", ruling.policy)
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The rules as the files have them, whatever a daemon goes by.
fn rules(context: &Context) -> Result<runtime::Rules, Error> {
    runtime::rules(context.load_config()?.config.posture, &context.policy()?)
}
