//! Schedules as Astra shows them. Astra's schedules call tools; schedules that prompt an agent are not shown.

use api::{Amount, BudgetList, Budgets, Code, Error, Handle, Schedule, send};
use serde_json::{Value, json};

use super::name_and_id;
use crate::cron::seconds_last;
use crate::list_schedules;

/// Lists the schedules that call a tool.
pub async fn list_tool_schedules(handle: &dyn Handle) -> Result<Vec<Schedule>, Error> {
    let mut schedules = list_schedules(handle).await?;
    schedules.retain(|schedule| schedule.action.tool.is_some());
    Ok(schedules)
}

/// Finds a schedule by Astra's id. `None` if it does not exist.
pub async fn find_schedule(handle: &dyn Handle, id: &str) -> Result<Option<Schedule>, Error> {
    let mut found = list_tool_schedules(handle).await?;
    found.retain(|schedule| name_and_id(schedule).1 == id);
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(Error::new(Code::NotNow, format!("several schedules have the Astra id {id}"))
            .hint("`midwatch schedule list` shows their own ids, which are unique")),
    }
}

/// Finds a schedule by Astra's id, or fails with Astra's message.
pub async fn get_schedule(handle: &dyn Handle, id: &str) -> Result<Schedule, Error> {
    let not_found = || Error::new(Code::NotFound, format!("Schedule not found: {id}"));
    find_schedule(handle, id).await?.ok_or_else(not_found)
}

/// A schedule as an item of a list.
pub fn schedule_item(schedule: &Schedule, used: &RunsUsedToday) -> Value {
    let (name, id) = name_and_id(schedule);
    let budget = used.by_schedule(&schedule.id).zip(schedule.terms.per_day);
    let remaining = budget.map(|(used, limit)| i64::from(limit).saturating_sub(used).max(0));
    json!({
        "id": id,
        "name": name,
        "cron": cron(schedule),
        "target_tool": schedule.action.tool,
        "next_run_at": schedule.next_run_at,
        "status": schedule.status,
        "safety_tier": schedule.tier,
        "budget_remaining": remaining,
    })
}

/// A schedule with its payload and its daily budget.
pub fn schedule_record(schedule: &Schedule, used: &RunsUsedToday) -> Value {
    let payload = schedule.action.payload.as_deref();
    let payload: Option<Value> = payload.and_then(|text| serde_json::from_str(text).ok());
    let mut record = schedule_item(schedule, used);
    if let Value::Object(record) = &mut record {
        record.remove("budget_remaining");
        record.insert("payload".to_owned(), payload.unwrap_or_default());
        record.insert("describe".to_owned(), schedule.describe.clone().into());
        // Tells the client that the id, a hash of the first definition, no longer matches the schedule.
        record.insert("modified".to_owned(), (1 < schedule.revision).into());
        let consumed = used.by_schedule(&schedule.id);
        record.insert(
            "run_budget".to_owned(),
            json!({"per_day": schedule.terms.per_day, "consumed": consumed}),
        );
    }
    record
}

/// The cron expression in Astra's order, or a description of another trigger.
fn cron(schedule: &Schedule) -> String {
    let expression = schedule.trigger.get("expression").and_then(Value::as_str);
    expression.map_or_else(|| schedule.describe.clone(), seconds_last)
}

/// Runs that count against daily budgets today. `None` if the caller may not see budgets.
#[derive(Debug)]
pub struct RunsUsedToday(Option<Budgets>);

impl RunsUsedToday {
    pub async fn load(handle: &dyn Handle) -> Result<RunsUsedToday, Error> {
        match send(handle, BudgetList {}).await {
            Ok(budgets) => Ok(RunsUsedToday(Some(budgets))),
            Err(refused) if refused.code == Code::RoleTooLow => Ok(RunsUsedToday(None)),
            Err(error) => Err(error),
        }
    }

    /// `None` if it is not known.
    fn by_schedule(&self, id: &str) -> Option<i64> {
        let Budgets { budgets, left_out, .. } = self.0.as_ref()?;
        let is_runs_of_schedule = |limit: &&api::BudgetLimit| {
            limit.scope == "schedule" && limit.what == "runs" && limit.name.as_deref() == Some(id)
        };
        match budgets.iter().find(is_runs_of_schedule).map(|limit| &limit.used) {
            Some(Amount::Count(count)) => Some(*count),
            Some(Amount::Money(_)) => None,
            None => (*left_out == 0).then_some(0),
        }
    }
}
