//! The execution fingerprint of a program: hashes of the file that would be executed, of the files that its arguments
//! name, the directory, and the variables that it would get.
//!
//! Nothing is locked: a file can change between the fingerprint and the start.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use kernel::approval::{Directory, Executable, ExecutionFingerprint};
use kernel::policy_decision::Details;
use kernel::program::Program;
use rustix::fs::{Access, access};
use sha2::{Digest, Sha256};

use crate::attempt::{Failure, Reason};
use crate::command::{home, passed_variables};

/// The longest program that is hashed; reading it takes seconds.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// The longest script that is hashed.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// Programs that execute the file that their first argument names.
const INTERPRETERS: [&str; 18] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "python",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "Rscript",
    "julia",
    "pwsh",
    "osascript",
];
/// Endings of files that interpreters execute.
const SCRIPT_ENDINGS: [&str; 14] =
    ["sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "ps1"];
const PART_BYTES: usize = 1 << 16;
/// The system's search path when `PATH` is not set.
pub(crate) const PATH_DEFAULT: &str = "/bin:/usr/bin";
/// Domain separator of the hash of a variable.
const VARIABLE: &[u8] = b"midwatch-variable/v1\n";

/// What a fingerprint is computed from.
#[derive(Debug)]
pub(crate) struct FingerprintInput {
    pub(crate) program: Program,
    pub(crate) environment: BTreeMap<String, String>,
    /// Makes the same value hash differently in another installation.
    pub(crate) salt: String,
}

impl FingerprintInput {
    /// Reads the whole program file, so it blocks for a while.
    pub(crate) fn fingerprint(&self) -> Result<ExecutionFingerprint, Failure> {
        let directory = self.program.cwd.as_ref().map(|path| Path::new(path.as_str()));
        let found = directory.map(read_directory).transpose()?;
        let directory = directory.unwrap_or_else(|| home(&self.environment));
        Ok(ExecutionFingerprint {
            program: self.executable(directory)?,
            arguments: self.arguments(directory),
            directory: found,
            variables: self.variables(),
        })
    }

    fn executable(&self, directory: &Path) -> Result<Executable, Failure> {
        let word = self.program.argv.first().map_or("", String::as_str);
        let not_started = |what: &dyn std::fmt::Display| {
            Failure::permanent(Reason::NotStarted, format!("`{word}` cannot be started: {what}"))
        };
        let path = find(word, directory, &self.environment);
        let path = path.ok_or_else(|| not_started(&"no such program"))?;
        let path = path.canonicalize().map_err(|error| not_started(&error))?;
        let sha256 = hash_file(&path).map_err(|error| not_started(&error))?;
        Ok(Executable { path: path.to_string_lossy().into_owned(), sha256 })
    }

    /// The scripts that arguments name, also after a `=`. Other files are data, which may change while an approval is
    /// pending.
    fn arguments(&self, directory: &Path) -> BTreeMap<String, String> {
        let words = self.program.argv.iter().skip(1).map(String::as_str);
        let values = words.clone().filter_map(|word| Some(word.split_once('=')?.1));
        let interpreted = self.interpreted();
        let hashed = words.chain(values).filter_map(|name| {
            let path = directory.join(name);
            let found = fs::metadata(&path).ok()?;
            let is_short = found.is_file() && found.len() <= SCRIPT_BYTES_MAX;
            let is_script = is_short && (interpreted == Some(name) || is_script(&path));
            is_script.then(|| Some((name.to_owned(), hash_file(&path).ok()?)))?
        });
        hashed.collect()
    }

    /// The argument that an interpreter executes: its first one that is not an option.
    fn interpreted(&self) -> Option<&str> {
        let (program, arguments) = self.program.argv.split_first()?;
        let name = Path::new(program).file_name()?.to_str()?;
        let script = arguments.iter().find(|argument| !argument.starts_with('-'));
        script.filter(|_| INTERPRETERS.contains(&name)).map(String::as_str)
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let passed = passed_variables(&self.program, &self.environment);
        passed.map(|(name, value)| (name.to_owned(), self.hash(name, value))).collect()
    }

    fn hash(&self, name: &str, value: &str) -> String {
        let digest = [self.salt.as_str(), name, value].iter().fold(
            Sha256::new().chain_update(VARIABLE),
            // Each is preceded by its length, so that no two sequences have the same bytes.
            |digest, part| {
                digest.chain_update((part.len() as u64).to_be_bytes()).chain_update(part)
            },
        );
        hex(&digest.finalize())
    }
}

/// What policy rules can match of a program: its command line, with the path of the program, and its directory.
/// A part that does not exist is left out.
pub(crate) fn details(program: &Program, environment: &BTreeMap<String, String>) -> Details {
    let directory = program.cwd.as_ref().map(|path| Path::new(path.as_str()));
    let directory = directory.unwrap_or_else(|| home(environment));
    let (word, rest) = program.argv.split_first().unzip();
    let found = word.and_then(|word| find(word, directory, environment)).and_then(resolve_parents);
    let argv = found.map(|path| [path].into_iter().chain(rest.unwrap_or_default().to_vec()));
    Details {
        path: directory
            .canonicalize()
            .ok()
            .and_then(|path| path.into_os_string().into_string().ok()),
        argv: argv.into_iter().flatten().collect(),
        ..Details::default()
    }
}

/// Returns a program's path as it was found, without resolving links: `sh` is `sh`, whichever shell that is. Only
/// a path with `..` is resolved, because it could lead elsewhere than it seems to.
fn resolve_parents(path: PathBuf) -> Option<String> {
    let is_plain = !path.components().any(|part| part == Component::ParentDir);
    let path: PathBuf = match is_plain {
        true => path.components().collect(),
        false => path.canonicalize().ok()?,
    };
    path.into_os_string().into_string().ok()
}

/// Finds a program as the system does when it executes it.
pub(crate) fn find(
    word: &str,
    directory: &Path,
    environment: &BTreeMap<String, String>,
) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(directory.join(word)).filter(|path| is_executable(path));
    }
    let directories = environment.get("PATH").map_or(PATH_DEFAULT, String::as_str);
    let mut paths = directories.split(':').map(|entry| directory.join(entry).join(word));
    paths.find(|path| is_executable(path))
}

