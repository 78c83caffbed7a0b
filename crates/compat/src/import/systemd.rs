//! Timers of systemd and their services. Pure.
//!
//! Each setting that starts the service at a time (`OnCalendar=`, `OnUnitActiveSec=`) is an entry. As with a crontab,
//! the command becomes the prompt of an agent that is a shell, a run has one attempt, and failures do not pause the
//! schedule.

mod calendar;
mod exec;
mod span;
mod unit_file;

use ::calendar::{SPAN_MAX, format_instant};
use api::{ScheduleAdd, Terms, When};

use super::{Entry, LeftOut, NewSchedule, Position, UniqueNames, Users, prompt_action, shell_line};
use calendar::CalendarExpression;
use exec::Specifiers;
use span::parse_span;
pub use unit_file::UnitFile;

/// Settings that start the service, in the section `Timer`.
const STARTS: [&str; 8] = [
    "OnCalendar",
    "OnUnitActiveSec",
    "OnUnitInactiveSec",
    "OnBootSec",
    "OnStartupSec",
    "OnActiveSec",
    "OnClockChange",
    "OnTimezoneChange",
];
/// Other settings of a timer that are imported, or that need not be: slots run on time here.
const TIMER_SETTINGS: [&str; 5] =
    ["Persistent", "RandomizedDelaySec", "AccuracySec", "Unit", "RemainAfterElapse"];
/// Settings of a service that are imported, or that need not be.
const SERVICE_SETTINGS: [&str; 7] = [
    "ExecStart",
    "Type",
    "User",
    "WorkingDirectory",
    "StandardOutput",
    "StandardError",
    "SyslogIdentifier",
];
/// The user whom services of the system run as, unless they name another.
const ROOT: &str = "root";

/// A timer and the service that it starts.
#[derive(Clone, Debug)]
pub struct TimerUnit {
    /// `backup.timer`
    pub name: String,
    pub timer: UnitFile,
    /// `backup.service`
    pub service_name: String,
    /// Absent if it was not found.
    pub service: Option<UnitFile>,
    /// Whether the system's manager runs it, not that of a user.
    pub is_system: bool,
    /// Whether the timer is enabled; absent if that is unknown.
    pub is_enabled: Option<bool>,
}

/// What the entries depend on, besides the units.
#[derive(Clone, Copy, Debug)]
pub struct TimerOptions<'a> {
    /// The agent that is a shell.
    pub agent: &'a str,
    pub agent_hint: &'a str,
    /// The zone of expressions that name none.
    pub zone: &'a str,
    pub users: Users<'a>,
}

/// The name of the service that a timer starts.
pub fn service_name(timer_name: &str, timer: &UnitFile) -> String {
    let same = || format!("{}.service", timer_name.trim_end_matches(".timer"));
    timer.value("Timer", "Unit").map_or_else(same, str::to_owned)
}

pub fn entries(units: &[TimerUnit], options: &TimerOptions<'_>) -> Vec<Entry> {
    let mut names = UniqueNames::default();
    units.iter().flat_map(|unit| entries_of(unit, options, &mut names)).collect()
}

fn entries_of(unit: &TimerUnit, options: &TimerOptions<'_>, names: &mut UniqueNames) -> Vec<Entry> {
    let title = unit.timer.value("Unit", "Description").or_else(|| {
        let service = unit.service.as_ref()?;
        service.value("Unit", "Description")
    });
    let title = title.unwrap_or(&unit.name);
    let position = Position::entry(unit.name.clone());
    let starts = unit.timer.settings_of("Timer", &STARTS);
    if starts.is_empty() {
        let outcome = Err(LeftOut::new("it names no time", "nothing to do"));
        return vec![Entry { position, text: title.to_owned(), outcome }];
    }
    let entries = (1..).zip(starts).map(|(index, (setting, value))| {
        let id = if index == 1 { unit.name.clone() } else { format!("{} {index}", unit.name) };
        // Entries that are left out use up a name, too, so that the names of others do not depend on it.
        let name = names.name(title, &id);
        Entry {
            position: position.clone(),
            text: format!("{setting}={value}"),
            outcome: new_schedule(unit, name, setting, value, options),
        }
    });
    entries.collect()
}

