//! What a fresh install allows, asks and denies.

use kernel::backend::Tier;
use kernel::ruling::{Posture, Request, Verdict};
use policy::{Rules, capability};

use crate::support::{at_path, check, prompt, request, shown};

const POSTURES: [Posture; 3] = [Posture::StrictProd, Posture::Staging, Posture::Debug];

#[test]
fn every_baseline_loads_without_faults() {
    for posture in POSTURES {
        let loaded =
            Rules::load(posture, &[]).unwrap_or_else(|faults| panic!("{}", shown(&faults)));
        assert_eq!(loaded.version(), Rules::baseline(posture).version());
        assert_eq!(loaded.posture(), posture);
        assert!(loaded.iter().all(|rule| rule.name().starts_with("baseline/")));
        assert_ne!(loaded.iter().count(), 0);
    }
}

#[test]
fn staging_and_debug_allow_reading_and_local_work_and_ask_about_the_rest() {
    for posture in [Posture::Staging, Posture::Debug] {
        let rules = Rules::baseline(posture);
        for class in capability::ALL {
            let expected = match class.tier {
                Tier::ReadOnly | Tier::LocalWrite => Verdict::Allow,
                Tier::External => Verdict::Ask,
            };
            let asked = at_path(class.name, "/srv/ada/notes");
            assert_eq!(rules.decide(&asked).verdict, expected, "{}", class.name);
        }
    }
}

#[test]
fn strict_prod_allows_reading_asks_about_work_and_denies_the_rest() {
    let rules = Rules::baseline(Posture::StrictProd);
    for class in capability::ALL {
        let (expected, reason) = match class.name {
            "agent.prompt" => (Verdict::Allow, "baseline/agents"),
            "filesystem.read" | "code.read" | "schedule.read" | "ledger.read" => {
                (Verdict::Allow, "baseline/reading")
            }
            "memory.read" | "memory.write" | "approval.ask" | "run.cancel" => {
                (Verdict::Allow, "baseline/harmless")
            }
            "schedule.create" | "schedule.change" | "run.start" | "message.send" | "code.write"
            | "filesystem.write" => (Verdict::Ask, "baseline/work"),
            "shell.run" | "payment.make" => (Verdict::Deny, "baseline/never"),
            _ => (Verdict::Deny, "@default"),
        };
        check(&rules, &request(class.name), expected, reason);
    }
}

#[test]
fn an_agent_that_reaches_outside_is_asked_about_in_every_posture() {
    for (posture, reason) in [
        (Posture::StrictProd, "baseline/agents-reaching-outside"),
        (Posture::Staging, "@tier-2"),
        (Posture::Debug, "@tier-2"),
    ] {
        let reaching = Request { tier: Tier::External, ..prompt("ada") };
        check(&Rules::baseline(posture), &reaching, Verdict::Ask, reason);
    }
}
