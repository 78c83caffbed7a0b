//! Replays past policy decisions with the active rules or with others, and reports which would differ.
//!
//! It reads the ledger and changes nothing. The ledger has the requests with their tier, the details of the agent and the state
//! of the lease, so neither the agent nor the schedule needs to exist any more.

use ::policy::Rules;
use api::{ChangedDecision, Error, PolicyReplay, PolicyReplayed, Serve};
use kernel::policy_decision::{PolicyDecision, Request};
use kernel::run::{Run, evaluate, recorded_decision, recorded_facts, recorded_request};
use kernel::{EventBody, Noun, State, Timestamp};
use store::{Page, Row};
use tokio::task::spawn_blocking;

use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::config::{self, POLICY_FILE};
use crate::engine::Engine;
use crate::errors::{self, internal};
use crate::schedule::trigger;
use crate::timestamps::rfc3339;
use crate::wire;

/// Decisions that one request replays.
const DECISIONS_MAX: u64 = 100_000;
/// Differing decisions in a response. All are counted.
const CHANGED_ITEMS_MAX: usize = 1_000;
/// Entries read at a time: few, because other requests share the readers.
const PAGE_ENTRIES: usize = 1_024;
/// The kinds of events that can record a policy decision.
const KINDS: [&str; 3] = ["approval.asked", "run.started", "run.ended"];

/// An event that records a policy decision.
#[derive(Debug)]
struct DecisionEvent {
    at: Timestamp,
    event: EventBody,
}

/// The state of a replay.
#[derive(Debug)]
struct Replay {
    rules: Rules,
    /// How many more decisions may be replayed.
    remaining: u64,
    found: PolicyReplayed,
}

impl Serve<PolicyReplay> for Engine {
    async fn serve(&self, caller: &Caller, request: PolicyReplay) -> Result<PolicyReplayed, Error> {
        let since = trigger::parse_since(&request.since, self.time.now())?;
        let mut replay = Replay::new(self.rules_to_replay(request).await?, since);
        let end = self.store.head().await.map_err(errors::store)?.size();
        let first = self.feed.position_before(since).await?;
        let mut last = first;
        while last < end && replay.found.more_from.is_none() {
            let page = self.store.entries(last, PAGE_ENTRIES).await.map_err(errors::store)?;
            let Some(seq) = page.last_seq() else { break };
            last = seq;
            let events =
                spawn_blocking(move || decision_events(&page)).await.map_err(internal)??;
            let runs = self.runs_of(&events).await?;
            let replayed = spawn_blocking(move || replay.replay(events, runs));
            replay = replayed.await.map_err(internal)??;
            caller.progress.show(last - first, end.max(last) - first);
        }
        Ok(replay.finish())
    }
}

impl Engine {
    /// The active rules, with the rules and posture of the request instead where it has any.
    async fn rules_to_replay(&self, request: PolicyReplay) -> Result<Rules, Error> {
        let PolicyReplay { since: _, rules, posture } = request;
        if rules.is_none() && posture.is_none() {
            return Ok(self.config.active().rules.clone());
        }
        let posture = posture.map_or(self.installation.posture, wire::kernel_posture);
        let own = match rules {
            Some(text) => vec![(POLICY_FILE.to_owned(), text)],
            None => self.config.active().policy.clone(),
        };
        let data = self.installation.settings.data.clone();
        spawn_blocking(move || config::rules(posture, &own, &data)).await.map_err(internal)?
    }

    /// The rows of the runs. They are read past the cache, which is for live runs.
    async fn runs_of(&self, events: &[DecisionEvent]) -> Result<Vec<Row>, Error> {
        let runs = events.iter().filter_map(|it| recorded_decision(&it.event));
        let ids: Vec<&str> = runs.map(|(run, _)| run.as_str()).collect();
        match ids.is_empty() {
            true => Ok(Vec::new()),
            false => self.store.load_all(Noun::Run.name(), &ids).await.map_err(errors::store),
        }
    }
}