fn new_schedule(
    unit: &TimerUnit,
    name: String,
    setting: &str,
    value: &str,
    options: &TimerOptions<'_>,
) -> Result<NewSchedule, LeftOut> {
    let service = unit.service.as_ref().ok_or_else(|| {
        let reason = format!("its service `{}` was not found", unit.service_name);
        LeftOut::new(reason, "name the directory that has both files")
    })?;
    let default_owner = if unit.is_system { ROOT } else { options.users.own };
    options.users.check(Some(service.value("Service", "User").unwrap_or(default_owner)))?;
    let prompt = prompt(&unit.service_name, service)?;
    if setting == "OnUnitInactiveSec" {
        return Err(after_last_run(value, &name, options.agent, &prompt));
    }
    let when = when(setting, value, options.zone)?;
    let is_persistent = setting == "OnCalendar" && unit.timer.is_true("Timer", "Persistent");
    let (missed, window) = match is_persistent {
        true => ("latest", Some(SPAN_MAX.to_string())),
        false => ("skip", None),
    };
    let delay = unit.timer.value("Timer", "RandomizedDelaySec").and_then(parse_span);
    let request = ScheduleAdd {
        name,
        when,
        action: prompt_action(options.agent, &prompt)?,
        terms: Terms {
            missed: Some(missed.to_owned()),
            window,
            jitter: delay.map(|delay| delay.to_string()),
            attempts: Some(1),
            pause_after: Some(0),
            ..Terms::default()
        },
        paused: unit.is_enabled == Some(false),
        ..ScheduleAdd::default()
    };
    let schedule = NewSchedule::new(request, options.agent_hint);
    Ok(NewSchedule { warnings: warnings(unit, service, options.agent), ..schedule })
}

fn when(setting: &str, value: &str, zone: &str) -> Result<When, LeftOut> {
    let not_a_span = || {
        let reason = format!("`{setting}={value}` is not a time span of a millisecond or more");
        LeftOut::new(reason, "correct the unit, then import again")
    };
    match (setting, value.strip_prefix('@')) {
        ("OnCalendar", Some(seconds)) => {
            let at_us = seconds.parse::<i64>().ok().and_then(|at| at.checked_mul(1_000_000));
            let at = Some(format_instant(at_us.ok_or_else(not_a_span)?));
            Ok(When { at, ..When::default() })
        }
        ("OnCalendar", None) => {
            let CalendarExpression { cron, zone: named } = calendar::parse(value)?;
            let (cron, tz) = (Some(cron), Some(named.unwrap_or_else(|| zone.to_owned())));
            Ok(When { cron, tz, ..When::default() })
        }
        ("OnUnitActiveSec", _) => {
            let every = Some(parse_span(value).ok_or_else(not_a_span)?.to_string());
            Ok(When { every, ..When::default() })
        }
        (setting, _) => Err(LeftOut::new(
            format!("`{setting}` is not supported: it is not a time of the calendar"),
            "keep a timer that has only this setting",
        )),
    }
}

/// An interval from the end of a run is another kind of trigger here.
fn after_last_run(span: &str, name: &str, agent: &str, prompt: &str) -> LeftOut {
    let span = parse_span(span).map_or_else(|| "SPAN".to_owned(), |span| span.to_string());
    let flags = ["--again", &span, "--name", name, "--agent", agent, "--prompt", prompt];
    LeftOut::new(
        "it is counted from the end of the last run",
        format!("`midwatch schedule add {}`", shell_line(flags)),
    )
}

