//! The test vectors of the scheduling reference.

use calendar::Cron;
use serde::Deserialize;

use crate::support::{at, cron, next};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    id: String,
    expr: String,
    tz: String,
    from: String,
    count: usize,
    /// Absent: the expression is refused.
    expect: Option<Vec<String>>,
    why: String,
}

#[test]
fn all_vectors_pass() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../cron-vectors.json")).unwrap();
    assert_eq!(vectors.len(), 26);
    for Vector { id, expr, tz, from, count, expect, why } in vectors {
        let Some(expect) = expect else {
            assert!(expr.parse::<Cron>().is_err(), "{id}: {why}");
            continue;
        };
        let expect: Vec<i64> = expect.iter().map(|text| at(text)).collect();
        assert_eq!(next(&cron(&expr, &tz), at(&from), count), expect, "{id}: {why}");
    }
}
