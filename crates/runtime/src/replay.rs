//! Decisions of the past, made again by the rules in force or by others: which would be others.
//!
//! It reads the log and changes nothing. What was asked then is taken from the log, also how far it
//! reached, what its agent stood on and how far the lease had run out; neither the agent nor the schedule
//! needs to be there any more.

use api::{ChangedDecision, Code, Error, PolicyReplay, PolicyReplayed, ProgressSink};
use kernel::ruling::{Posture, Request, Ruling};
use kernel::run::{facts, judged, requested, ruled};
use kernel::{Body, Noun, State, Timestamp};
use policy::Rules;
use store::{Page, Row};
use tokio::task::spawn_blocking;

use crate::errors::{self, internal};
use crate::orders::{self, POLICY_FILE};
use crate::stored;
use crate::times::rfc3339;
use crate::watch::Engine;
use crate::when;

/// Decisions that one request looks at.
const DECISIONS_MAX: u64 = 100_000;
/// Those among them that it shows; all are counted.
const CHANGED_ITEMS_MAX: usize = 1_000;
/// Entries read at once: few, because others wait for the same readers.
const PAGE_ENTRIES: usize = 1_024;
/// The kinds of events that can tell of a decision.
const KINDS: [&str; 3] = ["approval.asked", "run.started", "run.ended"];

/// An event that tells of a decision, and when it was recorded.
#[derive(Debug)]
struct Told {
    at: Timestamp,
    body: Body,
}

/// What was found so far.
#[derive(Debug)]
struct Replay {
    rules: Rules,
    /// Decisions that may still be looked at.
    room: u64,
    found: PolicyReplayed,
}

impl Engine {
    pub(crate) async fn policy_replay(
        &self,
        asked: PolicyReplay,
        progress: &ProgressSink,
    ) -> Result<PolicyReplayed, Error> {
        let since = since(&asked.since, self.now())?;
        let mut replay = Replay::new(self.rules_to_try(asked).await?, since);
        let end = self.store().head().await.map_err(errors::store)?.size();
        let first = self.entries_before(since, end).await?;
        let mut last = first;
        while last < end && replay.found.more_from.is_none() {
            let page = self.store().entries(last, PAGE_ENTRIES).await.map_err(errors::store)?;
            let Some(seq) = page.last_seq() else { break };
            last = seq;
            let told = spawn_blocking(move || told(&page)).await.map_err(internal)??;
            let runs = self.runs_of(&told).await?;
            let done = spawn_blocking(move || replay.go_on(told, runs));
            replay = done.await.map_err(internal)??;
            progress.show(last - first, end.max(last) - first);
        }
        Ok(replay.finish())
    }

    /// The rules in force, with what was asked for in the place of theirs.
    async fn rules_to_try(&self, asked: PolicyReplay) -> Result<Rules, Error> {
        let PolicyReplay { since: _, rules, posture } = asked;
        if rules.is_none() && posture.is_none() {
            return Ok(self.in_force().rules.clone());
        }
        let invalid = |error| Error::new(Code::InvalidInput, error);
        let posture = posture.map(|word| word.parse::<Posture>()).transpose().map_err(invalid)?;
        let posture = posture.unwrap_or(self.posture());
        let own = match rules {
            Some(text) => vec![(POLICY_FILE.to_owned(), text)],
            None => self.in_force().policy.clone(),
        };
        let data = self.settings().data.clone();
        spawn_blocking(move || orders::rules(posture, &own, &data)).await.map_err(internal)?
    }