fn decision_events(page: &Page) -> Result<Vec<DecisionEvent>, Error> {
    let mut events = Vec::new();
    for fields in page.iter().filter(|fields| KINDS.contains(&fields.kind)) {
        let event = codec::decode_event(&fields)?;
        if recorded_decision(&event).is_some() {
            events.push(DecisionEvent { at: Timestamp::from_micros(fields.ts_us), event });
        }
    }
    Ok(events)
}

impl Replay {
    fn new(rules: Rules, since: Timestamp) -> Replay {
        let found = PolicyReplayed {
            since: rfc3339(since),
            posture: wire::posture(rules.posture()),
            policy: rules.version().to_owned(),
            decisions: 0,
            changed: Vec::new(),
            counts: Default::default(),
            untold: 0,
            more_from: None,
            sentence: String::new(),
        };
        Replay { rules, remaining: DECISIONS_MAX, found }
    }

    /// Replays the decisions, each with the row of its run.
    fn replay(mut self, events: Vec<DecisionEvent>, runs: Vec<Row>) -> Result<Replay, Error> {
        for (event, run) in events.iter().zip(runs) {
            if self.remaining == 0 {
                self.found.more_from = Some(rfc3339(event.at));
                break;
            }
            self.remaining -= 1;
            self.found.decisions += 1;
            let run = codec::decode_row(Noun::Run, run)?.state.and_then(State::into_inner::<Run>);
            match run.and_then(|run| recorded_request(&event.event, &run)) {
                Some(request) => self.compare(event, &request),
                None => self.found.untold += 1,
            }
        }
        Ok(self)
    }

    fn compare(&mut self, event: &DecisionEvent, request: &Request) {
        let Some((run, was)) = recorded_decision(&event.event) else { return };
        let lease = recorded_facts(&event.event).map(|facts| facts.lease).unwrap_or_default();
        let now = evaluate(request, lease, |request| self.rules.decide(request));
        if was.verdict == now.verdict {
            return;
        }
        let [was, would_be] =
            [was, &now].map(|decision: &PolicyDecision| wire::verdict(decision.verdict));
        *self.found.counts.entry(format!("{was}_to_{would_be}")).or_default() += 1;
        if self.found.changed.len() < CHANGED_ITEMS_MAX {
            self.found.changed.push(ChangedDecision {
                run_id: run.to_string(),
                at: rfc3339(event.at),
                agent: request.agent.as_ref().map(ToString::to_string),
                was,
                would_be,
                rule: now.rules.into_iter().next().unwrap_or_default(),
            });
        }
    }

    fn finish(self) -> PolicyReplayed {
        let sentence = sentence(&self.found);
        PolicyReplayed { sentence, ..self.found }
    }
}

