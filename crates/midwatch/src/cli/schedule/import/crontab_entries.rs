//! The lines of crontabs as entries of an import. Pure.

use std::collections::HashSet;

use api::{Action, Code, Error, ScheduleAdd, Terms, When};
use compat::import::{Entry, LeftOut, NewSchedule, Position, Users};
use kernel::schedule::PROMPT_BYTES_MAX;

use super::AGENT_HINT;
use super::cron_command;
use super::crontab::{Job, Layout, Line, LineKind, parse_crontab};
use super::crontab_settings::Zones;
use super::names::Names;

/// A crontab and what is known about it from where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Crontab {
    /// Absent if it is the only one.
    pub file: Option<String>,
    pub text: String,
    pub layout: Layout,
}

/// What the entries depend on, besides the crontabs.
#[derive(Debug)]
pub(super) struct CrontabContext<'a> {
    pub agent: &'a str,
    /// `--tz`
    pub zone: Option<&'a str>,
    pub users: Users<'a>,
}

/// The entries of all crontabs, in order.
pub(super) fn entries(
    crontabs: &[Crontab],
    context: &CrontabContext<'_>,
) -> Result<Vec<Entry>, Error> {
    let mut names = Names::default();
    let mut entries = Vec::new();
    for crontab in crontabs {
        entries.extend(entries_of(crontab, context, &mut names)?);
    }
    Ok(entries)
}

fn entries_of(
    crontab: &Crontab,
    context: &CrontabContext<'_>,
    names: &mut Names,
) -> Result<Vec<Entry>, Error> {
    let mut zones = Zones::new(context.zone.map(str::to_owned));
    let (mut entries, mut settings) = (Vec::new(), HashSet::new());
    for Line { number, text, kind } in parse_crontab(&crontab.text, crontab.layout) {
        let mut text = text.to_owned();
        let outcome = match kind {
            LineKind::Setting { name, value } => match zones.take(name, value, context.agent) {
                Some(left_out) if settings.insert(name) => {
                    // The value may be a secret, and reports are passed on.
                    text = format!("{name}=…");
                    Err(left_out)
                }
                // Each setting is reported once.
                _ => continue,
            },
            LineKind::Invalid(left_out) => Err(left_out),
            LineKind::Job(job) => {
                // Lines that are left out use up a name, too, so that the names of others do not depend on it.
                let name = names.name(job.comment, &cron_command::without_input(job.command));
                match prompt_of(&job, context) {
                    Ok(prompt) => {
                        let zone = zones.current().ok_or_else(no_zone)?;
                        Ok(new_schedule(&job, name, prompt, zone, context.agent))
                    }
                    Err(left_out) => Err(left_out),
                }
            }
        };
        let position = Position::Line { file: crontab.file.clone(), line: number };
        entries.push(Entry { position, text, outcome });
    }
    Ok(entries)
}

fn no_zone() -> Error {
    let what = "the crontab does not name its time zone, and there is no default";
    Error::new(Code::InvalidInput, what).hint(
        "name the zone that cron used, as in `--tz Europe/Berlin`, or put `CRON_TZ=Europe/Berlin` into \
         the file; `timedatectl` shows the zone of a machine",
    )
}

/// The prompt of a job, unless it depends on more than time or runs as another user.
fn prompt_of(job: &Job<'_>, context: &CrontabContext<'_>) -> Result<String, LeftOut> {
    context.users.check(job.user)?;
    if job.when.eq_ignore_ascii_case("@reboot") {
        return Err(LeftOut::new(
            "`@reboot` is not supported",
            "use a service of the system, such as a systemd unit",
        ));
    }
    let prompt = cron_command::to_shell(job.command)?;
    match prompt.len() <= PROMPT_BYTES_MAX {
        true => Ok(prompt),
        false => Err(LeftOut::new(
            "the command is longer than 64 KiB, the limit of a prompt",
            "put it into a script and run that",
        )),
    }
}

/// As with cron, a run has one attempt, and failures do not pause the schedule.
fn new_schedule(
    job: &Job<'_>,
    name: String,
    prompt: String,
    zone: &str,
    agent: &str,
) -> NewSchedule {
    let (action_agent, prompt) = (Some(agent.to_owned()), Some(prompt));
    let request = ScheduleAdd {
        name,
        when: When { cron: Some(job.when.clone()), tz: Some(zone.to_owned()), ..When::default() },
        action: Action { agent: action_agent, prompt, ..Action::default() },
        terms: Terms { attempts: Some(1), pause_after: Some(0), ..Terms::default() },
        ..ScheduleAdd::default()
    };
    NewSchedule::new(request, shell_agent_hint(agent))
}

/// How to register an agent that is a shell.
pub(super) fn shell_agent_hint(agent: &str) -> String {
    AGENT_HINT.replace("{agent}", agent)
}

#[cfg(test)]
mod tests {
    use calendar::parse_instant;
    use kernel::Timestamp;

    use super::super::plan::{PlannedEntry, SCHEDULES_MAX, plan};
    use super::*;

    const NOW: &str = "2026-03-28T12:00:00Z";

    fn now() -> Timestamp {
        Timestamp::from_micros(parse_instant(NOW, None).unwrap())
    }

    fn plan_text(text: &str, zone: Option<&str>) -> Result<Vec<PlannedEntry>, Error> {
        let users = Users { own: "ada", named: None, has_agent: false };
        plan_as(text, zone, Layout::User, users)
    }

