//! `cargo run -p cluster`: a PostgreSQL with one empty database, for as long as this runs.
//!
//! Prints the database's URL and waits until stdin ends.

use std::io::{self, Write};

use anyhow::Result;
use cluster::Cluster;

fn main() -> Result<()> {
    let cluster = Cluster::start()?;
    writeln!(io::stdout(), "{}", cluster.database()?)?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
