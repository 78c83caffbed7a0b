//! What holds of every tool of the table.

#[cfg(test)]
mod table;
