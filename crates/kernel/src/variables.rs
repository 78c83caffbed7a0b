//! Environment variables that agents never inherit from the daemon: those that select which code a program
//! runs, and Midwatch's own.
//!
//! An approval covers a program and its arguments. With one of these variables the same program could run
//! other code.

/// Prefix of Midwatch's own variables.
const RESERVED_PREFIX: &str = "MIDWATCH_";
/// Prefixes of variable names.
const PREFIXES: &[&str] = &[
    "BASH_FUNC_",
    "CARGO_",
    "COR_",
    "CORECLR_",
    "DYLD_",
    "GIT_",
    "LD_",
    RESERVED_PREFIX,
    "NPM_CONFIG_",
    "PIP_",
];

/// Compared without regard to case, as some programs read them.
const NAMES: &str = "\
    _JAVA_OPTIONS AR AS AWKPATH BASHOPTS BASH_ENV BROWSER BUNDLE_GEMFILE CC CDPATH CFLAGS CLASSPATH CPP \
    CXX CXXFLAGS DOTNET_STARTUP_HOOKS EDITOR ELECTRON_RUN_AS_NODE ENV GCONV_PATH GIO_EXTRA_MODULES \
    GLIBC_TUNABLES GOENV GOFLAGS GOROOT GTK_MODULES HOSTALIASES IFS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS \
    LDFLAGS LESSCLOSE LESSOPEN LOCPATH LUA_CPATH LUA_INIT LUA_PATH MAKEFILES MAKEFLAGS MANPAGER \
    NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES PAGER \
    PATH PERL5DB PERL5LIB PERL5OPT PERLLIB PHPRC PHP_INI_SCAN_DIR PKG_CONFIG PKG_CONFIG_PATH \
    PROMPT_COMMAND PS4 PYTHONBREAKPOINT PYTHONEXECUTABLE PYTHONHOME PYTHONINSPECT PYTHONPATH \
    PYTHONPLATLIBDIR PYTHONSTARTUP PYTHONUSERBASE PYTHONWARNINGS QT_PLUGIN_PATH RESOLV_HOST_CONF RUBYLIB \
    RUBYOPT RUSTC RUSTC_WORKSPACE_WRAPPER RUSTC_WRAPPER RUSTDOC RUSTFLAGS SHELLOPTS SSH_ASKPASS SUDO_ASKPASS \
    VISUAL ZDOTDIR";

/// Whether a variable selects code or is reserved. `PATH` is one: programs get the daemon's.
///
/// ```
/// use kernel::variables::selects_code;
///
/// assert!(selects_code("LD_PRELOAD") && selects_code("git_ssh_command"));
/// assert!(!selects_code("API_URL"));
/// ```
pub fn selects_code(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || NAMES.split_ascii_whitespace().any(|it| it == name)
}

/// Whether a variable is Midwatch's own, such as one that identifies a caller.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with(RESERVED_PREFIX)
}
