//! The files that name metrics: the page of the documentation, the alerts and the dashboard.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{DEFINITIONS, Kind, page};

const ALERT_KEYS: &[&str] = &["alert", "expr", "for", "severity", "summary", "link"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

/// The metrics that a query names.
fn named(query: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = query.split(|letter| !is_part(letter));
    words.filter(|word| word.starts_with("midwatch_")).map(str::to_owned).collect()
}

/// The names of all samples.
fn known() -> BTreeSet<String> {
    let names = |name: &str, suffixes: &[&str]| {
        suffixes.iter().map(|suffix| format!("{name}{suffix}")).collect::<Vec<_>>()
    };
    let samples = DEFINITIONS.iter().flat_map(|it| match it.kind {
        Kind::Histogram(_) => names(it.name, &["_bucket", "_sum", "_count"]),
        Kind::Counter | Kind::Gauge => names(it.name, &[""]),
    });
    samples.collect()
}

/// Every metric that a query names exists, and every label value that it selects.
fn check_query(place: &str, query: &str) {
    let (names, known) = (named(query), known());
    let unknown: Vec<&String> = names.difference(&known).collect();
    assert!(unknown.is_empty(), "{place} names {unknown:?}, which are no metrics");
    let opened = query.matches(['(', '{', '[']).count();
    assert_eq!(opened, query.matches([')', '}', ']']).count(), "{place}: {query}");
    for (label, value) in selected(query) {
        let values = DEFINITIONS.iter().flat_map(|it| it.labels).filter(|it| it.name == label);
        let values: Vec<&str> = values.flat_map(|it| it.values).copied().collect();
        assert!(values.contains(&value), "{place}: no metric has {label}=`{value}`");
    }
}

/// The labels and values that a query selects by `label="value"`.
fn selected(query: &str) -> Vec<(&str, &str)> {
    let selectors = query.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let pairs = selectors.flat_map(|selector| selector.split(','));
    let pairs = pairs.filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(label, _)| !["job", "le"].contains(label))
        .map(|(label, value)| (label, value.trim_matches('"')))
        .collect()
}

#[test]
fn metrics_page_is_fresh() {
    let (page, name) = (page(), "docs/metrics.md");
    if fs::read_to_string(path(name)).unwrap_or_default() != page {
        fs::write(path(name), page).unwrap();
        panic!("{name} was stale and has been rewritten: commit it");
    }
}

#[test]
fn the_dashboard_uses_metrics_that_exist_and_any_data_source() {
    fn collect<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v Value>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if name == key {
                        found.push(value);
                    }
                    collect(value, key, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|it| collect(it, key, found)),
            _ => {}
        }
    }
    let dashboard: Value = serde_json::from_str(&read("dist/grafana/midwatch.json")).unwrap();
    assert_eq!(dashboard["uid"], "midwatch");
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let (mut queries, mut sources) = (Vec::new(), Vec::new());
    collect(&dashboard["panels"], "expr", &mut queries);
    collect(&dashboard["panels"], "datasource", &mut sources);
    assert!(20 <= queries.len());
    for query in &queries {
        check_query("the dashboard", query.as_str().unwrap());
    }
    for source in sources {
        assert_eq!(source["uid"], "${datasource}");
    }
    let used: BTreeSet<String> =
        queries.iter().flat_map(|it| named(it.as_str().unwrap())).collect();
    for definition in DEFINITIONS {
        let is_shown = used.iter().any(|it| it.starts_with(definition.name));
        assert!(is_shown, "the dashboard does not show {}", definition.name);
    }
}

#[test]
fn alerts_use_metrics_that_exist_and_link_their_page() {
    let mut alerts: Vec<Vec<(String, String)>> = Vec::new();
    let text = read("dist/alerts.yml");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for line in lines {
        let Some((key, value)) = line.trim_start().trim_start_matches("- ").split_once(':') else {
            panic!("not a key and its value: {line}");
        };
        match key {
            "groups" | "rules" | "name" | "labels" | "annotations" => continue,
            "alert" => alerts.push(Vec::new()),
            _ => {}
        }
        assert!(ALERT_KEYS.contains(&key), "unknown key: {line}");
        alerts.last_mut().unwrap().push((key.to_owned(), value.trim().to_owned()));
    }
    assert_eq!(alerts.len(), 13);
    let mut names = BTreeSet::new();
    for alert in &alerts {
        let get = |key: &str| {
            let found = alert.iter().find(|(its, _)| its == key);
            found
                .map(|(_, value)| value.as_str())
                .unwrap_or_else(|| panic!("{alert:?} has no {key}"))
        };
        assert!(names.insert(get("alert")), "{alert:?} is repeated");
        check_query(get("alert"), get("expr"));
        assert!(["page", "ticket"].contains(&get("severity")), "{alert:?}");
        assert!(get("link").starts_with('/') && !get("summary").is_empty(), "{alert:?}");
    }
}
