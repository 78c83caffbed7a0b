//! The form of a schedule: from fields to a request, and from a schedule back to fields.

use api::{Action, Code, Error, Schedule, ScheduleAdd, ScheduleEdit, Terms, When};
use calendar::{Dst, Trigger, Weekdays, format_instant};
use serde::Deserialize;
use serde_json::Value;

/// The fields of the form, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScheduleForm {
    pub(crate) name: String,
    /// `cron`, `every`, `daily` or `at`
    pub(crate) kind: String,
    pub(crate) when: String,
    pub(crate) tz: String,
    pub(crate) agent: String,
    pub(crate) prompt: String,
    pub(crate) tier: String,
    pub(crate) overlap: String,
    pub(crate) missed: String,
    pub(crate) attempts: String,
    pub(crate) per_day: String,
    pub(crate) pause_after: String,
}

/// The kinds of triggers that the form offers, with an example of each.
pub(crate) const KINDS: [(&str, &str, &str); 4] = [
    ("every", "every", "10m"),
    ("daily", "every day at", "09:00,17:30"),
    ("cron", "cron", "30 9 * * MON-FRI"),
    ("at", "once, at", "2027-01-31T09:00"),
];

impl ScheduleForm {
    /// Unknown fields are ignored: browsers and the script add their own.
    pub(crate) fn from_fields(fields: &[(String, String)]) -> ScheduleForm {
        let mut form = ScheduleForm::default();
        for (name, value) in fields {
            if let Some(field) = form.field_mut(name) {
                // Forms send line breaks as CR LF.
                *field = value.replace("\r\n", "\n").trim().to_owned();
            }
        }
        form
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "name" => Some(&mut self.name),
            "kind" => Some(&mut self.kind),
            "when" => Some(&mut self.when),
            "tz" => Some(&mut self.tz),
            "agent" => Some(&mut self.agent),
            "prompt" => Some(&mut self.prompt),
            "tier" => Some(&mut self.tier),
            "overlap" => Some(&mut self.overlap),
            "missed" => Some(&mut self.missed),
            "attempts" => Some(&mut self.attempts),
            "per_day" => Some(&mut self.per_day),
            "pause_after" => Some(&mut self.pause_after),
            _ => None,
        }
    }

    /// The fields of an existing schedule. Its trigger is empty if the form cannot show it.
    pub(crate) fn of(schedule: &Schedule) -> ScheduleForm {
        let Terms { overlap, missed, attempts, per_day, pause_after, .. } = &schedule.terms;
        let number = |number: Option<u32>| number.map(|it| it.to_string()).unwrap_or_default();
        let (kind, when) = stored_trigger(&schedule.trigger).unwrap_or_default();
        ScheduleForm {
            name: schedule.name.clone(),
            kind,
            when,
            tz: schedule.tz.clone(),
            agent: schedule.action.agent.clone().unwrap_or_default(),
            prompt: schedule.action.prompt.clone().unwrap_or_default(),
            tier: schedule.tier.map(|tier| tier.to_string()).unwrap_or_default(),
            overlap: overlap.clone().unwrap_or_default(),
            missed: missed.clone().unwrap_or_default(),
            attempts: number(*attempts),
            per_day: number(*per_day),
            pause_after: number(*pause_after),
        }
    }

    /// The request to add it.
    pub(crate) fn add(&self, dry_run: bool) -> Result<ScheduleAdd, Error> {
        Ok(ScheduleAdd {
            name: self.name.clone(),
            when: self.when()?.ok_or_else(|| invalid("when", "say when it fires"))?,
            action: Action {
                agent: some(&self.agent),
                prompt: some(&self.prompt),
                ..Action::default()
            },
            tier: self.tier()?,
            terms: self.terms()?,
            dry_run,
            ..ScheduleAdd::default()
        })
    }

    /// The request to change a schedule from the fields `was` to these. Fields that are equal are left out.
    pub(crate) fn edit(&self, id: String, was: &ScheduleForm) -> Result<ScheduleEdit, Error> {
        let changed = |new: &String, old: &String| (new != old).then(|| some(new)).flatten();
        let is_trigger_changed =
            (&self.kind, &self.when, &self.tz) != (&was.kind, &was.when, &was.tz);
        let when = if is_trigger_changed { self.when()? } else { None };
        let terms = ScheduleForm {
            overlap: changed(&self.overlap, &was.overlap).unwrap_or_default(),
            missed: changed(&self.missed, &was.missed).unwrap_or_default(),
            attempts: changed(&self.attempts, &was.attempts).unwrap_or_default(),
            per_day: changed(&self.per_day, &was.per_day).unwrap_or_default(),
            pause_after: changed(&self.pause_after, &was.pause_after).unwrap_or_default(),
            ..ScheduleForm::default()
        };
        let cleared = |name: &str, new: &String, old: &String| {
            (new.is_empty() && !old.is_empty()).then(|| name.to_owned())
        };
        let unset = [
            cleared("tier", &self.tier, &was.tier),
            cleared("overlap", &self.overlap, &was.overlap),
            cleared("missed", &self.missed, &was.missed),
            cleared("attempts", &self.attempts, &was.attempts),
            cleared("per_day", &self.per_day, &was.per_day),
            cleared("pause_after", &self.pause_after, &was.pause_after),
        ];
        Ok(ScheduleEdit {
            id,
            name: changed(&self.name, &was.name),
            when,
            action: Action {
                agent: changed(&self.agent, &was.agent),
                prompt: changed(&self.prompt, &was.prompt),
                ..Action::default()
            },
            tier: if self.tier == was.tier { None } else { self.tier()? },
            terms: terms.terms()?,
            unset: unset.into_iter().flatten().collect(),
            ..ScheduleEdit::default()
        })
    }

    fn when(&self) -> Result<Option<When>, Error> {
        let Some(text) = some(&self.when) else { return Ok(None) };
        let zone = some(&self.tz);
        let mut when = When::default();
        match self.kind.as_str() {
            "cron" => (when.cron, when.tz) = (Some(text), zone),
            "daily" => (when.daily, when.tz) = (Some(text), zone),
            "at" => (when.at, when.tz) = (Some(text), zone),
            "every" => when.every = Some(text),
            _ => return Err(invalid("kind", "choose how it is triggered")),
        }
        Ok(Some(when))
    }

    fn tier(&self) -> Result<Option<u8>, Error> {
        let parse = |text: String| text.parse().map_err(|_| invalid("tier", "use 0, 1 or 2"));
        some(&self.tier).map(parse).transpose()
    }

    fn terms(&self) -> Result<Terms, Error> {
        let number = |name: &'static str, text: &String| {
            let parse = |text: String| text.parse().map_err(|_| invalid(name, "write a number"));
            some(text).map(parse).transpose()
        };
        Ok(Terms {
            overlap: some(&self.overlap),
            missed: some(&self.missed),
            attempts: number("attempts", &self.attempts)?,
            per_day: number("per_day", &self.per_day)?,
            pause_after: number("pause_after", &self.pause_after)?,
            ..Terms::default()
        })
    }
}

