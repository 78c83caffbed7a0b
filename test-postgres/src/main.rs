//! `cargo run -p test-postgres`: starts PostgreSQL with one empty database, prints the database's
//! URL, and stops the server when stdin ends.

use std::io::{self, Write};

use anyhow::Result;
use test_postgres::PostgresServer;

fn main() -> Result<()> {
    let postgres = PostgresServer::start()?;
    writeln!(io::stdout(), "{}", postgres.create_database()?)?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
