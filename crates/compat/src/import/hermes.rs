//! Jobs of Hermes, from its `jobs.json`. Pure.

use api::{ScheduleAdd, Terms, When};
use calendar::Span;
use serde_json::Value;

use super::record::Record;
use super::{
    Entry, LeftOut, NewSchedule, Options, Position, UniqueNames, agent_hint, prompt_action,
    shell_line, trigger_flags,
};
use crate::cron::{either_day, seconds_first};

/// The agent, unless the user names another: Hermes has one, without a name.
const DEFAULT_AGENT: &str = "hermes";
const MINUTE_MS: i64 = 60_000;
/// A job that is due once and later than this never runs.
const ONCE_WINDOW: &str = "2m";
/// Members of a job that are settings of the agent here.
const AGENT_MEMBERS: [&str; 5] = ["skills", "model", "provider", "base_url", "enabled_toolsets"];

/// `scripts` is the folder of Hermes' scripts.
pub fn entries(jobs: &[Value], scripts: &str, options: &Options<'_>) -> Vec<Entry> {
    let mut names = UniqueNames::default();
    let entries = (1..).zip(jobs).map(|(index, job)| {
        let job = Record(job);
        let id = job.text("id").map_or_else(|| format!("#{index}"), str::to_owned);
        let title = job.text("name").unwrap_or_default();
        let outcome = new_schedule(job, names.name(title, &id), scripts, options);
        Entry { position: Position::entry(id), text: title.to_owned(), outcome }
    });
    entries.collect()
}

fn new_schedule(
    job: Record<'_>,
    name: String,
    scripts: &str,
    options: &Options<'_>,
) -> Result<NewSchedule, LeftOut> {
    if job.text("state") == Some("completed") {
        return Err(LeftOut::new("it is completed", "nothing to do"));
    }
    let agent = options.agent.unwrap_or(DEFAULT_AGENT);
    let (when, window) = when(job, options.zone)?;
    if job.is_true("no_agent") {
        return Err(script(job, scripts, &name, &when));
    }
    let request = ScheduleAdd {
        name,
        when,
        action: prompt_action(agent, job.text("prompt").unwrap_or_default())?,
        terms: Terms { window, max_fires: remaining(job)?, ..Terms::default() },
        paused: job.is_false("enabled") || job.text("state") == Some("paused"),
        ..ScheduleAdd::default()
    };
    let schedule = NewSchedule::new(request, agent_hint(agent));
    Ok(NewSchedule { warnings: warnings(job), ..schedule })
}

/// A script is left out, with the commands that carry it over.
fn script(job: Record<'_>, scripts: &str, name: &str, when: &When) -> LeftOut {
    let script = format!("{scripts}/{}", job.text("script").unwrap_or("SCRIPT"));
    LeftOut::new(
        "it runs a script, not an agent",
        format!(
            "`midwatch agent add AGENT --backend command -- {}`, then `midwatch schedule add --name {} {} --agent \
             AGENT --prompt run`",
            shell_line([script.as_str()]),
            shell_line([name]),
            trigger_flags(when),
        ),
    )
}

/// The trigger, and how late a slot may still run.
fn when(job: Record<'_>, zone: &str) -> Result<(When, Option<String>), LeftOut> {
    let schedule = job.record("schedule");
    let missing = |what: &str| {
        LeftOut::new(format!("its schedule has no `{what}`"), "add it with `midwatch schedule add`")
    };
    let tz = Some(zone.to_owned());
    match schedule.text("kind").unwrap_or_default() {
        "once" => {
            let at = schedule.text("run_at").ok_or_else(|| missing("run_at"))?;
            let when = When { at: Some(at.to_owned()), tz, ..When::default() };
            Ok((when, Some(ONCE_WINDOW.to_owned())))
        }
        "interval" => {
            let minutes = schedule.integer("minutes").unwrap_or_default();
            let every = Span::from_millis(minutes.saturating_mul(MINUTE_MS));
            let every = Some(every.ok_or_else(|| missing("minutes"))?.to_string());
            // The next run keeps its time; later ones do not drift as they did.
            let anchor = job.text_of(&["next_run_at", "created_at"]).map(str::to_owned);
            let tz = anchor.is_some().then_some(tz).flatten();
            Ok((When { every, anchor, tz, ..When::default() }, None))
        }
        "cron" => {
            let expression = schedule.text("expr").ok_or_else(|| missing("expr"))?;
            let cron = Some(either_day(&seconds_first(expression)));
            Ok((When { cron, tz, ..When::default() }, None))
        }
        other => Err(LeftOut::new(
            format!("unknown kind of schedule `{other}`"),
            "add it with `midwatch schedule add`",
        )),
    }
}

/// How often it still runs; `None` if there is no limit.
fn remaining(job: Record<'_>) -> Result<Option<u64>, LeftOut> {
    let repeat = job.record("repeat");
    let Some(times) = repeat.integer("times") else { return Ok(None) };
    let left = times.saturating_sub(repeat.integer("completed").unwrap_or_default());
    match u64::try_from(left) {
        Err(_) | Ok(0) => Err(LeftOut::new("it ran as often as it should", "nothing to do")),
        Ok(left) => Ok(Some(left)),
    }
}

