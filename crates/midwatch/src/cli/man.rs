//! `midwatch man`

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use api::{Code, Error};
use clap::Args;

use super::definition;
use crate::output::Output;

/// Write the manual pages
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The directory to write all pages to [default: print the main page]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(man: &Man, output: &Output) -> Result<ExitCode, Error> {
    let failed = |error: std::io::Error| {
        Error::new(Code::Failed, format!("the manual pages cannot be written: {error}"))
    };
    match &man.dir {
        Some(dir) => {
            fs::create_dir_all(dir).map_err(failed)?;
            clap_mangen::generate_to(definition(), dir).map_err(failed)?;
            output.remark(&format!("wrote the manual pages to {}", dir.display()));
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(definition()).render(&mut page).map_err(failed)?;
            output.show_raw(&page);
        }
    }
    Ok(ExitCode::SUCCESS)
}
