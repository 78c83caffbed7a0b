//! What runs have said, piece by piece.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use api::{Code, Error, RunPiece, RunRead, RunShow};
use kernel::Actor;
use rustix::fs::{Mode, OFlags};

use crate::watch::Engine;

/// The longest piece. As a text in JSON it is at most six times as long.
const PIECE_BYTES_MAX: u64 = 8 << 10;

impl Engine {
    pub(crate) async fn run_read(&self, actor: &Actor, asked: RunRead) -> Result<RunPiece, Error> {
        let run = self.run_show(actor, RunShow { id: asked.id }).await?.run;
        let Some(output) = run.output else {
            return Ok(RunPiece { text: String::new(), bytes: 0, next: None });
        };
        if output.sealed {
            let what = "what it said is sensitive, and not for everybody";
            return Err(Error::new(Code::RoleTooLow, what).hint("ask who made the schedule"));
        }
        let found = match &output.file {
            Some(file) => in_file(Path::new(file), asked.from),
            None => in_text(output.text.as_bytes(), asked.from),
        };
        let bytes = found.map_err(|error| {
            let what = format!("the file of what it said cannot be read: {error}");
            let hint =
                "`run show` has the beginning, and names the file and so the machine it is on";
            Error::new(Code::NotFound, what).hint(hint)
        })?;
        let whole = without_half_a_character(&bytes);
        let end = asked.from.saturating_add(whole.len() as u64);
        let next = (!whole.is_empty() && end < output.bytes).then_some(end);
        let text = String::from_utf8_lossy(whole).into_owned();
        Ok(RunPiece { text, bytes: output.bytes, next })
    }
}

fn in_text(text: &[u8], from: u64) -> io::Result<Vec<u8>> {
    let rest = usize::try_from(from).ok().and_then(|from| text.get(from..));
    let mut piece = Vec::new();
    rest.unwrap_or_default().take(PIECE_BYTES_MAX).read_to_end(&mut piece)?;
    Ok(piece)
}

fn in_file(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    file.seek(SeekFrom::Start(from))?;
    let mut piece = Vec::new();
    file.take(PIECE_BYTES_MAX).read_to_end(&mut piece)?;
    Ok(piece)
}

/// The next piece begins with a character whose end is not here. What is no text at all is left as it is.
fn without_half_a_character(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_half = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    let keep = bytes.len() - if is_half { last.len() } else { 0 };
    match bytes.get(..keep) {
        Some(whole) if !whole.is_empty() => whole,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_ends_with_a_whole_character() {
        for (bytes, kept) in [
            (&b"ab"[..], &b"ab"[..]),
            (b"", b""),
            ("a\u{e4}".as_bytes(), "a\u{e4}".as_bytes()),
            (b"a\xc3", b"a"),
            (b"a\xf0\x9f\x98", b"a"),
            (b"\xff\xfe", b"\xff\xfe"),
            (b"a\xff", b"a\xff"),
            (b"\xc3", b"\xc3"),
        ] {
            assert_eq!(without_half_a_character(bytes), kept, "{bytes:?}");
        }
    }
}
