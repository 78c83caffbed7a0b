//! What `freeze` and `run cancel` print when nothing answered.

use api::Error;
use serde::Serialize;

use crate::context::Context;

/// A stop that was left as a marker.
#[derive(Serialize)]
struct Marked<'a> {
    recorded: bool,
    marked: bool,
    problem: &'a str,
}

pub(in crate::cli) fn show_marked(context: &Context, why: &Error) {
    let marked = Marked { recorded: false, marked: true, problem: &why.message };
    context.output.say(&marked, |it| {
        format!(
            "not confirmed: {}\nleft a marker: the daemon obeys it as soon as it continues or starts",
            it.problem
        )
    });
}
