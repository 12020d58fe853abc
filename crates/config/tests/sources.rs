//! Options from all sources, for a small command line.

use clap::{Arg, ArgAction, Command, value_parser};
use proptest::prelude::*;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use urtica_config::{Alias, CommandLine, Effective, LoadError, Refused, Sources, schema};

fn describe() -> Command {
    let port = value_parser!(u16);
    let run = Command::new("run").args([
        Arg::new("config")
            .long("config")
            .value_parser(value_parser!(PathBuf)),
        Arg::new("apps").action(ArgAction::Append),
        Arg::new("port")
            .long("port")
            .value_name("N")
            .value_parser(port),
        Arg::new("mode").long("mode").value_parser(["fast", "slow"]),
        Arg::new("quiet").long("quiet").action(ArgAction::SetTrue),
        Arg::new("log").long("log"),
        Arg::new("peer").long("peer").action(ArgAction::Append),
        Arg::new("depth")
            .long("firewall-depth")
            .help_heading("Options of programs"),
    ]);
    Command::new("program").subcommand(run)
}

fn line() -> CommandLine {
    let mut line = CommandLine::new(describe, "run", "TEST");
    line.programs = vec!["firewall", "hub"];
    line.alias = Some(Alias {
        option: "log",
        variable: "OTHER_LOG",
        is_valid: |value| value != "nonsense",
    });
    line
}

/// Loads the options from this file, these variables and these arguments; the arguments must not include a file.
fn load(file: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Result<Effective, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.toml");
    fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    let arguments = [&["program", "run", "--config", path], arguments].concat();
    let arguments = arguments.into_iter().map(OsString::from).collect();
    let variables = variables
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    let sources = Sources::new(line(), arguments, variables).expect("it is the subcommand");
    let loaded = sources.load();
    loaded.map_err(|error| error.to_string().replace(path, "FILE"))
}

#[test]
fn the_command_line_overrides_the_environment_and_that_the_file() {
    let file = "port = 1\nmode = \"slow\"\nquiet = true\n[program.firewall]\ndepth = \"3\"\n";
    let variables = [
        ("TEST_PORT", "2"),
        ("TEST_MODE", "fast"),
        ("TEST_PEER", "a; b"),
    ];
    let loaded = load(file, &variables, &["--port", "3"]).unwrap();
    assert_eq!(loaded.values["port"], ["3"]);
    assert_eq!(loaded.values["mode"], ["fast"]);
    assert_eq!(loaded.values["peer"], ["a", "b"]);
    assert_eq!(loaded.values["quiet"], ["true"]);
    assert_eq!(loaded.values["firewall-depth"], ["3"]);
    assert!(loaded.program_options.contains("firewall-depth"));
}

#[test]
fn a_variable_names_the_file_if_no_option_does() {
    let arguments = || ["program", "run"].map(OsString::from).to_vec();
    let variables = [("TEST_CONFIG".into(), "/nowhere/file.toml".into())];
    let sources = Sources::new(line(), arguments(), variables).unwrap();
    assert_eq!(sources.file(), Some("/nowhere/file.toml".as_ref()));
    let error = sources.load().unwrap_err().to_string();
    assert!(
        error.contains("cannot be read from '/nowhere/file.toml'"),
        "{error}"
    );
    assert!(
        Sources::new(line(), arguments(), [])
            .unwrap()
            .file()
            .is_none()
    );
}

#[test]
fn other_subcommands_and_help_have_no_sources() {
    for arguments in [vec!["program"], vec!["program", "run", "--help"]] {
        let arguments = arguments.into_iter().map(OsString::from).collect();
        assert!(Sources::new(line(), arguments, []).is_none());
    }
}