fn read_directory(path: &Path) -> Result<Directory, Failure> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_dir);
    let found = found.ok_or_else(|| {
        let message = format!("the directory `{}` does not exist", path.display());
        Failure::permanent(Reason::NotStarted, message)
    })?;
    Ok(Directory { device: found.dev().to_string(), inode: found.ino().to_string() })
}

/// Whether a file looks like a program: it can be executed, begins with `#!`, or has the ending of a script.
fn is_script(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let has_shebang = || {
        let mut begin = [0; 2];
        let read = files::open_linked(path).and_then(|mut file| file.read_exact(&mut begin));
        read.is_ok() && begin == *b"#!"
    };
    ending.is_some_and(|it| SCRIPT_ENDINGS.contains(&it)) || is_executable(path) || has_shebang()
}

fn is_executable(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|it| it.is_file());
    is_file && access(path, Access::EXEC_OK).is_ok()
}

fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = files::open_linked(path)?.take(PROGRAM_BYTES_MAX + 1);
    let (mut digest, mut bytes, mut part) = (Sha256::new(), 0, vec![0; PART_BYTES]);
    loop {
        let read = file.read(&mut part)?;
        bytes += read as u64;
        match part.get(..read) {
            Some(read) if !read.is_empty() => digest.update(read),
            _ => break,
        }
    }
    match bytes <= PROGRAM_BYTES_MAX {
        true => Ok(hex(&digest.finalize())),
        false => Err(io::Error::other("the program is too long to be fingerprinted")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
