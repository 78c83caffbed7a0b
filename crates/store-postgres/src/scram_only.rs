//! A stream to the server that fails when the server asks for the password in a way that reveals it.
//!
//! The server chooses how a password is sent. In clear text it learns the password, and so does every
//! process that can pose as the server; an MD5 hash is as good as the password. tokio-postgres answers
//! both, so [`ScramOnly`] reads the server's messages before tokio-postgres does. Such a request never
//! reaches tokio-postgres, so no answer is sent. SCRAM proves that the client knows the password and
//! reveals nothing of it.
//!
//! The check ends with the server's message that the client is authenticated.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsStream};
use tokio_util::either::Either;

/// The first byte of a message about authentication.
const AUTHENTICATION: u8 = b'R';
/// The bytes of a message before its content: its kind, and its length without the kind.
const HEADER_BYTES: usize = 5;
/// A message about authentication starts with the number of the method.
const METHOD_BYTES: usize = 4;

const AUTHENTICATED: u32 = 0;
const CLEAR_TEXT: u32 = 3;
const MD5: u32 = 5;

/// The stream between a client and its server, with TLS or without.
#[derive(Debug)]
pub(crate) struct ScramOnly<S> {
    stream: S,
    /// `None` once the server has authenticated the client.
    check: Option<Check>,
}

/// The server asked for a password that must not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PasswordRefused {
    /// How the password would be sent.
    pub(crate) form: &'static str,
}

/// How much of the server's messages was read.
#[derive(Debug, Default)]
struct Check {
    /// The start of the present message, up to and including the method.
    start: Vec<u8>,
    /// Bytes of the present message that are neither in `start` nor read yet.
    rest: usize,
}

/// What the messages so far say about authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Pending,
    Authenticated,
}

impl<S> ScramOnly<S> {
    pub(crate) fn new(stream: S) -> ScramOnly<S> {
        ScramOnly { stream, check: Some(Check::default()) }
    }
}

impl Check {
    /// Reads the next bytes of the server.
    fn read(&mut self, mut bytes: &[u8]) -> io::Result<Progress> {
        while let Some((&byte, later)) = bytes.split_first() {
            if 0 < self.rest {
                let skipped = self.rest.min(bytes.len());
                self.rest -= skipped;
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            bytes = later;
            self.start.push(byte);
            if self.read_start()? == Progress::Authenticated {
                return Ok(Progress::Authenticated);
            }
        }
        Ok(Progress::Pending)
    }

    /// Decides on the present message if enough of it was read.
    fn read_start(&mut self) -> io::Result<Progress> {
        let Some((&[kind, a, b, c, d], content)) = self.start.split_first_chunk::<HEADER_BYTES>()
        else {
            return Ok(Progress::Pending);
        };
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "invalid message length");
        let length = u32::from_be_bytes([a, b, c, d]);
        let length = usize::try_from(length).map_err(|_| invalid())?;
        // The length counts itself but not the kind.
        let content_bytes = (length + 1).checked_sub(HEADER_BYTES).ok_or_else(invalid)?;
        if kind != AUTHENTICATION {
            self.rest = content_bytes;
            self.start.clear();
            return Ok(Progress::Pending);
        }
        let rest = content_bytes.checked_sub(METHOD_BYTES).ok_or_else(invalid)?;
        let Some(method) = content.first_chunk::<METHOD_BYTES>() else {
            return Ok(Progress::Pending);
        };
        let refuse = |form| Err(io::Error::other(PasswordRefused { form }));
        match u32::from_be_bytes(*method) {
            AUTHENTICATED => Ok(Progress::Authenticated),
            CLEAR_TEXT => refuse("in clear text"),
            MD5 => refuse("as an MD5 hash"),
            // SCRAM, or a method that tokio-postgres does not support.
            _ => {
                self.rest = rest;
                self.start.clear();
                Ok(Progress::Pending)
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ScramOnly<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        if let Some(check) = &mut this.check {
            let bytes = buffer.filled().get(before..).unwrap_or_default();
            if check.read(bytes)? == Progress::Authenticated {
                this.check = None;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ScramOnly<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S, T> TlsStream for ScramOnly<Either<S, T>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: TlsStream + Unpin,
{
    fn channel_binding(&self) -> ChannelBinding {
        match &self.stream {
            Either::Left(_) => ChannelBinding::none(),
            Either::Right(tls) => tls.channel_binding(),
        }
    }
}

impl fmt::Display for PasswordRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server asked for the password {}", self.form)
    }
}

impl std::error::Error for PasswordRefused {}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 4).unwrap();
        [&[kind], &length.to_be_bytes()[..], content].concat()
    }

    fn authentication(method: u32, rest: &[u8]) -> Vec<u8> {
        message(AUTHENTICATION, &[&method.to_be_bytes(), rest].concat())
    }

    /// The messages arrive at once, and byte by byte.
    #[track_caller]
    fn check(messages: &[Vec<u8>], expected: Result<Progress, &str>) {
        let bytes = messages.concat();
        for part_bytes in [bytes.len(), 1, 3] {
            let mut check = Check::default();
            let mut parts = bytes.chunks(part_bytes);
            let found = loop {
                let Some(part) = parts.next() else { break Ok(Progress::Pending) };
                match check.read(part).map_err(|error| error.to_string()) {
                    Ok(Progress::Pending) => {}
                    decided => break decided,
                }
            };
            assert_eq!(found, expected.map_err(str::to_owned), "in parts of {part_bytes}");
        }
    }

    #[test]
    fn clear_text_and_md5_are_refused_wherever_they_come() {
        let clear_text = Err("the server asked for the password in clear text");
        let md5 = Err("the server asked for the password as an MD5 hash");
        let scram = || authentication(10, b"SCRAM-SHA-256\0\0");
        let notice = || message(b'N', &[AUTHENTICATION; 300]);
        check(&[authentication(CLEAR_TEXT, b"")], clear_text);
        check(&[authentication(CLEAR_TEXT, b"more")], clear_text);
        check(&[authentication(MD5, b"salt")], md5);
        check(&[notice(), authentication(CLEAR_TEXT, b"")], clear_text);
        check(&[scram(), authentication(11, b"r=x"), authentication(MD5, b"salt")], md5);
        check(&[message(b'K', b""), authentication(CLEAR_TEXT, b"")], clear_text);
    }

    #[test]
    fn scram_passes_and_the_check_ends_once_authenticated() {
        check(&[authentication(10, b"SCRAM-SHA-256\0\0")], Ok(Progress::Pending));
        check(&[authentication(AUTHENTICATED, b"")], Ok(Progress::Authenticated));
        let rows = message(b'D', &authentication(CLEAR_TEXT, b""));
        check(&[authentication(AUTHENTICATED, b""), rows], Ok(Progress::Authenticated));
    }

    #[test]
    fn messages_with_an_impossible_length_are_refused() {
        let invalid = Err("invalid message length");
        check(&[vec![b'N', 0, 0, 0, 3]], invalid);
        check(&[vec![AUTHENTICATION, 0, 0, 0, 7, 0, 0, 0]], invalid);
    }
}
