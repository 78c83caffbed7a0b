//! The V1 server: one response, a stream, or a background run that is polled.

use std::time::Duration;

use kernel::budget::Usage;
use kernel::remote::Sending;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{Turn, TurnResult, read_json, truncated, unreadable};
use crate::attempt::{Failure, Reason};
use crate::event_stream::EventStream;
use crate::failure::failure_of;
use crate::http::{HttpResponse, IDEMPOTENCY_KEY};
use crate::output_filter::OutputFilter;

const POLL_FIRST: Duration = Duration::from_millis(200);
const POLL_LAST: Duration = Duration::from_secs(10);
/// Limit of one poll of a background run.
const POLL_TIME_MAX: Duration = Duration::from_secs(30);
/// Some servers fail with this name in the error before they call their model, and not when they stream.
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
struct Reply {
    messages: Vec<Message>,
    stop_reason: Option<StopReasonMessage>,
    usage: Option<Statistics>,
}

/// A message of any type; only the assistant's messages to its user are output.
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
struct StopReasonMessage {
    stop_reason: String,
}

#[derive(Clone, Copy, Deserialize)]
struct Statistics {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

/// A background run.
#[derive(Deserialize)]
struct Background {
    id: String,
    status: Option<String>,
    stop_reason: Option<String>,
}

impl Turn<'_> {
    pub(super) async fn send_rest(
        &self,
        output: &mut OutputFilter<'_>,
    ) -> Result<TurnResult, Failure> {
        match self.server.sending {
            Sending::Wait => match self.wait(output).await {
                Err(failure) if is_wrapper_fault(&failure) => self.stream(output).await,
                finished => finished,
            },
            Sending::Stream => self.stream(output).await,
            Sending::Background => self.background(output).await,
        }
    }

    pub(super) async fn cancel_rest(&self) {
        let path = ["v1", "agents", &self.server.remote_id, "messages", "cancel"];
        let mut request = self.endpoint.request(Method::POST, &path);
        request.body = Some(b"{}".to_vec());
        let _ = self.endpoint.send(request).await;
    }

    async fn wait(&self, output: &mut OutputFilter<'_>) -> Result<TurnResult, Failure> {
        let reply: Reply = read_json(self.post(None).await?).await?;
        write_messages(&reply.messages, output).await;
        let stop = reply.stop_reason.map(|it| it.stop_reason);
        Ok(TurnResult { stop, usage: reply.usage.and_then(Statistics::usage) })
    }

    async fn stream(&self, output: &mut OutputFilter<'_>) -> Result<TurnResult, Failure> {
        let mut events = EventStream::new(self.post(Some("stream")).await?);
        let mut result = TurnResult::default();
        while let Some(data) = events.next().await.map_err(|it| failure_of(&it))? {
            if data == "[DONE]" {
                return Ok(result);
            }
            let message: Message = serde_json::from_str(&data).map_err(|_| unreadable())?;
            result.usage = message.usage.usage().or(result.usage);
            if message.error.is_some() && message.message_type.is_empty() {
                result.stop = Some("error".to_owned());
            }
            message.write_to(output).await;
            result.stop = message.stop_reason.or(result.stop);
        }
        // A stream that gave a stop reason is complete.
        if result.stop.is_some() { Ok(result) } else { Err(truncated()) }
    }

    async fn background(&self, output: &mut OutputFilter<'_>) -> Result<TurnResult, Failure> {
        let started: Background = read_json(self.post(Some("async")).await?).await?;
        let mut pause = POLL_FIRST;
        let finished = loop {
            sleep(pause).await;
            pause = (pause * 2).min(POLL_LAST);
            let polled: Result<Background, Failure> = self.get(&["v1", "runs", &started.id]).await;
            match polled {
                Ok(run) if run.is_over() => break run,
                Err(lost) if lost.reason == Reason::NotFound => return Err(truncated()),
                // The run goes on at the server, also when a poll fails.
                Ok(_) | Err(_) => {}
            }
        };
        let messages: Option<Vec<Message>> =
            self.get(&["v1", "runs", &started.id, "messages"]).await.ok();
        write_messages(&messages.unwrap_or_default(), output).await;
        let usage: Option<Statistics> = self.get(&["v1", "runs", &started.id, "usage"]).await.ok();
        Ok(TurnResult {
            stop: Some(finished.stop_reason()),
            usage: usage.and_then(Statistics::usage),
        })
    }

    async fn post(&self, variant: Option<&str>) -> Result<HttpResponse, Failure> {
        let content = [Part { r#type: "text", text: &self.attempt.prompt }];
        let body = Messages { messages: [User { role: "user", content }] };
        let mut path = vec!["v1", "agents", self.server.remote_id.as_str(), "messages"];
        path.extend(variant);
        let mut request = self.endpoint.request(Method::POST, &path);
        request.headers.push((IDEMPOTENCY_KEY, self.attempt.run.clone()));
        request.body = serde_json::to_vec(&body).ok();
        self.endpoint.send(request).await
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &[&str]) -> Result<T, Failure> {
        let mut request = self.endpoint.request(Method::GET, path);
        request.time_max = POLL_TIME_MAX;
        read_json(self.endpoint.send(request).await?).await
    }
}

impl Background {
    fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed" | "cancelled" | "expired"))
    }

    /// Why the run stopped; without a reason, its status decides.
    fn stop_reason(self) -> String {
        let by_status = match self.status.as_deref() {
            Some("completed") => "end_turn",
            Some("cancelled") => "cancelled",
            Some(_) | None => "error",
        };
        let is_completed = by_status == "end_turn";
        // A run that failed did not end its turn, whatever its reason says.
        let reported = self.stop_reason.filter(|reported| is_completed || reported != "end_turn");
        reported.unwrap_or_else(|| by_status.to_owned())
    }
}

impl Message {
    async fn write_to(&self, output: &mut OutputFilter<'_>) {
        if self.message_type != "assistant_message" {
            return;
        }
        match &self.content {
            Some(Content::Text(text)) => output.write_text(text).await,
            Some(Content::Parts(parts)) => {
                for part in parts {
                    output.write_text(&part.text).await;
                }
            }
            Some(Content::Other(_)) | None => {}
        }
        output.write_text("\n").await;
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

fn is_wrapper_fault(failure: &Failure) -> bool {
    failure.reason == Reason::ServerError && failure.message.contains(WRAPPER)
}

async fn write_messages(messages: &[Message], output: &mut OutputFilter<'_>) {
    for message in messages {
        message.write_to(output).await;
    }
}
