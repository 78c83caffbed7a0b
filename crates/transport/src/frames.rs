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
    let mut line = Vec::new();
    let mut limited = input.take(FRAME_BYTES_MAX as u64);
    if limited.read_until(b'\n', &mut line).await? == 0 {
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
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await
}
