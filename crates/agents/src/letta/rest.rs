//! The V1 server: one answer, a stream of it, or a run in the background that is asked after.

use std::time::Duration;

use kernel::budget::Usage;
use kernel::remote::Sending;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{Told, Turn, cut_off, document, unreadable};
use crate::events::Events;
use crate::failure::unanswered;
use crate::http::IDEMPOTENCY_KEY;
use crate::telling::Telling;
use crate::work::{Failure, Reason};

const POLL_FIRST: Duration = Duration::from_millis(200);
const POLL_LAST: Duration = Duration::from_secs(10);
/// Of one question after a run in the background.
const POLL_TIME_MAX: Duration = Duration::from_secs(30);
/// What some servers stumble over before their model is asked, and not when they stream.
const WRAPPER: &str = "ChatMLInnerMonologueWrapper";

#[derive(Serialize)]
struct Messages<'a> {
    messages: [User<'a>; 1],
}

#[derive(Serialize)]
struct User<'a> {
    role: &'static str,
    content: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Deserialize)]
struct Answered {
    messages: Vec<Message>,
    stop_reason: Option<StopReason>,
    usage: Option<Statistics>,
}

/// One of many kinds; only what the agent says to its user is of interest.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    message_type: String,
    content: Option<Content>,
    stop_reason: Option<String>,
    #[serde(flatten)]
    usage: Statistics,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<TextPart>),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct TextPart {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct StopReason {
    stop_reason: String,
}

#[derive(Clone, Copy, Deserialize)]
struct Statistics {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

/// A run in the background.
#[derive(Deserialize)]
struct Background {
    id: String,
    status: Option<String>,
    stop_reason: Option<String>,
}

impl Turn<'_> {
    pub(super) async fn send_rest(&self, telling: &mut Telling<'_>) -> Result<Told, Failure> {
        match self.server.sending {
            Sending::Wait => match self.wait(telling).await {
                Err(failure) if is_fault_of_wrapper(&failure) => self.stream(telling).await,
                ended => ended,
            },
            Sending::Stream => self.stream(telling).await,
            Sending::Background => self.background(telling).await,
        }
    }

    pub(super) async fn cancel_rest(&self) {
        let path = ["v1", "agents", &self.server.remote_id, "messages", "cancel"];
        let mut request = self.link.request(Method::POST, &path);
        request.body = Some(b"{}".to_vec());
        let _ = self.link.ask(request).await;
    }

    async fn wait(&self, telling: &mut Telling<'_>) -> Result<Told, Failure> {
        let answered: Answered = document(self.post(None).await?).await?;
        say_all(&answered.messages, telling).await;
        let stop = answered.stop_reason.map(|it| it.stop_reason);
        Ok(Told { stop, usage: answered.usage.and_then(Statistics::usage) })
    }

    async fn stream(&self, telling: &mut Telling<'_>) -> Result<Told, Failure> {
        let mut events = Events::new(self.post(Some("stream")).await?);
        let mut told = Told::default();
        while let Some(data) = events.next().await.map_err(|it| unanswered(&it))? {
            if data == "[DONE]" {
                return Ok(told);
            }
            let message: Message = serde_json::from_str(&data).map_err(|_| unreadable())?;
            told.usage = message.usage.usage().or(told.usage);
            if message.error.is_some() && message.message_type.is_empty() {
                told.stop = Some("error".to_owned());
            }
            message.say(telling).await;
            told.stop = message.stop_reason.or(told.stop);
        }
        // Whoever says why it stopped has said all.
        if told.stop.is_some() { Ok(told) } else { Err(cut_off()) }
    }

    async fn background(&self, telling: &mut Telling<'_>) -> Result<Told, Failure> {
        let begun: Background = document(self.post(Some("async")).await?).await?;
        let mut pause = POLL_FIRST;
        let ended = loop {
            sleep(pause).await;
            pause = (pause * 2).min(POLL_LAST);
            let looked: Result<Background, Failure> = self.look(&["v1", "runs", &begun.id]).await;
            match looked {
                Ok(run) if run.is_over() => break run,
                Err(lost) if lost.reason == Reason::NotFound => return Err(cut_off()),
                // It goes on there, whether it can be asked after or not.
                Ok(_) | Err(_) => {}
            }
        };
        let messages: Option<Vec<Message>> =
            self.look(&["v1", "runs", &begun.id, "messages"]).await.ok();
        say_all(&messages.unwrap_or_default(), telling).await;
        let usage: Option<Statistics> = self.look(&["v1", "runs", &begun.id, "usage"]).await.ok();
        Ok(Told { stop: Some(ended.stop()), usage: usage.and_then(Statistics::usage) })
    }

    async fn post(&self, variant: Option<&str>) -> Result<crate::http::Answer, Failure> {
        let content = [Part { r#type: "text", text: &self.work.prompt }];
        let body = Messages { messages: [User { role: "user", content }] };
        let mut path = vec!["v1", "agents", self.server.remote_id.as_str(), "messages"];
        path.extend(variant);
        let mut request = self.link.request(Method::POST, &path);
        request.headers.push((IDEMPOTENCY_KEY, self.work.run.clone()));
        request.body = serde_json::to_vec(&body).ok();
        self.link.ask(request).await
    }

    async fn look<T: serde::de::DeserializeOwned>(&self, path: &[&str]) -> Result<T, Failure> {
        let mut request = self.link.request(Method::GET, path);
        request.time_max = POLL_TIME_MAX;
        document(self.link.ask(request).await?).await
    }
}

impl Background {
    fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed" | "cancelled" | "expired"))
    }

    /// Why it stopped; a run that says no reason ended as its status says.
    fn stop(self) -> String {
        let by_status = match self.status.as_deref() {
            Some("completed") => "end_turn",
            Some("cancelled") => "cancelled",
            Some(_) | None => "error",
        };
        let is_completed = by_status == "end_turn";
        // One that failed is not done, whatever it says.
        let given = self.stop_reason.filter(|given| is_completed || given != "end_turn");
        given.unwrap_or_else(|| by_status.to_owned())
    }
}

impl Message {
    async fn say(&self, telling: &mut Telling<'_>) {
        if self.message_type != "assistant_message" {
            return;
        }
        match &self.content {
            Some(Content::Text(text)) => telling.say(text).await,
            Some(Content::Parts(parts)) => {
                for part in parts {
                    telling.say(&part.text).await;
                }
            }
            Some(Content::Other(_)) | None => {}
        }
        telling.say("\n").await;
    }
}

impl Statistics {
    fn usage(self) -> Option<Usage> {
        let (input_tokens, output_tokens) = (self.prompt_tokens, self.completion_tokens);
        (input_tokens.is_some() || output_tokens.is_some()).then(|| Usage {
            input_tokens: input_tokens.unwrap_or_default(),
            output_tokens: output_tokens.unwrap_or_default(),
        })
    }
}

fn is_fault_of_wrapper(failure: &Failure) -> bool {
    failure.reason == Reason::ServerError && failure.message.contains(WRAPPER)
}

async fn say_all(messages: &[Message], telling: &mut Telling<'_>) {
    for message in messages {
        message.say(telling).await;
    }
}
