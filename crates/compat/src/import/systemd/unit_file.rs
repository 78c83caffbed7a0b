//! Unit files of systemd: sections with assignments. Pure.

/// The assignments of a unit file and of its drop-ins, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFile {
    assignments: Vec<Assignment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Assignment {
    section: String,
    name: String,
    value: String,
}

impl UnitFile {
    /// Parses the text of a unit file, followed by those of its drop-ins.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> UnitFile {
        let mut unit = UnitFile::default();
        for text in texts {
            unit.add(text);
        }
        unit
    }

    fn add(&mut self, text: &str) {
        let mut section = String::new();
        let mut lines = text.lines().map(str::trim);
        while let Some(line) = lines.next() {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let mut line = line.to_owned();
            // A backslash at the end joins the next line, past comments.
            while line.ends_with('\\') {
                line.pop();
                let next = lines.by_ref().find(|next| !next.starts_with(['#', ';']));
                line.push(' ');
                line.push_str(next.unwrap_or_default());
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((name, value)) = line.split_once('=') {
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                self.assignments.push(Assignment { section: section.clone(), name, value });
            }
        }
    }

    /// The values of a setting that may be repeated. An empty value removes the earlier ones.
    pub(super) fn values(&self, section: &str, name: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for it in self.assignments.iter().filter(|it| it.section == section && it.name == name) {
            match it.value.is_empty() {
                true => values.clear(),
                false => values.push(it.value.as_str()),
            }
        }
        values
    }

    /// The last value of a setting.
    pub(super) fn value(&self, section: &str, name: &str) -> Option<&str> {
        self.values(section, name).pop()
    }

    pub(super) fn is_true(&self, section: &str, name: &str) -> bool {
        let value = self.value(section, name).map(str::to_ascii_lowercase);
        matches!(value.as_deref(), Some("1" | "yes" | "true" | "on" | "y" | "t"))
    }

    /// The timers among the settings, in order: name and value of each setting in `names`.
    pub(super) fn settings_of<'a>(
        &'a self,
        section: &str,
        names: &[&'a str],
    ) -> Vec<(&'a str, &'a str)> {
        let mut settings = Vec::new();
        for it in self.assignments.iter().filter(|it| it.section == section) {
            let Some(name) = names.iter().find(|name| **name == it.name) else { continue };
            match it.value.is_empty() {
                // An empty value removes the earlier ones of that name.
                true => settings.retain(|(other, _)| other != name),
                false => settings.push((*name, it.value.as_str())),
            }
        }
        settings
    }

    /// The names of a section's settings that are not in `known`, each once.
    pub(super) fn other_names(&self, section: &str, known: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for it in self.assignments.iter().filter(|it| it.section == section) {
            if !known.contains(&it.name.as_str()) && !names.contains(&it.name) {
                names.push(it.name.clone());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_in_order_and_reset_by_an_empty_one() {
        let unit = "# c\n[Timer]\nOnCalendar=daily\n; c\nOnCalendar = Mon *-*-* \\\n# between\n 10:00\n\
                    Persistent=Yes\n[Install]\nWantedBy=timers.target\nnot an assignment\n";
        let unit = UnitFile::parse([unit, "[Timer]\nAccuracySec=1h\n"]);
        assert_eq!(unit.values("Timer", "OnCalendar"), ["daily", "Mon *-*-*  10:00"]);
        assert_eq!(unit.value("Timer", "AccuracySec"), Some("1h"));
        assert!(unit.is_true("Timer", "Persistent") && !unit.is_true("Timer", "WakeSystem"));
        assert_eq!(unit.other_names("Timer", &["OnCalendar", "Persistent"]), ["AccuracySec"]);
        let reset = UnitFile::parse([
            "[Timer]\nOnCalendar=daily\n",
            "[Timer]\nOnCalendar=\nOnCalendar=weekly",
        ]);
        assert_eq!(reset.values("Timer", "OnCalendar"), ["weekly"]);
        assert_eq!(reset.settings_of("Timer", &["OnCalendar"]), [("OnCalendar", "weekly")]);
    }
}
