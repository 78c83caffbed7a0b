//! What an import would do: the schedules that a crontab means, and what cannot be carried over.
//! Pure. A plan leaves no choice, so a dry run shows exactly what a real one adds.

use std::collections::HashSet;
use std::fmt;

use api::{Action, Code, Error, ScheduleAdd, Terms, When};
use calendar::{Silence, Zone};
use kernel::Timestamp;
use kernel::schedule::PROMPT_BYTES_MAX;
use runtime::check_schedule;
use runtime::when::{Meant, meant};
use serde::Serialize;

use super::command;
use super::crontab::{Job, Layout, Line, Refusal, Said, parse};
use super::names::Names;
use super::settings::Zones;

/// All are added at once, and that is how many one request takes.
pub(super) const SCHEDULES_MAX: usize = 1_000;
/// As many as an answer has for a schedule that was added.
const NEXT_MAX: usize = 5;

#[derive(Debug)]
pub(super) struct Plan {
    pub schedules: Vec<Planned>,
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug)]
pub(super) struct Planned {
    pub place: Place,
    pub request: ScheduleAdd,
    pub describe: String,
    pub zone: Zone,
    pub next_us: Vec<i64>,
    pub warnings: Vec<String>,
    /// It did not fire there, and shall not here until somebody resumes it.
    pub is_paused: bool,
    /// The agent's id at a server of Letta, if it is one of those.
    pub remote_id: Option<String>,
}

impl Planned {
    /// The agent that is meant: by its id if it has one, as two ids may make one name.
    pub(super) fn agent(&self) -> Option<&str> {
        self.remote_id.as_deref().or(self.request.action.agent.as_deref())
    }
}

/// Where it stands in what is imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Place {
    Line(usize),
    /// By its id there.
    Entry(String),
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(out, "line {line}"),
            Place::Entry(entry) => write!(out, "entry {entry}"),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct LeftOut {
    #[serde(flatten)]
    pub place: Place,
    pub text: String,
    #[serde(flatten)]
    pub why: Refusal,
}

/// What lines are read with.
#[derive(Debug)]
pub(super) struct Terrain<'a> {
    pub agent: &'a str,
    /// The user whose lines are carried over, if lines have a column for that.
    pub user: Option<&'a str>,
    pub now: Timestamp,
}

pub(super) fn plan(text: &str, zone: Option<String>, terrain: &Terrain<'_>) -> Result<Plan, Error> {
    let layout = terrain.user.map_or(Layout::User, |_| Layout::System);
    let mut plan = Plan { schedules: Vec::new(), left_out: Vec::new() };
    let (mut zones, mut names) = (Zones::new(zone), Names::default());
    let mut settings = HashSet::new();
    for Line { number, text, said } in parse(text, layout) {
        let mut text = text.to_owned();
        let place = Place::Line(number);
        let outcome = match said {
            Said::Setting { name, value } => match zones.take(name, value, terrain.agent) {
                Some(refusal) if settings.insert(name) => {
                    // It may be a secret, and reports are passed on.
                    text = format!("{name}=…");
                    Err(refusal)
                }
                // It is said once, and that is the same for whatever value.
                _ => continue,
            },
            Said::Wrong(refusal) => Err(refusal),
            Said::Job(job) => {
                // Whether it is carried over or not, so that the others' names do not depend on it.
                let name = names.name(job.comment, &command::alone(job.command));
                match possible(&job, terrain) {
                    Ok(prompt) => {
                        let zone = zones.current().ok_or_else(no_zone)?;
                        let request = request(&job, name, prompt, zone, terrain.agent);
                        planned(place.clone(), request, terrain.now)
                    }
                    Err(refusal) => Err(refusal),
                }
            }
        };
        match outcome {
            Ok(_) if plan.schedules.len() == SCHEDULES_MAX => return Err(too_many()),
            Ok(planned) => plan.schedules.push(planned),
            Err(why) => plan.left_out.push(LeftOut { place, text, why }),
        }
    }
    Ok(plan)
}

fn no_zone() -> Error {
    let what = "the crontab does not name its time zone, and there is no default";
    Error::new(Code::InvalidInput, what).hint(
        "name the zone that cron used, as in `--tz Europe/Berlin`; `timedatectl` shows that of a \
         machine, and `CRON_TZ=Europe/Berlin` in the file counts as well",
    )
}

