//! Describes a Letta server and whether it has an agent, without prompting any agent.

use std::time::Duration;

use kernel::backend::SecretRef;
use kernel::remote::{Letta, LettaApi};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{CONNECT_HINT, read_json};
use crate::ServerCheck;
use crate::attempt::{Failure, Reason};
use crate::endpoint::{Endpoint, egress_for_server};
use crate::failure::one_line;
use crate::http::Http;
use crate::secrets::Secrets;

const TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Health {
    version: String,
}

#[derive(Deserialize)]
struct Info {
    letta_code_version: String,
}

/// The kind of server and its version.
enum ServerVersion {
    V1(String),
    AppServer(String),
}

#[derive(Deserialize)]
struct AgentInfo {
    name: String,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

/// What was found: a fact, or a problem.
type Found = Result<String, String>;

/// Says to an operator what the server is, and why its agent does not work.
pub(crate) async fn check_server(
    client: (&Http, &dyn Secrets),
    server: &Letta,
    credential: Option<&SecretRef>,
) -> ServerCheck {
    let egress = egress_for_server(&server.url, server.allow_private);
    let endpoint = Endpoint::new(client, credential, (&server.url, egress), TIME_MAX);
    let endpoint = match endpoint {
        Ok(endpoint) => Endpoint { connect_hint: CONNECT_HINT, ..endpoint },
        Err(failure) => {
            return ServerCheck { facts: Vec::new(), problems: vec![failure.message] };
        }
    };
    let agents = match server.api {
        LettaApi::Rest => describe_agent(&endpoint, &server.remote_id).await,
        LettaApi::Openai => {
            let models: Result<Models, Failure> = get(&endpoint, &["v1", "models"]).await;
            models
                .map(|models| describe_models(&models.data, &server.remote_id))
                .map_err(|failure| failure.message)
        }
    };
    let version = match detect_server(&endpoint, server.api).await {
        Ok(version) => version.describe(server.api),
        Err(failure) => Err(failure.message),
    };
    let mut check = ServerCheck::default();
    for found in [version, agents] {
        match found {
            Ok(fact) => check.facts.push(fact),
            // Both requests fail in the same way if there is no connection.
            Err(problem) if check.problems.contains(&problem) => {}
            Err(problem) => check.problems.push(problem),
        }
    }
    if server.api == LettaApi::Openai {
        let warning =
            "an agent there uses its tools without approval: restrict its tools on that server";
        check.facts.push(warning.to_owned());
    }
    check
}

/// Tries the route of the configured server first, then the other's. Neither server has the other's route, and
/// neither route needs a secret.
async fn detect_server(endpoint: &Endpoint<'_>, api: LettaApi) -> Result<ServerVersion, Failure> {
    let (first, second) = match api {
        LettaApi::Rest => (health(endpoint).await, LettaApi::Openai),
        LettaApi::Openai => (info(endpoint).await, LettaApi::Rest),
    };
    let Err(failure) = first else { return first };
    // Only a server that responded is asked again.
    if failure.reason != Reason::NotFound {
        return Err(failure);
    }
    let other = match second {
        LettaApi::Rest => health(endpoint).await,
        LettaApi::Openai => info(endpoint).await,
    };
    other.map_err(|_| {
        let message =
            "the server answers neither as Letta's V1 server nor as its App Server".to_owned();
        Failure { message, ..failure }
    })
}

async fn health(endpoint: &Endpoint<'_>) -> Result<ServerVersion, Failure> {
    let health: Health = get(endpoint, &["v1", "health", ""]).await?;
    Ok(ServerVersion::V1(one_line(&health.version)))
}

async fn info(endpoint: &Endpoint<'_>) -> Result<ServerVersion, Failure> {
    let info: Info = get(endpoint, &["app-server-info"]).await?;
    Ok(ServerVersion::AppServer(one_line(&info.letta_code_version)))
}

impl ServerVersion {
    fn describe(&self, api: LettaApi) -> Found {
        match (self, api) {
            (ServerVersion::V1(version), LettaApi::Rest) => {
                Ok(format!("it is the V1 server, Letta {version}"))
            }
            (ServerVersion::AppServer(version), LettaApi::Openai) => {
                Ok(format!("it is the App Server of Letta Code {version}"))
            }
            (ServerVersion::V1(version), LettaApi::Openai) => {
                Err(format!("the server is the V1 server, Letta {version}: it needs `--api rest`"))
            }
            (ServerVersion::AppServer(version), LettaApi::Rest) => Err(format!(
                "the server is the App Server of Letta Code {version}: it needs `--api openai`"
            )),
        }
    }
}

async fn get<T: DeserializeOwned>(endpoint: &Endpoint<'_>, path: &[&str]) -> Result<T, Failure> {
    let response = endpoint.send(endpoint.request(Method::GET, path)).await?;
    read_json(response).await.map_err(|failure| match failure.reason {
        Reason::ResponseUnreadable => {
            let path = path.join("/");
            let message =
                format!("the server answered `GET /{path}` with something that is not Letta's API");
            Failure { message, ..failure }
        }
        _ => failure,
    })
}

/// Looks the agent up by its id, because a list of agents comes in pages.
async fn describe_agent(endpoint: &Endpoint<'_>, id: &str) -> Found {
    let agent: Result<AgentInfo, Failure> = get(endpoint, &["v1", "agents", id]).await;
    match agent {
        Ok(agent) => Ok(format!("it has agent `{id}`, named `{}`", one_line(&agent.name))),
        Err(failure) if failure.reason == Reason::NotFound => {
            Err(format!("the server has no agent `{id}`"))
        }
        Err(failure) => Err(failure.message),
    }
}

/// The App Server lists an agent with a unique name only by that name, so a missing id proves nothing.
fn describe_models(models: &[Model], id: &str) -> String {
    let count = models.len();
    match models.iter().any(|model| model.id == id) {
        true => format!("it lists {count} agents, `{id}` among them"),
        false => {
            format!("it lists {count} agents, not `{id}`; only a prompt shows whether it exists")
        }
    }
}
