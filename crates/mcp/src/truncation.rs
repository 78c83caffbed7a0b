//! Truncates answers that are too long for a client.

use serde_json::{Map, Value};

use crate::tool::with_field;

/// Longest answer, in bytes of JSON. A client gets it twice, as a value and as text: 64 KiB at most.
const ANSWER_BYTES_MAX: usize = 28 << 10;
/// Texts are first cut to this length, then to half of it, as long as the answer is too long.
const TEXT_BYTES_START: usize = 8 << 10;
/// Texts are not cut below this length: no id, name or cursor is longer.
const TEXT_BYTES_MIN: usize = 256;
/// Then lists are cut to this many items, then to half of that.
const ITEMS_START: usize = 512;
/// A field that is never cut: the host executes it as it is.
const UNCUT_FIELD: &str = "updatedInput";

/// Whether an answer is short enough.
pub(crate) fn fits(answer: &Value) -> bool {
    answer.to_string().len() <= ANSWER_BYTES_MAX
}

/// Cuts an answer that is too long: texts first, then lists. It then has `truncated`, and `resource` if all of it can be
/// read there.
pub(crate) fn truncate_answer(mut answer: Value) -> Value {
    let uncut = answer.as_object_mut().and_then(|fields| fields.remove(UNCUT_FIELD));
    let (mut bytes, mut items) = (TEXT_BYTES_START, ITEMS_START);
    while !fits(&answer) && 0 < items {
        match TEXT_BYTES_MIN <= bytes {
            true => {
                cut(&mut answer, Limits { bytes, items: usize::MAX });
                bytes /= 2;
            }
            false => {
                cut(&mut answer, Limits { bytes: TEXT_BYTES_MIN, items });
                items /= 2;
            }
        }
        answer = with_field(answer, "truncated", true);
        if let Some(resource) = resource_of(&answer) {
            answer = with_field(answer, "resource", resource);
        }
    }
    match uncut {
        Some(uncut) => with_field(answer, UNCUT_FIELD, uncut),
        None => answer,
    }
}

/// The longest text and the longest list that are left.
#[derive(Clone, Copy)]
struct Limits {
    bytes: usize,
    items: usize,
}

fn cut(value: &mut Value, limits: Limits) {
    match value {
        Value::String(text) => text.truncate(text.floor_char_boundary(limits.bytes)),
        Value::Array(items) => {
            items.truncate(limits.items);
            items.iter_mut().for_each(|item| cut(item, limits));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| cut(field, limits)),
        _ => {}
    }
}

/// The resource of the run or schedule in an answer.
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
    fn a_long_answer_is_cut_and_names_its_resource() {
        let short = json!({"run": {"id": "run_1"}, "said": "x".repeat(28_000)});
        assert_eq!(truncate_answer(short.clone()), short);
        let texts = vec!["\u{e4}\n".repeat(20_000); 50];
        let long = json!({"schedule": {"id": "sch_1"}, "next": texts});
        let cut = truncate_answer(long);
        assert!(cut.to_string().len() <= ANSWER_BYTES_MAX + 100, "{}", cut.to_string().len());
        assert_eq!(cut["truncated"], true);
        assert_eq!(cut["resource"], "midwatch://schedule/sch_1");
        let many = vec!["run_00066077485f9a080001ad7858d2768c"; 3_000];
        let cut = truncate_answer(json!({"unknown": many, "approvals": many}));
        assert!(fits(&cut) && cut["truncated"] == true);
        assert!(100 < cut["unknown"].as_array().unwrap().len(), "cut more than needed");
        let input = json!({"content": "x".repeat(100_000)});
        let allowed = json!({"behavior": "allow", "updatedInput": input});
        assert_eq!(truncate_answer(allowed.clone()), allowed);
    }
}
