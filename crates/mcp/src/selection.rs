//! Toolsets, which are groups of tools, and the selection of tools that a server offers.

use std::fmt;
use std::str::FromStr;

use crate::calling_agent::CallingAgent;
use crate::result_format::ResultFormat;
use crate::tool::{Effect, Tool};
use crate::tools::{self, Toolset};

/// A row of the table in `tools.rs`: variant, name, whether it is on by default, module, description.
macro_rules! toolsets {
    ($($variant:ident $name:literal $default:literal $module:ident $description:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Toolset {
            $(#[doc = $description] $variant,)*
        }

        impl Toolset {
            pub const ALL: &[Toolset] = &[$(Toolset::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Toolset::$variant => $name,)* }
            }

            pub const fn is_default(self) -> bool {
                match self { $(Toolset::$variant => $default,)* }
            }

            pub const fn description(self) -> &'static str {
                match self { $(Toolset::$variant => $description,)* }
            }

            const fn tools(self) -> &'static [Tool] {
                match self { $(Toolset::$variant => $module::TOOLS,)* }
            }
        }
    };
}
pub(crate) use toolsets;

impl Toolset {
    /// The form of its tools' results.
    pub(crate) const fn result_format(self) -> ResultFormat {
        match self {
            Toolset::Astra => ResultFormat::Astra,
            Toolset::Promptyoself => ResultFormat::Promptyoself,
            Toolset::Foundry => ResultFormat::Foundry,
            _ => ResultFormat::Native,
        }
    }

    /// Whether its tools are Midwatch's own, not those of another system.
    pub(crate) const fn is_own(self) -> bool {
        matches!(self.result_format(), ResultFormat::Native)
    }

    const fn warning(self) -> Option<&'static str> {
        match self {
            Toolset::Astra => Some(
                "the names of the `astra` tools contain dots; some hosts reject a server with such names, and all \
                 its tools with it. Run a separate server for this toolset",
            ),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownToolset(String);

/// The tools that a server offers.
#[derive(Clone, Debug)]
pub struct Selection {
    toolsets: Vec<Toolset>,
    read_only: bool,
    agent: CallingAgent,
}

impl Default for Selection {
    fn default() -> Selection {
        let on = Toolset::ALL.iter().copied().filter(|toolset| toolset.is_default());
        Selection::new(on.collect())
    }
}

impl Selection {
    /// Selects exactly these toolsets.
    pub fn new(toolsets: Vec<Toolset>) -> Selection {
        Selection { toolsets, read_only: false, agent: CallingAgent::default() }
    }

    /// Selects these toolsets, or the default ones if the list is empty.
    pub fn new_or_default(toolsets: Vec<Toolset>) -> Selection {
        match toolsets.is_empty() {
            true => Selection::default(),
            false => Selection::new(toolsets),
        }
    }

    /// Warnings to print before these toolsets are offered.
    pub fn warnings(&self) -> impl Iterator<Item = &'static str> {
        self.toolsets.iter().filter_map(|toolset| toolset.warning())
    }

    /// With `true`, offers no tool that changes something.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Selection {
        Selection { read_only, ..self }
    }

    /// Sets the calling agent.
    #[must_use]
    pub fn for_agent(self, agent: CallingAgent) -> Selection {
        Selection { agent, ..self }
    }

    pub(crate) fn agent(&self) -> &CallingAgent {
        &self.agent
    }

    pub fn toolsets(&self) -> &[Toolset] {
        &self.toolsets
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// In the order in which clients see them.
    pub fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        tools::all().filter(|tool| self.includes(tool))
    }

    /// Finds a tool by its name, in which dots may be written as underscores.
    pub fn find(&self, name: &str) -> Option<&'static Tool> {
        self.tools().find(|tool| tool.name == name || tool.name.replace('.', "_") == name)
    }

    fn includes(&self, tool: &Tool) -> bool {
        let is_allowed =
            !self.read_only || tool.effect == Effect::Read || tool.effect_depends_on_action;
        is_allowed && self.toolsets.contains(&tool.toolset)
    }
}

impl FromStr for Toolset {
    type Err = UnknownToolset;

    fn from_str(text: &str) -> Result<Toolset, UnknownToolset> {
        let found = Toolset::ALL.iter().find(|toolset| toolset.name() == text);
        found.copied().ok_or_else(|| UnknownToolset(text.to_owned()))
    }
}

impl fmt::Display for UnknownToolset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
        write!(out, "unknown toolset `{}`; the toolsets are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownToolset {}
