//! A call: one request to a [`Handle`], and its response.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::*;

/// Handles requests for one principal: an engine in this process, or a client of the daemon's socket.
pub trait Handle: fmt::Debug + Send + Sync {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>>;
    /// Records a tool call that no request accounts for. Fails only if nothing received the report.
    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>>;
}

/// A tool call that no request accounts for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolReport {
    /// A client called a tool that does not exist.
    Missing { tool: String },
    /// A call ended that made no request, or that failed after its request succeeded.
    Ended {
        tool: String,
        /// Whether calls of the tool change something.
        changes: bool,
        /// The error of the call; absent if it succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
        /// Whether the call is already counted as a success.
        counted: bool,
    },
}

/// A request with its options.
#[derive(Clone, Debug)]
pub struct Call {
    pub request: Request,
    /// The idempotency key: a change that is sent twice with the same key happens once, and the second
    /// call gets the response of the first.
    pub key: Option<String>,
    /// The version of the edited object that the caller has read: if it has another one by now, nothing is changed. Only calls
    /// in this process have one; the socket has no field for it.
    pub version: Option<u64>,
    /// The tool that makes the call, if any.
    pub tool: Option<String>,
    pub progress: ProgressSink,
}

/// The progress of a long request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Receives the progress of a call. The default sink ignores it.
#[derive(Clone, Default)]
pub struct ProgressSink(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

/// A request type, its row in the table of requests, and the type of its response.
pub trait ApiRequest: DeserializeOwned + JsonSchema + Send + Sized + 'static {
    type Response: Serialize + Send;
    const CLASS: Class;
    fn into_request(self) -> Request;
    fn into_response(response: Self::Response) -> Response;
    /// `None` if the response belongs to another request.
    fn from_response(response: Response) -> Option<Self::Response>;
}

/// Sends a request without an idempotency key and without progress.
pub async fn send<R: ApiRequest>(handle: &dyn Handle, request: R) -> Result<R::Response, Error> {
    Call::new(request).send::<R>(handle).await
}

impl Call {
    pub fn new(request: impl ApiRequest) -> Call {
        let request = request.into_request();
        Call { request, key: None, version: None, tool: None, progress: ProgressSink::default() }
    }

    /// Makes this call and returns the response type of `R`.
    pub async fn send<R: ApiRequest>(self, handle: &dyn Handle) -> Result<R::Response, Error> {
        let wrong = || Error::new(Code::Failed, "the response does not belong to the request");
        R::from_response(handle.call(self).await?).ok_or_else(wrong)
    }
}

impl Response {
    /// The response itself, without the mark that it was replayed.
    pub fn first(self) -> Response {
        match self {
            Response::Replayed(first) => first.first(),
            response => response,
        }
    }
}

impl ProgressSink {
    pub fn new(show: impl Fn(Progress) + Send + Sync + 'static) -> ProgressSink {
        ProgressSink(Some(Arc::new(show)))
    }

    pub fn show(&self, done: u64, total: u64) {
        if let Some(show) = &self.0 {
            show(Progress { done, total });
        }
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ProgressSink(shown: {})", self.0.is_some())
    }
}
