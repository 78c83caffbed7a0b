//! The App Server: every agent is a model, and the prompts of a schedule are one conversation with it.

use kernel::budget::Usage;
use kernel::remote::Sending;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::{Stop, Told, Turn, cut_off, document, unreadable};
use crate::events::Events;
use crate::failure::{plain, unanswered};
use crate::http::IDEMPOTENCY_KEY;
use crate::telling::Telling;
use crate::work::{Failure, Reason};

const CHAT_KEY: &str = "x-letta-chat-key";
/// All that the server says where an agent wanted a tool that a human has to allow first. Such a turn ends
/// like any other; if the agent has said something before, nothing tells it from one.
const WANTED_APPROVAL: &str = "The agent attempted a tool call that requires interactive approval, \
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

/// An answer, or a piece of one.
#[derive(Deserialize)]
struct Answered {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Statistics>,
    error: Option<ServerError>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(alias = "delta")]
    message: Option<Said>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
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
    pub(super) async fn send_app_server(&self, telling: &mut Telling<'_>) -> Result<Told, Failure> {
        let mut request = self.link.request(Method::POST, &["v1", "chat", "completions"]);
        // What is no schedule's is a conversation of its own.
        let conversation = self.work.schedule.as_ref().unwrap_or(&self.work.run);
        request.headers.push((CHAT_KEY, conversation.clone()));
        request.headers.push((IDEMPOTENCY_KEY, self.work.run.clone()));
        let stream = self.server.sending == Sending::Stream;
        let messages = [User { role: "user", content: &self.work.prompt }];
        let model = self.server.remote_id.as_str();
        request.body = serde_json::to_vec(&Completion { model, messages, stream }).ok();
        let answer = self.link.ask(request).await.map_err(begun)?;
        let mut told = Told::default();
        let mut heard = Heard::default();
        if !stream {
            let answered: Answered = document(answer).await?;
            self.take(answered, &mut told, telling, &mut heard).await?;
            return Ok(heard.judged(told));
        }
        let mut events = Events::new(answer);
        while let Some(data) = events.next().await.map_err(|it| unanswered(&it))? {
            if data == "[DONE]" {
                return Ok(heard.judged(told));
            }
            let piece: Answered = serde_json::from_str(&data).map_err(|_| unreadable())?;
            self.take(piece, &mut told, telling, &mut heard).await?;
        }
        Err(cut_off())
    }

    async fn take(
        &self,
        answered: Answered,
        told: &mut Told,
        telling: &mut Telling<'_>,
        heard: &mut Heard,
    ) -> Result<(), Failure> {
        if let Some(error) = answered.error {
            let said = plain(&self.link.secrets.hide(&error.message));
            let message = format!("the turn failed at the server: {said}");
            return Err(Failure::delivered(Reason::ServerError, message));
        }
        told.usage = answered.usage.map(Statistics::usage).or(told.usage);
        for choice in answered.choices.into_iter().take(1) {
            if let Some(text) = choice.message.and_then(|said| said.content) {
                telling.say(&text).await;
                heard.take(&text);
            }
            told.stop = choice.finish_reason.or(told.stop.take());
        }
        Ok(())
    }
}

/// A turn that has begun and fails is answered so as well, and the server forgets its key: sent again, it would
/// be a second turn.
fn begun(failure: Failure) -> Failure {
    match failure.reason {
        Reason::ServerError => Failure::delivered(failure.reason, failure.message),
        _ => failure,
    }
}

/// The beginning of what was said, as far as it matters how the turn ended.
#[derive(Default)]
struct Heard(String);

impl Heard {
    fn take(&mut self, text: &str) {
        if self.0.len() <= WANTED_APPROVAL.len() {
            self.0.push_str(text);
        }
    }

    fn judged(self, told: Told) -> Told {
        match self.0 == WANTED_APPROVAL {
            true => Told { stop: Some(Stop::RequiresApproval.as_str().to_owned()), ..told },
            false => told,
        }
    }
}

impl Statistics {
    fn usage(self) -> Usage {
        Usage { input_tokens: self.prompt_tokens, output_tokens: self.completion_tokens }
    }
}
