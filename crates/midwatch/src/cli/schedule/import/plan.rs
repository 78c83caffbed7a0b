//! The plan of an import: the schedules to add, and the entries that cannot be imported. Pure. A plan
//! leaves no choice, so a dry run shows exactly what an import adds.

use std::collections::HashSet;
use std::fmt;

use api::{Action, Code, Error, ScheduleAdd, Terms, When};
use calendar::{NoNextSlot, Zone};
use kernel::Timestamp;
use kernel::schedule::PROMPT_BYTES_MAX;
use runtime::check_schedule;
use runtime::trigger::{ParsedWhen, parse};
use serde::Serialize;

use super::cron_command;
use super::crontab::{Job, Layout, Line, LineKind, SkipReason, parse_crontab};
use super::crontab_settings::Zones;
use super::names::Names;

/// The most schedules of one request, and so of an import.
pub(super) const SCHEDULES_MAX: usize = 1_000;
/// As many next times as the answer to `schedule add` has.
const NEXT_MAX: usize = 5;

#[derive(Debug)]
pub(super) struct Plan {
    pub schedules: Vec<Planned>,
    pub left_out: Vec<Skipped>,
}

#[derive(Debug)]
pub(super) struct Planned {
    pub position: SourcePosition,
    pub request: ScheduleAdd,
    pub describe: String,
    pub zone: Zone,
    pub next_us: Vec<i64>,
    pub warnings: Vec<String>,
    /// Whether to add it paused, because it was paused or disabled there.
    pub is_paused: bool,
    /// The agent's id on a Letta server.
    pub remote_id: Option<String>,
}

impl Planned {
    /// The agent, by its remote id if it has one, because two ids may make the same name.
    pub(super) fn agent_key(&self) -> Option<&str> {
        self.remote_id.as_deref().or(self.request.action.agent.as_deref())
    }
}

/// The position of an entry in the imported source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SourcePosition {
    Line(usize),
    /// The id of the entry.
    Entry(String),
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourcePosition::Line(line) => write!(out, "line {line}"),
            SourcePosition::Entry(entry) => write!(out, "entry {entry}"),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    #[serde(flatten)]
    pub position: SourcePosition,
    pub text: String,
    #[serde(flatten)]
    pub why: SkipReason,
}

/// What the plan of a crontab depends on.
#[derive(Debug)]
pub(super) struct CrontabContext<'a> {
    pub agent: &'a str,
    /// The user whose lines are imported, if the crontab has a user column.
    pub user: Option<&'a str>,
    pub now: Timestamp,
}

pub(super) fn plan(
    text: &str,
    zone: Option<String>,
    crontab: &CrontabContext<'_>,
) -> Result<Plan, Error> {
    let layout = crontab.user.map_or(Layout::User, |_| Layout::System);
    let mut plan = Plan { schedules: Vec::new(), left_out: Vec::new() };
    let (mut zones, mut names) = (Zones::new(zone), Names::default());
    let mut settings = HashSet::new();
    for Line { number, text, kind } in parse_crontab(text, layout) {
        let mut text = text.to_owned();
        let position = SourcePosition::Line(number);
        let outcome = match kind {
            LineKind::Setting { name, value } => match zones.take(name, value, crontab.agent) {
                Some(refusal) if settings.insert(name) => {
                    // The value may be a secret, and reports are passed on.
                    text = format!("{name}=…");
                    Err(refusal)
                }
                // Each setting is reported once.
                _ => continue,
            },
            LineKind::Invalid(refusal) => Err(refusal),
            LineKind::Job(job) => {
                // Skipped lines use up a name, too, so that the names of others do not depend on it.
                let name = names.name(job.comment, &cron_command::without_input(job.command));
                match prompt_of(&job, crontab) {
                    Ok(prompt) => {
                        let zone = zones.current().ok_or_else(no_zone)?;
                        let request = request(&job, name, prompt, zone, crontab.agent);
                        plan_schedule(position.clone(), request, crontab.now)
                    }
                    Err(refusal) => Err(refusal),
                }
            }
        };
        match outcome {
            Ok(_) if plan.schedules.len() == SCHEDULES_MAX => return Err(too_many()),
            Ok(planned) => plan.schedules.push(planned),
            Err(why) => plan.left_out.push(Skipped { position, text, why }),
        }
    }
    Ok(plan)
}

fn no_zone() -> Error {
    let what = "the crontab does not name its time zone, and there is no default";
    Error::new(Code::InvalidInput, what).hint(
        "name the zone that cron used, as in `--tz Europe/Berlin`, or put `CRON_TZ=Europe/Berlin` into \
         the file; `timedatectl` shows the zone of a machine",
    )
}

pub(super) fn too_many() -> Error {
    let what = format!("more than {SCHEDULES_MAX} schedules, the most that are imported at once");
    Error::new(Code::InvalidInput, what).hint("split them into several files")
}