fn invalid(field: &str, hint: &str) -> Error {
    Error::new(Code::InvalidInput, format!("the field `{field}` is missing or invalid")).hint(hint)
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The kind and the text of a stored trigger; `None` if the form cannot show it.
fn stored_trigger(trigger: &Value) -> Option<(String, String)> {
    let (kind, text) = match Trigger::deserialize(trigger).ok()? {
        Trigger::Cron { expression, dst } if dst == Dst::default() => {
            ("cron", expression.to_string())
        }
        Trigger::Interval { every, .. } => ("every", every.to_string()),
        Trigger::Once { at_us } => ("at", format_instant(at_us)),
        Trigger::Daily { times, weekdays, dst }
            if weekdays == Weekdays::default() && dst == Dst::default() =>
        {
            let times: Vec<String> = times.iter().map(|time| time.to_string()).collect();
            ("daily", times.join(","))
        }
        Trigger::Cron { .. } | Trigger::Daily { .. } => return None,
    };
    Some((kind.to_owned(), text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(fields: &[(&str, &str)]) -> ScheduleForm {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ScheduleForm::from_fields(&fields)
    }

    #[test]
    fn fields_make_a_request() {
        let add = form(&[
            ("name", "nightly"),
            ("kind", "cron"),
            ("when", "0 3 * * *"),
            ("tz", "Europe/Berlin"),
            ("agent", "ada"),
            ("prompt", "one\r\ntwo\r\n"),
            ("tier", "2"),
            ("per_day", "4"),
            ("other", "ignored"),
        ])
        .add(true)
        .unwrap();
        assert_eq!(add.when.cron.as_deref(), Some("0 3 * * *"));
        assert_eq!(add.when.tz.as_deref(), Some("Europe/Berlin"));
        assert_eq!(add.action.prompt.as_deref(), Some("one\ntwo"));
        assert_eq!((add.tier, add.terms.per_day, add.dry_run), (Some(2), Some(4), true));
        for bad in [
            form(&[("name", "x")]),
            form(&[("kind", "cron")]),
            form(&[("kind", "odd"), ("when", "1")]),
            form(&[("kind", "every"), ("when", "1m"), ("per_day", "many")]),
        ] {
            assert!(bad.add(true).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_edit_has_only_what_changed() {
        let was = form(&[("name", "a"), ("kind", "every"), ("when", "10m"), ("per_day", "4")]);
        let same = was.edit("sch_1".to_owned(), &was).unwrap();
        assert_eq!(same, ScheduleEdit { id: "sch_1".to_owned(), ..ScheduleEdit::default() });
        let now = ScheduleForm { when: "5m".to_owned(), per_day: String::new(), ..was.clone() };
        let edit = now.edit("sch_1".to_owned(), &was).unwrap();
        assert_eq!(edit.when.unwrap().every.as_deref(), Some("5m"));
        assert_eq!((edit.name, edit.unset), (None, vec!["per_day".to_owned()]));
    }

    #[test]
    fn stored_triggers_are_shown_as_they_are_typed() {
        for (kind, text) in [("every", "10m"), ("daily", "09:00,17:30"), ("cron", "0 3 * * MON")] {
            let trigger = match kind {
                "every" => json!({"kind": "interval", "every": text, "anchor_us": 0}),
                "daily" => json!({"kind": "daily", "times": ["09:00", "17:30"]}),
                _ => json!({"kind": "cron", "expression": text}),
            };
            assert_eq!(stored_trigger(&trigger), Some((kind.to_owned(), text.to_owned())));
        }
        assert_eq!(stored_trigger(&json!({"kind": "after"})), None);
    }
}