fn sentence(found: &PolicyReplayed) -> String {
    let PolicyReplayed { since, decisions, untold, .. } = found;
    let changed: u64 = found.counts.values().sum();
    let mut text = match changed {
        _ if *decisions == 0 => format!("no decisions since {since}: nothing to compare"),
        0 => format!("none of {decisions} decisions since {since} would differ"),
        _ => format!("{changed} of {decisions} decisions since {since} would differ"),
    };
    if (CHANGED_ITEMS_MAX as u64) < changed {
        text.push_str(&format!("; the first {CHANGED_ITEMS_MAX} are shown"));
    }
    if 0 < *untold {
        text.push_str(&format!(
            "; {untold} could not be replayed, because the ledger does not have their request"
        ));
    }
    if let Some(from) = &found.more_from {
        text.push_str(&format!(
            "; there are more than one request replays: continue with `--since {from}`"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use api::Code;
    use kernel::RunId;
    use kernel::policy_decision::{Approvers, Verdict};
    use kernel::posture::Posture;
    use kernel::run::{Ended, Event, Occurrence, Outcome, Queued};

    use super::*;

    const MINUTE_US: i64 = 60_000_000;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_micros(1_790_812_800_000_000 + minutes * MINUTE_US)
    }

    /// Denied runs of `ada`, one each minute, and their rows.
    fn denied(count: usize, tier: Option<u8>) -> (Vec<DecisionEvent>, Vec<Row>) {
        let schedule: kernel::ScheduleId = "sch_0a1b2c3d".parse().unwrap();
        let queued = Queued {
            schedule: schedule.clone(),
            revision: 1,
            occurrence: Occurrence::Manual { key: "k".into() },
            agent: Some("ada".parse().unwrap()),
            priority: 5,
            keys: Vec::new(),
            depth: 0,
            by_runner: false,
            at: at(0),
        };
        let run = kernel::run::apply(None, &Event::Queued(queued)).unwrap();
        let body = codec::encode_state(&State::Run(run)).unwrap();
        let decision = PolicyDecision {
            verdict: Verdict::Deny,
            rules: vec!["policy.toml/never".to_owned()],
            posture: Posture::Staging,
            policy: "0123".to_owned(),
            approvers: Approvers::default(),
        };
        let events = (0..count).map(|number| {
            let ended = Ended {
                schedule: schedule.clone(),
                outcome: Outcome::Cancelled,
                cause: None,
                output: None,
                no_room: false,
                ruling: Some(decision.clone()),
                tier: tier.map(|tier| tier.try_into().unwrap()),
                decision_context: None,
                refused: true,
                blocked_by: None,
                denied: None,
                refund: None,
                spent: None,
                released: None,
                at: at(number as i64),
            };
            let event = EventBody::Run(RunId::of(number as u128), Event::Ended(ended));
            DecisionEvent { at: at(number as i64), event }
        });
        let row = Row { version: 1, body: Some(body) };
        (events.collect(), vec![row; count])
    }

    fn replay(remaining: u64, (events, rows): (Vec<DecisionEvent>, Vec<Row>)) -> PolicyReplayed {
        let rules = Rules::baseline(Posture::Staging);
        let replay = Replay { remaining, ..Replay::new(rules, at(0)) };
        replay.replay(events, rows).unwrap().finish()
    }

    #[test]
    fn counts_all_differing_decisions_and_lists_the_first() {
        for (count, shown) in [(1_000, 1_000), (1_001, 1_000)] {
            let found = replay(DECISIONS_MAX, denied(count, Some(1)));
            assert_eq!(found.counts["deny_to_allow"], count as u64);
            assert_eq!((found.decisions, found.changed.len()), (count as u64, shown));
            assert_eq!(found.sentence.contains("the first 1000 are shown"), shown < count);
        }
    }

    #[test]
    fn replays_at_most_the_limit_and_says_where_to_continue() {
        let whole = replay(2, denied(2, Some(0)));
        assert_eq!((whole.decisions, whole.more_from), (2, None));
        let part = replay(2, denied(3, Some(0)));
        assert_eq!((part.decisions, part.changed.len()), (2, 2));
        assert_eq!(part.more_from.as_deref(), Some("2026-10-01T00:02:00Z"));
        assert!(part.sentence.ends_with("continue with `--since 2026-10-01T00:02:00Z`"));
    }

    #[test]
    fn replays_the_recorded_request_and_counts_decisions_without_one() {
        let outside = replay(9, denied(1, Some(2)));
        let changed = &outside.changed[0];
        assert_eq!((changed.would_be, &*changed.rule), (api::Verdict::Ask, "@tier-2"));
        let old = replay(9, denied(1, None));
        assert_eq!((old.decisions, old.untold, old.changed.len()), (1, 1, 0));
        let (events, _) = denied(1, Some(0));
        let gone = replay(9, (events, vec![Row::default()]));
        assert_eq!((gone.untold, gone.changed.len()), (1, 0));
    }

    #[test]
    fn since_is_a_duration_or_an_instant() {
        let day =
            |text: &str| trigger::parse_since(text, at(24 * 60)).map(rfc3339).map_err(|e| e.code);
        assert_eq!(day("1d").as_deref(), Ok("2026-10-01T00:00:00Z"));
        assert_eq!(day("2026-09-30T12:00:00+02:00").as_deref(), Ok("2026-09-30T10:00:00Z"));
        assert_eq!(day("2026-09-30 12:00"), Err(Code::InvalidInput));
        assert_eq!(day("ten"), Err(Code::InvalidInput));
    }
}
