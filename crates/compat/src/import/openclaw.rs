//! Jobs of OpenClaw, from the definition that its database and its JSON have in common. Pure.
//!
//! As there, a job that was due while the scheduler was down is not run afterwards.

use api::{ScheduleAdd, Terms, When};
use calendar::{Span, format_instant};
use serde_json::Value;

use super::record::Record;
use super::{
    Entry, LeftOut, NewSchedule, Options, Position, UniqueNames, agent_hint, prompt_action,
    shell_line, trigger_flags,
};
use crate::cron::either_day;

/// The agent of jobs that name none.
const DEFAULT_AGENT: &str = "main";
/// Members of a job that have no counterpart here.
const JOB_MEMBERS: [&str; 3] = ["pacing", "failureAlert", "scheduledToolPolicy"];
/// Members of a payload that are settings of the agent here.
const PAYLOAD_MEMBERS: [&str; 4] = ["model", "fallbacks", "thinking", "lightContext"];

pub fn entries(jobs: &[Value], options: &Options<'_>) -> Vec<Entry> {
    let mut names = UniqueNames::default();
    let entries = (1..).zip(jobs).map(|(index, job)| {
        let job = Record(job);
        let id = job.text_of(&["id", "jobId"]).map_or_else(|| format!("#{index}"), str::to_owned);
        let title = job.text_of(&["name", "displayName"]).unwrap_or_default();
        let outcome = match job.text("declarationKey") {
            // The jobs of the program itself take no name from those of the user.
            Some(key) => Err(LeftOut::new(
                format!("it is a job of OpenClaw itself, `{}`", kind_of_key(key)),
                "nothing to do",
            )),
            None => new_schedule(job, names.name(title, &id), options),
        };
        Entry { position: Position::entry(id), text: title.to_owned(), outcome }
    });
    entries.collect()
}

/// `heartbeat` of `heartbeat:main`.
fn kind_of_key(key: &str) -> &str {
    key.split_once(':').map_or(key, |(kind, _)| kind)
}

fn new_schedule(
    job: Record<'_>,
    name: String,
    options: &Options<'_>,
) -> Result<NewSchedule, LeftOut> {
    let agent = options.agent.or(job.text("agentId")).unwrap_or(DEFAULT_AGENT);
    let mut warnings = Vec::new();
    if job.get("trigger").is_some() {
        let hint = "let the script end with `midwatch event publish NAME`, and add the schedule with \
                    `midwatch schedule add --event NAME`";
        return Err(LeftOut::new("a script decides whether it runs", hint));
    }
    let (when, jitter) = when(job.record("schedule"), options.zone)?;
    let prompt = prompt(job, &when, &mut warnings)?;
    let action = prompt_action(agent, &prompt)?;
    if let Some(jitter) = &jitter {
        warnings.push(format!(
            "OpenClaw delays it by a fixed part of {jitter}; here each run is delayed by up to {jitter}"
        ));
    }
    warn_of_job(job, &mut warnings);
    let is_once = when.at.is_some();
    let request = ScheduleAdd {
        name,
        when,
        action,
        terms: Terms {
            jitter,
            missed: (!is_once).then(|| "skip".to_owned()),
            max_fires: (!is_once && job.is_true("deleteAfterRun")).then_some(1),
            ..Terms::default()
        },
        paused: job.is_false("enabled"),
        ..ScheduleAdd::default()
    };
    let schedule = NewSchedule::new(request, agent_hint(agent));
    Ok(NewSchedule { warnings, ..schedule })
}

/// The trigger, and the longest delay of a slot.
fn when(schedule: Record<'_>, zone: &str) -> Result<(When, Option<String>), LeftOut> {
    let missing = |what: &str| {
        LeftOut::new(format!("its schedule has no `{what}`"), "add it with `midwatch schedule add`")
    };
    let kind = match schedule.text("kind") {
        Some(kind) => kind,
        // Older jobs name no kind.
        None => ["at", "everyMs", "cron", "expr"]
            .into_iter()
            .find(|name| schedule.get(name).is_some())
            .map_or("", |name| match name {
                "everyMs" => "every",
                "expr" => "cron",
                name => name,
            }),
    };
    match kind {
        "at" => {
            let at = schedule.text("at").ok_or_else(|| missing("at"))?;
            Ok((
                When { at: Some(at.to_owned()), tz: Some(zone.to_owned()), ..When::default() },
                None,
            ))
        }
        "every" => {
            let every = schedule.integer("everyMs").and_then(Span::from_millis);
            let every = every.ok_or_else(|| missing("everyMs"))?.to_string();
            let anchor_us = schedule.integer("anchorMs").map(|ms| ms.saturating_mul(1_000));
            let anchor = anchor_us.map(format_instant);
            Ok((When { every: Some(every), anchor, ..When::default() }, None))
        }
        "cron" => {
            let expression = schedule.text_of(&["expr", "cron"]).ok_or_else(|| missing("expr"))?;
            let tz = schedule.text("tz").unwrap_or(zone).to_owned();
            let stagger = schedule.integer("staggerMs").and_then(Span::from_millis);
            let (cron, tz) = (Some(either_day(expression)), Some(tz));
            Ok((When { cron, tz, ..When::default() }, stagger.map(|span| span.to_string())))
        }
        "on-exit" | "stream" => Err(LeftOut::new(
            "a command starts it, not the time",
            "let that command run `midwatch event publish NAME`, and add the schedule with \
             `midwatch schedule add --event NAME`",
        )),
        other => Err(LeftOut::new(
            format!("unknown kind of schedule `{other}`"),
            "add it with `midwatch schedule add`",
        )),
    }
}

