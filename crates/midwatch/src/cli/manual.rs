//! Completions and manual pages, from the definition of the commands.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use api::{Code, Error};

use super::definition;
use crate::output::Output;

pub(super) fn completions(shell: clap_complete::Shell, output: &Output) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "midwatch", &mut script);
    output.raw(&script);
    ExitCode::SUCCESS
}

pub(super) fn pages(dir: Option<&Path>, output: &Output) -> Result<ExitCode, Error> {
    let failed = |error: std::io::Error| {
        Error::new(Code::Failed, format!("the manual pages cannot be written: {error}"))
    };
    match dir {
        Some(dir) => {
            fs::create_dir_all(dir).map_err(failed)?;
            clap_mangen::generate_to(definition(), dir).map_err(failed)?;
            output.remark(&format!("wrote the manual pages to {}", dir.display()));
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(definition()).render(&mut page).map_err(failed)?;
            output.raw(&page);
        }
    }
    Ok(ExitCode::SUCCESS)
}