/// The prompt of a job, unless it depends on more than time or belongs to another user.
fn prompt_of(job: &Job<'_>, crontab: &CrontabContext<'_>) -> Result<String, SkipReason> {
    if let (Some(user), Some(ours)) = (job.user, crontab.user)
        && user != ours
    {
        return Err(SkipReason::new(
            format!("it belongs to user `{user}`, not to `{ours}`"),
            format!("import it as `{user}`"),
        ));
    }
    if job.when.eq_ignore_ascii_case("@reboot") {
        return Err(SkipReason::new(
            "`@reboot` is not supported",
            "use a service of the system, such as a systemd unit",
        ));
    }
    let prompt = cron_command::to_shell(job.command)?;
    match prompt.len() <= PROMPT_BYTES_MAX {
        true => Ok(prompt),
        false => Err(SkipReason::new(
            "the command is longer than 64 KiB, the limit of a prompt",
            "put it into a script and run that",
        )),
    }
}

/// As with cron, a run has one attempt, and failures do not pause the schedule.
fn request(job: &Job<'_>, name: String, prompt: String, zone: &str, agent: &str) -> ScheduleAdd {
    let (agent, prompt) = (Some(agent.to_owned()), Some(prompt));
    ScheduleAdd {
        name,
        when: When { cron: Some(job.when.clone()), tz: Some(zone.to_owned()), ..When::default() },
        action: Action { agent, prompt, ..Action::default() },
        terms: Terms { attempts: Some(1), pause_after: Some(0), ..Terms::default() },
        ..ScheduleAdd::default()
    }
}

/// Plans a schedule, if it is valid and ever fires.
pub(super) fn plan_schedule(
    position: SourcePosition,
    request: ScheduleAdd,
    now: Timestamp,
) -> Result<Planned, SkipReason> {
    let ParsedWhen { calendar, warnings, .. } = parse(&request.when).map_err(skip_reason)?;
    if let Some(reason) = calendar.no_next_slot(now.as_micros()) {
        return Err(never_fires(reason));
    }
    check_schedule(&request, now).map_err(skip_reason)?;
    Ok(Planned {
        position,
        request,
        describe: calendar.describe(),
        zone: calendar.zone().clone(),
        next_us: calendar.slots_after(now.as_micros()).take(NEXT_MAX).collect(),
        warnings,
        is_paused: false,
        remote_id: None,
    })
}

/// The reason for a schedule that never fires, with a suggestion if there is one.
fn never_fires(reason: NoNextSlot) -> SkipReason {
    match reason {
        NoNextSlot::Never { suggestion: Some(cron) } => {
            let never = NoNextSlot::Never { suggestion: None };
            SkipReason::new(never.to_string(), format!("write `{cron}` if you mean that"))
        }
        NoNextSlot::Never { suggestion: None } | NoNextSlot::Ended { .. } => {
            let hint = "see when an expression fires with `midwatch schedule next --cron`";
            SkipReason::new(reason.to_string(), hint)
        }
    }
}

/// The error of the calendar, with the alternative for syntax that Midwatch does not have.
fn skip_reason(Error { message, hint, .. }: Error) -> SkipReason {
    let hint = hint.unwrap_or_default();
    let hint = match &message {
        random if random.contains('~') => {
            format!("{hint}; for a random delay use `midwatch schedule edit ID --jitter SPAN`")
        }
        every if every.contains("`@every`") => "use `midwatch schedule add --every 10m`".to_owned(),
        _ => hint,
    };
    SkipReason::new(message, hint)
}

#[cfg(test)]
mod tests {
    use calendar::parse_instant;

    use super::*;

    const NOW: &str = "2026-03-28T12:00:00Z";

    fn plan_text(text: &str, zone: Option<&str>, user: Option<&str>) -> Result<Plan, Error> {
        let now = Timestamp::from_micros(parse_instant(NOW, None).unwrap());
        plan(text, zone.map(str::to_owned), &CrontabContext { agent: "cron", user, now })
    }