/// The prompt of a job. Older jobs have the message at the top.
fn prompt(job: Record<'_>, when: &When, warnings: &mut Vec<String>) -> Result<String, LeftOut> {
    let payload = job.record("payload");
    let kind = payload.text("kind").unwrap_or("agentTurn");
    let text = match kind {
        "agentTurn" => {
            warn_of_turn(if payload.get("kind").is_some() { payload } else { job }, warnings);
            payload.text("message").or(job.text("message"))
        }
        "systemEvent" => {
            let note =
                "OpenClaw puts its text into the main session; here it is a prompt of its own";
            warnings.push(note.to_owned());
            payload.text("text")
        }
        "command" => return Err(command(job, payload, when)),
        other => {
            let reason = format!("its payload is `{other}`, which only OpenClaw can run");
            return Err(LeftOut::new(reason, "add it with a prompt for an agent"));
        }
    };
    Ok(text.unwrap_or_default().to_owned())
}

/// A command is left out, with the commands that carry it over.
fn command(job: Record<'_>, payload: Record<'_>, when: &When) -> LeftOut {
    let argv = payload.items("argv").iter().filter_map(Value::as_str);
    let argv = shell_line(argv);
    let cwd = payload.text("cwd").map(|cwd| format!(" --cwd {}", shell_line([cwd])));
    let variables = payload.get("env").and_then(Value::as_object);
    let variables = variables.into_iter().flat_map(|env| env.keys());
    let variables: String = variables.map(|name| format!(" --env {name}")).collect();
    let name = job.text("name").unwrap_or("NAME");
    LeftOut::new(
        "it runs a command, not an agent",
        format!(
            "`midwatch agent add AGENT --backend command{}{variables} -- {argv}`, then `midwatch schedule add \
             --name {} {} --agent AGENT --prompt {}`",
            cwd.unwrap_or_default(),
            shell_line([name]),
            trigger_flags(when),
            shell_line([payload.text("input").unwrap_or("run")]),
        ),
    )
}

fn warn_of_turn(turn: Record<'_>, warnings: &mut Vec<String>) {
    let mut lost = turn.present(&PAYLOAD_MEMBERS);
    let allows_all = |tools: &[Value]| tools.is_empty() || tools.iter().any(|tool| tool == "*");
    if !allows_all(turn.items("toolsAllow")) {
        lost.push("`toolsAllow`".to_owned());
    }
    if !lost.is_empty() {
        warnings.push(format!("not imported, because the agent decides it: {}", lost.join(", ")));
    }
    if let Some(seconds) = turn.integer("timeoutSeconds").filter(|seconds| 0 < *seconds) {
        warnings.push(format!(
            "its time limit is the agent's; `midwatch agent edit AGENT --time-limit {seconds}s` sets it"
        ));
    }
}

