//! `midwatch policy check`

use api::Error;
use serde::Serialize;

use super::load_rules;
use crate::cli::support::render::count_of;
use crate::context::Context;

#[derive(Serialize)]
struct Checked {
    posture: &'static str,
    rules: usize,
    /// The version of the rules.
    policy: String,
}

pub(super) fn run(context: &Context) -> Result<(), Error> {
    let rules = load_rules(context)?;
    let (posture, policy) = (rules.posture().name(), rules.version().to_owned());
    let checked = Checked { posture, rules: rules.iter().count(), policy };
    context.output.say(&checked, |it| {
        let rules = count_of(it.rules as u64, "rule", "rules");
        format!("{rules}, all valid (posture {}, policy version {})", it.posture, it.policy)
    });
    Ok(())
}
