//! What a backend over HTTP needs to speak to one agent: where it is, how far that may be, its secret.

use std::time::Duration;

use kernel::backend::{SecretRef, Url};
use reqwest::Method;

use crate::failure::{refused, unanswered};
use crate::http::{Answer, Http, Request, is_this_machine};
use crate::reach::Reach;
use crate::secrets::Secrets;
use crate::work::{Failure, Reason};

pub(crate) struct Link<'a> {
    pub(crate) http: &'a Http,
    pub(crate) secrets: &'a dyn Secrets,
    pub(crate) url: reqwest::Url,
    pub(crate) reach: Reach,
    pub(crate) secret: Option<String>,
    pub(crate) time_max: Duration,
}

impl<'a> Link<'a> {
    pub(crate) fn new(
        (http, secrets): (&'a Http, &'a dyn Secrets),
        credential: Option<&SecretRef>,
        (url, reach): (&Url, Reach),
        time_max: Duration,
    ) -> Result<Link<'a>, Failure> {
        let unfit = |_| Failure::permanent(Reason::NotAllowed, "its url cannot be understood");
        let secret = match credential {
            None => None,
            Some(reference) => Some(secrets.read(reference).ok_or_else(|| {
                let message = format!("there is no secret at `{reference}` that can be read");
                Failure::permanent(Reason::SecretMissing, message)
            })?),
        };
        let url = reqwest::Url::parse(url.as_str()).map_err(unfit)?;
        Ok(Link { http, secrets, url, reach, secret, time_max })
    }

    /// A request to a path below the url, without a body.
    pub(crate) fn request(&self, method: Method, path: &[&str]) -> Request<'_> {
        let mut url = self.url.clone();
        url.set_query(None);
        // An http url can always have a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let (reach, time_max) = (self.reach, self.time_max);
        let token = self.secret.as_deref();
        Request { method, url, reach, token, headers: Vec::new(), body: None, time_max }
    }

    /// The answer to a request, if it is a success.
    pub(crate) async fn ask(&self, request: Request<'_>) -> Result<Answer, Failure> {
        let answer = self.http.send(request).await.map_err(|it| unanswered(&it))?;
        match answer.status() {
            200..=299 => Ok(answer),
            _ => Err(refused(answer, self.secrets).await),
        }
    }
}

/// How far the server of a url may be that an operator gave: this machine if the url says so.
pub(crate) fn reach_of_server(url: &Url, allow_private: bool) -> Reach {
    let names_this = reqwest::Url::parse(url.as_str()).is_ok_and(|url| is_this_machine(&url));
    match (allow_private, names_this) {
        (true, _) => Reach::Private,
        (false, true) => Reach::Local,
        (false, false) => Reach::Public,
    }
}