pub(super) fn too_many() -> Error {
    let what = format!("at most {SCHEDULES_MAX} schedules are imported at once, these are more");
    Error::new(Code::InvalidInput, what).hint("give them in several files")
}

/// The prompt of a job that is a matter of the time, and of this user.
fn possible(job: &Job<'_>, terrain: &Terrain<'_>) -> Result<String, Refusal> {
    if let (Some(user), Some(ours)) = (job.user, terrain.user)
        && user != ours
    {
        return Err(Refusal::new(
            format!("it is a line of user `{user}`, and this is a watch of `{ours}`"),
            format!("import it as `{user}`, into a watch of that user"),
        ));
    }
    if job.when.eq_ignore_ascii_case("@reboot") {
        return Err(Refusal::new(
            "`@reboot` is not a time, and nothing here happens when the machine starts",
            "let a service of the system start it, such as a systemd unit",
        ));
    }
    let prompt = command::prompt(job.command)?;
    match prompt.len() <= PROMPT_BYTES_MAX {
        true => Ok(prompt),
        false => Err(Refusal::new(
            "the command is longer than the 64 KiB of a prompt",
            "put it into a script, and let the line start that",
        )),
    }
}

/// Cron starts a line once, and again at its next time however it ended; so does the schedule.
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

/// The schedule of a request, if it ever fires.
pub(super) fn planned(
    place: Place,
    request: ScheduleAdd,
    now: Timestamp,
) -> Result<Planned, Refusal> {
    let Meant { calendar, warnings, .. } = meant(&request.when).map_err(refused)?;
    if let Some(silence) = calendar.silence_after(now.as_micros()) {
        return Err(silent(silence));
    }
    check_schedule(&request, now).map_err(refused)?;
    Ok(Planned {
        place,
        request,
        describe: calendar.describe(),
        zone: calendar.zone().clone(),
        next_us: calendar.slots_after(now.as_micros()).take(NEXT_MAX).collect(),
        warnings,
        is_paused: false,
        remote_id: None,
    })
}

/// What was meant is known for most that never fires.
fn silent(silence: Silence) -> Refusal {
    match silence {
        Silence::Never { instead: Some(cron) } => {
            let never = Silence::Never { instead: None };
            Refusal::new(never.to_string(), format!("write `{cron}` if you mean that"))
        }
        Silence::Never { instead: None } | Silence::Ended { .. } => {
            let hint = "`midwatch schedule next --cron` shows when an expression fires";
            Refusal::new(silence.to_string(), hint)
        }
    }
}

/// What the calendar says, and what else there is for what it does not know.
fn refused(Error { message, hint, .. }: Error) -> Refusal {
    let hint = hint.unwrap_or_default();
    let hint = match &message {
        random if random.contains('~') => {
            format!("{hint}; `midwatch schedule edit ID --jitter SPAN` delays at random")
        }
        every if every.contains("`@every`") => {
            "`midwatch schedule add --every 10m` makes such a schedule".to_owned()
        }
        _ => hint,
    };
    Refusal::new(message, hint)
}

#[cfg(test)]
mod tests {
    use calendar::parse_instant;

    use super::*;

    const NOW: &str = "2026-03-28T12:00:00Z";

    fn planned_from(text: &str, zone: Option<&str>, user: Option<&str>) -> Result<Plan, Error> {
        let now = Timestamp::from_micros(parse_instant(NOW, None).unwrap());
        plan(text, zone.map(str::to_owned), &Terrain { agent: "cron", user, now })
    }

