//! Requests over HTTP, within limits.
//!
//! A name is looked up once, every address that it has is judged, and the connection goes to one of those:
//! what the name leads to a moment later is no matter. No redirect is followed, no proxy of the environment
//! is used, and nothing is unpacked: a request goes where its url says, or nowhere, and an answer is as long
//! as it is. Nothing is tried twice; whether that helps is for the caller to say. No message holds the url
//! or the token.

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
use tokio::net::lookup_host;
use tokio::time::{Instant, timeout_at};

use crate::reach::{Forbidden, Reach};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it is listened to what is said besides, once an answer has begun.
pub(crate) const BESIDES_TIME_MAX: Duration = Duration::from_secs(10);
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// What a server without a password is sent all the same, as its clients do. It is no secret.
pub const NO_TOKEN: &str = "dummy-token-for-unsecured-server";

/// Finds the addresses of a name.
pub type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// A client. Cheap to clone. Every request has a connection of its own.
#[derive(Clone)]
pub struct Http(Arc<Clients>);

/// One for each reach, made when it is needed.
struct Clients {
    lookup: Lookup,
    /// A port of this machine to which no request goes, however far it may go.
    own_port: Option<u16>,
    tls: OnceLock<Result<ClientConfig, Unanswered>>,
    public: OnceLock<Result<Client, Unanswered>>,
    local: OnceLock<Result<Client, Unanswered>>,
    private: OnceLock<Result<Client, Unanswered>>,
    machine: OnceLock<Result<Client, Unanswered>>,
    near: OnceLock<Result<Client, Unanswered>>,
}

/// A request that carries a document.
pub struct Post<'a, T: ?Sized> {
    pub url: &'a Url,
    pub reach: Reach,
    /// Sent as a bearer token.
    pub token: Option<&'a str>,
    /// By which the other side can tell a repeated request.
    pub key: Option<&'a str>,
    pub body: &'a T,
    /// From the first byte sent to the last one read.
    pub time_max: Duration,
}

/// A request for a document.
#[derive(Clone, Copy)]
pub struct Get<'a> {
    pub url: &'a Url,
    pub query: &'a [(&'a str, &'a str)],
    pub reach: Reach,
    /// Sent as a bearer token.
    pub token: Option<&'a str>,
    /// From the first byte sent to the last one read.
    pub time_max: Duration,
}

/// Any request.
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    pub(crate) url: reqwest::Url,
    pub(crate) reach: Reach,
    pub(crate) token: Option<&'a str>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// JSON.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) time_max: Duration,
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
        let is_local = is_this_machine(&url);
        match (url.scheme(), is_local) {
            _ if !url.username().is_empty() || url.password().is_some() => None,
            _ if url.host_str().is_none() => None,
            ("https", _) => Some(Way::Encrypted),
            ("http", true) => Some(Way::Local),
            ("http", false) => Some(Way::Open),
            _ => None,
        }
    }
}

/// Whether a url names this machine in so many words.
pub(crate) fn is_this_machine(url: &reqwest::Url) -> bool {
    url.host_str() == Some("localhost") || literal(url).is_some_and(|it| it.is_loopback())
}

/// The address that stands in a url, if it is no name. It is not looked up.
fn literal(url: &reqwest::Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// An answer of which only the head was read.
#[derive(Debug)]
pub struct Answer(Response);

/// No answer, or none that could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Unanswered {
    what: String,
    pub(crate) why: Why,
}

/// What is known of a request that has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It may not go there, or cannot be sent as it is.
    Forbidden,
    /// Nobody took it.
    NotSent,
    /// It may have arrived.
    Lost,
    /// It may have arrived, and there was no answer in time.
    TooLate,
    /// It has arrived, and the answer is longer than it may be.
    TooLong,
}

