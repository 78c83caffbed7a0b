//! What an open watch can tell of the checks that are made before it is kept. The rules are the
//! kernel's; here is what they are asked about.

use std::collections::BTreeSet;
use std::sync::Arc;

use agents::Secrets;
use api::{Checked, Code, Error};
use kernel::agent::Agent;
use kernel::backend::SecretRef;
use kernel::posture::{self, Check, Consequence, Finding, Purpose};
use kernel::ruling::Posture;
use kernel::token::{PersonName, Token};
use kernel::{Noun, State, Timestamp, TokenId};

use crate::errors;
use crate::standing::InForce;
use crate::stored;
use crate::tokens::token_hash;
use crate::watch::Engine;

/// Agents that are looked at in one go.
const PAGE_ITEMS: usize = 1_000;

/// The secrets of the configuration, by their keys, and where every other is found.
#[derive(Debug)]
pub struct Kept {
    pub keys: Vec<(&'static str, SecretRef)>,
    pub secrets: Arc<dyn Secrets>,
}

/// The first finding that keeps the watch from starting, as an error that names the check.
pub fn refusal(posture: Posture, found: &[Finding]) -> Option<Error> {
    let mut refusing = found.iter().filter(|it| refuses(it, posture));
    let first = refusing.next()?;
    let more = match refusing.count() {
        0 => String::new(),
        more => format!(" ({more} more: `midwatch doctor` shows them)"),
    };
    let what = format!("the check `{}` refuses: {}{more}", first.check.name(), first.what);
    Some(Error::new(Code::UnsafeSetup, what).hint(&first.fix))
}

pub(crate) fn wire(finding: &Finding, posture: Posture) -> api::Finding {
    api::Finding {
        check: finding.check.name().to_owned(),
        refuses: refuses(finding, posture),
        what: finding.what.clone(),
        fix: finding.fix.clone(),
    }
}

fn refuses(finding: &Finding, posture: Posture) -> bool {
    finding.check.consequence(posture) == Consequence::Refuse
}

impl InForce {
    /// Whether enough people have a token with which they can approve.
    pub(crate) fn check_approvers(&self, tokens: Vec<(TokenId, Token)>) -> Option<Finding> {
        let can = tokens.into_iter().filter(|(_, token)| self.trust.lets_token_approve(token));
        let people: BTreeSet<PersonName> = can.map(|(_, token)| token.name).collect();
        posture::check_approvers(self.trust, people.len(), self.rules.persons_max())
    }
}

impl Engine {
    /// All that is found now.
    pub async fn findings(&self) -> Result<Vec<Finding>, Error> {
        let agents = self.every_agent().await?;
        let variables = &self.settings().secret_variables;
        let given = agents.iter().filter_map(|it| posture::check_secrets(it, variables));
        let mut found: Vec<Finding> = given.collect();
        found.extend(posture::check_shared_secrets(&self.ends_of_secrets(&agents).await?));
        found.extend(self.store().stopped_writing().map(|reason| {
            let fix = "`midwatch ledger verify` shows where; `midwatch ledger rebuild --from-export` \
                       recreates the directory from exports";
            Finding::new(Check::Log, reason.to_string(), fix)
        }));
        found.extend(posture::check_posture(self.settings().posture, self.posture()));
        let last = self.store().head().await.map_err(errors::store)?.ts_us();
        found.extend(posture::check_clock(self.now(), Timestamp::from_micros(last)));
        // Tokens that cannot be read let nobody in.
        let tokens = self.tokens().await.unwrap_or_default();
        found.extend(self.in_force().check_approvers(tokens));
        Ok(found)
    }

    /// What was found before this watch was kept, and did not keep it from that.
    pub fn started_with(&self, found: Vec<Finding>) {
        let _ = self.found().set(found);
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let found = self.found().get().map(Vec::as_slice).unwrap_or_default();
        found.iter().map(|it| it.check.name().to_owned()).collect()
    }

    pub(crate) async fn check_ask(&self) -> Result<Checked, Error> {
        let (found, posture) = (self.findings().await?, self.posture());
        Ok(Checked { findings: found.iter().map(|it| wire(it, posture)).collect() })
    }

    /// Where secrets are found, to see that none serves two ends. To be called once.
    pub fn keeps(&self, kept: Kept) {
        let _ = self.kept_secrets().set(kept);
    }

    /// What each secret is for that can be found, and its hash.
    async fn ends_of_secrets(&self, agents: &[Agent]) -> Result<Vec<(Purpose, String)>, Error> {
        let Some(Kept { keys, secrets }) = self.kept_secrets().get() else { return Ok(Vec::new()) };
        let hash = |secret: &SecretRef| secrets.read(secret).map(|it| token_hash(&it));
        let keys = keys.iter().filter_map(|(key, it)| Some((Purpose::Key(key), hash(it)?)));
        let agents = agents.iter().filter_map(|agent| {
            let hash = hash(agent.credential.as_ref()?)?;
            Some((Purpose::Agent(agent.name.clone()), hash))
        });
        // Tokens that cannot be read let nobody in.
        let tokens = self.tokens().await.unwrap_or_default().into_iter();
        let tokens = tokens.filter_map(|(_, token)| {
            let name = token.actor()?.name;
            Some((Purpose::Token(name), token.hash.into()))
        });
        Ok(keys.chain(agents).chain(tokens).collect())
    }

    /// One that cannot be read is not prompted either.
    async fn every_agent(&self) -> Result<Vec<Agent>, Error> {
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.store().list(Noun::Agent.name(), &after, PAGE_ITEMS).await;
            let page = page.map_err(errors::store)?;
            let bodies = page.iter().filter_map(|item| item.body.as_ref());
            let agents = bodies.filter_map(|body| stored::state(Noun::Agent, body).ok());
            found.extend(agents.filter_map(State::agent));
            match page.into_iter().next_back() {
                Some(last) => after = last.id,
                None => return Ok(found),
            }
        }
    }
}
