//! What promptyoself asks a server of Letta for by itself: which agents there are, and to take a tool.
//! Prompts are not sent from here.

use std::time::Duration;

use agents::{Answer, Get, Http, Post, Reach, Unanswered};
use api::{Code, Error};
use kernel::backend::Url;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::settings::{Letta, Variables};

const TIME_MAX: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 16 << 20;
const PAGE_AGENTS: usize = 100;
const AGENTS_MAX: usize = 10_000;
/// Whoever runs the program names the server, and it is often in a network of their own.
const REACH: Reach = Reach::Private;

#[derive(Debug)]
pub(super) struct Server<'a> {
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
    pub(super) fn new(letta: &'a Letta, variables: &'a Variables) -> Server<'a> {
        Server { http: Http::new(), url: &letta.url, token: letta.token(variables) }
    }

    pub(super) async fn agents(&self) -> Result<Vec<RemoteAgent>, Error> {
        let url = self.at("/v1/agents/")?;
        let limit = PAGE_AGENTS.to_string();
        let mut agents: Vec<RemoteAgent> = Vec::new();
        loop {
            let mut query = vec![("limit", limit.as_str())];
            query.extend(agents.last().map(|last| ("after", last.id.as_str())));
            let token = Some(self.token);
            let get = Get { url: &url, query: &query, reach: REACH, token, time_max: TIME_MAX };
            let page: Vec<RemoteAgent> = document(self.http.get(get).await).await?;
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
        let url = self.at("/v1/tools/")?;
        let (token, key) = (Some(self.token), None);
        let put = Post { url: &url, reach: REACH, token, key, body: tool, time_max: TIME_MAX };
        document(self.http.put(put).await).await
    }

    fn at(&self, path: &str) -> Result<Url, Error> {
        let unfit = |_| Error::new(Code::InvalidInput, "LETTA_BASE_URL is not a url");
        format!("{}{path}", self.url).parse().map_err(unfit)
    }
}

async fn document<T: DeserializeOwned>(answer: Result<Answer, Unanswered>) -> Result<T, Error> {
    let answer = answer.map_err(unreachable)?;
    let status = answer.status();
    if !(200..300).contains(&status) {
        let what = format!("the Letta server answered with status {status}");
        return Err(Error::new(Code::Failed, what)
            .hint("check LETTA_BASE_URL, and LETTA_API_KEY or LETTA_SERVER_PASSWORD"));
    }
    let bytes = answer.body(ANSWER_BYTES_MAX).await.map_err(unreachable)?;
    let unread = |_| Error::new(Code::Failed, "the Letta server answered something else");
    serde_json::from_slice(&bytes).map_err(unread)
}

fn unreachable(unanswered: Unanswered) -> Error {
    Error::new(Code::Unreachable, format!("the Letta server cannot be reached: {unanswered}"))
        .hint("LETTA_BASE_URL says where it is")
}
