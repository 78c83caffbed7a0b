//! `cargo xtask dist`: builds the program with debug info, and splits it into the stripped program, which is shipped, and
//! `midwatch.debug`, which is kept to read its backtraces and profiles.
//!
//! The two belong together by a build id and by a debug link, so debuggers, `perf` and Rust's own backtraces find the file
//! beside the program. Cargo cannot split them itself: on Linux its `split-debuginfo` leaves the line tables in the program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process;

const PROGRAM: &str = "midwatch";

pub(super) fn run(root: &Path) -> Result<()> {
    process::run(root, "cargo", &["build", "--profile", "dist", "--package", PROGRAM])?;
    let built = root.join("target/dist").join(PROGRAM);
    let (program, debug) = split(root, &built, &root.join("target/dist/split"))?;
    for file in [program, debug] {
        let bytes = fs::metadata(&file).with_context(|| format!("no {}", file.display()))?.len();
        eprintln!("{}: {}.{} MB", file.display(), bytes / 1_000_000, bytes / 100_000 % 10);
    }
    Ok(())
}

/// Writes the stripped program and its debug info to `folder`, and returns their paths. The original stays as it is,
/// because Cargo would not build it again.
fn split(root: &Path, built: &Path, folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let name = built.file_name().context("the program has no name")?;
    let program = folder.join(name);
    let debug = program.with_added_extension("debug");
    let [from, to, kept] = [built, &program, &debug].map(|path| path.display().to_string());
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let keep = ["--only-keep-debug", "--compress-debug-sections=zlib", &from, &kept];
    process::run(root, "objcopy", &keep)?;
    let strip = ["--strip-all", &format!("--add-gnu-debuglink={kept}"), &from, &to];
    process::run(root, "objcopy", &strip)?;
    Ok((program, debug))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C compiler and binutils are there, because rustc links with them.
    #[test]
    fn split_program_runs_and_its_debug_file_names_its_lines() {
        let root = std::env::temp_dir().join(format!("xtask-dist-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(
            root.join("seven.c"),
            "int seven(void) { return 7; }\n\nint main(void) { return seven() - 7; }\n",
        )
        .unwrap();
        process::run(&root, "cc", &["-g", "-o", "seven", "seven.c"]).unwrap();

        let (program, debug) = split(&root, &root.join("seven"), &root.join("split")).unwrap();
        let [program, debug] = [program, debug].map(|path| path.display().to_string());
        process::run(&root, &program, &[]).unwrap();
        let sections =
            process::output(&root, "readelf", &["--sections", "--wide", &program]).unwrap();
        assert!(!sections.contains(".debug_") && !sections.contains(".symtab"), "{sections}");
        assert!(sections.contains(".gnu_debuglink"), "{sections}");

        let symbols = process::output(&root, "nm", &[&debug]).unwrap();
        let address = symbols.lines().find(|line| line.ends_with(" T main")).unwrap();
        let address = address.split_once(' ').unwrap().0;
        let line = process::output(&root, "addr2line", &["-e", &debug, address]).unwrap();
        assert!(line.trim_end().ends_with("seven.c:3"), "{line}");
        fs::remove_dir_all(&root).unwrap();
    }
}
