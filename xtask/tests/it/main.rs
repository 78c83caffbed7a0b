//! The rules of the tree as tests: on this workspace, and on invented ones that break them.

mod layers;
mod tidy;
