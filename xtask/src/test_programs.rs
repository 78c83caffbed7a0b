//! The test programs of the workspace, run several at once.
//!
//! `cargo test` runs one program after the other, and many tests mostly wait: for a process, a disk or a timer. Each program
//! starts as under Cargo, in the folder of its package. All run, even after a failure, and the output of a failed one is
//! printed whole.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{self, Captured};
use crate::step::timed;

/// Tests that a program runs at once, per core. Cargo's default is one, and most tests wait for most of their time.
const TESTS_PER_CORE: usize = 2;

/// Packages whose tests take longest; they start first, so that none of them runs alone at the end.
const SLOWEST: &[&str] = &["midwatch", "sim", "store-postgres", "test-postgres", "runtime"];

/// A test that waits for two real minutes. Its program would start it among the last and then wait for it alone, so it runs
/// by itself from the start.
const LONGEST: (&str, &str) = (
    "midwatch test it",
    "schedules::interrupted_runs::ten_second_schedule_fires_every_slot_on_time",
);

#[derive(Clone, Debug, PartialEq, Eq)]
struct TestProgram {
    /// The package, then the target.
    name: String,
    /// The folder of the package.
    folder: PathBuf,
    program: String,
    args: Vec<String>,
}

/// Builds all test programs and binaries of the workspace.
pub(crate) fn build(root: &Path) -> Result<()> {
    process::run(root, "cargo", &["test", "--workspace", "--no-run"])
}

/// Runs all test programs and the examples in the documentation.
pub(crate) fn run(root: &Path) -> Result<()> {
    let format = "--message-format=json-render-diagnostics";
    let messages = process::output(root, "cargo", &["test", "--workspace", "--no-run", format])?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut programs = test_programs(&messages, cores * TESTS_PER_CORE)?;
    programs.push(doc_tests(root));
    run_longest_apart(&mut programs);
    programs.sort_by_key(|it| rank(&it.name));
    let total = programs.len();
    // One more than cores, because the longest test only waits.
    let Summary { passed, failed } = run_all(programs, cores + 1);
    eprintln!("{passed} passed, {} failed", failed.len());
    ensure!(
        failed.is_empty(),
        "{} of {total} test programs failed: {}",
        failed.len(),
        failed.join(", ")
    );
    Ok(())
}

/// The test programs among the artifacts that Cargo reports, one JSON document per line. Each runs up to `threads` tests
/// at once.
fn test_programs(messages: &str, threads: usize) -> Result<Vec<TestProgram>> {
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cannot parse Cargo's messages")?;
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let is_test = message.pointer("/profile/test") == Some(&Value::Bool(true));
        let (Some(program), true) = (text("/executable"), is_test) else { continue };
        let manifest = Path::new(text("/manifest_path").context("an artifact without manifest")?);
        let folder = manifest.parent().context("a manifest without folder")?;
        let package = folder.file_name().context("a package without folder")?.to_string_lossy();
        let target = text("/target/name").context("an artifact without target")?;
        let kind = text("/target/kind/0").context("a target without kind")?;
        programs.push(TestProgram {
            name: format!("{package} {kind} {target}"),
            folder: folder.to_owned(),
            program: program.to_owned(),
            args: vec![format!("--test-threads={threads}")],
        });
    }
    Ok(programs)
}

/// Splits the program of [`LONGEST`] in two: that test, and all others. A test of another name stays among the others.
fn run_longest_apart(programs: &mut Vec<TestProgram>) {
    let (program, test) = LONGEST;
    let Some(others) = programs.iter_mut().find(|it| it.name == program) else { return };
    let name = format!("{program}, the longest test");
    let longest =
        TestProgram { name, args: ["--exact", test].map(str::to_owned).to_vec(), ..others.clone() };
    others.args.extend(["--skip", test].map(str::to_owned));
    programs.insert(0, longest);
}

fn doc_tests(root: &Path) -> TestProgram {
    TestProgram {
        name: "documentation".to_owned(),
        folder: root.to_owned(),
        program: "cargo".to_owned(),
        args: ["test", "--workspace", "--doc", "--quiet"].map(str::to_owned).to_vec(),
    }
}

/// The place of a program in the order: the slowest first.
fn rank(name: &str) -> usize {
    let package = name.split(' ').next().unwrap_or(name);
    let is_slow = name.contains(" test it");
    let place = SLOWEST.iter().position(|slow| is_slow && *slow == package);
    place.unwrap_or(SLOWEST.len())
}

/// What became of the test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    /// Tests that passed.
    passed: u64,
    /// Names of the programs that failed.
    failed: Vec<String>,
}

/// Runs the programs in order, at most `at_once` at a time.
fn run_all(programs: Vec<TestProgram>, at_once: usize) -> Summary {
    let waiting = Mutex::new(VecDeque::from(programs));
    let summary = Mutex::new(Summary::default());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(program) = next(&waiting) {
                    let (result, elapsed) = timed(|| run_one(&program));
                    eprintln!("{}", report(&program.name, &result, elapsed));
                    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                    match result {
                        Ok(it) if it.succeeded => summary.passed += tests_passed(&it.output),
                        _ => summary.failed.push(program.name),
                    }
                }
            });
        }
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A function of its own, so that the lock is released before the program runs.
fn next(waiting: &Mutex<VecDeque<TestProgram>>) -> Option<TestProgram> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn run_one(it: &TestProgram) -> Result<Captured> {
    let args: Vec<&str> = it.args.iter().map(String::as_str).collect();
    process::capture(&it.folder, &it.program, &args)
}

