//! The programs that run other programs, or code that stands in their arguments.
//!
//! Whoever may choose the arguments of one of these may run anything. A rule names the beginning of
//! an argument vector and leaves the rest free, so no rule may allow them.

// By the last part of their path, without a version. Add freely: a name here only means that each
// use is asked about.

/// Shells.
const SHELLS: &str = "\
    ash bash busybox csh dash fish ksh mksh nu pwsh rbash sh tcsh toybox zsh";

/// Interpreters.
const INTERPRETERS: &str = "\
    awk bun deno ed elixir emacs erl ex expect gawk gdb guile iex irb java jshell julia kotlin \
    lldb lua luajit m4 mawk nawk nim node nodejs nvim ocaml octave osascript perl php psql \
    pypy python pythonw qjs r racket raku rscript ruby sbcl scala scheme sed sqlite swift \
    tclsh ts-node vi vim vimdiff";

/// Programs that start the program that they are told.
const STARTERS: &str = "\
    at bwrap capsh chpst chroot chrt cpulimit crontab daemonize dbus-run-session doas \
    dumb-init entr env fakeroot fd find firejail flock gosu ionice ld-linux-aarch64.so \
    ld-linux-x86-64.so ltrace nice nohup nsenter numactl parallel perf pkexec prlimit proot \
    run-parts runuser screen script setarch setpriv setsid sg start-stop-daemon stdbuf strace \
    su sudo systemd-inhibit systemd-run taskset time timeout tini tmux unbuffer unshare \
    valgrind watch watchexec xargs";

/// Programs with an option or a file that starts another one.
const OTHERS: &str = "\
    ansible ansible-playbook bsdtar clang cmake cpio curl docker gcc gh git gmake helm hg just \
    kubectl less make man meson more mosh nc ncat ninja nix nix-shell nmap npm npx openssl pip \
    pipx pnpm podman rake rsync runc scp sftp socat sort ssh sshpass svn tar task tcpdump \
    terraform uv uvx wget yarn";

/// Whether the program at this path runs others. A version at the end of the name is left out:
/// `python3.12` is `python`.
pub(crate) fn runs_others(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    let unversioned = name.trim_end_matches(is_version);
    let lists = [SHELLS, INTERPRETERS, STARTERS, OTHERS];
    let mut names = lists.into_iter().flat_map(str::split_ascii_whitespace);
    names.any(|it| it == name || it == unversioned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_name_without_path_and_version() {
        for path in ["/bin/sh", "sh", "/usr/bin/python3.12", "/opt/Perl5", "/usr/bin/lua-5.4"] {
            assert!(runs_others(path), "{path}");
        }
        for path in ["/usr/bin/cargo", "/usr/bin/true", "/bin/shred", ""] {
            assert!(!runs_others(path), "{path}");
        }
    }
}
