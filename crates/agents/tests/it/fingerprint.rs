//! The fingerprint of a program covers the very file that would be executed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use agents::AgentBackend;
use kernel::approval::ExecutionFingerprint;
use kernel::backend::Settings;

use crate::world::{SECRET, World, command};

async fn fingerprint(
    world: &World,
    settings: Settings,
    word: &str,
) -> Result<Option<ExecutionFingerprint>, String> {
    let agent = command(settings, &[word], "").agent;
    world.backends.fingerprint(agent, "here".into()).await.map_err(|failure| failure.message)
}

/// Each program prints its own path, which is the file that was executed.
#[tokio::test]
async fn fingerprinted_file_is_the_executed_file() {
    let world = World::new();
    let (place, own) = (world.root().join("place"), "#!/bin/sh\nreadlink -f \"$0\"\n");
    fs::create_dir(&place).unwrap();
    for path in [world.root().join("tool"), place.join("tool")] {
        fs::write(&path, own).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    }
    symlink(place.join("tool"), world.root().join("link")).unwrap();
    let in_place = || Settings { cwd: place.to_str().map(str::to_owned), ..Settings::default() };
    let absolute = place.join("tool").display().to_string();
    for (settings, word) in [
        (Settings::default(), "./tool"),
        (Settings::default(), "./link"),
        (Settings::default(), "place/tool"),
        (in_place(), "./tool"),
        (in_place(), "../tool"),
        (Settings::default(), absolute.as_str()),
    ] {
        let result = world.run(command(settings.clone(), &[word], "")).await;
        let found = fingerprint(&world, settings, word).await.unwrap().unwrap().program;
        assert_eq!(found.path, result.output.text.trim_end(), "{word}");
        assert_eq!(found.sha256.len(), 64);
    }
    let found = fingerprint(&world, Settings::default(), "sh").await.unwrap().unwrap();
    let real = ["/usr/local/bin/sh", "/usr/bin/sh"].iter().find_map(|it| fs::canonicalize(it).ok());
    assert_eq!(found.program.path, real.unwrap().display().to_string());
}

#[tokio::test]
async fn directory_and_variables_are_hashed_and_not_exposed() {
    let world = World::new();
    let place = world.root().join("place");
    fs::create_dir(&place).unwrap();
    let cwd = place.to_str().map(str::to_owned);
    let env = vec!["SECRET".to_owned(), "UNSET".to_owned()];
    let settings = Settings { cwd, env, ..Settings::default() };
    let found = fingerprint(&world, settings.clone(), "true").await.unwrap().unwrap();
    assert_eq!(fingerprint(&world, settings, "true").await.unwrap().unwrap(), found);
    let names: Vec<&str> = found.parts().collect();
    assert_eq!(names, ["program", "directory", "HOME", "LANG", "PATH", "SECRET", "TZ"]);
    let directory = found.directory.clone().unwrap();
    assert_eq!(directory.inode, fs::metadata(&place).unwrap().ino().to_string());
    assert!(!format!("{found:?}").contains(SECRET), "{found:?}");
    let agent = command(Settings::default(), &["true"], "").agent;
    let elsewhere = world.backends.fingerprint(agent, "elsewhere".into()).await.unwrap().unwrap();
    assert_ne!(elsewhere.variables["PATH"], found.variables["PATH"]);
    assert_eq!((elsewhere.program, elsewhere.directory), (found.program, None));
}

#[tokio::test]
async fn program_that_cannot_be_started_has_no_fingerprint() {
    let world = World::new();
    fs::write(world.root().join("text"), "no program").unwrap();
    let elsewhere = Settings { cwd: Some("/nowhere/at/all".into()), ..Settings::default() };
    for (settings, word, expected) in [
        (Settings::default(), "no-such-program", "no such program"),
        (Settings::default(), "./text", "no such program"),
        (Settings::default(), "/tmp", "no such program"),
        (elsewhere, "true", "the directory `/nowhere/at/all` does not exist"),
    ] {
        let error = fingerprint(&world, settings, word).await.unwrap_err();
        assert!(error.contains(expected), "{word}: {error}");
    }
}

/// Policy rules match the program's path as it was found, and the resolved directory.
#[tokio::test]
async fn details_have_command_line_and_directory() {
    let world = World::new();
    let place = world.root().join("place");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(place.join("tool"), Permissions::from_mode(0o700)).unwrap();
    symlink(&place, world.root().join("link")).unwrap();
    let root = world.root().canonicalize().unwrap().display().to_string();
    let details = |cwd: Option<&str>, words: &[&str]| {
        let cwd = cwd.map(|name| world.root().join(name).display().to_string());
        let agent = command(Settings { cwd, ..Settings::default() }, words, "a prompt").agent;
        let found = world.backends.details(&agent);
        assert_eq!((found.host, found.resource), (None, None));
        (found.path.unwrap().replace(&root, ""), found.argv.join(" ").replace(&root, ""))
    };
    let check = |cwd, words: &[&str], path: &str, argv: &str| {
        assert_eq!(details(cwd, words), (path.to_owned(), argv.to_owned()), "{words:?}");
    };
    check(Some("place"), &["./tool", "-x"], "/place", "/place/tool -x");
    // A link to a directory is resolved, a link to a program is not.
    check(Some("link"), &["/bin/sh", "-c"], "/place", "/bin/sh -c");
    check(Some("place"), &["../place/tool"], "/place", "/place/tool");
    check(None, &["place/tool"], "", "/place/tool");
    // A missing program is left out.
    check(None, &["no-such-tool", "-x"], "", "");
    let (_, sh) = details(None, &["sh"]);
    assert!(sh.starts_with('/') && sh.ends_with("/sh"), "{sh}");
}
