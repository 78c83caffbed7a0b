//! This workspace is tidy, and every rule catches what it is for.

use anyhow::Result;
use xtask::tidy;
use xtask::workspace::{Package, Workspace};

#[test]
fn this_workspace_is_tidy() -> Result<()> {
    let violations = tidy::check(&Workspace::read(xtask::root())?);
    let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(text.is_empty(), "\n{}\n", text.join("\n"));
    Ok(())
}

/// A workspace of one crate that breaks no rule.
fn clean() -> Workspace {
    let files = [
        ("ARCHITECTURE.md", "# The tree\n```\ncrates/\n  kernel/  pure  rules\n```\n"),
        ("Cargo.lock", "[[package]]\nname = \"libsqlite3-sys\"\n"),
        ("clippy.toml", ""),
        ("crates/kernel/Cargo.toml", "[package]\n[lints]\nworkspace = true\n"),
        ("crates/kernel/src/lib.rs", "//! Rules.\n\npub mod agent;\n#[cfg(test)]\nmod tests;\n"),
        ("crates/kernel/src/agent.rs", "//! Agents.\npub(crate) mod name; // Why not.\n"),
        ("crates/kernel/src/agent/name.rs", "//! Names.\n#[path = \"../odd.rs\"]\nmod even;\n"),
        ("crates/kernel/src/odd.rs", "//! Odd.\n"),
        ("crates/kernel/src/tests/mod.rs", "//! Tests.\nmod deep;\n"),
        ("crates/kernel/src/tests/deep.rs", "//! Deep.\n"),
        ("crates/kernel/tests/it/main.rs", "mod story;\n"),
        ("crates/kernel/tests/it/story.rs", ""),
    ];
    let roots = ["crates/kernel/src/lib.rs", "crates/kernel/tests/it/main.rs"];
    Workspace {
        packages: vec![Package {
            name: "kernel".to_owned(),
            dir: "crates/kernel".to_owned(),
            roots: roots.map(str::to_owned).to_vec(),
            dependencies: vec![],
        }],
        files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into(),
    }
}

/// Checks the clean workspace with one file replaced: the expected violations by rule and text.
fn check(path: &str, text: &str, expected: &[(&str, &str)]) {
    let mut workspace = clean();
    workspace.files.insert(path.to_owned(), text.to_owned());
    check_all(&workspace, expected);
}

