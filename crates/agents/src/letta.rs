//! A Letta agent: a prompt becomes a message of its user, and what it says is the answer.
//!
//! A prompt that was delivered is in the agent's history, whatever became of it: so nothing is sent twice
//! here, and what was sent and not answered is in doubt. Both servers of Letta are spoken to, the V1 server
//! in `rest` and the App Server in `app_server`; why an agent stopped is read in `stop`.

mod app_server;
mod look;
mod rest;
mod stop;

use std::time::Duration;

use kernel::budget::Usage;
use kernel::remote::{Letta, LettaApi};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) use look::look;
pub use stop::Stop;

use crate::failure::unanswered;
use crate::http::{Answer, Http};
use crate::link::{Link, reach_of_server};
use crate::output::Recorder;
use crate::secrets::Secrets;
use crate::telling::Telling;
use crate::work::{Failure, Outcome, Reason, Work};

/// Of an answer that comes as one.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// How long it may take to tell a server that nobody waits any more.
const CANCEL_TIME_MAX: Duration = Duration::from_secs(5);

/// One prompt to one agent.
pub(crate) struct Turn<'a> {
    server: &'a Letta,
    work: &'a Work,
    link: Link<'a>,
}

/// What is known of a turn when it is over.
#[derive(Debug, Default)]
struct Told {
    /// Why the agent stopped, in the server's words.
    stop: Option<String>,
    usage: Option<Usage>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        means: (&'a Http, &'a dyn Secrets),
        server: &'a Letta,
        work: &'a Work,
    ) -> Result<Turn<'a>, Failure> {
        let reach = reach_of_server(&server.url, server.allow_private);
        let credential = work.agent.credential.as_ref();
        let link = Link::new(means, credential, (&server.url, reach), work.time_max)?;
        Ok(Turn { server, work, link })
    }

    /// Sends the prompt and waits for what comes of it.
    pub(crate) async fn run(
        &self,
        recorder: &mut Recorder,
        stop: &CancellationToken,
    ) -> (Outcome, Option<Usage>) {
        let told = tokio::select! {
            biased;
            told = timeout(self.work.time_max, self.tell(recorder)) => told,
            () = stop.cancelled() => {
                self.cancel().await;
                return (Outcome::Cancelled, None);
            }
        };
        match told {
            Ok(Ok(told)) => (Stop::outcome(told.stop.as_deref()), told.usage),
            // The request has the same limit, and may reach it first.
            Ok(Err(failure)) if failure.reason == Reason::Timeout => {
                self.cancel().await;
                (Outcome::Failed(failure), None)
            }
            Ok(Err(failure)) => (Outcome::Failed(failure), None),
            Err(_) => {
                self.cancel().await;
                let said = format!("it was sent, and took longer than {:?}", self.work.time_max);
                (Outcome::Failed(Failure::doubtful(Reason::Timeout, said)), None)
            }
        }
    }

    async fn tell(&self, recorder: &mut Recorder) -> Result<Told, Failure> {
        let mut telling = Telling::new(recorder, self.link.secrets);
        let told = match self.server.api {
            LettaApi::Rest => self.send_rest(&mut telling).await,
            LettaApi::Openai => self.send_app_server(&mut telling).await,
        };
        telling.end().await;
        told
    }

    /// Tells the server that nobody waits any more. It need not listen: what was sent is in doubt.
    async fn cancel(&self) {
        match self.server.api {
            LettaApi::Rest => drop(timeout(CANCEL_TIME_MAX, self.cancel_rest()).await),
            // It has no way to say so but to hang up.
            LettaApi::Openai => {}
        }
    }
}

/// A whole answer of a server that has taken a prompt.
async fn document<T: DeserializeOwned>(answer: Answer) -> Result<T, Failure> {
    let body = answer.body(ANSWER_BYTES_MAX).await.map_err(|it| unanswered(&it))?;
    serde_json::from_slice(&body).map_err(|_| unreadable())
}

fn unreadable() -> Failure {
    let message = "it was sent, and the answer cannot be understood";
    Failure::doubtful(Reason::AnswerUnreadable, message)
}

/// A stream that ends before it says why.
fn cut_off() -> Failure {
    let message = "it was sent, and the answer broke off";
    Failure::doubtful(Reason::ConnectionLost, message)
}
