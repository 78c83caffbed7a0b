//! Compares the entries of a source with what exists in the installation, and decides what an import adds. It changes
//! nothing: a dry run reports the result, and an import applies the same result.

use std::collections::BTreeMap;

use api::{Error, Schedule, ScheduleAdd, ScheduleAddAll, StoredAction};
use compat::import::{LeftOut, NewSchedule, Position};
use compat::promptyoself::agents::Agents;
use compat::promptyoself::view::{next_free_number, number_in_name, reserve_number};

use super::plan::{Planned, PlannedEntry};
use crate::access::send;
use crate::cli::promptyoself::{has_no_data, registered_agents, schedules};
use crate::context::Context;

/// What an import does.
#[derive(Debug)]
pub(super) struct Comparison {
    pub entries: Vec<ComparedEntry>,
    /// Letta agents to register: their ids on the server, and their names.
    pub new_agents: BTreeMap<String, String>,
    /// Keeps `register` from giving out the numbers of entries that are left out.
    pub reservation: Option<Reservation>,
}

#[derive(Debug)]
pub(super) struct ComparedEntry {
    pub position: Position,
    pub text: String,
    pub outcome: Result<Compared, LeftOut>,
}

#[derive(Debug)]
pub(super) struct Compared {
    pub planned: Planned,
    /// The id of the schedule if it exists.
    pub existing: Option<String>,
}

/// A schedule that never runs and whose name has the highest number of an imported database.
#[derive(Debug)]
pub(super) struct Reservation {
    pub number: u64,
    pub request: ScheduleAdd,
}

/// The installation that entries are compared with. Empty if there is no data yet.
struct Existing {
    agents: Agents,
    schedules: Vec<Schedule>,
    new_agents: BTreeMap<String, String>,
}

/// `numbers_max` is the highest number of a promptyoself database.
pub(super) async fn compare(
    context: &Context,
    entries: Vec<PlannedEntry>,
    numbers_max: Option<u64>,
) -> Result<Comparison, Error> {
    let mut existing = Existing {
        agents: registered_agents::load(context).await?,
        schedules: schedules(context).await?,
        new_agents: BTreeMap::new(),
    };
    let compared = entries.into_iter().map(|PlannedEntry { position, text, outcome }| {
        let planned = outcome.and_then(|planned| existing.resolve_agent(planned));
        let outcome = planned.and_then(|planned| existing.compare(&position, planned));
        ComparedEntry { position, text, outcome }
    });
    let mut entries: Vec<ComparedEntry> = compared.collect();
    if !has_no_data(context)? {
        existing.find_same(context, &mut entries).await?;
    }
    entries.iter_mut().for_each(|entry| existing.warn_of_replaced_line(entry));
    let mut new_agents = existing.new_agents;
    new_agents.retain(|_, name| {
        let is_prompted = |it: &Planned| it.schedule.request.action.agent.as_ref() == Some(name);
        new_schedules(&entries).any(is_prompted)
    });
    let names = existing.schedules.iter().map(|it| it.name.as_str());
    let new_names = new_schedules(&entries).map(|it| it.schedule.request.name.as_str());
    let next = next_free_number(names.chain(new_names));
    let reservation = numbers_max.filter(|number| next <= *number).map(|number| {
        let request = reserve_number(number);
        Reservation { number, request }
    });
    Ok(Comparison { entries, new_agents, reservation })
}

/// The schedules to add.
pub(super) fn new_schedules(entries: &[ComparedEntry]) -> impl Iterator<Item = &Planned> {
    let compared = entries.iter().filter_map(|entry| entry.outcome.as_ref().ok());
    compared.filter(|it| it.existing.is_none()).map(|it| &it.planned)
}

impl Existing {
    /// Replaces the agent that the source names with a registered one, or one to register.
    fn resolve_agent(&mut self, mut planned: Planned) -> Result<Planned, LeftOut> {
        let NewSchedule { request, agent_hint, registers_letta_agent, .. } = &mut planned.schedule;
        let Some(agent) = &mut request.action.agent else { return Ok(planned) };
        let found = match registers_letta_agent {
            true => self.agents.find(agent),
            false => self.agents.named(agent).or_else(|| self.agents.find(agent)),
        };
        *agent = match found {
            Some(found) => found.name.clone(),
            None if *registers_letta_agent => self.name_new_agent(agent),
            None => {
                let reason = format!("agent `{agent}` is not registered");
                return Err(LeftOut::new(reason, agent_hint.clone()));
            }
        };
        Ok(planned)
    }