/// The commands of a service as a script.
fn prompt(service_name: &str, service: &UnitFile) -> Result<String, LeftOut> {
    let mut lines = Vec::new();
    if let Some(directory) = service.value("Service", "WorkingDirectory") {
        let directory = match directory.trim_start_matches('-') {
            "~" => "\"$HOME\"".to_owned(),
            directory => shell_line([directory]),
        };
        lines.push(format!("cd {directory} || exit"));
    }
    let mut commands = Vec::new();
    for command in service.values("Service", "ExecStart") {
        commands.extend(exec::to_shell(command, Specifiers { unit: service_name })?);
    }
    match commands.as_slice() {
        [] => return Err(LeftOut::new("its service has no `ExecStart`", "nothing to do")),
        [_] => {}
        // As in systemd, a command that fails ends the service.
        _ => lines.insert(0, "set -e".to_owned()),
    }
    lines.extend(commands);
    Ok(lines.join("\n"))
}

fn warnings(unit: &TimerUnit, service: &UnitFile, agent: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if unit.is_enabled == Some(false) {
        warnings.push("the timer is not enabled, so the schedule is paused".to_owned());
    }
    let variables = ["Environment", "EnvironmentFile"];
    if variables.iter().any(|name| service.value("Service", name).is_some()) {
        warnings.push(format!(
            "values of variables are not stored; set them in the daemon's environment, and pass them on with \
             `midwatch agent edit {agent} --env NAME`"
        ));
    }
    let known: Vec<&str> = STARTS.into_iter().chain(TIMER_SETTINGS).collect();
    let mut lost = unit.timer.other_names("Timer", &known);
    let known: Vec<&str> = SERVICE_SETTINGS.into_iter().chain(variables).collect();
    lost.extend(service.other_names("Service", &known));
    if !lost.is_empty() {
        let lost: Vec<String> = lost.iter().map(|name| format!("`{name}`")).collect();
        warnings.push(format!("not imported: {}", lost.join(", ")));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn unit(timer: &str, service: &str) -> TimerUnit {
        let service = (!service.is_empty()).then(|| UnitFile::parse([service]));
        TimerUnit {
            name: "backup.timer".to_owned(),
            timer: UnitFile::parse([timer]),
            service_name: "backup.service".to_owned(),
            service,
            is_system: false,
            is_enabled: None,
        }
    }

    fn entries_of(unit: TimerUnit) -> Vec<Entry> {
        let users = Users { own: "ada", named: None, has_agent: false };
        let options = TimerOptions { agent: "cron", agent_hint: "", zone: "Europe/Berlin", users };
        entries(&[unit], &options)
    }

    /// Each entry as its trigger, terms and prompt, or as the reason why it is left out.
    fn shown(entries: &[Entry]) -> Value {
        let shown = entries.iter().map(|it| match &it.outcome {
            Ok(NewSchedule { request, .. }) => {
                let mut terms = serde_json::to_value(&request.terms).unwrap();
                terms
                    .as_object_mut()
                    .unwrap()
                    .retain(|name, _| name != "attempts" && name != "pause_after");
                json!([request.name, request.when, terms, request.action.prompt])
            }
            Err(left_out) => json!([it.text, left_out.reason]),
        });
        shown.collect()
    }

    const SERVICE: &str = "[Service]\nType=oneshot\nExecStart=/usr/bin/backup --all\n";

    #[test]
    fn each_time_of_a_timer_is_an_entry() {
        let timer = "[Unit]\nDescription=Nightly backup\n[Timer]\nOnCalendar=*-*-* 03:00\nOnCalendar=Sun UTC\n\
                     OnBootSec=15min\nOnUnitActiveSec=1h\nOnUnitInactiveSec=90\nOnCalendar=@1893456000\n\
                     Persistent=true\nRandomizedDelaySec=5min\n";
        let entries = entries_of(unit(timer, SERVICE));
        let expected = json!([
            ["Nightly backup", {"cron": "0 0 3 * * * *", "tz": "Europe/Berlin"},
             {"missed": "latest", "window": "3660d", "jitter": "5m"}, "/usr/bin/backup --all"],
            ["Nightly backup (backup.timer 2)", {"cron": "0 0 0 * * SUN *", "tz": "UTC"},
             {"missed": "latest", "window": "3660d", "jitter": "5m"}, "/usr/bin/backup --all"],
            ["OnBootSec=15min", "`OnBootSec` is not supported: it is not a time of the calendar"],
            ["Nightly backup (backup.timer 4)", {"every": "1h"}, {"missed": "skip", "jitter": "5m"},
             "/usr/bin/backup --all"],
            ["OnUnitInactiveSec=90", "it is counted from the end of the last run"],
            ["Nightly backup (backup.timer 6)", {"at": "2030-01-01T00:00:00Z"},
             {"missed": "latest", "window": "3660d", "jitter": "5m"}, "/usr/bin/backup --all"],
        ]);
        assert_eq!(shown(&entries), expected);
        let hint = &entries[4].outcome.as_ref().unwrap_err().hint;
        let expected = "`midwatch schedule add --again 1m30s --name 'Nightly backup (backup.timer 5)' --agent cron \
                        --prompt '/usr/bin/backup --all'`";
        assert_eq!(hint, expected);
    }

    #[test]
    fn service_becomes_a_script_or_a_reason() {
        let timer = "[Timer]\nOnCalendar=daily\n";
        let check = |service: &str, expected: Result<&str, &str>| {
            let entries = entries_of(unit(timer, service));
            let found =
                entries[0].outcome.as_ref().map(|it| it.request.action.prompt.as_deref().unwrap());
            assert_eq!(found.map_err(|it| it.reason.as_str()), expected, "{service}");
        };
        check(SERVICE, Ok("/usr/bin/backup --all"));
        check(
            "[Service]\nWorkingDirectory=/srv/my app\nExecStart=a\nExecStart=-b\n",
            Ok("set -e\ncd '/srv/my app' || exit\na\nb || true"),
        );
        check("[Service]\nUser=ada\nExecStart=a\n", Ok("a"));
        check(
            "[Service]\nUser=root\nExecStart=a\n",
            Err("it belongs to user `root`, and Midwatch runs as `ada`"),
        );
        check("[Service]\nType=oneshot\n", Err("its service has no `ExecStart`"));
        check("", Err("its service `backup.service` was not found"));
        let system = TimerUnit { is_system: true, ..unit(timer, SERVICE) };
        let reason = entries_of(system)[0].outcome.as_ref().unwrap_err().reason.clone();
        assert_eq!(reason, "it belongs to user `root`, and Midwatch runs as `ada`");
    }

    #[test]
    fn what_is_not_carried_over_is_reported() {
        let timer = "[Timer]\nOnCalendar=daily\nWakeSystem=yes\nAccuracySec=1h\n";
        let service = "[Service]\nExecStart=a\nNice=10\nEnvironment=TOKEN=secret\nNice=5\n";
        let unit = TimerUnit { is_enabled: Some(false), ..unit(timer, service) };
        let schedule = entries_of(unit)[0].outcome.clone().unwrap();
        assert!(schedule.request.paused);
        let expected = [
            "the timer is not enabled, so the schedule is paused",
            "values of variables are not stored; set them in the daemon's environment, and pass them on with \
             `midwatch agent edit cron --env NAME`",
            "not imported: `WakeSystem`, `Nice`",
        ];
        assert_eq!(schedule.warnings, expected);
    }

    #[test]
    fn timer_names_its_service() {
        let name = |text: &str| service_name("backup.timer", &UnitFile::parse([text]));
        assert_eq!(name("[Timer]\n"), "backup.service");
        assert_eq!(name("[Timer]\nUnit=other.service\n"), "other.service");
    }
}
