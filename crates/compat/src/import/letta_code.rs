//! Tasks of Letta Code, from its `crons.json`. Pure.

use api::{ScheduleAdd, Terms, When};
use calendar::Span;
use serde_json::Value;

use super::record::Record;
use super::{Entry, LeftOut, NewSchedule, Options, Position, UniqueNames, prompt_action};

/// Conversations that every backend has.
const ORDINARY_CONVERSATIONS: [&str; 2] = ["new", "default"];

pub fn entries(tasks: &[Value], options: &Options<'_>) -> Vec<Entry> {
    let mut names = UniqueNames::default();
    let entries = (1..).zip(tasks).map(|(index, task)| {
        let task = Record(task);
        let id = task.text("id").map_or_else(|| format!("#{index}"), str::to_owned);
        let title = task.text_of(&["name", "description"]).unwrap_or_default();
        let outcome = new_schedule(task, names.name(title, &id), options);
        Entry { position: Position::entry(id), text: title.to_owned(), outcome }
    });
    entries.collect()
}

fn new_schedule(
    task: Record<'_>,
    name: String,
    options: &Options<'_>,
) -> Result<NewSchedule, LeftOut> {
    let status = task.text("status").unwrap_or("active");
    if !["active", "paused"].contains(&status) {
        return Err(LeftOut::new(format!("its status is `{status}`"), "nothing to do"));
    }
    let Some(agent) = options.agent.or(task.text("agent_id")) else {
        return Err(LeftOut::new("it names no agent", "name one with `--agent NAME`"));
    };
    let is_once = task.is_false("recurring");
    let tz = Some(task.text("timezone").unwrap_or(options.zone).to_owned());
    let missing = |what: &str| {
        LeftOut::new(format!("it has no `{what}`"), "add it with `midwatch schedule add`")
    };
    let when = match is_once {
        true => {
            let at = task.text("scheduled_for").ok_or_else(|| missing("scheduled_for"))?;
            When { at: Some(at.to_owned()), tz, ..When::default() }
        }
        false => {
            let cron = task.text("cron").ok_or_else(|| missing("cron"))?;
            When { cron: Some(cron.to_owned()), tz, ..When::default() }
        }
    };
    let delay = task.integer("jitter_offset_ms").and_then(Span::from_millis);
    let jitter = delay.filter(|_| !is_once).map(|delay| delay.to_string());
    let request = ScheduleAdd {
        name,
        when,
        action: prompt_action(agent, task.text("prompt").unwrap_or_default())?,
        terms: Terms {
            jitter: jitter.clone(),
            end_at: task.text("expires_at").map(str::to_owned),
            ..Terms::default()
        },
        paused: status == "paused",
        ..ScheduleAdd::default()
    };
    let mut schedule = NewSchedule::new(request, letta_agent_hint(agent));
    schedule.warnings.extend(jitter.map(|delay| {
        format!("Letta Code delays each run by {delay}; here each is delayed by up to {delay}")
    }));
    let conversation = task.text("conversation_id");
    let conversation = conversation.filter(|id| !ORDINARY_CONVERSATIONS.contains(id));
    schedule.warnings.extend(conversation.map(|id| {
        format!("it continues the conversation `{id}` there; here it goes to the agent's own")
    }));
    Ok(schedule)
}

/// Agents of Letta Code are reached through its App Server.
fn letta_agent_hint(agent: &str) -> String {
    format!(
        "register it with `midwatch agent add NAME --backend letta --api openai --url URL --remote-id {agent}` (URL is \
         that of the App Server), or name a registered agent with `--agent NAME`"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(members: Value, expected: Result<Value, &str>) {
        let mut task = json!({
            "id": "1a2b3c4d", "agent_id": "agent-1", "conversation_id": "new", "name": "standup",
            "cron": "*/15 * * * *", "timezone": "Europe/Berlin", "recurring": true, "prompt": "hi",
            "status": "active", "expires_at": null, "jitter_offset_ms": 0, "scheduled_for": null,
        });
        for (name, value) in members.as_object().unwrap() {
            task[name] = value.clone();
        }
        let options = Options { agent: None, zone: "Asia/Tokyo" };
        let entry = entries(&[task], &options).pop().unwrap();
        let found = entry.outcome.as_ref().map(|NewSchedule { request, warnings, .. }| {
            json!({"when": request.when, "terms": request.terms, "paused": request.paused,
                   "agent": request.action.agent, "warnings": warnings})
        });
        assert_eq!(found.map_err(|it| it.reason.as_str()), expected, "{members}");
    }

    #[test]
    fn task_becomes_a_schedule_or_a_reason() {
        let cron = json!({"cron": "*/15 * * * *", "tz": "Europe/Berlin"});
        check(
            json!({}),
            Ok(
                json!({"when": cron, "terms": {}, "paused": false, "agent": "agent-1", "warnings": []}),
            ),
        );
        check(
            json!({"status": "paused", "jitter_offset_ms": 90_000, "conversation_id": "conv-1",
                   "expires_at": "2030-01-01T00:00:00Z"}),
            Ok(json!({
                "when": cron, "terms": {"jitter": "1m30s", "end_at": "2030-01-01T00:00:00Z"},
                "paused": true, "agent": "agent-1",
                "warnings": [
                    "Letta Code delays each run by 1m30s; here each is delayed by up to 1m30s",
                    "it continues the conversation `conv-1` there; here it goes to the agent's own",
                ],
            })),
        );
        // The expression of a task that is due once would come again each year.
        check(
            json!({"recurring": false, "cron": "0 9 1 1 *", "scheduled_for": "2030-01-01T08:00:00Z",
                   "jitter_offset_ms": 5}),
            Ok(json!({"when": {"at": "2030-01-01T08:00:00Z", "tz": "Europe/Berlin"}, "terms": {},
                      "paused": false, "agent": "agent-1", "warnings": []})),
        );
        check(json!({"status": "fired"}), Err("its status is `fired`"));
        check(json!({"prompt": ""}), Err("it has no prompt"));
        check(json!({"agent_id": null}), Err("it names no agent"));
        check(json!({"cron": null}), Err("it has no `cron`"));
    }
}
