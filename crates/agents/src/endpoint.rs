//! The HTTP endpoint of one agent: its url, the networks it may be in, and its secret.

use std::time::Duration;

use kernel::backend::{SecretRef, Url};
use reqwest::Method;

use crate::attempt::{Failure, Reason};
use crate::egress::Egress;
use crate::failure::{failure_of, failure_of_response};
use crate::http::{Http, HttpResponse, Request, RequestError, RequestErrorKind, is_this_machine};
use crate::secrets::Secrets;

pub(crate) struct Endpoint<'a> {
    pub(crate) http: &'a Http,
    pub(crate) secrets: &'a dyn Secrets,
    pub(crate) url: reqwest::Url,
    pub(crate) egress: Egress,
    pub(crate) secret: Option<String>,
    pub(crate) time_max: Duration,
    /// What to look at if no connection can be made.
    pub(crate) connect_hint: &'static str,
}

impl<'a> Endpoint<'a> {
    pub(crate) fn new(
        (http, secrets): (&'a Http, &'a dyn Secrets),
        credential: Option<&SecretRef>,
        (url, egress): (&Url, Egress),
        time_max: Duration,
    ) -> Result<Endpoint<'a>, Failure> {
        let invalid = |_| Failure::permanent(Reason::NotAllowed, "the agent's url is invalid");
        let secret = match credential {
            None => None,
            Some(reference) => Some(secrets.read(reference).map_err(|unreadable| {
                Failure::permanent(Reason::SecretMissing, unreadable.to_string())
            })?),
        };
        let url = reqwest::Url::parse(url.as_str()).map_err(invalid)?;
        Ok(Endpoint { http, secrets, url, egress, secret, time_max, connect_hint: "" })
    }

    /// Builds a request without a body to a path below the url.
    pub(crate) fn request(&self, method: Method, path: &[&str]) -> Request<'_> {
        let mut url = self.url.clone();
        url.set_query(None);
        // An http url can always have a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let (egress, time_max) = (self.egress, self.time_max);
        let token = self.secret.as_deref();
        Request { method, url, egress, token, headers: Vec::new(), body: None, time_max }
    }

    /// Sends a request. A response that is not a success is a failure.
    pub(crate) async fn send(&self, request: Request<'_>) -> Result<HttpResponse, Failure> {
        let response = self.http.send(request).await.map_err(|it| self.failure_of(&it))?;
        match response.status() {
            200..=299 => Ok(response),
            _ => Err(failure_of_response(response, self.secrets).await),
        }
    }

    /// Connects without sending anything.
    pub(crate) async fn connect(&self) -> Result<(), Failure> {
        let connected = self.http.connect(&self.url, self.egress).await;
        connected.map_err(|error| match error.kind {
            RequestErrorKind::Forbidden => {
                let origin = self.url.origin().ascii_serialization();
                let message = format!("no request goes to {origin}: {error}");
                Failure::permanent(Reason::NotAllowed, message)
            }
            _ => self.failure_of(&error),
        })
    }

    /// Names the server that could not be reached, without the path, which may be a secret.
    fn failure_of(&self, error: &RequestError) -> Failure {
        let (origin, hint) = (self.url.origin().ascii_serialization(), self.connect_hint);
        let message = match error.kind {
            RequestErrorKind::ConnectionRefused => format!("{origin} refused the connection{hint}"),
            RequestErrorKind::NotConnected => {
                format!("could not connect to {origin}: {error}{hint}")
            }
            _ => return failure_of(error),
        };
        Failure::transient(Reason::NotReached, message)
    }
}

/// The networks that a server's url, as the operator wrote it, may lead to: this machine only if it names it.
pub(crate) fn egress_for_server(url: &Url, allow_private: bool) -> Egress {
    let is_local = reqwest::Url::parse(url.as_str()).is_ok_and(|url| is_this_machine(&url));
    match (allow_private, is_local) {
        (true, _) => Egress::Unrestricted,
        (false, true) => Egress::PublicAndLoopback,
        (false, false) => Egress::Public,
    }
}
