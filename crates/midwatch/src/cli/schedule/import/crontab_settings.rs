//! Settings of a crontab. Only the time zone is imported; for the others there is a reason and a hint.

use compat::import::LeftOut;

/// The time zones named so far, by who named them.
#[derive(Clone, Debug, Default)]
pub(super) struct Zones {
    /// `--tz`
    pub flag: Option<String>,
    cron_tz: Option<String>,
    tz: Option<String>,
}

impl Zones {
    pub(super) fn new(flag: Option<String>) -> Zones {
        Zones { flag, ..Zones::default() }
    }

    /// Applies a setting; returns the reason if it is not imported.
    pub(super) fn take(&mut self, name: &str, value: &str, agent: &str) -> Option<LeftOut> {
        // A leading colon has no meaning, and an empty name unsets the zone.
        let zone = || Some(value.trim_start_matches(':').to_owned()).filter(|it| !it.is_empty());
        match name {
            "CRON_TZ" => {
                self.cron_tz = zone();
                None
            }
            "TZ" => {
                self.tz = zone();
                Some(self.skip_tz())
            }
            _ => Some(skip(name, value, agent)),
        }
    }

    /// The zone of the next line. `TZ` sets cron's zone in some implementations only, and is a variable
    /// of the commands in others; so it has the lowest precedence.
    pub(super) fn current(&self) -> Option<&str> {
        let named = self.cron_tz.as_ref().or(self.flag.as_ref()).or(self.tz.as_ref());
        named.map(String::as_str)
    }

    fn skip_tz(&self) -> LeftOut {
        let hint = "commands get the daemon's `TZ`: set it there";
        match (&self.cron_tz, &self.flag) {
            (None, None) => LeftOut::new(
                "`TZ` is used as the zone of the lines below, but commands do not get it",
                format!("name the zone with `--tz` if cron used another one; {hint}"),
            ),
            _ => LeftOut::new("`TZ` is a variable of the commands, which do not get it", hint),
        }
    }
}

fn skip(name: &str, value: &str, agent: &str) -> LeftOut {
    match name {
        "SHELL" => LeftOut::new(
            "the agent determines the shell",
            format!("register it as `midwatch agent add {agent} --backend command -- {value} -s`"),
        ),
        "MAILTO" | "MAILFROM" => LeftOut::new(
            "nothing is mailed",
            "`midwatch run list` shows outcomes, `midwatch run show` output",
        ),
        "HOME" => LeftOut::new(
            "commands start in the home directory of the daemon's user",
            format!("for another directory: `midwatch agent edit {agent} --cwd DIR`"),
        ),
        "PATH" | "LANG" => LeftOut::new(
            format!("commands get the daemon's `{name}`"),
            "set it there, for example with `Environment=` in its systemd unit",
        ),
        "RANDOM_DELAY" => LeftOut::new(
            "random delays are not imported",
            "delay a schedule with `midwatch schedule edit ID --jitter SPAN`",
        ),
        _ => LeftOut::new(
            "values of variables are not stored",
            format!(
                "set it in the daemon's environment, and pass it to commands with `midwatch agent \
                 edit {agent} --env {name}`"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the zone after the settings, in their order.
    fn check(flag: Option<&str>, settings: &[(&str, &str)], expected: Option<&str>) {
        let mut zones = Zones::new(flag.map(str::to_owned));
        for (name, value) in settings {
            zones.take(name, value, "cron");
        }
        assert_eq!(zones.current(), expected, "{flag:?} {settings:?}");
    }

    #[test]
    fn zone_follows_precedence() {
        check(None, &[], None);
        check(None, &[("PATH", "/bin")], None);
        check(Some("UTC"), &[], Some("UTC"));
        check(None, &[("TZ", ":Asia/Kolkata")], Some("Asia/Kolkata"));
        check(Some("UTC"), &[("TZ", "Asia/Kolkata")], Some("UTC"));
        check(Some("UTC"), &[("CRON_TZ", "Asia/Kolkata")], Some("Asia/Kolkata"));
        check(None, &[("CRON_TZ", "Asia/Kolkata"), ("TZ", "UTC")], Some("Asia/Kolkata"));
        check(Some("UTC"), &[("CRON_TZ", "Asia/Kolkata"), ("CRON_TZ", "")], Some("UTC"));
    }

    #[test]
    fn skipped_settings_have_a_hint() {
        for (name, value, hint) in [
            ("SHELL", "/bin/bash", "`midwatch agent add cron --backend command -- /bin/bash -s`"),
            ("MAILTO", "me", "`midwatch run list`"),
            ("HOME", "/srv", "`midwatch agent edit cron --cwd DIR`"),
            ("PATH", "/bin", "set it there"),
            ("TZ", "UTC", "name the zone with `--tz`"),
            ("RANDOM_DELAY", "45", "--jitter"),
            ("API_KEY", "secret", "--env API_KEY`"),
        ] {
            let refusal = Zones::new(None).take(name, value, "cron").unwrap();
            assert!(refusal.hint.contains(hint), "{name}: {refusal:?}");
            assert!(!refusal.hint.contains("secret"), "{refusal:?}");
        }
        assert_eq!(Zones::new(None).take("CRON_TZ", "UTC", "cron"), None);
        let named = Zones::new(Some("UTC".into())).take("TZ", "Asia/Kolkata", "cron").unwrap();
        assert!(named.reason.starts_with("`TZ` is a variable of the commands"), "{named:?}");
    }
}
