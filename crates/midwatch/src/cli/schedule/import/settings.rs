//! What becomes of a crontab's settings: the zone is carried over, no other is. Values of variables
//! are never stored, and what cron did with some of them is done by others here.

use super::crontab::Refusal;

/// The zone of a line, by whoever named it.
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

    /// Takes a setting, and says what is not carried over of it.
    pub(super) fn take(&mut self, name: &str, value: &str, agent: &str) -> Option<Refusal> {
        // A colon before the name of a zone means nothing, and an empty name is none.
        let zone = || Some(value.trim_start_matches(':').to_owned()).filter(|it| !it.is_empty());
        match name {
            "CRON_TZ" => {
                self.cron_tz = zone();
                None
            }
            "TZ" => {
                self.tz = zone();
                Some(self.variable_tz())
            }
            _ => Some(left_out(name, value, agent)),
        }
    }

    /// `CRON_TZ` is cron's own word for it. `TZ` is one only to some programs, and to others a
    /// variable of the commands; so it counts as long as nobody says better.
    pub(super) fn current(&self) -> Option<&str> {
        let named = self.cron_tz.as_ref().or(self.flag.as_ref()).or(self.tz.as_ref());
        named.map(String::as_str)
    }

    fn variable_tz(&self) -> Refusal {
        let hint = "commands get the `TZ` of the daemon: set it there";
        match (&self.cron_tz, &self.flag) {
            (None, None) => Refusal::new(
                "`TZ` is taken for the zone of the lines below, but commands do not get it",
                format!("name the zone with `--tz` if cron counted in another one; {hint}"),
            ),
            _ => Refusal::new("`TZ` is a variable of the commands, and they do not get it", hint),
        }
    }
}

fn left_out(name: &str, value: &str, agent: &str) -> Refusal {
    match name {
        "SHELL" => Refusal::new(
            "the shell is that of the agent",
            format!("register it as `midwatch agent add {agent} --backend command -- {value} -s`"),
        ),
        "MAILTO" | "MAILFROM" => Refusal::new(
            "nothing is mailed",
            "`midwatch run list` shows how runs ended, and `midwatch run show` what they said",
        ),
        "HOME" => Refusal::new(
            "commands start in the home directory of the daemon's user",
            format!("for another one: `midwatch agent edit {agent} --cwd DIR`"),
        ),
        "PATH" | "LANG" => Refusal::new(
            format!("commands get the `{name}` of the daemon"),
            "set it there, as with `Environment=` in its systemd unit",
        ),
        "RANDOM_DELAY" => Refusal::new(
            "lines are not delayed at random",
            "`midwatch schedule edit ID --jitter SPAN` spreads one over a time",
        ),
        _ => Refusal::new(
            "values of variables are not stored",
            format!(
                "set it in the environment of the daemon, and let commands see it with `midwatch \
                 agent edit {agent} --env {name}`"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings in their order, and the zone after them.
    fn check(flag: Option<&str>, settings: &[(&str, &str)], expected: Option<&str>) {
        let mut zones = Zones::new(flag.map(str::to_owned));
        for (name, value) in settings {
            zones.take(name, value, "cron");
        }
        assert_eq!(zones.current(), expected, "{flag:?} {settings:?}");
    }

    #[test]
    fn the_zone_is_the_one_that_is_named_best() {
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
    fn what_is_not_carried_over_is_said_with_what_to_do() {
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
