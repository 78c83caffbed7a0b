//! Every golden sample has a line of the timeline: short, for people, without private text.

use std::collections::BTreeMap;

use kernel::EventBody;
use kernel::timeline::{DaemonState, Subject, line, line_after};

use crate::notice::{CANARY, bodies};

/// The longest sentence of a sample; the terminal breaks longer ones.
const TEXT_CHARS_MAX: usize = 110;

#[test]
fn every_event_has_a_sentence() {
    for (name, body) in bodies() {
        let text = line(&body, "uid:1000").text;
        assert!(text.contains(' ') || text == "heartbeat", "{name}: {text}");
        // People see the time of their own zone, without an offset.
        let shown = text.replace("+01:00", "");
        assert!(shown.chars().count() <= TEXT_CHARS_MAX, "{name}: {text}");
        assert!(!text.contains(['{', '}', '"', '[', '\n']), "{name}: {text}");
        assert!(!text.contains("  ") && text.trim() == text, "{name}: `{text}`");
        assert!(!text.ends_with(['.', ':']), "{name}: {text}");
        assert!(!text.contains(CANARY), "{name}: {text}");
    }
}

/// Sample, subject and sentence, caused by `uid:1000`.
const SENTENCES: &str = "\
agent.registered.1.command           agent: agent registered by uid:1000 (command, tier 1)
agent.tested.1.plain                 agent: agent tested by uid:1000
agent.answered.1.plain               agent: cost of the test recorded (bookkeeping)
approval.asked.1.plain               run: run waits for approval
approval.assented.1.plain            run: approved by uid:1000; more people must approve
approval.consumed.1.plain            run: approval used (bookkeeping)
approval.decided.1.approved          run: run approved by uid:1000
approval.decided.1.denied            run: run denied by uid:1000
approval.lapsed.1.changed            run: approval void: the plan of the run changed
approval.lapsed.1.expired            run: approval expired
approval.lapsed.1.revoked            run: approval revoked by uid:1000
authority.frozen.1.plain             : frozen by uid:1000: no run starts
authority.renewed.1.plain            : lease renewed by uid:1000
authority.warned.1.plain             : the lease expires soon: then every run needs approval
config.refused.1.plain               : reload of the configuration refused (policy_invalid)
config.reloaded.1.changed            : configuration reloaded by uid:1000 (lease.ask_after, policy.toml)
genesis.1.plain                      : installation created
ledger.rebuilt.1.plain               : tables rebuilt from the ledger (1 difference)
run.cancel_asked.1.plain             run: cancel requested by uid:1000
run.ended.1.budget                   run: run not started: a budget is used up
run.ended.1.cancelled                run: run cancelled
run.ended.1.denied                   run: run not allowed to start: denied
run.ended.1.done                     run: run done
run.ended.1.failed                   run: run failed: agent_missing
run.ended.1.lacking                  run: run not started: the lease has expired
run.ended.1.unknown                  run: run interrupted, outcome unknown
run.queued.1.after                   run: run queued after another run
run.queued.1.catch-up                run: run queued to catch up the slot of 2025-11-15T10:46:40+01:00
run.queued.1.manual                  run: run queued by uid:1000
run.queued.1.slot                    run: run queued
run.requeued.1.by-runner             run: retry requested by mcp:mia
run.retried.1.spent                  run: attempt failed: llm_api_error; another follows
run.settled.1.plain                  run: run settled as done by uid:1000
run.started.1.plain                  run: run started
schedule.added.1.daily               schedule: schedule added by uid:1000
schedule.backfill_begun.1.plain      schedule: backfill of 3 slots started by uid:1000
schedule.moved.1.finished            schedule: next slot set (bookkeeping)
schedule.paused.1.note               schedule: schedule paused, because its runs failed
schedule.paused.1.plain              schedule: schedule paused by uid:1000
seen.marked.1.plain                  : status seen by uid:1000 (bookkeeping)
slot.buffered.1.plain                schedule: slot of 2025-11-15T10:46:40+01:00 waits until an earlier run ends
slot.passed.1.overlap                schedule: no run for the slot of 2025-11-15T10:46:40+01:00: an earlier run was still live
slot.passed.1.window                 schedule: no run for 11 slots up to 2025-11-15T10:46:40+01:00: missed, and not caught up
token.created.1.plain                : token of ada created by uid:1000 (operator)
tool.alerted.1.plain                 tool: 15 of 20 calls failed in this hour
tool.called.1.refused                tool: tool called by uid:1000: denied
tz.changed.1.plain                   : time zone data changed to 2026a; 12 schedules moved
watch.clock_anomaly.1.plain          : the clock jumped ahead
watch.heartbeat.1.plain              : heartbeat (bookkeeping)
watch.refused.1.many                 : refused uid:1000 (token_invalid, and 41 before)
watch.started.1.plain                : daemon started (version 0.1.0, staging)
watch.stopped.1.plain                : daemon stopped (SIGTERM)";

#[test]
fn sentences_say_what_happened() {
    let bodies: BTreeMap<String, EventBody> = bodies().into_iter().collect();
    for row in SENTENCES.lines() {
        let (sample, expected) = row.split_once(' ').unwrap();
        let line = line(&bodies[&format!("{sample}.json")], "uid:1000");
        let subject = match line.subject {
            Subject::Schedule(_) => "schedule",
            Subject::Run(_) => "run",
            Subject::Agent(_) => "agent",
            Subject::Tool(_) => "tool",
            Subject::Installation => "",
        };
        let hidden = if line.is_bookkeeping { " (bookkeeping)" } else { "" };
        assert_eq!(format!("{subject}: {}{hidden}", line.text), expected.trim(), "{sample}");
    }
}

/// What the daemon's start is called after these samples.
fn start_after(samples: &[&str]) -> String {
    let bodies: BTreeMap<String, EventBody> = bodies().into_iter().collect();
    let body = |sample: &str| &bodies[&format!("{sample}.1.plain.json")];
    let fold = |state: DaemonState, sample: &&str| state.after(body(sample));
    let before = samples.iter().fold(DaemonState::Unknown, fold);
    line_after(before, body("watch.started"), "midwatch").text
}

#[test]
fn a_start_without_a_stop_before_it_follows_a_crash() {
    let crashed =
        "daemon started (version 0.1.0, staging); the last one was killed or crashed".to_owned();
    let started = "daemon started (version 0.1.0, staging)".to_owned();
    for (samples, expected) in [
        (&[][..], &started),
        (&["run.started"], &started),
        (&["genesis"], &started),
        (&["watch.started"], &crashed),
        (&["watch.heartbeat", "run.started"], &crashed),
        (&["watch.started", "watch.stopped"], &started),
        (&["watch.started", "watch.stopped", "run.cancel_asked"], &started),
        (&["watch.stopped", "watch.heartbeat"], &crashed),
        (&["watch.started", "ledger.rebuilt"], &started),
    ] {
        assert_eq!(&start_after(samples), expected, "{samples:?}");
    }
}
