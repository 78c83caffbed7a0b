//! The startup checks that need an open data directory. The rules are in `kernel::posture`.

use std::sync::Arc;

use agents::Secrets;
use api::{Code, Error};
use kernel::Noun;
use kernel::agent::Agent;
use kernel::backend::SecretRef;
use kernel::posture::{self, Check, Consequence, Finding, Posture, Purpose};

use crate::authorize::tokens::token_hash;
use crate::commit::codec;
use crate::engine::Engine;
use crate::engine::working_directories::check_working_directories;
use crate::errors;

/// Agents read at a time.
const PAGE_ITEMS: usize = 1_000;

/// The secrets that the configuration names, by key, and a way to read any other.
#[derive(Debug)]
pub struct ConfiguredSecrets {
    pub keys: Vec<(&'static str, SecretRef)>,
    pub secrets: Arc<dyn Secrets>,
}

/// The first finding that refuses the start, as an error that names its check.
pub fn refusal(posture: Posture, findings: &[Finding]) -> Option<Error> {
    let mut refusing = findings.iter().filter(|it| refuses(it, posture));
    let first = refusing.next()?;
    let more = match refusing.count() {
        0 => String::new(),
        more => format!(" ({more} more: `midwatch doctor` shows them)"),
    };
    let what = format!("the check `{}` refuses: {}{more}", first.check.name(), first.problem);
    Some(Error::new(Code::UnsafeSetup, what).hint(&first.fix))
}

pub(crate) fn wire(finding: &Finding, posture: Posture) -> api::Finding {
    api::Finding {
        check: finding.check.name().to_owned(),
        refuses: refuses(finding, posture),
        what: finding.problem.clone(),
        fix: finding.fix.clone(),
    }
}

fn refuses(finding: &Finding, posture: Posture) -> bool {
    finding.check.consequence(posture) == Consequence::Refuse
}

impl Engine {
    /// What the checks find now.
    pub async fn findings(&self) -> Result<Vec<Finding>, Error> {
        let agents = self.load_agents().await?;
        let variables = &self.installation.settings.secret_variables;
        let leaked = agents.iter().filter_map(|it| posture::check_secrets(it, variables));
        let mut found: Vec<Finding> = leaked.collect();
        found.extend(posture::check_shared_secrets(&self.purposes_of_secrets(&agents).await?));
        found.extend(self.store.write_stop_reason().map(|reason| {
            let fix = "`midwatch ledger verify` shows where; `midwatch ledger rebuild --from-export` \
                       recreates the directory from exports";
            Finding::new(Check::Ledger, reason.to_string(), fix)
        }));
        let configured = self.installation.settings.posture;
        found.extend(posture::check_posture(configured, self.installation.posture));
        let last = self.store.head().await.map_err(errors::store)?.ts_us();
        // A new ledger has no time yet.
        if 0 < last {
            found.extend(posture::check_clock(self.time.shown(), self.time.ledger()));
        }
        found.extend(self.approver_findings(&self.config.active()).await?);
        found.extend(check_working_directories(&agents));
        Ok(found)
    }

    /// The purpose of each secret that can be read, and its hash.
    async fn purposes_of_secrets(&self, agents: &[Agent]) -> Result<Vec<(Purpose, String)>, Error> {
        let Some(ConfiguredSecrets { keys, secrets }) = &self.secrets else {
            return Ok(Vec::new());
        };
        let hash = |secret: &SecretRef| secrets.read(secret).ok().map(|it| token_hash(&it));
        let keys = keys.iter().filter_map(|(key, it)| Some((Purpose::Key(key), hash(it)?)));
        let agents = agents.iter().filter_map(|agent| {
            let hash = hash(agent.credential.as_ref()?)?;
            Some((Purpose::Agent(agent.name.clone()), hash))
        });
        let tokens = self.tokens.all().await.unwrap_or_default().into_iter();
        let tokens = tokens.filter_map(|(_, token)| {
            let name = token.actor()?.into_name();
            Some((Purpose::Token(name), token.hash.into()))
        });
        Ok(keys.chain(agents).chain(tokens).collect())
    }

    /// All agents that can be read.
    async fn load_agents(&self) -> Result<Vec<Agent>, Error> {
        let mut agents = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.store.list(Noun::Agent.name(), &after, PAGE_ITEMS).await;
            let page = page.map_err(errors::store)?;
            agents.extend(page.iter().filter_map(|item| codec::decode_item(item).ok()).flatten());
            match page.into_iter().next_back() {
                Some(last) => after = last.id,
                None => return Ok(agents),
            }
        }
    }
}
