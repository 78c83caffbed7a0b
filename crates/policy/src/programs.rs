//! Programs that can run other programs, or code in their arguments.
//!
//! A caller that chooses the arguments of such a program can run anything. A rule fixes only the first
//! arguments and leaves the rest open, so no rule may allow these programs.

// File names without a version. A program in these lists can only be asked about or denied.

/// Shells.
const SHELLS: &str = "\
    ash bash busybox csh dash elvish fish hush ksh mksh nu oksh osh pwsh rbash rksh scsh sh tcsh \
    toybox xonsh yash zsh";

/// Interpreters.
const INTERPRETERS: &str = "\
    awk bb bun clisp clojure coffee crystal csi dart dc deno dotnet duckdb ecl ed elixir emacs \
    erl escript ex expect fennel gawk gdb gforth ghc ghci gjs gnuplot groovy gsi guile gview gvim \
    gvimdiff iex irb janet java jimsh jruby jshell julia jython kotlin kotlinc lldb lua luajit m4 \
    mariadb mawk maxima micropython mongo mongosh mono mysql nawk newlisp nim node nodejs nvim \
    ocaml octave osascript perl php pike powershell psql pypy python pythonw qjs r racket raku \
    rscript ruby runghc runhaskell rview rvim sbcl scala scheme sclang sed sqlite sqlplus swift \
    swipl tclsh texlua ts-node tsx vi view vim vimdiff wish wolframscript";

/// Programs that start the program given in their arguments.
const LAUNCHERS: &str = "\
    aa-exec anacron apptainer arch at batch bwrap capsh cgexec choom chpst chronic chroot chrt \
    cpulimit crontab daemonize dbus-run-session doas dtach dumb-init dvtm eatmydata entr env \
    fakeroot faketime fd find firejail flatpak flock gosu i386 ifne ionice ld-linux-aarch64.so \
    ld-linux-armhf.so ld-linux-x86-64.so ld-linux.so ld-musl-aarch64.so ld-musl-x86_64.so ld.so \
    linux32 linux64 ltrace machinectl nice nodemon nohup nsenter numactl parallel perf pidproxy \
    pkexec prlimit proot rlwrap run-parts runcon runsv runsvdir runuser s6-setuidgid screen script \
    setarch setlock setpriv setsid setuidgid sg singularity softlimit split ssh-agent \
    start-stop-daemon stdbuf strace su sudo supervisord systemctl systemd-inhibit systemd-nspawn \
    systemd-run taskset time timeout tini tmux torify torsocks tsocks uname26 unbuffer unshare \
    valgrind watch watchexec watchman x86_64 xargs xvfb-run zellij";

/// Programs that start others through an option or a configuration file.
const OTHERS: &str = "\
    ansible ansible-console ansible-playbook ant apk apt apt-get aptitude aria2c bazel brew bsdtar \
    bundle bundler bunx busctl c++ c89 c99 cabal capistrano cargo cc ccache clang cmake composer \
    conda corepack cpan cpio curl cvs direnv dnf docker dpkg emerge f77 g++ gcc gem gfortran gh \
    git gmake go gpg gradle gradlew hatch helm hg invoke journalctl just kubectl latex ld lein \
    lerna less lftp lualatex luarocks mage make man meson mix more mosh mutt mvn mvnw nc ncat \
    nerdctl ninja nix nix-shell nmap nox npm npx opam openssl packer pacman pdflatex pdm pip pipx \
    pkg pnpm podman poetry pre-commit pulumi puppet rake restic rsync runc rustc rustup salt sbt \
    scons scp sendmail sftp snap socat sort ssh sshpass stack svn tar task tcc tcpdump terraform \
    tex tox turbo uv uvx vagrant vite wget xelatex yarn yum zig zip zypper";

/// Whether the program at a path can run others. Ignores a version at the end of its name:
/// `python3.12` is `python`.
pub(crate) fn can_run_programs(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    let unversioned = name.trim_end_matches(is_version);
    let lists = [SHELLS, INTERPRETERS, LAUNCHERS, OTHERS];
    let mut names = lists.into_iter().flat_map(str::split_ascii_whitespace);
    names.any(|it| it == name || it == unversioned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_name_ignores_directory_and_version() {
        for path in ["/bin/sh", "sh", "/usr/bin/python3.12", "/opt/Perl5", "/usr/bin/lua-5.4"] {
            assert!(can_run_programs(path), "{path}");
        }
        for path in ["/usr/bin/sha256sum", "/usr/bin/true", "/bin/shred", ""] {
            assert!(!can_run_programs(path), "{path}");
        }
    }

    #[test]
    fn linkers_build_tools_and_clients_can_run_programs() {
        for name in "ld.so ld-linux.so.2 ld-musl-x86_64.so.1 cc g++-13 linux64 view rview bunx batch runghc go \
                     cargo dc split zip mysql poetry bundle tox direnv gradle mvn"
            .split_ascii_whitespace()
        {
            assert!(can_run_programs(name) && can_run_programs(&format!("/usr/bin/{name}")), "{name}");
        }
    }
}
