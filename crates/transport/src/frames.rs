//! Frames: one JSON document per line, with a limit on its length.

use std::io;

use api::wire::FRAME_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Reads the next frame, or `None` when the other end has closed the connection. A frame that is too long,
/// truncated or malformed is an error of kind `InvalidData`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use transport::frames;
///
/// let mut sent = Vec::new();
/// frames::write(&mut sent, &("hello", 1)).await?;
/// assert_eq!(sent, b"[\"hello\",1]\n");
/// let mut input = sent.as_slice();
/// assert_eq!(frames::read(&mut input).await?, Some(("hello".to_owned(), 1)));
/// assert_eq!(frames::read::<(String, u8)>(&mut input).await?, None);
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn read<T: DeserializeOwned>(
    input: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<T>> {
    read_within(input, |_| true).await
}

/// Like [`read`], but asks `has_room` before it holds more bytes, and fails with `QuotaExceeded` if there is no room.
pub async fn read_within<T: DeserializeOwned>(
    input: &mut (impl AsyncBufRead + Unpin),
    mut has_room: impl FnMut(usize) -> bool,
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let mut limited = input.take(FRAME_BYTES_MAX as u64);
    loop {
        let piece = limited.fill_buf().await?;
        let end = piece.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let piece = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
        let (needed, is_last) = (line.len() + piece.len(), end.is_some() || piece.is_empty());
        if line.capacity() < needed {
            let bytes = needed.max(2 * line.capacity()).min(FRAME_BYTES_MAX);
            if !has_room(bytes) {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            line.reserve_exact(bytes - line.len());
        }
        line.extend_from_slice(piece);
        let read = piece.len();
        limited.consume(read);
        if is_last {
            break;
        }
    }
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        let what = match line.len() < FRAME_BYTES_MAX {
            true => "the frame is truncated".to_owned(),
            false => format!("the frame is longer than {FRAME_BYTES_MAX} bytes"),
        };
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let frame = api::json::read(&line);
    frame.map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes one frame and flushes it.
pub async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    frame: &impl Serialize,
) -> io::Result<()> {
    write_line(output, &line(frame)?).await
}

/// A frame as bytes.
pub fn line(frame: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes the bytes of one frame and flushes them.
pub async fn write_line(output: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    output.write_all(line).await?;
    output.flush().await
}
