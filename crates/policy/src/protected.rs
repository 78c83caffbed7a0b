//! Protected paths: files that run as code, or say what may run, when somebody builds, opens or merges what
//! they are in; and the watch's own. To write one reaches further than it looks, and is asked of a human
//! whatever the rules say.
//!
//! A path is judged by its name alone, so that a file which does not exist yet is judged too. One name has
//! many spellings, by the file system: all of them are the same here. It opens nothing: the caller brings the
//! path that is really meant, one for each entry that changes, with every link resolved.

/// Names of files and folders. What is below such a folder is protected with it.
const NAMES: &[&str] = &[
    // Version control.
    ".git .gitattributes .gitconfig .gitmodules .hg .hgrc .jj .svn",
    // What runs on build or test.
    ".cargo build.bazel build.rs build.xml cargo.toml cmakelists.txt composer.json conftest.py \
     dockerfile docker-compose.yaml docker-compose.yml gemfile gnumakefile gradlew gradlew.bat justfile \
     .justfile makefile meson.build module.bazel noxfile.py package.json pom.xml pyproject.toml rakefile \
     rust-toolchain rust-toolchain.toml setup.cfg setup.py sitecustomize.py taskfile.yaml taskfile.yml \
     tox.ini usercustomize.py workspace.bazel",
    // What runs on open or enter.
    ".bash_login .bash_logout .bash_profile .bashrc .cshrc .devcontainer .devcontainer.json .dir-locals.el \
     .direnv .emacs .emacs.d .env .envrc .exrc .husky .idea .inputrc .kshrc .lefthook.yaml .lefthook.yml \
     lefthook.yaml lefthook.yml .login .logout .mise.toml mise.toml .nvimrc .pre-commit-config.yaml \
     .pre-commit-config.yml .profile .ssh .tcshrc .tool-versions .vim .vimrc .vscode .xinitrc .xprofile \
     .xsession .zlogin .zlogout .zprofile .zshenv .zshrc",
    // What package managers go by.
    ".bazelrc .bundle bunfig.toml .condarc .gemrc gradle.properties gradle-wrapper.jar \
     gradle-wrapper.properties .mvn .netrc .npmrc nuget.config pip.conf .pnpmfile.cjs pnpm-workspace.yaml \
     .pypirc uv.toml .yarn",
    // Continuous integration.
    ".appveyor.yml appveyor.yml azure-pipelines.yaml azure-pipelines.yml bitbucket-pipelines.yml .buildkite \
     .build.yml .builds buildspec.yml .circleci .cirrus.yml cloudbuild.yaml cloudbuild.yml .drone.yml \
     .gitlab-ci.yaml .gitlab-ci.yml jenkinsfile .semaphore .teamcity .travis.yml .woodpecker \
     .woodpecker.yaml .woodpecker.yml",
    // What agents go by.
    ".aider .aider.conf.yml agents.md .claude .claude.json claude.md .cline .codex .continue .cursor \
     .cursorrules .gemini gemini.md .letta .mcp.json mcp.json .roo .windsurf .windsurfrules",
    // The watch's own, wherever they are.
    "midwatch.db midwatch.db-shm midwatch.db-wal midwatch.sock midwatch.toml policy.toml \
     sealing.key signing.key",
];

/// A folder in another one.
const PAIRS: &[[&str; 2]] = &[
    [".config", "autostart"],
    [".config", "fish"],
    [".config", "git"],
    [".config", "nvim"],
    [".config", "systemd"],
    [".forgejo", "workflows"],
    [".gitea", "workflows"],
    [".github", "actions"],
    [".github", "copilot-instructions.md"],
    [".github", "workflows"],
];

/// Names that begin so.
const BEGINNINGS: &[&str] = &[".aider", ".yarnrc", "build.gradle", "settings.gradle"];
/// Names that hold this: the many programs of a front end each have such a file, and run it.
const MIDDLES: &[&str] = &[".config.js", ".config.cjs", ".config.mjs", ".config.ts"];

/// Whether a path is a protected one, or is below the directory of the watch itself, if that is known.
pub(crate) fn is_protected(path: &str, own: Option<&[String]>) -> bool {
    let parts = folded(path);
    let is_own = own.is_some_and(|own| !own.is_empty() && parts.starts_with(own));
    let has_pair = parts.windows(2).any(|pair| PAIRS.iter().any(|it| it[..] == *pair));
    is_own || has_pair || parts.iter().any(|part| is_name(part) || may_be_short(part))
}

/// The parts of a path as the least exact of all file systems tells them apart: by neither case nor what
/// cannot be seen, without dots and blanks at the end, without a stream, and by both slashes.
pub(crate) fn folded(path: &str) -> Vec<String> {
    let parts = path.split(['/', '\\']).map(|part| {
        let seen: String = part.chars().filter(|c| !is_ignored(*c)).collect();
        let name = seen.split(':').next().unwrap_or_default();
        // Some letters have a large form in common with one of ASCII, and no small one.
        let even = name.to_uppercase().to_lowercase();
        even.trim_end_matches(|c: char| c == '.' || c.is_whitespace()).to_owned()
    });
    parts.filter(|part| !part.is_empty()).collect()
}

fn is_name(part: &str) -> bool {
    let mut names = NAMES.iter().flat_map(|line| line.split_ascii_whitespace());
    names.any(|name| name == part)
        || BEGINNINGS.iter().any(|beginning| part.starts_with(beginning))
        || MIDDLES.iter().any(|middle| part.contains(middle))
}

/// The short form of any long name, as `git~1` is one of `.git`: which one, nobody can tell.
fn may_be_short(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part);
    let number = stem.rsplit_once('~').map(|(_, number)| number);
    stem.chars().count() <= 8
        && number.is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit()))
}

/// Characters that file systems or people overlook.
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
    fn every_name_is_written_as_names_are_compared() {
        let names = NAMES.iter().flat_map(|line| line.split_ascii_whitespace());
        for name in names.chain(PAIRS.iter().flatten().copied()) {
            assert_eq!(folded(name), [name]);
        }
    }
}