/// A line for a program that passed; for one that failed, its output as well.
fn report(name: &str, result: &Result<Captured>, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match result {
        Ok(it) if it.succeeded => {
            let tests = tests_passed(&it.output);
            format!("{seconds:>7.1} s  {name}: {tests} passed")
        }
        Ok(it) => format!("{}\n{seconds:>7.1} s  {name}: FAILED, see above", it.output),
        Err(error) => format!("{seconds:>7.1} s  {name}: FAILED, {error:#}"),
    }
}

/// The number of passed tests in the output of a test program.
fn tests_passed(output: &str) -> u64 {
    output.lines().filter_map(passed).sum()
}

/// The number of passed tests in a summary line of a test program.
fn passed(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    rest.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str) -> TestProgram {
        TestProgram {
            name: name.to_owned(),
            folder: PathBuf::from("/"),
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
        }
    }

    #[test]
    fn only_test_programs_are_read_from_cargos_messages() {
        let artifact = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason": "compiler-artifact", "manifest_path": "/w/crates/store/Cargo.toml",
                "target": {{"kind": ["{kind}"], "name": "it"}},
                "profile": {{"test": {test}}}, "executable": {executable}}}"#
            )
            .replace('\n', " ")
        };
        let messages = [
            artifact("lib", false, "null"),
            artifact("bin", false, r#""/w/target/debug/store""#),
            artifact("test", true, r#""/w/target/debug/deps/it-1""#),
            r#"{"reason": "build-finished", "success": true}"#.to_owned(),
        ];
        let expected = TestProgram {
            name: "store test it".to_owned(),
            folder: PathBuf::from("/w/crates/store"),
            program: "/w/target/debug/deps/it-1".to_owned(),
            args: vec!["--test-threads=4".to_owned()],
        };
        assert_eq!(test_programs(&messages.join("\n"), 4).unwrap(), [expected]);
    }

    #[test]
    fn slow_programs_come_first() {
        let mut names = ["kernel test it", "sim bin sim", "sim test it", "midwatch test it"];
        names.sort_by_key(|name| rank(name));
        assert_eq!(names, ["midwatch test it", "sim test it", "kernel test it", "sim bin sim"]);
    }

    #[test]
    fn longest_test_runs_by_itself_and_once() {
        let (name, test) = LONGEST;
        let mut programs = vec![shell("sim test it", ""), shell(name, "")];
        run_longest_apart(&mut programs);
        programs.sort_by_key(|it| rank(&it.name));
        let found: Vec<(&str, &[String])> =
            programs.iter().map(|it| (&*it.name, it.args.get(2..).unwrap_or_default())).collect();
        let skip = ["--skip".to_owned(), test.to_owned()];
        let longest = format!("{name}, the longest test");
        assert_eq!(found, [(&*longest, &[][..]), (name, &skip), ("sim test it", &[])]);
        assert_eq!(programs[0].args, ["--exact", test]);
    }

    #[test]
    fn every_program_runs_and_the_failed_ones_are_named() {
        let programs = vec![
            shell("good", "exit 0"),
            shell("bad", "echo broken; exit 101"),
            shell("last", "exit 0"),
            TestProgram { program: "/no/such/program".to_owned(), ..shell("absent", "") },
        ];
        for at_once in [1, 2] {
            let mut failed = run_all(programs.clone(), at_once).failed;
            failed.sort();
            assert_eq!(failed, ["absent", "bad"], "{at_once} at once");
        }
    }

    #[test]
    fn programs_run_at_the_same_time() {
        let pipe = std::env::temp_dir().join(format!("xtask-programs-{}", std::process::id()));
        let path = pipe.display();
        // Opening a named pipe waits for the other end.
        process::run(Path::new("/"), "mkfifo", &[&path.to_string()]).unwrap();
        let reader = shell("reader", &format!("read line < {path}; test \"$line\" = hello"));
        let writer = shell("writer", &format!("echo hello > {path}"));
        assert_eq!(run_all(vec![reader, writer], 2), Summary::default());
        std::fs::remove_file(&pipe).unwrap();
    }

    #[test]
    fn report_counts_passed_tests_and_shows_the_output_of_a_failure() {
        let output = "test a ... ok\ntest result: ok. 12 passed; 0 failed; 0 ignored\n\n\
                      test result: ok. 3 passed; 0 failed; 0 ignored\n";
        let check = |succeeded: bool, expected: &str| {
            let result = Ok(Captured { succeeded, output: output.to_owned() });
            assert_eq!(report("store test it", &result, Duration::from_millis(1_540)), expected);
        };
        check(true, "    1.5 s  store test it: 15 passed");
        check(false, &format!("{output}\n    1.5 s  store test it: FAILED, see above"));
    }
}
