//! Who is calling, and what they may see and do.

pub(crate) mod approval_files;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod authenticate;
pub(crate) mod authority;
pub(crate) mod budgets;
pub(crate) mod devices;
pub(crate) mod policy;
pub(crate) mod references;
pub(crate) mod schedule_action;
pub(crate) mod scope;
pub(crate) mod signatures;
pub(crate) mod stop_markers;
pub(crate) mod stop_switch;
pub(crate) mod tokens;
pub(crate) mod tool_catalog;
