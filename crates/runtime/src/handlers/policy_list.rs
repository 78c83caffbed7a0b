//! Lists the active rules, with what is built in besides them.

use api::{Error, PolicyCondition, PolicyList, PolicyRule, PolicyRules, Serve};
use kernel::policy_decision::Approvers;
use policy::Rule;

use crate::commit::caller::Caller;
use crate::engine::Engine;

impl Serve<PolicyList> for Engine {
    async fn serve(&self, _: &Caller, _: PolicyList) -> Result<PolicyRules, Error> {
        let config = self.config.active();
        let built_in = config.rules.built_in().map(|(name, verdict, when)| PolicyRule {
            name: name.to_owned(),
            origin: "posture".to_owned(),
            line: None,
            effect: verdict.name().to_owned(),
            classes: Vec::new(),
            conditions: Vec::new(),
            approvers: None,
            when: Some(when.to_owned()),
        });
        let mut rules: Vec<PolicyRule> = config.rules.iter().map(wire).collect();
        // The operator's own come first, in the order of their file.
        rules.sort_by_key(|rule| (rule.line.is_none(), rule.line));
        rules.extend(built_in);
        let (posture, policy) = (config.rules.posture().name(), config.rules.version());
        Ok(PolicyRules { posture: posture.to_owned(), policy: policy.to_owned(), rules })
    }
}

fn wire(rule: &Rule) -> PolicyRule {
    let origin = rule.name().split_once('/').map_or(rule.name(), |(origin, _)| origin);
    let conditions = rule.conditions().into_iter();
    let Approvers { persons, role } = rule.approvers();
    PolicyRule {
        name: rule.name().to_owned(),
        origin: origin.to_owned(),
        line: (!rule.is_baseline()).then_some(rule.line() as u64),
        effect: rule.verdict().name().to_owned(),
        classes: rule.capabilities(),
        conditions: conditions
            .map(|(key, values)| PolicyCondition { key: key.to_owned(), values })
            .collect(),
        approvers: (rule.approvers() != Approvers::default())
            .then(|| format!("{persons} with the role {}", role.name())),
        when: None,
    }
}
