//! The flags of `midwatch schedule edit`, and the request that they make.

use api::{Error, ScheduleEdit, When};
use clap::{ArgGroup, Args};

use super::ID;
use super::flags::{Action, Terms};
use super::trigger::{Fires, TRIGGERS};

#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("trigger").args(TRIGGERS))]
pub(in crate::cli) struct Edit {
    #[arg(help = ID)]
    id: String,

    /// What to call it from now on
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Terms that shall have their defaults again, such as `window,per_day`
    #[arg(long, value_name = "TERMS", value_delimiter = ',')]
    unset: Vec<String>,

    #[command(flatten, next_help_heading = "When, instead of what it was")]
    fires: Fires,
    #[command(flatten, next_help_heading = "What")]
    action: Action,
    #[command(flatten, next_help_heading = "Terms")]
    terms: Terms,
}

impl Edit {
    pub(super) fn request(self) -> Result<ScheduleEdit, Error> {
        let (when, happening) = self.fires.into();
        Ok(ScheduleEdit {
            id: self.id,
            name: self.name,
            when: Some(when).filter(|when| *when != When::default()),
            happening,
            sensitive: self.action.sensitive,
            tier: self.action.tier,
            action: self.action.read()?,
            terms: self.terms.into(),
            unset: self.unset,
        })
    }
}