fn warnings(job: Record<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let repeat = job.record("repeat");
    if let (Some(times), Some(done @ 1..)) = (repeat.integer("times"), repeat.integer("completed"))
    {
        warnings.push(format!("{done} of {times} runs are done; the others are counted from 1"));
    }
    if let Some(script) = job.text("script") {
        warnings.push(format!("the output of `{script}` is not put before its prompt"));
    }
    if !job.items("context_from").is_empty() {
        warnings.push("the output of other jobs is not put before its prompt".to_owned());
    }
    let lost = job.present(&AGENT_MEMBERS);
    if !lost.is_empty() {
        warnings.push(format!("not imported, because the agent decides it: {}", lost.join(", ")));
    }
    if let Some(directory) = job.text("workdir") {
        let directory = shell_line([directory]);
        warnings.push(format!(
            "its directory is the agent's; `midwatch agent edit AGENT --cwd {directory}` sets it"
        ));
    }
    if let Some(channel) = job.text("deliver").filter(|channel| *channel != "local") {
        warnings
            .push(format!("its answer is not delivered (`{channel}`); `midwatch run show` has it"));
    }
    if let (Some("error"), error) = (job.text("state"), job.text("last_error")) {
        warnings.push(format!("it failed there: {}", super::one_line(error.unwrap_or("error"))));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(members: Value, expected: Result<Value, &str>) {
        let mut job = json!({
            "id": "baae716c52bd", "name": "news", "prompt": "Summarise the news", "skills": [],
            "script": null, "no_agent": false, "context_from": null, "deliver": "local",
            "schedule": {"kind": "cron", "expr": "0 9 * * *"},
            "repeat": {"times": null, "completed": 0}, "enabled": true, "state": "scheduled",
        });
        for (name, value) in members.as_object().unwrap() {
            job[name] = value.clone();
        }
        let options = Options { agent: None, zone: "Asia/Tokyo" };
        let entry = entries(&[job], "~/.hermes/scripts", &options).pop().unwrap();
        let found = entry.outcome.as_ref().map(|NewSchedule { request, warnings, .. }| {
            json!({"when": request.when, "terms": request.terms, "paused": request.paused,
                   "warnings": warnings})
        });
        assert_eq!(found.map_err(|it| it.reason.as_str()), expected, "{members}");
    }

    #[test]
    fn job_becomes_a_schedule_or_a_reason() {
        let ordinary =
            |when: Value| Ok(json!({"when": when, "terms": {}, "paused": false, "warnings": []}));
        check(json!({}), ordinary(json!({"cron": "0 9 * * *", "tz": "Asia/Tokyo"})));
        check(
            json!({"schedule": {"kind": "cron", "expr": "0 9 */2 * 1 30"}}),
            ordinary(json!({"cron": "30 0 9 1-31/2 * 1", "tz": "Asia/Tokyo"})),
        );
        check(
            json!({"schedule": {"kind": "interval", "minutes": 120},
                   "next_run_at": "2026-11-17T22:32:58.428153+00:00"}),
            ordinary(json!({"every": "2h", "anchor": "2026-11-17T22:32:58.428153+00:00",
                            "tz": "Asia/Tokyo"})),
        );
        check(
            json!({"schedule": {"kind": "once", "run_at": "2030-01-01T09:00:00"},
                   "repeat": {"times": 1, "completed": 0}}),
            Ok(json!({"when": {"at": "2030-01-01T09:00:00", "tz": "Asia/Tokyo"},
                      "terms": {"window": "2m", "max_fires": 1}, "paused": false, "warnings": []})),
        );
        check(json!({"state": "completed"}), Err("it is completed"));
        check(json!({"repeat": {"times": 3, "completed": 3}}), Err("it ran as often as it should"));
        check(json!({"no_agent": true, "script": "x.py"}), Err("it runs a script, not an agent"));
        check(json!({"prompt": " "}), Err("it has no prompt"));
        check(json!({"schedule": {"kind": "moon"}}), Err("unknown kind of schedule `moon`"));
    }

    #[test]
    fn script_has_the_commands_that_carry_it_over() {
        let job = json!({"id": "a", "name": "check", "no_agent": true, "script": "x.py",
                         "schedule": {"kind": "interval", "minutes": 5}});
        let options = Options { agent: None, zone: "UTC" };
        let entry = entries(&[job], "/srv/scripts", &options).pop().unwrap();
        let expected = "`midwatch agent add AGENT --backend command -- /srv/scripts/x.py`, then `midwatch schedule \
                        add --name check --every 5m --agent AGENT --prompt run`";
        assert_eq!(entry.outcome.unwrap_err().hint, expected);
    }

    #[test]
    fn what_is_not_carried_over_is_reported() {
        check(
            json!({"state": "paused", "repeat": {"times": 5, "completed": 2}, "script": "pre.sh",
                   "context_from": ["a"], "skills": ["web"], "model": "m", "workdir": "/srv/my app",
                   "deliver": "telegram"}),
            Ok(json!({
                "when": {"cron": "0 9 * * *", "tz": "Asia/Tokyo"}, "terms": {"max_fires": 3}, "paused": true,
                "warnings": [
                    "2 of 5 runs are done; the others are counted from 1",
                    "the output of `pre.sh` is not put before its prompt",
                    "the output of other jobs is not put before its prompt",
                    "not imported, because the agent decides it: `skills`, `model`",
                    "its directory is the agent's; `midwatch agent edit AGENT --cwd '/srv/my app'` sets it",
                    "its answer is not delivered (`telegram`); `midwatch run show` has it",
                ],
            })),
        );
    }
}
