//! Protected paths: files that run as code, or control what runs, when a project is built, opened or merged;
//! and Midwatch's own files. Writing one has effects beyond the file, so it always needs approval, whatever
//! the rules say.
//!
//! Only the names in the path count, so that files that do not exist yet are protected, too. Spellings that
//! some file system treats as equal are equal here. Does not access the file system: the caller passes one
//! path for each changed entry, with symbolic links resolved.

/// Names of files and directories. Everything below such a directory is protected, too.
const NAMES: &[&str] = &[
    // Version control.
    ".git .gitattributes .gitconfig .gitmodules .hg .hgrc .jj .svn",
    // Run on build or test.
    ".cargo build.bazel build.rs build.xml cargo.toml cmakelists.txt composer.json conftest.py \
     dockerfile docker-compose.yaml docker-compose.yml gemfile gnumakefile gradlew gradlew.bat justfile \
     .justfile makefile meson.build module.bazel noxfile.py package.json pom.xml pyproject.toml rakefile \
     rust-toolchain rust-toolchain.toml setup.cfg setup.py sitecustomize.py taskfile.yaml taskfile.yml \
     tox.ini usercustomize.py workspace.bazel",
    // Run when a directory or shell is opened.
    ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .cshrc .devcontainer .devcontainer.json .dir-locals.el \
     .direnv .emacs .emacs.d .env .envrc .exrc .husky .idea .inputrc .kshrc .lefthook.yaml .lefthook.yml \
     lefthook.yaml lefthook.yml .login .logout .mise.toml mise.toml .nvimrc .pam_environment .pre-commit-config.yaml \
     .pre-commit-config.yml .profile .ssh .tcshrc .tool-versions .vim .vimrc .vscode .xinitrc .xprofile \
     .xsession .xsessionrc .zlogin .zlogout .zprofile .zshenv .zshrc",
    // Configuration of package managers.
    ".bazelrc .bundle bunfig.toml .condarc .gemrc gradle.properties gradle-wrapper.jar \
     gradle-wrapper.properties .mvn .netrc .npmrc nuget.config pip.conf .pnpmfile.cjs pnpm-workspace.yaml \
     .pypirc uv.toml .yarn",
    // Continuous integration.
    ".appveyor.yml appveyor.yml azure-pipelines.yaml azure-pipelines.yml bitbucket-pipelines.yml .buildkite \
     .build.yml .builds buildspec.yml .circleci .cirrus.yml cloudbuild.yaml cloudbuild.yml .drone.yml \
     .gitlab-ci.yaml .gitlab-ci.yml jenkinsfile .semaphore .teamcity .travis.yml .woodpecker \
     .woodpecker.yaml .woodpecker.yml",
    // Instructions and configuration of agents.
    ".aider .aider.conf.yml agents.md .claude .claude.json claude.md .cline .codex .continue .cursor \
     .cursorrules .gemini gemini.md .letta .mcp.json mcp.json .roo .windsurf .windsurfrules",
    // Midwatch's own files, in any directory.
    "midwatch.db midwatch.db-shm midwatch.db-wal midwatch.sock midwatch.toml policy.toml \
     sealing.key signing.key",
];

/// Names that are protected only in a certain directory.
const NESTED_NAMES: &[[&str; 2]] = &[
    [".config", "autostart"],
    [".config", "environment.d"],
    [".config", "fish"],
    [".config", "git"],
    [".config", "nvim"],
    [".config", "plasma-workspace"],
    [".config", "systemd"],
    [".forgejo", "workflows"],
    [".gitea", "workflows"],
    [".github", "actions"],
    [".github", "copilot-instructions.md"],
    [".github", "workflows"],
    ["library", "launchagents"],
    ["library", "launchdaemons"],
    ["systemd", "user"],
];

/// Prefixes of protected names.
const PREFIXES: &[&str] = &[".aider", ".yarnrc", "build.gradle", "settings.gradle"];
/// Parts of protected names: each front-end tool has such a file and runs it.
const INFIXES: &[&str] = &[".config.js", ".config.cjs", ".config.mjs", ".config.ts"];

/// Whether a path is protected or is inside Midwatch's data directory, if that is known.
pub(crate) fn is_protected(path: &str, data_directory: Option<&[String]>) -> bool {
    let parts = normalized_components(path);
    let is_data = data_directory
        .is_some_and(|directory| !directory.is_empty() && parts.starts_with(directory));
    let is_nested = parts.windows(2).any(|pair| NESTED_NAMES.iter().any(|it| it[..] == *pair));
    is_data
        || is_nested
        || parts.iter().any(|part| is_protected_name(part) || may_be_short_name(part))
}

/// The components of a path, normalized as the most lenient file system would: split at both slashes, in
/// lower case, without invisible characters, NTFS streams, and trailing dots and blanks.
pub(crate) fn normalized_components(path: &str) -> Vec<String> {
    let parts = path.split(['/', '\\']).map(|part| {
        let visible: String = part.chars().filter(|c| !is_ignored(*c)).collect();
        let name = visible.split(':').next().unwrap_or_default();
        // Upper case first: some non-ASCII letters share their upper case with an ASCII letter.
        let folded = name.to_uppercase().to_lowercase();
        folded.trim_end_matches(|c: char| c == '.' || c.is_whitespace()).to_owned()
    });
    parts.filter(|part| !part.is_empty()).collect()
}

fn is_protected_name(part: &str) -> bool {
    let mut names = NAMES.iter().flat_map(|line| line.split_ascii_whitespace());
    names.any(|name| name == part)
        || PREFIXES.iter().any(|prefix| part.starts_with(prefix))
        || INFIXES.iter().any(|infix| part.contains(infix))
}

/// Whether it may be the 8.3 short form of a long name, as `git~1` is of `.git`. The long name is unknown.
fn may_be_short_name(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part);
    let number = stem.rsplit_once('~').map(|(_, number)| number);
    stem.chars().count() <= 8
        && number.is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit()))
}

/// Characters that file systems ignore or that are invisible.
fn is_ignored(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_names_are_normalized() {
        let names = NAMES.iter().flat_map(|line| line.split_ascii_whitespace());
        for name in names.chain(NESTED_NAMES.iter().flatten().copied()) {
            assert_eq!(normalized_components(name), [name]);
        }
    }
}
