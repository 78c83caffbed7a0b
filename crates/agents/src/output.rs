//! What an attempt says, kept within limits: the beginning in memory, the whole in a file if that is
//! more. Whatever exceeds the file is counted and forgotten; so is what a disk does not take.

use std::path::{Path, PathBuf};

use tokio::fs::{DirBuilder, File, OpenOptions};
use tokio::io::{self, AsyncWriteExt};

use crate::said::Said;
use crate::work::Output;

pub const TEXT_BYTES_MAX: usize = 16 << 10;
pub const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Recorder {
    /// None: nothing is left in a file.
    path: Option<PathBuf>,
    said: Said,
    /// Never more than [`TEXT_BYTES_MAX`].
    head: Vec<u8>,
    bytes: u64,
    whole: Whole,
}

#[derive(Debug)]
enum Whole {
    InHead,
    InFile {
        file: File,
        bytes: u64,
    },
    /// The file could not be written any further.
    Cut,
    /// The file could not be made.
    Lost,
}

impl Recorder {
    pub(crate) fn new(path: Option<PathBuf>, said: Said) -> Recorder {
        Recorder { path, said, head: Vec::new(), bytes: 0, whole: Whole::InHead }
    }

    pub(crate) async fn take(&mut self, chunk: &[u8]) {
        self.said.say(chunk);
        let room = TEXT_BYTES_MAX - self.head.len();
        if room < chunk.len() && matches!(self.whole, Whole::InHead) {
            self.begin_file().await;
        }
        self.bytes += chunk.len() as u64;
        self.head.extend(chunk.iter().take(room));
        self.append(chunk).await;
    }

    pub(crate) async fn finish(mut self) -> Output {
        if matches!(self.whole, Whole::InHead) && str::from_utf8(&self.head).is_err() {
            self.begin_file().await;
        }
        let is_whole = self.head.len() as u64 == self.bytes;
        let file = match self.whole {
            Whole::InHead | Whole::Lost => None,
            Whole::Cut => self.path,
            Whole::InFile { mut file, .. } => {
                // A failure shows in the length of the file.
                let _ = file.flush().await;
                self.path
            }
        };
        Output { text: text(&self.head, is_whole), bytes: self.bytes, file }
    }

    async fn begin_file(&mut self) {
        let Some(path) = &self.path else {
            self.whole = Whole::Lost;
            return;
        };
        self.whole = match create(path).await {
            Ok(file) => Whole::InFile { file, bytes: 0 },
            Err(_) => Whole::Lost,
        };
        let head = std::mem::take(&mut self.head);
        self.append(&head).await;
        self.head = head;
    }

    async fn append(&mut self, chunk: &[u8]) {
        let Whole::InFile { file, bytes } = &mut self.whole else { return };
        let room = usize::try_from(FILE_BYTES_MAX - *bytes).unwrap_or(usize::MAX);
        let chunk = chunk.get(..room).unwrap_or(chunk);
        *bytes += chunk.len() as u64;
        if file.write_all(chunk).await.is_err() {
            self.whole = Whole::Cut;
        }
    }
}

/// For its owner only, as is the directory.
async fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).await?;
    }
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).await
}

/// Bytes as text. A character that is only cut off is left out, not replaced.
fn text(head: &[u8], is_whole: bool) -> String {
    let head = match str::from_utf8(head) {
        Err(error) if !is_whole && error.error_len().is_none() => {
            head.get(..error.valid_up_to()).unwrap_or(head)
        }
        _ => head,
    };
    let mut text = String::from_utf8_lossy(head).into_owned();
    // A replaced byte has become three.
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says the chunks, and compares the text, the count and the length of the file.
    async fn check(chunks: &[Vec<u8>], text: &str, file_bytes: Option<usize>) {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder =
            Recorder::new(Some(directory.path().join("below/out.txt")), Said::default());
        for chunk in chunks {
            recorder.take(chunk).await;
        }
        let output = recorder.finish().await;
        let said = chunks.concat();
        assert!(output.text == text, "{:?}", output.text);
        assert_eq!(output.bytes, said.len() as u64);
        let kept = output.file.map(|path| std::fs::read(path).unwrap());
        assert_eq!(kept.as_ref().map(Vec::len), file_bytes);
        assert!(kept.is_none_or(|kept| said.starts_with(&kept)));
    }

    #[tokio::test]
    async fn a_text_is_whole_at_its_limit_and_cut_one_past_it() {
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
    async fn a_file_is_full_at_its_limit() {
        let chunk = vec![b'x'; FILE_BYTES_MAX as usize / 4 + 1];
        let text = "x".repeat(TEXT_BYTES_MAX);
        check(&vec![chunk; 5], &text, Some(FILE_BYTES_MAX as usize)).await;
    }

    #[tokio::test]
    async fn what_is_not_text_is_replaced_in_the_text_and_kept_in_the_file() {
        check(&[b"a\xffb".into()], "a\u{fffd}b", Some(3)).await;
        check(&[b"a\xc3".into()], "a\u{fffd}", Some(2)).await;
        let replaced = "\u{fffd}".repeat(TEXT_BYTES_MAX / 3);
        check(&[vec![0xff; TEXT_BYTES_MAX]], &replaced, Some(TEXT_BYTES_MAX)).await;
    }

    #[tokio::test]
    async fn a_character_is_not_cut() {
        let said = format!("x{}", "ä".repeat(TEXT_BYTES_MAX / 2));
        let text = &said[..TEXT_BYTES_MAX - 1];
        check(&[said.clone().into()], text, Some(said.len())).await;
    }

    #[tokio::test]
    async fn without_a_disk_the_beginning_is_kept() {
        for path in [None, Some("/dev/null/out.txt".into())] {
            let mut recorder = Recorder::new(path, Said::default());
            recorder.take(&[b'x'; TEXT_BYTES_MAX + 1]).await;
            let text = "x".repeat(TEXT_BYTES_MAX);
            let bytes = TEXT_BYTES_MAX as u64 + 1;
            assert_eq!(recorder.finish().await, Output { text, bytes, file: None });
        }
    }
}
