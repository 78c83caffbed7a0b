//! Records the output of an attempt within limits: the beginning in memory, the whole in a file if it is longer.
//! Bytes beyond the file's limit, or that cannot be written to disk, are counted and dropped.

use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{self, AsyncWriteExt};

use crate::attempt::Output;
use crate::live_output::LiveOutput;

pub const TEXT_BYTES_MAX: usize = 16 << 10;
pub const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Recorder {
    /// `None`: no file is written.
    path: Option<PathBuf>,
    live: LiveOutput,
    /// Never more than [`TEXT_BYTES_MAX`].
    head: Vec<u8>,
    bytes: u64,
    full: FullOutput,
}

/// Where the whole output is.
#[derive(Debug)]
enum FullOutput {
    InHead,
    InFile {
        file: File,
        bytes: u64,
    },
    /// A write to the file failed; it holds the beginning.
    Truncated,
    /// The file could not be created.
    Unavailable,
}

impl Recorder {
    pub(crate) fn new(path: Option<PathBuf>, live: LiveOutput) -> Recorder {
        Recorder { path, live, head: Vec::new(), bytes: 0, full: FullOutput::InHead }
    }

    pub(crate) async fn write(&mut self, chunk: &[u8]) {
        self.live.push(chunk);
        let room = TEXT_BYTES_MAX - self.head.len();
        if room < chunk.len() && matches!(self.full, FullOutput::InHead) {
            self.start_file().await;
        }
        self.bytes += chunk.len() as u64;
        self.head.extend(chunk.iter().take(room));
        self.append(chunk).await;
    }

    pub(crate) async fn finish(mut self) -> Output {
        if matches!(self.full, FullOutput::InHead) && str::from_utf8(&self.head).is_err() {
            self.start_file().await;
        }
        let is_whole = self.head.len() as u64 == self.bytes;
        let file = match self.full {
            FullOutput::InHead | FullOutput::Unavailable => None,
            FullOutput::Truncated => self.path,
            FullOutput::InFile { mut file, .. } => {
                // A failure can be seen from the length of the file.
                let _ = file.flush().await;
                self.path
            }
        };
        Output { text: text(&self.head, is_whole), bytes: self.bytes, file }
    }

    async fn start_file(&mut self) {
        let Some(path) = &self.path else {
            self.full = FullOutput::Unavailable;
            return;
        };
        self.full = match create(path).await {
            Ok(file) => FullOutput::InFile { file, bytes: 0 },
            Err(_) => FullOutput::Unavailable,
        };
        let head = std::mem::take(&mut self.head);
        self.append(&head).await;
        self.head = head;
    }

    async fn append(&mut self, chunk: &[u8]) {
        let FullOutput::InFile { file, bytes } = &mut self.full else { return };
        let room = usize::try_from(FILE_BYTES_MAX - *bytes).unwrap_or(usize::MAX);
        let chunk = chunk.get(..room).unwrap_or(chunk);
        *bytes += chunk.len() as u64;
        if file.write_all(chunk).await.is_err() {
            self.full = FullOutput::Truncated;
        }
    }
}

/// Creates a file, and its directory if necessary, that only the owner can read.
async fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        files::create_directory(directory)?;
    }
    files::create(path).map(File::from_std)
}

/// Converts to text. An incomplete last character is left out, not replaced, if the output goes on after it.
fn text(head: &[u8], is_whole: bool) -> String {
    let head = match str::from_utf8(head) {
        Err(error) if !is_whole && error.error_len().is_none() => {
            head.get(..error.valid_up_to()).unwrap_or(head)
        }
        _ => head,
    };
    let mut text = String::from_utf8_lossy(head).into_owned();
    // Each replaced byte takes three.
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the chunks, and compares the text, the count and the length of the file.
    async fn check(chunks: &[Vec<u8>], text: &str, file_bytes: Option<usize>) {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder =
            Recorder::new(Some(directory.path().join("below/out.txt")), LiveOutput::default());
        for chunk in chunks {
            recorder.write(chunk).await;
        }
        let output = recorder.finish().await;
        let written = chunks.concat();
        assert!(output.text == text, "{:?}", output.text);
        assert_eq!(output.bytes, written.len() as u64);
        let kept = output.file.map(|path| std::fs::read(path).unwrap());
        assert_eq!(kept.as_ref().map(Vec::len), file_bytes);
        assert!(kept.is_none_or(|kept| written.starts_with(&kept)));
    }

    #[tokio::test]
    async fn text_is_complete_at_its_limit_and_truncated_past_it() {
        let full = "x".repeat(TEXT_BYTES_MAX);
        check(&[], "", None).await;
        check(&[full.clone().into()], &full, None).await;
        check(&[full.clone().into(), "y".into()], &full, Some(TEXT_BYTES_MAX + 1)).await;
        check(
            &["y".into(), full.clone().into()],
            &format!("y{}", &full[1..]),
            Some(full.len() + 1),
        )
        .await;
    }

    #[tokio::test]
    async fn file_does_not_grow_past_its_limit() {
        let chunk = vec![b'x'; FILE_BYTES_MAX as usize / 4 + 1];
        let text = "x".repeat(TEXT_BYTES_MAX);
        check(&vec![chunk; 5], &text, Some(FILE_BYTES_MAX as usize)).await;
    }

    #[tokio::test]
    async fn invalid_utf8_is_replaced_in_the_text_and_kept_in_the_file() {
        check(&[b"a\xffb".into()], "a\u{fffd}b", Some(3)).await;
        check(&[b"a\xc3".into()], "a\u{fffd}", Some(2)).await;
        let replaced = "\u{fffd}".repeat(TEXT_BYTES_MAX / 3);
        check(&[vec![0xff; TEXT_BYTES_MAX]], &replaced, Some(TEXT_BYTES_MAX)).await;
    }

    #[tokio::test]
    async fn text_is_truncated_between_characters() {
        let written = format!("x{}", "ä".repeat(TEXT_BYTES_MAX / 2));
        let text = &written[..TEXT_BYTES_MAX - 1];
        check(&[written.clone().into()], text, Some(written.len())).await;
    }

    #[tokio::test]
    async fn text_is_kept_when_no_file_can_be_written() {
        for path in [None, Some("/dev/null/out.txt".into())] {
            let mut recorder = Recorder::new(path, LiveOutput::default());
            recorder.write(&[b'x'; TEXT_BYTES_MAX + 1]).await;
            let text = "x".repeat(TEXT_BYTES_MAX);
            let bytes = TEXT_BYTES_MAX as u64 + 1;
            assert_eq!(recorder.finish().await, Output { text, bytes, file: None });
        }
    }
}
