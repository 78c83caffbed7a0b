//! How long an answer may be.

use serde_json::{Map, Value};

use crate::tool::with;

/// The longest answer, in bytes of JSON. A client gets it twice, as a value and as a text, and 64 KiB at most.
const ANSWER_BYTES_MAX: usize = 28 << 10;
/// Texts are cut to so many bytes, and to half of that as long as the answer is still too long.
const TEXT_BYTES_FIRST: usize = 8 << 10;
/// No id, name or cursor is longer than this.
const TEXT_BYTES_LAST: usize = 256;
/// Then lists are cut to so many items, and to half of that.
const ITEMS_FIRST: usize = 512;
/// What a host goes on to do as it stands, so that a part of it would be something else.
const WHOLE: &str = "updatedInput";

/// Whether an answer needs no cutting.
pub(crate) fn fits(answer: &Value) -> bool {
    answer.to_string().len() <= ANSWER_BYTES_MAX
}

/// The answer, cut when it is too long: long texts first, then lists. It says so, and where to read the whole.
pub(crate) fn fitted(mut answer: Value) -> Value {
    let whole = answer.as_object_mut().and_then(|fields| fields.remove(WHOLE));
    let (mut bytes, mut items) = (TEXT_BYTES_FIRST, ITEMS_FIRST);
    while !fits(&answer) && 0 < items {
        match TEXT_BYTES_LAST <= bytes {
            true => {
                cut(&mut answer, Most { bytes, items: usize::MAX });
                bytes /= 2;
            }
            false => {
                cut(&mut answer, Most { bytes: TEXT_BYTES_LAST, items });
                items /= 2;
            }
        }
        answer = with(answer, "truncated", true);
        if let Some(resource) = resource_of(&answer) {
            answer = with(answer, "resource", resource);
        }
    }
    match whole {
        Some(whole) => with(answer, WHOLE, whole),
        None => answer,
    }
}

/// What is left of a text and of a list.
#[derive(Clone, Copy)]
struct Most {
    bytes: usize,
    items: usize,
}

fn cut(value: &mut Value, most: Most) {
    match value {
        Value::String(text) => text.truncate(text.floor_char_boundary(most.bytes)),
        Value::Array(items) => {
            items.truncate(most.items);
            items.iter_mut().for_each(|item| cut(item, most));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| cut(field, most)),
        _ => {}
    }
}

/// Where what an answer is about can be read as a whole.
fn resource_of(answer: &Value) -> Option<String> {
    let fields: &Map<String, Value> = answer.as_object()?;
    ["run", "schedule"].into_iter().find_map(|kind| {
        let id = fields.get(kind)?.get("id")?.as_str()?;
        Some(format!("midwatch://{kind}/{id}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_answer_is_cut_to_fit_and_says_where_the_rest_is() {
        let short = json!({"run": {"id": "run_1"}, "said": "x".repeat(28_000)});
        assert_eq!(fitted(short.clone()), short);
        let texts = vec!["\u{e4}\n".repeat(20_000); 50];
        let long = json!({"schedule": {"id": "sch_1"}, "next": texts});
        let cut = fitted(long);
        assert!(cut.to_string().len() <= ANSWER_BYTES_MAX + 100, "{}", cut.to_string().len());
        assert_eq!(cut["truncated"], true);
        assert_eq!(cut["resource"], "midwatch://schedule/sch_1");
        let many = vec!["run_00066077485f9a080001ad7858d2768c"; 3_000];
        let cut = fitted(json!({"unknown": many, "approvals": many}));
        assert!(fits(&cut) && cut["truncated"] == true);
        assert!(100 < cut["unknown"].as_array().unwrap().len(), "no more than has to go");
        let input = json!({"content": "x".repeat(100_000)});
        let allowed = json!({"behavior": "allow", "updatedInput": input});
        assert_eq!(fitted(allowed.clone()), allowed);
    }
}