    /// How many of the first entries were recorded before an instant. Times in the log never go back.
    async fn entries_before(&self, at: Timestamp, end: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let page = self.store().entries(middle, 1).await.map_err(errors::store)?;
            match page.iter().next() {
                Some(fields) if fields.ts_us < at.as_micros() => low = middle + 1,
                Some(_) | None => high = middle,
            }
        }
        Ok(low)
    }

    /// The row of the run of each; past what is remembered, which is for what goes on now.
    async fn runs_of(&self, told: &[Told]) -> Result<Vec<Row>, Error> {
        let runs = told.iter().filter_map(|told| ruled(&told.body));
        let ids: Vec<&str> = runs.map(|(run, _)| run.as_str()).collect();
        match ids.is_empty() {
            true => Ok(Vec::new()),
            false => self.store().load_all(Noun::Run.name(), &ids).await.map_err(errors::store),
        }
    }
}

/// An instant, or so long before now.
fn since(text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    let micros = match text.contains(['-', ':']) {
        true => when::instant(text, None)?,
        false => {
            let span_us = when::span(text)?.as_millis().saturating_mul(1_000);
            now.as_micros().saturating_sub(span_us)
        }
    };
    Ok(Timestamp::from_micros(micros))
}

/// The events of a page that tell of a decision.
fn told(page: &Page) -> Result<Vec<Told>, Error> {
    let mut told = Vec::new();
    for fields in page.iter().filter(|fields| KINDS.contains(&fields.kind)) {
        let body = stored::body(&fields)?;
        if ruled(&body).is_some() {
            told.push(Told { at: Timestamp::from_micros(fields.ts_us), body });
        }
    }
    Ok(told)
}

impl Replay {
    fn new(rules: Rules, since: Timestamp) -> Replay {
        let found = PolicyReplayed {
            since: rfc3339(since),
            posture: rules.posture().name().to_owned(),
            policy: rules.version().to_owned(),
            ..PolicyReplayed::default()
        };
        Replay { rules, room: DECISIONS_MAX, found }
    }

    /// Makes the decisions again, each with the row of its run.
    fn go_on(mut self, told: Vec<Told>, runs: Vec<Row>) -> Result<Replay, Error> {
        for (told, run) in told.iter().zip(runs) {
            if self.room == 0 {
                self.found.more_from = Some(rfc3339(told.at));
                break;
            }
            self.room -= 1;
            self.found.decisions += 1;
            let run = stored::row(Noun::Run, run)?.state.and_then(State::run);
            match run.and_then(|run| requested(&told.body, &run)) {
                Some(request) => self.compare(told, &request),
                None => self.found.untold += 1,
            }
        }
        Ok(self)
    }

