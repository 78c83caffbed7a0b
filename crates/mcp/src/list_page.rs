//! Answers with a page of a list.

use api::{Code, Error};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::schema::properties_mut;
use crate::tool::Tool;
use crate::truncation;

/// Default number of items in a page. Such a page has about 8 KB.
const PAGE_ITEMS_DEFAULT: u64 = 20;
/// Maximum number of items in a page.
const PAGE_ITEMS_MAX: u64 = 100;
/// The argument with the maximum number of items.
const LIMIT: &str = "limit";

/// The schema of `limit`, which allows fewer items than the request does.
pub(crate) fn adapt_schema(schema: &mut JsonObject) {
    let limit = json!({
        "type": "integer",
        "minimum": 1,
        "maximum": PAGE_ITEMS_MAX,
        "description": format!("1 to {PAGE_ITEMS_MAX}. Default: {PAGE_ITEMS_DEFAULT}."),
    });
    if let Some(properties) = properties_mut(schema) {
        properties.insert(LIMIT.to_owned(), limit);
    }
}

/// Loads a page that fits into an answer: while it is too long, a page of half as many items is loaded instead, so that
/// its cursor matches its items.
pub(crate) async fn load_page<A>(
    tool: &Tool,
    mut arguments: JsonObject,
    load: impl Fn(JsonObject) -> A,
) -> Result<Value, Error>
where
    A: Future<Output = Result<Value, Error>>,
{
    let mut limit = match arguments.get(LIMIT) {
        None | Some(Value::Null) => PAGE_ITEMS_DEFAULT,
        Some(limit) => match limit.as_u64() {
            Some(limit) => limit,
            // The request refuses it.
            None => return load(arguments).await,
        },
    };
    if !(1..=PAGE_ITEMS_MAX).contains(&limit) {
        let what = format!("`{LIMIT}` must be 1 to {PAGE_ITEMS_MAX}, not {limit}");
        let hint = "use the `cursor` of the answer to get more";
        return Err(Error::new(Code::InvalidInput, what).hint(hint));
    }
    loop {
        arguments.insert(LIMIT.to_owned(), limit.into());
        let answer = select(tool, load(arguments.clone()).await?);
        if limit == 1 || truncation::fits(&answer) {
            return Ok(answer);
        }
        limit /= 2;
    }
}

/// The fields of the response that the tool's output has, and the fields of each item that the tool lists. None of them
/// is null.
fn select(tool: &Tool, mut response: Value) -> Value {
    if let Value::Object(fields) = &mut response {
        fields.retain(|name, value| tool.has_output_field(name) && !value.is_null());
        let items = fields.values_mut().filter_map(Value::as_array_mut).flatten();
        for item in items.filter_map(Value::as_object_mut) {
            item.retain(|name, value| {
                tool.item_fields.contains(&name.as_str()) && !value.is_null()
            });
        }
    }
    response
}
