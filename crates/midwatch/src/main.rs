//! The program: see the library for what it does.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    midwatch::cli::run(std::env::args_os())
}
