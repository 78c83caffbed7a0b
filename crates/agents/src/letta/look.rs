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
use crate::work::{Failure, Reason};

const TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Health {
    version: String,
}

#[derive(Deserialize)]
struct Info {
    letta_code_version: String,
}

/// Which server it is, and of which version.
enum Met {
    V1(String),
    AppServer(String),
}

#[derive(Deserialize)]
struct Known {
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

/// In sentences, for whoever wants to know why it does not work.
pub(crate) async fn look(
    means: (&Http, &dyn Secrets),
    server: &Letta,
    credential: Option<&SecretRef>,
) -> Vec<String> {
    let reach = reach_of_server(&server.url, server.allow_private);
    let link = Link::new(means, credential, (&server.url, reach), TIME_MAX);
    let link = match link {
        Ok(link) => link,
        Err(failure) => return vec![failure.message],
    };
    let agents = match server.api {
        LettaApi::Rest => known(&link, &server.remote_id).await,
        LettaApi::Openai => {
            let models: Result<Models, Failure> = get(&link, &["v1", "models"]).await;
            models.map(|models| shown(&models.data, &server.remote_id))
        }
    };
    let said = |it: Result<String, Failure>| it.unwrap_or_else(|failure| failure.message);
    let met = meet(&link, server.api).await.map(|met| met.sentence(server.api));
    let mut seen = vec![said(met), said(agents)];
    seen.dedup();
    if server.api == LettaApi::Openai {
        let warning =
            "an agent there uses its tools without asking anybody: decide there what it may do";
        seen.push(warning.to_owned());
    }
    seen
}

/// Asks first what the server is said to be. Neither route is the other's, and neither needs a secret.
async fn meet(link: &Link<'_>, api: LettaApi) -> Result<Met, Failure> {
    let (first, second) = match api {
        LettaApi::Rest => (health(link).await, LettaApi::Openai),
        LettaApi::Openai => (info(link).await, LettaApi::Rest),
    };
    let Err(failure) = first else { return first };
    // Who was not reached at all is not asked again.
    if failure.reason != Reason::NotFound {
        return Err(failure);
    }
    let other = match second {
        LettaApi::Rest => health(link).await,
        LettaApi::Openai => info(link).await,
    };
    other.map_err(|_| failure)
}

async fn health(link: &Link<'_>) -> Result<Met, Failure> {
    let health: Health = get(link, &["v1", "health", ""]).await?;
    Ok(Met::V1(plain(&health.version)))
}

async fn info(link: &Link<'_>) -> Result<Met, Failure> {
    let info: Info = get(link, &["app-server-info"]).await?;
    Ok(Met::AppServer(plain(&info.letta_code_version)))
}

impl Met {
    fn sentence(&self, api: LettaApi) -> String {
        match (self, api) {
            (Met::V1(version), LettaApi::Rest) => format!("it is the V1 server, Letta {version}"),
            (Met::AppServer(version), LettaApi::Openai) => {
                format!("it is the App Server of Letta Code {version}")
            }
            (Met::V1(version), LettaApi::Openai) => {
                format!("it is the V1 server, Letta {version}: `--api rest` speaks to it")
            }
            (Met::AppServer(version), LettaApi::Rest) => {
                format!("it is the App Server of Letta Code {version}: `--api openai` speaks to it")
            }
        }
    }
}

async fn get<T: DeserializeOwned>(link: &Link<'_>, path: &[&str]) -> Result<T, Failure> {
    document(link.ask(link.request(Method::GET, path)).await?).await
}

/// By its id, as a list of agents comes in pages.
async fn known(link: &Link<'_>, id: &str) -> Result<String, Failure> {
    let known: Result<Known, Failure> = get(link, &["v1", "agents", id]).await;
    match known {
        Ok(known) => Ok(format!("it knows `{id}` as `{}`", plain(&known.name))),
        Err(failure) if failure.reason == Reason::NotFound => {
            Ok(format!("it does not know `{id}`"))
        }
        Err(failure) => Err(failure),
    }
}

/// An agent whose name is no other's is shown by its name, and only by it.
fn shown(models: &[Model], id: &str) -> String {
    let count = models.len();
    match models.iter().any(|model| model.id == id) {
        true => format!("it shows {count} agents, `{id}` among them"),
        false => {
            format!("it shows {count} agents; whether `{id}` is one shows when it is prompted")
        }
    }
}
