//! Whether enough people can approve the runs of each schedule, since its authors cannot.
//!
//! Who can approve at all is a rule of [`crate::posture`]; who is excluded from one approval, of [`crate::approval`]. This
//! module counts what is left.

use crate::actor::Role;
use crate::approval::Requirements;
use crate::posture::{Check, Finding, Trust, how_to_add_approver};
use crate::principal::Principal;
use crate::token::PersonName;

/// A person who can approve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approver {
    pub name: PersonName,
    pub role: Role,
}

/// A schedule whose approvals too few people can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    schedule: String,
    /// The authors of the schedule and of its agent, as far as they are known people.
    authors: Vec<PersonName>,
    needed: usize,
    found: usize,
}

impl Shortage {
    /// The shortage of a schedule with this name, if it has one. `authors` are those of the schedule and of its agent.
    pub fn of(
        schedule: &str,
        required: Requirements,
        authors: &[Principal],
        approvers: &[Approver],
    ) -> Option<Shortage> {
        // Otherwise authors may approve too, and the user of the machine may.
        if !required.needs_personal_token {
            return None;
        }
        let may_approve = |approver: &&Approver| {
            let agent = approver.name.as_str().parse().ok().map(Principal::Agent);
            required.role <= approver.role
                && !authors.contains(&Principal::Person(approver.name.clone()))
                && !agent.is_some_and(|agent| authors.contains(&agent))
        };
        let found = approvers.iter().filter(may_approve).count();
        let needed = usize::from(required.persons);
        let mut people: Vec<PersonName> = authors.iter().filter_map(known_person).collect();
        people.sort();
        people.dedup();
        let schedule = schedule.to_owned();
        (found < needed).then_some(Shortage { schedule, authors: people, needed, found })
    }

    fn missing(&self) -> usize {
        self.needed - self.found
    }
}

/// Reports the schedule that lacks most approvers, and how many others lack some.
pub fn check_schedules(trust: Trust, shortages: &[Shortage]) -> Option<Finding> {
    // The first of those that lack the same number.
    let worst = shortages.iter().rev().max_by_key(|it| it.missing())?;
    let Shortage { schedule, authors, needed, found } = worst;
    let authors: Vec<String> = authors.iter().map(|name| format!("`{name}`")).collect();
    let besides = match &*authors {
        [] => String::new(),
        [author] => format!(" besides its author {author}"),
        _ => format!(" besides its authors {}", authors.join(" and ")),
    };
    let approvers = if *needed == 1 { "approver" } else { "approvers" };
    let are = if *found == 1 { "is" } else { "are" };
    let others = match shortages.len() - 1 {
        0 => String::new(),
        1 => "; 1 more schedule lacks approvers".to_owned(),
        count => format!("; {count} more schedules lack approvers"),
    };
    let what = format!(
        "schedule `{schedule}` needs {needed} {approvers}{besides}; {found} {are} set up{others}"
    );
    Some(Finding::new(Check::ScheduleApprovers, what, how_to_add_approver(trust)))
}

fn known_person(author: &Principal) -> Option<PersonName> {
    match author {
        Principal::Person(name) => Some(name.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posture::Posture;

    const STRICT: Requirements = Requirements {
        persons: 1,
        role: Role::Operator,
        needs_personal_token: true,
        needs_signature: true,
    };

    /// `ada` is a person, `agent:ada` an agent, and `uid:1` the user of the machine.
    fn author(text: &str) -> Principal {
        match text.split_once(':') {
            Some(("agent", name)) => Principal::Agent(name.parse().unwrap()),
            Some(_) => Principal::User(1),
            None => Principal::Person(text.parse().unwrap()),
        }
    }

    fn check(required: Requirements, authors: &str, approvers: &str, expected: &str) {
        let approver = |text: &str| {
            let (name, role) = text.split_once(':').unwrap_or((text, "operator"));
            let role = if role == "operator" { Role::Operator } else { Role::Maintainer };
            Approver { name: name.parse().unwrap(), role }
        };
        let authors: Vec<Principal> = authors.split_whitespace().map(author).collect();
        let approvers: Vec<Approver> = approvers.split_whitespace().map(approver).collect();
        let found = Shortage::of("standup", required, &authors, &approvers);
        let found = check_schedules(Posture::StrictProd.trust(), found.as_slice());
        assert_eq!(found.map_or(String::new(), |it| it.problem), expected);
    }

    #[test]
    fn authors_of_schedule_and_agent_do_not_count() {
        check(STRICT, "ada", "ada bob", "");
        let needed =
            "schedule `standup` needs 1 approver besides its authors `ada` and `bob`; 0 are set up";
        check(STRICT, "ada bob", "ada bob", needed);
        check(STRICT, "ada bob", "ada bob cem", "");
        let two = Requirements { persons: 2, ..STRICT };
        let needed =
            "schedule `standup` needs 2 approvers besides its authors `ada` and `bob`; 1 is set up";
        check(two, "bob ada", "ada bob cem", needed);
        // An author that is no known person is not named; the requirements count it.
        let needed = "schedule `standup` needs 2 approvers besides its author `ada`; 1 is set up";
        check(two, "ada uid:1", "ada bob", needed);
        check(two, "uid:1", "ada bob", "");
        let needed = "schedule `standup` needs 1 approver; 0 are set up";
        check(STRICT, "agent:ada", "ada", needed);
        let maintainers = Requirements { role: Role::Maintainer, ..STRICT };
        let needed = "schedule `standup` needs 1 approver besides its author `ada`; 0 are set up";
        check(maintainers, "ada", "ada:maintainer bob", needed);
        check(maintainers, "ada", "ada bob:maintainer", "");
        let anyone = Requirements { needs_personal_token: false, ..STRICT };
        check(anyone, "ada", "", "");
    }

    #[test]
    fn schedule_that_lacks_most_is_named() {
        let shortage = |name: &str, needed| Shortage {
            schedule: name.to_owned(),
            authors: Vec::new(),
            needed,
            found: 0,
        };
        let problem = |shortages: &[Shortage]| {
            check_schedules(Posture::StrictProd.trust(), shortages).map(|it| it.problem)
        };
        assert_eq!(problem(&[]), None);
        let all = [shortage("a", 1), shortage("b", 2), shortage("c", 2)];
        let expected =
            "schedule `b` needs 2 approvers; 0 are set up; 2 more schedules lack approvers";
        assert_eq!(problem(&all).as_deref(), Some(expected));
    }
}