fn check_all(workspace: &Workspace, expected: &[(&str, &str)]) {
    let violations = tidy::check(workspace);
    let found: Vec<_> = violations.iter().map(|it| (it.rule.name, it.found.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_clean_workspace_is_clean() {
    check_all(&clean(), &[]);
}

#[test]
fn a_crate_without_the_workspace_lints_is_refused() {
    let path = "crates/kernel/Cargo.toml";
    let found = "crates/kernel/Cargo.toml does not inherit the lints of the workspace";
    check(path, "[package]\n", &[("lints", found)]);
    check(path, "[lints]\n[dependencies]\nworkspace = true\n", &[("lints", found)]);
    check(path, "[lints.clippy]\nall = \"allow\"\n", &[("lints", found)]);
    check(path, "[lints]\n  workspace=true\n", &[]);
}

#[test]
fn a_second_clippy_toml_is_refused() {
    let path = "crates/kernel/clippy.toml";
    check(path, "", &[("one clippy.toml", path)]);
    check("sim/.clippy.toml", "", &[("one clippy.toml", "sim/.clippy.toml")]);
}

#[test]
fn a_crate_without_meaningful_name_layer_or_tree_line_is_refused() {
    for name in ["common", "midwatch-core", "types"] {
        let mut workspace = clean();
        workspace.packages[0].name = name.to_owned();
        check_all(
            &workspace,
            &[
                ("layers", &format!("`{name}` has no layer")),
                ("crate names", &format!("crate `{name}`")),
                ("crate list", &format!("ARCHITECTURE.md does not name `{name}/` in its tree")),
            ],
        );
    }
}

#[test]
fn the_tree_in_architecture_names_every_crate() {
    let found = "ARCHITECTURE.md does not name `kernel/` in its tree";
    check("ARCHITECTURE.md", "kernel/ is only in prose\n", &[("crate list", found)]);
    check("ARCHITECTURE.md", "```\nkernel-two/\n```\n", &[("crate list", found)]);
    let mut workspace = clean();
    workspace.files.remove("ARCHITECTURE.md");
    check_all(&workspace, &[("crate list", "ARCHITECTURE.md does not exist")]);
}

#[test]
fn paths_in_architecture_exist() {
    let page = |line: &str| format!("```\nkernel/\n```\n{line}\n");
    for line in [
        "`crates/kernel/src/agent.rs`, `kernel/src/agent/name.rs`, `agent/name.rs`, `kernel/odd.rs`, `odd.rs`",
        "`kernel/src/agent/`, `agent/`, `crates/kernel`",
        "`/mcp`, `exports/`, `approvals/pending`, `kernel::agent`, `midwatch run list a/b`, `clippy.toml`, a/b.rs",
        "```\nlost/\n```",
    ] {
        check("ARCHITECTURE.md", &page(line), &[]);
    }
    for path in ["lost.rs", "agent/lost.rs", "gent.rs", "kernel/lost/", "src/agent.r"] {
        let found = format!("ARCHITECTURE.md:4: `{path}` does not exist");
        let line = format!("`kernel::agent` is in `{path}`.");
        check("ARCHITECTURE.md", &page(&line), &[("architecture paths", &found)]);
    }
}

#[test]
fn a_source_file_without_module_doc_is_refused() {
    let path = "crates/kernel/src/odd.rs";
    let found = "crates/kernel/src/odd.rs does not begin with `//!`";
    check(path, "", &[("module docs", found)]);
    check(path, "use std::fmt;\n//! Late.\n", &[("module docs", found)]);
    check(path, "/// Of an item.\n", &[("module docs", found)]);
}

#[test]
fn a_file_that_no_module_declares_is_dead() {
    for path in [
        "crates/kernel/src/forgotten.rs",
        "crates/kernel/src/name.rs",
        "crates/kernel/tests/it/forgotten.rs",
        "scratch.rs",
    ] {
        let found = format!("{path} is not reached by any `mod`");
        check(path, "//! Lost.\n", &[("dead files", &found)]);
    }
    // The modules of a dead file are dead.
    check(
        "crates/kernel/src/tests/mod.rs",
        "//! Tests.\n// mod deep;\n",
        &[("dead files", "crates/kernel/src/tests/deep.rs is not reached by any `mod`")],
    );
}

#[test]
fn absolute_paths_below_a_home_folder_are_refused() {
    let home = concat!("/ho", "me/");
    let caught = [
        format!("see {home}ann/notes"),
        format!("\"{home}ann\""),
        concat!("cd /Us", "ers/ann").to_owned(),
        concat!("`/ro", "ot/.cargo`").to_owned(),
        concat!(r"C:\Us", r"ers\ann").to_owned(),
    ];
    for line in caught {
        let found = format!("docs/page.md:2: {line}");
        check("docs/page.md", &format!("A page.\n{line}\n"), &[("home paths", &found)]);
    }
    let passed = [
        format!("{home} alone"),
        format!("https://example.org{home}ann"),
        format!("{{data}}{home}ann"),
        "~/notes".to_owned(),
    ];
    for line in passed {
        check("docs/page.md", &line, &[]);
    }
}

#[test]
fn a_remark_about_later_work_names_its_issue() {
    let word = concat!("TO", "DO");
    let path = "crates/kernel/src/odd.rs";
    for line in [format!("// {word}: later"), format!("// {word}(ann)"), format!("// {word}(#)")] {
        let found = format!("{path}:2: {line}");
        check(path, &format!("//! Odd.\n{line}\n"), &[("untracked remarks", &found)]);
    }
    check(path, &format!("//! Odd.\n// {word}(#12): later\n// {word}S\n"), &[]);
    check("docs/page.md", &format!("no {word} in code\n"), &[]);
}

#[test]
fn a_retired_phrase_is_found_across_lines_and_in_capitals() {
    let found = |path: &str| format!("{path}: `as many as there are`, now `no limit`");
    for (path, text) in [
        ("docs/config.md", "`0`: As many\nas there are.\n"),
        (
            "crates/kernel/src/odd.rs",
            "//! Odd.\nconst A: &str = \"as many as \\\n    there are\";\n",
        ),
        ("crates/kernel/tests/it/page.snap", "0: as many as there are\n"),
    ] {
        check(path, text, &[("retired phrases", &found(path))]);
    }
    // Tests and decisions may quote it.
    check("crates/kernel/tests/it/story.rs", "// as many as there are\n", &[]);
    check("docs/decisions/0001-limits.md", "as many as there are\n", &[]);
}

#[test]
fn a_second_sqlite_or_another_tls_library_is_refused() {
    let sqlite = "[[package]]\nname = \"libsqlite3-sys\"\n";
    let twice = "Cargo.lock holds `libsqlite3-sys` more than once";
    check("Cargo.lock", "", &[]);
    check("Cargo.lock", &sqlite.repeat(2), &[("lock file", twice)]);
    for name in ["aws-lc-sys", "openssl-sys"] {
        let found = format!("Cargo.lock holds `{name}`");
        let lock = format!("[[package]]\nname = \"{name}\"\n");
        check("Cargo.lock", &lock, &[("lock file", &found)]);
        check("Cargo.lock", &format!("dependencies = [\n \"{name}\",\n]\n"), &[]);
    }
}

#[test]
fn a_violation_is_printed_with_its_rule_and_what_to_do() {
    let mut workspace = clean();
    workspace.files.insert("sim/clippy.toml".to_owned(), String::new());
    let shown: Vec<String> = tidy::check(&workspace).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "one clippy.toml: sim/clippy.toml\n  instead: put the setting into the clippy.toml of the \
          root: one in a member would replace it completely, with all its bans"
        ]
    );
}

#[test]
fn a_link_to_nothing_is_refused() {
    let check_link = |target: &str, is_dead: bool| {
        let mut workspace = clean();
        let page = "docs/howto/page.md".to_owned();
        let text =
            format!("# Its `own` Title: one\n```\n[not](a-link.md)\n```\nSee [x]({target}).\n");
        workspace.files.insert(page.clone(), text);
        let found = format!("{page}:5: `{target}` does not exist");
        let expected: &[(&str, &str)] = if is_dead { &[("dead links", &found)] } else { &[] };
        check_all(&workspace, expected);
    };
    for target in
        ["https://example.com/x.md", "../../ARCHITECTURE.md", "../../crates/kernel", "page.md"]
    {
        check_link(target, false);
    }
    for target in ["#its-own-title-one", "../../ARCHITECTURE.md#the-tree"] {
        check_link(target, false);
    }
    for target in
        ["gone.md", "../ARCHITECTURE.md", "../../../x.md", "#gone", "page.md#gone", "gone.md#gone"]
    {
        check_link(target, true);
    }
}

#[test]
fn a_hint_that_names_a_missing_page_is_refused() {
    let path = "crates/kernel/src/odd.rs";
    let hint = "//! Odd.\nconst HINT: &str = \"see docs/gone.md.\";\n";
    check(path, hint, &[("dead links", &format!("{path}:2: `docs/gone.md` does not exist"))]);
    let mut workspace = clean();
    workspace.files.insert(path.to_owned(), hint.to_owned());
    workspace.files.insert("docs/gone.md".to_owned(), "# Found\n".to_owned());
    check_all(&workspace, &[]);
}
