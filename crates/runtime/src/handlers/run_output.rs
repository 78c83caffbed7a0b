//! Reads the output of a run in pieces.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use api::{Code, Error, OutputChunk, RunRead, RunShow, Serve};

use crate::commit::caller::Caller;
use crate::engine::Engine;

/// The longest piece. As a JSON string it is at most six times as long.
const PIECE_BYTES_MAX: u64 = 8 << 10;

impl Serve<RunRead> for Engine {
    async fn serve(&self, caller: &Caller, request: RunRead) -> Result<OutputChunk, Error> {
        let run = self.serve(caller, RunShow { id: request.id }).await?.run;
        let Some(output) = run.output else {
            return Ok(OutputChunk { text: String::new(), bytes: 0, next: None });
        };
        if output.sealed {
            let what = "the output is sealed, and only operators and the agent can read it";
            return Err(Error::new(Code::RoleTooLow, what).hint("ask an operator"));
        }
        let found = match &output.file {
            Some(file) => read_file(Path::new(file), request.from),
            None => read_text(output.text.as_bytes(), request.from),
        };
        let bytes = found.map_err(|error| {
            let what = format!("the output file cannot be read: {error}");
            let hint = "`run show` prints the start of the output and the path of the file, which may be \
                        on another machine, or was removed (`[retention]`)";
            Error::new(Code::NotFound, what).hint(hint)
        })?;
        let complete = trim_incomplete_character(&bytes);
        let end = request.from.saturating_add(complete.len() as u64);
        let next = (!complete.is_empty() && end < output.bytes).then_some(end);
        let text = String::from_utf8_lossy(complete).into_owned();
        Ok(OutputChunk { text, bytes: output.bytes, next })
    }
}

fn read_text(text: &[u8], from: u64) -> io::Result<Vec<u8>> {
    let rest = usize::try_from(from).ok().and_then(|from| text.get(from..));
    let mut piece = Vec::new();
    rest.unwrap_or_default().take(PIECE_BYTES_MAX).read_to_end(&mut piece)?;
    Ok(piece)
}

fn read_file(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = files::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut piece = Vec::new();
    file.take(PIECE_BYTES_MAX).read_to_end(&mut piece)?;
    Ok(piece)
}

/// Cuts off an incomplete character at the end, which the next piece starts with. Bytes that are not text are left as they are.
fn trim_incomplete_character(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_incomplete = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    let keep = bytes.len() - if is_incomplete { last.len() } else { 0 };
    match bytes.get(..keep) {
        Some(complete) if !complete.is_empty() => complete,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_ends_with_a_complete_character() {
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
            assert_eq!(trim_incomplete_character(bytes), kept, "{bytes:?}");
        }
    }
}
