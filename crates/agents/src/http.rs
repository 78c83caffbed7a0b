//! Requests over HTTP, within limits.
//!
//! No redirect is followed and no proxy of the environment is used: a request goes where its url says, or
//! nowhere. Nothing is tried twice; whether that helps is for the caller to say. No message holds the url
//! or the token.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kernel::backend::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A client. Cheap to clone. Every request has a connection of its own.
#[derive(Clone, Debug)]
pub struct Http(Client);

/// A request that carries a document.
pub struct Post<'a, T: ?Sized> {
    pub url: &'a Url,
    /// Sent as a bearer token.
    pub token: Option<&'a str>,
    /// By which the other side can tell a repeated request.
    pub key: Option<&'a str>,
    pub body: &'a T,
    /// From the first byte sent to the last one read.
    pub time_max: Duration,
}

/// How a request to a url travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Encrypted,
    /// In the clear, without leaving this machine.
    Local,
    /// In the clear, for whoever is on the way.
    Open,
}

impl Way {
    /// By the same reading of the url as a request goes by; `None` if none can go there.
    pub fn to(url: &Url) -> Option<Way> {
        let url = reqwest::Url::parse(url.as_str()).ok()?;
        let host = url.host_str()?;
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        match (url.scheme(), is_local) {
            _ if !url.username().is_empty() || url.password().is_some() => None,
            ("https", _) => Some(Way::Encrypted),
            ("http", true) => Some(Way::Local),
            ("http", false) => Some(Way::Open),
            _ => None,
        }
    }
}

/// An answer of which only the head was read.
#[derive(Debug)]
pub struct Answer(Response);

/// No answer, or none that could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unanswered(String);

impl Http {
    /// A client that trusts the certificates of the system.
    pub fn new() -> Result<Http, Unanswered> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .redirect(Policy::none())
            .no_proxy()
            // One that was kept open may be dead by the time of the next request.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_TIME_MAX)
            .user_agent("midwatch");
        client.build().map(Http).map_err(unanswered)
    }

    pub async fn post<T: Serialize + ?Sized>(
        &self,
        post: Post<'_, T>,
    ) -> Result<Answer, Unanswered> {
        let request = self.0.post(post.url.as_str()).timeout(post.time_max).json(post.body);
        let request = authorized(request, post.token)?;
        let request = match post.key {
            Some(key) => request.header(IDEMPOTENCY_KEY, key),
            None => request,
        };
        request.send().await.map(Answer).map_err(unanswered)
    }
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// The rest of the answer; a longer one than `bytes_max` is refused.
    pub async fn body(mut self, bytes_max: usize) -> Result<Vec<u8>, Unanswered> {
        let mut body = Vec::new();
        while let Some(chunk) = self.0.chunk().await.map_err(unanswered)? {
            if bytes_max < body.len() + chunk.len() {
                return Err(Unanswered(format!("the answer is longer than {bytes_max} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

fn authorized(request: RequestBuilder, token: Option<&str>) -> Result<RequestBuilder, Unanswered> {
    let Some(token) = token else { return Ok(request) };
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| Unanswered("the token cannot be sent in a header".into()))?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

/// What went wrong, down to its first cause, without the url.
fn unanswered(error: reqwest::Error) -> Unanswered {
    let error = error.without_url();
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        said = format!("{said}: {inner}");
        cause = inner.source();
    }
    Unanswered(said)
}

fn tls() -> Result<ClientConfig, Unanswered> {
    let mut roots = RootCertStore::empty();
    // Those that cannot be read are left out; a server that needs one of them is refused.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Unanswered(format!("no encryption: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Neither the token nor what is sent.
impl<T: ?Sized> fmt::Debug for Post<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Post").field("key", &self.key).finish_non_exhaustive()
    }
}