    fn compare(&mut self, told: &Told, request: &Request) {
        let Some((run, was)) = ruled(&told.body) else { return };
        let lease = facts(&told.body).map(|facts| facts.lease).unwrap_or_default();
        let now = judged(request, lease, |request| self.rules.decide(request));
        if was.verdict == now.verdict {
            return;
        }
        let [was, would_be] = [was, &now].map(|ruling: &Ruling| ruling.verdict.name());
        *self.found.counts.entry(format!("{was}_to_{would_be}")).or_default() += 1;
        if self.found.changed.len() < CHANGED_ITEMS_MAX {
            self.found.changed.push(ChangedDecision {
                run_id: run.to_string(),
                at: rfc3339(told.at),
                agent: request.agent.as_ref().map(ToString::to_string),
                was: was.to_owned(),
                would_be: would_be.to_owned(),
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
        0 => format!("none of {decisions} decisions since {since} would be another"),
        1 => format!("1 of {decisions} decisions since {since} would be another"),
        _ => format!("{changed} of {decisions} decisions since {since} would be others"),
    };
    if (CHANGED_ITEMS_MAX as u64) < changed {
        text.push_str(&format!("; the first {CHANGED_ITEMS_MAX} are shown"));
    }
    if 0 < *untold {
        text.push_str(&format!("; of {untold} the log does not tell what was asked"));
    }
    if let Some(from) = &found.more_from {
        text.push_str(&format!(
            "; there are more than one request looks at: go on with `--since {from}`"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use kernel::RunId;
    use kernel::ruling::{Approvers, Verdict};
    use kernel::run::{Ended, Event, Occurrence, Outcome, Queued};

    use super::*;

    const MINUTE_US: i64 = 60_000_000;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_micros(1_790_812_800_000_000 + minutes * MINUTE_US)
    }

    /// Runs of `ada` that were denied, one each minute, and their rows.
    fn denied(count: usize, tier: Option<u8>) -> (Vec<Told>, Vec<Row>) {
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
        let body = stored::state_bytes(&State::Run(run)).unwrap();
        let ruling = Ruling {
            verdict: Verdict::Deny,
            rules: vec!["policy.toml/never".to_owned()],
            posture: Posture::Staging,
            policy: "0123".to_owned(),
            approvers: Approvers::default(),
        };
        let told = (0..count).map(|number| {
            let ended = Ended {
                schedule: schedule.clone(),
                outcome: Outcome::Cancelled,
                cause: None,
                output: None,
                no_room: false,
                ruling: Some(ruling.clone()),
                tier: tier.map(|tier| tier.try_into().unwrap()),
                circumstances: None,
                refused: true,
                lacking: None,
                denied: None,
                refund: None,
                spent: None,
                frees: None,
                at: at(number as i64),
            };
            let body = Body::Run(RunId::of(number as u128), Event::Ended(ended));
            Told { at: at(number as i64), body }
        });
        let row = Row { version: 1, body: Some(body) };
        (told.collect(), vec![row; count])
    }

    fn replay(room: u64, (told, rows): (Vec<Told>, Vec<Row>)) -> PolicyReplayed {
        let rules = Rules::baseline(Posture::Staging);
        let replay = Replay { room, ..Replay::new(rules, at(0)) };
        replay.go_on(told, rows).unwrap().finish()
    }

    #[test]
    fn all_are_counted_and_the_first_are_shown() {
        for (count, shown) in [(1_000, 1_000), (1_001, 1_000)] {
            let found = replay(DECISIONS_MAX, denied(count, Some(1)));
            assert_eq!(found.counts["deny_to_allow"], count as u64);
            assert_eq!((found.decisions, found.changed.len()), (count as u64, shown));
            assert_eq!(found.sentence.contains("the first 1000 are shown"), shown < count);
        }
    }

    #[test]
    fn no_more_is_looked_at_than_the_limit() {
        let whole = replay(2, denied(2, Some(0)));
        assert_eq!((whole.decisions, whole.more_from), (2, None));
        let part = replay(2, denied(3, Some(0)));
        assert_eq!((part.decisions, part.changed.len()), (2, 2));
        assert_eq!(part.more_from.as_deref(), Some("2026-10-01T00:02:00Z"));
        assert!(part.sentence.ends_with("go on with `--since 2026-10-01T00:02:00Z`"));
    }

    #[test]
    fn what_was_asked_decides_and_where_it_is_not_told_nothing_is_said() {
        let outside = replay(9, denied(1, Some(2)));
        let changed = &outside.changed[0];
        assert_eq!((&*changed.would_be, &*changed.rule), ("ask", "@tier-2"));
        let old = replay(9, denied(1, None));
        assert_eq!((old.decisions, old.untold, old.changed.len()), (1, 1, 0));
        let (told, _) = denied(1, Some(0));
        let gone = replay(9, (told, vec![Row::default()]));
        assert_eq!((gone.untold, gone.changed.len()), (1, 0));
    }

    #[test]
    fn since_is_a_span_or_an_instant() {
        let day = |text: &str| since(text, at(24 * 60)).map(rfc3339).map_err(|e| e.code);
        assert_eq!(day("1d").as_deref(), Ok("2026-10-01T00:00:00Z"));
        assert_eq!(day("2026-09-30T12:00:00+02:00").as_deref(), Ok("2026-09-30T10:00:00Z"));
        assert_eq!(day("2026-09-30 12:00"), Err(Code::InvalidInput));
        assert_eq!(day("ten"), Err(Code::InvalidInput));
    }
}
