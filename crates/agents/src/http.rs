//! Outgoing HTTP requests, within limits.
//!
//! A name is looked up once, all of its addresses are checked, and the connection goes to one of them, so a DNS
//! change a moment later has no effect. Redirects are not followed, proxies of the environment are not used, and
//! bodies are not decompressed: a request goes where its url says or nowhere, and a response is as long as it is.
//! Nothing is retried; that is the caller's decision. No error message contains the url or the token.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use jiff::civil::DateTime;
use kernel::backend::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};

use crate::egress::{Egress, ForbiddenAddress};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long to read a body that does not affect the outcome, after the status has arrived.
pub(crate) const OPTIONAL_BODY_TIME_MAX: Duration = Duration::from_secs(10);
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The bearer token that Letta's own clients send to a server without a password. It is not a secret.
pub const PLACEHOLDER_TOKEN: &str = "dummy-token-for-unsecured-server";

/// Looks up the addresses of a host name.
pub type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// An HTTP client. Cheap to clone. Every request opens a new connection.
#[derive(Clone)]
pub struct Http(Arc<Clients>);

/// One client for each [`Egress`], built when it is first needed.
struct Clients {
    lookup: Lookup,
    /// The daemon's own port on this machine, to which no request may go.
    own_port: Option<u16>,
    tls: OnceLock<Result<ClientConfig, RequestError>>,
    public: OnceLock<Result<Client, RequestError>>,
    public_and_loopback: OnceLock<Result<Client, RequestError>>,
    unrestricted: OnceLock<Result<Client, RequestError>>,
    loopback: OnceLock<Result<Client, RequestError>>,
    internal: OnceLock<Result<Client, RequestError>>,
}

/// A request with a JSON body.
pub struct Post<'a, T: ?Sized> {
    pub url: &'a Url,
    pub egress: Egress,
    /// Sent as a bearer token.
    pub token: Option<&'a str>,
    /// Idempotency key.
    pub key: Option<&'a str>,
    pub body: &'a T,
    /// From the first byte sent to the last one read.
    pub time_max: Duration,
}

/// A request without a body.
#[derive(Clone, Copy)]
pub struct Get<'a> {
    pub url: &'a Url,
    pub query: &'a [(&'a str, &'a str)],
    pub egress: Egress,
    /// Sent as a bearer token.
    pub token: Option<&'a str>,
    /// From the first byte sent to the last one read.
    pub time_max: Duration,
}

/// Any request.
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    pub(crate) url: reqwest::Url,
    pub(crate) egress: Egress,
    pub(crate) token: Option<&'a str>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// JSON.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) time_max: Duration,
}

/// Whether requests to a url are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Encrypted,
    /// Unencrypted, without leaving this machine.
    LocalPlaintext,
    /// Unencrypted over a network.
    Plaintext,
}

impl Scheme {
    /// Parses the url as a request does. `None` if no request can go there.
    pub fn of(url: &Url) -> Option<Scheme> {
        let url = reqwest::Url::parse(url.as_str()).ok()?;
        let is_local = is_this_machine(&url);
        match (url.scheme(), is_local) {
            _ if !url.username().is_empty() || url.password().is_some() => None,
            _ if url.host_str().is_none() => None,
            ("https", _) => Some(Scheme::Encrypted),
            ("http", true) => Some(Scheme::LocalPlaintext),
            ("http", false) => Some(Scheme::Plaintext),
            _ => None,
        }
    }
}

/// Whether the host of a url is `localhost` or a loopback address.
pub(crate) fn is_this_machine(url: &reqwest::Url) -> bool {
    url.host_str() == Some("localhost") || ip_literal(url).is_some_and(|it| it.is_loopback())
}

/// The IP address in a url whose host is not a name; no lookup checks it.
fn ip_literal(url: &reqwest::Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// A response whose body is not read yet.
#[derive(Debug)]
pub struct HttpResponse(Response);

/// Why a request has no usable response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct RequestError {
    what: String,
    pub(crate) kind: RequestErrorKind,
}

/// How far a failed request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestErrorKind {
    /// The address is forbidden, or the request cannot be built.
    Forbidden,
    /// No connection was made.
    NotConnected,
    /// The same: nothing accepts connections there.
    ConnectionRefused,
    /// It may have arrived.
    ConnectionLost,
    /// It may have arrived; no response came in time.
    TimedOut,
    /// It has arrived; the response is too long.
    TooLong,
}

