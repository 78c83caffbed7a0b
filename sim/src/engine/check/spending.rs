//! Counts tokens and money from the events: no attempt starts beyond the budget of a day.
//!
//! The usage of an attempt is known when it ends. Until then its reservation counts; if it reports no usage, the
//! reservation counts for good.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use kernel::agent::AgentName;
use kernel::budget::{Reservation, Spent, day};
use kernel::run::Started;
use kernel::schedule::terms::Terms;
use kernel::{RunId, ScheduleId};

use super::super::process::LIMITS;

#[derive(Debug, Default)]
pub(super) struct Spending {
    used: BTreeMap<(Scope, Resource, i64), i64>,
    /// The reservations of running attempts.
    reserved: BTreeMap<RunId, Reservation>,
    /// Runs that did not start for want of each resource.
    shortages: BTreeMap<Resource, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    All,
    Agent(AgentName),
    Schedule(ScheduleId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resource {
    Tokens,
    /// In millionths.
    Money,
}

/// The agent and schedule that an amount counts for.
type Owner<'a> = (&'a AgentName, Option<&'a ScheduleId>);

impl Spending {
    pub(super) fn record_start(
        &mut self,
        id: &RunId,
        (agent, schedule): (&AgentName, &ScheduleId),
        started: &Started,
        terms: &Terms,
    ) -> Result<()> {
        let day = day(started.at);
        let reservation = started.reservation.as_ref();
        let (tokens, money) = reservation.map_or((0, 0), |it| (it.tokens, it.money.as_micros()));
        let own = terms.tokens_per_day.map_or(0, i64::from);
        let limits = [LIMITS.tokens, LIMITS.tokens_per_agent, own];
        self.check_room((agent, schedule), (Resource::Tokens, day), tokens, limits)?;
        if !started.price.is_free() {
            let own = terms.money_per_day.unwrap_or_default();
            let limits = [LIMITS.money, LIMITS.money_per_agent, own].map(|it| it.as_micros());
            self.check_room((agent, schedule), (Resource::Money, day), money, limits)?;
        }
        if let Some(it) = reservation {
            let is_own = it.agent == *agent && it.schedule == *schedule && it.day == day;
            ensure!(is_own, "I8: {it:?} does not belong to its run");
            self.add((agent, Some(schedule)), day, (tokens, money));
            self.reserved.insert(id.clone(), it.clone());
        }
        Ok(())
    }

    /// Replaces the reservation of an attempt by its usage, if it reported any.
    pub(super) fn record_end(
        &mut self,
        id: &RunId,
        spent: Option<&Spent>,
        released: Option<&Reservation>,
    ) -> Result<()> {
        let reserved = self.reserved.remove(id);
        if let Some(it) = released {
            let is_own = reserved.as_ref() == Some(it);
            ensure!(is_own, "I8: {it:?} is released, and {reserved:?} was reserved");
            let amount = (-it.tokens, -it.money.as_micros());
            self.add((&it.agent, Some(&it.schedule)), it.day, amount);
        }
        if let Some(Spent { agent, schedule, day, usage, cost }) = spent {
            let is_settled = reserved.is_none() || released.is_some();
            ensure!(is_settled, "I8: {id} reports its usage, and its reservation is not released");
            let amount = (usage.unwrap_or_default().tokens(), cost.as_micros());
            self.add((agent, schedule.as_ref()), *day, amount);
        }
        Ok(())
    }

    /// A run did not start for this reason, which is the runtime's message.
    pub(super) fn record_shortage(&mut self, reason: &str) {
        let messages = [("tokens today", Resource::Tokens), (" spent ", Resource::Money)];
        for (_, resource) in messages.into_iter().filter(|(text, _)| reason.contains(text)) {
            *self.shortages.entry(resource).or_default() += 1;
        }
    }

    /// The runs that did not start for want of tokens, and of money.
    pub(super) fn shortages(&self) -> (u64, u64) {
        let count = |resource| self.shortages.get(&resource).copied().unwrap_or_default();
        (count(Resource::Tokens), count(Resource::Money))
    }

    fn check_room(
        &self,
        (agent, schedule): (&AgentName, &ScheduleId),
        (resource, day): (Resource, i64),
        reserved: i64,
        limits: [i64; 3],
    ) -> Result<()> {
        let scopes = [Scope::All, Scope::Agent(agent.clone()), Scope::Schedule(schedule.clone())];
        for (scope, limit) in scopes.into_iter().zip(limits).filter(|(_, limit)| 0 < *limit) {
            let used = self.used.get(&(scope.clone(), resource, day)).copied().unwrap_or_default();
            let fits = used < limit && used + reserved <= limit;
            ensure!(
                fits,
                "I8: {used} of {limit} {resource:?} of {scope:?} used, and {reserved} more reserved"
            );
        }
        Ok(())
    }

    fn add(&mut self, (agent, schedule): Owner<'_>, day: i64, (tokens, money): (i64, i64)) {
        let own = schedule.map(|schedule| Scope::Schedule(schedule.clone()));
        for scope in [Scope::All, Scope::Agent(agent.clone())].into_iter().chain(own) {
            *self.used.entry((scope.clone(), Resource::Tokens, day)).or_default() += tokens;
            *self.used.entry((scope, Resource::Money, day)).or_default() += money;
        }
    }
}
