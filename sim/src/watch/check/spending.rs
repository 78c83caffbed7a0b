//! Tokens and money, counted again by the events: nothing begins beyond what may be used in a day.
//!
//! What a try used is known when it is over. Until then as much counts as was held back for it, and for good
//! where nobody told.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use kernel::agent::AgentName;
use kernel::budget::{Hold, Spent, day};
use kernel::run::Started;
use kernel::schedule::terms::Terms;
use kernel::{RunId, ScheduleId};

use super::super::process::LIMITS;

#[derive(Debug, Default)]
pub(super) struct Spending {
    used: BTreeMap<(Scope, What, i64), i64>,
    /// What was held back for each try at work.
    held: BTreeMap<RunId, Hold>,
    /// Runs that found nothing left of each.
    out_of: BTreeMap<What, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    All,
    Agent(AgentName),
    Schedule(ScheduleId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Tokens,
    /// In millionths.
    Money,
}

/// Whom something counts for.
type Owner<'a> = (&'a AgentName, Option<&'a ScheduleId>);

impl Spending {
    /// A try begins, of an agent and a schedule with these terms.
    pub(super) fn begins(
        &mut self,
        id: &RunId,
        (agent, schedule): (&AgentName, &ScheduleId),
        started: &Started,
        terms: &Terms,
    ) -> Result<()> {
        let day = day(started.at);
        let hold = started.hold.as_ref();
        let (tokens, money) = hold.map_or((0, 0), |hold| (hold.tokens, hold.money.as_micros()));
        let own = terms.tokens_per_day.map_or(0, i64::from);
        let limits = [LIMITS.tokens, LIMITS.tokens_per_agent, own];
        self.has_room((agent, schedule), (What::Tokens, day), tokens, limits)?;
        if !started.price.is_free() {
            let own = terms.money_per_day.unwrap_or_default();
            let limits = [LIMITS.money, LIMITS.money_per_agent, own].map(|it| it.as_micros());
            self.has_room((agent, schedule), (What::Money, day), money, limits)?;
        }
        if let Some(hold) = hold {
            let is_own = hold.agent == *agent && hold.schedule == *schedule && hold.day == day;
            ensure!(is_own, "I8: {hold:?} is not of its run");
            self.add((agent, Some(schedule)), day, (tokens, money));
            self.held.insert(id.clone(), hold.clone());
        }
        Ok(())
    }

    /// A try is over, and what it used takes the place of what was held back, if it is known.
    pub(super) fn ends(
        &mut self,
        id: &RunId,
        spent: Option<&Spent>,
        frees: Option<&Hold>,
    ) -> Result<()> {
        let held = self.held.remove(id);
        if let Some(hold) = frees {
            ensure!(held.as_ref() == Some(hold), "I8: {hold:?} is freed, and {held:?} was held");
            let amount = (-hold.tokens, -hold.money.as_micros());
            self.add((&hold.agent, Some(&hold.schedule)), hold.day, amount);
        }
        if let Some(Spent { agent, schedule, day, usage, cost }) = spent {
            let is_settled = held.is_none() || frees.is_some();
            ensure!(is_settled, "I8: {id} tells what it used, and more is held back");
            let amount = (usage.unwrap_or_default().tokens(), cost.as_micros());
            self.add((agent, schedule.as_ref()), *day, amount);
        }
        Ok(())
    }

    /// A run was not begun, and this is why.
    pub(super) fn lacked(&mut self, why: &str) {
        let what = [("tokens today", What::Tokens), (" spent ", What::Money)];
        for (_, what) in what.into_iter().filter(|(words, _)| why.contains(words)) {
            *self.out_of.entry(what).or_default() += 1;
        }
    }

    /// How many found no tokens, and no money.
    pub(super) fn used_up(&self) -> (u64, u64) {
        let of = |what| self.out_of.get(&what).copied().unwrap_or_default();
        (of(What::Tokens), of(What::Money))
    }

    fn has_room(
        &self,
        (agent, schedule): (&AgentName, &ScheduleId),
        (what, day): (What, i64),
        held: i64,
        limits: [i64; 3],
    ) -> Result<()> {
        let scopes = [Scope::All, Scope::Agent(agent.clone()), Scope::Schedule(schedule.clone())];
        for (scope, limit) in scopes.into_iter().zip(limits).filter(|(_, limit)| 0 < *limit) {
            let used = self.used.get(&(scope.clone(), what, day)).copied().unwrap_or_default();
            let fits = used < limit && used + held <= limit;
            ensure!(fits, "I8: {used} of {limit} {what:?} of {scope:?} and {held} more begin");
        }
        Ok(())
    }

    fn add(&mut self, (agent, schedule): Owner<'_>, day: i64, (tokens, money): (i64, i64)) {
        let own = schedule.map(|schedule| Scope::Schedule(schedule.clone()));
        for scope in [Scope::All, Scope::Agent(agent.clone())].into_iter().chain(own) {
            *self.used.entry((scope.clone(), What::Tokens, day)).or_default() += tokens;
            *self.used.entry((scope, What::Money, day)).or_default() += money;
        }
    }
}
