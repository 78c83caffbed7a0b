//! Groups of tools, and which of them a client gets to see.

use std::fmt;
use std::str::FromStr;

use crate::dialect::Dialect;
use crate::tool::{Effect, Tool};
use crate::tools;

/// The one list of toolsets: variant, name, whether it is on when nobody says which, what is in it.
macro_rules! toolsets {
    ($($variant:ident $name:literal $default:literal $meaning:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Toolset {
            $(#[doc = $meaning] $variant,)*
        }

        impl Toolset {
            pub const ALL: &[Toolset] = &[$(Toolset::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Toolset::$variant => $name,)* }
            }

            pub const fn is_default(self) -> bool {
                match self { $(Toolset::$variant => $default,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(Toolset::$variant => $meaning,)* }
            }
        }
    };
}

toolsets! {
    Core "core" true "How things stand, and what the standing orders say.";
    Schedule "schedule" true "Schedules, and what became of their slots.";
    Run "run" true "Runs: start, follow and cancel them.";
    Approval "approval" true "What waits for a human. No tool decides on it.";
    Agent "agent" true "The agents that are registered.";
    Ledger "ledger" false "The log of everything that happened.";
    Astra "astra" false "For clients of Astra: its tools under its names, which have dots.";
    Promptyoself "promptyoself" false "For clients of promptyoself: its tools under its names.";
    Foundry "foundry" false "For clients of Foundry: what of its tools there is here so far.";
}

impl Toolset {
    /// In which words its tools answer.
    pub(crate) const fn dialect(self) -> Dialect {
        match self {
            Toolset::Astra => Dialect::Astra,
            Toolset::Promptyoself => Dialect::Promptyoself,
            Toolset::Foundry => Dialect::Foundry,
            _ => Dialect::Native,
        }
    }

    const fn caution(self) -> Option<&'static str> {
        match self {
            Toolset::Astra => Some(
                "the tools of `astra` have dots in their names; some hosts drop a server for that, with all \
                 its tools. Give it a server of its own",
            ),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownToolset(String);

/// What a client gets to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    toolsets: Vec<Toolset>,
    read_only: bool,
    agent: Agent,
}

/// The agent on the other side, as far as whoever started the server has said which it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Meant where a call names none.
    pub default: Option<String>,
    /// Beyond which nothing is scheduled, shown or cancelled.
    pub only: Option<String>,
}

impl Default for Selection {
    fn default() -> Selection {
        let on = Toolset::ALL.iter().copied().filter(|toolset| toolset.is_default());
        Selection::of(on.collect())
    }
}

impl Selection {
    /// Those instead of the usual ones.
    pub fn of(toolsets: Vec<Toolset>) -> Selection {
        Selection { toolsets, read_only: false, agent: Agent::default() }
    }

    /// Those that were chosen, or the usual ones if none were.
    pub fn chosen(toolsets: Vec<Toolset>) -> Selection {
        match toolsets.is_empty() {
            true => Selection::default(),
            false => Selection::of(toolsets),
        }
    }

    /// What is to be known before these are offered.
    pub fn cautions(&self) -> impl Iterator<Item = &'static str> {
        self.toolsets.iter().filter_map(|toolset| toolset.caution())
    }

    /// Without whatever changes something, whichever toolset it is in.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Selection {
        Selection { read_only, ..self }
    }

    /// For the tools of promptyoself.
    #[must_use]
    pub fn for_agent(self, agent: Agent) -> Selection {
        Selection { agent, ..self }
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub fn toolsets(&self) -> &[Toolset] {
        &self.toolsets
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// In the order of the table.
    pub fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        tools::all().filter(|tool| self.has(tool))
    }

    /// A name that has dots can be written with underscores.
    pub fn find(&self, name: &str) -> Option<&'static Tool> {
        self.tools().find(|tool| tool.name == name || tool.name.replace('.', "_") == name)
    }

    fn has(&self, tool: &Tool) -> bool {
        let is_let = !self.read_only || tool.effect == Effect::Read || tool.by_action;
        is_let && self.toolsets.contains(&tool.toolset)
    }
}

impl FromStr for Toolset {
    type Err = UnknownToolset;

    fn from_str(text: &str) -> Result<Toolset, UnknownToolset> {
        let named = Toolset::ALL.iter().find(|toolset| toolset.name() == text);
        named.copied().ok_or_else(|| UnknownToolset(text.to_owned()))
    }
}

impl fmt::Display for UnknownToolset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
        write!(out, "`{}` is no toolset; there are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownToolset {}
