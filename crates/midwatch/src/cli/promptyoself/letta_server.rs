//! Requests to a Letta server for its list of agents and for uploading a tool. Prompts are not sent from
//! here.

use std::time::Duration;

use agents::{Egress, Get, Http, HttpResponse, Post, RequestError};
use api::{Code, Error};
use kernel::backend::{Invalid, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::settings::{Letta, Variables};

const TIME_MAX: Duration = Duration::from_secs(30);
const RESPONSE_BYTES_MAX: usize = 16 << 20;
const PAGE_AGENTS: usize = 100;
/// How much of an error's text is shown.
const DETAIL_CHARS_MAX: usize = 300;
const AGENTS_MAX: usize = 10_000;
/// The user names the server, which is often in a private network.
const EGRESS: Egress = Egress::Unrestricted;

#[derive(Debug)]
pub(super) struct LettaServer<'a> {
    http: Http,
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

/// A tool to upload. Its name is that of the function in its source; a server refuses any other field for it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Tool {
    pub source_code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct UploadedTool {
    pub id: String,
    pub name: Option<String>,
}

impl<'a> LettaServer<'a> {
    pub(super) fn new(letta: &'a Letta, variables: &'a Variables) -> LettaServer<'a> {
        LettaServer { http: Http::new(), url: &letta.url, token: letta.token(variables) }
    }

    pub(super) async fn agents(&self) -> Result<Vec<RemoteAgent>, Error> {
        let url = self.endpoint("/v1/agents/")?;
        let limit = PAGE_AGENTS.to_string();
        let mut agents: Vec<RemoteAgent> = Vec::new();
        loop {
            let mut query = vec![("limit", limit.as_str())];
            query.extend(agents.last().map(|last| ("after", last.id.as_str())));
            let token = Some(self.token);
            let get = Get { url: &url, query: &query, egress: EGRESS, token, time_max: TIME_MAX };
            let page: Vec<RemoteAgent> = read_json(self.http.get(get).await).await?;
            let is_last = page.len() < PAGE_AGENTS || AGENTS_MAX <= agents.len();
            // A server that ignores `after` returns the first page again.
            let is_new = page.first().is_none_or(|first| agents.iter().all(|it| it.id != first.id));
            if is_new {
                agents.extend(page);
            }
            if is_last || !is_new {
                return Ok(agents);
            }
        }
    }

    pub(super) async fn upload(&self, tool: &Tool) -> Result<UploadedTool, Error> {
        let url = self.endpoint("/v1/tools/")?;
        let (token, key) = (Some(self.token), None);
        let put = Post { url: &url, egress: EGRESS, token, key, body: tool, time_max: TIME_MAX };
        read_json(self.http.put(put).await).await
    }

    fn endpoint(&self, path: &str) -> Result<Url, Error> {
        // The refusal does not repeat the url, which may have a secret in it.
        let invalid = |invalid: Invalid| {
            Error::new(Code::InvalidInput, format!("LETTA_BASE_URL is not a valid url: {invalid}"))
                .hint("write it as `https://host`, and set the token as LETTA_API_KEY")
        };
        format!("{}{path}", self.url).parse().map_err(invalid)
    }
}

async fn read_json<T: DeserializeOwned>(
    response: Result<HttpResponse, RequestError>,
) -> Result<T, Error> {
    let response = response.map_err(unreachable)?;
    let status = response.status();
    if !(200..300).contains(&status) {
        return Err(refused(status, response).await);
    }
    let bytes = response.body(RESPONSE_BYTES_MAX).await.map_err(unreachable)?;
    let invalid =
        |_| Error::new(Code::Failed, "the response of the server is not that of Letta's API");
    serde_json::from_slice(&bytes).map_err(invalid)
}

/// The error for a response that is not a success, with what the server says about it.
async fn refused(status: u16, response: HttpResponse) -> Error {
    let body = response.body(RESPONSE_BYTES_MAX).await.unwrap_or_default();
    let text: String = String::from_utf8_lossy(&body).chars().take(DETAIL_CHARS_MAX).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let detail = if text.is_empty() { String::new() } else { format!(": {text}") };
    let what = format!("the Letta server answered with status {status}{detail}");
    Error::new(Code::Failed, what).hint(match status {
        401 | 403 => "check LETTA_API_KEY or LETTA_SERVER_PASSWORD",
        404 => "check LETTA_BASE_URL",
        400..=499 => "the server does not accept this request; correct what it names",
        _ => "look into the log of the server, and try again",
    })
}

fn unreachable(error: RequestError) -> Error {
    Error::new(Code::Unreachable, format!("the Letta server cannot be reached: {error}"))
        .hint("set its address in LETTA_BASE_URL")
}
