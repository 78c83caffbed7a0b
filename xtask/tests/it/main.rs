//! The rules of the tree as tests: on this workspace, and on small ones that break them.

mod layers;
mod tidy;