impl Http {
    /// A client that trusts the certificates of the system and looks names up as it does.
    pub fn new() -> Http {
        Http::with_names(|name| {
            async move {
                let found = lookup_host((name.as_str(), 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            }
            .boxed()
        })
    }

    /// A client that looks names up in another way.
    pub fn with_names(lookup: Lookup) -> Http {
        Http::of(lookup, None)
    }

    /// The same, but with no request to this machine at the port that the watch itself listens on.
    #[must_use]
    pub fn keeping_off(self, own_port: Option<u16>) -> Http {
        Http::of(self.0.lookup, own_port)
    }

    fn of(lookup: Lookup, own_port: Option<u16>) -> Http {
        let (tls, public, local, private, machine, near) = Default::default();
        Http(Arc::new(Clients { lookup, own_port, tls, public, local, private, machine, near }))
    }

    pub async fn get(&self, get: Get<'_>) -> Result<Answer, Unanswered> {
        let mut url = parsed(get.url)?;
        if !get.query.is_empty() {
            url.query_pairs_mut().extend_pairs(get.query);
        }
        self.send(Request {
            method: Method::GET,
            url,
            reach: get.reach,
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
    ) -> Result<Answer, Unanswered> {
        self.carry(Method::POST, post).await
    }

    /// What it carries is to be there afterwards, however often it is sent.
    pub async fn put<T: Serialize + ?Sized>(&self, put: Post<'_, T>) -> Result<Answer, Unanswered> {
        self.carry(Method::PUT, put).await
    }

    async fn carry<T: Serialize + ?Sized>(
        &self,
        method: Method,
        post: Post<'_, T>,
    ) -> Result<Answer, Unanswered> {
        let url = parsed(post.url)?;
        let body = serde_json::to_vec(post.body);
        let body = body.map_err(|error| Unanswered::new(Why::Forbidden, error))?;
        let key = post.key.map(|key| (IDEMPOTENCY_KEY, key.to_owned()));
        self.send(Request {
            method,
            url,
            reach: post.reach,
            token: post.token,
            headers: key.into_iter().collect(),
            body: Some(body),
            time_max: post.time_max,
        })
        .await
    }

    pub(crate) async fn send(&self, request: Request<'_>) -> Result<Answer, Unanswered> {
        let Request { method, url, reach, token, headers, body, time_max } = request;
        // A name may lead to this machine as well, so what may come here by any way only goes elsewhere.
        let own_port = self.0.own_port;
        let is_own = own_port.is_some() && url.port_or_known_default() == own_port;
        let reach = if is_own { Reach::Public } else { reach };
        let is_secret = token.is_some_and(|token| token != NO_TOKEN);
        let reach = match is_secret && url.scheme() == "http" {
            true => reach.in_the_clear().ok_or_else(in_the_clear)?,
            false => reach,
        };
        if let Some(address) = literal(&url) {
            reach.check(address).map_err(|it| Unanswered::new(Why::Forbidden, it))?;
        }
        let mut built = self.client(reach)?.request(method, url).timeout(time_max);
        for (name, value) in headers {
            built = built.header(name, value);
        }
        if let Some(body) = body {
            built = built.header(CONTENT_TYPE, "application/json").body(body);
        }
        let built = authorized(built, token)?;
        built.send().await.map(Answer).map_err(unanswered)
    }

    fn client(&self, reach: Reach) -> Result<&Client, Unanswered> {
        let place = match reach {
            Reach::Public => &self.0.public,
            Reach::Local => &self.0.local,
            Reach::Private => &self.0.private,
            Reach::Machine => &self.0.machine,
            Reach::Near => &self.0.near,
        };
        place.get_or_init(|| self.build(reach)).as_ref().map_err(Clone::clone)
    }

    fn build(&self, reach: Reach) -> Result<Client, Unanswered> {
        let tls = self.0.tls.get_or_init(tls).clone()?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .no_proxy()
            .dns_resolver(Judged { reach, lookup: self.0.lookup })
            // One that was kept open may be dead by the time of the next request.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_TIME_MAX)
            .user_agent("midwatch");
        client.build().map_err(unanswered)
    }
}

impl Default for Http {
    fn default() -> Http {
        Http::new()
    }
}

/// Looks a name up, and lets through what all may be connected to.
struct Judged {
    reach: Reach,
    lookup: Lookup,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let Judged { reach, lookup } = *self;
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned()).await?;
            // Whoever mixes them means no good.
            found.iter().try_for_each(|address| reach.check(*address))?;
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// How long to wait before another request, if it says so: in seconds, or until a time by its own
    /// clock, which it tells as well.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let header = |name| Some(self.0.headers().get(name)?.to_str().ok()?.trim());
        wait(header(RETRY_AFTER)?, header(DATE))
    }

    /// The rest of the answer; a longer one than `bytes_max` is refused.
    pub async fn body(mut self, bytes_max: usize) -> Result<Vec<u8>, Unanswered> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes_max < body.len() + chunk.len() {
                return Err(Unanswered::too_long(bytes_max));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The beginning of the rest, as far as it comes in so much time.
    pub(crate) async fn beginning(mut self, bytes_max: usize, time_max: Duration) -> Vec<u8> {
        let (mut body, until) = (Vec::new(), Instant::now() + time_max);
        while body.len() < bytes_max
            && let Ok(Ok(Some(chunk))) = timeout_at(until, self.chunk()).await
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(bytes_max);
        body
    }

    /// The next piece of the rest, if there is more.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Unanswered> {
        let chunk = self.0.chunk().await.map_err(unanswered)?;
        Ok(chunk.map(|chunk| chunk.to_vec()))
    }
}

impl Unanswered {
    fn new(why: Why, what: impl ToString) -> Unanswered {
        Unanswered { what: what.to_string(), why }
    }

    pub(crate) fn too_long(bytes_max: usize) -> Unanswered {
        Unanswered::new(Why::TooLong, format!("the answer is longer than {bytes_max} bytes"))
    }
}

fn in_the_clear() -> Unanswered {
    let what = "its secret would go over the internet in the clear: use an https url";
    Unanswered::new(Why::Forbidden, what)
}

/// What stands behind `Retry-After`, if the answer is of this date.
fn wait(after: &str, date: Option<&str>) -> Option<Duration> {
    if !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit()) {
        // Whatever is longer than anybody can say is the longest there is.
        return Some(Duration::from_secs(after.parse().unwrap_or(u64::MAX)));
    }
    let (until, now) = (http_date(after)?, http_date(date?)?);
    // What is over need not be waited for.
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// A date in any of the three forms that HTTP knows; all of them are in UTC.
fn http_date(text: &str) -> Option<DateTime> {
    let forms = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    forms.iter().find_map(|form| DateTime::strptime(form, text).ok())
}

fn parsed(url: &Url) -> Result<reqwest::Url, Unanswered> {
    let unfit = |_| Unanswered::new(Why::Forbidden, "the url cannot be understood");
    reqwest::Url::parse(url.as_str()).map_err(unfit)
}

fn authorized(request: RequestBuilder, token: Option<&str>) -> Result<RequestBuilder, Unanswered> {
    let Some(token) = token else { return Ok(request) };
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let unfit = |_| Unanswered::new(Why::Forbidden, "the token cannot be sent in a header");
    let mut value = value.map_err(unfit)?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}

/// What went wrong, down to its first cause, without the url.
fn unanswered(error: reqwest::Error) -> Unanswered {
    let error = error.without_url();
    let why = match () {
        () if error.is_builder() => Why::Forbidden,
        () if error.is_connect() => Why::NotSent,
        () if error.is_timeout() => Why::TooLate,
        () => Why::Lost,
    };
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        if let Some(forbidden) = inner.downcast_ref::<Forbidden>() {
            return Unanswered::new(Why::Forbidden, forbidden);
        }
        said = format!("{said}: {inner}");
        cause = inner.source();
    }
    Unanswered { what: said, why }
}

fn tls() -> Result<ClientConfig, Unanswered> {
    let mut roots = RootCertStore::empty();
    // Those that cannot be read are left out; a server that needs one of them is refused.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let none = |error| Unanswered::new(Why::Forbidden, format!("no encryption: {error}"));
    Ok(builder.map_err(none)?.with_root_certificates(roots).with_no_client_auth())
}

impl fmt::Debug for Http {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Http").finish_non_exhaustive()
    }
}

