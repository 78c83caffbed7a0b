//! The file of `midwatch schedule add --file`: a list of schedules as JSON or TOML.

use std::path::Path;

use api::{Code, Error, ScheduleAdd, ScheduleAddAll};
use serde_json::Value;

use crate::cli::support::input::read_file_or_stdin;

const LIST_BYTES_MAX: u64 = 8 << 20;
const FORM: &str = "each has a `name`, a `when` such as {\"every\": \"1h\"} and an `action` such as \
                    {\"agent\": \"ada\", \"prompt\": \"hello\"}";

pub(super) fn read(path: &Path) -> Result<ScheduleAddAll, Error> {
    let text = read_file_or_stdin("list of schedules", path, LIST_BYTES_MAX)?;
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let document = match is_toml {
        true => toml::from_str(&text).map_err(|error| error.to_string()),
        false => api::json::read(text.as_bytes()).map_err(|error| error.to_string()),
    };
    document.and_then(schedules).map_err(|reason| {
        let path = path.display();
        let what = format!("`{path}` is not a list of schedules: {}", reason.trim_end());
        Error::new(Code::InvalidInput, what).hint(FORM)
    })
}

/// The document is the list, or has it under `schedules` and nothing else.
fn schedules(document: Value) -> Result<ScheduleAddAll, String> {
    let list = match document {
        Value::Array(list) => list,
        Value::Object(mut fields) => match (fields.remove("schedules"), fields.keys().next()) {
            (Some(Value::Array(list)), None) => list,
            (Some(_), Some(other)) => return Err(format!("unknown field `{other}`")),
            _ => return Err("it has no list `schedules`".to_owned()),
        },
        _ => return Err("it is neither a list nor an object with a list `schedules`".to_owned()),
    };
    let parsed = list.into_iter().enumerate().map(|(index, item)| {
        serde_json::from_value::<ScheduleAdd>(item)
            .map_err(|error| format!("schedule {}: {error}", index + 1))
    });
    Ok(ScheduleAddAll { schedules: parsed.collect::<Result<_, _>>()?, dry_run: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let document: Value = serde_json::from_str(text).unwrap();
        let found = schedules(document);
        let names = found.map(|list| list.schedules.into_iter().map(|it| it.name).collect());
        let expected: Result<Vec<String>, _> =
            expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn list_stands_alone_or_in_an_object() {
        let one = r#"{"name": "one", "when": {"every": "1h"}, "action": {"tool": "look"}}"#;
        check(&format!("[{one}]"), Ok(&["one"]));
        check(&format!(r#"{{"schedules": [{one}, {one}]}}"#), Ok(&["one", "one"]));
        check("[]", Ok(&[]));
        check("7", Err("it is neither a list nor an object with a list `schedules`"));
        check("{}", Err("it has no list `schedules`"));
        check(r#"{"schedules": {}}"#, Err("it has no list `schedules`"));
        check(r#"{"schedules": [], "x": 1}"#, Err("unknown field `x`"));
        check(&format!("[{one}, {{}}]"), Err("schedule 2: missing field `name`"));
    }
}
