//! What a program stands on before it is started: the file that would be executed, the directory, and the
//! values of the variables that it would be given.
//!
//! This only looks. Between a look and a start there is a moment in which somebody can change a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use kernel::approval::{Directory, Executable, Footing};
use kernel::program::Program;
use kernel::ruling::Details;
use rustix::fs::{Access, access};
use sha2::{Digest, Sha256};

use crate::command::{home, passed_on};
use crate::work::{Failure, Reason};

/// The longest program that is looked at: reading it takes seconds.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
const PART_BYTES: usize = 1 << 16;
/// Where programs are looked for if nothing says where, as the system does.
const PATH_DEFAULT: &str = "/bin:/usr/bin";
/// What is hashed of a variable begins with this, so that it is taken for nothing else.
const VARIABLE: &[u8] = b"midwatch-variable/v1\n";

/// A program, and what it would be started with.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) program: Program,
    pub(crate) environment: BTreeMap<String, String>,
    /// So that the same value has another hash elsewhere.
    pub(crate) salt: String,
}

impl Look {
    /// Reads the whole program, so it takes a while.
    pub(crate) fn footing(&self) -> Result<Footing, Failure> {
        let directory = self.program.cwd.as_ref().map(|path| Path::new(path.as_str()));
        let found = directory.map(directory_at).transpose()?;
        let directory = directory.unwrap_or_else(|| home(&self.environment));
        Ok(Footing {
            program: self.executable(directory)?,
            directory: found,
            variables: self.variables(),
        })
    }

    fn executable(&self, directory: &Path) -> Result<Executable, Failure> {
        let word = self.program.argv.first().map_or("", String::as_str);
        let failed = |what: &dyn std::fmt::Display| {
            Failure::permanent(Reason::NotStarted, format!("`{word}` cannot be started: {what}"))
        };
        let path = find(word, directory, &self.environment);
        let path = path.ok_or_else(|| failed(&"there is no such program"))?;
        let path = path.canonicalize().map_err(|error| failed(&error))?;
        let sha256 = digest_of(&path).map_err(|error| failed(&error))?;
        Ok(Executable { path: path.to_string_lossy().into_owned(), sha256 })
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let given = passed_on(&self.program, &self.environment);
        given.map(|(name, value)| (name.to_owned(), self.hash(name, value))).collect()
    }

    fn hash(&self, name: &str, value: &str) -> String {
        let digest = [self.salt.as_str(), name, value].iter().fold(
            Sha256::new().chain_update(VARIABLE),
            // Each with its length before it, so that no two sequences are one.
            |digest, part| {
                digest.chain_update((part.len() as u64).to_be_bytes()).chain_update(part)
            },
        );
        in_hex(&digest.finalize())
    }
}

/// What rules see of a program: its command line with the file that would be executed, and the directory in
/// which it is started. What cannot be found is left out.
pub(crate) fn details(program: &Program, environment: &BTreeMap<String, String>) -> Details {
    let directory = program.cwd.as_ref().map(|path| Path::new(path.as_str()));
    let directory = directory.unwrap_or_else(|| home(environment));
    let (word, rest) = program.argv.split_first().unzip();
    let found = word.and_then(|word| find(word, directory, environment)).and_then(plain);
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

/// A program goes by the name under which it is found, so a link is not resolved: `sh` is `sh`, whichever
/// shell that is. Only a path that could mean another place than it says is.
fn plain(path: PathBuf) -> Option<String> {
    let is_plain = !path.components().any(|part| part == Component::ParentDir);
    let path: PathBuf = match is_plain {
        true => path.components().collect(),
        false => path.canonicalize().ok()?,
    };
    path.into_os_string().into_string().ok()
}

/// As the system looks for a program that it is to execute.
fn find(word: &str, directory: &Path, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(directory.join(word)).filter(|path| is_executable(path));
    }
    let places = environment.get("PATH").map_or(PATH_DEFAULT, String::as_str);
    let mut paths = places.split(':').map(|place| directory.join(place).join(word));
    paths.find(|path| is_executable(path))
}

fn directory_at(path: &Path) -> Result<Directory, Failure> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_dir);
    let found = found.ok_or_else(|| {
        let message = format!("there is no directory `{}` to start in", path.display());
        Failure::permanent(Reason::NotStarted, message)
    })?;
    Ok(Directory { device: found.dev().to_string(), inode: found.ino().to_string() })
}

fn is_executable(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|it| it.is_file());
    is_file && access(path, Access::EXEC_OK).is_ok()
}

fn digest_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?.take(PROGRAM_BYTES_MAX + 1);
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
        true => Ok(in_hex(&digest.finalize())),
        false => Err(io::Error::other("it is longer than what can be approved")),
    }
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
