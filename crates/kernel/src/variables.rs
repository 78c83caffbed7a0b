//! Variables of the environment that no agent gets from the watch: they choose which code a program runs,
//! whatever its words are, or speak for the watch itself.
//!
//! An approval names the program and its arguments. One of these would make something else of it.

/// Those that speak for the watch.
const OWN: &str = "MIDWATCH_";
/// Families, by what their names begin with.
const FAMILIES: &[&str] = &[
    "BASH_FUNC_",
    "CARGO_",
    "COR_",
    "CORECLR_",
    "DYLD_",
    "GIT_",
    "LD_",
    OWN,
    "NPM_CONFIG_",
    "PIP_",
];

/// Compared without regard to case, as some programs do.
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

/// Whether a variable is one of these. `PATH` is: programs get the one that the watch was started with.
///
/// ```
/// use kernel::variables::steers;
///
/// assert!(steers("LD_PRELOAD") && steers("git_ssh_command"));
/// assert!(!steers("API_URL"));
/// ```
pub fn steers(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    FAMILIES.iter().any(|family| name.starts_with(family))
        || NAMES.split_ascii_whitespace().any(|it| it == name)
}

/// Whether a variable speaks for the watch, or says in whose name something is asked of it.
pub(crate) fn is_own(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with(OWN)
}