/// Not the token, and not the url either.
impl fmt::Debug for Get<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Get").finish_non_exhaustive()
    }
}

/// Neither the token nor what is sent.
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
    fn a_wait_is_a_number_of_seconds_or_lasts_until_a_date() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (after, date, seconds) in [
            ("0", None, Some(0)),
            ("120", date, Some(120)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", date, Some(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", date, Some(30)),
            ("Sun Nov  6 08:50:07 1994", date, Some(30)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", date, Some(86_400)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", date, Some(0)),
            // Whoever does not tell the time cannot say until when.
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some("today"), None),
            ("tomorrow", date, None),
            ("-1", date, None),
            ("1.5", date, None),
            ("", date, None),
            ("+5", date, None),
            ("99999999999999999999999999", date, Some(u64::MAX)),
        ] {
            assert_eq!(wait(after, date), seconds.map(Duration::from_secs), "{after}");
        }
    }
    #[tokio::test]
    async fn what_was_said_counts_also_if_no_end_comes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let saying = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_ne!(stream.read(&mut [0; 1024]).await.unwrap(), 0, "it is asked first");
            let said = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ntaken";
            stream.write_all(said).await.unwrap();
            stream
        };
        let (http, time_max) = (Http::new(), Duration::from_secs(60));
        let (reach, token) = (Reach::Local, None);
        let get = http.get(Get { url: &url, query: &[], reach, token, time_max });
        let (_open, answer) = tokio::join!(saying, get);
        let said = answer.unwrap().beginning(99, Duration::from_millis(200)).await;
        assert_eq!(said, b"taken");
    }
}
