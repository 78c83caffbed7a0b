//! The TOML document: the keys that it sets, and unknown keys and sections.
//!
//! Values are checked elsewhere, in `kind.rs` and `value.rs`.

use std::ops::Range;

use api::nearest;
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeString, DeTable, DeValue};

use super::error::Fault;
use super::keys::{KEYS, Key, SECTIONS};
use super::raw::{LIST, Raw};
use super::text::quoted;

/// A key that the file sets.
pub(super) struct Entry<'t> {
    pub(super) key: &'static Key,
    pub(super) value: Raw<'t>,
    pub(super) key_span: Range<usize>,
    pub(super) value_span: Range<usize>,
}

type EntryResult<'t> = Result<Entry<'t>, Fault>;

/// The entries and faults of the file, in its order.
pub(super) fn entries(text: &str) -> Vec<EntryResult<'_>> {
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => return vec![Err(not_toml(&error, text))],
    };
    let mut found = Vec::new();
    for (name, value) in table {
        let section = SECTIONS.iter().find(|section| section.name == name.get_ref());
        match (section, value) {
            (None, value) => found.push(entry("", name, value)),
            (Some(section), value) => found.extend(section_entries(section.name, &name, value)),
        }
    }
    // The parser sorts by name.
    found.sort_by_key(|found| match found {
        Ok(entry) => entry.key_span.start,
        Err(fault) => fault.span.start,
    });
    found
}

fn section_entries<'t>(
    section: &str,
    name: &Spanned<DeString>,
    value: Spanned<DeValue<'t>>,
) -> Vec<EntryResult<'t>> {
    match value.into_inner() {
        DeValue::Table(table) => {
            table.into_iter().map(|(name, value)| entry(section, name, value)).collect()
        }
        value => vec![Err(Fault {
            span: name.span(),
            message: format!("`{section}` is a section, not {}", raw(value).described()),
            hint: Some(format!("write `[{section}]` on a separate line, and its keys below it")),
            is_secret: false,
        })],
    }
}

fn entry<'t>(
    section: &str,
    name: Spanned<DeString>,
    value: Spanned<DeValue<'t>>,
) -> EntryResult<'t> {
    let (key_span, name) = (name.span(), name.into_inner());
    let key = KEYS.iter().find(|key| key.section() == section && key.name() == name);
    let (value_span, value) = (value.span(), value.into_inner());
    match key {
        Some(key) => Ok(Entry { key, value: raw(value), key_span, value_span }),
        None if section.is_empty() && value.is_table() => Err(unknown_section(&name, key_span)),
        None => Err(unknown_key(section, &name, key_span)),
    }
}

fn raw(value: DeValue<'_>) -> Raw<'_> {
    match value {
        DeValue::String(text) => Raw::Text(text),
        DeValue::Integer(number) => integer(&number),
        DeValue::Boolean(flag) => Raw::Boolean(flag),
        DeValue::Float(_) => Raw::Other("a fraction"),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Array(values) => list(values),
        DeValue::Table(_) => Raw::Other("a section"),
    }
}

/// A list of strings; no key accepts any other list.
fn list(values: DeArray<'_>) -> Raw<'_> {
    let word = |value: Spanned<DeValue<'_>>| match value.into_inner() {
        DeValue::String(word) => Some(word.into_owned()),
        _ => None,
    };
    let words: Option<Vec<String>> = values.into_iter().map(word).collect();
    words.map_or(Raw::Other(LIST), Raw::List)
}

fn integer(number: &DeInteger) -> Raw<'static> {
    let parsed = i128::from_str_radix(number.as_str(), number.radix());
    parsed.map_or(Raw::Other("such a large number"), Raw::Integer)
}

fn not_toml(error: &toml::de::Error, text: &str) -> Fault {
    let end = text.len();
    Fault {
        span: error.span().unwrap_or(end..end),
        message: format!("the file is not valid TOML: {}", error.message()),
        hint: None,
        is_secret: false,
    }
}

fn unknown_section(name: &str, span: Range<usize>) -> Fault {
    let names = || SECTIONS.iter().map(|section| section.name);
    let hint = nearest(name, names()).map_or_else(
        || format!("the sections are {}", names().map(code).collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Fault {
        span,
        message: format!("unknown section {}", quoted(name)),
        hint: Some(hint),
        is_secret: false,
    }
}

fn unknown_key(section: &str, name: &str, span: Range<usize>) -> Fault {
    let path = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
    let hint = Some(hint_for(section, name));
    Fault { span, message: format!("unknown key {}", quoted(&path)), hint, is_secret: false }
}

/// The key may be misspelt or in the wrong section: in TOML, a top-level key below a section belongs to
/// that section.
fn hint_for(section: &str, name: &str) -> String {
    let here = || KEYS.iter().filter(|key| key.section() == section);
    let by_name = |near: &str| KEYS.iter().find(|key| key.name() == near);
    let elsewhere = || nearest(name, KEYS.iter().map(Key::name)).and_then(by_name);
    let near = nearest(name, here().map(Key::name));
    let near = near.and_then(|near| here().find(|key| key.name() == near)).or_else(elsewhere);
    match near {
        Some(key) if key.section().is_empty() && !section.is_empty() => {
            format!("`{}` belongs at the top of the file, above the first section", key.path)
        }
        Some(key) => format!("did you mean `{}`?", key.path),
        None => {
            let names: Vec<String> = here().map(|key| code(key.path)).collect();
            format!("the keys here are {}", names.join(", "))
        }
    }
}

fn code(word: &str) -> String {
    format!("`{word}`")
}
