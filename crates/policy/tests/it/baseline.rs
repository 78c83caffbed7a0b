//! What the baselines allow, ask about and deny.

use kernel::backend::Tier;
use kernel::policy_decision::{Request, Verdict};
use kernel::posture::Posture;
use policy::{Rules, capability};

use crate::support::{at_path, check, prompt, request, to_lines};

const POSTURES: [Posture; 3] = [Posture::StrictProd, Posture::Staging, Posture::Debug];

#[test]
fn every_baseline_loads_without_errors() {
    for posture in POSTURES {
        let loaded =
            Rules::load(posture, &[]).unwrap_or_else(|errors| panic!("{}", to_lines(&errors)));
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
        for capability in capability::ALL {
            let expected = match capability.tier {
                Tier::ReadOnly | Tier::LocalWrite => Verdict::Allow,
                Tier::External => Verdict::Ask,
            };
            let request = at_path(capability.name, "/srv/ada/notes");
            assert_eq!(rules.decide(&request).verdict, expected, "{}", capability.name);
        }
    }
}

#[test]
fn strict_prod_allows_reading_asks_about_work_and_denies_the_rest() {
    let rules = Rules::baseline(Posture::StrictProd);
    for capability in capability::ALL {
        let (expected, reason) = match capability.name {
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
        check(&rules, &request(capability.name), expected, reason);
    }
}

#[test]
fn prompting_an_external_agent_is_asked_about_in_every_posture() {
    for (posture, reason) in [
        (Posture::StrictProd, "baseline/agents-reaching-outside"),
        (Posture::Staging, "@tier-2"),
        (Posture::Debug, "@tier-2"),
    ] {
        let reaching = Request { tier: Tier::External, ..prompt("ada") };
        check(&Rules::baseline(posture), &reaching, Verdict::Ask, reason);
    }
}