impl Http {
    /// A client with the system's certificates and name lookup.
    pub fn new() -> Http {
        Http::with_lookup(|name| {
            async move {
                let found = lookup_host((name.as_str(), 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            }
            .boxed()
        })
    }

    /// A client with another name lookup.
    pub fn with_lookup(lookup: Lookup) -> Http {
        Http::build_with(lookup, None)
    }

    /// The same client, which refuses requests to the daemon's own port on this machine.
    #[must_use]
    pub fn excluding_own_port(self, own_port: Option<u16>) -> Http {
        Http::build_with(self.0.lookup, own_port)
    }

    fn build_with(lookup: Lookup, own_port: Option<u16>) -> Http {
        let (tls, public, public_and_loopback, unrestricted, loopback, internal) =
            Default::default();
        Http(Arc::new(Clients {
            lookup,
            own_port,
            tls,
            public,
            public_and_loopback,
            unrestricted,
            loopback,
            internal,
        }))
    }

    pub async fn get(&self, get: Get<'_>) -> Result<HttpResponse, RequestError> {
        let mut url = parse_url(get.url)?;
        if !get.query.is_empty() {
            url.query_pairs_mut().extend_pairs(get.query);
        }
        self.send(Request {
            method: Method::GET,
            url,
            egress: get.egress,
            token: get.token,
            headers: Vec::new(),
            body: None,
            time_max: get.time_max,
        })
        .await
    }

    pub async fn post<T: Serialize + ?Sized>(
        &self,
        post: Post<'_, T>,
    ) -> Result<HttpResponse, RequestError> {
        self.send_json(Method::POST, post).await
    }

    /// Like [`Http::post`], but idempotent.
    pub async fn put<T: Serialize + ?Sized>(
        &self,
        put: Post<'_, T>,
    ) -> Result<HttpResponse, RequestError> {
        self.send_json(Method::PUT, put).await
    }

    async fn send_json<T: Serialize + ?Sized>(
        &self,
        method: Method,
        post: Post<'_, T>,
    ) -> Result<HttpResponse, RequestError> {
        let url = parse_url(post.url)?;
        let body = serde_json::to_vec(post.body);
        let body = body.map_err(|error| RequestError::new(RequestErrorKind::Forbidden, error))?;
        let key = post.key.map(|key| (IDEMPOTENCY_KEY, key.to_owned()));
        self.send(Request {
            method,
            url,
            egress: post.egress,
            token: post.token,
            headers: key.into_iter().collect(),
            body: Some(body),
            time_max: post.time_max,
        })
        .await
    }

    pub(crate) async fn send(&self, request: Request<'_>) -> Result<HttpResponse, RequestError> {
        let Request { method, url, egress, token, headers, body, time_max } = request;
        let egress = self.effective_egress(&url, egress, token)?;
        let mut built = self.client(egress)?.request(method, url).timeout(time_max);
        for (name, value) in headers {
            built = built.header(name, value);
        }
        if let Some(body) = body {
            built = built.header(CONTENT_TYPE, "application/json").body(body);
        }
        let built = with_token(built, token)?;
        built.send().await.map(HttpResponse).map_err(request_error)
    }

    /// Connects to where a request without a token would go, and sends nothing.
    pub(crate) async fn connect(
        &self,
        url: &reqwest::Url,
        egress: Egress,
    ) -> Result<(), RequestError> {
        let egress = self.effective_egress(url, egress, None)?;
        let port = url.port_or_known_default().unwrap_or_default();
        let connected = timeout(CONNECT_TIME_MAX, async {
            let addresses = match (ip_literal(url), url.host_str()) {
                (Some(address), _) => vec![SocketAddr::new(address, port)],
                (None, name) => {
                    let name = name.unwrap_or_default().to_owned();
                    let found = (self.0.lookup)(name).await.map_err(not_connected)?;
                    egress.check_all(&found).map_err(forbidden)?;
                    found.into_iter().map(|address| SocketAddr::new(address, port)).collect()
                }
            };
            TcpStream::connect(&*addresses).await.map(drop).map_err(not_connected)
        });
        connected.await.map_err(|_| not_connected(io::ErrorKind::TimedOut.into()))?
    }

    /// The networks that a request to this url may go to. An address in the url is checked here, because no lookup does.
    fn effective_egress(
        &self,
        url: &reqwest::Url,
        egress: Egress,
        token: Option<&str>,
    ) -> Result<Egress, RequestError> {
        // Any name may resolve to this machine, so a request to this port may only go to the internet.
        let own_port = self.0.own_port;
        let is_own = own_port.is_some() && url.port_or_known_default() == own_port;
        let egress = if is_own { Egress::Public } else { egress };
        let is_secret = token.is_some_and(|token| token != PLACEHOLDER_TOKEN);
        let egress = match is_secret && url.scheme() == "http" {
            true => egress.for_plaintext_secret().ok_or_else(plaintext_secret_error)?,
            false => egress,
        };
        if let Some(address) = ip_literal(url) {
            egress.check(address).map_err(forbidden)?;
        }
        Ok(egress)
    }

    fn client(&self, egress: Egress) -> Result<&Client, RequestError> {
        let client = match egress {
            Egress::Public => &self.0.public,
            Egress::PublicAndLoopback => &self.0.public_and_loopback,
            Egress::Unrestricted => &self.0.unrestricted,
            Egress::Loopback => &self.0.loopback,
            Egress::Internal => &self.0.internal,
        };
        client.get_or_init(|| self.build_client(egress)).as_ref().map_err(Clone::clone)
    }

    fn build_client(&self, egress: Egress) -> Result<Client, RequestError> {
        let tls = self.0.tls.get_or_init(tls_config).clone()?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .no_proxy()
            .dns_resolver(FilteringResolver { egress, lookup: self.0.lookup })
            // A pooled connection may be dead by the next request.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_TIME_MAX)
            .user_agent("midwatch");
        client.build().map_err(request_error)
    }
}

impl Default for Http {
    fn default() -> Http {
        Http::new()
    }
}

/// A resolver that fails unless all addresses of a name are allowed.
struct FilteringResolver {
    egress: Egress,
    lookup: Lookup,
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let FilteringResolver { egress, lookup } = *self;
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned()).await?;
            egress.check_all(&found)?;
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

impl HttpResponse {
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// The wait that `Retry-After` asks for, in seconds or until a time by the server's clock (`Date`).
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let header = |name| Some(self.0.headers().get(name)?.to_str().ok()?.trim());
        parse_retry_after(header(RETRY_AFTER)?, header(DATE))
    }

    /// Reads the body; one longer than `bytes_max` is an error.
    pub async fn body(mut self, bytes_max: usize) -> Result<Vec<u8>, RequestError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes_max < body.len() + chunk.len() {
                return Err(RequestError::too_long(bytes_max));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Reads the beginning of the body, as much as arrives within `time_max`.
    pub(crate) async fn read_beginning(mut self, bytes_max: usize, time_max: Duration) -> Vec<u8> {
        let (mut body, until) = (Vec::new(), Instant::now() + time_max);
        while body.len() < bytes_max
            && let Ok(Ok(Some(chunk))) = timeout_at(until, self.chunk()).await
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(bytes_max);
        body
    }

    /// Reads the next chunk of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, RequestError> {
        let chunk = self.0.chunk().await.map_err(request_error)?;
        Ok(chunk.map(|chunk| chunk.to_vec()))
    }
}

impl RequestError {
    fn new(kind: RequestErrorKind, what: impl ToString) -> RequestError {
        RequestError { what: what.to_string(), kind }
    }

