//! The counters and histograms of a process.

use crate::definitions as all;
use crate::exposition::Exposition;
use crate::series::{Counter, Histogram};

macro_rules! registry {
    ($($field:ident: $type:ident = $definition:ident;)*) => {
        /// Every metric that is counted when something happens. Gauges are computed at the scrape.
        #[derive(Debug)]
        pub struct Registry {
            $(pub $field: $type,)*
        }

        impl Default for Registry {
            fn default() -> Registry {
                Registry { $($field: $type::new(&all::$definition),)* }
            }
        }

        impl Registry {
            /// Writes all of them.
            pub fn write(&self, out: &mut Exposition) {
                $(self.$field.write(out);)*
            }
        }
    };
}

registry! {
    slots: Counter = SLOTS;
    slot_lateness: Histogram = SLOT_LATENESS;
    runs: Counter = RUNS;
    run_duration: Histogram = RUN_DURATION;
    approvals: Counter = APPROVALS;
    approval_wait: Histogram = APPROVAL_WAIT;
    policy_decisions: Counter = POLICY_DECISIONS;
    tokens: Counter = TOKENS;
    money: Counter = MONEY;
    tool_calls: Counter = TOOL_CALLS;
    tool_call: Histogram = TOOL_CALL;
    store_commit: Histogram = STORE_COMMIT;
    notices: Counter = NOTICES;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFINITIONS, Kind};

    #[test]
    fn the_registry_has_every_counter_and_histogram_but_those_of_the_store() {
        let mut out = Exposition::default();
        Registry::default().write(&mut out);
        let text = out.into_text();
        for definition in DEFINITIONS {
            let is_counted = definition.kind != Kind::Gauge;
            let is_written = text.contains(&format!("# TYPE {} ", definition.name));
            let of_store = [crate::LOG_ENTRIES.name, crate::STORE_BATCH.name];
            let is_expected = is_counted && !of_store.contains(&definition.name);
            assert_eq!(is_written, is_expected, "{}", definition.name);
        }
    }

    #[test]
    fn a_scrape_shows_what_was_recorded() {
        let registry = Registry::default();
        registry.runs.add(&["done", "builtin", "1"], 2);
        registry.money.add(&["letta"], 1_250_000);
        for micros in [100_000, 100_001, 9_000_000_000] {
            registry.run_duration.observe(&["failed", "tool", "2"], micros);
        }
        let mut out = Exposition::default();
        registry.write(&mut out);
        let text = out.into_text();
        let series = r#"outcome="failed",backend="tool",tier="2""#;
        for line in [
            r#"midwatch_runs_total{outcome="done",backend="builtin",tier="1"} 2"#.to_owned(),
            r#"midwatch_runs_total{outcome="done",backend="builtin",tier="2"} 0"#.to_owned(),
            r#"midwatch_money_total{backend="letta"} 1.25"#.to_owned(),
            format!(r#"midwatch_run_duration_seconds_bucket{{{series},le="0.1"}} 1"#),
            format!(r#"midwatch_run_duration_seconds_bucket{{{series},le="0.5"}} 2"#),
            format!(r#"midwatch_run_duration_seconds_bucket{{{series},le="3600"}} 2"#),
            format!(r#"midwatch_run_duration_seconds_bucket{{{series},le="+Inf"}} 3"#),
            format!("midwatch_run_duration_seconds_sum{{{series}}} 9000.200001"),
            format!("midwatch_run_duration_seconds_count{{{series}}} 3"),
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(!text.contains(r#"midwatch_run_duration_seconds_count{outcome="done""#));
    }
}