    /// The name under which a Letta agent will be registered.
    fn name_new_agent(&mut self, id: &str) -> String {
        if let Some(name) = self.new_agents.get(id) {
            return name.clone();
        }
        let plain = registered_agents::name_for(id);
        let is_taken = self.agents.named(&plain).is_some()
            || self.new_agents.values().any(|name| *name == plain);
        let name = if is_taken { registered_agents::unique_name_for(id) } else { plain };
        self.new_agents.insert(id.to_owned(), name.clone());
        name
    }

    /// An entry with a name or number of its own exists if a schedule with that name has the same action, even if the
    /// schedule was edited otherwise. Lines of a crontab have no names of their own; [`Existing::find_same`] compares
    /// them as a whole.
    fn compare(&self, position: &Position, mut planned: Planned) -> Result<Compared, LeftOut> {
        let request = &planned.schedule.request;
        let same_name: Vec<&Schedule> = self.with_name(&request.name).collect();
        let (Position::Entry { .. }, [first, ..]) = (position, same_name.as_slice()) else {
            return Ok(Compared { planned, existing: None });
        };
        let action = StoredAction::from(request.action.clone());
        let Some(same) = same_name.iter().find(|it| it.action == action) else {
            return Err(name_taken(&request.name, &first.id));
        };
        let existing = Some(same.id.clone());
        let warning = other_time(same, &planned);
        planned.schedule.warnings.extend(warning);
        Ok(Compared { planned, existing })
    }

    /// Asks the engine which of the new schedules exist already, with everything the same.
    async fn find_same(
        &self,
        context: &Context,
        entries: &mut [ComparedEntry],
    ) -> Result<(), Error> {
        let is_registered = |it: &Compared| {
            let agent = it.planned.schedule.request.action.agent.as_deref();
            agent.is_none_or(|agent| self.agents.named(agent).is_some())
        };
        let new = entries.iter_mut().filter_map(|entry| entry.outcome.as_mut().ok());
        let new: Vec<&mut Compared> =
            new.filter(|it| it.existing.is_none() && is_registered(it)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let schedules = new.iter().map(|it| it.planned.schedule.request.clone()).collect();
        let answers = send(context, ScheduleAddAll { schedules, dry_run: true }).await?.schedules;
        for (compared, answer) in new.into_iter().zip(answers) {
            compared.existing = (!answer.created).then_some(answer.id);
        }
        Ok(())
    }

    /// A changed line becomes a new schedule beside the old one.
    fn warn_of_replaced_line(&self, entry: &mut ComparedEntry) {
        if let (Position::Line { .. }, Ok(Compared { planned, existing: None })) =
            (&entry.position, &mut entry.outcome)
            && let Some(Schedule { id, .. }) = self.with_name(&planned.schedule.request.name).next()
        {
            planned.schedule.warnings.push(format!(
                "schedule {id} has the same name but differs; if this line replaces it: `midwatch schedule \
                 remove {id}`"
            ));
        }
    }

    /// Schedules with this name, or with the same number of promptyoself.
    fn with_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Schedule> {
        let number = number_in_name(name);
        self.schedules.iter().filter(move |it| match number {
            Some(_) => number_in_name(&it.name) == number,
            None => it.name == name,
        })
    }
}

/// A warning if the schedule fires at other times than its entry.
fn other_time(same: &Schedule, planned: &Planned) -> Option<String> {
    // The entry may have run since, and its interval is then counted from another time.
    let times = |text: &str| text.split_once(" from ").map_or(text, |(times, _)| times).to_owned();
    let (here, there) = (times(&same.describe), times(&planned.describe));
    let is_same = here == there && same.tz == planned.zone.name();
    (!is_same).then(|| {
        format!(
            "it fires {here} ({}) here, and {there} ({}) in the source",
            same.tz,
            planned.zone.name()
        )
    })
}

fn name_taken(name: &str, by: &str) -> LeftOut {
    let reason = match number_in_name(name) {
        Some(number) => format!("number {number} is taken by schedule {by}"),
        None => format!("the name is taken by schedule {by}, which has another action"),
    };
    LeftOut::new(reason, format!("rename it with `midwatch schedule edit {by} --name NAME`"))
}
