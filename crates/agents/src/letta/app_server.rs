//! The App Server: every agent is a model, and the prompts of one schedule share a conversation.

use kernel::budget::Usage;
use kernel::remote::Sending;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::{StopReason, Turn, TurnResult, read_json, truncated, unreadable};
use crate::attempt::{Failure, Reason};
use crate::event_stream::EventStream;
use crate::failure::{failure_of, one_line};
use crate::http::IDEMPOTENCY_KEY;
use crate::output_filter::OutputFilter;

const CHAT_KEY: &str = "x-letta-chat-key";
/// The whole output of a turn whose agent called a tool that needs a human's approval. Such a turn ends like any
/// other; if the agent wrote something before, it cannot be recognised.
const APPROVAL_NEEDED: &str = "The agent attempted a tool call that requires interactive approval, \
                               which this API does not support.";

#[derive(Serialize)]
struct Completion<'a> {
    model: &'a str,
    messages: [User<'a>; 1],
    stream: bool,
}

#[derive(Serialize)]
struct User<'a> {
    role: &'static str,
    content: &'a str,
}

/// A response, or a chunk of a stream.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Statistics>,
    error: Option<ServerError>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(alias = "delta")]
    message: Option<ReplyMessage>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ReplyMessage {
    content: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
struct Statistics {
    #[serde(default)]
    prompt_tokens: u32,
    #[serde(default)]
    completion_tokens: u32,
}

#[derive(Deserialize)]
struct ServerError {
    #[serde(default)]
    message: String,
}

impl Turn<'_> {
    pub(super) async fn send_app_server(
        &self,
        output: &mut OutputFilter<'_>,
    ) -> Result<TurnResult, Failure> {
        let mut request = self.endpoint.request(Method::POST, &["v1", "chat", "completions"]);
        // A run without a schedule has a conversation of its own.
        let conversation = self.attempt.schedule.as_ref().unwrap_or(&self.attempt.run);
        request.headers.push((CHAT_KEY, conversation.clone()));
        request.headers.push((IDEMPOTENCY_KEY, self.attempt.run.clone()));
        let stream = self.server.sending == Sending::Stream;
        let messages = [User { role: "user", content: &self.attempt.prompt }];
        let model = self.server.remote_id.as_str();
        request.body = serde_json::to_vec(&Completion { model, messages, stream }).ok();
        let response = self.endpoint.send(request).await.map_err(delivered_if_server_error)?;
        let mut result = TurnResult::default();
        let mut detector = ApprovalDetector::default();
        if !stream {
            let reply: Reply = read_json(response).await?;
            self.record(reply, &mut result, output, &mut detector).await?;
            return Ok(detector.apply_to(result));
        }
        let mut events = EventStream::new(response);
        while let Some(data) = events.next().await.map_err(|it| failure_of(&it))? {
            if data == "[DONE]" {
                return Ok(detector.apply_to(result));
            }
            let chunk: Reply = serde_json::from_str(&data).map_err(|_| unreadable())?;
            self.record(chunk, &mut result, output, &mut detector).await?;
        }
        Err(truncated())
    }

    async fn record(
        &self,
        reply: Reply,
        result: &mut TurnResult,
        output: &mut OutputFilter<'_>,
        detector: &mut ApprovalDetector,
    ) -> Result<(), Failure> {
        if let Some(error) = reply.error {
            let detail = one_line(&self.endpoint.secrets.redact(&error.message));
            let message = format!("the turn failed at the server: {detail}");
            return Err(Failure::delivered(Reason::ServerError, message));
        }
        result.usage = reply.usage.map(Statistics::usage).or(result.usage);
        for choice in reply.choices.into_iter().take(1) {
            if let Some(text) = choice.message.and_then(|message| message.content) {
                output.write_text(&text).await;
                detector.push(&text);
            }
            result.stop = choice.finish_reason.or(result.stop.take());
        }
        Ok(())
    }
}

/// The server also responds with 5xx when a started turn fails, and then forgets the idempotency key: sent again,
/// the prompt would start a second turn.
fn delivered_if_server_error(failure: Failure) -> Failure {
    match failure.reason {
        Reason::ServerError => Failure::delivered(failure.reason, failure.message),
        _ => failure,
    }
}

/// Recognises a turn that ended because it needs an approval, by the beginning of its output.
#[derive(Default)]
struct ApprovalDetector(String);

impl ApprovalDetector {
    fn push(&mut self, text: &str) {
        if self.0.len() <= APPROVAL_NEEDED.len() {
            self.0.push_str(text);
        }
    }

    /// Sets the stop reason if the output is the server's message.
    fn apply_to(self, result: TurnResult) -> TurnResult {
        match self.0 == APPROVAL_NEEDED {
            true => TurnResult {
                stop: Some(StopReason::RequiresApproval.as_str().to_owned()),
                ..result
            },
            false => result,
        }
    }
}

impl Statistics {
    fn usage(self) -> Usage {
        Usage { input_tokens: self.prompt_tokens, output_tokens: self.completion_tokens }
    }
}
