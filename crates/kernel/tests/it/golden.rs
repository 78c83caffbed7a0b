//! Stored formats never drift: one sample per event kind and version, with the state it leads to.
//!
//! `tests/golden/manifest` lists the samples with their hashes and only ever grows. A changed sample
//! or line is a changed format, and existing ledgers cannot be changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use kernel::event::Label;
use kernel::private_fields::PrivateFields;
use kernel::{EventBody, Tables};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    pub(crate) kind: String,
    pub(crate) version: u16,
    noun: String,
    pub(crate) noun_id: String,
    pub(crate) facts: Value,
    #[serde(rename = "words", default)]
    private_fields: PrivateFields,
    /// The derived rows and counters after this one event.
    tables: Value,
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Name and hash of each sample, in the manifest's order.
fn manifest() -> Vec<(String, String)> {
    let text = fs::read_to_string(directory().join("manifest")).unwrap();
    let pair = |line: &str| {
        let (hash, name) = line.split_once("  ").unwrap();
        (name.to_owned(), hash.to_owned())
    };
    text.lines().map(pair).collect()
}

/// Every sample with its name.
pub(crate) fn samples() -> Vec<(String, Sample)> {
    let read = |(name, _): (String, String)| {
        let text = fs::read_to_string(directory().join(&name)).unwrap();
        (name, serde_json::from_str(&text).unwrap())
    };
    manifest().into_iter().map(read).collect()
}

fn tables_as_json(tables: &Tables) -> Value {
    let rows = tables.rows.iter().map(|((noun, id), row)| {
        json!({ "noun": noun.name(), "id": id, "version": row.version, "state": row.state })
    });
    let counters = tables.counters.iter().map(|(counter, value)| json!([counter.name(), value]));
    json!({ "rows": rows.collect::<Vec<_>>(), "counters": counters.collect::<Vec<_>>() })
}

#[test]
fn every_sample_decodes_and_leads_to_its_state() {
    for (name, sample) in samples() {
        let label = Label { kind: &sample.kind, version: sample.version, noun_id: &sample.noun_id };
        let mut body = EventBody::decode(label, sample.facts.clone())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(body.noun().name(), sample.noun, "{name}");
        assert_eq!(body.label().kind, sample.kind, "{name}");
        assert_eq!(serde_json::to_value(&body).unwrap(), sample.facts, "{name}");
        assert!(body.take_private_fields().is_empty(), "{name}: facts hold no private fields");
        body.put_private_fields(sample.private_fields.clone());
        assert_eq!(body.clone().take_private_fields(), sample.private_fields, "{name}");
        let mut tables = Tables::default();
        tables.apply(&body);
        assert_eq!(tables_as_json(&tables), sample.tables, "{name}");
    }
}

#[test]
fn no_sample_has_changed() {
    for (name, hash) in manifest() {
        let bytes = fs::read(directory().join(&name)).unwrap();
        let found: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, hash, "{name} was changed: add a new version of the kind instead");
    }
}

#[test]
fn every_kind_has_a_sample() {
    let sampled: BTreeSet<String> = manifest().into_iter().map(|(name, _)| name).collect();
    let mut kinds = BTreeSet::new();
    for (kind, version) in EventBody::kinds() {
        assert!(kinds.insert((kind, version)), "two nouns have the kind {kind}");
        let has_one = sampled.iter().any(|name| name.starts_with(&format!("{kind}.{version}.")));
        assert!(
            has_one,
            "add tests/golden/{kind}.{version}.NAME.json and its line in the manifest"
        );
    }
}

#[test]
fn unknown_kinds_versions_and_fields_are_errors() {
    let decode = |kind, version, noun_id, facts: Value| {
        EventBody::decode(Label { kind, version, noun_id }, facts).unwrap_err().to_string()
    };
    let cases = [
        (
            decode("agent.vanished", 1, "ada", json!({})),
            "unknown event kind `agent.vanished` version 1",
        ),
        (
            decode("agent.removed", 2, "ada", json!({"at": 1})),
            "unknown event kind `agent.removed` version 2",
        ),
        (decode("agent.removed", 1, "A", json!({"at": 1})), "`A` is not a valid agent name"),
        (decode("agent.removed", 1, "ada", json!({"at": 1, "x": 2})), "unknown field `x`"),
    ];
    for (error, expected) in cases {
        assert!(error.starts_with(expected), "{error}");
    }
}
