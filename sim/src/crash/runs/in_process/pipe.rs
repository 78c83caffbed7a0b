//! The pipe into which the hosts write, one after another. A thread reads it, so that no host blocks.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};

use crate::crash::runs::effects::EffectCounts;

#[derive(Debug)]
pub(super) struct Pipe {
    /// Hosts get copies of it. The pipe stays open until all are closed.
    writer: Option<PipeWriter>,
    reader: Option<JoinHandle<io::Result<String>>>,
}

impl Pipe {
    pub(super) fn new() -> Result<Pipe> {
        let (reader, writer) = io::pipe()?;
        let reader = thread::spawn(move || read_all(reader));
        Ok(Pipe { writer: Some(writer), reader: Some(reader) })
    }

    pub(super) fn writer(&self) -> Result<PipeWriter> {
        Ok(self.writer.as_ref().context("the pipe is closed")?.try_clone()?)
    }

    /// Closes the pipe and counts the lines. No host may be running.
    pub(super) fn read(&mut self) -> Result<EffectCounts> {
        self.writer = None;
        let reader = self.reader.take().context("the pipe was already read")?;
        let text = reader.join().ok().context("the reader of the pipe panicked")??;
        ensure!(text.is_empty() || text.ends_with('\n'), "the last line is incomplete");
        Ok(EffectCounts::of(&text))
    }
}

fn read_all(mut reader: PipeReader) -> io::Result<String> {
    let mut text = String::new();
    reader.read_to_string(&mut text)?;
    Ok(text)
}