    pub(crate) fn too_long(bytes_max: usize) -> RequestError {
        RequestError::new(
            RequestErrorKind::TooLong,
            format!("the response is longer than {bytes_max} bytes"),
        )
    }
}

fn forbidden(address: ForbiddenAddress) -> RequestError {
    RequestError::new(RequestErrorKind::Forbidden, address)
}

fn not_connected(error: io::Error) -> RequestError {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => RequestErrorKind::ConnectionRefused,
        _ => RequestErrorKind::NotConnected,
    };
    RequestError::new(kind, error)
}

fn plaintext_secret_error() -> RequestError {
    let what = "the secret would go over the internet unencrypted: use an https url";
    RequestError::new(RequestErrorKind::Forbidden, what)
}

/// Parses `Retry-After`; `date` is the response's own `Date`.
fn parse_retry_after(after: &str, date: Option<&str>) -> Option<Duration> {
    if !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large to parse becomes the longest wait.
        return Some(Duration::from_secs(after.parse().unwrap_or(u64::MAX)));
    }
    let (until, now) = (http_date(after)?, http_date(date?)?);
    // A time in the past means no wait.
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// Parses a date in any of HTTP's three formats, which are all in UTC.
fn http_date(text: &str) -> Option<DateTime> {
    let forms = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    forms.iter().find_map(|form| DateTime::strptime(form, text).ok())
}

