//! Compares the program's output with the guides, by running again the commands that need no switch.
//!
//! With `BLESS=1` in the environment the guides are updated instead.

use std::path::Path;
use std::process::Command;

/// The guides, and the commands in them that are run.
const GUIDES: [(&str, &[&str]); 3] = [
    ("docs/switch.md", &["$ urtica trace --flows"]),
    (
        CHAPTER,
        &["$ urtica trace --flows", "$ urtica switch --explain"],
    ),
    (FULL, &["$ urtica switch --explain-code"]),
];

/// The chapter that cites the listing.
const CHAPTER: &str = "docs/compiler.md";
const FULL: &str = "docs/compiler-code.md";

const FENCE: &str = "```";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn guide(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect(name)
}

/// Splits a command line into words, some of which may be in quotes.
fn words(command: &str) -> Vec<String> {
    let command = command.replace("\\\n", " ");
    let parts = command.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// Returns the program's output for a command line that starts with `$ urtica`.
fn printed(command: &str) -> String {
    let arguments = words(command);
    let mut urtica = Command::new(env!("CARGO_BIN_EXE_urtica"));
    let output = urtica.args(&arguments[2..]).current_dir(root()).output();
    let output = output.expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

/// Splits a block into a command with its continuation lines, and the output below it.
fn split_block(block: &str) -> (&str, &str) {
    let lines = block.split_inclusive('\n');
    let ends = lines.scan(0, |end, line| {
        *end += line.len();
        Some((*end, line.ends_with("\\\n")))
    });
    let end = ends.into_iter().find(|&(_, goes_on)| !goes_on);
    block.split_at(end.map_or(block.len(), |(end, _)| end))
}

/// Returns a guide with the current output of its commands. Keeps listings on machines without machine code.
fn renewed(guide: &str, commands: &[&str]) -> String {
    let parts = guide.split(FENCE).enumerate().map(|(index, part)| {
        let Some(block) = part.strip_prefix("console\n").filter(|_| index % 2 == 1) else {
            return part.to_owned();
        };
        let is_listing = block.contains("--explain-code");
        if is_listing && cfg!(not(target_arch = "x86_64")) {
            println!("skipped: the listings are of code for x86-64");
            return part.to_owned();
        }
        let (command, _) = split_block(block);
        match commands.iter().any(|start| command.starts_with(start)) {
            true => format!("console\n{command}{}", printed(command)),
            false => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join(FENCE)
}

#[test]
fn commands_print_the_output_in_the_guides() {
    for (name, commands) in GUIDES {
        let guide = guide(name);
        let renewed = renewed(&guide, commands);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(root().join(name), renewed).expect("the guide can be written");
            continue;
        }
        assert!(
            commands.iter().all(|command| guide.contains(command)),
            "{name} shows too little"
        );
        let mut lines = guide.lines().zip(renewed.lines());
        let differing = lines.find(|(shown, printed)| shown != printed);
        assert!(
            guide == renewed,
            "{name} shows something else, first in {differing:?}; if it is for the better, test again with BLESS=1"
        );
    }
    assert_cited_code_is_in_the_listing();
}

/// Checks that the listing, which has been renewed before, contains the code in the chapter.
fn assert_cited_code_is_in_the_listing() {
    let (chapter, full) = (guide(CHAPTER), guide(FULL));
    let cited = chapter
        .split(FENCE)
        .filter_map(|part| part.strip_prefix("asm\n"));
    let cited: Vec<&str> = cited.collect();
    assert!(!cited.is_empty());
    for code in cited {
        assert!(full.contains(code), "not in {FULL}:\n{code}");
    }
}

#[test]
fn links_of_the_chapter_lead_to_files() {
    let chapter = guide(CHAPTER);
    let links = chapter
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let links: Vec<&str> = links.filter(|link| !link.starts_with('#')).collect();
    assert!(links.len() > 5, "{links:?}");
    for link in links {
        let file = link.split('#').next().unwrap_or(link);
        assert!(
            root().join("docs").join(file).exists(),
            "{link} does not exist"
        );
    }
}
