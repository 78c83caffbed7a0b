//! `cargo xtask VERB`: reads the command line, runs the verb, turns the result into an exit code.
//!
//! Exit codes: 0 done, 1 failed, 2 bad usage.

use std::process::ExitCode;

use xtask::verb::Verb;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let verb = match Verb::parse(&args) {
        Ok(verb) => verb,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::from(2);
        }
    };
    match verb.run(xtask::root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
