//! Properties of every tool.

#[cfg(test)]
mod table;