fn parse_url(url: &Url) -> Result<reqwest::Url, RequestError> {
    let invalid = |_| RequestError::new(RequestErrorKind::Forbidden, "the url is invalid");
    reqwest::Url::parse(url.as_str()).map_err(invalid)
}

fn with_token(
    request: RequestBuilder,
    token: Option<&str>,
) -> Result<RequestBuilder, RequestError> {
    let Some(token) = token else { return Ok(request) };
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let invalid =
        |_| RequestError::new(RequestErrorKind::Forbidden, "the token cannot be sent in a header");
    let mut value = value.map_err(invalid)?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

/// Describes an error with its causes, without the url.
fn request_error(error: reqwest::Error) -> RequestError {
    let error = error.without_url();
    let kind = match () {
        () if error.is_builder() => RequestErrorKind::Forbidden,
        () if error.is_connect() => RequestErrorKind::NotConnected,
        () if error.is_timeout() => RequestErrorKind::TimedOut,
        () => RequestErrorKind::ConnectionLost,
    };
    let mut what = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        if let Some(forbidden) = inner.downcast_ref::<ForbiddenAddress>() {
            return RequestError::new(RequestErrorKind::Forbidden, forbidden);
        }
        let io = inner.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
            let what = "the connection was refused";
            return RequestError::new(RequestErrorKind::ConnectionRefused, what);
        }
        what = match kind {
            // The innermost cause is the one that people know.
            RequestErrorKind::NotConnected => inner.to_string(),
            _ => format!("{what}: {inner}"),
        };
        cause = inner.source();
    }
    RequestError { what, kind }
}

fn tls_config() -> Result<ClientConfig, RequestError> {
    let mut roots = RootCertStore::empty();
    // Unreadable certificates are skipped; a connection to a server that needs one of them fails.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let failed = |error| {
        RequestError::new(RequestErrorKind::Forbidden, format!("TLS is not available: {error}"))
    };
    Ok(builder.map_err(failed)?.with_root_certificates(roots).with_no_client_auth())
}

impl fmt::Debug for Http {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Http").finish_non_exhaustive()
    }
}

/// Omits the token and the url.
impl fmt::Debug for Get<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Get").finish_non_exhaustive()
    }
}

/// Omits the token, the url and the body.
impl<T: ?Sized> fmt::Debug for Post<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Post").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (after, date, seconds) in [
            ("0", None, Some(0)),
            ("120", date, Some(120)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", date, Some(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", date, Some(30)),
            ("Sun Nov  6 08:50:07 1994", date, Some(30)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", date, Some(86_400)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", date, Some(0)),
            // Without the server's time, a date says nothing.
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some("today"), None),
            ("tomorrow", date, None),
            ("-1", date, None),
            ("1.5", date, None),
            ("", date, None),
            ("+5", date, None),
            ("99999999999999999999999999", date, Some(u64::MAX)),
        ] {
            assert_eq!(parse_retry_after(after, date), seconds.map(Duration::from_secs), "{after}");
        }
    }

    #[tokio::test]
    async fn read_beginning_returns_what_arrived_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_ne!(stream.read(&mut [0; 1024]).await.unwrap(), 0, "no request arrived");
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ntaken";
            stream.write_all(response).await.unwrap();
            stream
        };
        let (http, time_max) = (Http::new(), Duration::from_secs(60));
        let (egress, token) = (Egress::PublicAndLoopback, None);
        let get = http.get(Get { url: &url, query: &[], egress, token, time_max });
        let (_open, response) = tokio::join!(serving, get);
        let body = response.unwrap().read_beginning(99, Duration::from_millis(200)).await;
        assert_eq!(body, b"taken");
    }
}
