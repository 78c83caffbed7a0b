//! What promptyoself asks a server of Letta for by itself: which agents there are, and to take a tool.
//! Prompts are not sent from here.
//!
//! No redirect is followed, no proxy of the environment is used, and no message holds the token.

use std::sync::Arc;
use std::time::Duration;

use api::{Code, Error};
use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use rustls::{ClientConfig, RootCertStore};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::settings::{Letta, Variables};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const TIME_MAX: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 16 << 20;
const PAGE_AGENTS: usize = 100;
const AGENTS_MAX: usize = 10_000;

#[derive(Debug)]
pub(super) struct Server<'a> {
    client: Client,
    url: &'a str,
    token: &'a str,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct RemoteAgent {
    pub id: String,
    pub name: Option<String>,
    pub created_at: Option<String>,
    #[serde(alias = "updated_at")]
    pub last_updated: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Tool {
    pub source_code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Taken {
    pub id: String,
    pub name: Option<String>,
}

impl<'a> Server<'a> {
    pub(super) fn new(letta: &'a Letta, variables: &'a Variables) -> Result<Server<'a>, Error> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIME_MAX)
            .timeout(TIME_MAX)
            .user_agent("midwatch");
        let client = client.build().map_err(failed)?;
        Ok(Server { client, url: &letta.url, token: letta.token(variables) })
    }

    pub(super) async fn agents(&self) -> Result<Vec<RemoteAgent>, Error> {
        let mut agents: Vec<RemoteAgent> = Vec::new();
        loop {
            let limit = PAGE_AGENTS.to_string();
            let mut query = vec![("limit", limit.as_str())];
            query.extend(agents.last().map(|last| ("after", last.id.as_str())));
            let page: Vec<RemoteAgent> =
                self.ask(Method::GET, "/v1/agents/", &query, None::<&()>).await?;
            let is_last = page.len() < PAGE_AGENTS || AGENTS_MAX <= agents.len();
            // A server that pays no attention to `after` says the same again.
            let is_new = page.first().is_none_or(|first| agents.iter().all(|it| it.id != first.id));
            if is_new {
                agents.extend(page);
            }
            if is_last || !is_new {
                return Ok(agents);
            }
        }
    }

    pub(super) async fn upload(&self, tool: &Tool) -> Result<Taken, Error> {
        self.ask(Method::PUT, "/v1/tools/", &[], Some(tool)).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&impl Serialize>,
    ) -> Result<T, Error> {
        let url = format!("{}{path}", self.url);
        let unfit = |_| Error::new(Code::InvalidInput, "LETTA_BASE_URL is not a url");
        let mut url = reqwest::Url::parse(&url).map_err(unfit)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.client.request(method, url).bearer_auth(self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let mut answer = request.send().await.map_err(failed)?;
        if !answer.status().is_success() {
            let what = format!("the Letta server answered with status {}", answer.status());
            return Err(Error::new(Code::Failed, what)
                .hint("check LETTA_BASE_URL, and LETTA_API_KEY or LETTA_SERVER_PASSWORD"));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if ANSWER_BYTES_MAX < bytes.len() + chunk.len() {
                return Err(Error::new(Code::Failed, "the answer of the Letta server is too long"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let unread = |_| Error::new(Code::Failed, "the Letta server answered something else");
        serde_json::from_slice(&bytes).map_err(unread)
    }
}

/// What went wrong, down to its first cause, without the url.
fn failed(error: reqwest::Error) -> Error {
    let error = error.without_url();
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        said = format!("{said}: {inner}");
        cause = inner.source();
    }
    Error::new(Code::Unreachable, format!("the Letta server cannot be reached: {said}"))
        .hint("LETTA_BASE_URL says where it is")
}

fn tls() -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::new(Code::Failed, error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
