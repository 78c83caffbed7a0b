//! The `midwatch` program; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    midwatch::cli::run(std::env::args_os())
}
