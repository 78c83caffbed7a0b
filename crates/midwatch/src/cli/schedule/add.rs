//! The flags of `midwatch schedule add`, and the request that they make.

use std::path::PathBuf;

use api::{Error, ScheduleAdd, ScheduleAddAll};
use clap::{ArgGroup, Args};

use super::flags::{Action, Terms};
use super::list;
use super::trigger::{Fires, TRIGGERS};

#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("trigger").required(true).args(TRIGGERS).arg("file"))]
#[command(group = ArgGroup::new("action").required(true).args(["agent", "tool", "file"]))]
pub(in crate::cli) struct Add {
    /// What to call it; one line
    #[arg(long, value_name = "NAME", required_unless_present = "file")]
    name: Option<String>,

    /// Add all schedules of a list, or none: a JSON or TOML file, `-` for JSON on stdin
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    file: Option<PathBuf>,

    /// Do nothing until it is resumed
    #[arg(long, conflicts_with = "file")]
    paused: bool,

    /// Only say what would be added, and what will be asked of a human when it fires
    #[arg(long)]
    dry_run: bool,

    #[command(flatten, next_help_heading = "When")]
    fires: Fires,
    #[command(flatten, next_help_heading = "What")]
    action: Action,
    #[command(flatten, next_help_heading = "Terms")]
    terms: Terms,
}

/// One schedule, or a list of them.
pub(super) enum Asked {
    One(Box<ScheduleAdd>),
    List(ScheduleAddAll),
}

impl Add {
    /// Reads what is elsewhere: the list, or the prompt.
    pub(super) fn request(self) -> Result<Asked, Error> {
        if let Some(file) = self.file {
            let list = list::read(&file)?;
            return Ok(Asked::List(ScheduleAddAll { dry_run: self.dry_run, ..list }));
        }
        let (when, happening) = self.fires.into();
        Ok(Asked::One(Box::new(ScheduleAdd {
            name: self.name.unwrap_or_default(),
            when,
            happening,
            sensitive: self.action.sensitive,
            tier: self.action.tier,
            action: self.action.read()?,
            terms: self.terms.into(),
            paused: self.paused,
            dry_run: self.dry_run,
        })))
    }
}
