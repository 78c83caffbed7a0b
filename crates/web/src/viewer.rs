//! The person who looks at a page.

use api::Role;
use calendar::{LocalTimes, Zone};

#[derive(Clone, Debug)]
pub struct Viewer {
    /// The person's name, such as `ada` or `uid:1000`.
    pub name: String,
    pub role: Role,
    /// The IANA name of the zone in which times are shown; an unknown one counts as UTC.
    pub zone: String,
    pub theme: Theme,
    pub now_us: i64,
    /// Whether the viewer's browser has a key that signs forms. Without one, every form asks for a token.
    pub can_sign: bool,
    /// The id of the viewer's device.
    pub device: Option<String>,
    /// The version of this program.
    pub version: &'static str,
}

/// Colours of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the viewer's system has it.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Theme; 3] = [Theme::System, Theme::Light, Theme::Dark];

    /// `system`, `light` or `dark`; anything else is `system`.
    pub fn parse(text: &str) -> Theme {
        Theme::ALL.into_iter().find(|theme| theme.as_str() == text).unwrap_or_default()
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Theme::System => "system",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

impl Viewer {
    pub(crate) fn times(&self) -> LocalTimes {
        let zone: Zone = self.zone.parse().unwrap_or_else(|_| Zone::utc());
        LocalTimes { zone, now_us: self.now_us }
    }

    /// Why the viewer may not do what needs `role`; `None` if they may.
    pub(crate) fn lacks(&self, role: Role) -> Option<String> {
        (rank(self.role) < rank(role))
            .then(|| format!("needs the role {role}; you are {}", self.role))
    }
}

const fn rank(role: Role) -> u8 {
    match role {
        Role::Observer => 0,
        Role::Runner => 1,
        Role::Operator => 2,
        Role::Maintainer => 3,
    }
}
