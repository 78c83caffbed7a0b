//! A list of schedules in a file, as the wire has them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use api::{Code, Error, ScheduleAdd, ScheduleAddAll};
use serde_json::Value;

use crate::cli::unreadable;

const LIST_BYTES_MAX: u64 = 8 << 20;
const FORM: &str = "each has a `name`, a `when` such as {\"every\": \"1h\"} and an `action` such as \
                    {\"agent\": \"ada\", \"prompt\": \"hello\"}";

pub(super) fn read(path: &Path) -> Result<ScheduleAddAll, Error> {
    let text = match path.to_str() {
        Some("-") => whole(io::stdin().lock(), path),
        _ => {
            let file = File::open(path).map_err(|error| unreadable("list", path, error))?;
            whole(file, path)
        }
    }?;
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let document = match is_toml {
        true => toml::from_str(&text).map_err(|error| error.to_string()),
        false => api::json::read(text.as_bytes()).map_err(|error| error.to_string()),
    };
    document.and_then(schedules).map_err(|reason| refused(path, reason.trim_end()).hint(FORM))
}

/// The list itself, or a document that holds it and nothing else.
fn schedules(document: Value) -> Result<ScheduleAddAll, String> {
    let list = match document {
        Value::Array(list) => list,
        Value::Object(mut fields) => match (fields.remove("schedules"), fields.keys().next()) {
            (Some(Value::Array(list)), None) => list,
            (Some(_), Some(other)) => return Err(format!("there is no `{other}` in a list")),
            _ => return Err("it has no list `schedules`".to_owned()),
        },
        _ => return Err("it is neither a list nor a document that holds one".to_owned()),
    };
    let parsed = list.into_iter().enumerate().map(|(place, item)| {
        serde_json::from_value::<ScheduleAdd>(item)
            .map_err(|error| format!("schedule {} of it: {error}", place + 1))
    });
    Ok(ScheduleAddAll { schedules: parsed.collect::<Result<_, _>>()?, dry_run: false })
}

fn whole(from: impl Read, path: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = from.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable("list", path, error))?;
    if LIST_BYTES_MAX < bytes.len() as u64 {
        return Err(refused(path, "it is longer than 8 MiB").hint("give it in several files"));
    }
    String::from_utf8(bytes)
        .map_err(|_| refused(path, "it is not text").hint("give a file in UTF-8"))
}

fn refused(path: &Path, reason: &str) -> Error {
    let what = format!("`{}` is no list of schedules: {reason}", path.display());
    Error::new(Code::InvalidInput, what)
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
    fn a_list_stands_alone_or_in_a_document() {
        let one = r#"{"name": "one", "when": {"every": "1h"}, "action": {"tool": "look"}}"#;
        check(&format!("[{one}]"), Ok(&["one"]));
        check(&format!(r#"{{"schedules": [{one}, {one}]}}"#), Ok(&["one", "one"]));
        check("[]", Ok(&[]));
        check("7", Err("it is neither a list nor a document that holds one"));
        check("{}", Err("it has no list `schedules`"));
        check(r#"{"schedules": {}}"#, Err("it has no list `schedules`"));
        check(r#"{"schedules": [], "x": 1}"#, Err("there is no `x` in a list"));
        check(&format!("[{one}, {{}}]"), Err("schedule 2 of it: missing field `name`"));
    }

    #[test]
    fn no_more_is_read_than_the_limit() {
        let most = vec![b' '; LIST_BYTES_MAX as usize];
        assert!(whole(&most[..], Path::new("-")).is_ok());
        let longer = whole(most.chain(&b" "[..]), Path::new("-")).unwrap_err();
        assert_eq!(longer.message, "`-` is no list of schedules: it is longer than 8 MiB");
    }
}
