//! The pipe into which hosts write, one after another. It is emptied as it fills, so that none waits.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};

use crate::crash::runs::effects::Counted;

#[derive(Debug)]
pub(super) struct Pipe {
    /// What hosts get copies of; as long as it is there, the pipe has no end.
    way_in: Option<PipeWriter>,
    reader: Option<JoinHandle<io::Result<String>>>,
}

impl Pipe {
    pub(super) fn new() -> Result<Pipe> {
        let (reader, writer) = io::pipe()?;
        let reader = thread::spawn(move || read_all(reader));
        Ok(Pipe { way_in: Some(writer), reader: Some(reader) })
    }

    pub(super) fn way_in(&self) -> Result<PipeWriter> {
        Ok(self.way_in.as_ref().context("the pipe is closed")?.try_clone()?)
    }

    /// Everything that was written. No host is left.
    pub(super) fn read(&mut self) -> Result<Counted> {
        self.way_in = None;
        let reader = self.reader.take().context("the pipe was read before")?;
        let text = reader.join().ok().context("the reader of the pipe is gone")??;
        ensure!(text.is_empty() || text.ends_with('\n'), "a line was torn");
        Ok(Counted::of(&text))
    }
}

fn read_all(mut reader: PipeReader) -> io::Result<String> {
    let mut text = String::new();
    reader.read_to_string(&mut text)?;
    Ok(text)
}
