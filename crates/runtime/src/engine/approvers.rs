//! Counts the people who can approve: at all, and the runs of each schedule. The rules are in `kernel::posture` and
//! `kernel::approvers`.

use std::collections::BTreeMap;

use api::Error;
use kernel::agent::Agent;
use kernel::approval::Requirements;
use kernel::approvers::{self, Approver, Shortage};
use kernel::authority::Authority;
use kernel::policy_decision::Verdict;
use kernel::posture::{self, Finding};
use kernel::progress::{Progress, Status};
use kernel::schedule::Schedule;
use kernel::token::PersonName;
use kernel::{Noun, Role, ScheduleId};

use crate::commit::codec::decode_listed;
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::config::ActiveConfig;
use crate::engine::Engine;
use crate::errors;

/// Schedules read at a time.
const PAGE_ITEMS: usize = 1_000;
/// Schedules that are checked, so that a start does not take long.
const SCHEDULES_MAX: usize = 100_000;

impl Engine {
    /// What the checks of approvers find under a configuration.
    pub(crate) async fn approver_findings(
        &self,
        config: &ActiveConfig,
    ) -> Result<Vec<Finding>, Error> {
        // A token that cannot be read is not accepted either.
        let tokens = self.tokens.all().await.unwrap_or_default().into_iter();
        let mut people: BTreeMap<PersonName, Role> = BTreeMap::new();
        for (_, token) in tokens.filter(|(_, token)| config.trust.can_token_approve(token)) {
            let role = people.entry(token.name).or_insert(token.role);
            *role = token.role.max(*role);
        }
        let persons = config.rules.approvers_max();
        let too_few = posture::check_approvers(config.trust, people.len(), persons);
        let people = people.into_iter().map(|(name, role)| Approver { name, role });
        let shortages = match config.trust.signed_approvals || 1 < persons {
            true => self.shortages(config, &people.collect::<Vec<_>>()).await?,
            // Authors may approve their own schedules.
            false => Vec::new(),
        };
        let schedules = approvers::check_schedules(config.trust, &shortages);
        Ok(too_few.into_iter().chain(schedules).collect())
    }

    /// The active schedules whose runs need approval by more people than can give it.
    async fn shortages(
        &self,
        config: &ActiveConfig,
        approvers: &[Approver],
    ) -> Result<Vec<Shortage>, Error> {
        let mut found = Vec::new();
        let (mut after, mut read) = (String::new(), 0);
        while read < SCHEDULES_MAX {
            let page = self.store.list(Noun::Schedule.name(), &after, PAGE_ITEMS).await;
            let page = page.map_err(errors::store)?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            read += page.len();
            for item in &page {
                // A schedule that cannot be read does not fire either.
                let Ok((id, schedule)) = decode_listed::<Schedule>(item) else { continue };
                found.extend(self.shortage(config, approvers, &id, &schedule).await?);
            }
        }
        Ok(found)
    }

    async fn shortage(
        &self,
        config: &ActiveConfig,
        approvers: &[Approver],
        id: &ScheduleId,
        schedule: &Schedule,
    ) -> Result<Option<Shortage>, Error> {
        let action = &schedule.definition.action;
        let agent = action.agent().map(row_key::<Agent>);
        let authority = row_key::<Authority>(&self.installation.instance);
        let own = [(Noun::Schedule, id.to_string()), (Noun::Progress, id.to_string()), authority];
        let keys: Vec<RowKey> = own.into_iter().chain(agent).collect();
        let rows: Rows = self.transactions.load(&keys).await?;
        let is_active = |progress: &Progress| matches!(progress.status, Status::Active);
        if !rows.get::<Progress>(id).is_some_and(is_active) {
            return Ok(None);
        }
        let tool_call = self.tool_calls.resolve(action).await?;
        let decision = self.policy.decide_under(config, id, &rows, tool_call.as_ref());
        let Some(decision) = decision.filter(|it| it.verdict == Verdict::Ask) else {
            return Ok(None);
        };
        let agent = action.agent().and_then(|name| rows.get::<Agent>(name));
        let agent_authors = agent.map(Agent::authors).unwrap_or_default();
        let required = Requirements::of(&decision, &schedule.authors(), &agent_authors);
        let authors = [schedule.authors(), agent_authors].concat();
        Ok(Shortage::of(&schedule.definition.name, required, &authors, approvers))
    }
}