    /// Checks the schedule of a line in UTC, or the reason and hint if it is skipped.
    fn check(line: &str, expected: Result<(&str, &str), (&str, &str)>) {
        let plan = plan_text(line, Some("UTC"), None).unwrap();
        let found = match (plan.schedules.as_slice(), plan.left_out.as_slice()) {
            ([it], []) => Ok((it.describe.as_str(), it.request.action.prompt.as_deref().unwrap())),
            ([], [it]) => Err((it.why.reason.as_str(), it.why.hint.as_str())),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn line_becomes_a_schedule_or_a_reason() {
        let long = format!("0 3 * * * {}", "x".repeat(PROMPT_BYTES_MAX));
        check(&long, Ok(("at 03:00 every day", &"x".repeat(PROMPT_BYTES_MAX))));
        for (line, expected) in [
            ("0 3 * * * backup", Ok(("at 03:00 every day", "backup"))),
            ("@weekly backup", Ok(("at 00:00 on Sunday", "backup"))),
            ("@every_minute poll", Ok(("every minute", "poll"))),
            (
                "0 9 * feb mon-fri date +\\%F",
                Ok(("at 09:00 on Monday to Friday in February", "date +%F")),
            ),
            (
                "@reboot start",
                Err((
                    "`@reboot` is not supported",
                    "use a service of the system, such as a systemd unit",
                )),
            ),
            (
                "@every 5m poll",
                Err((
                    "`@every` is an interval, not a cron expression",
                    "use `midwatch schedule add --every 10m`",
                )),
            ),
            (
                "0~59 3 * * * backup",
                Err((
                    "in the minute field, `0~59` is not valid",
                    "the minute field takes 0 to 59, as in `0,30`, `10-20` or `*/15`; \
                     for a random delay use `midwatch schedule edit ID --jitter SPAN`",
                )),
            ),
            (
                "0 22-2 * * * backup",
                Err(("in the hour field, `22-2` runs backwards", "write `22-23,0-2`")),
            ),
            (
                "0 0 31 2 * backup",
                Err((
                    "it never fires: no time from 1970 to 2199 matches",
                    "write `0 0 L FEB *` if you mean that",
                )),
            ),
            (
                &format!("{long}x"),
                Err((
                    "the command is longer than 64 KiB, the limit of a prompt",
                    "put it into a script and run that",
                )),
            ),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn plan_has_the_request_to_add() {
        let text = "# nightly\n0 3 */2 * MON backup";
        let plan = plan_text(text, Some("Europe/Berlin"), None).unwrap();
        let planned = &plan.schedules[0];
        let found = serde_json::to_value(&planned.request).unwrap();
        let expected = serde_json::json!({
            "name": "nightly",
            "when": {"cron": "0 3 */2 * MON", "tz": "Europe/Berlin"},
            "action": {"agent": "cron", "prompt": "backup"},
            "tier": null,
            "terms": {"attempts": 1, "pause_after": 0},
        });
        assert_eq!((found, &planned.position), (expected, &SourcePosition::Line(2)));
        assert_eq!((planned.next_us.len(), planned.warnings.len()), (NEXT_MAX, 1));
    }

    #[test]
    fn each_line_has_the_zone_named_above_it() {
        let text = "0 1 * * * a\nCRON_TZ=Asia/Kolkata\n0 1 * * * b\nCRON_TZ=Mars\n0 1 * * * c";
        let plan = plan_text(text, Some("UTC"), None).unwrap();
        let zones: Vec<_> =
            plan.schedules.iter().map(|it| (it.position.to_string(), it.zone.name())).collect();
        let expected = [("line 1".to_owned(), "UTC"), ("line 3".to_owned(), "Asia/Kolkata")];
        assert_eq!(zones, expected);
        assert_eq!(plan.left_out[0].why.reason, "unknown time zone `Mars`");
    }

    #[test]
    fn zone_is_required_if_a_line_needs_one() {
        let error = plan_text("0 3 * * * backup", None, None).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        assert!(error.hint.unwrap().contains("`--tz Europe/Berlin`"));
        assert_eq!(plan_text("@reboot start\nhello", None, None).unwrap().left_out.len(), 2);
    }

    #[test]
    fn each_setting_is_reported_once() {
        let text = "PATH=/a\nMAILTO=x\nPATH=/b\nCRON_TZ=UTC\n0 3 * * * a";
        let plan = plan_text(text, None, None).unwrap();
        let lines: Vec<_> =
            plan.left_out.iter().map(|it| (it.position.to_string(), it.text.as_str())).collect();
        assert_eq!(lines, [("line 1".to_owned(), "PATH=…"), ("line 2".to_owned(), "MAILTO=…")]);
    }

    #[test]
    fn lines_of_other_users_are_skipped() {
        let text = "0 3 * * * ada backup\n0 3 * * * root backup";
        let plan = plan_text(text, Some("UTC"), Some("ada")).unwrap();
        assert_eq!(plan.schedules[0].request.name, "backup");
        let why = "it belongs to user `root`, not to `ada`";
        assert_eq!(plan.left_out[0].why.reason, why);
    }

    #[test]
    fn plan_is_limited_to_one_request() {
        let most = "0 3 * * * backup\n".repeat(SCHEDULES_MAX);
        assert_eq!(plan_text(&most, Some("UTC"), None).unwrap().schedules.len(), SCHEDULES_MAX);
        let more = format!("{most}@daily one");
        let error = plan_text(&more, Some("UTC"), None).unwrap_err();
        let what = "more than 1000 schedules, the most that are imported at once";
        assert_eq!((error.code, error.message.as_str()), (Code::InvalidInput, what));
    }
}
