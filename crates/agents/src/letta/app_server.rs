//! The App Server: every agent is a model, and the prompts of a schedule are one conversation with it.

use kernel::budget::Usage;
use kernel::remote::Sending;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::{Told, Turn, cut_off, document, unreadable};
use crate::events::Events;
use crate::failure::{plain, unanswered};
use crate::http::IDEMPOTENCY_KEY;
use crate::telling::Telling;
use crate::work::{Failure, Reason};

const CHAT_KEY: &str = "x-letta-chat-key";

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
        let answer = self.link.ask(request).await?;
        let mut told = Told::default();
        if !stream {
            let answered: Answered = document(answer).await?;
            self.take(answered, &mut told, telling).await?;
            return Ok(told);
        }
        let mut events = Events::new(answer);
        while let Some(data) = events.next().await.map_err(|it| unanswered(&it))? {
            if data == "[DONE]" {
                return Ok(told);
            }
            let piece: Answered = serde_json::from_str(&data).map_err(|_| unreadable())?;
            self.take(piece, &mut told, telling).await?;
        }
        Err(cut_off())
    }

    async fn take(
        &self,
        answered: Answered,
        told: &mut Told,
        telling: &mut Telling<'_>,
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
            }
            told.stop = choice.finish_reason.or(told.stop.take());
        }
        Ok(())
    }
}

impl Statistics {
    fn usage(self) -> Usage {
        Usage { input_tokens: self.prompt_tokens, output_tokens: self.completion_tokens }
    }
}