    fn plan_as(
        text: &str,
        zone: Option<&str>,
        layout: Layout,
        users: Users<'_>,
    ) -> Result<Vec<PlannedEntry>, Error> {
        let crontab = Crontab { file: None, text: text.to_owned(), layout };
        plan(entries(&[crontab], &CrontabContext { agent: "cron", zone, users })?, now())
    }

    /// Checks the schedule of a line in UTC, or the reason and hint if it is left out.
    fn check(line: &str, expected: Result<(&str, &str), (&str, &str)>) {
        let entries = plan_text(line, Some("UTC")).unwrap();
        let [PlannedEntry { outcome, .. }] = entries.as_slice() else { panic!("{entries:?}") };
        let found = match outcome {
            Ok(it) => {
                let prompt = it.schedule.request.action.prompt.as_deref();
                Ok((it.describe.as_str(), prompt.unwrap()))
            }
            Err(it) => Err((it.reason.as_str(), it.hint.as_str())),
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
    fn line_has_the_request_to_add() {
        let text = "# nightly\n0 3 */2 * MON backup";
        let entries = plan_text(text, Some("Europe/Berlin")).unwrap();
        let planned = entries[0].outcome.as_ref().unwrap();
        let found = serde_json::to_value(&planned.schedule.request).unwrap();
        let expected = serde_json::json!({
            "name": "nightly",
            "when": {"cron": "0 3 */2 * MON", "tz": "Europe/Berlin"},
            "action": {"agent": "cron", "prompt": "backup"},
            "tier": null,
            "terms": {"attempts": 1, "pause_after": 0},
        });
        assert_eq!((found, entries[0].position.to_string()), (expected, "line 2".to_owned()));
        assert_eq!((planned.next_us.len(), planned.schedule.warnings.len()), (5, 1));
    }

    #[test]
    fn each_line_has_the_zone_named_above_it() {
        let text = "0 1 * * * a\nCRON_TZ=Asia/Kolkata\n0 1 * * * b\nCRON_TZ=Mars\n0 1 * * * c";
        let entries = plan_text(text, Some("UTC")).unwrap();
        let zones: Vec<_> = entries
            .iter()
            .map(|it| match &it.outcome {
                Ok(planned) => format!("{}: {}", it.position, planned.zone.name()),
                Err(left_out) => format!("{}: {}", it.position, left_out.reason),
            })
            .collect();
        let expected = ["line 1: UTC", "line 3: Asia/Kolkata", "line 5: unknown time zone `Mars`"];
        assert_eq!(zones, expected);
    }

    #[test]
    fn zone_is_required_if_a_line_needs_one() {
        let error = plan_text("0 3 * * * backup", None).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput);
        assert!(error.hint.unwrap().contains("`--tz Europe/Berlin`"));
        let entries = plan_text("@reboot start\nhello", None).unwrap();
        assert!(entries.len() == 2 && entries.iter().all(|it| it.outcome.is_err()), "{entries:?}");
    }

    #[test]
    fn each_setting_is_reported_once() {
        let text = "PATH=/a\nMAILTO=x\nPATH=/b\nCRON_TZ=UTC\n0 3 * * * a";
        let entries = plan_text(text, None).unwrap();
        let left_out = entries.iter().filter(|it| it.outcome.is_err());
        let lines: Vec<_> =
            left_out.map(|it| (it.position.to_string(), it.text.as_str())).collect();
        assert_eq!(lines, [("line 1".to_owned(), "PATH=…"), ("line 2".to_owned(), "MAILTO=…")]);
    }

    #[test]
    fn lines_of_other_users_need_an_agent_that_runs_as_them() {
        let text = "0 3 * * * ada one\n0 3 * * * root two";
        let check = |layout, named, has_agent, expected: &[&str]| {
            let users = Users { own: "ada", named, has_agent };
            let text = if layout == Layout::System { text } else { "0 3 * * * one" };
            let entries = plan_as(text, Some("UTC"), layout, users).unwrap();
            let found = entries.iter().map(|it| match &it.outcome {
                Ok(planned) => planned.schedule.request.name.clone(),
                Err(left_out) => left_out.reason.clone(),
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "{named:?} {has_agent}");
        };
        let theirs = "it belongs to user `root`, and Midwatch runs as `ada`";
        let ours = "it belongs to user `ada`, not to `root`";
        check(Layout::System, None, false, &["one", theirs]);
        check(Layout::System, None, true, &["one", theirs]);
        check(
            Layout::System,
            Some("ada"),
            false,
            &["one", "it belongs to user `root`, not to `ada`"],
        );
        check(Layout::System, Some("root"), false, &[ours, theirs]);
        check(Layout::System, Some("root"), true, &[ours, "two"]);
        check(Layout::User, None, false, &["one"]);
        check(Layout::User, Some("root"), false, &[theirs]);
        check(Layout::User, Some("root"), true, &["one"]);
    }

    #[test]
    fn import_is_limited_to_one_request() {
        let most = "0 3 * * * backup\n".repeat(SCHEDULES_MAX);
        assert_eq!(plan_text(&most, Some("UTC")).unwrap().len(), SCHEDULES_MAX);
        let error = plan_text(&format!("{most}@daily one"), Some("UTC")).unwrap_err();
        let what = "more than 1000 schedules, the most that are imported at once";
        assert_eq!((error.code, error.message.as_str()), (Code::InvalidInput, what));
    }
}