    /// What becomes of a line in UTC: the schedule, or why there is none.
    fn check(line: &str, expected: Result<(&str, &str), (&str, &str)>) {
        let plan = planned_from(line, Some("UTC"), None).unwrap();
        let found = match (plan.schedules.as_slice(), plan.left_out.as_slice()) {
            ([it], []) => Ok((it.describe.as_str(), it.request.action.prompt.as_deref().unwrap())),
            ([], [it]) => Err((it.why.reason.as_str(), it.why.hint.as_str())),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn a_line_is_a_schedule_or_says_why_not() {
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
                    "`@reboot` is not a time, and nothing here happens when the machine starts",
                    "let a service of the system start it, such as a systemd unit",
                )),
            ),
            (
                "@every 5m poll",
                Err((
                    "`@every` is an interval trigger and not cron",
                    "`midwatch schedule add --every 10m` makes such a schedule",
                )),
            ),
            (
                "0~59 3 * * * backup",
                Err((
                    "in the minute field, `0~59` is not understood",
                    "the minute field takes 0 to 59, as in `0,30`, `10-20` or `*/15`; \
                     `midwatch schedule edit ID --jitter SPAN` delays at random",
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
                    "the command is longer than the 64 KiB of a prompt",
                    "put it into a script, and let the line start that",
                )),
            ),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn a_plan_is_what_is_asked_of_the_watch() {
        let text = "# nightly\n0 3 */2 * MON backup";
        let plan = planned_from(text, Some("Europe/Berlin"), None).unwrap();
        let planned = &plan.schedules[0];
        let found = serde_json::to_value(&planned.request).unwrap();
        let expected = serde_json::json!({
            "name": "nightly",
            "when": {"cron": "0 3 */2 * MON", "tz": "Europe/Berlin"},
            "action": {"agent": "cron", "prompt": "backup"},
            "tier": null,
            "terms": {"attempts": 1, "pause_after": 0},
        });
        assert_eq!((found, &planned.place), (expected, &Place::Line(2)));
        assert_eq!((planned.next_us.len(), planned.warnings.len()), (NEXT_MAX, 1));
    }

    #[test]
    fn each_line_has_the_zone_that_holds_there() {
        let text = "0 1 * * * a\nCRON_TZ=Asia/Kolkata\n0 1 * * * b\nCRON_TZ=Mars\n0 1 * * * c";
        let plan = planned_from(text, Some("UTC"), None).unwrap();
        let zones: Vec<_> =
            plan.schedules.iter().map(|it| (it.place.to_string(), it.zone.name())).collect();
        let expected = [("line 1".to_owned(), "UTC"), ("line 3".to_owned(), "Asia/Kolkata")];
        assert_eq!(zones, expected);
        assert_eq!(plan.left_out[0].why.reason, "there is no time zone `Mars`");
    }

    #[test]
    fn without_a_zone_there_is_no_plan_unless_no_line_needs_one() {
        let error = planned_from("0 3 * * * backup", None, None).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        assert!(error.hint.unwrap().contains("`--tz Europe/Berlin`"));
        assert_eq!(planned_from("@reboot start\nhello", None, None).unwrap().left_out.len(), 2);
    }

    #[test]
    fn settings_are_told_once_each() {
        let text = "PATH=/a\nMAILTO=x\nPATH=/b\nCRON_TZ=UTC\n0 3 * * * a";
        let plan = planned_from(text, None, None).unwrap();
        let lines: Vec<_> =
            plan.left_out.iter().map(|it| (it.place.to_string(), it.text.as_str())).collect();
        assert_eq!(lines, [("line 1".to_owned(), "PATH=…"), ("line 2".to_owned(), "MAILTO=…")]);
    }

    #[test]
    fn lines_of_other_users_are_left_to_them() {
        let text = "0 3 * * * ada backup\n0 3 * * * root backup";
        let plan = planned_from(text, Some("UTC"), Some("ada")).unwrap();
        assert_eq!(plan.schedules[0].request.name, "backup");
        let why = "it is a line of user `root`, and this is a watch of `ada`";
        assert_eq!(plan.left_out[0].why.reason, why);
    }

    #[test]
    fn a_plan_has_as_many_schedules_as_are_added_at_once() {
        let most = "0 3 * * * backup\n".repeat(SCHEDULES_MAX);
        assert_eq!(planned_from(&most, Some("UTC"), None).unwrap().schedules.len(), SCHEDULES_MAX);
        let more = format!("{most}@daily one");
        let error = planned_from(&more, Some("UTC"), None).unwrap_err();
        let what = "at most 1000 schedules are imported at once, these are more";
        assert_eq!((error.code, error.message.as_str()), (Code::InvalidInput, what));
    }
}