#[test]
fn all_faults_of_a_file_are_reported_with_their_places() {
    let file = "prot = 1\nmode = \"fats\"\nquiet = 3\nprograms = [\"hub\", \"hub\", \"nub\"]\n[program.firewall]\ndpeth = \"1\"\n";
    let error = load(file, &[], &[]).unwrap_err();
    for expected in [
        "FILE:1:1: there is no setting 'prot'; did you mean 'port'?",
        "FILE:2:8: 'fats' is no mode; did you mean 'fast'?",
        "FILE:3:9: quiet is a whole number; expected true or false",
        "FILE:4:20: the program 'hub' is named twice; expected each once",
        "FILE:4:27: there is no control program 'nub'; did you mean 'hub'?",
        "FILE:6:1: there is no setting 'dpeth' of the program firewall; did you mean 'depth'?",
    ] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn an_option_in_the_wrong_table_is_sent_to_its_own() {
    let error = load("firewall-depth = \"1\"\n", &[], &[]).unwrap_err();
    assert!(
        error.contains("expected 'depth' in [program.firewall]"),
        "{error}"
    );
    let error = load("[program.hub]\n", &[], &[]).unwrap_err();
    assert!(
        error.contains("the program 'hub' has no settings"),
        "{error}"
    );
}

#[test]
fn a_variable_that_cannot_be_used_is_named() {
    for (name, value) in [
        ("TEST_PORT", "x"),
        ("TEST_QUIET", "yes"),
        ("TEST_MODE", "x"),
    ] {
        let error = load("", &[(name, value)], &[]).unwrap_err();
        assert!(
            error.starts_with(&format!("the variable {name} cannot be used: ")),
            "{error}"
        );
    }
}

#[test]
fn the_other_variable_applies_if_valid_and_alone() {
    let log =
        |variables: &[_]| load("log = \"file\"\n", variables, &[]).unwrap().values["log"].clone();
    assert_eq!(log(&[("OTHER_LOG", "debug")]), ["debug"]);
    assert_eq!(log(&[("OTHER_LOG", "nonsense")]), ["file"]);
    assert_eq!(
        log(&[("OTHER_LOG", "debug"), ("TEST_LOG", "warn")]),
        ["warn"]
    );
}

#[test]
fn errors_point_at_refused_settings_in_the_file() {
    let refused = || Refused {
        option: "port",
        problem: "port 1 is reserved".into(),
    };
    let of_file = load("port = 1\n", &[], &[]).unwrap();
    let error = of_file.refuse(vec![refused()]).unwrap_err().to_string();
    assert!(error.contains(":1:8: port 1 is reserved"), "{error}");
    let overridden = load("port = 2\n", &[], &["--port", "1"]).unwrap();
    let error = overridden.refuse(vec![refused()]).unwrap_err();
    assert!(
        matches!(error, LoadError::Setting { option: "port", .. }),
        "{error}"
    );
    assert!(of_file.refuse(Vec::new()).is_ok());
}

#[test]
fn a_problem_of_a_program_is_shown_at_its_name_or_its_table() {
    let place = |file| {
        let loaded = load(file, &[], &[]).unwrap();
        loaded.place("firewall", "no rules".into()).to_string()
    };
    assert!(place("programs = [\"firewall\"]\n").contains(":1:13: no rules"));
    assert!(place("\n[program.firewall]\ndepth = \"1\"\n").contains(":2:1: no rules"));
}

#[test]
fn the_schema_has_each_option_with_its_type() {
    let schema = schema(&line(), "A test");
    let properties = &schema["properties"];
    assert_eq!(properties["port"]["type"], "integer");
    assert_eq!(properties["quiet"]["type"], "boolean");
    assert_eq!(properties["mode"]["enum"][1], "slow");
    assert_eq!(properties["programs"]["items"]["enum"][0], "firewall");
    let firewall = &properties["program"]["properties"]["firewall"];
    assert_eq!(firewall["properties"]["depth"]["type"], "string");
    assert_eq!(schema["additionalProperties"], false);
}

proptest! {
    #[test]
    fn any_file_is_read_or_refused(text in ".{0,200}", key in "[a-z.\\[\\]]{0,12}") {
        let _ = load(&text, &[], &[]);
        let _ = load(&format!("{key} = {text}"), &[], &[]);
    }
}