fn warn_of_job(job: Record<'_>, warnings: &mut Vec<String>) {
    if let Some(session) = job.text("sessionTarget").filter(|target| *target != "isolated") {
        warnings.push(format!("it runs in the session `{session}` there, and in a new one here"));
    }
    let delivery = job.record("delivery");
    let mode = delivery.text("mode").or(job.is_true("deliver").then_some("announce"));
    if let Some(mode) = mode.filter(|mode| *mode != "none") {
        warnings
            .push(format!("its answer is not delivered (`{mode}`); `midwatch run show` has it"));
    }
    let lost = job.present(&JOB_MEMBERS);
    if !lost.is_empty() {
        warnings.push(format!("not imported: {}", lost.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(job: Value) -> Entry {
        let options = Options { agent: None, zone: "Asia/Tokyo" };
        entries(&[job], &options).pop().unwrap()
    }

    /// A job that differs from an ordinary one in these members.
    fn job(members: Value) -> Value {
        let mut job = json!({
            "id": "b496cd33", "name": "Morning brief", "enabled": true, "sessionTarget": "isolated",
            "schedule": {"kind": "cron", "expr": "0 7 * * 1-5", "tz": "Europe/Berlin"},
            "payload": {"kind": "agentTurn", "message": "Summarize.", "toolsAllow": ["*"]},
        });
        for (name, value) in members.as_object().unwrap() {
            job[name] = value.clone();
        }
        job
    }

    /// Checks the trigger and the terms of a job with this schedule.
    fn check(schedule: Value, expected: Value) {
        let entry = entry(job(json!({"schedule": schedule})));
        let request = entry.outcome.unwrap_or_else(|left_out| panic!("{left_out:?}")).request;
        let found = serde_json::to_value((&request.when, &request.terms)).unwrap();
        assert_eq!(found, expected, "{schedule}");
    }

    #[test]
    fn schedule_becomes_a_trigger() {
        check(
            json!({"kind": "cron", "expr": "0 7 * * 1-5", "tz": "Europe/Berlin", "staggerMs": 0}),
            json!([{"cron": "0 7 * * 1-5", "tz": "Europe/Berlin"}, {"missed": "skip"}]),
        );
        check(
            json!({"kind": "cron", "expr": "30 0 * * * *", "staggerMs": 300_000}),
            json!([{"cron": "30 0 * * * *", "tz": "Asia/Tokyo"}, {"missed": "skip", "jitter": "5m"}]),
        );
        check(
            json!({"kind": "cron", "expr": "0 9 1 * +1"}),
            json!([{"cron": "0 9 1 * +1", "tz": "Asia/Tokyo"}, {"missed": "skip"}]),
        );
        check(
            json!({"kind": "every", "everyMs": 90_000, "anchorMs": 1_794_947_916_642_i64}),
            json!([{"every": "1m30s", "anchor": "2026-11-17T20:38:36.642Z"}, {"missed": "skip"}]),
        );
        check(
            json!({"kind": "at", "at": "2030-01-01T00:00:00Z"}),
            json!([{"at": "2030-01-01T00:00:00Z", "tz": "Asia/Tokyo"}, {}]),
        );
        check(
            json!({"cron": "0 7 * * *"}),
            json!([{"cron": "0 7 * * *", "tz": "Asia/Tokyo"}, {"missed": "skip"}]),
        );
    }

    /// Checks the agent, prompt and warnings of a job, or why it is left out.
    fn check_job(members: Value, expected: Result<(&str, &str, &[&str]), &str>) {
        let entry = entry(job(members.clone()));
        let found = entry.outcome.as_ref().map(|it| {
            let action = &it.request.action;
            let warnings: Vec<&str> = it.warnings.iter().map(String::as_str).collect();
            (action.agent.as_deref().unwrap(), action.prompt.as_deref().unwrap(), warnings)
        });
        let expected = expected.map(|(agent, prompt, warnings)| (agent, prompt, warnings.to_vec()));
        assert_eq!(found.map_err(|it| it.reason.as_str()), expected, "{members}");
    }

    #[test]
    fn payload_becomes_a_prompt_or_a_reason() {
        check_job(json!({}), Ok(("main", "Summarize.", &[])));
        check_job(json!({"agentId": "ops"}), Ok(("ops", "Summarize.", &[])));
        check_job(
            json!({"payload": {"kind": "agentTurn", "message": "m", "model": "gpt", "timeoutSeconds": 120,
                               "toolsAllow": ["read"]},
                   "delivery": {"mode": "announce"}, "pacing": {"min": "1h"}, "sessionTarget": "main"}),
            Ok((
                "main",
                "m",
                &[
                    "not imported, because the agent decides it: `model`, `toolsAllow`",
                    "its time limit is the agent's; `midwatch agent edit AGENT --time-limit 120s` sets it",
                    "it runs in the session `main` there, and in a new one here",
                    "its answer is not delivered (`announce`); `midwatch run show` has it",
                    "not imported: `pacing`",
                ],
            )),
        );
        check_job(
            json!({"payload": {"kind": "systemEvent", "text": "wake up"}}),
            Ok((
                "main",
                "wake up",
                &["OpenClaw puts its text into the main session; here it is a prompt of its own"],
            )),
        );
        check_job(json!({"payload": null, "message": "older"}), Ok(("main", "older", &[])));
        check_job(json!({"payload": {"kind": "agentTurn"}}), Err("it has no prompt"));
        check_job(
            json!({"payload": {"kind": "script"}}),
            Err("its payload is `script`, which only OpenClaw can run"),
        );
        check_job(
            json!({"schedule": {"kind": "on-exit", "command": "make"}}),
            Err("a command starts it, not the time"),
        );
        check_job(json!({"trigger": {"script": "x"}}), Err("a script decides whether it runs"));
        check_job(
            json!({"declarationKey": "heartbeat:main"}),
            Err("it is a job of OpenClaw itself, `heartbeat`"),
        );
    }

    #[test]
    fn command_has_the_commands_that_carry_it_over() {
        let payload = json!({"kind": "command", "argv": ["sh", "-lc", "make all"], "cwd": "/srv",
                             "env": {"TOKEN": "secret"}});
        let left_out = entry(job(json!({"payload": payload}))).outcome.unwrap_err();
        let expected = "`midwatch agent add AGENT --backend command --cwd /srv --env TOKEN -- sh -lc 'make all'`, \
                        then `midwatch schedule add --name 'Morning brief' --cron '0 7 * * 1-5' --tz \
                        Europe/Berlin --agent AGENT --prompt run`";
        assert_eq!(left_out.hint, expected);
    }

    #[test]
    fn disabled_job_is_paused_and_one_that_deletes_itself_fires_once() {
        let members = json!({"enabled": false, "deleteAfterRun": true});
        let request = entry(job(members)).outcome.unwrap().request;
        assert_eq!((request.paused, request.terms.max_fires), (true, Some(1)));
    }
}
