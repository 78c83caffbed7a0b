//! What a server of Letta's tells about itself and its agents, without a prompt to any of them.

use std::time::Duration;

use kernel::backend::SecretRef;
use kernel::remote::{Letta, LettaApi};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::document;
use crate::failure::plain;
use crate::http::Http;
use crate::link::{Link, reach_of_server};
use crate::secrets::Secrets;
use crate::work::Failure;

const TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Health {
    version: String,
}

#[derive(Deserialize)]
struct Known {
    id: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Known>,
}

/// In sentences, for whoever wants to know why it does not work.
pub(crate) async fn look(
    means: (&Http, &dyn Secrets),
    server: &Letta,
    credential: Option<&SecretRef>,
) -> Vec<String> {
    let reach = reach_of_server(&server.url, server.allow_private);
    let link = Link::new(means, credential, (&server.url, reach), TIME_MAX);
    let link = link.and_then(|link| link.check_confidential(&server.url).map(|()| link));
    let link = match link {
        Ok(link) => link,
        Err(failure) => return vec![failure.message],
    };
    let (health, agents) = match server.api {
        LettaApi::Rest => {
            let health: Result<Health, Failure> = get(&link, &["v1", "health", ""]).await;
            let health = health.map(|it| format!("it is Letta {}", plain(&it.version)));
            (Some(health), get(&link, &["v1", "agents", ""]).await)
        }
        LettaApi::Openai => {
            let models: Result<Models, Failure> = get(&link, &["v1", "models"]).await;
            (None, models.map(|models| models.data))
        }
    };
    let agents = agents.map(|agents: Vec<Known>| there(&agents, &server.remote_id));
    let said = |it: Result<String, Failure>| it.unwrap_or_else(|failure| failure.message);
    health.into_iter().chain([agents]).map(said).collect()
}

async fn get<T: DeserializeOwned>(link: &Link<'_>, path: &[&str]) -> Result<T, Failure> {
    document(link.ask(link.request(Method::GET, path)).await?).await
}

fn there(agents: &[Known], id: &str) -> String {
    let count = agents.len();
    match agents.iter().find(|agent| agent.id == id) {
        Some(Known { name: Some(name), .. }) => {
            format!("it shows {count} agents, and `{id}` is `{}` among them", plain(name))
        }
        Some(Known { name: None, .. }) => format!("it shows {count} agents, `{id}` among them"),
        None => format!("it shows {count} agents, and `{id}` is not among them"),
    }
}
